"""The encoder of samples: which one unless it is named, how it is found again, and where its vectors are kept."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ally.catalogue_names import ANY_SHAPE, MODELS
from ally.data.encoders.base import Encoder
from ally.data.encoders.image import ImageModel
from ally.data.encoders.opening import (
    DEFAULTS,
    default_encoder,
    open_encoder,
    open_installed,
    open_named,
    suggestion,
)
from ally.data.encoders.samples import WORDS, EncodedSamples, ensure_same
from ally.data.encoders.text import TextModel
from ally.data.fingerprint import ENCODED
from ally.data.samples import Samples
from ally.errors import InputError

AUTO, NONE = "auto", "none"
VARIABLE = "ALLY_ENCODER"
"""The environment variable with the encoder that "auto" stands for; "none" for no encoder."""


def encode_samples(
    samples: Samples, given: Any, model: str | None, embeddings: Any, kept_in: Path | None, folder: Path | None
) -> Samples:
    """Samples through the encoder that was `given`, or as they are: of a new campaign, or of a benchmark. Vectors are
    kept in `kept_in`; `folder` is that of the campaign's file.

    "auto" is the encoder on this machine for texts or photos; none where vectors are given, or a network of pixels.
    """
    encoder, name = _chosen(samples, given, model, embeddings)
    if encoder is None:
        return samples
    about: dict[str, Any] = {"name": name, "identity": encoder.identity, "width": encoder.width}
    if samples.kind.beside_encoder == "joined":
        about[WORDS] = True
    if isinstance(encoder, (TextModel, ImageModel)) and isinstance(given, (str, Path)) and encoder.folder.given:
        about["folder"] = _kept_folder(encoder.folder.path, folder)
    elif not isinstance(given, (str, Path)):
        about["in memory"] = True
    return EncodedSamples(samples, about, lambda: encoder, kept_in)


def _chosen(samples: Samples, given: Any, model: str | None, embeddings: Any) -> tuple[Encoder | None, str]:
    if given is None or given == NONE:
        return None, ""
    kind = samples.kind.encoder
    if isinstance(given, str) and given == AUTO:
        named = os.environ.get(VARIABLE, AUTO)
        if kind is None or named == NONE or embeddings is not None or reads_pixels(model):
            return None, ""
        name = default_encoder(kind) if named == AUTO else named
        return (None, "") if name is None else (open_encoder(name, kind), name)
    if kind is None:
        raise InputError.about(
            "encoder",
            given,
            "encodes texts or photos, and the samples are neither; leave it out, or pass "
            "texts as a list and pictures as a folder",
        )
    if embeddings is not None:
        raise InputError.about("encoder", given, "is given and so are embeddings; the learner reads one: leave one out")
    encoder = open_encoder(given, kind)
    return encoder, str(getattr(encoder, "name", encoder.identity))


def reads_pixels(model: str | None) -> bool:
    """Whether a model is a network that reads images only."""
    return model in MODELS and model not in ANY_SHAPE


def encoded_again(
    samples: Samples,
    fingerprint: Mapping[str, Any],
    given: Any,
    kept_in: Path | None,
    folder: Path | None,
    *,
    allowed: Mapping[str, Any] | None = None,
) -> Samples:
    """The samples through the encoder that a fingerprint names, if it names one. `given` is an encoder from memory.
    `allowed` is what this machine's user allowed a fingerprint to name; any other may name an encoder that is
    installed, which is neither fetched nor read from a folder."""
    about = fingerprint.get(ENCODED)
    if about is None:
        if given is not None:
            raise InputError.about("encoder", given, "is given and the campaign was made without one; leave it out")
        return samples
    kind = samples.kind.encoder
    if kind is None:
        raise InputError(f"the samples are {samples.kind.words[1]}, which no encoder reads; open the campaign's source")

    def found() -> Encoder:
        if given is not None:
            return open_encoder(given, kind)
        if about.get("in memory"):
            raise InputError(
                f"the encoder {about['name']!r} of the campaign lived in memory; pass it again: Campaign.open(place, "
                "encoder=...)"
            )
        if dict(about) != (None if allowed is None else dict(allowed)) or about["name"] in DEFAULTS.values():
            return open_installed(about["name"] if "folder" not in about else about["folder"], kind)
        if "folder" in about:
            return open_encoder(Path(about["folder"]) if folder is None else folder / about["folder"], kind)
        return open_named(about["name"], kind)

    if given is not None:
        ensure_same(open_encoder(given, kind), about)
    return EncodedSamples(samples, about, found, kept_in)


def _kept_folder(path: Path, folder: Path | None) -> str:
    path = Path(os.path.abspath(path))
    return path.relative_to(folder).as_posix() if folder is not None and path.is_relative_to(folder) else str(path)


def missing_encoder(samples: Samples, model: str | None, embeddings: Any) -> str | None:
    """What samples without an encoder would gain from installing one, in words."""
    kind = samples.kind.encoder
    unwanted = embeddings is not None or reads_pixels(model) or os.environ.get(VARIABLE) == NONE
    if kind is None or isinstance(samples, EncodedSamples) or unwanted or default_encoder(kind) is not None:
        return None
    return suggestion(kind)
