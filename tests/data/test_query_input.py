"""`ally.query` takes what a campaign takes, and says how it is read."""

import numpy as np
import pandas as pd
import pytest

import ally
from ally.data import as_source, open_source
from ally.errors import InputError

N = 30
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({"a": RNG.normal(size=N), "kind": ["xyz"[n % 3] for n in range(N)]})
FRAME.loc[3, "a"] = np.nan
Y = [n % 2 if n < 12 else None for n in range(N)]


def asked(X, **more):
    return ally.query(X, Y, n=3, strategy="random", model="mlp", random_state=0, **more)


def test_frames_with_texts_and_gaps():
    found = asked(FRAME)
    assert set(found.ids.tolist()) <= set(range(12, N))
    assert "column 'kind': category of 3: x, y, z" in found.notes
    assert any(note.startswith("column 'a': number; 1 missing become the mean") for note in found.notes)
    assert asked(FRAME.to_dict("records")).ids.tolist() == found.ids.tolist()


def test_the_index_of_a_frame_is_its_ids():
    named = [f"s{n}" for n in range(N)]
    assert set(asked(FRAME.set_axis(named)).ids.tolist()) <= set(named[12:])
    numbers = pd.DataFrame(RNG.normal(size=(N, 2))).set_axis(named)
    assert set(asked(numbers).ids.tolist()) <= set(named[12:])
    assert set(asked(numbers, ids=range(100, 100 + N)).ids.tolist()) <= set(range(112, 100 + N))


def test_texts():
    texts = [f"the {'cat purrs' if n % 2 else 'dog barks'} in street {n}" for n in range(N)]
    assert set(asked(texts).ids.tolist()) <= set(range(12, N))
    series = pd.Series(texts, index=[f"t{n}" for n in range(N)])
    assert asked(series).ids.tolist() == [f"t{n}" for n in asked(texts).ids.tolist()]


def test_channels_that_come_last_are_recognised_and_said():
    X = RNG.integers(0, 255, (N, 16, 12, 3)).astype(np.uint8)
    source = as_source(X)
    assert source.shape == (3, 16, 12)
    np.testing.assert_array_equal(source.read(np.arange(N)), np.moveaxis(X, -1, 1))
    assert source.column(0) == "0"
    assert any("images with 3 channels, which come last" in note for note in asked(X).notes)
    assert as_source(X, channels="first").shape == (16, 12, 3)
    assert as_source(np.zeros((2, 3, 8, 3))).shape == (3, 8, 3)
    assert as_source(np.zeros((2, 20, 20, 5)), channels="last").shape == (5, 20, 20)
    with pytest.raises(InputError, match="channels='up' is unknown"):
        as_source(X, channels="up")
    samples = open_source(X)
    assert samples.features(["0"]).shape == (3, 16, 12)
    assert any("come last" in note for note in samples.notes)
    before = {**samples.fingerprint(), "shape": [16, 12, 3]}
    assert open_source(X, known=before).features(["0"]).shape == (16, 12, 3)
    assert open_source(X, known=samples.fingerprint()).features(["0"]).shape == (3, 16, 12)


def test_a_campaign_takes_what_a_query_takes(tmp_path):
    import scipy.sparse
    import torch

    X = RNG.normal(size=(N, 4))
    for given in (
        X.tolist(),
        scipy.sparse.csr_matrix(X),
        torch.from_numpy(X),
        torch.utils.data.TensorDataset(torch.from_numpy(X)),
    ):
        with ally.Campaign.create("memory", given, automatic=False) as campaign:
            assert campaign.source.size == N
            np.testing.assert_allclose(campaign.source.samples.features(["5"]).read(np.arange(1))[0], X[5])
