"""Pictures by any Hugging Face image model. Pictures are prepared with Pillow, so torchvision is not needed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from ally.data.encoders.base import EncoderKind, Vectors, plain_sample, unit
from ally.data.encoders.folder import ModelFolder
from ally.data.encoders.pictures import Prepare
from ally.types import AnyArray

FIRST_TOKEN = ("vit", "deit", "dinov2", "dinov2_with_registers", "dinov3_vit")
"""Models whose first token stands for the whole picture; of others the mean over the picture is taken."""


class ImageModel:
    """The folder is looked at now; torch and the weights are loaded with the first batch."""

    def __init__(self, folder: ModelFolder) -> None:
        self.folder = folder
        self._prepare = Prepare.from_config(folder.preprocessing)

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def kind(self) -> EncoderKind:
        return "image"

    @property
    def side(self) -> int:
        return self._prepare.side

    @cached_property
    def identity(self) -> str:
        return f"image {self.folder.digest()} {self._prepare}"

    @cached_property
    def width(self) -> int:
        config = self.folder.read("config.json")
        told = config.get("hidden_size") if config.get("model_type") in FIRST_TOKEN else config.get("projection_dim")
        return told if isinstance(told, int) else int(self.encode([plain_sample("image", self.side)]).shape[1])

    @cached_property
    def _model(self) -> Any:
        return self.folder.load("AutoModel")

    def encode(self, batch: Sequence[AnyArray]) -> Vectors:
        import torch

        pixels = torch.from_numpy(self._prepare(batch))
        with torch.no_grad():
            if hasattr(self._model, "get_image_features"):
                given = self._model.get_image_features(pixel_values=pixels)
                vectors = getattr(given, "pooler_output", given)
            else:
                # Not pooler_output: many folders have no weights for it, and it would be random.
                vectors = self._pooled(self._model(pixel_values=pixels).last_hidden_state)
        return unit(vectors.float().numpy())

    def _pooled(self, states: Any) -> Any:
        """(n, d) of states (n, tokens, d) or (n, d, h, w)."""
        if states.ndim == 4:
            return states.mean((2, 3))
        return states[:, 0] if self._model.config.model_type in FIRST_TOKEN else states.mean(1)

    def __repr__(self) -> str:
        return f"<encoder {self.name}>"
