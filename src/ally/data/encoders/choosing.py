"""The encoder that samples are seen through: the one that was asked for, or the one of this machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ally.catalogue_names import ANY_SHAPE, MODELS
from ally.data.encoders.base import Encoder
from ally.data.encoders.image import ImageModel
from ally.data.encoders.opening import default_encoder, open_encoder
from ally.data.encoders.samples import WORDS, EncodedSamples
from ally.data.encoders.text import TextModel
from ally.data.samples import Samples
from ally.errors import InputError

AUTO, NONE = "auto", "none"
VARIABLE = "ALLY_ENCODER"
"""The environment variable with the encoder that "auto" stands for; "none" for no encoder."""


def encode_samples(
    samples: Samples, wanted: Any, model: str | None, embeddings: Any, kept_in: Path | None, folder: Path | None
) -> Samples:
    """The samples through the encoder that is `wanted`, or as they are. Vectors are kept in `kept_in`; `folder` is that
    of the campaign's file.

    "auto" is the encoder on this machine for texts or photos; none where vectors are given, or a network of pixels.
    """
    encoder, name = _choose_encoder(samples, wanted, model, embeddings)
    if encoder is None:
        return samples
    about: dict[str, Any] = {"name": name, "identity": encoder.identity, "width": encoder.width}
    if samples.kind.beside_encoder == "joined":
        about[WORDS] = True
    if isinstance(encoder, (TextModel, ImageModel)) and isinstance(wanted, (str, Path)) and encoder.folder.given:
        about["folder"] = _kept_folder(encoder.folder.path, folder)
    elif not isinstance(wanted, (str, Path)):
        about["in memory"] = True
    return EncodedSamples(samples, about, lambda: encoder, kept_in)


def _choose_encoder(samples: Samples, wanted: Any, model: str | None, embeddings: Any) -> tuple[Encoder | None, str]:
    if wanted is None or wanted == NONE:
        return None, ""
    kind = samples.kind.encoder
    if isinstance(wanted, str) and wanted == AUTO:
        named = os.environ.get(VARIABLE, AUTO)
        if kind is None or named == NONE or embeddings is not None or reads_pixels(model):
            return None, ""
        name = default_encoder(kind) if named == AUTO else named
        return (None, "") if name is None else (open_encoder(name, kind), name)
    if kind is None:
        raise InputError.about(
            "encoder",
            wanted,
            "encodes texts or photos, and the samples are neither; leave it out, or pass "
            "texts as a list and pictures as a folder",
        )
    if embeddings is not None:
        raise InputError.about(
            "encoder", wanted, "is given and so are embeddings; the learner reads one: leave one out"
        )
    encoder = open_encoder(wanted, kind)
    return encoder, str(getattr(encoder, "name", encoder.identity))


def reads_pixels(model: str | None) -> bool:
    """Whether a model is a network that reads images only."""
    return model in MODELS and model not in ANY_SHAPE


def _kept_folder(path: Path, folder: Path | None) -> str:
    path = Path(os.path.abspath(path))
    return path.relative_to(folder).as_posix() if folder is not None and path.is_relative_to(folder) else str(path)
