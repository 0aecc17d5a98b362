"""The page as one text."""

from __future__ import annotations

from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

from ally import selection
from ally.cards import (
    CARDS,
    FAMILIES,
    OBJECTIVE_CARDS,
    SELECTION_CARDS,
    SYMBOLS,
    Card,
    Reference,
    parameters_of,
    source_of,
    summary_of,
)
from ally.hygiene import Hygiene
from ally.learning.objectives import OBJECTIVES
from ally.strategies import CATALOGUE
from strategies_page import words
from strategies_page.measured import measured, table


def page(results: Path) -> str:
    """docs/strategies.md, with the tables of what was measured in the folder `results`."""
    lines = [
        words.INTRODUCTION,
        "## All at a glance",
        "",
        *_glance(),
        "",
        words.GLANCE,
        *(f"- {letter}: {meaning}" for letter, meaning in SYMBOLS.items()),
        "",
        words.FIGURE,
        "## The families",
        "",
        words.NOTATION,
    ]
    for family, meaning in FAMILIES.items():
        lines += [f"### {family.capitalize()}", "", f"{meaning[0].upper()}{meaning[1:]}.", ""]
        for name in _members(family):
            lines += _card(name, CARDS[name])
    lines += ["## Training objectives", "", words.OBJECTIVES, *_objectives()]
    lines += ["## Batches of any score", "", words.SELECTIONS, *_selections()]
    lines += ["## Pool hygiene", "", words.HYGIENE, *_parameters([Hygiene()]), ""]
    lines += ["## Parameters", "", words.PARAMETERS, *_all_parameters()]
    lines += ["## Measured", "", *measured(results)]
    return "\n".join(lines).rstrip() + "\n"


def _members(family: str) -> list[str]:
    """Strategies of a family in the order of the cards."""
    return [name for name, card in CARDS.items() if card.family == family]


def _glance() -> list[str]:
    rows = [
        [
            family,
            f"[`{name}`](#{name})",
            _tasks(name),
            ", ".join(CATALOGUE[name].needs),
            CARDS[name].cost.time,
            CARDS[name].use_when,
        ]
        for family in FAMILIES
        for name in _members(family)
    ]
    return table(["family", "strategy", "tasks", "needs", "cost", "use it when"], rows)


def _tasks(name: str) -> str:
    tasks = CATALOGUE[name].tasks
    return "both" if len(tasks) == 2 else min(tasks)


def _card(name: str, card: Card) -> list[str]:
    entry = CATALOGUE[name]
    parts = {"objective": entry.objective, "score": entry.score, "select": entry.select}
    made = ", ".join(f"{axis} `{part if isinstance(part, str) else source_of(part)}`" for axis, part in parts.items())
    facts = [
        f"**Use it when:** {card.use_when}",
        f"**Tasks:** {', '.join(sorted(entry.tasks))}. **Needs:** {', '.join(entry.needs) or 'nothing'}.",
        f"**Time:** {card.cost.time}. **Memory:** {card.cost.memory}.",
        f"**Parts:** {made} ([parameters](#parameters)).",
    ]
    return [
        f"#### {name}",
        "",
        f"Picks: {entry.about}.",
        "",
        *_equation(card.equation),
        *([card.meaning, ""] if card.meaning else []),
        *_list([*facts, *_sources(card.references)]),
    ]


def _objectives() -> list[str]:
    lines: list[str] = []
    for name, objective in OBJECTIVES.items():
        card = OBJECTIVE_CARDS[name]
        facts = [f"**Use it when:** {card.use_when}", f"**Takes beyond plain training:** {card.extra}."]
        facts += [f"**Parts:** `{source_of(objective)}` ([parameters](#parameters)).", *_sources(card.references)]
        lines += [f"### Objective {name}", "", *_equation(card.equation), *_list(facts)]
    return lines


def _selections() -> list[str]:
    lines: list[str] = []
    for name, card in SELECTION_CARDS.items():
        facts = [f"**Use it when:** {card.use_when}", f"**The score:** {card.score}."]
        facts += [f"**Time:** {card.cost.time}. **Memory:** {card.cost.memory}.", *_sources(card.references)]
        lines += [f"### Selection {name}", "", *_equation(card.equation), *_list(facts)]
    return lines


def _all_parameters() -> list[str]:
    """Every kind of part that an entry of the catalogue or a card has, once."""
    axes: dict[str, list[Any]] = {
        "Scores": [entry.score for entry in CATALOGUE.values()],
        "Selections": [
            *(getattr(selection, name)() for name in SELECTION_CARDS),
            *(entry.select for entry in CATALOGUE.values()),
        ],
        "Objectives": list(OBJECTIVES.values()),
    }
    lines: list[str] = []
    for title, parts in axes.items():
        kinds = dict.fromkeys(type(part) for part in parts)
        lines += [f"### {title}", "", *_parameters([kind() for kind in kinds]), ""]
    known = [part for parts in axes.values() for part in parts]
    inner = [value for part in known for value in vars(part).values() if is_dataclass(value)]
    kinds = dict.fromkeys(type(value) for value in inner if type(value) not in {type(part) for part in known})
    return [*lines, "### Parts of parts", "", *_parameters([kind() for kind in kinds]), ""]


def _parameters(parts: list[Any]) -> list[str]:
    rows = []
    for part in parts:
        name = f"`{type(part).__name__}`"
        parents = [other for other in parts if type(other) is not type(part) and isinstance(part, type(other))]
        alike = "".join(f" Parameters as for `{type(other).__name__}`." for other in parents)
        rows.append([name, "", "", summary_of(part) + alike])
        inherited = {item for other in parents for item in parameters_of(other)}
        own = [item for item in parameters_of(part) if item not in inherited]
        rows += [["", f"`{item.name}`", f"`{item.default}`", item.about] for item in own]
    return table(["part", "parameter", "default", "meaning"], rows)


def _equation(equation: str) -> list[str]:
    return ["```text", *equation.split("\n"), "```", ""]


def _sources(references: tuple[Reference, ...]) -> list[str]:
    return [f"{r.authors}: *{r.title}*. {r.venue}, {r.year}." for r in references]


def _list(items: list[str]) -> list[str]:
    return [*(f"- {item}" for item in items), ""]
