"""Encoding before a training: what is labelled first, then as many candidates as time allows.

The worker does not keep annotators waiting for a pool that takes hours to encode. It trains on what is encoded after a
while, so that queries come from a model, and goes on with the rest in the next training.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ally.campaign.training.data import TrainingData
from ally.campaign.training.schedule import UNENCODED
from ally.encoders.samples import EncodedSamples
from ally.sources import Samples
from ally.sources.identity import id_keys
from ally.store import Store
from ally.types import Progress

SECONDS = 60.0
"""A training in the background encodes for so long, or for three times as long as the last training took."""


def encode_first(
    store: Store, samples: Samples, material: TrainingData, progress: Progress | None, at_once: bool
) -> tuple[TrainingData, dict[str, Any]]:
    """The material, with those candidates that are encoded, and what the report says about it."""
    if not isinstance(samples, EncodedSamples):
        return material, {}
    samples.prepare([*material.training.ids, *material.validate.ids, *material.evaluate.ids], progress)
    candidates = material.candidates
    # By a hash of the id: the same random order each time, so that what is encoded stays a random part of the pool.
    order = np.argsort(id_keys(candidates.ids), kind="stable").tolist()
    newest = store.models.newest()
    last = 0.0 if newest is None else float(newest.report.get("seconds", 0.0))
    seconds = None if at_once else max(SECONDS, 3 * last)
    done = samples.prepare([candidates.ids[place] for place in order], progress, seconds)
    notes = list(samples.encoder_notes)
    if done < len(candidates):
        notes.append(f"{done} of {len(candidates)} unlabelled samples are encoded; the others follow")
        material = replace(material, candidates=candidates.at(sorted(order[:done])))
    return material, {UNENCODED: len(candidates) - done, "notes": notes}
