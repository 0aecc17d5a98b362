"""What a card says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

Family: TypeAlias = Literal["baseline", "uncertainty", "information", "coverage", "hybrid", "constrained", "learned"]

FAMILIES: dict[Family, str] = {
    "baseline": "ignores the model; the baseline every other strategy has to beat",
    "uncertainty": "asks where the prediction is least certain",
    "information": "asks for what would change the network most: by gradients, Fisher information or disagreement",
    "coverage": "asks for samples that represent the rest, whatever the network predicts",
    "hybrid": "asks where the prediction is uncertain, spread over the pool",
    "constrained": "asks where a constraint on the loss is hardest to meet, by dual variables (ALLY)",
    "learned": "a network trained alongside the model says what to ask",
}

SYMBOLS: dict[str, str] = {
    "n": "candidates",
    "L": "labelled samples",
    "d": "embedding size",
    "C": "classes",
    "b": "the batch",
    "k": "clusters",
    "K": "networks, dropout masks or label paths sampled",
    "m": "candidates in a shortlist or sample, n at most",
}
"""The letters of a cost. Settings with a fixed default (iterations, widths, steps) count as constants."""

WORDS = {"O", "log", "regression", "softrank", "at", "worst", "pass", "passes"}
"""What else a cost may say."""


@dataclass(frozen=True)
class Reference:
    """Where a method comes from."""

    authors: str
    title: str
    venue: str
    year: int

    def __str__(self) -> str:
        return f"{self.authors}: {self.title}. {self.venue}, {self.year}."


@dataclass(frozen=True)
class Cost:
    """The cost of choosing a batch from the network's outputs for every sample. It excludes training and the first pass
    over the pool."""

    time: str
    """O(...), and how many more passes of the pool through a network."""
    memory: str
    """O(...) numbers beside the snapshot."""

    @property
    def letters(self) -> set[str]:
        """The letters that time and memory are counted in."""
        return {
            letter
            for word in re.findall(r"[A-Za-z]+", f"{self.time} {self.memory}")
            if word not in WORDS
            for letter in word
        }


@dataclass(frozen=True)
class Card:
    """A strategy of the catalogue in words."""

    family: Family
    use_when: str
    """One line for someone who has to choose."""
    cost: Cost
    equation: str
    """At most three lines of plain Unicode, so that a terminal and a web page show the same."""
    references: tuple[Reference, ...] = ()
    meaning: str = ""
    """Where the equation comes from, in about ten lines, for a strategy that is not explained elsewhere."""


@dataclass(frozen=True)
class ObjectiveCard:
    """A training objective in words."""

    use_when: str
    extra: str
    """What a fit takes beyond plain training."""
    equation: str
    references: tuple[Reference, ...] = ()


@dataclass(frozen=True)
class SelectionCard:
    """A way to make a batch of any score, in words."""

    use_when: str
    score: str
    """What the scores do in it."""
    cost: Cost
    equation: str
    references: tuple[Reference, ...] = ()
