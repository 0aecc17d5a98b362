"""A user's data with labels as a benchmark: opened as a campaign opens them, then split into a pool and a test set.

Columns and words are learned from the pool alone; a folder that holds ``train`` and one of `TEST_FOLDERS` is split
already.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from ally.data.arrays.array_files import map_array
from ally.data.arrays.samples import ArraySamples, is_array_file, read_ids
from ally.data.base import Source, blocks
from ally.data.catalogue.dataset import Dataset, Kind
from ally.data.catalogue.reading import Reading
from ally.data.catalogue.splits import holdout
from ally.data.encoders.choosing import encode_samples, missing_encoder
from ally.data.encoders.samples import EncodedSamples
from ally.data.export.answers import reads
from ally.data.given_labels import array_labels, mark_for_none
from ally.data.opening import open_source
from ally.data.problems import ProblemKind
from ally.data.samples import Samples, notes_beside_columns
from ally.data.source_labels import LabelReader
from ally.data.tables.columns import as_number
from ally.data.tables.layout import NO_LABEL
from ally.data.tables.samples import RowSamples
from ally.errors import DataError, InputError
from ally.types import AnyArray, Progress, Task

TEST_FOLDERS = ("test", "val", "valid", "validation")
COLUMNS = 40
"""The most columns for which a note says how they are read."""


class LabelledSamples(NamedTuple):
    """Some of the samples, and a label for each: `labels` (n,)."""

    samples: Samples
    ids: Sequence[str]
    labels: AnyArray

    def take(self, rows: AnyArray) -> LabelledSamples:
        return LabelledSamples(self.samples, [self.ids[row] for row in rows.tolist()], self.labels[rows])


@dataclass(frozen=True)
class DataOptions:
    """Where named data sets are, and how a user's data are opened: what `ally.Campaign.create` takes."""

    data_dir: Path | None = None
    label: str | None = None
    task: Task | Literal["auto"] = "auto"
    reading: Reading = Reading()
    encoder: str | None = None
    """``"auto"``: the one that is installed for such samples. None: they are learned from as they are."""
    model: str | None = None
    """What is to learn: a network of pixels wants no encoder, unless one is named."""
    kept_in: Path | None = None
    """Where vectors of an encoder are kept."""


def read_own_data(path: Path, name: str, options: DataOptions, progress: Progress | None = None) -> Dataset:
    """The data at `path`; samples without a label are left out."""
    folder, test_folder = _find_split(path)
    samples = _open(folder, options)
    task, labelled, notes = _read_labels(samples, folder, options)
    notes += ["the samples are opened as a campaign opens them (`ally new`)"]
    if test_folder is not None:
        tests = _read_labels(_open(test_folder, options), test_folder, options)[1]
        ensure_different(folder, labelled)
        notes.append(f"the folders {folder.name} and {test_folder.name} are the pool and the test set")
        return make_dataset(name, task, labelled, tests, notes, progress)
    return make_dataset(name, task, *split_labelled(path, task, labelled), notes, progress)


def split_labelled(place: object, task: Task, labelled: LabelledSamples) -> tuple[LabelledSamples, LabelledSamples]:
    """A pool and a test set of one in five, of every class; always the same ones."""
    n, classes = len(labelled.ids), task == "classification"
    different = ensure_different(place, labelled)
    pool, test = holdout(n, labelled.labels if classes else None)
    if not len(test):
        each = f" of {different} classes" if classes else ""
        numbers = all(as_number(str(label)) is not None for label in labelled.labels)
        instead = ", or say that the task is regression" if classes and numbers else ""
        raise DataError(
            f"{place} has {n} labelled samples{each}, too few for a test set of one in five; label more{instead}"
        )
    return labelled.take(pool), labelled.take(test)


def ensure_different(place: object, labelled: LabelledSamples) -> int:
    """How many different labels there are: two at least."""
    different = len(np.unique(labelled.labels))
    if different < 2:
        raise DataError(
            f"every label of {place} is {labelled.labels[0]!s:.60}; a benchmark needs at least two different ones"
        )
    return different


