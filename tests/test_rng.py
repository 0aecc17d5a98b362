import numpy as np
import pytest
import torch

from ally.errors import InputError
from ally.rng import Streams, seeded_torch, streams


def test_streams_depend_on_names_not_on_order():
    s = Streams(5)
    a = s.numpy("a").random(3)
    s.numpy("b").random(100)
    assert np.array_equal(s.numpy("a").random(3), a)
    assert not np.array_equal(s.numpy("b").random(3), a)
    assert not np.array_equal(s.child("round 1").numpy("a").random(3), a)
    assert not np.array_equal(Streams(6).numpy("a").random(3), a)


def test_random_state_of_every_kind():
    assert streams(3) == Streams(3)
    assert streams(np.int64(3)) == Streams(3)
    assert streams(np.random.default_rng(0)) == streams(np.random.default_rng(0))
    assert streams(np.random.RandomState(0)) == streams(np.random.RandomState(0))
    assert streams(None) != streams(None)
    for bad in (-1, 1.5, True, "seed"):
        with pytest.raises(InputError, match="is not a seed"):
            streams(bad)


def test_global_torch_state_is_restored():
    torch.manual_seed(1)
    before = torch.get_rng_state()
    with seeded_torch(7):
        first = torch.rand(3)
    with seeded_torch(7):
        assert torch.equal(torch.rand(3), first)
    assert torch.equal(torch.get_rng_state(), before)
