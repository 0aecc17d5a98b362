"""Text sets of the catalogue: questions and film reviews, as TF-IDF features."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ally.data.catalogue.dataset import Parts
from ally.data.catalogue.entry import Entry, File
from ally.data.catalogue.places import locate
from ally.data.text import FEATURES, WordWeights
from ally.errors import DataError


def read_trec(folder: Path) -> Parts:
    """Questions with the six coarse classes of their answers (ABBR DESC ENTY HUM LOC NUM); 5452 + 500."""
    pool, pool_labels = read_questions(locate(folder, "text/trec/train_5500.label"))
    test, test_labels = read_questions(locate(folder, "text/trec/TREC_10.label"))
    return Parts(*_both(pool, pool_labels, test, test_labels))


def read_sst2(folder: Path) -> Parts:
    """Phrases of film reviews, 0 negative or 1 positive; the training phrases are the pool, whole sentences the test
    set."""
    pool, pool_labels = read_reviews(locate(folder, "text/sst2/train.tsv.gz", "text/sst2/train.tsv"))
    test, test_labels = read_reviews(locate(folder, "text/sst2/test.tsv.gz", "text/sst2/test.tsv"))
    parts = Parts(*_both(pool, pool_labels, test, test_labels))
    return parts._replace(notes=(*parts.notes, "the development phrases (dev.tsv) are not used"))


def _both(pool: list[str], pool_labels: list[Any], test: list[str], test_labels: list[Any]) -> tuple[Any, ...]:
    weights = WordWeights.learn([pool])
    note = (
        f"texts are {len(weights.idf)} TF-IDF features: the words and pairs of words that most texts of the pool have; "
        "the weights come from the pool's texts only"
    )
    return weights(pool), np.asarray(pool_labels), weights(test), np.asarray(test_labels), (note,), (pool, test)


def read_questions(path: Path) -> tuple[list[str], list[str]]:
    """Questions and coarse classes from lines ``COARSE:fine question``, in latin-1."""
    texts, labels = [], []
    for number, line in enumerate(path.read_text(encoding="latin-1").split("\n"), start=1):
        if not line.strip():
            continue
        label, space, question = line.partition(" ")
        coarse, colon, _ = label.partition(":")
        if not (space and colon and coarse and question.strip()):
            raise DataError(f"line {number} of {path} is {line[:60]!r}, not 'COARSE:fine question'; fetch it again")
        texts.append(question.strip())
        labels.append(coarse)
    if not texts:
        raise DataError(f"{path} is empty; fetch it again")
    return texts, labels


def read_reviews(path: Path) -> tuple[list[str], list[int]]:
    """Phrases and labels from lines ``sentence<TAB>label`` after a header of those names, plain or gzipped."""
    try:
        lines = list(_lines(path))
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read ({error}); put the file there again") from error
    if not lines or lines[0] != ["sentence", "label"] or len(lines) == 1:
        first = lines[0] if lines else "nothing"
        raise DataError(f"{path} begins with {first}; a header 'sentence<TAB>label' and lines below it are needed")
    odd = next(
        (number for number, line in enumerate(lines[1:], start=2) if len(line) != 2 or line[1] not in ("0", "1")), None
    )
    if odd is not None:
        raise DataError(
            f"line {odd} of {path} is {lines[odd - 1]!r}, not 'sentence<TAB>0 or 1'; put the file there again"
        )
    return [line[0].strip() for line in lines[1:]], [int(line[1]) for line in lines[1:]]


def _lines(path: Path) -> Iterator[list[str]]:
    with (
        gzip.open(path, "rt", encoding="utf-8", newline="")
        if path.suffix == ".gz"
        else path.open(encoding="utf-8", newline="") as stream
    ):
        yield from csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_NONE)


TREC_PLACE = "https://cogcomp.seas.upenn.edu/Data/QA/QC/"
TREC_FILES = {
    "train_5500.label": "sha256:9e4c8bdcaffb96ed61041bd64b564183d52793a8e91d84fc3a8646885f466ec3",
    "TREC_10.label": "sha256:033f22c028c2bbba9ca682f68ffe204dc1aa6e1cf35dd6207f2d4ca67f0d0e8e",
}

TEXT = {
    "trec": Entry(
        task="classification",
        kind="text",
        describe="what kind of answer a question wants, six classes",
        size="5452 + 500, 7687 words and pairs",
        citation="Li, Roth: Learning question classifiers. COLING, 2002.",
        terms="cite the authors",
        read=read_trec,
        files=tuple(File(f"text/trec/{name}", sha256, (TREC_PLACE + name,)) for name, sha256 in TREC_FILES.items()),
    ),
    "sst2": Entry(
        task="classification",
        kind="text",
        describe="whether a phrase of a film review is positive",
        size=f"60 614 + 872, {FEATURES} words and pairs",
        citation="Socher, Perelygin, Wu, Chuang, Manning, Ng, Potts: Recursive deep models for semantic "
        "compositionality over a sentiment treebank. EMNLP, 2013.",
        terms="cite the authors",
        read=read_sst2,
        files=tuple(
            File(f"text/sst2/{side}.tsv.gz", instead=(File(f"text/sst2/{side}.tsv"),)) for side in ("train", "test")
        ),
        by_hand="put train.tsv.gz and test.tsv.gz (a header 'sentence<TAB>label', labels 0 and 1) into text/sst2/",
    ),
}
