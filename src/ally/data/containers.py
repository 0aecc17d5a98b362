"""What people hold data in, brought to the few forms that are read.

`unpack` turns a Hugging Face data set, a dictionary of columns, a torch data set, a series or a list into an array, a
table, texts or pictures, and takes out the labels and ids that are in it. Nothing else looks at such containers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ally.data.arrays.memory import is_tensor, tensor_to_numpy
from ally.data.arrays.ray_blocks import is_dataset
from ally.data.base import RowReader
from ally.data.given_labels import plain_labels
from ally.data.identity import is_missing
from ally.data.tables.frames import is_frame
from ally.data.tables.layout import ID_NAMES, LABEL_NAMES, NO_LABEL
from ally.errors import DataError, InputError, LabelError

Collate: TypeAlias = Callable[[Any], Any]
"""What is learned from of an item of a data set: ``x``, or ``(x, label)``."""


class Container(NamedTuple):
    """What was in a container. `options` replace those of the reader that the container has answered itself."""

    data: Any
    """A path, an array, a sparse matrix, a tensor, a source, a frame, a list of dictionaries, or `ItemView`."""
    labels: Sequence[Any] | None = None
    ids: Sequence[Any] | None = None
    notes: tuple[str, ...] = ()
    options: Mapping[str, Any] = {}


class ItemView:
    """One value of every item of a data set, read when it is asked for."""

    def __init__(self, items: Any, pick: Collate) -> None:
        self._items, self._pick = items, pick

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, row: int) -> Any:
        try:
            return self._pick(self._items[row])
        except DataError:
            raise
        except Exception as error:
            raise DataError(
                f"sample {row} of the data set cannot be read ({type(error).__name__}: {error}); repair it, or leave "
                "it out through `candidates`"
            ).at(row) from error


class PictureList(ItemView):
    """Pictures of Pillow, of any size."""


def unpack(
    data: Any,
    *,
    label: str | None = None,
    columns: Any = None,
    collate: Collate | None = None,
    labelled: bool = False,
    name: str = "X",
) -> Container:
    """What is in `data`, which errors call by its `name`. Labels that may be in it are left there if they are
    elsewhere (`labelled`) or `label` is ``"none"``."""
    wanted = _Wanted(label, columns, labelled or label == NO_LABEL, name)
    library = type(data).__module__.split(".")[0]
    if collate is not None and (isinstance(data, np.ndarray) or not _has_items(data)):
        raise InputError.about("collate", collate, f"reads the items of a data set, and {name} has none; leave it out")
    if library == "datasets" and collate is None:
        return _unpack_hugging_face(data, wanted)
    if isinstance(data, Mapping):
        return _unpack_columns(_DictionaryColumns(data, name), wanted)
    if library in ("pandas", "polars", "pyarrow") and not is_frame(data) and hasattr(data, "to_frame"):
        return Container(data.to_frame("text" if isinstance(next(iter(data), None), str) else data.name or "value"))
    if isinstance(data, np.ndarray) and data.ndim == 1 and data.dtype.kind in "UO" and len(data):
        data = data.tolist() if all(isinstance(value, str) for value in data.tolist()) else data
    if isinstance(data, (list, tuple)) and data:
        return _unpack_list(data, name)
    if _has_items(data) and not isinstance(data, (np.ndarray, RowReader)) and len(data):
        return _unpack_items(data, collate, wanted)
    return Container(data)


def is_picture(value: Any) -> bool:
    """Whether it is a picture of Pillow."""
    return type(value).__module__.split(".")[0] == "PIL"


def holds_texts(data: Any) -> bool:
    """Whether samples are texts: a list, an array or a series of them."""
    series = type(data).__module__.split(".")[0] in ("pandas", "polars", "pyarrow") and not is_frame(data)
    listed = isinstance(data, (list, tuple)) or (isinstance(data, np.ndarray) and data.ndim == 1) or series
    return listed and len(data) > 0 and isinstance(next(iter(data)), str)


class _Wanted(NamedTuple):
    label: str | None
    columns: Any
    without_labels: bool
    name: str


def _has_items(data: Any) -> bool:
    """Whether it is a data set that gives an item for each number."""
    if isinstance(data, (str, bytes, Path, list, tuple, Mapping)) or is_frame(data) or is_tensor(data):
        return False
    sparse = type(data).__module__.startswith("scipy.sparse")
    return not sparse and not is_dataset(data) and hasattr(data, "__getitem__") and hasattr(data, "__len__")


def _unpack_list(data: Sequence[Any], name: str) -> Container:
    if all(isinstance(value, str) for value in data):
        return Container([{"text": value} for value in data])
    if isinstance(data[0], Mapping):
        return Container(data)
    if is_picture(data[0]):
        odd = next((row for row, value in enumerate(data) if not is_picture(value)), None)
        if odd is not None:
            raise InputError(f"entry {odd} of {name} is a {type(data[odd]).__name__} and others are pictures")
        return Container(PictureList(data, lambda picture: picture))
    if isinstance(data[0], str):
        odd = next(row for row, value in enumerate(data) if not isinstance(value, str))
        raise InputError(
            f"entry {odd} of {name} is {data[odd]!r:.60} and others are texts; give every sample a text, or leave it "
            "out"
        )
    try:
        return Container(np.asarray(data))
    except ValueError as error:
        raise InputError(
            f"{name} is a list whose rows differ in length ({error}); give all rows the same length"
        ) from error


# Columns


class _Columns(ABC):
    """Columns of equal length. `class_names` are those of columns that number their classes."""

    name: str
    first: Mapping[str, Any]
    """The first value of each."""
    class_names: Mapping[str, Sequence[str]] = {}

    @abstractmethod
    def read(self, names: Sequence[str]) -> list[list[Any]]:
        """All values of some columns."""

    @abstractmethod
    def view(self, name: str) -> Any:
        """A column of arrays or pictures."""

    @abstractmethod
    def as_table(self) -> Any:
        """All columns, which hold single values."""


class _DictionaryColumns(_Columns):
    def __init__(self, columns: Mapping[str, Any], name: str) -> None:
        self.name = f"the dictionary {name}"
        odd = next((key for key, values in columns.items() if not hasattr(values, "__len__") or _is_text(values)), None)
        if odd is not None or not columns:
            what = "is empty" if odd is None else f"holds {columns[odd]!r:.60} for {odd!r}"
            raise InputError(f"{self.name} {what}; give a list or an array of values for each column")
        lengths = {str(key): len(values) for key, values in columns.items()}
        if len(set(lengths.values())) > 1:
            several = ", ".join(f"{key!r} has {length}" for key, length in list(lengths.items())[:5])
            raise InputError(f"the columns of {self.name} differ in length: {several}; give one value per sample")
        if not next(iter(lengths.values())):
            raise InputError(f"{self.name} has 0 sample(s), while a minimum of 1 is required")
        self._columns = {str(key): values for key, values in columns.items()}
        self.first = {key: _first_value(values) for key, values in self._columns.items()}

    def read(self, names: Sequence[str]) -> list[list[Any]]:
        return [_plain_values(self._columns[name]) for name in names]

    def view(self, name: str) -> Any:
        values = self._columns[name]
        if is_picture(self.first[name]):
            return PictureList(values, lambda picture: picture)
        return values if is_tensor(values) or isinstance(values, np.ndarray) else np.asarray(values)

    def as_table(self) -> Any:
        import pandas as pd

        return pd.DataFrame({name: _plain_values(values) for name, values in self._columns.items()})


class _HuggingFaceColumns(_Columns):
    def __init__(self, dataset: Any, name: str) -> None:
        self.name = f"the data set {name}"
        self._dataset = dataset.with_format(None)
        self.first = self._dataset[0]
        self.class_names = {
            key: kind.names for key, kind in dataset.features.items() if type(kind).__name__ == "ClassLabel"
        }

    def read(self, names: Sequence[str]) -> list[list[Any]]:
        return [self._named(name, list(self._dataset[name])) for name in names]

    def view(self, name: str) -> Any:
        column = self._dataset.select_columns([name])
        if is_picture(self.first[name]):
            return PictureList(column, lambda item: item[name])
        return ItemView(column.with_format("numpy"), lambda item: item[name])

    def as_table(self) -> Any:
        frame = self._dataset.to_pandas()
        return frame.assign(**{key: self._named(key, frame[key].tolist()) for key in self.class_names})

    def _named(self, name: str, values: list[Any]) -> list[Any]:
        """Classes by their names; -1 stands for none."""
        names = self.class_names.get(name)
        if names is None:
            return values
        return [None if is_missing(value) or value < 0 else names[int(value)] for value in values]


class _ItemColumns(_Columns):
    def __init__(self, items: Any, first: Mapping[str, Any], name: str) -> None:
        self.name = f"the data set {name}"
        self.first = first
        self._items = items

    def read(self, names: Sequence[str]) -> list[list[Any]]:
        rows = [[item[name] for name in names] for item in map(self._items.__getitem__, range(len(self._items)))]
        return [list(map(_plain_value, values)) for values in zip(*rows, strict=True)]

    def view(self, name: str) -> Any:
        return (PictureList if is_picture(self.first[name]) else ItemView)(self._items, lambda item: item[name])

    def as_table(self) -> Any:
        return [dict(self._items[row]) for row in range(len(self._items))]


def _unpack_hugging_face(dataset: Any, wanted: _Wanted) -> Container:
    if isinstance(dataset, Mapping):
        raise InputError(
            f"{wanted.name} holds several splits ({', '.join(map(repr, dataset))}); pass one, such as "
            f"{wanted.name}[{next(iter(dataset), 'train')!r}]"
        )
    if not hasattr(dataset, "select_columns") or not hasattr(dataset, "__len__"):
        raise InputError(
            f"{wanted.name} is a {type(dataset).__name__}, which is read from its start alone; pass a "
            "datasets.Dataset, such as Dataset.from_list(list(...))"
        )
    if not len(dataset):
        raise InputError(f"{wanted.name} has 0 sample(s), while a minimum of 1 is required")
    return _unpack_columns(_HuggingFaceColumns(dataset, wanted.name), wanted)


def _unpack_columns(columns: _Columns, wanted: _Wanted) -> Container:
    """The one column of arrays or pictures with its labels and ids, or all columns as a table."""
    names = list(columns.first)
    chosen = [wanted.columns] if isinstance(wanted.columns, str) else wanted.columns
    given = [*(chosen or ()), *([wanted.label] if wanted.label not in (None, NO_LABEL) else [])]
    lost = next((name for name in given if name not in names), None)
    if lost is not None:
        raise InputError(f"{columns.name} has no column {lost!r}; its columns are {', '.join(names[:20])}")
    label = wanted.label or _find_label(columns, [name for name in names if name not in (chosen or ())])
    label = None if label == NO_LABEL else label
    wide = [name for name in chosen or names if name != label and _is_wide(columns.first[name])]
    if not wide:
        if label not in columns.class_names or wanted.label is not None:
            return Container(columns.as_table())
        note = f"the column {label!r} holds the labels, by its type (label= for another, label='none' for none)"
        return Container(columns.as_table(), notes=(note,), options={"label": label})
    if len(wide) > 1 or (chosen is not None and len(chosen) > 1):
        raise InputError(
            f"{columns.name} has the columns {', '.join(map(repr, chosen or wide))} to learn from, and arrays are "
            f"learned from one at a time; say which: columns={wide[0]!r}, or collate= for a function of an item"
        )
    id = next((name for name in ID_NAMES if name in names and name not in (label, wide[0])), None)
    taken = [] if wanted.without_labels or label is None else [label]
    read = dict(zip([*taken, *([id] if id else [])], columns.read([*taken, *([id] if id else [])]), strict=True))
    ids = read.get(id) if id is not None and len(set(map(str, read[id]))) == len(read[id]) else None
    used = {wide[0], *taken, *([id] if ids is not None else [])}
    notes = [f"the column {wide[0]!r} is learned from (columns= for another)"]
    notes += [f"the column {name!r} holds the labels (label= for another, label='none' for none)" for name in taken]
    notes += [f"the column {id!r} holds the ids"] if ids is not None else []
    others = [name for name in names if name not in used]
    notes += [f"not used: {', '.join(map(repr, others))}"] if others else []
    return Container(
        columns.view(wide[0]),
        plain_labels(read[label]) if taken and label is not None else None,
        ids,
        tuple(notes),
        {"label": None, "columns": None},
    )


def _find_label(columns: _Columns, names: Sequence[str]) -> str | None:
    """The column of classes, or the one that is named like the answer."""
    found = [name for name in names if name in columns.class_names]
    found = found or [name for name in names if name.strip().casefold() in LABEL_NAMES]
    if len(found) > 1:
        raise InputError(
            f"the columns {' and '.join(map(repr, found))} of {columns.name} may both hold the labels; say which: "
            f"label={found[0]!r}, or 'none' for neither"
        )
    return found[0] if found else None


def _is_wide(value: Any) -> bool:
    """Whether a value of a column is an array of numbers or a picture."""
    if is_picture(value):
        return True
    if isinstance(value, (str, bytes, Mapping)) or value is None:
        return False
    array = tensor_to_numpy(value) if is_tensor(value) else np.asarray(value)
    return array.ndim > 0 and array.dtype.kind in "fiub"


def _is_text(value: Any) -> bool:
    return isinstance(value, (str, bytes))


def _first_value(values: Any) -> Any:
    return values.iloc[0] if hasattr(values, "iloc") else values[0]


def _plain_values(values: Any) -> list[Any]:
    return tensor_to_numpy(values).tolist() if is_tensor(values) else list(map(_plain_value, values))


def _plain_value(value: Any) -> Any:
    """A number instead of an array or tensor of one."""
    return value.item() if hasattr(value, "item") and value.ndim == 0 else value


# Items


def _unpack_items(dataset: Any, collate: Collate | None, wanted: _Wanted) -> Container:
    """A data set whose items are ``x``, ``(x, label)`` or dictionaries, or what `collate` makes of them."""
    if type(dataset).__module__.startswith("torch.utils.data") and type(dataset).__name__ == "TensorDataset":
        return _unpack_tensors(dataset.tensors, wanted)
    items = ItemView(dataset, collate or (lambda item: item))
    first = items[0]
    if isinstance(first, Mapping):
        return _unpack_columns(_ItemColumns(items, first, wanted.name), wanted)
    pair = isinstance(first, list) and len(first) == 2 and _is_wide(first[0]) and not _is_wide(first[1])
    if not isinstance(first, tuple) and not pair:
        return _of_values(items, first, None, ())
    values = ItemView(items, lambda item: item[0])
    if len(first) == 1 or wanted.without_labels:
        return _of_values(values, first[0], None, ())
    if len(first) > 2 or _is_wide(first[1]) or isinstance(first[1], Mapping):
        kinds = ", ".join(type(value).__name__ for value in first)
        raise LabelError(
            f"the items of {wanted.name} are ({kinds}), and which are labels is not known; pass y=, "
            "collate=lambda item: (x, label), or label='none'"
        )
    labels = plain_labels(_plain_value(items[row][1]) for row in range(len(items)))
    note = "the second value of each item is its label (label='none' if it is not)"
    return _of_values(values, first[0], labels, (note,))


def _of_values(values: ItemView, first: Any, labels: Sequence[Any] | None, notes: tuple[str, ...]) -> Container:
    if isinstance(first, str):
        texts = [values[row] for row in range(len(values))]
        beside = [{}] * len(texts) if labels is None else [{"label": label} for label in labels]
        return Container([{"text": text, **more} for text, more in zip(texts, beside, strict=True)])
    if is_picture(first):
        return Container(PictureList(values, lambda picture: picture), labels, notes=notes)
    return Container(values, labels, notes=notes)


def _unpack_tensors(tensors: Sequence[Any], wanted: _Wanted) -> Container:
    if len(tensors) == 1 or wanted.without_labels:
        return Container(ItemView(tensors[0], lambda item: item))
    labels = tensors[1].detach().cpu().numpy()
    if len(tensors) > 2 or labels.reshape(len(labels), -1).shape[1] != 1:
        shapes = " and ".join(str(tuple(tensor.shape)) for tensor in tensors)
        raise LabelError(
            f"the TensorDataset holds tensors of shapes {shapes}, and which are labels is not known; pass "
            "TensorDataset(X, y) with one label per sample, or the samples alone (dataset.tensors[0])"
        )
    note = "the second tensor of the TensorDataset holds the labels (label='none' if it does not)"
    return Container(ItemView(tensors[0], lambda item: item), plain_labels(labels.reshape(-1)), notes=(note,))
