"""Request bodies, strictly validated, and the shape of every response."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints
from pydantic_core import PydanticCustomError

from ally.types import find_text_fault


def _check_text(text: str) -> str:
    fault = find_text_fault(text)
    if fault is not None:
        raise ValueError(f"the text {fault}")
    return text


Text: TypeAlias = Annotated[str, AfterValidator(_check_text)]
LabelValue: TypeAlias = bool | int | float | str
ClassName: TypeAlias = Annotated[Text, StringConstraints(max_length=1000)]
SentLabel: TypeAlias = bool | int | float | ClassName
STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Characters that steer a terminal, end a line or turn the direction of what follows."""


def check_plain(value: str) -> str:
    if not value.strip() or STEERING.search(value):
        raise PydanticCustomError("plain_text", "a name has letters, and no control characters or line ends")
    return value


Id: TypeAlias = Annotated[Text, StringConstraints(min_length=1, max_length=1000)]
Key: TypeAlias = Annotated[Text, StringConstraints(min_length=1, max_length=200)]
Number: TypeAlias = Annotated[int, Field(ge=1, le=2**62)]
AT_ONCE = 200


class Body(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class NewQuery(Body):
    key: Key
    n: Annotated[int, Field(ge=1, le=AT_ONCE)] = 10


class Release(Body):
    only: Annotated[list[Id], Field(max_length=AT_ONCE)] | None = None


class SentAnswer(Body):
    """A label, or a skip. `expects` is the number of your own answer to this sample that you saw, or null if you saw
    none; leave it out to answer whatever is on record."""

    id: Id
    key: Key
    label: SentLabel | None = None
    skip: bool = False
    query: Number | None = None
    expects: Number | None = None


class SentAnswers(Body):
    answers: Annotated[list[SentAnswer], Field(min_length=1, max_length=AT_ONCE)]


class Undo(Body):
    key: Key
    number: Number | None = None


class NewNote(Body):
    id: Id
    key: Key
    text: Annotated[Text, StringConstraints(max_length=2000)]


class Secret(Body):
    secret: Annotated[str, StringConstraints(min_length=1, max_length=200)]


class NewLink(Body):
    annotator: Annotated[Text, StringConstraints(max_length=100), AfterValidator(check_plain)]


class EndLink(Body):
    annotator: Annotated[Text, StringConstraints(min_length=1, max_length=200)]


class Changes(Body):
    """Settings that the owner may change here."""

    classes: (
        Annotated[list[ClassName | Annotated[int, Field(ge=-(2**62), le=2**62)]], Field(max_length=5000)] | None
    ) = None
    budget: Annotated[int, Field(ge=1, le=10**9)] | None = None


class Train(Body):
    pass


class Class(BaseModel):
    label: LabelValue
    text: str
    """How it reads."""


class Me(BaseModel):
    annotator: str
    role: Literal["annotator", "owner"]


class Range(BaseModel):
    """Of the numbers told so far: the least, the quartiles and the largest."""

    least: float
    low: float
    middle: float
    high: float
    most: float


class CampaignInfo(BaseModel):
    name: str
    identity: str
    """Distinguishes campaigns with the same name: a browser keeps unsent answers for this one only."""
    task: Literal["classification", "regression"]
    kind: str
    widget: Literal["image", "text", "card"]
    """How a sample is shown: a picture, a text, or its columns."""
    classes: list[Class]
    open_classes: bool
    """Whether any label is a class."""
    numbers: Range | None
    labels: int
    samples: int
    budget: int | None
    opinions: int
    lease_seconds: float
    shared: bool
    me: Me


class Guess(BaseModel):
    label: LabelValue
    text: str
    probability: float | None
    beyond: bool
    """Whether a number lies beyond all that people have told."""


class Why(BaseModel):
    """Why a sample was asked about, in a line, and the labelled sample that is most like it."""

    sentence: str
    score: float | None
    nearest: list[str]


class AskedLine(BaseModel):
    id: str
    kind: Literal["active", "random", "evaluate", "validate"]
    guess: Guess | None
    """Never given for held-out samples."""
    why: Why


class QueryInfo(BaseModel):
    query: int | None
    """Its number; null where nothing is left to ask about, and `ended` says why."""
    until: float
    lease_seconds: float
    model: int | None
    samples: list[AskedLine]
    ended: str | None = None


class Released(BaseModel):
    released: int


class ImageInfo(BaseModel):
    width: int
    height: int
    stamp: str
    """Changes with the file: pass it on as `v` and the image may be kept."""


class SampleContent(BaseModel):
    id: str
    kind: str
    image: ImageInfo | None
    text: str | None
    cut: int
    columns: dict[str, Any]
    problem: str | None
    """Why there is nothing to see."""


class LabelOf(BaseModel):
    id: str
    text: str | None
    """How its labels read, the different ones; null if it has none."""


class Outcome(BaseModel):
    """What became of one answer: recorded (with what stood before), conflict (with what stands now), or refused."""

    key: str
    state: Literal["recorded", "conflict", "refused"]
    number: int | None = None
    repeated: bool = False
    before: LabelValue | None = None
    before_by: str | None = None
    detail: str | None = None


class Outcomes(BaseModel):
    outcomes: list[Outcome]


class GivenAnswer(BaseModel):
    number: int
    id: str
    label: LabelValue | None
    text: str
    skip: bool
    at: float
    note: str | None = None


class GivenAnswers(BaseModel):
    answers: list[GivenAnswer]


class UndoneAnswer(BaseModel):
    id: str
    label: LabelValue | None
    skip: bool
    number: int


class Noted(BaseModel):
    id: str
    text: str


class PersonLine(BaseModel):
    annotator: str
    answers: int
    per_minute: float | None


class PairLine(BaseModel):
    one: str
    other: str
    samples: int
    same: float
    kappa: float | None


class CurvePoint(BaseModel):
    number: int
    labels: int
    value: float | None
    low: float | None
    high: float | None
    constant: float | None
    """What always answering the most common class, or the mean, scores."""
    evaluated_on: int
    by: Literal["held-out", "cv"]


class Expected(BaseModel):
    expected: float
    low: float
    high: float


class AdviceLine(BaseModel):
    stop: bool
    sentence: str
    reasons: list[str]
    gain: Expected | None


class TrainingInfo(BaseModel):
    state: Literal["none", "running", "done", "failed", "interrupted"]
    error: str | None
    waiting: int
    batch: int


class Progress(BaseModel):
    labels: int
    budget: int | None
    samples: int
    free: int
    skipped: int
    gone: int
    evaluate: list[int]
    metric: str
    curve: list[CurvePoint]
    advice: AdviceLine
    comparison: str | None
    classes: dict[str, int]
    people: list[PersonLine]
    per_minute: float | None
    minutes_left: float | None
    agreements: list[PairLine]
    disagreements: int
    training: TrainingInfo
    notes: list[str]


class SuspectLine(BaseModel):
    id: str
    label: LabelValue | None
    text: str
    annotator: str
    predicted: LabelValue | None
    predicted_text: str | None
    probability: float | None
    dual: float


class Opinion(BaseModel):
    annotator: str
    label: LabelValue | None
    text: str


class DisagreementLine(BaseModel):
    id: str
    opinions: list[Opinion]


class Remark(BaseModel):
    id: str
    annotator: str
    text: str


class Review(BaseModel):
    suspects: list[SuspectLine]
    disagreements: list[DisagreementLine]
    notes: list[Remark]


class MapPoints(BaseModel):
    """One entry per sample in each list. `predicted` and `labels` are positions among `classes`, or numbers."""

    model: int | None
    classes: list[str]
    ids: list[str]
    x: list[float]
    y: list[float]
    predicted: list[float | None]
    probability: list[float | None]
    labels: list[float | None]
    states: list[Literal["free", "asked", "labelled", "skipped"]]


class AlikeClass(BaseModel):
    text: str
    samples: int
    """Without an answer, that the model takes for this class."""


class AlikeSample(BaseModel):
    id: str
    probability: float


class AlikeSamples(BaseModel):
    """Samples that the model takes for the class with the text `predicted`, the surest first, then the nearest to it;
    empty before the first training, and for numbers."""

    model: int | None
    classes: list[AlikeClass]
    predicted: str | None
    samples: list[AlikeSample]


class PulseInfo(BaseModel):
    """What the stream of events says: sent as JSON under the event ``pulse`` whenever it changes."""

    last_answer: int
    labels: int
    model: int | None
    training: bool
    stage: str | None
    """What the training is doing."""
    share: float | None
    """How far it is; before the first training has ended, how far its stage is."""


class LinkLine(BaseModel):
    annotator: str
    role: Literal["annotator", "owner"]
    state: Literal["link", "in"]


class Links(BaseModel):
    links: list[LinkLine]


class Link(BaseModel):
    annotator: str
    secret: str


class Started(BaseModel):
    started: bool
