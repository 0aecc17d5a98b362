"""DAL covers what the labelled set does not, and sub-batches avoid redundancy."""

import numpy as np
import pytest
import torch

from ally.errors import InputError
from ally.learning.snapshot import Snapshot, View
from ally.rng import Streams
from ally.selection.base import Limits
from ally.selection.discriminative import Discriminative, _near_equal, _Scale


def snapshot(candidates, labelled):
    def side(points, start):
        points = torch.as_tensor(np.asarray(points, dtype=np.float32))
        return View(np.arange(start, start + len(points)), points, None, torch.zeros(len(points)))

    return Snapshot("regression", side(candidates, len(labelled)), side(labelled, 0))


def blob(n, centre, spread=0.3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, len(centre))) * spread + np.asarray(centre)


def pick(scene, n, seed=0, **settings):
    return Discriminative(**settings)(
        scene, torch.zeros(len(scene.candidates), dtype=torch.float64), n, Streams(seed), Limits()
    )


@pytest.mark.parametrize("seed", [0, 1])
def test_a_blob_without_labels_is_covered_first(seed):
    scene = snapshot(np.concatenate([blob(600, (0, 0)), blob(60, (4, 4), seed=1)]), blob(60, (0, 0), seed=2))
    new = pick(scene, 10, seed, steps=50).rows - 60 >= 600
    assert new[:2].all()
    assert new.mean() >= 0.4


def test_sub_batches_are_less_redundant_than_one_batch():
    """The farther of two blobs is the surer one; one batch spends all on it, sub-batches turn to the other when it is
    covered."""
    far, near = blob(40, (8, 0), seed=1), blob(40, (0, 2.5), seed=2)
    scene = snapshot(np.concatenate([blob(300, (0, 0)), far, near]), blob(60, (0, 0), seed=3))

    def smaller_share(sub_batches, seed):
        place = pick(scene, 20, seed, sub_batches=sub_batches, steps=50).rows - 60
        return min(np.mean((place >= 300) & (place < 340)), np.mean(place >= 340))

    assert np.mean([smaller_share(1, seed) for seed in range(2)]) < 0.1
    assert np.mean([smaller_share(10, seed) for seed in range(2)]) > 0.25


def test_picks_are_distinct_exact_and_valued_by_log_odds():
    scene = snapshot(blob(2500, (0, 0, 0)), blob(40, (1, 0, 0), seed=1))
    for n in (1, 3, 25):
        chosen = pick(scene, n, steps=40)
        assert len(set(chosen.rows.tolist())) == n
        assert np.isfinite(chosen.values).all()
    first = pick(scene, 12, sub_batches=1, steps=40)
    assert (np.diff(first.values) <= 0).all()


def test_equal_seeds_give_equal_picks_and_the_global_generator_is_left_alone():
    scene = snapshot(blob(300, (0, 0)), blob(20, (0.5, 0), seed=1))
    torch.manual_seed(1)
    before = torch.random.get_rng_state()
    first = pick(scene, 5, steps=30)
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.manual_seed(2)
    second = pick(scene, 5, steps=30)
    assert first.rows.tolist() == second.rows.tolist()
    assert first.values.tolist() == second.values.tolist()
    assert first.values.tolist() != pick(scene, 5, seed=1, steps=30).values.tolist()


def test_without_labelled_samples_the_first_pick_has_the_largest_norm():
    points = blob(50, (1, 1))
    empty = View(np.empty(0, np.int64), torch.empty(0, 0), None, torch.empty(0))
    scene = Snapshot("regression", snapshot(points, []).candidates, empty)
    for n in (1, 7, 50):
        chosen = pick(scene, n, steps=40)
        assert chosen.rows[0] == np.linalg.norm(points.astype(np.float32), axis=1).argmax()
        assert len(set(chosen.rows.tolist())) == n


@pytest.mark.parametrize(
    "points", [np.ones((30, 3)), np.zeros((30, 3)), 1e30 * blob(30, (0, 0, 0)), np.arange(90).reshape(30, 3) % 2]
)
def test_degenerate_pools(points):
    scene = snapshot(points, points[:4])
    for n in (1, 9, 30):
        chosen = pick(scene, n, steps=20)
        assert len(set(chosen.rows.tolist())) == n
        assert np.isfinite(chosen.values).all()


def test_the_scale_of_a_feature_does_not_matter():
    points, labelled = blob(400, (0, 0)), blob(30, (1, 0), seed=1)
    powers = np.asarray([2.0**-10, 2.0**10])
    plain, scaled = (
        pick(snapshot(points, labelled), 15, sub_batches=5, steps=40),
        pick(snapshot(points * powers, labelled * powers), 15, sub_batches=5, steps=40),
    )
    assert plain.rows.tolist() == scaled.rows.tolist()


def test_standardised_over_both_sides_and_flat_where_nothing_varies():
    candidates, labelled = torch.randn(3000, 2) * 5 + 2, torch.randn(50, 2)
    both = torch.cat([candidates, labelled])
    candidates[:, 1] = labelled[:, 1] = both[:, 1] = 7.3
    rows = _Scale.of(snapshot(candidates, labelled).candidates, labelled)(both)
    assert rows[:, 0].mean().item() == pytest.approx(0.0, abs=1e-4)
    assert rows[:, 0].std().item() == pytest.approx(1.0, rel=1e-3)
    assert (rows[:, 1] == 0).all()


@pytest.mark.parametrize(("n", "parts", "sizes"), [(7, 3, [3, 2, 2]), (2, 10, [1, 1]), (0, 10, []), (20, 1, [20])])
def test_sub_batches_are_near_equal(n, parts, sizes):
    assert _near_equal(n, parts) == sizes


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sub_batches": 0}, "sub_batches=0 must be a whole number of at least 1"),
        ({"accuracy": 1.5}, "accuracy=1.5 is not a share"),
        ({"lr": -1.0}, "lr=-1.0 must be a finite number > 0"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(InputError, match=message):
        Discriminative(**settings)
