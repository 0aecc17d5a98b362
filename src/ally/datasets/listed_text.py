"""Texts of the catalogue."""

from __future__ import annotations

from ally.datasets.entry import Entry, File
from ally.datasets.text import read_sst2, read_trec
from ally.sources.text import FEATURES

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
