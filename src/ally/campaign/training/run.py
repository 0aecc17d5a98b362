"""One training of a campaign: from the recorded labels to a recorded model and ranking."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ally.campaign.permissions import AllowedModels
from ally.campaign.settings import Settings
from ally.campaign.source import set_aside
from ally.campaign.training.chart import MOST, Chart, flat, main_directions, scaled
from ally.campaign.training.comparison import compare
from ally.campaign.training.data import Part, TrainingData, encode_first, gather, in_order
from ally.campaign.training.measures import agreement, evaluation, scores
from ally.campaign.training.models import measured_model, pack
from ally.campaign.training.progress import StageRecorder
from ally.campaign.training.review import suspects
from ally.campaign.training.schedule import begin
from ally.campaign.values import METRIC, Figure, MeasuredBy
from ally.data import Samples, default_learner
from ally.data.encoders.samples import PIXELS, EncodedSamples, seen_by
from ally.errors import AllyError, StoreError
from ally.hygiene import Hygiene
from ally.learning.auto import AutoLearner, chosen_by
from ally.learning.auto_objective import AutoObjective, objective_name
from ally.learning.choice import TIE, KeptChoice
from ally.learning.learner import GROWTH, Learner
from ally.learning.objectives import OBJECTIVES, PDCL, Objective
from ally.learning.splits import repeated_splits
from ally.learning.trained import Trained
from ally.learning.training import Training
from ally.loop import Loop, Query
from ally.neighbours import ArrayRows, find_nearest
from ally.rng import streams
from ally.store import Measure, Ranked, Store
from ally.types import FloatArray, Progress

AHEAD = 4
"""How many batches to rank beyond the next one, so that annotators do not run out during the next training."""
FOLDS, LEAST_CV = 5, 10
"""Folds of cross-validation, and the fewest labels for it."""
COMPARED = 1000
"""Unlabelled samples on which two models in a row are compared."""
NEAR = 3
"""How many nearest labelled samples are listed for each that is asked about."""
FROM_PIXELS = "the model learns from pixels, not from the encoder's vectors"
FROM_VECTORS = "the model learns from the encoder's vectors, not from pixels"
KINDS_GONE = ("unreadable", "gone")


def train(
    store: Store,
    source: Callable[[], Samples],
    settings: Settings,
    clock: Callable[[], float] = time.time,
    progress: Progress | None = None,
    *,
    at_once: bool = True,
    cache: Path | None = None,
) -> int:
    """Train on everything labelled and record the model; returns its number. A failure, also to open the source, is
    recorded and raised. Without `at_once`, unlabelled samples that take long to encode are left for the next
    training. `cache` is a folder for what can be made again."""
    turn = len(store.models.all())
    begun = begin(store, clock(), {"turn": turn})
    started = time.perf_counter()
    stages = StageRecorder(store, clock, begun, progress)
    seen = labels = 0
    try:
        stages.enter("reading")
        samples = source()
        data, encoding = encode_first(store, samples, gather(store, samples, settings, turn), stages, at_once)
        seen, labels = data.seen, len(data.training)
        this = _Round(store, samples, settings, data, stages, cache)
        weights, report, ranking, measures = this.run()
        broken = {problem.id: problem.reason for problem in samples.problems if problem.kind in KINDS_GONE}
        set_aside(store, clock(), {**dict.fromkeys(data.gone, "it is gone"), **broken})
        report["notes"] += encoding.pop("notes", [])
        stages.leave()
        report |= {"begun": begun, **encoding, "seconds": time.perf_counter() - started, "stages": stages.seconds}
        return store.models.put(
            clock(),
            seen=seen,
            labels=labels,
            weights=weights,
            report=report,
            ranking=ranking,
            measures=measures,
            map=this.map,
        )
    except StoreError:
        # If the store cannot be written, the failure cannot be recorded either.
        raise
    except Exception as error:
        said = str(error) if isinstance(error, AllyError) else f"{type(error).__name__}: {error}"
        store.models.put_failure(clock(), seen=seen, labels=labels, report={"begun": begun, "error": said})
        raise


class _Round:
    """The steps of one training over one `TrainingData`."""

    def __init__(
        self,
        store: Store,
        samples: Samples,
        settings: Settings,
        data: TrainingData,
        progress: StageRecorder,
        cache: Path | None,
    ) -> None:
        self.store = store
        self.given = samples
        self.samples = samples
        """As the model sees them: without their encoder where pixels are learned better."""
        self.settings = settings
        self.data = data
        self.progress = progress
        self.model: str | Learner
        self.model, training = _learner(samples, settings, len(data.training))
        self.training = replace(training, graphs=None if cache is None else cache / "graphs")
        newest = store.models.newest()
        before = None if newest is None else newest.report.get("choice")
        if self.model == "auto":
            self.model = AutoLearner(self.training, before=None if before is None else KeptChoice(**before))
            if newest is not None and before is not None and len(data.training) < GROWTH * before["labels"]:
                self.samples = seen_by(samples, newest.report)
        self.objective: str | Objective | None = settings.objective
        known = {} if newest is None else newest.report.get("objective", {})
        self.objective_labels = len(data.training)
        """How many there were when ``"auto"`` chose the objective."""
        if self.objective == "auto" and len(data.training) < GROWTH * known.get("labels", 0):
            self.objective, self.objective_labels = AutoObjective((OBJECTIVES[known["name"]],)), known["labels"]
        self.classes = list(settings.classes or data.classes) if settings.task == "classification" else None
        self.map: bytes | None = None
        by: MeasuredBy = "cv" if settings.evaluate == "cv" else "held-out"
        self.report: dict[str, Any] = {
            "notes": [],
            "by": by,
            "candidates": len(data.candidates),
            "free": data.free,
        }
        if self.samples is not samples and before is not None:
            self.report["notes"].append(f"{FROM_PIXELS}, as chosen with {before['labels']} labels")

    def run(self) -> tuple[bytes | None, dict[str, Any], list[Ranked], list[Measure]]:
        if not self._trainable():
            ranking = self._ranking(self._loop(Part())) if len(self.data.candidates) else []
            return None, self.report, ranking, []
        loop = self._first_loop()
        ranking = self._ranking(loop)
        self.progress.enter("measuring")
        trained = loop.trained().with_about(self._about(self.data.training))
        # So that the loops below neither read the pool nor choose again.
        self.model = loop.learner
        if self.settings.objective == "auto":
            self.objective = loop.objective
            self.report["objective"] = {"name": objective_name(self.objective), "labels": self.objective_labels}
        self.report["notes"] += [said for said in trained.fit.report.notes if said not in self.report["notes"]]
        chosen = chosen_by(self.model)
        if chosen is not None:
            self.report["choice"] = chosen.record._asdict()
        if self.samples is not self.given:
            self.report["features"] = PIXELS
        self.report["fit"] = {name: value for name, value in asdict(trained.fit.report).items() if _plain(value)}
        self.report["suspects"] = self._suspects(loop)
        measures = self._measures(trained)
        return self._kept(trained, measures), self.report, self._mapped(trained, ranking), measures

    def _first_loop(self) -> Loop:
        """Over the encoder's vectors of photos, or over their pixels where a learner that is chosen by cross-validation
        does better on them."""
        loop = self._loop(self.data.training)
        samples = self.samples
        if not isinstance(samples, EncodedSamples) or samples.kind.beside_encoder != "rival":
            return loop
        vectors = chosen_by(loop.learner)
        if vectors is None or not vectors.measured:
            return loop
        model, best = self.model, vectors.measured[0]
        self.samples, self.model = samples.samples, AutoLearner(self.training, rival=best.rank)
        plain = self._loop(self.data.training)
        pixels = chosen_by(plain.learner)
        assert pixels is not None
        if pixels.measured[0].rank * TIE < best.rank:
            words = FROM_PIXELS
        else:
            plain, self.samples, self.model = loop, samples, model
            words = FROM_VECTORS
        errors = " and ".join(
            f"{one.error:.1%} wrong" if self.settings.task == "classification" else f"rmse {one.error:.3g}"
            for one in (best, pixels.measured[0])
        )
        self.report["notes"].append(f"{words}: cross-validation found {errors} for vectors and pixels")
        return plain

    def _mapped(self, trained: Trained, ranking: list[Ranked]) -> list[Ranked]:
        """Draws the map, and names the labelled samples nearest to each that is asked about."""
        labelled, candidates = self.data.training, self.data.candidates
        asked = {entry.row for entry in ranking}
        order = streams(self.settings.random_state).child("map").numpy("rows").permutation(len(candidates)).tolist()
        order.sort(key=lambda place: candidates.rows[place] not in asked)
        shown = candidates.at(sorted(order[: max(0, MOST - min(len(labelled), MOST // 2))]))
        known = labelled.at(range(min(len(labelled), MOST // 2)))
        seen = trained.look(self.samples.features([*known.ids, *shown.ids]))
        points = seen.embeddings.double().numpy()
        if not points.size:
            return ranking
        main = main_directions(points)
        places = flat(main)
        probability = (
            np.full(len(points), np.nan) if seen.probabilities is None else seen.probabilities.amax(1).double().numpy()
        )
        rows = np.asarray([*known.rows, *shown.rows], dtype=np.int64)
        classes = tuple(trained.fit.classes or ())
        predicted = seen.predictions.double().numpy()
        chart = Chart(rows, places[:, 0], places[:, 1], predicted, probability, scaled(main), classes)
        self.map = chart.to_bytes()
        at = {row: place for place, row in enumerate(rows.tolist())}
        ranked, labelled_points = points[[at[entry.row] for entry in ranking]], points[: len(known)]
        near = find_nearest(ArrayRows(ranked), ArrayRows(labelled_points), min(NEAR, len(known))).numbers
        return [
            replace(entry, why={**(entry.why or {}), "near": [known.ids[place] for place in places]})
            for entry, places in zip(ranking, near.tolist(), strict=True)
        ]

    def _trainable(self) -> bool:
        if not len(self.data.training):
            self.report["cold"] = "there are no labels yet"
        elif self.classes is not None and len(self.classes) < 2:
            self.report["cold"] = f"all labels are {self.classes[0]!r} and a classifier needs two classes"
        return "cold" not in self.report

    def _about(self, part: Part) -> dict[str, Any]:
        """The figures of a model trained on these labels."""
        about: dict[str, Any] = {"fingerprint": dict(self.settings.fingerprint), "labels": len(part)}
        if self.samples is not self.given:
            about["features"] = PIXELS
        if self.settings.task == "regression":
            labels = [float(label) for label in part.labels]
            about["range"] = [min(labels), max(labels)]
        return about

    def _kept(self, trained: Trained, measures: Sequence[Measure]) -> bytes:
        """The measured model, and one that is trained on every label where that makes a difference."""
        every = self.data.every_label
        metric = self.settings.metric or METRIC[self.settings.task]
        found = next((measure for measure in measures if measure.name == metric), None)
        about = self._about(every)
        if found is not None:
            labels, evaluated_on = len(self.data.training), found.n or 0
            figure = Figure(labels, found.name, found.value, found.low, found.high, evaluated_on, self.report["by"])
            about["measured"] = figure.to_json()
        self.report["handed"] = len(every)
        if len(every) == len(self.data.training):
            return pack(trained.with_about(about), None)
        training = self.training
        if len(self.data.validate):
            # No validation samples are left for early stopping: train for as many epochs as the measured model kept.
            training = replace(training, epochs=max(1, trained.fit.report.kept_epoch))
        classes = None if self.classes is None else list(self.settings.classes or in_order(every.labels))
        loop = self._loop(every, validate=Part(), classes=classes, training=training)
        return pack(trained, loop.trained().with_about(about))

    def _loop(
        self,
        labelled: Part,
        *,
        strategy: str | None = None,
        objective: str | Objective | None = None,
        validate: Part | None = None,
        classes: list[Any] | None = None,
        training: Training | None = None,
    ) -> Loop:
        """Labelled samples and candidates; ids are rows of the store."""
        candidates = self.data.candidates
        validate = self.data.validate if validate is None else validate
        classes = self.classes if classes is None else classes
        cold = not len(labelled)
        validation = None if cold or not len(validate) else (self.samples.features(validate.ids), list(validate.labels))
        return Loop(
            self.samples.features([*labelled.ids, *candidates.ids]),
            [*labelled.labels, *[None] * len(candidates)],
            strategy=strategy or self.settings.strategy,
            objective=objective or self.objective,
            model=self.model,
            task=self.settings.task,
            classes=classes if classes is not None and len(classes) > 1 else None,
            ids=np.asarray([*labelled.rows, *candidates.rows], dtype=np.int64),
            hygiene=Hygiene(),
            random_state=self.settings.random_state,
            validation=validation,
            training=training or self.training,
            engine=self.settings.engine,
            progress=self.progress,
        )

    def _suspects(self, loop: Loop) -> list[dict[str, Any]]:
        """Labels that may be wrong; none where the learner says nothing of its losses.

        Where the objective has no duals of labels, a plain training is made with duals that add up the loss of each
        sample over the epochs and weigh nothing.
        """
        objective = PDCL(eps=0.0, dual_lr=1 / self.training.epochs, dual_decay=0.0, weighted=False)
        reason = loop.learner.supports(objective, self.settings.task)
        if reason is not None:
            self.report["notes"].append(f"labels were not checked for mistakes: {reason}")
            return []
        return suspects(
            loop,
            self.data.training,
            self.samples,
            accumulating=lambda: self._loop(self.data.training, strategy="random", objective=objective),
            fit=self._arm,
            seed=self.settings.random_state,
        )

    def _ranking(self, loop: Loop) -> list[Ranked]:
        """The strategy's next batch, followed by further samples."""
        entries: list[Ranked] = []
        for size in (self.settings.batch, AHEAD * self.settings.batch):
            n = min(size, loop.free)
            if n:
                query = loop.ask(n)
                entries += self._ranked(query)
                self.report["notes"] += [note for note in query.notes if note not in self.report["notes"]]
                self.report.setdefault("positive_duals", query.report.get("positive"))
                self.report.setdefault("rank_quality", query.report.get("rank_quality"))
        return entries

    def _ranked(self, query: Query) -> list[Ranked]:
        names = dict(zip(self.data.training.rows, self.data.training.ids, strict=True))
        lines = query.why.to_dict("records")
        entries = []
        for row, value, line in zip(query.ids.tolist(), query.scores.tolist(), lines, strict=True):
            near = line.get("nearest_labelled")
            why = {
                str(key): _json(value)
                for key, value in line.items()
                if not pd.isna(value) and key not in ("score", "nearest_labelled")
            }
            if near is not None and not pd.isna(near):
                why["nearest_labelled"] = names[int(near)]
            entries.append(Ranked(row, float(value) if math.isfinite(value) else 0.0, why))
        return entries

    def _measures(self, trained: Trained) -> list[Measure]:
        found = []
        evaluate = self.data.evaluate
        if len(evaluate):
            found += evaluation(trained, self.samples, evaluate, self.data.training, self.settings)
        if self.settings.evaluate == "cv" and len(self.data.training) >= LEAST_CV:
            found += self._cross_validated()
        kappa = self._agreement(trained)
        if kappa is not None:
            found.append(Measure("agreement", kappa, n=min(COMPARED, len(self.data.candidates))))
        share = self.report.get("positive_duals")
        if share is not None:
            found.append(Measure("positive_duals", share, n=len(self.data.candidates)))
        comparison = compare(self.store, self.settings, self.data, self.samples, self._arm)
        if comparison is not None:
            self.report["comparison"] = asdict(comparison)
        return found

    def _cross_validated(self) -> list[Measure]:
        """What models on the other folds say of each training label but those that are the only ones of their class."""
        part = self.data.training
        classification = self.settings.task == "classification"
        values = (
            np.unique([str(label) for label in part.labels], return_inverse=True)[1] if classification else part.labels
        )
        rng = streams(self.settings.random_state).numpy("cross-validation")
        splits = repeated_splits(np.asarray(values, dtype=np.float64), FOLDS, 1, rng, classes=classification)
        truth: list[Any] = []
        said: list[Any] = []
        chances: list[FloatArray] = []
        for others, mine in splits:
            held, trained = part.at(mine.tolist()), self._arm(part.at(others.tolist()))
            seen = trained.look(self.samples.features(held.ids))
            truth += held.labels
            said += trained.code.decode(seen.predictions.numpy()).tolist()
            chances += [] if seen.probabilities is None else [seen.probabilities.double().numpy()]
        if len(truth) < LEAST_CV:
            return []
        return scores(
            self.settings.task,
            truth,
            said,
            known=part.labels,
            classes=self.classes or (),
            probabilities=np.concatenate(chances) if chances else None,
            metric=self.settings.metric,
        )

    def _arm(self, labelled: Part) -> Trained:
        return self._loop(labelled).trained()

    def _agreement(self, trained: Trained) -> float | None:
        """With the model before, on the same unlabelled samples."""
        before = self.store.models.newest()
        weights = None if before is None else self.store.models.weights(before.number)
        some = self.data.candidates.ids[:: max(1, len(self.data.candidates) // COMPARED)][:COMPARED]
        if weights is None or not some:
            return None
        try:
            previous = measured_model(weights, trusted=AllowedModels(self.store.id))
            one, other = (
                model.predict(seen_by(self.given, model.about).features(some))[0] for model in (previous, trained)
            )
        except AllyError:
            return None  # a model that cannot be read, or not used, is what this training replaces
        return agreement(self.settings.task, one.tolist(), other.tolist())


def _learner(samples: Samples, settings: Settings, labels: int) -> tuple[str, Training]:
    """Campaigns of 0.1.0 store None for the default network for their kind of data."""
    default = default_learner(samples, settings.task, labels)
    if settings.model is None or settings.model == default.model:
        return default.model, Training(**default.training)
    return settings.model, Training()


def _plain(value: Any) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


def _json(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
