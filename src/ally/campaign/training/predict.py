"""Predicted labels for unlabelled samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ally.campaign.source import CampaignSource
from ally.campaign.training.models import check_about, origin
from ally.data import Samples, open_source
from ally.data.encoders.choosing import encoded_again
from ally.data.encoders.samples import seen_by
from ally.errors import DataError, InputError
from ally.learning.trained import Trained

BEYOND = "beyond_labels"
"""Column for predicted numbers: yes if one is outside the range of the training labels."""


def predict(
    trained: Trained,
    source: Any,
    options: Mapping[str, Any],
    *,
    campaign: CampaignSource | None = None,
    encoder: Any = None,
    probabilities: bool = False,
) -> pd.DataFrame:
    """Every readable sample of a source of the kind that the model was trained on; ``attrs["problems"]`` says what
    could not be read. `campaign` is the source of the model's campaign: its encoder is used, and vectors are kept with
    the others. Without one, an encoder that is not on this machine is passed as `encoder`."""
    check_about(trained)
    fingerprint = trained.about.get("fingerprint")
    if fingerprint is None:
        raise InputError("the model has no record of how its features were made; use one from a campaign")
    if campaign is not None:
        options = {**campaign.kind_option(), **options}
    samples = open_source(
        source, **options, known={**fingerprint, "label": None} if "label" in fingerprint else fingerprint, other=True
    )
    if campaign is None:
        samples = encoded_again(samples, fingerprint, encoder, None, None)
    else:
        samples = campaign.encode(samples, fingerprint)
    ids = [sample.id for sample in samples.scan()]
    table = predict_samples(trained, samples, ids, probabilities=probabilities)
    table.attrs["problems"] = [f"{problem.id}: {problem.reason}" for problem in samples.problems]
    return table


def predict_samples(
    trained: Trained, samples: Samples, ids: Sequence[str], *, probabilities: bool = False
) -> pd.DataFrame:
    """Columns id, label and, for classes, probability, with `probabilities` that of each class too; for numbers,
    whether they are beyond the labels seen. ``attrs["notes"]`` says what to be careful about, ``attrs["model"]`` on how
    many labels the model was trained."""
    if not ids:
        raise DataError("there is nothing to predict; every sample is labelled, or gone")
    seen = trained.look(seen_by(samples, trained.about).features(ids))
    labels = trained.code.decode(seen.predictions.numpy())
    table = pd.DataFrame({"id": list(ids), "label": labels.tolist()})
    notes: list[str] = []
    if seen.probabilities is not None:
        chances = seen.probabilities.double().numpy()
        table["probability"] = chances.max(1)
        if probabilities:
            named = [f"probability of {label}" for label in trained.fit.classes or ()]
            table = pd.concat([table, pd.DataFrame(chances, columns=named)], axis=1)
    elif "range" in trained.about:
        low, high = trained.about["range"]
        beyond = (labels < low) | (labels > high)
        table[BEYOND] = np.where(beyond, "yes", "")
        if beyond.any():
            notes = [
                f"{int(beyond.sum())} of {len(ids)} predictions lie beyond all labels seen ({low:g} to {high:g}), "
                f"marked in the column {BEYOND}: label some samples like these before you trust them"
            ]
    asked = set(ids)
    odd = [f"{one.id}: {one.reason}" for one in samples.problems if one.kind == "value" and one.id in asked]
    if odd:
        notes.append(f"{len(odd)} values are not what the model was trained on, such as {odd[0]}")
    # Unreadable samples were replaced by a neutral one, whose prediction is meaningless.
    broken = {one.id: one.reason for one in samples.problems if one.kind in ("unreadable", "gone")}
    left = table[~table["id"].isin(list(broken))].reset_index(drop=True)
    left.attrs["notes"] = notes
    left.attrs["model"] = origin(trained)
    left.attrs["problems"] = [f"{id}: {reason}" for id, reason in broken.items() if id in set(ids)]
    return left
