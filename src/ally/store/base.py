"""The contract of a store.

A store holds one labelling campaign: its samples, who was asked what, every answer ever given, the models and their
rankings. Implementations of `Store` promise the following; `ally.testing.store` checks it, for our backends and yours.

**Samples.** A sample has an id (text, unique, the caller's) and a row (0, 1, 2 … in the order of arrival). Neither ever
changes and none is removed; a sample whose data vanished is marked gone. Its role is "pool", "evaluate" or "validate".
A label that comes with a sample is recorded as an answer of the annotator `labelled_by`, with a new sample or where
nobody has answered; it never overrules anybody.

**A campaign is created completely**, with its settings, samples, their labels and the samples reserved for a role, or
it does not exist. Samples are reserved at random among all of the pool, labelled or not. Settings, and how many to
reserve, may be functions, called when the last sample has been read.

**Answers are only ever added.** An answer is a label, a skip, or an undo of an earlier answer. Answers are numbered 1,
2, 3 … without gaps in the order in which they became visible, so a reader who has seen number k and asks for what came
since misses nothing. The current label is derived: of each annotator the last answer to a sample counts that was not
undone; among annotators the last one ("last"), or the label most of them gave ("majority"; of equals the one given
last; skips do not vote), or of labels that are numbers the middle one ("median"; of an even number the mean of the two
in the middle, with annotator and time of the later; skips and other labels do not vote, but where no label is a number
the last label counts).

**An acknowledged call is on disk.** When a writing call has returned, its effect survives the end of the process and of
the machine. A call that raised has written nothing. The exception is `StoreUnreachable`: the call may or may not be on
record, and should be retried.

**Every call takes effect once.** `ask`, `answer` and `undo` take a key, any text that the annotator's program uses
once. A retry with the same key returns the same query or receipt, and changes nothing except the leases of an `ask`. A
key that comes with other answers is refused. Without a key, an answer equal to the last one of its sample (same
annotator, query and value) changes nothing either; this is enough for an immediate retry, but not after a later
answer. An annotator who repeats an answer after somebody else gave another has said something new: it is recorded.

**Calls that arrive together** may share one flush (`answer_together`, `together`); each of them is still a call of its
own. A call may say which answer of its annotator it expects to stand; if another does, it is refused with what is on
record.

**All or nothing.** A call with one bad answer (unknown id, a sample its query did not ask about, a value not JSON) is
refused whole. A call may pass on what several people said (`NewAnswer.annotator`), in the order in which it is to
count; what equals that person's standing answer changes nothing, unless it is said `again`.

**Leases.** `ask` hands out samples that nobody answered and nobody holds, and leases them until `now + lease_seconds`.
No two live leases are for one sample. A lease is a promise not to hand out, not a right to answer: an answer after its
end is taken like any other. Samples are handed out in the order of the newest good model's ranking, then in the
campaign's random order, which its seed and the ids fix. kind="random" uses the random order alone; "evaluate" and
"validate" hand out samples of that role, and nothing else does. A query may be mixed: ``first={"evaluate": 2, "random":
1}`` takes up to so many of those kinds, in that order and never more than n in all; the rest, and what those kinds
could not give, is of `kind`. `first` may be a function of the number that the query gets; it is called in the same
transaction. Each sample of a query says which kind it was asked as, and none is in a query twice. A
key that comes again gives its query whatever `first` says. `opinions` above 1 hands a sample to that many different
annotators, one after the other.

**A model is used once it is complete.** `models.put` may take long and never blocks asking. Until it returns, the
previous model is used; if it is interrupted, that model stays in use.

**Time** is an argument (seconds since 1970). A store has no clock. An answer that was given before the call (an import)
says so by `at`. Numbers define the order, not times. Times do not make two calls or answers different either, so a
call repeated with other times is still the same call.

**Processes and threads.** Several processes may open one campaign, each by itself (after a fork, not before). A store
can be used from several threads. Waiting for others is the store's business: a call waits up to a minute and then
raises `StoreBusy`.

**One at a time.** `exclusive(name)` is True for one holder at a time among all processes and threads that use the
campaign, twice in one thread included; others get False, after waiting `seconds`. It ends when its holder leaves or
dies, even by kill -9, and never later, whatever the holder's children do. It is for long work that should not be done
twice, such as training. It blocks no other call: no call needs it, and work done under it must be harmless if done
twice, since a server that restarts forgets who held what.

**Large reads** come in chunks: `samples.all`, `answers.all` and `models.ranking` are iterators that hold no lock
between chunks. `answers.decided`, `answers.labels` and `answers.opinions` are the state after the answer that was last
when they were called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, TypeVar

from ally.errors import InputError
from ally.store.values import (
    Added,
    AnswerCall,
    AskKind,
    Counts,
    Event,
    First,
    Label,
    Measure,
    NewAnswer,
    NewSample,
    Policy,
    Ranked,
    Receipt,
    Recorded,
    Role,
    StoredAnswer,
    StoredModel,
    StoredQuery,
    StoredSample,
)

T = TypeVar("T")


class StoreSamples(Protocol):
    """``store.samples``: the samples of a campaign. See the contract above."""

    def add(self, new: Iterable[NewSample], now: float, labelled_by: str = "source") -> Added:
        """Adds the samples with a new id, and labels for samples without an answer. Safe to call again after an
        interruption."""

    def mark_gone(self, ids: Sequence[str], gone: bool = True) -> int:
        """Samples that are gone are not handed out; with ``gone=False`` they are back. How many changed. Their answers
        stay."""

    def reserve(self, role: Role, n: int, now: float) -> list[str]:
        """Moves n samples of the pool that nobody was asked about to a role, in the random order. Before the first
        answer that is a random sample of the pool; later it is one of what is left."""

    def ids(self, rows: Sequence[int]) -> list[str]: ...

    def rows(self, ids: Sequence[str]) -> list[int]: ...

    def all(self, role: Role | None = None, after_row: int = -1) -> Iterator[StoredSample]:
        """In the order of rows."""

    def size(self) -> int:
        """How many samples there are, gone ones too."""


class StoreAnswers(Protocol):
    """``store.answers``: what was answered, and what follows from it. See the contract above."""

    def all(self, since: int = 0) -> Iterator[StoredAnswer]:
        """All answers with a higher number, in order, including undone answers and undos."""

    def last_of(self, annotator: str, n: int) -> list[StoredAnswer]:
        """The newest answers of one annotator that count, the last first; of each sample the last."""

    def last_number(self) -> int:
        """The number of the last answer, undos included; 0 before the first."""

    def annotators(self) -> dict[str, int]:
        """By annotator, for how many samples an answer of theirs counts; the highest first, zeros left out."""

    def opinions(self, rows: Sequence[int] | None = None, until: int | None = None) -> dict[int, list[StoredAnswer]]:
        """By row, for all samples or these: the current answer of each annotator, in the order given. Rows without an
        answer are left out. With `until`, as it was after that answer."""

    def decided(self, policy: Policy = "last") -> dict[int, Label]:
        """By row, the answer that counts: a label or a skip."""

    def labels(self, policy: Policy = "last") -> dict[int, Label]:
        """`decided`, labels only."""

    def values(self, since: int = 0, *, standing: bool = False) -> tuple[list[Any], int]:
        """The different labels among answers with a higher number, in the order given, and the last number. With
        `standing`, without undone and replaced answers."""


class Models(Protocol):
    """``store.models``: the models of a campaign. See the contract above."""

    def put(
        self,
        now: float,
        *,
        seen: int,
        labels: int,
        weights: bytes | None = None,
        report: Mapping[str, Any] | None = None,
        ranking: Iterable[Ranked] = (),
        measures: Sequence[Measure] = (),
        keep_weights: int = 3,
        map: bytes | None = None,
    ) -> int:
        """Records a model trained on the answers up to number `seen`, and lets it serve; its number. Older rankings and
        maps and all but the newest weights are removed."""

    def put_failure(self, now: float, *, seen: int, labels: int, report: Mapping[str, Any]) -> int:
        """Records a training that failed; its number."""

    def newest(self) -> StoredModel | None:
        """The model that serves."""

    def all(self) -> list[StoredModel]:
        """Oldest first, failed ones too."""

    def weights(self, model: int) -> bytes | None: ...

    def map(self, model: int) -> bytes | None:
        """What was recorded with the model as a map of the pool."""

    def ranking(self, model: int) -> Iterator[Ranked]: ...

    def put_measures(self, model: int, measures: Sequence[Measure]) -> None:
        """Adds figures to a model, or replaces those of the same name."""

    def measures(self, name: str | None = None) -> list[tuple[int, Measure]]:
        """With the number of their model, oldest first."""


class Store(Protocol):
    """See the contract above."""

    @property
    def name(self) -> str:
        """Where it is, without passwords."""

    @property
    def id(self) -> str:
        """32 hexadecimal digits, drawn when the campaign was created; copies have the same. Decisions about a campaign
        are kept under it."""

    @property
    def settings(self) -> dict[str, Any]: ...

    def change_settings(self, change: Callable[[dict[str, Any]], Mapping[str, Any]]) -> None:
        """Replaces the settings by ``change(settings)``, in one transaction. `change` may be called more than once."""

    @property
    def samples(self) -> StoreSamples: ...

    @property
    def answers(self) -> StoreAnswers: ...

    @property
    def models(self) -> Models: ...

    def count(self, now: float, policy: Policy = "last") -> Counts: ...

    # Asking and answering

    def ask(
        self,
        annotator: str,
        n: int,
        now: float,
        lease_seconds: float,
        key: str | None = None,
        kind: AskKind = "active",
        *,
        first: First | None = None,
        at_most: bool = False,
        opinions: int = 1,
    ) -> StoredQuery:
        """n samples, or with `at_most` as many as there are; `PoolExhausted` if there are fewer, or none."""

    def query(self, number: int) -> StoredQuery:
        """A query on record with all its samples."""

    def waiting(self, query: int, opinions: int = 1) -> list[str]:
        """Ids of a query that its annotator has not answered and that need more opinions, in order; gone samples are
        left out."""

    def asked_as(self) -> dict[int, tuple[AskKind, int, int | None]]:
        """By row, for all that were ever asked about: kind, query and that query's model, of the first query that
        asked."""

    def release(self, query: int, only: Sequence[str] | None = None) -> int:
        """Ends the leases of a query, for all its samples or the given ones; returns how many."""

    def answer(
        self, annotator: str, now: float, answers: Sequence[NewAnswer], query: int | None = None, key: str | None = None
    ) -> Receipt: ...

    def answer_together(
        self, calls: Sequence[AnswerCall], now: float, opinions: int = 1
    ) -> list[Recorded | InputError]:
        """Several calls of `answer`, flushed once. Each takes effect or is refused by itself; what was wrong with it
        comes back in its place. One that expects something else than what stands is refused by `AnswerConflict`."""

    def undo(
        self, annotator: str, now: float, number: int | None = None, key: str | None = None
    ) -> tuple[Receipt, StoredAnswer]:
        """Undoes one answer of this annotator (default: the last that counts). Returns the receipt and the undone
        answer."""

    def log(self, now: float, kind: str, detail: Mapping[str, Any] | None = None) -> int: ...

    def events(self, since: int = 0) -> Iterator[Event]: ...

    def together(self, work: Callable[[], T]) -> T:
        """``work()`` with every call that it makes, in this thread, in one transaction: flushed once when it returns,
        and none of it on record if it raises. A call that was refused has written nothing, and `work` may go on after
        it. `work` may run more than once; nobody else can write meanwhile, so it must be short."""

    # Care

    def check(self) -> list[str]:
        """Problems with the store, in words; empty if there are none."""

    def backup(self, path: str | Path | None = None) -> Path:
        """Copies the campaign to a new SQLite file, by default a numbered one beside it."""

    def exclusive(self, name: str, seconds: float = 0.0) -> AbstractContextManager[bool]:
        """``with store.exclusive("train") as mine:``, see above. `name` is a word of letters a to z, digits and _."""

    def close(self) -> None: ...

    def __enter__(self) -> Store: ...

    def __exit__(self, *error: object) -> None: ...
