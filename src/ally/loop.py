"""Ask and tell in memory: the primitive shared by `query`, the benchmark and the campaign."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, Unpack

import numpy as np
import pandas as pd
import torch

from ally.constrained.diagnostics import find_ties
from ally.data import (
    Ids,
    LabelCode,
    Pool,
    ReadOptions,
    State,
    Vectors,
    chunks,
    is_lazy_dataset,
    open_pool,
    open_vectors,
    parse_labels,
)
from ally.data.aligning import align_rows, labels_by_row
from ally.data.given_labels import agree_labels
from ally.errors import AllyError, AnswerError, InputError, LabelError
from ally.execution.engine import Engine, LocalEngine
from ally.execution.memory import Scratch
from ally.execution.ray import ensure_room
from ally.execution.resolve import resolve_engine
from ally.explain import why
from ally.hygiene import EqualInputs, Hygiene, choose, find_copies, fingerprints, put_last
from ally.learning.auto_objective import objective_of
from ally.learning.learner import Fitted, Learner
from ally.learning.objectives import Objective
from ally.learning.pool_learner import PoolLearner, blind
from ally.learning.resolve import ensure_reads, is_own_network, learner_of, suit_method, takes_objects
from ally.learning.snapshot import Snapshot
from ally.learning.trained import Trained
from ally.learning.training import Training
from ally.rng import streams
from ally.scoring import Constant, check_scores
from ally.selection.base import Limits, Selection, check_selection
from ally.strategies import Strategy, resolve_strategy
from ally.types import NULL, SKIP, AnyArray, FloatArray, IntArray, Progress, Task

FEW_POSITIVE_DUALS = 0.1


@dataclass(frozen=True, eq=False)
class Query:
    """The answer to "what should be labelled next?"."""

    id: int
    """Its number: 1, 2, …"""
    ids: AnyArray
    """(n,) your ids, or row numbers of X, in the order they were picked."""
    scores: FloatArray
    """(n,) the value each was picked for."""
    why: pd.DataFrame = field(repr=False)
    """One row per id; the columns are described in `ally.explain.why`."""
    notes: tuple[str, ...] = ()
    """Decisions made and other things worth knowing, as sentences."""
    report: dict[str, Any] = field(default_factory=dict, repr=False)
    """How many candidates the strategy looked at and how many were set aside, the fit's report, the rank quality of the
    dual head, the temperature of calibrated probabilities, seconds spent."""

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Answered:
    """The result of a `tell`, with the ids of the query that are still unanswered."""

    labelled: int
    skipped: int
    waiting: tuple[Any, ...]


class Loop:
    """A pool, a learner and a strategy. `ask` hands out samples, `tell` takes the answers; nothing else changes the
    pool.

    The arguments are those of `ally.query`, and:

    Args:
        training: training settings for networks, instead of those of `model`.

    Unlike in `ally.query`, `hygiene` defaults to None: every free sample is a candidate.
    """

    def __init__(
        self,
        X: Any,
        y: Any = None,
        *,
        strategy: str | Strategy = "ally",
        objective: str | Objective | None = None,
        model: Any = "auto",
        task: Task | Literal["auto"] = "auto",
        classes: Any = None,
        ids: Any = None,
        candidates: Any = None,
        embeddings: Any = None,
        hygiene: Hygiene | None = None,
        missing_label: Any = NULL,
        random_state: Any = None,
        device: str = "auto",
        chunk_size: int | None = None,
        memory_budget: int | None = None,
        validation: tuple[Any, Any] | None = None,
        training: Training | None = None,
        progress: Progress | None = None,
        channels: Literal["auto", "first", "last"] = "auto",
        engine: str | Engine = "local",
        encoder: Any = "auto",
        **reading: Unpack[ReadOptions],
    ) -> None:
        self._strategy = resolve_strategy(strategy)
        if is_lazy_dataset(X):
            ensure_room("the blocks of the Ray Dataset")
        y, candidates, embeddings, validation, aligned = align_rows(X, y, candidates, embeddings, validation)
        if encoder in (None, "auto", "none"):
            ensure_reads(model, X)
        pool = open_pool(
            X,
            ids=ids,
            labelled=y is not None,
            objects=takes_objects(model),
            fills=not is_own_network(model),
            encoder=encoder,
            channels=channels,
            missing_label=missing_label,
            progress=progress,
            **reading,
        )
        source = pool.source
        self._ids = Ids(len(source), pool.ids)
        if y is not None and pool.labels is not None:
            aligned = (*aligned, "y= holds the labels; those in X are not used")
        if y is None and pool.labels is not None:
            y = agree_labels(pool.labels, automatic=task == "auto" and classes is None)
        y = labels_by_row(y, self._ids)
        if isinstance(validation, (tuple, list)) and len(validation) == 2:
            validation = (pool.open_other(validation[0], "validation"), validation[1])
        parsed = parse_labels(y, len(source), task=task, classes=classes, missing_label=missing_label)
        if parsed.known.any() or task != "auto" or classes is not None:
            self._strategy.ensure_task(
                parsed.code.task, f"strategy {strategy!r}" if isinstance(strategy, str) else "this strategy"
            )
        self._pool = Pool(parsed.labels)
        self._code = parsed.code
        self._task_notes = parsed.notes
        self._declared = classes is not None or task == "regression"
        self._decided = classes is not None or task != "auto"
        if candidates is not None:
            self._pool.restrict(_candidate_rows(candidates, self._ids))
        learner, notes = learner_of(model, source.shape, training, Training(device=device))
        learner, method_notes = suit_method(
            learner, source.shape, self._strategy.needs_network, self._strategy.patience
        )
        next(chunks(1, chunk_size))
        self._streams = streams(random_state)
        self._engine = resolve_engine(engine)
        self._source, self._open_other = source, pool.open_other
        self._rows = np.sort(np.concatenate([self._pool.rows(state) for state in (State.FREE, State.LABELLED)]))
        self._chunk_size = chunk_size
        self._progress = progress
        self._geometry = _resolve_geometry(embeddings, len(source))
        self._hygiene = _resolve_hygiene(hygiene)
        self._learner = PoolLearner(
            source=source,
            rows=self._rows,
            learner=learner,
            objective=objective_of(self._strategy.objective if objective is None else objective),
            streams=self._streams.child("training"),
            validation=validation,
            chunk_size=chunk_size,
            progress=progress,
            geometry=self._geometry,
            compares_inputs=self._strategy.compares_inputs,
            engine=self._engine,
            mark=None if self._hygiene.duplicates == "keep" else fingerprints,
        )
        self._copies: EqualInputs | None = None
        self._budget = memory_budget
        self._open: list[IntArray] = []
        self._fits: list[Fitted] = []
        self._notes = [*aligned, *pool.notes, *notes, *method_notes]
        if self._decided or len(self.labelled):
            self._ensure_supported()

    @property
    def objective(self) -> Objective:
        """What the learner is trained by. ``"auto"`` is chosen when there are labels, and is then what was chosen."""
        if not len(self.labelled):
            return self._learner.objective
        return self._learner.trained_by(self._pool, self._code)

    @property
    def labelled(self) -> AnyArray:
        """Ids that have a label."""
        return self._ids.of(self._pool.rows(State.LABELLED))

    def known_labels(self) -> set[Any]:
        """The different labels so far."""
        return set(self._code.decode(self._pool.labels(self._pool.rows(State.LABELLED))).tolist())

    @property
    def free(self) -> int:
        """How many samples can still be asked about."""
        return len(self._pool.rows(State.FREE))

    @property
    def learner(self) -> Learner:
        """The current learner, prepared for the pool and settled for the current labels. Pass it as ``model=`` to
        another loop over the same pool to save the passes it took."""
        return self._learner.settled(self._pool, self._code) if len(self.labelled) else self._learner.prepared

    def fit(self) -> Fitted:
        """The learner trained on everything labelled so far; trained once per labelled set."""
        return self._members(1)[0]

    def trained(self) -> Trained:
        """The fit as a model that can be written to a file, if it can be rebuilt from one."""
        return Trained(self.fit())

    def predict(self, X: Any) -> AnyArray:
        """Labels or targets predicted for other samples."""
        source = self._open_other(X, "X")
        return self._code.decode(self._learner.predict(self.fit(), source).predictions.numpy())

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities (n, C) of the classes, in the order of `classes`, for other samples."""
        found = self._learner.predict(self.fit(), self._open_other(X, "X")).probabilities
        if found is None:
            raise InputError("the task is regression, and numbers have no probabilities; use predict")
        return np.asarray(found.double().numpy())

    def ask(self, n: int) -> Query:
        """Pick exactly n free samples and mark them pending."""
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
            raise InputError.about("n", n, "is not a positive whole number; ask for at least one sample")
        self._pool.ensure_free(int(n))
        started = time.perf_counter()
        notes = [*self._task_notes, *self._notes]
        report: dict[str, Any] = {"labelled": len(self.labelled)}
        round_streams = self._streams.child(f"round {len(self._open)}")
        with Scratch(self._budget) as scratch:
            with self._naming_samples():
                rows, recalled, copies = self._distinct(int(n))
            strategy, snapshot = self._look(rows, scratch, report, notes)
            scored = strategy.score(snapshot, round_streams)
            check_scores(scored, snapshot, strategy.score)
            notes.extend(scored.notes)

            limits = Limits(scratch.budget, LocalEngine() if snapshot.candidates.home is None else self._engine)

            def pick(part: Snapshot, scores: torch.Tensor, count: int) -> Selection:
                selection = strategy.select(part, scores, count, round_streams, limits)
                check_selection(selection, part, count, strategy.select)
                notes.extend(note for note in selection.notes if note not in notes)
                return selection

            met = self._met(snapshot, scratch)
            selection, aside = choose(
                self._hygiene, snapshot, scored.scores, int(n), pick, met, round_streams, scratch, scored.bound
            )
            selection, aside = (
                put_last(selection, recalled),
                replace(aside, exact=copies, recalled=aside.recalled + len(recalled)),
            )
            frame = why(snapshot, scored, selection, self._ids, self._code)
        notes += aside.notes
        report.update(
            scored.report, candidates=len(rows), set_aside=asdict(aside), seconds=time.perf_counter() - started
        )
        return Query(
            self._lend(selection.rows), self._ids.of(selection.rows), selection.values, frame, tuple(notes), report
        )

    def tell(self, query: int | Query, answers: Mapping[Any, Any]) -> Answered:
        """Take labels or `ally.SKIP` by id, for all or part of a query, given as itself or as its id: all answers or
        none.

        Repeating an answer changes nothing. Unanswered samples stay pending until told or released. A skipped sample
        may still be labelled; a label is never replaced.
        """
        number = self._number(query)
        if not isinstance(answers, Mapping):
            raise AnswerError(
                f"answers is a {type(answers).__name__}; pass a mapping from id to label, such as {{id: 'cat'}}"
            )
        rows = self._ids.rows(answers)
        self._ensure_asked(rows, number)
        labels = list(answers.values())
        code, notes = self._code_for([label for label in labels if label is not SKIP])
        values = [None if label is SKIP else code.encode(label) for label in labels]
        for row, value in zip(rows.tolist(), values, strict=True):
            self._ensure_not_replaced(row, value)
        changed = False
        for row, value in zip(rows.tolist(), values, strict=True):
            if value is None:
                self._pool.ignore(row)
            else:
                changed |= self._pool.state(row) is not State.LABELLED
                self._pool.label(row, value)
        self._code, self._task_notes = code, notes
        if changed:
            self._fits = []
        skipped = values.count(None)
        return Answered(len(values) - skipped, skipped, tuple(self._ids.of(self._pool.held(number)).tolist()))

    def reopen(self, ids: Any) -> int:
        """Mark ids pending that an earlier process asked about, instead of asking; return their query's id.

        After the same queries and answers in the same order, the next query is the one that process would have asked.
        """
        rows = self._ids.rows(list(ids))
        if not len(rows):
            raise InputError("a query without ids cannot be reopened; pass the ids that were asked about")
        return self._lend(rows)

    def release(self, query: int | Query) -> int:
        """Give up on a query: its unanswered samples become free again. Returns how many there were."""
        released = self._pool.release(self._number(query))
        if any("unlabelled" in fit.duals for fit in self._fits):
            self._fits = []
        return released

    def _lend(self, rows: IntArray) -> int:
        """A new query of free rows; its number."""
        number = len(self._open) + 1
        self._pool.lend(rows, number)
        self._open.append(rows)
        return number

    def _ensure_supported(self) -> None:
        strategy = self._strategy
        read = [readout for readout in strategy.readouts if not getattr(readout, "optional", False)]
        needs = (*strategy.needs, *(["readouts"] if read else [])) if strategy.trains else ()
        self._learner.ensure_supports(self._code.task, needs)

    def _members(self, count: int) -> list[Fitted]:
        """Learners trained on everything labelled so far, differing in their random streams; trained once per labelled
        set."""
        self._ensure_supported()
        while len(self._fits) < count:
            self._fits.append(self._learner.fit(self._pool, self._code, len(self._fits)))
        return self._fits[:count]

    def _distinct(self, n: int) -> tuple[IntArray, IntArray, int]:
        """The free rows to look at, without copies; the copies used anyway because too few others are left; how many
        copies there are."""
        free = self._pool.rows(State.FREE)
        if self._hygiene.duplicates == "keep":
            return free, free[:0], 0
        if self._copies is None:
            marks = self._learner.marks() if self._strategy.trains else None
            self._copies = find_copies(self._source, self._rows, self._chunk_size, self._progress, marks=marks)
        distinct, copies = self._copies.collapse(free)
        recalled = copies[: max(0, n - len(distinct))]
        return np.sort(np.concatenate([distinct, recalled])), recalled, len(copies)

    def _met(self, snapshot: Snapshot, scratch: Scratch) -> tuple[torch.Tensor, ...]:
        """Points of labelled, pending and skipped samples, if picks must keep their distance from them."""
        if self._hygiene.duplicates != "near":
            return ()
        fit = self._fits[0] if self._strategy.trains and len(self.labelled) else None
        others = np.setdiff1d(
            self._rows, np.concatenate([self._pool.rows(state) for state in (State.FREE, State.LABELLED)])
        )
        return snapshot.labelled.points, self._learner.points(fit, others, scratch)

    def _look(
        self, rows: IntArray, scratch: Scratch, report: dict[str, Any], notes: list[str]
    ) -> tuple[Strategy, Snapshot]:
        """The strategy that can be used now, and its snapshot; `rows` are the candidates."""
        if not self._strategy.trains:
            if self._hygiene.compares:
                with self._naming_samples():
                    return self._strategy, self._learner.untrained(self._pool, self._code, rows, scratch)
            return self._strategy, blind(self._pool, self._code, rows)
        if not len(self.labelled):
            cold = self._strategy if self._strategy.covers else Strategy(Constant(), self._strategy.first)
            space = "space of the given embeddings" if isinstance(self._geometry, Vectors) else "input space"
            notes.append(f"there are no labels yet: the first batch covers the {space} ({type(cold.select).__name__})")
            with self._naming_samples():
                return cold, self._learner.untrained(self._pool, self._code, rows, scratch)
        self._ensure_supported()
        with self._naming_samples():
            self._learner.marks()  # the first pass over the pool; fits may look at other samples as well
        fit = self.fit()
        report["fit"] = fit.report
        notes.extend(fit.report.notes)
        share = fit.report.positive_duals
        if share is not None and share < FEW_POSITIVE_DUALS:
            notes.append(
                f"only {share:.0%} of the duals are positive: the constraints are loose; lower eps or use eps='auto'"
            )
        duals = fit.duals.get("labelled")
        if duals is not None:
            notes.extend(find_ties(duals.numpy()))
        readouts = self._strategy.readouts
        size = 1 if fit.spreads else max([readout.members for readout in readouts], default=1)
        members = self._members(size)[1:]
        seed = self._streams.child(f"round {len(self._open)}").seed("readouts")
        with self._naming_samples():
            snapshot = self._learner.snapshot(
                fit, self._pool, rows, scratch, members=members, readouts=readouts, seed=seed
            )
        if self._strategy.calibrates:
            snapshot = replace(snapshot, held_out=self._learner.held_out(fit, self._pool, self._code))
        return self._strategy, snapshot

    @contextmanager
    def _naming_samples(self) -> Iterator[None]:
        """Errors about a row of the pool say its id, if the samples have ids of their own."""
        try:
            yield
        except AllyError as error:
            if error.sample is not None and self._ids.given:
                error.args = (f"{error} (the id of sample {error.sample} is {self._ids.one(error.sample)!r})",)
            raise

    def _number(self, query: Any) -> int:
        """The number of a query that was asked."""
        number = query.id if isinstance(query, Query) else query
        if isinstance(number, str) and number.startswith("q") and number[1:].isdecimal():
            warnings.warn(f"ids of queries are numbers: {number[1:]}, not {number!r}", DeprecationWarning, stacklevel=3)
            number = int(number[1:])
        if number not in range(1, len(self._open) + 1):
            asked = f"1 to {len(self._open)}" if self._open else "none"
            raise AnswerError(f"query {number!r} was never asked; queries so far: {asked}")
        return int(number)

    def _ensure_asked(self, rows: IntArray, number: int) -> None:
        """The rows belong to this query and have not been released since."""
        stray = np.setdiff1d(rows, self._open[number - 1])
        if len(stray):
            raise AnswerError(
                f"id {self._ids.of(stray).tolist()[0]!r} is not part of query {number}; answer its ids only"
            )
        open_rows = [row for row in rows.tolist() if self._pool.state(row) in (State.FREE, State.PENDING)]
        gone = np.setdiff1d(np.asarray(open_rows, dtype=np.int64), self._pool.held(number))
        if len(gone):
            name = self._ids.of(gone).tolist()[0]
            raise AnswerError(f"id {name!r} was released from query {number}; ask again and answer the new query")

    def _ensure_not_replaced(self, row: int, value: float | None) -> None:
        """An answer never replaces a different label."""
        if self._pool.state(row) is State.LABELLED:
            before = self._pool.labels(np.asarray([row]))
            if value != before[0]:
                name, label = self._ids.of(np.asarray([row])).tolist()[0], self._code.decode(before).tolist()[0]
                raise AnswerError(
                    f"id {name!r} is already labelled {label!r}, and the new answer differs; answers are not replaced"
                )

    def _code_for(self, labels: list[Any]) -> tuple[LabelCode, tuple[str, ...]]:
        """The label code with its notes: set by the first labels, extended by new classes if none were declared."""
        if not labels or self._declared:
            return self._code, self._task_notes
        if not self._decided and not len(self.labelled):
            parsed = parse_labels(labels, len(labels))
            if not parsed.known.all():
                raise LabelError("an answer is None or NaN; give a label, or ally.SKIP to leave the sample out")
            self._strategy.ensure_task(parsed.code.task)
            return parsed.code, parsed.notes
        return (self._code if self._code.classes is None else self._code.extended(labels)), self._task_notes


