"""The mix of a query: held-out samples to measure with, random samples to compare with, and the model's choice."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from ally.campaign.settings import Settings, current_settings
from ally.campaign.values import AskedSample, CampaignQuery
from ally.checks import check_count
from ally.data.ids import SampleId
from ally.errors import PoolExhausted
from ally.store import Store, StoredQuery
from ally.store.values import AskKind


def ask(store: Store, annotator: str, n: int | None, now: float, key: str | None, at_most: bool) -> StoredQuery:
    """See `Campaign.ask`."""
    return store.together(lambda: _ask(store, annotator, n, now, key, at_most))


def _ask(store: Store, annotator: str, n: int | None, now: float, key: str | None, at_most: bool) -> StoredQuery:
    settings = current_settings(store)
    count = settings.batch if n is None else check_count("n", n)
    parts = partial(composition, settings, count)
    lease, opinions = settings.lease_seconds, settings.opinions
    try:
        return store.ask(annotator, count, now, lease, key, first=parts, opinions=opinions)
    except PoolExhausted:
        # The pool is used up: only held-out samples are left.
        return store.ask(
            annotator,
            count,
            now,
            lease,
            key,
            first=lambda number: {**parts(number), "evaluate": count, "validate": count},
            at_most=at_most,
            opinions=opinions,
        )


def describe_query(stored: StoredQuery, show_id: Callable[[str], SampleId]) -> CampaignQuery:
    """A query as its asker sees it, with ids as they came."""
    samples = tuple(
        AskedSample(show_id(asked.id), asked.kind, asked.score, asked.why or {}) for asked in stored.samples
    )
    return CampaignQuery(stored.number, stored.annotator, samples, stored.until, stored.model, stored.total)


def composition(settings: Settings, n: int, number: int) -> dict[AskKind, int]:
    """At most how many of the `n` samples of query `number` (1, 2, …) are of each kind; the rest are active.

    Shares hold over queries of equal size: with a share of a quarter and one sample per query, every fourth query is a
    held-out sample.
    """
    held_out = settings.held_out + settings.validation
    shares: dict[AskKind, float] = {
        "evaluate": settings.held_out_share * settings.held_out / held_out if held_out else 0.0,
        "validate": settings.held_out_share * settings.validation / held_out if held_out else 0.0,
        "random": settings.random_share,
    }
    # Phases: in queries of one sample, two kinds with equal shares would always be due together, and one would never
    # get its turn.
    counts = {kind: _due(share, n, number, place / len(shares)) for place, (kind, share) in enumerate(shares.items())}
    return {kind: count for kind, count in counts.items() if count}


def _due(share: float, n: int, number: int, phase: float) -> int:
    """How many this query gets if `share` of all samples asked so far should be of a kind."""
    return math.floor(number * n * share + phase + 1e-9) - math.floor((number - 1) * n * share + phase + 1e-9)
