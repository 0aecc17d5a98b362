"""Remarks of annotators about samples: kept on record beside the answers, and handed out with the labels."""

from __future__ import annotations

from collections.abc import Mapping

from ally.errors import InputError
from ally.store import Store
from ally.store.validation import check_annotator, check_key
from ally.types import find_text_fault

NOTE = "note"
"""The kind of event that holds one."""
LONGEST_NOTE = 2000


def keep(store: Store, now: float, id: str, text: str, annotator: str, key: str | None = None) -> None:
    """An empty text takes the last one back. The same `key` again changes nothing."""
    store.samples.rows([id])
    fault = find_text_fault(text, LONGEST_NOTE) if isinstance(text, str) else "is no text"
    if fault is not None:
        raise InputError(f"the note {fault}")
    detail = {"sample": id, "annotator": check_annotator(annotator), "text": text}
    check_key(key)
    if key is not None:
        if any(one["annotator"] == annotator and one.get("key") == key for one in _kept(store)):
            return
        detail["key"] = key
    store.log(now, NOTE, detail)


def notes(store: Store) -> dict[str, dict[str, str]]:
    """By id, the last remark of each annotator."""
    found: dict[str, dict[str, str]] = {}
    for detail in _kept(store):
        found.setdefault(detail["sample"], {})[detail["annotator"]] = detail["text"]
    kept = {id: {who: text for who, text in said.items() if text} for id, said in found.items()}
    return {id: said for id, said in kept.items() if said}


def in_a_line(said: Mapping[str, str]) -> str:
    """The remarks about one sample; several with who made each."""
    if len(said) == 1:
        return next(iter(said.values()))
    return "; ".join(f"{who}: {text}" for who, text in said.items())


def _kept(store: Store) -> list[Mapping[str, str]]:
    return [event.detail for event in store.events() if event.kind == NOTE]
