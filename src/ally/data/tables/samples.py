"""Samples that are rows: of a table with features, texts or paths of images, or the lines of a text file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ally.data.base import Source
from ally.data.embeddings import Embeddings
from ally.data.export.cells import read_label
from ally.data.given_labels import is_marked
from ally.data.identity import Index, KeptIndex, SeenIds, content_hash, id_keys, is_missing, odd_id, row_hash
from ally.data.images.folder import load_images
from ally.data.images.thumbnails import Thumbnails, check_image
from ally.data.kinds import KINDS, SampleKind
from ally.data.paths import MIME, inside, is_image
from ally.data.problems import Problems
from ally.data.samples import ById, Sample, Samples, Shown, ensure_none_gone, note_gone
from ally.data.tables import BadRow, Row, Rows
from ally.data.tables.columns import ColumnEncoder
from ally.data.tables.layout import Layout
from ally.data.text import WordWeights
from ally.errors import DataError, IdError, InputError
from ally.types import AnyArray

BATCH = 1024


class RowSamples(Samples):
    """`reopen` reads the `rows` again when the file has changed. `kept` is an earlier fingerprint, if there was one."""

    def __init__(
        self,
        rows: Rows,
        reopen: Callable[[], Rows],
        layout: Layout,
        *,
        folder: Path | None = None,
        thumbnails: Thumbnails = Thumbnails(),
        embeddings: Embeddings | None = None,
        kept: Mapping[str, Any] | None = None,
        kept_index: KeptIndex | None = None,
        missing_label: Any = None,
    ) -> None:
        self.problems = Problems()
        self._reopen = reopen
        self._rows = rows
        self._layout = layout
        self._folder = folder
        self._thumbnails = thumbnails
        self._embeddings = embeddings
        self._encoder = ColumnEncoder.from_json(kept["encoder"]) if kept and "encoder" in kept else None
        self._words = WordWeights.from_json(kept["words"]) if kept and "words" in kept else None
        self._index: Index | None = None
        self._kept_index = kept_index
        self._stamp = self._rows.stamp()
        self._missing_label = missing_label
        self._suspected = layout.suspected
        self.decided: tuple[str, ...] = ()
        """What was decided about the container that the rows came in, in sentences."""

    @property
    def kind(self) -> SampleKind:
        return KINDS[self._layout.kind]

    @property
    def layout(self) -> Layout:
        return self._layout

    @property
    def notes(self) -> tuple[str, ...]:
        learned = () if self._encoder is None else self._encoder.notes
        return (*self.decided, *self._layout.notes, *self._rows.notes, *learned)

    def columns(self) -> dict[str, str]:
        layout, encoded = self._layout, self._encoder.read if self._encoder is not None else {}
        found = {}
        for name in self._rows.columns:
            roles = {layout.id: "the ids", layout.label: "labels", layout.text: "the text", layout.image: "images"}
            found[name] = roles.get(name) or encoded.get(name) or "shown, not learned from"
        return found if self._rows.columns != ("text",) else {}

    def scan(self) -> Iterator[Sample]:
        if self._suspected is not None:
            raise InputError(self._suspected)
        self.problems.clear()
        self._refresh()
        index, found = Index(), 0
        for sample, row in self._walk(self.problems):
            index.add(sample.id, row.position)
            problem = self._unreadable(sample.id, row)
            if problem is not None:
                self.problems.add(sample.id, "unreadable", problem)
                continue
            found += 1
            yield sample
        left_out = self.problems.counts["duplicate"]
        if self._layout.id is not None and left_out > len(index):
            raise DataError(
                f"the column {self._layout.id!r} of {self._rows.source} has {len(index)} different values in "
                f"{len(index) + left_out} rows; it cannot hold the ids: name another id_column, or give every row its "
                "own id"
            )
        if not found:
            why = (
                f"{len(self.problems)} are unreadable: {self.problems.first}"
                if len(self.problems)
                else "it has a header only"
            )
            raise DataError(f"{self._rows.source} has no sample that can be read ({why}); correct the file")
        if self._rows.stamp() == self._stamp:
            self._keep(index)

    def show(self, id: str) -> Shown:
        values = self._values([id])[0]
        if isinstance(values, str):
            raise IdError(f"{self._rows.source} has no sample {id!r}: {values}")
        layout = self._layout
        columns = {name: values[name] for name in layout.shown if name in values}
        if layout.text is not None:
            return Shown(id, text=str(values.get(layout.text, "")), columns=columns)
        if layout.image is not None:
            try:
                path = self._image(str(values.get(layout.image) or ""))
            except DataError as error:
                raise IdError(f"the image of {id!r} cannot be shown: {error}") from error
            return Shown(id, path=path, mime=MIME.get(path.suffix.lower()), columns=columns)
        return Shown(id, columns=columns)

    def missing(self, ids: Sequence[str]) -> list[str]:
        if not len(ids):
            return []
        there = self._current().find(id_keys(ids))[1].tolist()
        if self._embeddings is not None:
            there = [here and id in self._embeddings for id, here in zip(ids, there, strict=True)]
        return note_gone(ids, there, self.problems)

    def features(self, ids: Sequence[str]) -> Source:
        ensure_none_gone(self.missing(ids), ids, self._rows.source)
        if self._embeddings is not None:
            return self._embeddings.of(ids)
        if self._layout.image is not None:
            return ById(ids, self._thumbnails.shape, self._load_images)
        if self._layout.text is not None:
            return ById(ids, self._weights().idf.shape, self._load_text, sparse=True)
        names = self._table().names
        return ById(ids, (len(names),), self._load_table, names)

    def contents(self, ids: Sequence[str]) -> list[str | Path | None]:
        layout = self._layout
        if layout.text is None and layout.image is None:
            return super().contents(ids)
        found: list[str | Path | None] = []
        for id, row in zip(ids, self._read(ids), strict=True):
            value = row.get(layout.text or layout.image or "")
            if not row or layout.text is not None:
                found.append(str(value) if row else None)
                continue
            try:
                found.append(self._image("" if is_missing(value) else str(value)))
            except DataError as error:
                self.problems.add(id, "unreadable", str(error))
                found.append(None)
        return found

    def suspect_no_labels(self) -> None:
        """The labels are elsewhere: no column is asked about."""
        self._suspected = None

    def learn(self, ids: Sequence[str] | None = None) -> None:
        """Learns what is learned of a table or of texts (means, categories, word weights) from these samples alone
        (default: from all). The labels are known: no column is suspected to hold them."""
        self.suspect_no_labels()
        if self._embeddings is not None or self._layout.image is not None:
            return
        rows = self._every() if ids is None else (row for row in self._read(ids) if row)
        if self._layout.text is None:
            self._encoder = ColumnEncoder.learn(rows, self._layout.learned, self._rows.source)
        else:
            self._words = WordWeights.learn(self._texts(rows))

    def fingerprint(self, *, learned: bool = True) -> dict[str, Any]:
        """The layout and, if wanted, what was learned from the rows; the first call then reads them all."""
        kept: dict[str, Any] = {"version": 1, "kind": self.kind.name, "from": "rows", "layout": self._layout.to_json()}
        if self._rows.decimal == ",":
            kept["decimal"] = ","
        if self._embeddings is not None:
            kept["embeddings"] = list(self._embeddings.shape)
        elif self._layout.image is not None:
            kept["size"] = self._thumbnails.side
        elif not learned:
            pass
        elif self._layout.text is not None:
            kept["words"] = self._weights().to_json()
        else:
            kept["encoder"] = self._table().to_json()
        return kept

    def _walk(self, problems: Problems, *, hashed: bool = True) -> Iterator[tuple[Sample, Row]]:
        """Every row that has an id of its own, with it. Without `hashed` contents are not hashed, unless ids are made
        of them."""
        layout, seen, copies = self._layout, SeenIds(), Counter[str]()
        for row in self._rows.scan():
            if isinstance(row, BadRow):
                problems.add(row.name, "unreadable", row.reason)
                continue
            content = self._hash(row) if hashed or layout.id is None else ""
            if layout.id is None:
                id = content
                if not seen.add(content):
                    copies[content] += 1
                    id = f"{content}-{copies[content] + 1}"
                    problems.add(
                        id,
                        "duplicate",
                        f"{row.name} repeats an earlier one; it is kept as a separate sample",
                    )
            else:
                value = row.values.get(layout.id)
                id = "" if is_missing(value) else str(value)
                odd = odd_id(id)
                if odd is not None:
                    problems.add(row.name, "unreadable", odd)
                    continue
                if not seen.add(id):
                    problems.add(
                        id,
                        "duplicate",
                        f"{row.name} repeats an earlier id and is left out; give every sample its own id",
                    )
                    continue
            label = row.values.get(layout.label) if layout.label is not None else None
            if isinstance(label, str) and self._rows.written:
                label = read_label(label) if label else None
            none = is_missing(label) or is_marked(label, self._missing_label)
            yield Sample(id, content, None if none else label), row

    def _hash(self, row: Row) -> str:
        text = self._layout.text
        if text is not None and self._layout.columns == (text,):
            return content_hash(str(row.values.get(text, "")).encode("utf-8", "surrogatepass"))
        return row_hash(row.values, self._layout.columns)

    def _unreadable(self, id: str, row: Row) -> str | None:
        layout = self._layout
        problem = None if self._embeddings is None else self._embeddings.problem(id)
        if problem is not None:
            return problem
        if layout.text is not None and is_missing(row.values.get(layout.text)):
            return f"{row.name} has no {layout.text}"
        if layout.image is not None:
            value = row.values.get(layout.image)
            try:
                check_image(self._image("" if is_missing(value) else str(value)))
            except DataError as error:
                return str(error)
        return None

    def _image(self, name: str) -> Path:
        if self._folder is None:
            raise DataError("the folder of the images is not known; pass folder=")
        if not is_image(name):
            raise DataError(f"{name!r} is not the name of an image; the endings are {', '.join(MIME)}")
        return inside(self._folder, name)

    def _refresh(self) -> None:
        """New rows, if the file has changed since they were opened."""
        stamp = self._rows.stamp()
        if stamp != self._stamp:
            self._rows, self._index, self._stamp = self._reopen(), None, stamp
            self._layout.ensure_columns(self._rows)

    def _current(self) -> Index:
        """Where each id is now."""
        self._refresh()
        if self._index is None and self._kept_index is not None:
            self._index = self._kept_index.read(self._stamp)
        if self._index is None:
            index = Index()
            for sample, row in self._walk(Problems(), hashed=False):
                index.add(sample.id, row.position)
            return self._keep(index)
        return self._index

    def _keep(self, index: Index) -> Index:
        self._index = index.close()
        if self._kept_index is not None:
            self._kept_index.write(self._stamp, self._index)
        return self._index

    def _values(self, ids: Sequence[str]) -> list[dict[str, Any] | str]:
        places, there = self._current().find(id_keys(ids))
        found = iter(self._rows.at(places[there].tolist()))
        return [next(found) if here else "it is missing" for here in there.tolist()]

    def _read(self, ids: Sequence[str]) -> list[dict[str, Any]]:
        """The values of each id; nothing, and a problem, where a row is gone."""
        values = self._values(ids)
        for id, row in zip(ids, values, strict=True):
            if isinstance(row, str):
                self.problems.add(id, "gone", row)
        return [{} if isinstance(row, str) else row for row in values]

    def _load_table(self, ids: Sequence[str]) -> AnyArray:
        rows = self._read(ids)

        def report(position: int, problem: str) -> None:
            if rows[position]:
                self.problems.add(ids[position], "value", problem)

        return self._table()(rows, report)

    def _load_text(self, ids: Sequence[str]) -> AnyArray:
        texts = [str(row.get(self._layout.text or "", "")) for row in self._read(ids)]
        dense: AnyArray = (
            self._weights()(texts).toarray() if texts else np.empty((0, len(self._weights().idf)), np.float32)
        )
        return dense

    def _load_images(self, ids: Sequence[str]) -> AnyArray:
        names = [str(row.get(self._layout.image or "", "")) for row in self._read(ids)]
        if self._folder is None:
            raise DataError("the folder of the images is not known; pass folder=")
        return load_images(self._folder, names, ids, self._thumbnails, self.problems)

    def _table(self) -> ColumnEncoder:
        if self._encoder is None:
            layout = self._layout
            self._encoder = ColumnEncoder.learn(
                self._every(), layout.learned, self._rows.source, unasked=layout.unasked
            )
        return self._encoder

    def _weights(self) -> WordWeights:
        if self._words is None:
            self._words = WordWeights.learn(self._texts(self._every()))
        return self._words

    def _every(self) -> Iterator[dict[str, Any]]:
        return (row.values for row in self._rows.scan() if isinstance(row, Row))

    def _texts(self, rows: Iterable[Mapping[str, Any]]) -> Iterator[list[str]]:
        name = self._layout.text or ""
        texts = (str(row[name]) for row in rows if not is_missing(row.get(name)))
        while batch := list(islice(texts, BATCH)):
            yield batch
