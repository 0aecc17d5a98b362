"""One simulated campaign, through the same ask and tell that users call."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ally.data import Oracle
from ally.experiment.cell import Cell, Record, Round, model_name, objective_name
from ally.experiment.trial import Trial
from ally.learning.auto import chosen_name
from ally.loop import Loop
from ally.metrics import METRICS
from ally.rng import Streams
from ally.types import AnyArray, FloatArray


def simulate(trial: Trial, cell: Cell) -> Iterator[Record]:
    """Yields a record after every training: `rounds` batches after the initial random one, so rounds + 1 records."""
    return (done.record for done in campaign(trial, cell))


def campaign(trial: Trial, cell: Cell, past: Sequence[Round] = ()) -> Iterator[Round]:
    """The same with the rows that were asked about. Given the first rounds of the cell as `past`, it resumes with the
    same results."""
    cell.ensure_fits(trial)
    streams = Streams(cell.seed)
    if cell.copies is not None:
        trial = cell.copies(trial, streams)
    if cell.test is not None:
        trial = trial.measured_on(cell.test)
    oracle = Oracle(trial.pool_labels)
    loop = begin(trial, cell, oracle, streams)
    past = [done for done in past if done.asked][: cell.rounds]
    leading = None if cell.leader is None else campaign(trial, cell.leader, past)
    for done in past:
        if cell.chooses:
            _ = loop.learner  # chosen at the same numbers of labels as before
        loop.tell(loop.reopen(done.asked), oracle.answer(done.asked))
    for number in range(len(past), cell.rounds + 1):
        began = time.perf_counter()
        fitted = loop.fit().report
        trained = time.perf_counter() - began
        chosen = chosen_name(loop.learner)
        value = trial.measure(*measured(loop, trial, cell.metric))
        bought, seconds = oracle.bought, 0.0
        asked: tuple[int, ...] = ()
        quality: float | None = None
        if number < cell.rounds and leading is not None:
            began = time.perf_counter()
            asked = next(leading).asked
            seconds = time.perf_counter() - began
            loop.tell(loop.reopen(asked), oracle.answer(asked))
        elif number < cell.rounds:
            began = time.perf_counter()
            query = loop.ask(cell.batch)
            seconds = time.perf_counter() - began
            asked = tuple(query.ids.tolist())
            quality = query.report.get("rank_quality")
            loop.tell(query.id, oracle.answer(asked))
        record = Record(
            dataset=trial.name,
            model=model_name(cell.model),
            objective=objective_name(cell.trained_by),
            setting=cell.setting,
            strategy=cell.strategy,
            seed=cell.seed,
            batch=cell.batch,
            round=number,
            labels=bought,
            validation_labels=cell.validation,
            metric=cell.metric or trial.metric,
            value=value,
            train_seconds=trained,
            query_seconds=seconds,
            protocol=cell.protocol,
            positive_duals=fitted.positive_duals,
            rank_quality=quality,
            learner=chosen,
        )
        yield Round(record, asked)


def measured(loop: Loop, trial: Trial, metric: str | None) -> tuple[AnyArray, str | None, FloatArray | None]:
    """What `Trial.measure` takes: predictions for the test set, the metric, and probabilities if it needs them."""
    if not METRICS[metric or trial.metric].probabilities:
        return loop.predict(trial.open_test()), metric, None
    probabilities = loop.predict_proba(trial.open_test())
    return np.asarray(trial.classes)[probabilities.argmax(1)], metric, probabilities


def begin(trial: Trial, cell: Cell, oracle: Oracle, streams: Streams) -> Loop:
    """The start that all strategies of a seed share: random labels to train on and, apart from them, to stop training
    by."""
    order = streams.numpy(f"start {trial.name}").permutation(trial.size)
    start, held_out, rest = np.split(order, [cell.init, cell.init + cell.validation])
    labels = np.full(trial.size, None, dtype=object)
    for row, label in oracle.answer(np.sort(start).tolist()).items():
        labels[row] = label
    validation = None
    if cell.validation:
        rows = np.sort(held_out)
        validation = trial.open_pool(rows), list(oracle.answer(rows.tolist()).values())
    return Loop(
        trial.open_pool(),
        labels,
        model=cell.model,
        strategy=cell.composition,
        objective=cell.trained_by,
        task=trial.task,
        classes=trial.classes,
        candidates=rest[: cell.candidates] if cell.candidates is not None or cell.validation else None,
        hygiene=cell.hygiene,
        random_state=streams,
        # An experiment says itself how all of its strategies are stopped (`protocol`).
        training=replace(cell.training, validation_share=cell.training.validation_share or 0.0),
        validation=validation,
    )
