"""The source looked at again, and what was wrong with single samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ally.campaign.creating import new_sample
from ally.campaign.settings import Settings
from ally.campaign.status import GIVEN
from ally.campaign.values import Scanned
from ally.errors import InputError
from ally.sources import Samples
from ally.store import NewSample, Store
from ally.types import Progress

SOURCE = "source"
"""The kind of event that tells what was found."""
SHOWN = 20


def rescan(
    store: Store, samples: Samples, settings: Settings, labels: Mapping[str, Any], now: float, progress: Progress | None = None
) -> Scanned:
    """New samples join the pool, vanished ones are set aside, those that came back return, and labels that the source has got are taken
    where nobody gave one. `labels` are those of the campaign by how they read."""
    known = {sample.id: sample.gone for sample in store.samples()}
    first = dict(labels)
    there: set[str] = set()

    def new() -> Iterator[NewSample]:
        for sample in samples.scan():
            there.add(sample.id)
            if progress is not None and len(there) % 1000 == 0:
                progress("reading samples", len(there), 0)
            if sample.id not in known or sample.label is not None:
                try:
                    yield new_sample(sample, settings, first)
                except InputError as error:
                    samples.problems.add(sample.id, "value", str(error))
                    yield new_sample(sample._replace(label=None), settings, first)

    added = store.add_samples(new(), now=now, labelled_by=GIVEN)
    gone = store.mark_gone([id for id, was_gone in known.items() if id not in there and not was_gone])
    back = store.mark_back([id for id, was_gone in known.items() if id in there and was_gone])
    met = note_problems(store, samples, now, added=added.samples, gone=gone, back=back, labelled=added.labels)
    return Scanned(added.samples, gone, back, added.labels, met)


def note_problems(store: Store, samples: Samples, now: float, **figures: int) -> tuple[str, ...]:
    """Puts what the scan complained about on record; the first few, in sentences."""
    met = samples.problems
    shown = [f"{problem.id}: {problem.reason}" for problem in met][:SHOWN]
    if len(met) > len(shown):
        shown.append(f"and {len(met) - len(shown)} more")
    store.log(now, SOURCE, {"problems": shown, "counts": dict(met.counts), **figures})
    return tuple(shown)


def problems(store: Store) -> tuple[str, ...]:
    """Those of the last scan."""
    last = [event.detail.get("problems", []) for event in store.events() if event.kind == SOURCE]
    return tuple(last[-1]) if last else ()
