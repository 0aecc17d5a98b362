"""Texts by any Hugging Face text model: the mean of its token vectors, or what its sentence-transformers files say."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ally.data.encoders.base import EncoderKind, Vectors, plain_sample, unit
from ally.data.encoders.folder import ModelFolder
from ally.errors import DataError

LONGEST = 512
"""Tokens of a text that are read, where the model does not say."""
OFFSET = ("roberta", "xlm-roberta", "camembert", "mpnet", "longformer")
"""Models whose first positions are not for tokens."""


class TextModel:
    """The folder is looked at now; torch and the weights are loaded with the first batch."""

    def __init__(self, folder: ModelFolder) -> None:
        self.folder = folder
        self._cut = 0

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def kind(self) -> EncoderKind:
        return "text"

    @cached_property
    def identity(self) -> str:
        length = " unit" if self._unit else ""
        return f"text {self.folder.digest()} {self._pooling or 'projected'}{length} {self.limit} tokens"

    @cached_property
    def width(self) -> int:
        own = "projection_dim" if self._pooling is None else "hidden_size"
        told = self.folder.read("config.json").get(own)
        return told if isinstance(told, int) else int(self.encode([plain_sample("text")]).shape[1])

    @property
    def notes(self) -> tuple[str, ...]:
        if not self._cut:
            return ()
        return (f"{self.name} reads the first {self.limit} tokens of a text; {self._cut} texts are longer",)

    @cached_property
    def limit(self) -> int:
        """Tokens of a text that are read."""
        own = self.folder.read("sentence_bert_config.json").get("max_seq_length")
        config = self.folder.read("config.json")
        config = {**config, **config.get("text_config", {})}
        told = self.folder.read("tokenizer_config.json").get("model_max_length")
        positions = config.get("max_position_embeddings")
        if positions is not None and config.get("model_type") in OFFSET:
            positions -= int(config.get("pad_token_id") or 1) + 1
        return int(
            min(value for value in (own, told, positions, LONGEST) if isinstance(value, (int, float)) and value > 0)
        )

    @cached_property
    def _modules(self) -> dict[str, str]:
        """Folders of the sentence-transformers modules by their kind."""
        listed = self.folder.read("modules.json").get("", [])
        found = {str(module.get("type", "")).rsplit(".", 1)[-1]: str(module.get("path", "")) for module in listed}
        odd = set(found) - {"Transformer", "Pooling", "Normalize"}
        if odd:
            raise DataError(
                f"the model {self.name} has a module {sorted(odd)[0]!r}; Transformer, Pooling and Normalize are known"
            )
        return found

    @cached_property
    def _unit(self) -> bool:
        return "Normalize" in self._modules or self._pooling is None

    @cached_property
    def _pooling(self) -> str | None:
        """``"mean"``, ``"cls"`` or ``"max"``; None where the model itself gives one vector for a text."""
        if "image" in self.folder.kinds:
            return None
        chosen = self.folder.read(f"{self._modules['Pooling']}/config.json") if "Pooling" in self._modules else {}
        modes = {"mean": "mean_tokens", "cls": "cls_token", "max": "max_tokens"}
        on = [name for name, words in modes.items() if chosen.get(f"pooling_mode_{words}")]
        others = [name for name, value in chosen.items() if name.startswith("pooling_mode_") and value is True]
        if len(others) > 1 or (others and not on):
            raise DataError(
                f"the pooling {', '.join(others)} of the model {self.name} is not known; one of mean, cls, max is"
            )
        return on[0] if on else "mean"

    @cached_property
    def _model(self) -> Any:
        return self.folder.load("AutoModel")

    @cached_property
    def _tokenizer(self) -> Any:
        return self.folder.load("AutoTokenizer")

    def encode(self, batch: Sequence[str]) -> Vectors:
        import torch

        # A text from JSON may hold half a surrogate pair, which tokenizers cannot take.
        texts = [text.encode("utf-8", "replace").decode() for text in batch]
        tokens = self._tokenizer(texts, padding=True, truncation=True, max_length=self.limit, return_tensors="pt")
        self._cut += sum(bool(encoding.overflowing) for encoding in tokens.encodings or ())
        with torch.no_grad():
            if self._pooling is None:
                given = self._model.get_text_features(**tokens)
                vectors = getattr(given, "pooler_output", given)
            else:
                vectors = _pooled(self._model(**tokens).last_hidden_state, tokens["attention_mask"], self._pooling)
        found: Vectors = vectors.float().numpy()
        return unit(found) if self._unit else found

    def __repr__(self) -> str:
        return f"<encoder {self.name}>"


def _pooled(states: Any, mask: Any, pooling: str) -> Any:
    """(n, d) of token vectors `states` (n, tokens, d); padding, where `mask` (n, tokens) is 0, does not count."""
    if pooling == "cls":
        return states[:, 0]
    there = mask.unsqueeze(-1).to(states.dtype)
    if pooling == "max":
        return states.masked_fill(there == 0, -np.inf).amax(1)
    return (states * there).sum(1) / there.sum(1).clamp(min=1)
