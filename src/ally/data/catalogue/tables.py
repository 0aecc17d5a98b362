"""A user's table file as a benchmark: rows, texts, images or vectors with labels, and a fixed test split. Everything is
learned from pool rows only."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ally.data.base import Source, blocks
from ally.data.catalogue.dataset import Dataset, Kind
from ally.data.catalogue.reading import Reading
from ally.data.catalogue.splits import holdout
from ally.data.catalogue.targets import decide
from ally.data.given_labels import ensure_single, mark_for_none
from ally.data.kinds import KINDS
from ally.data.opening import open_source
from ally.data.problems import ProblemKind
from ally.data.samples import notes_beside_columns
from ally.data.tables.columns import as_number
from ally.data.tables.layout import NO_LABEL
from ally.data.tables.samples import RowSamples
from ally.errors import DataError, InputError
from ally.types import AnyArray, Task

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = 40
"""The most columns for which a note says how they are read."""


def read_table_file(
    path: Path,
    name: str,
    target: str | None,
    wanted: Task | Literal["auto"] = "auto",
    reading: Reading = Reading(),
) -> Dataset:
    """The table at `path`, read as in a campaign, with the column `target` as the labels. Rows without a label are left
    out."""
    samples = open_source(path, label=target, **reading.options())
    assert isinstance(samples, RowSamples)
    column = samples.layout.label
    if column is None or target == NO_LABEL:
        columns = ", ".join(samples.layout.columns[:20])
        raise InputError(f"{path} is a table: label= (--label) names its column of labels; its columns are {columns}")
    found = list(samples.scan())
    labels, gone = _known([sample.label for sample in found])
    ids = [sample.id for sample, label in zip(found, labels, strict=True) if label is not None]
    notes = [f"{gone} rows have no {column} and are left out"] if gone else []
    if len(ids) < 2:
        raise DataError(f"{path} has {len(ids)} rows with a {column}; at least two are needed")
    if wanted != "regression":
        ensure_single(labels, path)
    known = [label for label in labels if label is not None]
    task, y, note = decide(_series(known), wanted)
    marked = mark_for_none(Counter(map(str, known))) if task == "classification" else None
    notes += [] if marked is None else [marked]
    pool, test = holdout(len(ids), y if task == "classification" else None)
    if not len(test):
        classes = f" in {len(set(y.tolist()))} classes" if task == "classification" else ""
        instead = ", or say that the task is regression" if task == "classification" and y.dtype.kind in "fi" else ""
        raise DataError(
            f"{path} has {len(ids)} rows with a {column}{classes}, too few for a test set of one in five; add "
            f"rows{instead}"
        )
    sides = [ids[row] for row in pool], [ids[row] for row in test]
    samples.learn(sides[0])
    X, X_test = (_values(samples.features(side)) for side in sides)
    kind: Kind = samples.layout.kind
    raw = None
    if KINDS[kind].encoder is not None and reading.embeddings is None:
        raw = samples.contents(sides[0]), samples.contents(sides[1])
    told = (note, *notes, *notes_beside_columns(samples), *_columns(samples), *_problems(samples))
    return Dataset(name, task, X, y[pool], X_test, y[test], kind, told, raw, vectors=reading.embeddings is not None)


def _known(labels: list[Any]) -> tuple[list[Any], int]:
    """The labels, None where missing, and how many are missing. Among numbers, words for a missing value count as
    missing."""
    words = {label: as_number(label) for label in labels if isinstance(label, str)}
    others = [label for label in labels if label is not None and not isinstance(label, str)]
    numbers = others and not any(isinstance(label, bool) for label in others)
    if numbers and all(number is not None and not math.isfinite(number) for number in words.values()):
        labels = [words[label] if isinstance(label, str) else label for label in labels]
        labels = [None if isinstance(label, float) and math.isnan(label) else label for label in labels]
    return labels, sum(label is None for label in labels)


def _series(labels: list[Any]) -> pd.Series[Any]:
    import pandas as pd

    return pd.Series(labels, dtype=object).infer_objects()


def _values(source: Source) -> Any:
    """All of a source in memory: (n, *shape), or a csr matrix where zeros mean absence."""
    parts: list[AnyArray] = [source.read(np.arange(part.start, part.stop)) for part in blocks(len(source))]
    if not source.sparse:
        return np.concatenate(parts)
    from scipy.sparse import csr_matrix, vstack

    return vstack([csr_matrix(part) for part in parts], format="csr")


def _columns(samples: RowSamples) -> list[str]:
    """How columns are read, except plain numbers."""
    plain = ("number", "labels", "the ids")
    told = [f"column {name!r}: {how}" for name, how in samples.columns().items() if how not in plain]
    more = [f"{len(told) - COLUMNS} more columns are not listed here"] if len(told) > COLUMNS else []
    return [*told[:COLUMNS], *more]


def _problems(samples: RowSamples) -> list[str]:
    told = []
    kinds: dict[ProblemKind, str] = {"unreadable": "rows are left out", "value": "values are odd"}
    for kind, words in kinds.items():
        some = [problem for problem in samples.problems if problem.kind == kind]
        n = samples.problems.counts[kind]
        told += [f"{n} {words}, such as {some[0].id}: {some[0].reason}"] if n and some else []
    named = samples.layout.id is not None
    copies = samples.problems.counts["duplicate"]
    told += [f"{copies} rows repeat an id and are left out"] if named and copies else []
    return told
