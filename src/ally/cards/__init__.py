"""The catalogue explained: what each strategy is for, what it costs, its equation and its source.

A card holds what the code cannot say of itself. Tasks, needs and parameters are read from the strategy, never written
twice.
"""

from ally.cards.card import FAMILIES, SYMBOLS, Card, Cost, Family, ObjectiveCard, Reference, SelectionCard
from ally.cards.describe import describe
from ally.cards.objectives import OBJECTIVE_CARDS
from ally.cards.parts import Parameter, parameters_of, source_of, summary_of
from ally.cards.selections import SELECTION_CARDS
from ally.cards.strategies import CARDS

__all__ = [
    "CARDS",
    "FAMILIES",
    "OBJECTIVE_CARDS",
    "SELECTION_CARDS",
    "SYMBOLS",
    "Card",
    "Cost",
    "Family",
    "ObjectiveCard",
    "Parameter",
    "Reference",
    "SelectionCard",
    "describe",
    "parameters_of",
    "source_of",
    "summary_of",
]
