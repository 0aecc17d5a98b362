"""The conformance suite of engines.

    from ally.testing.engine import check_engine
    check_engine(MyEngine())

The contract is in `ally.execution.engine`. A check that fails raises `AssertionError` and says what it found.
`check_ids` compares a strategy's batch on the engine with its batch in this process.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from ally.data import BLOCK, Source
from ally.errors import BrokenPart, InputError
from ally.execution.engine import Engine, LocalEngine
from ally.learning.learner import Examples, Fitted, Learner
from ally.learning.network import Network
from ally.learning.objectives import Objective
from ally.learning.training import Training
from ally.loop import Loop
from ally.rng import Streams
from ally.strategies import Strategy
from ally.testing.pools import blobs
from ally.types import IntArray, Task

PARTS = 5


class Counter:
    """A worker with a running total, which shows how an engine treats its workers."""

    def __init__(self, offset: int, part: int) -> None:
        self._part, self._total = part, offset

    def part(self) -> int:
        return self._part

    def add(self, number: int) -> int:
        self._total += number
        return self._total

    def add_if(self, part: int, number: int) -> int:
        if self._part == part:
            raise InputError(f"part {part} cannot add {number}")
        return self.add(number)

    def sums(self, array: np.ndarray[Any, Any], tensor: torch.Tensor) -> tuple[Any, torch.Tensor]:
        return array.sum(0) + self._part, tensor.sum(0) + self._part

    def shared(self, value: Callable[[], np.ndarray[Any, Any]]) -> float:
        return float(value()[self._part])


def _unbuildable(part: int) -> Counter:
    if part == 1:
        raise InputError("part 1 cannot be opened")
    return Counter(0, part)


def some_parts(engine: Engine) -> None:
    for rows in (0, 1, 10_000_000):
        assert engine.parts(rows) >= 1, f"parts({rows}) is {engine.parts(rows)}"


def results_come_in_the_order_of_the_parts(engine: Engine) -> None:
    with engine.crew(range(PARTS), partial(Counter, 0)) as crew:
        assert len(crew) == PARTS
        assert crew.each("part") == list(range(PARTS))
        assert [crew.one(number, "part") for number in (3, 0, 4)] == [3, 0, 4]


def workers_keep_their_state(engine: Engine) -> None:
    with engine.crew(range(3), partial(Counter, 100)) as crew:
        assert crew.each("add", 1) == [101, 101, 101]
        assert crew.one(1, "add", 10) == 111
        assert crew.scatter("add", [(1,), (2,), (3,)]) == [102, 113, 104]
        with crew.passing():
            assert crew.each("part") == [0, 1, 2]
        assert crew.each("add", 0) == [102, 113, 104]


def errors_arrive_as_they_were_raised_and_the_crew_goes_on(engine: Engine) -> None:
    with engine.crew(range(3), partial(Counter, 0)) as crew:
        _expect(InputError, "part 1 cannot add 5", lambda: crew.each("add_if", 1, 5))
        _expect(InputError, "part 1 cannot add 7", lambda: crew.one(1, "add_if", 1, 7))
        assert crew.one(1, "add", 1) == 1
        assert crew.each("part") == [0, 1, 2]


def an_error_while_building_is_the_callers(engine: Engine) -> None:
    _expect(InputError, "part 1 cannot be opened", lambda: engine.crew(range(3), _unbuildable))


def arrays_and_tensors_keep_their_bits(engine: Engine) -> None:
    array = np.random.default_rng(0).normal(size=(3000, 7))
    tensor = torch.from_numpy(array).float()
    with engine.crew(range(2), partial(Counter, 0)) as crew:
        for part, (sums, more) in enumerate(crew.each("sums", array, tensor)):
            assert np.array_equal(sums, array.sum(0) + part)
            assert torch.equal(more, tensor.sum(0) + part)


def what_is_shared_arrives(engine: Engine) -> None:
    value = engine.share(np.arange(100_000) / 7)
    with engine.crew(range(3), partial(Counter, 0)) as crew:
        assert crew.each("shared", value) == [0.0, 1 / 7, 2 / 7]


def crews_do_not_meet(engine: Engine) -> None:
    with engine.crew(range(2), partial(Counter, 0)) as one, engine.crew(range(3), partial(Counter, 10)) as other:
        one.each("add", 5)
        assert other.each("add", 0) == [10, 10, 10]
        assert one.each("add", 0) == [5, 5]


def nobody_works_after_the_end(engine: Engine) -> None:
    with engine.crew(range(2), partial(Counter, 0)) as crew:
        pass
    calls: tuple[Callable[[], Any], ...] = (
        lambda: crew.each("part"),
        lambda: crew.one(0, "part"),
        lambda: crew.scatter("add", [(1,), (2,)]),
        lambda: len(crew),
    )
    for call in calls:
        _expect(BrokenPart, "the workers have stopped", call)


CHECKS: tuple[Callable[[Engine], None], ...] = (
    some_parts,
    results_come_in_the_order_of_the_parts,
    workers_keep_their_state,
    errors_arrive_as_they_were_raised_and_the_crew_goes_on,
    an_error_while_building_is_the_callers,
    arrays_and_tensors_keep_their_bits,
    what_is_shared_arrives,
    crews_do_not_meet,
    nobody_works_after_the_end,
)


def check_engine(engine: Engine) -> None:
    """Runs every check."""
    for check in CHECKS:
        check(engine)


POOL = 5 * BLOCK + 300
"""Six blocks, so that there can be five shards."""


@dataclass(frozen=True)
class TrainedOnce:
    """A learner whose fits are cached, since the checks do not compare training."""

    learner: Learner = Network.named("mlp", Training(epochs=2, device="cpu"))

    def supports(self, objective: Objective, task: Task, needs: Collection[str] = ()) -> str | None:
        return self.learner.supports(objective, task, needs)

    def prepared(self, source: Source, rows: IntArray, chunk_size: int | None = None) -> TrainedOnce:
        return TrainedOnce(self.learner.prepared(source, rows, chunk_size))

    def settled(self, *args: Any, **more: Any) -> TrainedOnce:
        return self

    def points(self, source: Source, rows: IntArray) -> torch.Tensor:
        return self.learner.points(source, rows)

    def fit(
        self, examples: Examples, objective: Objective, streams: Streams, *, member: int = 0, **more: Any
    ) -> Fitted:
        data = examples.source.read(examples.rows).tobytes() + examples.rows.tobytes() + examples.labels.tobytes()
        key = repr(self.learner), repr(objective), streams, member, data
        if key not in _FITS:
            _FITS[key] = self.learner.fit(examples, objective, streams, member=member, **more)
        return _FITS[key]


_FITS: dict[Any, Fitted] = {}


def check_ids(
    engine: Engine, strategy: str | Strategy, task: Task = "classification", n: int = 5, labelled: int = 30, **more: Any
) -> None:
    """Checks that a query on the engine gives the same ids as in this process; `more` are arguments of `ally.Loop`."""
    scene = blobs(task, POOL, labelled, features=6)
    settings = {"task": task, "strategy": strategy, "model": TrainedOnce(), "random_state": 0, **more}
    here, there = (Loop(scene.X, scene.y, engine=one, **settings).ask(n) for one in (LocalEngine(1), engine))
    assert there.ids.tolist() == here.ids.tolist(), f"{strategy}: {there.ids.tolist()}, not {here.ids.tolist()}"
    np.testing.assert_allclose(there.scores, here.scores, rtol=1e-9, err_msg=f"scores of {strategy}")
    assert there.notes == here.notes, f"{strategy}: {there.notes}, not {here.notes}"


def _expect(kind: type[Exception], words: str, call: Callable[[], Any]) -> None:
    said = None
    try:
        found = call()
    except kind as error:
        said = str(error)
    assert said is not None, f"{found!r} came back where {kind.__name__} was expected ({words})"
    assert words in said, f"{kind.__name__} says {said!r}, not {words!r}"
