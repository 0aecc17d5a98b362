"""Small pieces of HTML. All text is escaped here."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, NamedTuple


class TableCell(NamedTuple):
    """A table cell: its text, its sort key (the text if None), and a CSS class."""

    text: str
    key: float | None = None
    look: str = ""


def table(
    caption: str, head: Sequence[str], rows: Sequence[Sequence[TableCell]], *, words: Sequence[int] = (0,)
) -> str:
    """A table that scrolls on its own and sorts on a click in its header; `words` are the columns that hold text."""
    titles = "".join(
        f'<th scope="col"{_class("words" if place in words else "")}><button '
        f'type="button">{escape(title)}</button></th>'
        for place, title in enumerate(head)
    )
    body = "".join(
        f"<tr>{''.join(_cell(cell, place, place in words) for place, cell in enumerate(row))}</tr>" for row in rows
    )
    # A scrolling region must be reachable by keyboard.
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table '
        'class="sortable"><caption><span>'
        f"{escape(caption)}</span></caption><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cell(cell: TableCell, place: int, words: bool) -> str:
    key = "" if cell.key is None or math.isnan(cell.key) else f' data-key="{cell.key!r}"'
    kind = _class(" ".join(filter(None, ["words" if words else "", cell.look])))
    if place == 0:
        return f'<th scope="row"{kind}{key}>{escape(cell.text)}</th>'
    return f"<td{kind}{key}>{escape(cell.text)}</td>"


def _class(names: str) -> str:
    return f' class="{escape(names)}"' if names else ""


def paragraph(text: str, look: str = "") -> str:
    return f"<p{_class(look)}>{escape(text)}</p>"


def bullets(texts: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ul>"


def facts(pairs: Mapping[str, str]) -> str:
    return f"<dl>{''.join(f'<dt>{escape(name)}</dt><dd>{escape(value)}</dd>' for name, value in pairs.items())}</dl>"


def embedded_json(identity: str, value: Any) -> str:
    """Data for the page's script, escaped so that no text can end the element."""
    text = (
        json.dumps(value, allow_nan=False, separators=(",", ":"))
        .replace("<", "\\u003c")
        .replace(">", "\\u003e")
        .replace("&", "\\u0026")
    )
    return f'<script type="application/json" id="{escape(identity)}">{text}</script>'
