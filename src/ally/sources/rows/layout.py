"""Which column of a table is what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ally.errors import DataError, InputError
from ally.sources.identity import Seen, is_missing
from ally.sources.rows import Row, Rows
from ally.sources.rows.columns import ColumnKind
from ally.sources.samples import Kind

ID_NAMES = ("id", "ID", "Id", "name")
"""The first of these that a table has, with a different value in every row, is its id column unless another is
named."""


@dataclass(frozen=True)
class Layout:
    """Columns by their role. Without an id column the id is a hash of `columns`, all that the table had at first but
    the label."""

    columns: tuple[str, ...]
    id: str | None = None
    text: str | None = None
    image: str | None = None
    label: str | None = None
    learned: Mapping[str, ColumnKind | None] = field(default_factory=dict)
    notes: tuple[str, ...] = field(default=(), compare=False)

    @property
    def kind(self) -> Kind:
        return "images" if self.image is not None else "text" if self.text is not None else "table"

    @property
    def shown(self) -> tuple[str, ...]:
        """What accompanies a text or an image, or is the sample itself."""
        return tuple(name for name in self.columns if name not in (self.text, self.image))

    def to_json(self) -> dict[str, Any]:
        kept = asdict(self)
        return {name: kept[name] for name in ("columns", "id", "text", "image", "label", "learned")}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any], rows: Rows, *, other: bool = False) -> Layout:
        """`other` data need only what is learned from: without ids they get hashes, and plain texts serve for any
        column of texts."""
        layout = cls(**{**kept, "columns": tuple(kept["columns"])})
        if other:
            layout = replace(layout, label=None, id=layout.id if layout.id in rows.columns else None)
            if layout.text is not None and layout.text not in rows.columns and len(rows.columns) == 1:
                layout = replace(layout, text=rows.columns[0], columns=rows.columns)
        roles = (layout.id, layout.text, layout.image, *layout.learned)
        lost = next((name for name in roles if name is not None and name not in rows.columns), None)
        if lost is not None:
            why = "which the model was trained on" if other else "which it had when the campaign was created"
            raise DataError(f"{rows.place} has no column {lost!r}, {why}; its columns are {_some(rows.columns)}")
        return layout


def decide_layout(
    rows: Rows,
    *,
    id_column: str | None = None,
    text: str | None = None,
    image: str | None = None,
    label: str | None = None,
    columns: Sequence[str] | Mapping[str, ColumnKind | None] | None = None,
) -> Layout:
    """The roles the caller names, the rest by the names of the columns."""
    notes = []
    if text is not None and image is not None:
        raise InputError(
            f"a text column {text!r} and an image column {image!r} are given; the learner reads one: leave the other "
            "out"
        )
    if (
        text is None
        and image is None
        and columns is None
        and "text" in rows.columns
        and label != "text"
        and id_column != "text"
    ):
        text = "text"
        notes.append("the column 'text' is labelled and learned from")
    if isinstance(columns, str):
        raise InputError.about("columns", columns, "is one text; pass a list of names")
    kinds: dict[str, ColumnKind | None] = (
        dict(columns) if isinstance(columns, Mapping) else dict.fromkeys(columns or ())
    )
    odd = next((name for name, kind in kinds.items() if kind not in (None, "number", "category")), None)
    if odd is not None:
        raise InputError(
            f"{kinds[odd]!r} is not a kind of column (for {odd!r}); use 'number' or 'category', or give no kind"
        )
    for role, name in (
        ("id_column", id_column),
        ("text", text),
        ("image", image),
        ("label", label),
        *(("columns", name) for name in kinds),
    ):
        if name is not None and name not in rows.columns:
            raise InputError(f"{rows.place} has no column {name!r} ({role}); its columns are {_some(rows.columns)}")
    if id_column is None:
        id_column, note = _unique_column(rows, (*ID_NAMES, *((image,) if image is not None else ())))
        notes.append(note)
    hashed = tuple(name for name in rows.columns if name not in (id_column, label))
    if text is None and image is None and not kinds:
        kinds = dict.fromkeys(hashed)
    return Layout(hashed, id_column, text, image, label, {} if text or image else kinds, tuple(notes))


def _unique_column(rows: Rows, candidates: Sequence[str]) -> tuple[str | None, str]:
    """The first candidate that differs in every row, from one pass, and a sentence that says so."""
    seen = {name: Seen() for name in candidates if name in rows.columns}
    repeated: dict[str, str] = {}
    for row in rows.scan() if seen else ():
        if isinstance(row, Row):
            for name in [name for name in seen if name not in repeated]:
                value = row.values.get(name)
                if is_missing(value) or not seen[name].add(str(value)):
                    repeated[name] = row.name
        if len(repeated) == len(seen):
            break
    found = next((name for name in seen if name not in repeated), None)
    if found is not None:
        return found, f"the column {found!r} holds the ids"
    why = "".join(f"; {name!r} is empty or repeated in {place}" for name, place in repeated.items())
    return None, f"ids are hashes of the rows; equal rows are numbered: hash, hash-2{why}"


def _some(columns: Sequence[str]) -> str:
    return ", ".join(columns[:20]) + (", …" if len(columns) > 20 else "")
