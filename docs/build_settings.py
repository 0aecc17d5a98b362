"""Writes the table of settings into docs/campaign.md, from their declarations: ``make docs``."""

from __future__ import annotations

from pathlib import Path

from ally.campaign.settings import declarations

PAGE = Path(__file__).parent / "campaign.md"
MARKS = "<!-- settings: written by docs/build_settings.py -->", "<!-- end of settings -->"


def table() -> str:
    """One row per setting; what may change later is marked."""
    rows = ["| setting | default | may change | what it is |", "|---|---|---|---|"]
    rows += [
        f"| `{item.name}` | `{item.default!r}` | {'no' if item.fixed else 'yes'} | {item.meaning} |"
        for item in declarations()
    ]
    return "\n".join(rows)


def page(text: str) -> str:
    before, _, rest = text.partition(MARKS[0])
    return f"{before}{MARKS[0]}\n\n{table()}\n\n{MARKS[1]}{rest.partition(MARKS[1])[2]}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