def _resolve_hygiene(hygiene: Any) -> Hygiene:
    if hygiene is None:
        return Hygiene(duplicates="keep")
    if not isinstance(hygiene, Hygiene):
        raise InputError.about("hygiene", hygiene, "is not a setting; pass ally.Hygiene(...), or None for no hygiene")
    return hygiene


def _resolve_geometry(embeddings: Any, samples: int) -> Vectors | Literal["inputs"] | None:
    if embeddings is None:
        return None
    if isinstance(embeddings, str):
        if embeddings != "inputs":
            raise InputError.about(
                "embeddings", embeddings, "is not known; pass an array of one vector per sample, or 'inputs'"
            )
        return "inputs"
    return open_vectors(embeddings, samples)


def _candidate_rows(candidates: Any, ids: Ids) -> IntArray:
    """Rows from a mask over all samples, or from ids."""
    if not hasattr(candidates, "__iter__") or isinstance(candidates, str):
        raise InputError.about("candidates", candidates, "; pass a list of ids, or a mask over all samples")
    listed = list(candidates)
    if listed and all(isinstance(value, (bool, np.bool_)) for value in listed):
        if len(listed) != len(ids):
            raise InputError(
                f"the candidates mask has shape ({len(listed)},) and the pool {len(ids)} samples; pass one value per "
                "sample"
            )
        return np.flatnonzero(listed).astype(np.int64)
    return ids.rows(listed)
