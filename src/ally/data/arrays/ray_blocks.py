"""A Ray Dataset as a pool: its rows are numbered through, block by block, in its own order.

Blocks stay where Ray keeps them. Whoever reads a row fetches its block, so that workers of an engine fetch theirs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ally.data.arrays.carried import Carried
from ally.data.arrays.memory import ArraySource
from ally.errors import DataError, EngineError, InputError
from ally.types import AnyArray

PATIENCE = 300.0
"""Seconds to wait for a block."""


class PoolBlocks(Carried):
    """Samples of all blocks that are not empty."""


@dataclass(frozen=True)
class BlockPart:
    """One block, in Ray's object store."""

    ref: Any

    def __call__(self) -> ArraySource:
        from ray.data.block import BlockAccessor

        import ray

        try:
            block: Any = ray.get(self.ref, timeout=PATIENCE)
        except ray.exceptions.GetTimeoutError as error:
            raise EngineError(
                f"a block of the Ray Dataset did not arrive within {PATIENCE:g} seconds. If it was lost with a "
                "machine, Ray needs a free CPU to compute it again: use fewer workers, as in RayEngine(workers=1), or "
                "write the data to files and pass their folder"
            ) from error
        accessor: Any = BlockAccessor.for_block(block)
        return _samples(accessor.to_numpy(list(block.schema.names)))


def _samples(columns: dict[str, AnyArray]) -> ArraySource:
    """One column of tensors, or columns of numbers."""
    odd = next((name for name, values in columns.items() if values.dtype.kind not in "fiub"), None)
    if odd is not None:
        raise DataError(
            f"column {odd!r} of the Ray Dataset holds {columns[odd].dtype}; keep columns of numbers, or one of tensors "
            "of one shape: select_columns, drop_columns"
        )
    wide = [name for name, values in columns.items() if values.ndim > 1]
    if len(columns) == 1 and wide:
        return ArraySource(columns[wide[0]], name="the Ray Dataset")
    if wide:
        raise DataError(
            f"the Ray Dataset has the columns {', '.join(map(repr, columns))}, and {wide[0]!r} holds tensors; keep "
            "that one alone, or only columns of numbers: select_columns"
        )
    values = np.stack([np.asarray(column, np.float64) for column in columns.values()], axis=1)
    return ArraySource(values, list(columns), "the Ray Dataset")


def is_dataset(X: Any) -> bool:
    return type(X).__module__.startswith("ray.data.") and hasattr(X, "to_arrow_refs")


def is_lazy_dataset(X: Any) -> bool:
    """Whether its blocks have yet to be computed, which takes CPUs of the cluster."""
    return is_dataset(X) and type(X).__name__ != "MaterializedDataset"


def open_blocks(dataset: Any) -> PoolBlocks:
    """Computes the blocks of the data set, in its order, if that has not been done."""
    import ray

    context = dataset.context.execution_options
    before, context.preserve_order = context.preserve_order, True
    try:
        refs = dataset.to_arrow_refs()
    finally:
        context.preserve_order = before
    count = ray.remote(num_cpus=0)(_rows)
    sizes = ray.get([count.remote(ref) for ref in refs])
    blocks = [(BlockPart(ref), size) for ref, size in zip(refs, sizes, strict=True) if size]
    if not blocks:
        raise InputError("X has 0 sample(s), while a minimum of 1 is required: the Ray Dataset is empty")
    return PoolBlocks(blocks[0][0](), [block for block, _ in blocks], np.cumsum([0, *(size for _, size in blocks)]))


def _rows(table: Any) -> int:
    return int(table.num_rows)
