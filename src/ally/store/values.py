"""What goes into a store and what comes out: plain values, no handles to the database."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Role: TypeAlias = Literal["pool", "evaluate", "validate"]
AskKind: TypeAlias = Literal["active", "random", "evaluate", "validate"]
AnswerKind: TypeAlias = Literal["label", "skip", "undo"]
Policy: TypeAlias = Literal["last", "majority", "median"]
ModelState: TypeAlias = Literal["writing", "good", "failed"]

First: TypeAlias = Mapping[AskKind, int] | Callable[[int], Mapping[AskKind, int]]
"""How many samples of which kinds a query takes first, or a function of the query's number that says so."""

ANYTHING = -1
"""No expectation about what is on record."""

ROLE_OF: dict[AskKind, Role] = {"active": "pool", "random": "pool", "evaluate": "evaluate", "validate": "validate"}
"""Which samples each kind of query may hand out."""


@dataclass(frozen=True)
class NewSample:
    """A sample by its stable id; `hash` is of its content and `label` what it shows (any JSON value), where the source
    knows them."""

    id: str
    hash: str | None = None
    role: Role = "pool"
    label: Any = None


@dataclass(frozen=True)
class StoredSample:
    row: int
    id: str
    hash: str | None
    role: Role
    gone: bool


@dataclass(frozen=True)
class NewAnswer:
    """What an annotator says about a sample: a label (any JSON value but null), or ``kind="skip"``. `at`, if that was
    not just now, and `annotator`, if it was not who calls: an import passes on what others said. With `again` it is
    recorded even if it equals that person's standing answer, so that answers keep their order among others."""

    sample: str
    value: Any = None
    kind: Literal["label", "skip"] = "label"
    at: float | None = None
    annotator: str | None = None
    again: bool = False


@dataclass(frozen=True)
class StoredAnswer:
    """One line of the record. An undo names the answer that it takes back in `undoes`."""

    number: int
    row: int
    sample: str
    annotator: str
    at: float
    kind: AnswerKind
    value: Any
    query: int | None
    undoes: int | None


@dataclass(frozen=True)
class Asked:
    """A sample of a query, its place in it, the kind of request it answers, and why the model wanted it."""

    row: int
    id: str
    place: int
    kind: AskKind
    score: float | None = None
    why: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class StoredQuery:
    """`samples` are those still open when it was given, leased until `until`; `total` counts all that were asked about.
    `kind` is that of the samples which no `first` claimed."""

    number: int
    annotator: str
    at: float
    kind: AskKind
    key: str | None
    model: int | None
    until: float
    samples: tuple[Asked, ...]
    total: int

    @property
    def ids(self) -> list[str]:
        return [asked.id for asked in self.samples]


@dataclass(frozen=True)
class Receipt:
    """Numbers of the answers on record, in the order given. It exists only once they are on disk."""

    numbers: tuple[int, ...]
    repeated: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class AnswerCall:
    """One answer of one annotator, as `Store.answer_together` takes it. `expects` is the number of the annotator's own
    answer to this sample that the caller knows of, None if there is none and one is wanted; ANYTHING does not look."""

    annotator: str
    answer: NewAnswer
    query: int | None = None
    key: str | None = None
    expects: int | None = ANYTHING


@dataclass(frozen=True)
class Recorded:
    """An answer on disk: its number, whether it was there already, and what stood before it (nothing is said of that
    when a key comes again)."""

    number: int
    repeated: bool = False
    before: StoredAnswer | None = None


@dataclass(frozen=True)
class Added:
    """How many samples are new, and how many labels came with samples."""

    samples: int
    labels: int

    def __add__(self, other: Added) -> Added:
        return Added(self.samples + other.samples, self.labels + other.labels)


@dataclass(frozen=True)
class Label:
    """The answer that counts for a sample, who gave it and when; `answers` counts the annotators who gave a label,
    `disagree` if those differ. A skip has no value. A median between two numbers is nobody's: it has the annotator and
    the time of the later one."""

    value: Any
    annotator: str
    at: float
    answers: int
    disagree: bool
    kind: Literal["label", "skip"] = "label"


@dataclass(frozen=True)
class RoleCounts:
    samples: int = 0
    labelled: int = 0
    skipped: int = 0
    leased: int = 0
    gone: int = 0

    @property
    def free(self) -> int:
        """Samples that nobody has answered or holds."""
        return self.samples - self.labelled - self.skipped - self.leased - self.gone


@dataclass(frozen=True)
class Counts:
    """How far a campaign is. A gone or leased sample with an answer counts as answered. `classes`: samples by label
    (JSON text); `deciders`: by the annotator whose label counts; `disagreements`: samples whose labels differ; `said`:
    labels that stand, by annotator, counted or not."""

    roles: Mapping[Role, RoleCounts]
    classes: Mapping[str, int]
    deciders: Mapping[str, int]
    disagreements: int
    answers: int
    queries: int
    said: Mapping[str, int]

    def _sum(self, name: str) -> int:
        return sum(getattr(part, name) for part in self.roles.values())

    @property
    def samples(self) -> int:
        return self._sum("samples")

    @property
    def labelled(self) -> int:
        return self._sum("labelled")

    @property
    def skipped(self) -> int:
        return self._sum("skipped")

    @property
    def leased(self) -> int:
        return self._sum("leased")

    @property
    def gone(self) -> int:
        return self._sum("gone")

    @property
    def free(self) -> int:
        return self._sum("free")


@dataclass(frozen=True)
class Ranked:
    """A sample the model wants to ask about, by row."""

    row: int
    score: float
    why: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Measure:
    """A figure about a model with its interval, and the number of samples it rests on."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    n: int | None = None


@dataclass(frozen=True)
class StoredModel:
    """`seen` is the number of the last answer it was trained with; weights are fetched apart (`Store.weights`)."""

    number: int
    at: float
    state: ModelState
    seen: int
    labels: int
    report: Mapping[str, Any]


@dataclass(frozen=True)
class Event:
    number: int
    at: float
    kind: str
    detail: Mapping[str, Any]
