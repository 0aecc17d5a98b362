"""A data set of texts or images as vectors of an encoder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ally.data import KINDS
from ally.data.catalogue import DATASETS, Dataset
from ally.data.encoders import encode, open_encoder
from ally.errors import InputError
from ally.experiment.trial import Trial
from ally.types import Progress


def encoded_trial(data: Dataset, encoder: str, kept_in: Path, progress: Progress | None = None) -> Trial:
    """The data with vectors (n, width) in place of samples, kept in the folder `kept_in`."""
    if data.vectors:
        raise InputError.about("encoder", encoder, "is given and so are embeddings; leave one out")
    kind = KINDS[data.kind].encoder
    if kind is None:
        raise InputError.about("encoder", encoder, f"encodes texts or images, and {data.name} is a table; leave it out")
    model = open_encoder(encoder, kind)
    sides: tuple[Any, Any] = (data.pool, data.test) if data.raw is None else data.raw
    pool, test = (encode(model, side, cache=kept_in, progress=progress) for side in sides)
    note = f"samples are {model.width} numbers that the encoder {Path(encoder).name} makes of each"
    # What the catalogue says of its texts and images is about features that are not used here.
    read = () if data.name in DATASETS else data.notes
    notes, name = (*read, note), Path(encoder).name
    # What a campaign of the same texts gives `auto` beside their vectors.
    words = (data.pool, data.test) if KINDS[data.kind].beside_encoder == "joined" else None
    arrays: tuple[Any, Any, Any, Any] = (pool, data.pool_labels, test, data.test_labels)
    return Trial(data.name, data.task, *arrays, notes=notes, vectors=True, words=words, encoder=name)
