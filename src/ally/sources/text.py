"""Text as numbers without any download: hashed words and pairs of words, weighted by TF-IDF."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ally.errors import DataError
from ally.types import AnyArray

FEATURES = 4096
"""Columns that words and pairs of words are hashed into; collisions are accepted."""


def word_counts(texts: Sequence[str], features: int = FEATURES) -> Any:
    """Sparse csr float32 matrix (n, features) of how often each hashed word or pair of words is met."""
    from sklearn.feature_extraction.text import HashingVectorizer

    hashing = HashingVectorizer(
        n_features=features, ngram_range=(1, 2), alternate_sign=False, norm=None, dtype=np.float32
    )
    # A text from JSON may hold half a surrogate pair, which the hash cannot take.
    return hashing.transform([text.encode("utf-8", "replace").decode() for text in texts])


@dataclass(frozen=True, eq=False)
class WordWeights:
    """Inverse document frequencies `idf` (features,) float32, learned once and kept."""

    idf: AnyArray

    @classmethod
    def learn(cls, batches: Iterable[Sequence[str]], features: int = FEATURES) -> WordWeights:
        """``ln((1 + n) / (1 + df)) + 1`` over all texts, a batch at a time."""
        n, found = 0, np.zeros(features, np.int64)
        for texts in batches:
            counts = word_counts(texts, features)
            n += counts.shape[0]
            found += np.bincount(counts.indices, minlength=features)
        return cls((np.log((1 + n) / (1 + found)) + 1).astype(np.float32))

    def __call__(self, texts: Sequence[str]) -> Any:
        """Sparse csr float32 rows of length 1, (n, features): ``(1 + ln count) · idf``, normalised."""
        from sklearn.preprocessing import normalize

        counts = word_counts(texts, len(self.idf)).tocsr()
        counts.data = (1 + np.log(counts.data)) * self.idf[counts.indices]
        return normalize(counts, copy=False)

    def to_text(self) -> str:
        return base64.b64encode(self.idf.astype("<f4").tobytes()).decode()

    @classmethod
    def from_text(cls, text: str) -> WordWeights:
        try:
            return cls(np.frombuffer(base64.b64decode(text, validate=True), dtype="<f4").astype(np.float32))
        except ValueError as error:
            raise DataError(
                f"the kept word weights are damaged ({error}); make the campaign again from its source"
            ) from error
