"""The encoder of a campaign, found again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ally.campaign.settings import Settings
from ally.data import Samples
from ally.data.encoders import Encoder, default_encoder, open_encoder
from ally.data.encoders.choosing import NONE, VARIABLE, reads_pixels
from ally.data.encoders.opening import DEFAULTS, open_installed, open_named, suggestion
from ally.data.encoders.samples import EncodedSamples, ensure_same
from ally.data.fingerprint import ENCODED
from ally.errors import InputError


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


def missing_encoder(samples: Samples, settings: Settings) -> str | None:
    """What a campaign without an encoder would gain from installing one, in words."""
    kind = samples.kind.encoder
    given = "embeddings" in settings.options or reads_pixels(settings.model)
    unwanted = given or os.environ.get(VARIABLE) == NONE
    if kind is None or settings.encoder is not None or unwanted or default_encoder(kind) is not None:
        return None
    return suggestion(kind)
