"""Texts as names of files and folders, and back."""

from __future__ import annotations

import unicodedata
from urllib.parse import unquote

from ally.errors import LabelError

KEPT = frozenset(" -_.,()+&@!~")
RESERVED = frozenset(
    {"CON", "PRN", "AUX", "NUL", *(f"{port}{number}" for port in ("COM", "LPT") for number in range(1, 10))}
)
"""Names that one operating system gives to devices."""
LONGEST = 255


def file_name(text: str) -> str:
    """A safe name: what is not a letter, a digit or a harmless mark is written as ``%`` and two digits per byte."""
    if not text:
        raise LabelError("an empty text cannot be the name of a folder or a file; rename the class, or export to CSV")
    composed = unicodedata.normalize("NFC", text) == text
    found = [char if _safe(char, composed) else _escaped(char) for char in text]
    if text[0] in ". -" or text.split(".")[0].upper() in RESERVED:
        found[0] = _escaped(text[0])
    if text[-1] in ". ":
        found[-1] = _escaped(text[-1])
    name = "".join(found)
    if len(name.encode()) > LONGEST:
        raise LabelError(
            f"{text[:40]!r}… is too long for the name of a file ({len(name.encode())} bytes of {LONGEST}); export to "
            "CSV instead"
        )
    return name


def text_of(name: str) -> str:
    """What `file_name` was given; a name it would not have made is left as it is."""
    try:
        text = unquote(name, errors="strict")
        return text if file_name(text) == name else name
    except (UnicodeDecodeError, LabelError):
        return name


def _safe(char: str, composed: bool) -> bool:
    return (char.isascii() and char.isalnum()) or char in KEPT or (composed and not char.isascii() and char.isalnum())


def _escaped(char: str) -> str:
    return "".join(f"%{byte:02X}" for byte in char.encode("utf-8"))
