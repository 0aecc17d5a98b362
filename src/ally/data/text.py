"""Text as numbers without any download: the words and pairs of words that are met most, weighted by TF-IDF."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ally.errors import DataError
from ally.types import AnyArray

FEATURES = 8192
"""Words and pairs of words that become a column: those that most texts have."""
LEAST = 2
"""Texts that must have a word for it to become a column."""
SPACE = 2**22
"""Words are identified by a hash of this size. Among a million distinct words, four in five have a number of their own,
and those that share one are nearly always too rare to matter."""


def word_counts(texts: Sequence[str], space: int = SPACE, *, short: bool = True) -> Any:
    """Sparse csr float32 matrix (n, space) of how often each hashed word or pair of words is met. `short` counts words
    of one character too."""
    from sklearn.feature_extraction.text import HashingVectorizer

    hashing = HashingVectorizer(
        n_features=space,
        ngram_range=(1, 2),
        token_pattern=r"(?u)\b\w+\b" if short else r"(?u)\b\w\w+\b",
        alternate_sign=False,
        norm=None,
        dtype=np.float32,
    )
    # A text from JSON may hold half a surrogate pair, which the hash cannot take.
    return hashing.transform([text.encode("utf-8", "replace").decode() for text in texts])


@dataclass(frozen=True, eq=False)
class WordWeights:
    """What texts taught about words, learned once and kept.

    `idf` (features,) float32 are inverse document frequencies. `words` (features,) are the hashes, ascending, of the
    words that have a column; None for campaigns of 0.1.0, where every hash below ``len(idf)`` has one.
    """

    idf: AnyArray
    words: AnyArray | None

    @classmethod
    def learn(cls, batches: Iterable[Sequence[str]], features: int = FEATURES) -> WordWeights:
        """``ln((1 + n) / (1 + df)) + 1`` over all texts, a batch at a time; of equally common words the lower hash."""
        n, found = 0, np.zeros(SPACE, np.int32)
        for texts in batches:
            counts = word_counts(texts)
            n += counts.shape[0]
            words, often = np.unique(counts.indices, return_counts=True)
            found[words] += often.astype(np.int32)
        words = np.flatnonzero(found >= min(LEAST, n))
        words = np.sort(words[np.argsort(-found[words], kind="stable")[:features]])
        if not len(words):
            # No word is met twice; one column keeps the shape of a matrix.
            words = np.zeros(1, np.int64)
        return cls((np.log((1 + n) / (1 + found[words])) + 1).astype(np.float32), words)

    def __call__(self, texts: Sequence[str]) -> Any:
        """Sparse csr float32 rows of length 1, (n, features): ``(1 + ln count) · idf``, normalised."""
        from sklearn.preprocessing import normalize

        if self.words is None:
            counts = word_counts(texts, len(self.idf), short=False).tocsr()
        else:
            counts = _columns(word_counts(texts), self.words)
        counts.data = (1 + np.log(counts.data)) * self.idf[counts.indices]
        return normalize(counts, copy=False)

    def to_json(self) -> Any:
        if self.words is None:
            return base64.b64encode(self.idf.astype("<f4").tobytes()).decode()
        return {"steps": _pack(np.diff(self.words, prepend=0).astype("<i4")), "idf": _pack(self.idf.astype("<f4"))}

    @classmethod
    def from_json(cls, kept: Any) -> WordWeights:
        try:
            if isinstance(kept, Mapping):
                steps = _unpack(kept["steps"], "<i4")
                idf = _unpack(kept["idf"], "<f4").astype(np.float32)
                ascending = steps[:1].min(initial=0) >= 0 and steps[1:].min(initial=1) >= 1
                if len(steps) != len(idf) or not ascending or steps.sum(dtype=np.int64) >= SPACE:
                    raise ValueError(f"{len(steps)} words and {len(idf)} weights")
                words = np.cumsum(steps, dtype=np.int64)
            else:
                words, idf = None, np.frombuffer(base64.b64decode(kept, validate=True), dtype="<f4").astype(np.float32)
            if not 1 <= len(idf) <= SPACE or not np.isfinite(idf).all():
                raise ValueError("the weights are not finite numbers")
            return cls(idf, words)
        except (ValueError, KeyError, TypeError, zlib.error) as error:
            raise DataError(
                f"the stored word weights are damaged ({error}); create the campaign again from its source"
            ) from error


def _columns(counts: Any, words: AnyArray) -> Any:
    """Those columns of a csr matrix, in ascending order."""
    from scipy.sparse import csr_matrix

    places = np.minimum(np.searchsorted(words, counts.indices), len(words) - 1)
    known = words[places] == counts.indices
    rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))[known]
    return csr_matrix((counts.data[known], (rows, places[known])), shape=(counts.shape[0], len(words)))


def _pack(values: AnyArray) -> str:
    return base64.b64encode(zlib.compress(values.tobytes(), 9)).decode()


def _unpack(text: str, kind: str) -> AnyArray:
    """Numbers, one for each word at most: what unpacks to more is refused before it takes memory."""
    most = SPACE * np.dtype(kind).itemsize
    unpacking = zlib.decompressobj()
    data = unpacking.decompress(base64.b64decode(text, validate=True), most + 1)
    if len(data) > most or not unpacking.eof:
        raise ValueError(f"more than {SPACE} numbers, or a part of them")
    return np.frombuffer(data, dtype=kind)
