"""The conformance suite of strategies.

    from ally.testing import check_strategy
    check_strategy(ally.Strategy(score=MyScore()))

Each check asks for a batch in an ordinary or hostile situation and expects exactly n distinct free ids, or the named
error. Checks that compare with the ordinary batch share it: it is made once per strategy and task in a process.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ally.errors import MemoryBudgetExceeded, OneClassError, PoolExhausted
from ally.loop import Loop, Query
from ally.oneshot import query
from ally.strategies import Strategy, resolve_strategy
from ally.testing.pools import Scene, blobs
from ally.types import SKIP, AnyArray, Task

Check = Callable[[Strategy, Task], None]
SEVERAL = 7
"""Samples of an ordinary batch."""


def _ask(strategy: Strategy, scene: Scene, n: int, **more: Any) -> Query:
    """Asks for a batch, and checks what must hold for every query."""
    q = query(scene.X, scene.y, n=n, strategy=strategy, **scene.arguments(**more))
    ids = q.ids.tolist()
    assert len(ids) == n, f"{len(ids)} ids for n={n}"
    assert len(set(ids)) == n, "an id was picked twice"
    assert set(ids) <= scene.free, f"picked labelled ids {sorted(set(ids) - scene.free)}"
    assert q.scores.shape == (n,)
    assert np.isfinite(q.scores).all(), "a score is not finite"
    assert q.why.index.tolist() == ids
    return q


@lru_cache(maxsize=64)
def _ordinary(strategy: Strategy, task: Task) -> tuple[Scene, Query]:
    """An ordinary pool after one query by the strategy, and its batch."""
    scene = blobs(task)
    return scene, _ask(strategy, scene, SEVERAL)


def _ordinary_ids(strategy: Strategy, task: Task) -> list[Any]:
    ids: list[Any] = _ordinary(strategy, task)[1].ids.tolist()
    return ids


def exactly_n_from_arrays(strategy: Strategy, task: Task) -> None:
    assert len(_ordinary_ids(strategy, task)) == SEVERAL
    _ask(strategy, blobs(task), 1)


def memory_map_gives_the_same_ids(strategy: Strategy, task: Task) -> None:
    scene = blobs(task)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "X.npy"
        np.save(path, scene.X)
        mapped = replace(scene, X=np.load(path, mmap_mode="r"))
        assert _ask(strategy, mapped, SEVERAL).ids.tolist() == _ordinary_ids(strategy, task)


def equal_seeds_give_equal_ids(strategy: Strategy, task: Task) -> None:
    first, second = _ordinary(strategy, task)[1], _ask(strategy, blobs(task), SEVERAL)
    assert first.ids.tolist() == second.ids.tolist()
    assert first.scores.tolist() == second.scores.tolist()


def chunk_size_does_not_change_ids(strategy: Strategy, task: Task) -> None:
    scene = blobs(task, n=2100)  # three blocks: read one by one, two and one, and all at once
    whole = _ask(strategy, scene, 5)
    for chunk_size in (1, 1500):
        assert _ask(strategy, scene, 5, chunk_size=chunk_size).ids.tolist() == whole.ids.tolist(), chunk_size


def memory_budget_does_not_change_ids(strategy: Strategy, task: Task) -> None:
    try:
        small = _ask(strategy, blobs(task), SEVERAL, memory_budget=0)
    except MemoryBudgetExceeded:
        return
    assert small.ids.tolist() == _ordinary_ids(strategy, task)


def inputs_are_not_modified(strategy: Strategy, task: Task) -> None:
    asked, untouched = _ordinary(strategy, task)[0], blobs(task)
    np.testing.assert_array_equal(asked.X, untouched.X)
    np.testing.assert_array_equal(asked.y, untouched.y)


def one_class_so_far(strategy: Strategy, task: Task) -> None:
    scene = blobs("classification")
    only = np.where(scene.y == 0, 0.0, np.nan)
    scene = replace(scene, y=only)
    _ask(strategy, scene, 5, classes=[0, 1, 2])
    try:
        _ask(strategy, scene, 5)
    except OneClassError:
        return
    assert not strategy.trains, "a classifier was trained on one class without declared classes"


def no_labels_at_all(strategy: Strategy, task: Task) -> None:
    scene = blobs(task)
    scene = replace(scene, y=np.full(len(scene.y), np.nan))
    q = _ask(strategy, scene, 5)
    assert not strategy.trains or any("no labels" in note for note in q.notes)


def all_duplicates(strategy: Strategy, task: Task) -> None:
    scene = blobs(task)
    _ask(strategy, replace(scene, X=np.ones_like(scene.X)), 9)


def few_distinct_rows(strategy: Strategy, task: Task) -> None:
    scene = blobs(task)
    _ask(strategy, replace(scene, X=scene.X[np.arange(len(scene.X)) % 3]), 9)


def fewer_free_than_n(strategy: Strategy, task: Task) -> None:
    scene = blobs(task, n=20, labelled=15)
    found = None
    try:
        _ask(strategy, scene, 6)
    except PoolExhausted as error:
        found = error.available, error.requested
    assert found == (5, 6), "6 of 5 free samples were given"


def n_is_everything_free(strategy: Strategy, task: Task) -> None:
    scene = blobs(task, n=30)
    assert set(_ask(strategy, scene, 18).ids.tolist()) == scene.free


def one_candidate(strategy: Strategy, task: Task) -> None:
    assert _ask(strategy, blobs(task), 1, candidates=[33]).ids.tolist() == [33]


def candidates_are_kept_to(strategy: Strategy, task: Task) -> None:
    mask = np.arange(60) >= 40
    assert min(_ask(strategy, blobs(task), 8, candidates=mask).ids.tolist()) >= 40


def constant_features(strategy: Strategy, task: Task) -> None:
    scene = blobs(task)
    _ask(strategy, replace(scene, X=np.hstack([scene.X, np.full((len(scene.X), 2), 7.0)])), 5)


def huge_and_tiny_scales(strategy: Strategy, task: Task) -> None:
    scene = blobs(task)
    for scale in (2.0**-90, 2.0**90):
        scaled = replace(scene, X=scene.X * scale)
        assert _ask(strategy, scaled, SEVERAL).ids.tolist() == _ordinary_ids(strategy, task), scale
    _ask(strategy, replace(scene, X=scene.X * np.asarray([1e-12, 1.0, 1e12, 1e100])), 5)


def one_labelled_sample(strategy: Strategy, task: Task) -> None:
    scene = blobs(task, labelled=1)
    _ask(strategy, scene, 5, **({"classes": [0, 1, 2]} if task == "classification" else {}))


def labels_of_every_kind(strategy: Strategy, task: Task) -> None:
    scene = blobs(task)
    for name, labels in _label_kinds(scene):
        assert _ask(strategy, replace(scene, y=labels), SEVERAL).ids.tolist() == _ordinary_ids(strategy, task), name


def _label_kinds(scene: Scene) -> Iterator[tuple[str, AnyArray]]:
    known = ~np.isnan(scene.y)
    yield "None", np.asarray([label if k else None for label, k in zip(scene.y, known, strict=True)], dtype=object)
    if scene.task == "classification":
        names = np.asarray(
            [f"class {int(label)}" if k else None for label, k in zip(scene.y, known, strict=True)], dtype=object
        )
        yield "strings", names
        integers = np.asarray(
            [int(label) if k else None for label, k in zip(scene.y, known, strict=True)], dtype=object
        )
        yield "integers", integers


def own_ids(strategy: Strategy, task: Task) -> None:
    scene = blobs(task)
    names = [f"sample-{row}" for row in range(len(scene.X))]
    q = query(scene.X, scene.y, n=SEVERAL, strategy=strategy, ids=names, **scene.arguments())
    assert q.ids.tolist() == [names[row] for row in _ordinary_ids(strategy, task)]


def rounds_never_repeat(strategy: Strategy, task: Task) -> None:
    scene = blobs(task)
    truth = blobs(task, labelled=60).y
    loop = Loop(scene.X, scene.y, strategy=strategy, **scene.arguments())
    seen: set[int] = set()
    for _ in range(3):
        q = loop.ask(6)
        ids = q.ids.tolist()
        assert not seen & set(ids)
        seen |= set(ids)
        loop.tell(q.id, {id: truth[id] for id in ids[:4]} | {ids[4]: SKIP})
    assert seen <= scene.free


def repr_is_the_configuration(strategy: Strategy, task: Task) -> None:
    assert strategy == replace(strategy)
    assert hash(strategy) == hash(replace(strategy))
    assert repr(strategy) == repr(replace(strategy))
    assert " object at 0x" not in repr(strategy), "a part has no readable repr"


CHECKS: tuple[Check, ...] = (
    exactly_n_from_arrays,
    memory_map_gives_the_same_ids,
    equal_seeds_give_equal_ids,
    chunk_size_does_not_change_ids,
    memory_budget_does_not_change_ids,
    inputs_are_not_modified,
    one_class_so_far,
    no_labels_at_all,
    all_duplicates,
    few_distinct_rows,
    fewer_free_than_n,
    n_is_everything_free,
    one_candidate,
    candidates_are_kept_to,
    constant_features,
    huge_and_tiny_scales,
    one_labelled_sample,
    labels_of_every_kind,
    own_ids,
    rounds_never_repeat,
    repr_is_the_configuration,
)


def conformance_cases(strategies: Mapping[str, Strategy]) -> Iterator[tuple[str, Check, Strategy, Task]]:
    """Every check × strategy × task it declares, with a name, for ``pytest.mark.parametrize``."""
    for name, strategy in strategies.items():
        for task in sorted(strategy.tasks):
            for check in CHECKS:
                if check is one_class_so_far and task == "regression":
                    continue
                yield f"{name}-{task}-{check.__name__}", check, strategy, task


def check_strategy(strategy: str | Strategy) -> None:
    """Runs every check; raises AssertionError, or whatever the strategy raised, at the first that fails."""
    _ordinary.cache_clear()  # the caller may have changed what the strategy does
    for _, check, resolved, task in conformance_cases({"strategy": resolve_strategy(strategy)}):
        check(resolved, task)
