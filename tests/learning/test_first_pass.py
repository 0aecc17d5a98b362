import numpy as np
import pytest

import ally
from ally.data import BLOCK, as_source, fit_scaler
from ally.errors import DataError, NonFiniteInput
from ally.execution.engine import LocalEngine
from ally.hygiene import find_copies, fingerprints
from ally.learning.first_pass import FirstPass
from ally.loop import Loop
from ally.testing.engine import TrainedOnce

ROWS = 3 * BLOCK + 200
ENGINES = [LocalEngine(1), LocalEngine(1, 2, holds=True), LocalEngine(2, 3, holds=True)]


class CountingSource:
    """Samples in a file that say how many of them were read, by this object or by a part that was sent elsewhere."""

    by_path = True

    def __init__(self, path):
        self._array = np.load(path, mmap_mode="r")
        self.read_rows = 0

    @property
    def shape(self):
        return self._array.shape[1:]

    def __len__(self):
        return len(self._array)

    def read(self, rows):
        self.read_rows += len(rows)
        return np.asarray(self._array[rows])

    def column(self, number):
        return str(number)


def pool(rows=ROWS):
    rng = np.random.default_rng(0)
    X = rng.normal(loc=3.0, size=(rows, 5)).astype(np.float32)
    X[rows // 2] = X[7]
    return X, np.where(np.arange(rows) < 30, np.arange(rows) % 3, -1)


@pytest.mark.parametrize("engine", ENGINES, ids=repr)
@pytest.mark.parametrize("strategy", ["ally", "coreset"])
def test_a_query_reads_the_pool_twice(tmp_path, strategy, engine):
    X, y = pool()
    np.save(tmp_path / "X.npy", X)
    source = CountingSource(tmp_path / "X.npy")
    settings = {"strategy": strategy, "model": TrainedOnce(), "missing_label": -1, "hygiene": ally.Hygiene()}
    loop = Loop(source, y, engine=engine, chunk_size=BLOCK, **settings, random_state=0)
    found = loop.ask(4)
    assert "1 exact copy set aside" in found.notes
    assert source.read_rows < 2.1 * ROWS
    loop.ask(4)
    assert source.read_rows < 3.2 * ROWS
    assert found.ids.tolist() == Loop(X, y, **settings, random_state=0).ask(4).ids.tolist()


@pytest.mark.parametrize("engine", ENGINES, ids=repr)
@pytest.mark.parametrize("shape", [(5,), (2, 4, 4)])
def test_one_pass_gives_what_several_gave(engine, shape):
    X = np.random.default_rng(1).normal(size=(ROWS, *shape)) * 10 + 4
    X[ROWS - 3] = X[BLOCK + 1]
    source, rows = as_source(X, channels="first"), np.arange(2, ROWS)
    first = FirstPass(source, rows, BLOCK, engine, lambda: source, fingerprints)
    for scaling in (None, "common"):
        one, several = fit_scaler(first, rows, BLOCK, scaling), fit_scaler(source, rows, None, scaling)
        np.testing.assert_array_equal(one.mean, several.mean)
        np.testing.assert_array_equal(one.scale, several.scale)
    copies = find_copies(source, rows, marks=first.marks)
    np.testing.assert_array_equal(copies.first, find_copies(source, rows).first)
    assert (copies.first != rows).sum() == 1
    some = fit_scaler(first, rows[:10])
    np.testing.assert_array_equal(some.mean, fit_scaler(source, rows[:10]).mean)


@pytest.mark.parametrize("engine", ENGINES, ids=repr)
def test_a_value_that_cannot_be_used_is_named(engine):
    X, y = pool()
    X[2000, 3] = np.inf
    settings = {"strategy": "margin", "model": TrainedOnce(), "missing_label": -1, "engine": engine}
    with pytest.raises(NonFiniteInput, match=r"inf at row 2000, feature 3.*`candidates`$"):
        Loop(X, y, **settings).ask(2)
    ids = [f"s{row}" for row in range(ROWS)]
    for hygiene in (None, ally.Hygiene()):
        with pytest.raises(NonFiniteInput, match=r"row 2000.* \(the id of sample 2000 is 's2000'\)"):
            Loop(X, y, ids=ids, hygiene=hygiene, **settings).ask(2)


class Broken:
    """A data set with a sample that cannot be read."""

    def __init__(self, X):
        self.X = X

    def __len__(self):
        return len(self.X)

    def __getitem__(self, row):
        if row == 2000:
            raise OSError("truncated file")
        return self.X[row]


@pytest.mark.parametrize("engine", ENGINES, ids=repr)
def test_a_sample_that_cannot_be_read_is_named(engine):
    X, y = pool()
    ids = [f"s{row}" for row in range(ROWS)]
    loop = Loop(Broken(X), y, ids=ids, strategy="margin", model=TrainedOnce(), missing_label=-1, engine=engine)
    with pytest.raises(DataError, match=r"sample 2000 .* \(OSError: truncated file\).* 's2000'\)"):
        loop.ask(2)
