import numpy as np
import pandas as pd
import pytest

import ally
from ally.data.aligning import align_rows
from ally.errors import InputError

rng = np.random.default_rng(0)
NAMES = [f"s{row}" for row in range(40)]
X = pd.DataFrame({"a": np.r_[np.zeros(20), np.ones(20)], "b": rng.normal(size=40)}, index=NAMES)
Y = pd.Series(np.where(np.arange(40) % 2 == 0, np.where(X["a"] > 0, "yes", "no"), None), index=NAMES, dtype=object)
OTHER = rng.permutation(40)


def ask(X, y, door, **options):
    if door == "query":
        return ally.query(X, y, n=5, model="linear", random_state=0, hygiene=None, **options)
    return ally.Loop(X, y, ids=X.index, model="linear", random_state=0, **options).ask(5)


@pytest.mark.parametrize("door", ["query", "loop"])
@pytest.mark.parametrize("frames", [X, X.assign(kind=["u", "v"] * 20)], ids=["numbers", "columns"])
def test_rows_in_another_order_are_brought_together_by_the_index(door, frames):
    if door == "loop":
        frames = X
    vectors = pd.DataFrame(rng.normal(size=(40, 3)), index=NAMES)
    mask = pd.Series(np.arange(40) > 5, index=NAMES)
    check = frames.iloc[:6], pd.Series(["no"] * 3 + ["yes"] * 3, index=NAMES[:6])
    same = ask(frames, Y, door, embeddings=vectors, candidates=mask, validation=check)
    shuffled = ask(
        frames,
        Y.iloc[OTHER],
        door,
        embeddings=vectors.iloc[OTHER],
        candidates=mask.iloc[OTHER],
        validation=(check[0], check[1].iloc[::-1]),
    )
    assert shuffled.ids.tolist() == same.ids.tolist()
    assert np.array_equal(shuffled.scores, same.scores)
    assert "y: put in the order of X, by the index" in shuffled.notes
    assert not any("put in the order" in note for note in same.notes)
    assert Y[same.ids].isna().all(), "nothing is asked about that is labelled"


@pytest.mark.parametrize("door", ["query", "loop"])
def test_an_index_of_other_rows_is_refused(door):
    strange = Y.set_axis([*NAMES[:-1], "t1"])
    with pytest.raises(InputError, match="the index of y does not match that of X: 't1' is in that of y alone"):
        ask(X, strange, door)
    with pytest.raises(InputError, match="the index of embeddings does not match"):
        ask(X, Y, door, embeddings=X.set_axis([*NAMES[1:], "t1"]))
    twice = Y.set_axis(["s0", *NAMES[:-1]])
    with pytest.raises(InputError, match="they repeat an id, in different orders"):
        ask(X, twice, door)


def test_an_index_that_only_numbers_the_rows_is_taken_as_it_is():
    plain = Y.reset_index(drop=True)
    for table, labels in ((X, plain), (X.reset_index(drop=True), Y), (X.to_numpy(), Y), (X, Y.to_numpy()), (X, None)):
        found = align_rows(table, labels, None, None, None)
        assert found.y is labels
        assert found.notes == ()
    assert align_rows(X, Y, NAMES[:3], "inputs", "odd")[1:] == (NAMES[:3], "inputs", "odd", ())
    empty = X.iloc[:0]
    assert align_rows(empty, Y.iloc[:0], None, None, None).notes == ()
