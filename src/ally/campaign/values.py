"""Return values of a campaign: plain values, each with `to_json` for commands, pages and notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

from ally.campaign.advice import Advice
from ally.campaign.training.schedule import TrainingState
from ally.data.ids import SampleId
from ally.metrics import METRICS
from ally.store.values import AskKind
from ally.types import SKIP, Task

MeasuredBy: TypeAlias = Literal["held-out", "cv"]
"""Measured on held-out samples, or by cross-validation on the chosen training labels."""
CHOSEN = "by cross-validation on the {n} labels that were chosen, which are not a random sample"
METRIC: dict[Task, str] = {"classification": "accuracy", "regression": "r2"}
"""What the learning curve shows, unless another metric is chosen."""
CONSTANT = "constant "
"""Prefix of a metric's name: the score of a constant answer."""
RECALL = "recall of "
"""Prefix of a class name: its recall."""


@dataclass(frozen=True)
class Value:
    """What JSON can hold."""

    def to_json(self) -> dict[str, Any]:
        """Its fields by name; a skip is None, a tuple a list, and ids of samples are texts."""
        fields = {name: _json(value) for name, value in asdict(self).items()}
        return fields | {name: str(fields[name]) for name in ("id",) if name in fields}


def _json(value: Any) -> Any:
    if value is SKIP:
        return None
    if isinstance(value, Mapping):
        return {str(name): _json(item) for name, item in value.items()}
    return [_json(item) for item in value] if isinstance(value, (list, tuple)) else value


@dataclass(frozen=True)
class AskedSample(Value):
    """A sample to label: why it was asked about (`kind`), and the model's score and prediction."""

    id: SampleId
    kind: AskKind
    score: float | None
    why: Mapping[str, Any]


@dataclass(frozen=True)
class CampaignQuery(Value):
    """Samples reserved for one annotator until `until` (seconds since 1970); `total` includes those already
    answered."""

    id: int
    annotator: str
    samples: tuple[AskedSample, ...]
    until: float
    model: int | None
    total: int

    @property
    def ids(self) -> list[SampleId]:
        """As they came: numbers, if all of the source are whole ones."""
        return [sample.id for sample in self.samples]

    def __len__(self) -> int:
        return len(self.samples)

    def to_json(self) -> dict[str, Any]:
        """The number of the query is ``query``, and ``until`` a time as text."""
        until = datetime.fromtimestamp(self.until, UTC).isoformat()
        samples = [sample.to_json() for sample in self.samples]
        return {"query": self.id, "annotator": self.annotator, "until": until, "model": self.model, "samples": samples}


@dataclass(frozen=True)
class Told(Value):
    """Answers on record."""

    numbers: tuple[int, ...]
    labelled: int
    skipped: int
    query: int | None = None
    """The query they answer, if any."""
    waiting: tuple[SampleId, ...] = ()
    """Ids of the query without an answer yet."""
    known: int = 0
    """How many were already on record."""
    slips: tuple[str, ...] = ()
    """What looks like a slip of the finger, in sentences: a new class that differs from another only by how it is
    written, a number far from all others. The answers are on record all the same."""

    def to_json(self) -> dict[str, Any]:
        """Without `known`, so that a retry with the same key gets the same receipt."""
        fields = {name: value for name, value in super().to_json().items() if name != "known"}
        return fields | {"waiting": list(map(str, self.waiting))}


@dataclass(frozen=True)
class Undone(Value):
    """The answer that was undone."""

    id: SampleId
    kind: str
    label: Any
    number: int


@dataclass(frozen=True)
class ClassChange(Value):
    """A change of the classes: add, rename, merge, remove or undo; `said` counts the answers repeated for it, and
    `classes` are those declared from now on (None: any label is one)."""

    change: str
    old: tuple[Any, ...]
    new: Any
    said: int
    classes: tuple[Any, ...] | None
    near: tuple[str, ...] = ()
    """Which new classes are spelled much like another, in sentences."""


@dataclass(frozen=True)
class Scanned(Value):
    """The result of a rescan."""

    added: int
    gone: int
    back: int
    labelled: int
    """New labels found in the source."""
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class Figure(Value):
    """The score of a model, and how many labels it was trained on."""

    labels: int
    metric: str
    value: float
    low: float | None
    high: float | None
    evaluated_on: int
    by: MeasuredBy

    @property
    def sentence(self) -> str:
        interval = "" if self.low is None or self.high is None else f"95 % interval {self.low:.3f} to {self.high:.3f}, "
        samples = "evaluation sample" if self.evaluated_on == 1 else "evaluation samples"
        by = f"{self.evaluated_on} {samples}" if self.by == "held-out" else CHOSEN.format(n=self.evaluated_on)
        return f"{self.metric} {self.value:.3f} ({interval}{by})"


