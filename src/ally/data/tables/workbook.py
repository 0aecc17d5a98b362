"""The first sheet of an .xlsx file, read as a stream: styles, drawings, names, links and formulas are passed over.

A workbook is a zip of XML. Both can hold far more than they weigh: what the archive unpacks to is bounded, document
types (and with them entities) are refused, and a cell far to the right makes no row of empty ones.
"""

from __future__ import annotations

import posixpath
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element, iterparse
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
"""Pieces of one text, and formats of cells, that a workbook may list; programs write at most 65 490 formats."""
FORMAT = 255
"""Characters of a format of numbers."""

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
    try:
        import openpyxl  # noqa: F401
    except ImportError as error:
        raise MissingPart("reading .xlsx needs openpyxl: pip install 'ally-learn[xlsx]'") from error
    with open_archive(path, "a workbook") as archive:
        ensure_unpacked_fits(path, count_unpacked(archive), path.stat().st_size, UNPACKED, RATIO)
        parts = _list_relations(archive, "")
        book = next((part.name for part in parts.values() if part.kind == "officeDocument"), "xl/workbook.xml")
        parts = _list_relations(archive, book)
        sheets, since_1904 = [], False
        for _, element in _find_elements(archive, book, "sheet", "workbookPr"):
            since_1904 |= element.get("date1904") in ("1", "true")
            sheets += [value for name, value in element.items() if _local(name) == "id"]
        sheet = next((parts[id].name for id in sheets if id in parts and parts[id].kind == "worksheet"), None)
        if sheet is None:
            return []
        others = {part.kind: part.name for part in parts.values()}
        texts = []
        if "sharedStrings" in others:
            texts = [
                _join_text(element).replace("x005F_", "")
                for _, element in _find_elements(archive, others["sharedStrings"], "si")
            ]
        return _read_cells(archive, sheet, texts, _read_formats(archive, others.get("styles"), since_1904))


def _list_relations(archive: zipfile.ZipFile, of: str) -> dict[str, BookPart]:
    """By id, those of a part, or of the whole where it is empty."""
    folder, name = posixpath.split(of)
    place = posixpath.join(folder, "_rels", f"{name}.rels")
    if place not in archive.namelist():
        return {}
    return {
        one.attrib["Id"]: BookPart(
            one.attrib["Type"].rpartition("/")[2],
            posixpath.normpath(posixpath.join("/", folder, one.attrib["Target"])).lstrip("/"),
        )
        for _, one in _find_elements(archive, place, "Relationship")
    }


def _find_elements(archive: zipfile.ZipFile, name: str, *wanted: str) -> Iterator[tuple[str, Element]]:
    """Elements of a part in the order of their ends, each with the name of the element around it. One that is wanted
    has what it holds, but for wanted ones inside; nothing else stays in memory."""
    _refuse_document_type(archive, name)
    around: list[Element] = []
    inside = pieces = 0
    with archive.open(name) as stream:
        for event, element in iterparse(stream, ("start", "end")):
            tag = _local(element.tag)
            is_wanted = tag in wanted
            if event == "start":
                around.append(element)
                inside += is_wanted
                pieces += 1
                if pieces > ELEMENTS:
                    raise ValueError(f"{name} has an entry of more than {ELEMENTS} pieces")
                continue
            around.pop()
            inside -= is_wanted
            if is_wanted:
                yield _local(around[-1].tag) if around else "", element
            if around and (is_wanted or not inside):
                around[-1].remove(element)
                pieces = 0


@lru_cache
def _local(name: str) -> str:
    """A name without its name space."""
    return name.rpartition("}")[2]


def _refuse_document_type(archive: zipfile.ZipFile, name: str) -> None:
    """Entities are declared in one, before the first element."""
    begun = False

    def refuse(*_: object) -> None:
        raise ValueError(f"{name} declares a document type, which no workbook needs")

    def begin(*_: object) -> None:
        nonlocal begun
        begun = True

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = begin
    with archive.open(name) as stream:
        while not begun and (block := stream.read(2**12)):
            parser.Parse(block)


def _join_text(element: Element) -> str:
    """Its runs, without the ones that say how it is pronounced."""
    return "".join(run.text or "" for path in ("{*}t", "{*}r/{*}t") for run in element.iterfind(path))


def _read_formats(archive: zipfile.ZipFile, name: str | None, since_1904: bool) -> Formats:
    from openpyxl.styles.numbers import builtin_format_code, is_date_format, is_timedelta_format
    from openpyxl.utils.datetime import CALENDAR_MAC_1904, CALENDAR_WINDOWS_1900

    own: dict[int, str] = {}
    numbers: list[int] = []
    for around, element in () if name is None else _find_elements(archive, name, "numFmt", "xf"):
        if around == "numFmts":
            own[int(element.attrib["numFmtId"])] = element.attrib["formatCode"][:FORMAT]
        elif around == "cellXfs":
            numbers.append(int(element.get("numFmtId", 0)))
        if len(numbers) + len(own) > ELEMENTS:
            raise ValueError(f"{name} lists more than {ELEMENTS} formats")
    codes = [own.get(number) or builtin_format_code(number) for number in numbers]
    return Formats(
        frozenset(place for place, code in enumerate(codes) if is_date_format(code)),
        frozenset(place for place, code in enumerate(codes) if is_timedelta_format(code)),
        CALENDAR_MAC_1904 if since_1904 else CALENDAR_WINDOWS_1900,
    )


def _read_cells(archive: zipfile.ZipFile, name: str, texts: list[str], formats: Formats) -> list[Cells]:
    rows: list[Cells] = []
    row: Cells = {}
    column = -1
    for _, element in _find_elements(archive, name, "c", "row"):
        if _local(element.tag) == "row":
            rows += [row] if row else []
            row, column = {}, -1
            continue
        place = element.get("r")
        column = column + 1 if place is None else _number_column(place.rstrip("0123456789"))
        if column >= COLUMNS:
            raise ValueError(f"a cell is in column {column + 1}; a sheet has {COLUMNS}")
        value = _find_value(element, texts, formats)
        if value is not None:
            row[column] = value
    return rows


@lru_cache
def _number_column(letters: str) -> int:
    """0 for ``A``, 26 for ``AA``."""
    if not 1 <= len(letters) <= 3 or not all("A" <= letter <= "Z" for letter in letters.upper()):
        raise ValueError(f"a cell is in column {letters[:20]!r}")
    number = 0
    for letter in letters.upper():
        number = 26 * number + ord(letter) - ord("A") + 1
    return number - 1


def _find_value(cell: Element, texts: list[str], formats: Formats) -> Any:
    """None if the cell is empty."""
    kind = cell.get("t", "n")
    if kind == "inlineStr":
        text = "".join(map(_join_text, cell))
    else:
        text = next((part.text or "" for part in cell if _local(part.tag) == "v"), "")
    if not text:
        return None
    if kind == "n":
        number = float(text) if "." in text or "E" in text or "e" in text else int(text)
        style = int(cell.get("s", 0))
        return number if style not in formats.dates else _find_date(number, style in formats.lengths, formats.epoch)
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


def _find_date(number: float, is_length: bool, epoch: Any) -> Any:
    from openpyxl.utils.datetime import from_excel

    try:
        return from_excel(number, epoch, timedelta=is_length)
    except (OverflowError, ValueError):
        return "#VALUE!"
