"""Texts as the tokens that a transformer reads."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ally.data import Source, chunks
from ally.errors import InputError
from ally.types import AnyArray, IntArray


@dataclass(frozen=True)
class Tokenizing:
    """How texts become tokens.

    Attributes:
        tokenizer: of transformers, or any function that is called like one.
        longest: tokens of a text that are read; the rest is cut off.
        length: tokens that each text is filled up to: the longest of the pool, once `prepared`.
    """

    tokenizer: Any = field(repr=False)
    longest: int
    length: int | None = None

    @classmethod
    def of(cls, tokenizer: Any, config: Any, longest: int) -> Tokenizing:
        """Of each text as many tokens as are asked for, and as the tokenizer and the model's `config` allow."""
        limits = (getattr(tokenizer, "model_max_length", None), getattr(config, "max_position_embeddings", None))
        return cls(tokenizer, min([longest, *(limit for limit in limits if isinstance(limit, int) and limit > 0)]))

    def prepare(self, source: Source, rows: IntArray, chunk_size: int | None) -> Tokenizing:
        if self.length is not None:
            return self
        whole = self.open(source)
        return replace(self, length=max(whole.count(rows[chunk]) for chunk in chunks(len(rows), chunk_size)))

    def open(self, source: Source) -> TokenSource:
        if source.numeric or source.shape:
            raise InputError("the model has a tokenizer, and the samples are not texts; pass one text per sample")
        return TokenSource(source, self)

    def encode(self, texts: list[str], padding: str, length: int) -> AnyArray:
        """(n, 2, T) int64: ids, and 1 where a token is; every text has at least one."""
        encoded = self.tokenizer(
            texts, padding=padding, truncation=True, max_length=length, return_attention_mask=True, return_tensors="np"
        )
        tokens = np.stack([encoded["input_ids"], encoded["attention_mask"]], axis=1).astype(np.int64)
        tokens[~tokens[:, 1].any(axis=1), 1, 0] = 1
        return tokens


class TokenSource(Source):
    """Texts of another source as tokens, (2, T) int64 each."""

    def __init__(self, source: Source, tokenizing: Tokenizing) -> None:
        self._source, self._tokenizing = source, tokenizing

    @property
    def shape(self) -> tuple[int, ...]:
        return 2, self._length

    @property
    def _length(self) -> int:
        return self._tokenizing.length or self._tokenizing.longest

    def __len__(self) -> int:
        return len(self._source)

    def read(self, rows: IntArray) -> AnyArray:
        if not len(rows):
            return np.empty((0, *self.shape), dtype=np.int64)
        return self._tokenizing.encode(self._read_texts(rows), "max_length", self._length)

    def count(self, rows: IntArray) -> int:
        """How many tokens the longest of these texts has, as far as it is read."""
        return int(self._tokenizing.encode(self._read_texts(rows), "longest", self._tokenizing.longest).shape[2])

    def _read_texts(self, rows: IntArray) -> list[str]:
        texts: list[Any] = self._source.read(rows).tolist()
        odd = next((place for place, text in enumerate(texts) if not isinstance(text, str)), None)
        if odd is not None:
            row = int(rows[odd])
            raise InputError(
                f"sample {row} is {texts[odd]!r:.60}, a {type(texts[odd]).__name__}, and the model reads texts; give a "
                "text, or leave the sample out through `candidates`"
            ).at(row)
        return texts
