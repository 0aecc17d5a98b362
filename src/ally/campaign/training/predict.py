"""Labels for samples that nobody labelled, by a trained model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ally.campaign.encoding import encoded_again
from ally.campaign.source import beside, encoded_folder
from ally.errors import DataError, InputError
from ally.learning.trained import Trained
from ally.sources import Samples, open_source


def predict(
    trained: Trained, source: Any, options: Mapping[str, Any], place: str | Path | None = None, encoder: Any = None
) -> pd.DataFrame:
    """Every readable sample of a source of the kind that the model was trained on; ``attrs["problems"]`` says what
    could not be read. `place` is that of the model's campaign: vectors of its encoder are then kept with the others."""
    fingerprint = trained.about.get("fingerprint")
    if fingerprint is None:
        raise InputError("the model does not know how its features were made; use one of a campaign")
    samples = open_source(
        source, **options, known={**fingerprint, "label": None} if "label" in fingerprint else fingerprint, other=True
    )
    kept_in, folder = (None, None) if place is None else (encoded_folder(place), beside(place))
    samples = encoded_again(samples, fingerprint, encoder, kept_in, folder)
    ids = [sample.id for sample in samples.scan()]
    table = predict_samples(trained, samples, ids)
    table.attrs["problems"] = [f"{problem.id}: {problem.reason}" for problem in samples.problems]
    return table


def predict_samples(trained: Trained, samples: Samples, ids: Sequence[str]) -> pd.DataFrame:
    """Columns id, label and, for classes, probability."""
    if not ids:
        raise DataError("there is nothing to predict; every sample is labelled, or gone")
    labels, probability = trained.predict(samples.features(ids))
    table = pd.DataFrame({"id": list(ids), "label": labels.tolist()})
    if probability is not None:
        table["probability"] = probability
    return table
