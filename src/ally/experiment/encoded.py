"""A data set of texts or images as vectors of an encoder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ally.data.catalogue import DATASETS, Dataset
from ally.data.encoders import EncoderKind, encode, open_encoder
from ally.errors import InputError
from ally.experiment.trial import Trial
from ally.types import Progress

KINDS: dict[str, EncoderKind] = {"text": "text", "images": "image"}


def encoded_trial(data: Dataset, encoder: str, kept_in: Path, progress: Progress | None = None) -> Trial:
    """The data with vectors (n, width) in place of samples, kept in the folder `kept_in`."""
    if data.vectors:
        raise InputError.about("encoder", encoder, "is given and so are embeddings; leave one out")
    if data.kind not in KINDS:
        raise InputError.about("encoder", encoder, f"encodes texts or images, and {data.name} is a table; leave it out")
    model = open_encoder(encoder, KINDS[data.kind])
    sides: tuple[Any, Any] = (data.pool, data.test) if data.raw is None else data.raw
    pool, test = (encode(model, side, cache=kept_in, progress=progress) for side in sides)
    note = f"samples are {model.width} numbers that the encoder {Path(encoder).name} makes of each"
    # What the catalogue says of its texts and images is about features that are not used here.
    read = () if data.name in DATASETS else data.notes
    notes, name = (*read, note), Path(encoder).name
    return Trial(
        data.name, data.task, pool, data.pool_labels, test, data.test_labels, notes, vectors=True, encoder=name
    )
