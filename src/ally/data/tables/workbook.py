"""The first sheet of an .xlsx file, read as a stream: styles, drawings, names, links and formulas are passed over.

A workbook is a zip of XML. Both can hold far more than they weigh: what the archive unpacks to is bounded, document
types (and with them entities) are refused, and a cell far to the right makes no row of empty ones.
"""

from __future__ import annotations

import posixpath
import zipfile
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from xml.parsers import expat

from ally.data.archive_files import count_unpacked, open_archive
from ally.data.paths import ensure_readable
from ally.data.size_limits import ensure_unpacked_fits
from ally.errors import MissingPart

UNPACKED = 2**24
RATIO = 15
"""Bytes that a workbook may unpack to, or times its own size; those of real tables are six times as large."""
COLUMNS = 16384
"""As many as spreadsheets have."""
ELEMENTS = 2**17
"""Sheets, relations and formats of cells that a workbook may list; programs write at most 65 490 formats."""
FORMAT = 255
"""Characters of a format of numbers."""
BLOCK = 2**16

Attributes = Mapping[str, str]
Cells = dict[int, Any]
"""Values by column, from 0 on; empty cells are absent."""


class BookPart(NamedTuple):
    """A relation of a workbook: the kind is the last word of its type."""

    kind: str
    name: str


@dataclass(frozen=True)
class Formats:
    """Which formats of cells are dates or lengths of time, and the day that dates are counted from."""

    dates: frozenset[int]
    lengths: frozenset[int]
    epoch: Any


def read_first_sheet(path: Path) -> list[Cells]:
    """The rows that hold something; formulas as the values they had when the file was saved."""
    ensure_readable(path)
    _ensure_openpyxl()
    with open_archive(path, "a workbook") as archive:
        ensure_unpacked_fits(path, count_unpacked(archive), path.stat().st_size, UNPACKED, RATIO)
        parts = _list_relations(archive, "")
        book = next((part.name for part in parts.values() if part.kind == "officeDocument"), "xl/workbook.xml")
        parts = _list_relations(archive, book)
        listed = _list_elements(archive, book, {"sheet", "workbookPr"})
        chosen = (_find_relation(attributes) for name, attributes in listed if name == "sheet")
        sheet = next((parts[one].name for one in chosen if one in parts and parts[one].kind == "worksheet"), None)
        if sheet is None:
            return []
        others = {part.kind: part.name for part in parts.values()}
        texts = _read_texts(archive, others["sharedStrings"]) if "sharedStrings" in others else []
        since_1904 = any(attributes.get("date1904") in ("1", "true") for _, attributes in listed)
        return _read_cells(archive, sheet, texts, _read_formats(archive, others.get("styles"), since_1904))


def _ensure_openpyxl() -> None:
    try:
        import openpyxl  # noqa: F401
    except ImportError as error:
        raise MissingPart("reading .xlsx needs openpyxl: pip install 'ally-learn[xlsx]'") from error


def _list_relations(archive: zipfile.ZipFile, of: str) -> dict[str, BookPart]:
    """By id, those of a part, or of the whole where it is empty."""
    folder, name = posixpath.split(of)
    place = posixpath.join(folder, "_rels", f"{name}.rels")
    if place not in archive.namelist():
        return {}
    listed = (attributes for _, attributes in _list_elements(archive, place, {"Relationship"}))
    return {
        one["Id"]: BookPart(
            one["Type"].rpartition("/")[2], posixpath.normpath(posixpath.join("/", folder, one["Target"])).lstrip("/")
        )
        for one in listed
    }


def _find_relation(attributes: Attributes) -> str | None:
    """The ``r:id`` of a sheet, whatever its name space is called."""
    return next((value for name, value in attributes.items() if name.rpartition(":")[2] == "id"), None)


def _list_elements(archive: zipfile.ZipFile, name: str, wanted: Container[str]) -> list[tuple[str, Attributes]]:
    """Elements of a part, in their order."""
    found: list[tuple[str, Attributes]] = []

    def start(element: str, attributes: Attributes) -> None:
        element = element.rpartition(":")[2]
        if element in wanted:
            found.append((element, attributes))
            if len(found) > ELEMENTS:
                raise ValueError(f"{name} lists more than {ELEMENTS} entries")

    _parse(archive, name, start)
    return found


def _parse(
    archive: zipfile.ZipFile,
    name: str,
    start: Callable[[str, Attributes], None],
    end: Callable[[str], None] | None = None,
    text: Callable[[str], None] | None = None,
) -> None:
    def refuse(*_: object) -> None:
        raise ValueError(f"{name} declares a document type, which no workbook needs")

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text
    with archive.open(name) as stream:
        while block := stream.read(BLOCK):
            parser.Parse(block)
        parser.Parse(b"", True)