def make_dataset(
    name: str,
    task: Task,
    pool: LabelledSamples,
    test: LabelledSamples,
    notes: Sequence[str],
    progress: Progress | None = None,
    *,
    known: bool = False,
) -> Dataset:
    """What a learner reads of the samples, in memory. With `known`, columns and words mean what they meant before."""
    samples = pool.samples
    plain = samples.samples if isinstance(samples, EncodedSamples) else samples
    if isinstance(plain, RowSamples) and not known:
        plain.learn(pool.ids)
    read, measured = _read_side(pool, progress), _read_side(test, progress)
    encoder = samples.kind.encoder
    kind: Kind = "table" if encoder is None else "images" if encoder == "image" else "text"
    told = [*notes, *notes_beside_columns(samples), *_columns(samples), *_problems((pool, test))]
    if isinstance(samples, EncodedSamples) and encoder == "image":
        told.append("a campaign with model='auto' also tries the pixels, and keeps to them where they do better")
    return Dataset(
        name,
        task,
        read.values,
        read.labels,
        measured.values,
        measured.labels,
        "images" if read.values.ndim == 4 else kind,
        tuple(dict.fromkeys(told)),
        vectors=read.vectors,
        words=None if read.words is None else (read.words, measured.words),
        encoder=str(samples.about["name"]) if isinstance(samples, EncodedSamples) else "",
    )


def label_array(labels: Sequence[Any], task: Task) -> AnyArray:
    """(n,) of one type; classes of several types by how they read."""
    if task == "regression":
        return np.asarray(labels, dtype=np.float64)
    same = len({type(label) for label in labels}) == 1
    return np.asarray(labels if same else [reads(label) for label in labels])


def _open(path: Path, options: DataOptions) -> Samples:
    reading = options.reading.options()
    if path.is_dir():
        if options.label not in (None, "folder"):
            raise InputError.about(
                "label", options.label, "is no class of a folder of images: its folders are; leave label out"
            )
        samples = open_source(path, label="folder", **reading)
    elif path.suffix.lower() == ".npy" and options.label is not None:
        samples = _open_arrays(path, options.label, options.reading)
    else:
        label = None if is_array_file(path) and options.label == "y" else options.label
        samples = open_source(path, label=label, **reading)
    return encode_samples(samples, options.encoder, options.model, reading.get("embeddings"), options.kept_in, None)


def _open_arrays(path: Path, label: str, reading: Reading) -> Samples:
    """Samples in one .npy file and labels in another."""
    labels = Path(label) if Path(label).is_file() else path.parent / label
    if not labels.is_file():
        raise InputError.about(
            "label", label, f"is not a file; give the path of a .npy file with one label per row of {path}"
        )
    X = map_array(path)
    ids = None if reading.ids is None else read_ids(reading.ids)
    y = array_labels(map_array(labels), len(X), labels)
    return ArraySamples(X, ids, str(path), reading.channels or "auto", y)


def _read_labels(samples: Samples, path: Path, options: DataOptions) -> tuple[Task, LabelledSamples, list[str]]:
    """The task, the samples that have a label, and notes."""
    scanned = list(samples.scan())
    labelled = [sample for sample in scanned if sample.label is not None]
    if not labelled or options.label == NO_LABEL:
        raise InputError(f"{path} has no labels to compare strategies by; {_say_where_labels_are(samples, path)}")
    reader = LabelReader(options.task, None, path)
    labels = [reader.read(sample) for sample in labelled]
    verdict = reader.decide()
    if verdict is not None and verdict.task != reader.task:
        reader = LabelReader(verdict.task, None, path)
        labels = [reader.read(sample) for sample in labelled]
    notes = [f"task: {options.task}, as you say" if verdict is None else verdict.note]
    if len(labelled) < len(scanned):
        notes.append(f"{len(scanned) - len(labelled)} samples have no label and are left out")
    marked = mark_for_none(Counter(map(str, labels))) if reader.task == "classification" else None
    notes += [] if marked is None else [marked]
    hint = missing_encoder(samples, options.model, options.reading.embeddings) if options.encoder == "auto" else None
    notes += [] if hint is None else [hint]
    return (
        reader.task,
        LabelledSamples(samples, [sample.id for sample in labelled], label_array(labels, reader.task)),
        notes,
    )


