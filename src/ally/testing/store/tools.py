"""Helpers shared by the checks of a store."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from ally.store import NewAnswer, NewSample, Store, StoredQuery
from ally.store.values import Policy


class Create(Protocol):
    """Makes a store in a new place at the time 0; `more` is `reserve` and `labelled_by`, as of `ally.store.create`."""

    def __call__(self, settings: Any, samples: Iterable[NewSample], seed: int, **more: Any) -> Store: ...


Check = Callable[[Create], None]


def make(create: Create, n: int = 10, seed: int = 0) -> Store:
    return create({}, (NewSample(f"s{row}") for row in range(n)), seed)


def ask(store: Store, annotator: str, n: int, now: float, seconds: float = 100.0, **more: Any) -> StoredQuery:
    query = store.ask(annotator, n, now, seconds, **more)
    assert len(set(query.ids)) == len(query.ids), "a sample comes twice in one query"
    assert query.until == now + seconds
    return query


def labels(ids: Iterable[str], value: Any = "cat") -> list[NewAnswer]:
    return [NewAnswer(id, value) for id in ids]


def refused(error: type[Exception], work: Callable[..., Any], *args: Any, **more: Any) -> str:
    """The message of the error that a call raises."""
    try:
        work(*args, **more)
    except error as found:
        return str(found)
    raise AssertionError(f"{error.__name__} was expected, and nothing was raised")


def end(store: Store) -> None:
    assert store.check() == []
    store.close()


def skips(store: Store, policy: Policy = "last") -> set[int]:
    """Rows whose deciding answer is a skip."""
    return {row for row, decided in store.answers.decided(policy).items() if decided.kind == "skip"}