@dataclass(frozen=True)
class ModelLine(Value):
    """One point of the learning curve: a model, the labels it was trained on, and what it scored on the evaluation
    sample, or out of fold on its own labels if `by` is "cv"."""

    number: int
    at: float
    labels: int
    metric: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    evaluated_on: int = 0
    agreement: float | None = None
    positive_duals: float | None = None
    constant: float | None = None
    """The score of always answering the most common class, or the mean, on the same sample."""
    figures: Mapping[str, float] = field(default_factory=dict)
    """Every metric of the task that was measured, by name."""
    by: MeasuredBy = "held-out"
    handed: int | None = None
    """Labels of the final model of the same training, which uses every label; None if there is none."""

    @property
    def figure(self) -> Figure | None:
        if self.value is None:
            return None
        return Figure(self.labels, self.metric, self.value, self.low, self.high, self.evaluated_on, self.by)

    @property
    def no_better_than_constant(self) -> bool:
        if self.value is None or self.constant is None:
            return False
        return METRICS[self.metric].sign * (self.value - self.constant) <= 0


@dataclass(frozen=True)
class ClassRecall(Value):
    """Of the `n` evaluation samples of a class, the share that the newest model recognises, with its 95 % interval."""

    label: str
    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Underway(Value):
    """The stage of a training that is running, which share of the whole is done, and how long the rest may take, judged
    by the training before. Without one, share and seconds are those of the stage alone, where they are known."""

    stage: str
    share: float | None
    seconds_left: float | None
    whole: bool
    """Whether share and seconds are of the whole training."""


@dataclass(frozen=True)
class Pulse(Value):
    """What changes while people label: the number of the last answer, the model that serves, whether one is trained
    now, and how far that is."""

    last_answer: int
    model: int | None
    training: bool
    underway: Underway | None = None


@dataclass(frozen=True)
class Agreement(Value):
    """Krippendorff's alpha of the annotators (1: they agree, 0: as if at random) over `samples` that several labelled,
    and for each class whether it is that class or not."""

    alpha: float
    samples: int
    classes: Mapping[str, float]


@dataclass(frozen=True)
class RandomComparison(Value):
    """Models on as many active as random labels, on the same evaluation sample; `gain` is active minus random, with its
    interval."""

    labels: int
    active: float
    random: float
    gain: float
    low: float
    high: float
    evaluated_on: int

    @property
    def sentence(self) -> str:
        words = f"{self.labels} active labels: {self.active:.3f}, {self.labels} random ones: {self.random:.3f}"
        interval = (
            f"difference {self.gain:+.3f}, 95 % interval {self.low:+.3f} to {self.high:+.3f}, "
            f"{self.evaluated_on} evaluation samples"
        )
        verdict = (
            "Better than random here"
            if self.low > 0
            else "Worse than random here"
            if self.high < 0
            else "Not shown to differ from random"
        )
        return f"{verdict}: {words} ({interval})."


@dataclass(frozen=True)
class Held(Value):
    """A held-out sample for one purpose: its size, and how much of it is labelled."""

    samples: int
    labelled: int


@dataclass(frozen=True)
class Status(Value):
    """The status of a campaign. `labels` counts every label bought: each person's, where several label one sample, but
    not `given`, those that the source had from the beginning. `labelled` counts samples that such a label decides."""

    name: str
    source: str
    task: str
    strategy: str
    samples: int
    free: int
    leased: int
    skipped: int
    gone: int
    labels: int
    given: int
    labelled: int
    training: int
    evaluate: Held
    validate: Held
    classes: Mapping[str, int]
    annotators: Mapping[str, int]
    disagreements: int
    training_state: TrainingState
    training_error: str | None
    waiting: int
    model: ModelLine | None
    curve: tuple[ModelLine, ...]
    advice: Advice
    comparison: RandomComparison | None
    budget: int | None = None
    notes: tuple[str, ...] = field(default=())
    encoder: str | None = None
    encoded: int | None = None
    """Samples already encoded, if there is an encoder."""
    recall: tuple[ClassRecall, ...] = ()
    problems: tuple[str, ...] = ()
    """Problems with the source at the last scan, as sentences; at most twenty."""
    training_seconds: float | None = None
    """How long the current training has been running."""
    underway: Underway | None = None
    """What it is doing, and how far it is."""
    last_seconds: float | None = None
    """How long the previous training took."""

    def to_json(self) -> dict[str, Any]:
        """With the comparison in a sentence, too."""
        return {
            **super().to_json(),
            "comparison_sentence": None if self.comparison is None else self.comparison.sentence,
        }


@dataclass(frozen=True)
class Suspect(Value):
    """A label that may be wrong: its dual (how hard it is to fit), the prediction of a model that never saw it, and the
    loss of the label under that prediction."""

    id: SampleId
    label: Any
    annotator: str
    dual: float | None
    predicted: Any
    probability: float | None
    loss: float | None = None
