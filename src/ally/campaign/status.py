"""The status of a campaign, read from its store."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from ally.campaign.advice import Advice, Evidence, Point, advise
from ally.campaign.permissions import PLACE_OF_SOURCE
from ally.campaign.settings import Settings
from ally.campaign.training.progress import underway
from ally.campaign.training.schedule import UNENCODED, last_training, waiting
from ally.campaign.values import CONSTANT, METRIC, RECALL, ClassRecall, Held, ModelLine, RandomComparison, Status
from ally.data.encoders.cache import kept_vectors
from ally.data.export.answers import reads
from ally.data.given_labels import mark_for_none
from ally.metrics import METRICS, lopsided
from ally.store import Counts, Measure, Store, StoredModel

Figures: TypeAlias = dict[int, dict[str, Measure]]
"""By the number of a model and the name of the figure."""
GIVEN = "source"
"""The annotator of labels that came with the source."""


def status_of(store: Store, settings: Settings, now: float, encoded_in: Path | None = None) -> Status:
    """`encoded_in` is the folder of the encoder's vectors."""
    counts, annotators, training = (
        store.count(now, settings.store_policy),
        store.answers.annotators(),
        last_training(store),
    )
    given = counts.deciders.get(GIVEN, 0)
    annotators.pop(GIVEN, None)
    good = [model for model in store.models.all() if model.state == "good"]
    figures = _figures(store)
    curve = _curve(figures, good, settings)
    newest = good[-1] if good else None
    bought = sum(counts.said.values()) - counts.said.get(GIVEN, 0)
    compared = newest.report.get("comparison") if newest else None
    pool, evaluate, validate = (counts.roles[role] for role in ("pool", "evaluate", "validate"))
    return Status(
        name=store.name,
        source=settings.place or _unread_source(settings),
        task=settings.task,
        strategy=settings.strategy,
        samples=counts.samples,
        free=counts.free,
        leased=counts.leased,
        skipped=counts.skipped,
        gone=counts.gone,
        labels=bought,
        given=given,
        labelled=counts.labelled - given,
        training=pool.labelled,
        evaluate=Held(evaluate.samples, evaluate.labelled),
        validate=Held(validate.samples, validate.labelled),
        classes=_classes(counts) if settings.task == "classification" else {},
        annotators=annotators,
        disagreements=counts.disagreements,
        training_state=training.state,
        training_error=training.error,
        waiting=waiting(store),
        model=curve[-1] if curve else None,
        curve=tuple(curve),
        advice=_advice(settings, curve, bought),
        comparison=None if compared is None else RandomComparison(**compared),
        budget=settings.budget,
        encoder=settings.encoder,
        encoded=_encoded(settings, counts.samples, newest, encoded_in),
        notes=(
            *(newest.report.get("notes", ()) if newest else ()),
            *_imbalance(settings, counts),
            *_marks(settings, counts),
        ),
        recall=_recall(figures, newest),
        training_seconds=None if training.began is None else max(0.0, now - training.began),
        underway=underway(store, now) if training.state == "running" else None,
        last_seconds=newest.report.get("seconds") if newest else None,
    )


def _unread_source(settings: Settings) -> str:
    outside = next((one.value for one in settings.ignored if one.name == PLACE_OF_SOURCE), None)
    return "in memory" if outside is None else f"{outside} (not read until you allow it)"


def _encoded(settings: Settings, samples: int, newest: StoredModel | None, folder: Path | None) -> int | None:
    """How many samples are encoded, as seen from this machine; all of them once a training has seen them all."""
    about = settings.encoded
    if about is None:
        return None
    if newest is not None and not newest.report.get(UNENCODED):
        return samples
    kept = 0 if folder is None else kept_vectors(folder, about["identity"], about["width"])
    elsewhere = 0 if newest is None else samples - int(newest.report[UNENCODED])
    return min(samples, max(kept, elsewhere))