def _read_texts(archive: zipfile.ZipFile, name: str) -> list[str]:
    """The shared texts, which cells name by number."""
    texts: list[str] = []
    pieces: list[str] = []
    inside = aside = False

    def start(element: str, attributes: Attributes) -> None:
        nonlocal inside, aside
        element = element.rpartition(":")[2]
        if element == "si":
            pieces.clear()
        inside = element == "t" and not aside
        aside = aside or element == "rPh"

    def end(element: str) -> None:
        nonlocal inside, aside
        element = element.rpartition(":")[2]
        inside = False
        if element == "rPh":
            aside = False
        elif element == "si":
            texts.append("".join(pieces).replace("x005F_", ""))

    def text(piece: str) -> None:
        if inside:
            pieces.append(piece)

    _parse(archive, name, start, end, text)
    return texts


def _read_formats(archive: zipfile.ZipFile, name: str | None, since_1904: bool) -> Formats:
    from openpyxl.styles.numbers import builtin_format_code, is_date_format, is_timedelta_format
    from openpyxl.utils.datetime import CALENDAR_MAC_1904, CALENDAR_WINDOWS_1900

    own: dict[int, str] = {}
    numbers: list[int] = []
    of_cells = False

    def start(element: str, attributes: Attributes) -> None:
        nonlocal of_cells
        element = element.rpartition(":")[2]
        if element == "numFmt":
            own[int(attributes["numFmtId"])] = attributes["formatCode"][:FORMAT]
        elif element == "cellXfs":
            of_cells = True
        elif element == "xf" and of_cells:
            numbers.append(int(attributes.get("numFmtId", 0)))
        if len(numbers) + len(own) > ELEMENTS:
            raise ValueError(f"{name} lists more than {ELEMENTS} formats")

    def end(element: str) -> None:
        nonlocal of_cells
        of_cells = of_cells and element.rpartition(":")[2] != "cellXfs"

    if name is not None:
        _parse(archive, name, start, end)
    codes = {number: own.get(number) or builtin_format_code(number) for number in set(numbers)}
    dates = {number for number, code in codes.items() if is_date_format(code)}
    lengths = {number for number, code in codes.items() if is_timedelta_format(code)}
    return Formats(
        frozenset(place for place, number in enumerate(numbers) if number in dates),
        frozenset(place for place, number in enumerate(numbers) if number in lengths),
        CALENDAR_MAC_1904 if since_1904 else CALENDAR_WINDOWS_1900,
    )


def _read_cells(archive: zipfile.ZipFile, name: str, texts: list[str], formats: Formats) -> list[Cells]:
    rows: list[Cells] = []
    row: Cells = {}
    columns: dict[str, int] = {}
    pieces: list[str] = []
    kind, style, column = "n", 0, -1
    reading = aside = False

    def start(element: str, attributes: Attributes) -> None:
        nonlocal kind, style, column, reading, aside, row
        element = element.rpartition(":")[2]
        if element == "c":
            kind = attributes.get("t", "n")
            style = int(attributes.get("s", 0))
            place = attributes.get("r")
            if place is None:
                column += 1
            else:
                letters = place.rstrip("0123456789")
                found = columns.get(letters)
                column = columns.setdefault(letters, _number_column(letters)) if found is None else found
            if column >= COLUMNS:
                raise ValueError(f"a cell is in column {column + 1}; a sheet has {COLUMNS}")
            pieces.clear()
        elif element == "row":
            row, column = {}, -1
        elif element == "rPh":
            aside = True
        reading = (element == "v" and kind != "inlineStr") or (element == "t" and kind == "inlineStr" and not aside)

    def end(element: str) -> None:
        nonlocal reading, aside
        element = element.rpartition(":")[2]
        reading = False
        if element == "c" and pieces:
            row[column] = _find_value("".join(pieces), kind, style, texts, formats)
        elif element == "row" and row:
            rows.append(row)
        elif element == "rPh":
            aside = False

    def text(piece: str) -> None:
        if reading:
            pieces.append(piece)

    _parse(archive, name, start, end, text)
    return rows


def _number_column(letters: str) -> int:
    """0 for ``A``, 26 for ``AA``."""
    number = 0
    if not 1 <= len(letters) <= 3:
        raise ValueError(f"a cell is in column {letters[:20]!r}")
    for letter in letters.upper():
        if not "A" <= letter <= "Z":
            raise ValueError(f"a cell is in column {letters!r}")
        number = 26 * number + ord(letter) - ord("A") + 1
    return number - 1


def _find_value(text: str, kind: str, style: int, texts: list[str], formats: Formats) -> Any:
    if kind == "n":
        number = float(text) if "." in text or "E" in text or "e" in text else int(text)
        return number if style not in formats.dates else _find_date(number, style, formats)
    if kind == "s":
        place = int(text)
        if place < 0:
            raise ValueError(f"a cell names the text {place}")
        return texts[place]
    if kind == "b":
        return bool(int(text))
    if kind == "d":
        from openpyxl.utils.datetime import from_ISO8601

        return from_ISO8601(text)
    return text


def _find_date(number: float, style: int, formats: Formats) -> Any:
    from openpyxl.utils.datetime import from_excel

    try:
        return from_excel(number, formats.epoch, timedelta=style in formats.lengths)
    except (OverflowError, ValueError):
        return "#VALUE!"
