"""Hidden labels of a benchmark, reachable only by buying them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ally.data.ids import Ids
from ally.errors import LabelError
from ally.types import AnyArray


class Oracle:
    """Answers queries by id and counts the distinct labels it has given. The labels have no public attribute."""

    def __init__(self, labels: AnyArray, ids: Any = None) -> None:
        self.__labels = labels
        self.__ids = Ids(len(labels), ids)
        self.__bought: set[int] = set()

    @property
    def bought(self) -> int:
        """How many distinct labels have been given so far."""
        return len(self.__bought)

    def answer(self, ids: Iterable[Any]) -> dict[Any, Any]:
        """The label of each id. Every distinct id counts once."""
        asked = list(ids)
        rows = self.__ids.rows(asked)
        answers = {}
        for id, row in zip(asked, rows.tolist(), strict=True):
            label = self.__labels[row]
            if label is None or label != label:
                raise LabelError(f"the oracle has no label for id {id!r}; remove the sample from the pool")
            answers[id.item() if hasattr(id, "item") else id] = label
            self.__bought.add(row)
        return answers