def _classes(counts: Counts) -> dict[str, int]:
    """Number of samples per label, by its written form; the store counts them by JSON text."""
    found: Counter[str] = Counter()
    for text, n in counts.classes.items():
        found[reads(json.loads(text))] += n
    return dict(found)


def _marks(settings: Settings, counts: Counts) -> list[str]:
    """A sentence if labels look like marks for none."""
    said = None if settings.task == "regression" or settings.classes is not None else mark_for_none(_classes(counts))
    return [] if said is None else [said]


def _imbalance(settings: Settings, counts: Counts) -> list[str]:
    """A sentence if accuracy is shown and some classes are rare among the labels."""
    sizes = _classes(counts)
    if settings.task == "regression" or settings.metric not in (None, "accuracy") or not lopsided(sizes.values()):
        return []
    most, least = max(sizes, key=lambda name: sizes[name]), min(sizes, key=lambda name: sizes[name])
    total = sum(sizes.values())
    return [
        f"the classes are uneven ({most} has {sizes[most] / total:.0%} of the labels, {least} "
        f"{sizes[least] / total:.1%}), and accuracy says little about rare ones; `ally change NAME --metric "
        "balanced_accuracy` (or macro_f1, auroc) says more"
    ]


def _figures(store: Store) -> Figures:
    figures: Figures = {}
    for number, measure in store.models.measures():
        figures.setdefault(number, {})[measure.name] = measure
    return figures


def _recall(figures: Figures, newest: StoredModel | None) -> tuple[ClassRecall, ...]:
    mine = {} if newest is None else figures.get(newest.number, {})
    return tuple(
        ClassRecall(
            name.removeprefix(RECALL), one.value, one.low or 0.0, 1.0 if one.high is None else one.high, one.n or 0
        )
        for name, one in mine.items()
        if name.startswith(RECALL)
    )


def _curve(figures: Figures, good: Sequence[StoredModel], settings: Settings) -> list[ModelLine]:
    metric = settings.metric or METRIC[settings.task]
    lines = []
    for model in good:
        mine = figures.get(model.number, {})
        scored, kappa, positive = mine.get(metric), mine.get("agreement"), mine.get("positive_duals")
        constant = mine.get(f"{CONSTANT}{metric}")
        lines.append(
            ModelLine(
                number=model.number,
                at=model.at,
                labels=model.labels,
                metric=metric,
                value=None if scored is None else scored.value,
                low=None if scored is None else scored.low,
                high=None if scored is None else scored.high,
                evaluated_on=0 if scored is None else scored.n or 0,
                agreement=None if kappa is None else kappa.value,
                positive_duals=None if positive is None else positive.value,
                constant=None if constant is None else constant.value,
                figures={name: mine[name].value for name in METRICS if name in mine},
                by=model.report.get("by", "held-out"),
                handed=model.report.get("handed"),
            )
        )
    return lines


def _advice(settings: Settings, curve: Sequence[ModelLine], bought: int) -> Advice:
    # A campaign may have been cross-validated before samples were held out.
    same = [line for line in curve if line.labels and (line.by == "cv") == (settings.evaluate == "cv")]
    points = [point for line in same if (point := _point(line)) is not None]
    kappas = tuple(line.agreement for line in curve if line.agreement is not None)
    last = curve[-1] if curve else None
    return advise(
        Evidence(
            tuple(points),
            settings.batch,
            kappas,
            settings.budget,
            bought,
            settings.metric or METRIC[settings.task],
            settings.evaluate != 0,
            None if last is None or not last.no_better_than_constant else (last.value or 0.0, last.constant or 0.0),
            settings.evaluate == "cv",
        )
    )


def _point(line: ModelLine) -> Point | None:
    """If lower is better, the value is the relative improvement over a constant answer."""
    if line.value is None or line.low is None or line.high is None:
        return None
    deviation = (line.high - line.low) / (2 * 1.96)
    if METRICS[line.metric].higher:
        return Point(line.labels, line.value, deviation)
    return Point(line.labels, 1 - line.value / line.constant, deviation / line.constant) if line.constant else None
