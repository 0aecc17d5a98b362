"""Everything there is to say about one strategy, as plain values."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ally.cards.parts import imports_of, parameters_of, source_of, summary_of
from ally.cards.strategies import CARDS
from ally.learning.objectives import OBJECTIVES, resolve_objective
from ally.strategies import CATALOGUE, Strategy


def describe(name: str) -> dict[str, Any]:
    """A strategy of the catalogue with its card, in a form that JSON can hold; an unknown name is the catalogue's
    error."""
    entry = CATALOGUE[name]
    card = CARDS[name]
    return {
        "name": name,
        "family": card.family,
        "tasks": sorted(entry.tasks),
        "objective": objective_name(entry),
        "score": repr(entry.score),
        "select": repr(entry.select),
        "needs": list(entry.needs),
        "about": entry.about,
        "use_when": card.use_when,
        "cost": asdict(card.cost),
        "equation": card.equation,
        "meaning": card.meaning,
        "references": [asdict(reference) for reference in card.references],
        "parameters": {
            axis: {
                "part": type(part).__name__,
                "about": summary_of(part),
                "settings": [asdict(item) for item in parameters_of(part)],
            }
            for axis, part in parts(entry).items()
        },
        "python": python(entry),
    }


def parts(entry: Strategy) -> dict[str, Any]:
    """The parts of a strategy by axis."""
    return {"objective": resolve_objective(entry.objective), "score": entry.score, "select": entry.select}


def objective_name(entry: Strategy) -> str:
    """The objective by name; one with settings of its own goes by the name of its kind."""
    if isinstance(entry.objective, str):
        return entry.objective
    kind = type(entry.objective)
    return next((name for name, known in OBJECTIVES.items() if type(known) is kind), kind.__name__)


def python(entry: Strategy) -> str:
    """Code that makes an equal strategy out of its parts, ready to be changed."""
    made = {axis: source_of(getattr(entry, axis)) for axis in ("score", "select", "objective")}
    made |= {} if entry.patience is None else {"patience": str(entry.patience)}
    made |= {"needs_network": "True"} if entry.needs_network else {}
    made |= {} if entry.first == Strategy.first else {"first": source_of(entry.first)}
    imports = imports_of(entry.score, entry.select, entry.objective, *([entry.first] if "first" in made else []))
    return "\n".join(
        [
            "from ally import Strategy",
            *imports,
            "",
            "strategy = Strategy(",
            *(f"    {k}={v}," for k, v in made.items()),
            ")",
        ]
    )
