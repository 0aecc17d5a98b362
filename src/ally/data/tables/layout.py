"""The role of each column of a table."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from ally.data.identity import SeenIds, is_missing
from ally.data.tables import Row, Rows
from ally.data.tables.columns import ENOUGH, HARDLY, MOSTLY, ColumnKind, as_number
from ally.data.tables.frames import FrameRows
from ally.errors import DataError, InputError

ID_NAMES = ("id", "ID", "Id", "name")
"""The first of these that a table has, with a different value in every row, is its id column unless another is
named."""
ID_LIKE = re.compile(r"(?i:(^|[\W_])(id|uuid|guid|key)$)|[a-z](Id|ID)$")
"""Other names of columns that are taken as ids: article_id, doc-key, userId."""
LABEL_NAMES = frozenset({"label", "labels", "class", "target", "y"})
"""A column of this name holds labels, unless another does."""
ANSWER_NAMES = frozenset(
    {"answer", "outcome", "ground_truth", "groundtruth", "gold", "annotation", "diagnosis", "sentiment"}
)
"""A column of this name may be the target."""
NO_LABEL = "none"
HASHED = "ids are hashes of the rows"
NUMBERED = re.compile(r"Unnamed: \d+(_level_\d+)?|column \d+")
"""Columns without a name, as tables saved with their index have."""
SURVEYED = 2000
"""Rows that tell what a column holds."""
LONG_TEXT, MANY_WORDS = 40, 6
"""Average characters and words from which a column counts as long texts."""
MOST_LABELS, FEWEST_LABELS = 100, 5
"""A column beside texts or images with no more different values, in at least so many rows, may hold labels."""
MANY_NUMBERS = 3
"""Columns of numbers beside which a text is not what is learned from."""


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
    unasked: bool = field(default=False, compare=False)
    """Whether nobody said which columns are learned from, nor which one holds the labels, and no name tells."""
    suspected: str | None = field(default=None, compare=False)
    """An error that asks about columns that may hold labels and would be ignored, unless the labels are elsewhere."""

    @property
    def kind(self) -> Literal["images", "text", "table"]:
        return "images" if self.image is not None else "text" if self.text is not None else "table"

    @property
    def shown(self) -> tuple[str, ...]:
        """Columns shown with a text or an image, or the sample itself."""
        return tuple(name for name in self.columns if name not in (self.text, self.image))

    def to_json(self) -> dict[str, Any]:
        kept = asdict(self) | {"columns": list(self.columns)}
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
        layout.ensure_columns(rows, other=other)
        return layout

    def ensure_columns(self, rows: Rows, *, other: bool = False) -> None:
        """Refuse rows without a column that has a role, or that ids are made of."""
        roles = [self.id, self.text, self.image, *self.learned]
        roles += self.columns if self.id is None and self.text is None and not other else ()
        lost = next((name for name in roles if name is not None and name not in rows.columns), None)
        if lost is not None:
            why = "which the model was trained on" if other else "which it had when the campaign was created"
            notes = "".join(f"; {note}" for note in rows.notes)
            raise DataError(
                f"{rows.source} has no column {lost!r}, {why}; its columns are {_some(rows.columns)}{notes}"
            )


def decide_layout(
    rows: Rows,
    *,
    id_column: str | None = None,
    text: str | None = None,
    image: str | None = None,
    label: str | None = None,
    columns: Sequence[str] | Mapping[str, ColumnKind | None] | None = None,
) -> Layout:
    """The roles the caller names, the rest by the names of the columns and what they hold; the notes say what was
    decided. `label` ``"none"``: no column holds labels."""
    if text is not None and image is not None:
        raise InputError(
            f"a text column {text!r} and an image column {image!r} are given; the learner reads one: leave the other "
            "out"
        )
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
    no_label = label == NO_LABEL and NO_LABEL not in rows.columns
    label = None if no_label else label
    for role, name in (
        ("id_column", id_column),
        ("text", text),
        ("image", image),
        ("label", label),
        *(("columns", name) for name in kinds),
    ):
        if name is not None and name not in rows.columns:
            raise InputError(f"{rows.source} has no column {name!r} ({role}); its columns are {_some(rows.columns)}")
    notes = []
    if label is None and not no_label:
        taken = {id_column, text, image, *kinds}
        label, note = _label_column([name for name in rows.columns if name not in taken], bool(kinds or text or image))
        notes += [note] if note else []
    if id_column is None:
        others = [name for name in rows.columns if name not in (text, image, label, *kinds) and is_id(name)]
        mine = [] if rows.index is None else [rows.index]
        mine += [name for name in ID_NAMES if name in rows.columns and name not in (text, label, *kinds)]
        candidates = dict.fromkeys([*mine, *others, *((image,) if image is not None else ())])
        id_column, note = _unique_column(rows, tuple(candidates))
        notes.append(note)
    found = _survey(rows, [name for name in rows.columns if name not in (id_column, label, image)])
    if text is None and image is None and not kinds:
        text, note = _text_column(found)
        notes += [note] if note else []
    hashed = tuple(name for name in rows.columns if name not in (id_column, label))
    unasked = label is None and not no_label and not kinds
    suspected = None
    if unasked and (text is not None or image is not None):
        suspected = _ask_about_labels({name: one for name, one in found.items() if name != text and not is_id(name)})
    if text is None and image is None and not kinds:
        counted = [name for name in hashed if name in found and found[name].counts_rows and NUMBERED.fullmatch(name)]
        notes += [f"the column {name!r} numbers the rows and is left out" for name in counted]
        # An index that is not the ids is no feature.
        kinds = dict.fromkeys(name for name in hashed if name not in counted and name != rows.index)
    return Layout(
        hashed, id_column, text, image, label, {} if text or image else kinds, tuple(notes), unasked, suspected
    )


def _label_column(names: Sequence[str], settled: bool) -> tuple[str | None, str | None]:
    """The column that is named like the answer, and a sentence; what may be one is asked about, unless what is learned
    from is `settled`."""
    named = [name for name in names if name.strip().casefold() in LABEL_NAMES]
    if len(named) > 1:
        raise InputError(
            f"the columns {' and '.join(map(repr, named))} are both named like the answer; say which holds the labels: "
            f"label={named[0]!r} (--label), or 'none' for neither"
        )
    if named:
        return named[0], (
            f"the column {named[0]!r} holds the labels, by its name (--label none if it holds none, --label OTHER for "
            "another)"
        )
    unsure = next((name for name in names if name.strip().casefold() in ANSWER_NAMES), None)
    if unsure is not None and not settled:
        raise InputError(
            f"the column {unsure!r} may be the answer, and what is to be predicted is never learned from unasked; say "
            f"label={unsure!r} (--label) if it holds labels, or name the columns to learn from (--column)"
        )
    return None, None


def is_id(name: str) -> bool:
    """Whether a column of this name may hold the ids."""
    return name in ID_NAMES or ID_LIKE.search(name.strip()) is not None


@dataclass
class _ColumnContents:
    """What the first rows of a column hold."""

    present: int = 0
    letters: int = 0
    words: int = 0
    texts: int = 0
    row: int = 0
    counts_rows: bool = True
    different: set[str] = field(default_factory=set)
    values: set[str] = field(default_factory=set)
    """The different values, texts or not, until they are too many for labels."""
    fractions: int = 0

    rows: int = 0

    def add(self, value: Any, row: int) -> None:
        self.rows = row + 1
        self.counts_rows &= str(value) in (str(row), str(row + 1)) and (row == 0 or self.row == row)
        self.row = row + 1
        if is_missing(value):
            return
        number = None if isinstance(value, bool) else as_number(value)
        if number is not None and math.isnan(number):
            return
        self.present += 1
        self.fractions += number is not None and math.isfinite(number) and not number.is_integer()
        if len(self.values) <= MOST_LABELS:
            self.values.add(str(value))
        if isinstance(value, str) and number is None:
            self.texts += 1
            self.letters += len(value)
            self.words += len(value.split())
            self.different.add(value)

    def may_be_labels(self, rows: int) -> bool:
        """Filled in few of the `rows`, as labels are while people give them: with few different values, or with
        numbers that have fractions."""
        few = 2 <= len(self.values) <= min(MOST_LABELS, self.present // 2)
        return FEWEST_LABELS <= self.present < HARDLY * rows and (few or 2 * self.fractions > self.present)

    @property
    def is_text(self) -> bool:
        """Long texts, nearly all of them different."""
        return (
            self.texts >= max(2, MOSTLY * self.present)
            and self.letters >= LONG_TEXT * self.texts
            and self.words >= MANY_WORDS * self.texts
            and len(self.different) >= self.texts / 2
        )


def _ask_about_labels(others: Mapping[str, _ColumnContents]) -> str | None:
    """An error about columns that are not learned from and may hold labels; None if there is none."""
    rows = max((one.rows for one in others.values()), default=0)
    unsure = [name for name, one in others.items() if rows >= ENOUGH and one.may_be_labels(rows)]
    if not unsure:
        return None
    name = unsure[0]
    more = f" (as are {', '.join(map(repr, unsure[1:4]))})" if unsure[1:] else ""
    return (
        f"the column {name!r} is filled in {others[name].present} of {'the first ' * (rows == SURVEYED)}{rows} rows"
        f"{more}, so it may hold labels, and labels are never ignored unasked; say label={name!r} (--label) if it "
        "holds them and 'none' if no column does (ally.query: pass the labels as y, or leave the column out)"
    )


def _survey(rows: Rows, names: Sequence[str]) -> dict[str, _ColumnContents]:
    found = {name: _ColumnContents() for name in names}
    number = 0
    for row in rows.scan():
        if isinstance(row, Row):
            for name, one in found.items():
                one.add(row.values.get(name), number)
            number += 1
        if number >= SURVEYED:
            break
    return found


def _text_column(found: Mapping[str, _ColumnContents]) -> tuple[str | None, str | None]:
    """The column of texts to learn from, and a sentence that says so and which option decides otherwise."""
    if "text" in found:
        return "text", "the column 'text' is labelled and learned from"
    texts = sorted((name for name in found if found[name].is_text), key=lambda name: -found[name].letters)
    if not texts:
        return None, None
    others = [name for name in found if name not in texts and found[name].texts < found[name].present]
    several = f"; {', '.join(map(repr, texts[1:]))} would do too: --text decides" if texts[1:] else ""
    if len(others) >= MANY_NUMBERS:
        return None, (
            f"{texts[0]!r} holds texts and is not learned from, as {len(others)} columns hold numbers; --text "
            f"{texts[0]} decides otherwise"
        )
    return texts[0], (
        f"the column {texts[0]!r} holds texts and is labelled and learned from{several}; --column learns from "
        "others instead"
    )


def _unique_column(rows: Rows, candidates: Sequence[str]) -> tuple[str | None, str]:
    """The first candidate that differs in every row, from one pass, and a sentence that says so."""
    seen = {name: SeenIds() for name in candidates if name in rows.columns}
    repeated: dict[str, str] = {}
    if isinstance(rows, FrameRows):
        found_at = {name: rows.find_repeated(name) for name in seen}
        repeated = {name: place for name, place in found_at.items() if place is not None}
    for row in rows.scan() if seen and not isinstance(rows, FrameRows) else ():
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
    return None, f"{HASHED}; equal rows are numbered: hash, hash-2{why}"


def _some(columns: Sequence[str]) -> str:
    return ", ".join(columns[:20]) + (", …" if len(columns) > 20 else "")
