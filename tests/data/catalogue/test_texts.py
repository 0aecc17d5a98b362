import gzip

import numpy as np
import pytest
import scipy.sparse

from ally.data.catalogue import load
from ally.data.catalogue.text import read_questions, read_reviews
from ally.errors import DataError

TRAIN = (
    "DESC:manner How did it begin ?",
    "ENTY:cremat What films featured Popeye ?",
    "HUM:ind Who was Galileo ?",
    "NUM:dist How far is Aspen ?",
)


@pytest.fixture
def trec(tmp_path):
    folder = tmp_path / "text" / "trec"
    folder.mkdir(parents=True)
    (folder / "train_5500.label").write_bytes(("\n".join(TRAIN * 10) + "\n").encode("latin-1"))
    (folder / "TREC_10.label").write_bytes("LOC:city Where is Orléans ?\nHUM:ind Who is she ?\n".encode("latin-1"))
    return tmp_path


def test_trec(trec):
    data = load("trec", trec)
    assert data.kind == "text"
    assert data.pool_labels.tolist()[:4] == ["DESC", "ENTY", "HUM", "NUM"]
    assert data.test_labels.tolist() == ["LOC", "HUM"]
    assert scipy.sparse.issparse(data.pool)
    assert data.pool.format == "csr"
    assert data.pool.dtype == np.float32
    assert data.pool.shape == (40, 25)
    assert data.test.shape == (2, 25)
    np.testing.assert_allclose(np.asarray(data.pool.multiply(data.pool).sum(axis=1)).ravel(), 1, rtol=1e-5)


def test_sst2(tmp_path):
    folder = tmp_path / "text" / "sst2"
    folder.mkdir(parents=True)
    lines = "sentence\tlabel\na \"fine film \t1\n'it 's dull \t0\n"
    (folder / "train.tsv.gz").write_bytes(gzip.compress(lines.encode()))
    (folder / "test.tsv").write_text(lines)
    data = load("sst2", tmp_path)
    assert data.pool_labels.tolist() == data.test_labels.tolist() == [1, 0]
    assert read_reviews(folder / "test.tsv")[0] == ['a "fine film', "'it 's dull"]


@pytest.mark.parametrize("content", ["", "no label\n", "DESC how\n", "DESC:manner\n", "DESC:manner \n"])
def test_odd_questions(tmp_path, content):
    (tmp_path / "q").write_text(content)
    with pytest.raises(DataError, match="is empty" if not content else "line 1 of .* not 'COARSE:fine question'"):
        read_questions(tmp_path / "q")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "begins with nothing"),
        (b"a\tb\nx\t1\n", "begins with"),
        (b"sentence\tlabel\n", "lines below it"),
        (b"sentence\tlabel\nx\t2\n", "line 2"),
        (b"sentence\tlabel\nx\t1\ny\n", "line 3"),
        (b"sentence\tlabel\n\xff\xfe\t1\n", "cannot be read"),
    ],
)
def test_odd_reviews(tmp_path, content, message):
    (tmp_path / "r.tsv").write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_reviews(tmp_path / "r.tsv")
    (tmp_path / "r.tsv.gz").write_bytes(gzip.compress(content))
    with pytest.raises(DataError, match=message):
        read_reviews(tmp_path / "r.tsv.gz")
