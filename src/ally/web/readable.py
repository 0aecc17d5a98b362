"""Labels, guesses and reasons as people read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ally.campaign import AskedSample
from ally.types import SKIP
from ally.web.schemas import AskedLine, Guess, Why

MEASURES = ("evaluate", "validate")
"""Held-out samples: showing a guess would bias the answer."""
SKIPPED = "skipped"


def text_of(label: Any) -> str:
    """How a label reads."""
    if label is None or label is SKIP:
        return SKIPPED
    if isinstance(label, bool):
        return str(label).lower()
    return f"{label:g}" if isinstance(label, float) else str(label)


def plain(label: Any) -> Any:
    return None if label is SKIP else label


def asked(sample: AskedSample, numbers: Sequence[float] = ()) -> AskedLine:
    """`numbers` are those told so far, in order, if labels are numbers."""
    guess = None
    if sample.kind not in MEASURES and sample.why.get("predicted") is not None:
        predicted, chance = sample.why["predicted"], sample.why.get("probability")
        beyond = len(numbers) > 0 and not numbers[0] <= predicted <= numbers[-1]
        guess = Guess(label=predicted, text=text_of(predicted), probability=chance, beyond=beyond)
    near = sample.why.get("near") or [sample.why.get("nearest_labelled")]
    nearest = [] if sample.kind in MEASURES else [str(id) for id in near if id is not None]
    why = Why(sentence=_sentence(sample), score=sample.score, nearest=nearest)
    return AskedLine(id=str(sample.id), kind=sample.kind, guess=guess, why=why)


def _sentence(sample: AskedSample) -> str:
    if sample.kind in MEASURES:
        return "drawn at random, to measure the model"
    if sample.kind == "random":
        return "drawn at random, to compare with the model's choices"
    if sample.score is None:
        return "drawn at random: the model has no wish yet"
    parts = []
    percentile = sample.why.get("percentile")
    if percentile is not None:
        parts.append("hard for the model" if percentile >= 90 else "of interest to the model")
        parts.append(f"score {sample.score:.2g}, above {min(99, int(percentile))} % of the pool")
    size = sample.why.get("cluster_size")
    if size is not None:
        parts.append(f"represents {int(size)} similar ones" if size > 1 else "unlike the others")
    return "; ".join(parts) if parts else "unlike what is labelled so far"