def _say_where_labels_are(samples: Samples, path: Path) -> str:
    if path.is_dir():
        return "put the images into one folder per class"
    if isinstance(samples, RowSamples):
        columns = ", ".join(samples.layout.columns[:20])
        return f"say which column holds them (label, --label); its columns are {columns}"
    return "save them as y in an .npz file, or give a second .npy file (label, --label)"


def _find_split(path: Path) -> tuple[Path, Path | None]:
    """The folders of the pool and of the test set, if `path` holds just these two; else `path`."""
    folders = {one.name: one for one in path.iterdir() if _is_plain_folder(one)} if path.is_dir() else {}
    test = next((name for name in TEST_FOLDERS if set(folders) == {"train", name}), None)
    if test is None or not all(any(map(_is_plain_folder, folder.iterdir())) for folder in folders.values()):
        return path, None
    return folders["train"], folders[test]


def _is_plain_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink() and not path.name.startswith(".")


class _Side(NamedTuple):
    values: Any
    labels: AnyArray
    words: Any
    """Weights of the words of encoded texts, or None."""
    vectors: bool


def _read_side(side: LabelledSamples, progress: Progress | None) -> _Side:
    """Features and labels, without what turns out to be unreadable."""
    samples = side.samples
    if isinstance(samples, EncodedSamples):
        samples.prepare(side.ids, progress)
    source = samples.features(side.ids)
    values, labels = _values(source), side.labels
    words = None if source.words is None else _values(source.words)
    broken = {problem.id for problem in samples.problems if problem.kind in ("unreadable", "gone")}
    readable = np.asarray([row for row, id in enumerate(side.ids) if id not in broken], dtype=np.int64)
    if not len(readable):
        raise DataError(f"none of the {len(side.ids)} samples can be read ({samples.problems.first}); check the files")
    if len(readable) < len(side.ids):
        values, labels, words = values[readable], labels[readable], None if words is None else words[readable]
    return _Side(values, labels, words, source.vectors)


def _values(source: Source) -> Any:
    """All of a source in memory: (n, *shape), or a csr matrix where zeros mean absence."""
    parts: list[AnyArray] = [source.read(np.arange(part.start, part.stop)) for part in blocks(len(source))]
    if not source.sparse:
        return np.concatenate(parts)
    from scipy.sparse import csr_matrix, vstack

    return vstack([csr_matrix(part) for part in parts], format="csr")


def _columns(samples: Samples) -> list[str]:
    """How columns are read, except plain numbers."""
    plain = ("number", "labels", "the ids")
    told = [f"column {name!r}: {how}" for name, how in samples.columns().items() if how not in plain]
    more = [f"{len(told) - COLUMNS} more columns are not listed here"] if len(told) > COLUMNS else []
    return [*told[:COLUMNS], *more]


def _problems(sides: tuple[LabelledSamples, LabelledSamples]) -> list[str]:
    told = []
    kinds: dict[ProblemKind, str] = {
        "unreadable": "samples cannot be read and are left out",
        "value": "values are odd",
        "duplicate": "rows repeat others",
    }
    for problems in dict.fromkeys(side.samples.problems for side in sides):
        for kind, words in kinds.items():
            n = problems.counts[kind]
            some = next((problem for problem in problems if problem.kind == kind), None)
            told += [f"{n} {words}, such as {some.id}: {some.reason}"] if some is not None else []
    return told
