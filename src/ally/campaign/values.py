"""What a campaign answers: plain values, each with `to_json` for commands, pages and notebooks alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

from ally.campaign.advice import Advice
from ally.campaign.training.schedule import TrainingState
from ally.metrics import METRICS
from ally.store.values import AskKind
from ally.types import SKIP, Task

MeasuredBy: TypeAlias = Literal["held-out", "cv"]
"""On samples that are held out, or by cross-validation on the labels that were chosen for training."""
CHOSEN = "by cross-validation on the {n} labels that were chosen, which are not a random sample"
METRIC: dict[Task, str] = {"classification": "accuracy", "regression": "r2"}
"""What the learning curve shows, unless another metric is chosen."""
CONSTANT = "constant "
"""Before the name of a metric: what one answer for all samples scores."""
RECALL = "recall of "
"""Before the name of a class: the share of its samples that is recognised."""


@dataclass(frozen=True)
class Value:
    """What JSON can hold."""

    def to_json(self) -> dict[str, Any]:
        """Its fields by name; a skip is None, a tuple a list."""
        return {name: _json(value) for name, value in asdict(self).items()}


def _json(value: Any) -> Any:
    if value is SKIP:
        return None
    if isinstance(value, Mapping):
        return {str(name): _json(item) for name, item in value.items()}
    return [_json(item) for item in value] if isinstance(value, (list, tuple)) else value


@dataclass(frozen=True)
class AskedSample(Value):
    """A sample to label: why it was asked about (`kind`), the model's score, and what it knew of the sample."""

    id: str
    kind: AskKind
    score: float | None
    why: Mapping[str, Any]


@dataclass(frozen=True)
class CampaignQuery(Value):
    """Samples kept for one annotator until `until` (seconds since 1970); `total` counts those answered already, too."""

    id: int
    annotator: str
    samples: tuple[AskedSample, ...]
    until: float
    model: int | None
    total: int

    @property
    def ids(self) -> list[str]:
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
    """The query they answer, if they answer one."""
    waiting: tuple[str, ...] = ()
    """What of the query has no answer yet."""
    known: int = 0
    """How many were on record before."""
    slips: tuple[str, ...] = ()
    """What looks like a slip of the finger, in sentences: a new class that differs from another only by how it is
    written, a number far from all others. The answers are on record all the same."""

    def to_json(self) -> dict[str, Any]:
        """Without `known`: who tells again with the same key gets the same receipt."""
        return {name: value for name, value in super().to_json().items() if name != "known"}


@dataclass(frozen=True)
class Undone(Value):
    """The answer that was taken back."""

    id: str
    kind: str
    label: Any
    number: int


@dataclass(frozen=True)
class ClassChange(Value):
    """A change of the classes: add, rename, merge, remove or undo; `said` counts answers said again for it, and
    `classes` are those declared from now on (None: any label is one)."""

    change: str
    old: tuple[Any, ...]
    new: Any
    said: int
    classes: tuple[Any, ...] | None


@dataclass(frozen=True)
class Scanned(Value):
    """What looking at the source again found."""

    added: int
    gone: int
    back: int
    labelled: int
    """Labels that the source has got since."""
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class Figure(Value):
    """How good a model is that was trained on so many labels."""

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
    """What always answering the most common class, or the mean, scores on the same sample."""
    figures: Mapping[str, float] = field(default_factory=dict)
    """Every metric of the task that was measured, by name."""
    by: MeasuredBy = "held-out"
    handed: int | None = None
    """Labels of the model that is handed out beside it, which is trained on every label; None if there is none."""

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
class Pulse(Value):
    """What changes while people label: the number of the last answer, the model that serves, whether one is trained
    now, since when, and how long the last training took."""

    last_answer: int
    model: int | None
    training: bool
    begun: float | None
    seconds: float | None


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
    """A sample set aside for one purpose: how large it is to be, and how much of it is labelled."""

    samples: int
    labelled: int


@dataclass(frozen=True)
class Status(Value):
    """How far a campaign is. `labels` counts every label bought: each person's, where several label one sample, but not
    `given`, those that the source had from the beginning. `labelled` counts samples that such a label decides."""

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
    """Samples that have their vector already, where there is an encoder."""
    recall: tuple[ClassRecall, ...] = ()
    problems: tuple[str, ...] = ()
    """What of the source cannot be read, or is odd, in sentences; at most twenty of the last scan."""
    training_seconds: float | None = None
    """How long the training that is under way has run."""
    last_seconds: float | None = None
    """How long the one before took."""

    def to_json(self) -> dict[str, Any]:
        """With the comparison in a sentence, too."""
        return {
            **super().to_json(),
            "comparison_sentence": None if self.comparison is None else self.comparison.sentence,
        }


@dataclass(frozen=True)
class Suspect(Value):
    """A label that may be wrong: its dual (how hard it is to fit), and what a learner says that never saw this
    label."""

    id: str
    label: Any
    annotator: str
    dual: float
    predicted: Any
    probability: float | None
