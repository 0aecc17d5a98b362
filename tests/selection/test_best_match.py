"""Label paths against refits from scratch, matchings against scipy's assignment and brute force."""

from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import ClassVar

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment, minimize

import ally
from ally.errors import InputError, MemoryBudgetExceeded, NonFiniteScore, UnsupportedTask
from ally.features import Gradient, ProductRows
from ally.learning.dual_head import RidgeHead
from ally.learning.head_features import Labelled
from ally.learning.snapshot import Snapshot, View
from ally.rng import Streams
from ally.scoring import Constant, Entropy, Margin, MutualInformation, PredictedDual, Random, Scored
from ally.selection import BestMatch, Top
from ally.selection.base import Limits
from ally.selection.best_match import Matching, greedy_matching, spacing, squared_distances
from ally.selection.paths import ClassHead, TargetHead, label_paths
from ally.strategies import Strategy
from ally.types import BOTH_TASKS
from conformance_params import params


def choose(selection, snapshot, n, seed=0, limits=Limits()):
    scores = selection.policy(snapshot, Streams(0)).scores
    return selection(snapshot, scores, n, Streams(seed), limits)


def assignment(weights, path, batch):
    """The best one-to-one value of `batch` on the slots of `path`, by scipy."""
    table = weights[np.ix_(batch, path)]
    return table[linear_sum_assignment(table, maximize=True)].sum()


def worth(weights, members, batch):
    return float(np.mean([assignment(weights, path, batch) for path in members]))


def naive_greedy(weights, members, n):
    batch = []
    for _ in range(n):
        before = worth(weights, members, batch)
        free = [row for row in range(len(weights)) if row not in batch]
        gains = [np.float32(worth(weights, members, [*batch, row]) - before) for row in free]
        batch.append(free[int(np.argmax(gains))])
    return batch


def scene_of_paths(seed, u=10, paths=4, n=4, copies=0, bandwidth=1.0):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(u, 2))
    points[:copies] = points[0]
    weights = np.exp(-((points[:, None] - points[None]) ** 2).sum(2) / bandwidth**2)
    return weights, np.stack([rng.permutation(u)[:n] for _ in range(paths)])


@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(0, 4), st.sampled_from([0.05, 0.7, 3.0, 50.0]))
@settings(max_examples=40, deadline=None)
def test_value_and_gains_are_those_of_the_best_assignment(seed, n, copies, bandwidth):
    weights, members = scene_of_paths(seed, n=n, copies=copies, bandwidth=bandwidth)
    matching = Matching(weights, members)
    order = np.random.default_rng(seed).permutation(len(weights))[:n].tolist()
    for place, row in enumerate(order):
        batch = order[:place]
        others = np.setdiff1d(np.arange(len(weights)), batch)
        expected = [
            worth(weights, members, [*batch, other]) - worth(weights, members, batch) for other in others.tolist()
        ]
        np.testing.assert_allclose(matching.gains(others), expected, atol=1e-6)
        matching.add(row)
        assert matching.value == pytest.approx(worth(weights, members, order[: place + 1]), abs=1e-10)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("copies", [0, 5])
def test_greedy_equals_its_naive_twin_and_is_near_the_best(seed, copies):
    weights, members = scene_of_paths(seed, copies=copies, bandwidth=0.8)
    n = members.shape[1]
    positions, gains = greedy_matching(Matching(weights, members), n)
    assert positions.tolist() == naive_greedy(weights, members, n)
    value = worth(weights, members, positions.tolist())
    assert gains.sum() == pytest.approx(value, abs=1e-6)
    best = max(worth(weights, members, list(batch)) for batch in combinations(range(len(weights)), n))
    assert (1 - 1 / np.e) * best <= value <= best + 1e-9


def test_bounds_do_not_change_the_picks_of_a_larger_union():
    weights, members = scene_of_paths(3, u=150, paths=3, n=12, bandwidth=0.3)
    positions, gains = greedy_matching(Matching(weights, members), 12)
    assert positions.tolist() == naive_greedy(weights, members, 12)
    assert (np.diff(gains) <= 0).all()


def test_one_to_one_is_stricter_than_the_nearest():
    """Three samples near one slot and far from the others count once, not three times."""
    weights = np.exp(-((np.asarray([0.0, 0.1, 0.2, 5.0, 9.0])[:, None] - np.asarray([0.0, 0.1, 0.2, 5.0, 9.0])) ** 2))
    matching = Matching(weights, np.asarray([[0, 3, 4]]))
    for row in (0, 1, 2):
        matching.add(row)
    assert matching.value < 1.01
    assert greedy_matching(Matching(weights, np.asarray([[0, 3, 4]])), 3)[0].tolist() == [0, 3, 4]


def test_the_bandwidth_is_the_spacing_of_a_path():
    points = torch.tensor([[0.0], [1.0], [1.0], [4.0], [100.0]])
    gaps = squared_distances(ProductRows((points,)))
    np.testing.assert_allclose(gaps, (points.double() - points.double().T).square(), atol=1e-9)
    assert spacing(gaps, np.asarray([[0, 1, 2, 3]])) == pytest.approx(1.0)  # 1, 1, 1 and 3
    assert spacing(gaps, np.asarray([[0, 3], [3, 4]])) == pytest.approx(50.0)  # 4, 4, 96 and 96
    assert spacing(gaps, np.asarray([[1, 2]])) == spacing(gaps, np.asarray([[0]])) == 1.0


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_one_path_returns_its_picks(make_snapshot, task):
    snapshot = make_snapshot(n=60, task=task)
    selection = BestMatch(paths=1, shortlist=None)
    chosen = choose(selection, snapshot, 9)
    path = label_paths(snapshot, selection.policy, 9, 1, selection.ridge, Streams(0)).places[0]
    assert set(chosen.rows.tolist()) == set(snapshot.candidates.rows[path].tolist())
    np.testing.assert_allclose(chosen.values, 1.0)


def test_every_pick_is_on_a_path_and_shared_ones_come_first(make_snapshot):
    snapshot = make_snapshot(n=80)
    selection = BestMatch(Margin(), paths=6, shortlist=None, bandwidth=1e-3)
    chosen = choose(selection, snapshot, 8)
    paths = snapshot.candidates.rows[label_paths(snapshot, Margin(), 8, 6, 1.0, Streams(0)).places]
    votes = [np.mean((paths == row).any(1)) for row in chosen.rows]
    np.testing.assert_allclose(chosen.values, votes, atol=1e-6)
    assert chosen.values[0] == 1.0
    assert np.diff(chosen.values).max() <= 0
    assert len(np.unique(paths)) > 8


def embedded(snapshot):
    """h̃ of labelled samples and candidates, by its definition."""
    both = [view.embeddings.double().numpy() for view in (snapshot.labelled, snapshot.candidates)]
    stacked = np.concatenate(both)
    length = np.sqrt(np.square(stacked - stacked.mean(0)).sum(1).mean())
    return [np.hstack([(side - stacked.mean(0)) / length, np.ones((len(side), 1))]) for side in both]


def softmax(z):
    e = np.exp(z - z.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def refitted(snapshot, ridge, places, labels):
    """Probabilities of all candidates after a refit of Δ from scratch, by a general optimiser."""
    known, rows = embedded(snapshot)
    p = snapshot.labelled.probabilities.double().numpy()
    logits = np.log(snapshot.candidates.probabilities.double().numpy())
    classes = p.shape[1]
    weights = (p * (1 - p)).sum(1) / (classes - 1)
    precision = ridge * np.eye(rows.shape[1]) + (known * weights[:, None]).T @ known

    def objective(flat):
        delta = flat.reshape(classes, -1)
        q = softmax(logits[places] + rows[places] @ delta.T)
        loss = -np.log(q[np.arange(len(places)), labels]).sum() + 0.5 * np.sum(delta @ precision * delta)
        return loss, ((q - np.eye(classes)[labels]).T @ rows[places] + delta @ precision).ravel()

    solved = minimize(objective, np.zeros(classes * rows.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-8})
    return softmax(logits + rows @ solved.x.reshape(classes, -1).T)


@pytest.mark.parametrize(("classes", "ridge"), [(2, 1.0), (4, 0.1), (4, 3.0)])
def test_the_refitted_head_minimises_the_penalised_cross_entropy(make_snapshot, classes, ridge):
    snapshot = make_snapshot(n=40, m=15, d=5, classes=classes)
    rng = np.random.default_rng(0)
    places = np.stack([rng.permutation(40)[:8] for _ in range(3)])
    labels = rng.integers(0, classes, size=(3, 8))
    head = ClassHead(snapshot, 3, 8, ridge)
    everyone = torch.arange(40)
    assert torch.equal(head.view(1, everyone).probabilities, snapshot.candidates.probabilities)
    for step in range(8):
        head.learn(torch.from_numpy(places[:, step]), torch.from_numpy(labels[:, step]).double())
        for path in range(3):
            expected = refitted(snapshot, ridge, places[path, : step + 1], labels[path, : step + 1])
            np.testing.assert_allclose(head.view(path, everyone).probabilities, expected, atol=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_a_classification_path_equals_the_policy_run_by_hand(make_snapshot, seed):
    snapshot = make_snapshot(n=40, m=15, d=5, classes=3, seed=seed)
    found = label_paths(snapshot, Margin(), 6, 2, 0.5, Streams(seed))
    for path, labels in zip(found.places, found.labels.numpy().astype(int), strict=True):
        for step in range(6):
            p = refitted(snapshot, 0.5, path[:step], labels[:step])
            ordered = np.sort(p, axis=1)
            scores = np.where(np.isin(np.arange(40), path[:step]), -np.inf, 1 - ordered[:, -1] + ordered[:, -2])
            assert path[step] == scores.argmax()


def test_a_label_moves_its_sample_and_those_like_it_towards_it():
    rows = torch.tensor([[1.0, 0.0], [0.9, 0.1], [-1.0, 0.0]])
    p = torch.full((3, 2), 0.5)
    known = View(
        np.arange(2),
        torch.tensor([[0.0, 1.0], [0.0, -1.0]]),
        torch.tensor([[0.9, 0.1], [0.1, 0.9]]),
        torch.tensor([0, 1]),
    )
    snapshot = Snapshot("classification", View(np.arange(2, 5), rows, p, p.argmax(1)), known, torch.tensor([0.0, 1.0]))
    for label in (0, 1):
        head = ClassHead(snapshot, 1, 2, 1.0)
        head.learn(torch.tensor([0]), torch.tensor([float(label)]))
        own, near, far = head.view(0, torch.arange(3)).probabilities[:, label].tolist()
        assert own > 0.6
        assert own > near > far
        assert near > 0.55


def unlabelled(p, embeddings):
    """Candidates with probabilities `p`, and no labelled samples."""
    empty = View(np.empty(0, np.int64), torch.empty(0, 0), None, torch.empty(0))
    return Snapshot("classification", View(np.arange(len(p)), embeddings, p, p.argmax(1)), empty)


@pytest.mark.parametrize("share", [0.03, 0.3, 0.5, 0.9])
def test_labels_are_drawn_from_the_predictive_distribution(share):
    snapshot = unlabelled(
        torch.tensor([[1 - share, share]]).repeat(5, 1), torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    )
    draws, generator = 4000, np.random.default_rng(1)
    head = ClassHead(snapshot, draws, 2, 1.0)
    first = head.draw(torch.zeros(draws, dtype=torch.int64), generator)
    assert float(first.mean()) == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / draws))
    head.learn(torch.zeros(draws, dtype=torch.int64), first)
    second = head.draw(torch.ones(draws, dtype=torch.int64), generator)
    shifted = [
        float(head.view(int((first == answer).nonzero()[0]), torch.tensor([1])).probabilities[0, 1])
        for answer in (0, 1)
    ]
    assert shifted[0] < share < shifted[1]
    for answer, expected in enumerate(shifted):
        found = second[first == answer]
        assert float(found.mean()) == pytest.approx(expected, abs=4 * np.sqrt(expected * (1 - expected) / len(found)))


def test_paths_hold_the_drawn_labels():
    snapshot = unlabelled(torch.tensor([[0.3, 0.7]]).repeat(3, 1), torch.eye(3))
    labels = label_paths(snapshot, Constant(), 1, 1000, 1.0, Streams(0)).labels
    assert float(labels.mean()) == pytest.approx(0.7, abs=4 * np.sqrt(0.21 / 1000))


def test_a_certain_label_is_always_drawn():
    found = label_paths(
        unlabelled(torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]), torch.eye(2)), Constant(), 2, 50, 1.0, Streams(0)
    )
    assert (found.places == [0, 1]).all()
    assert (found.labels.numpy() == [1.0, 0.0]).all()


@pytest.mark.parametrize("m", [4, 30])
def test_the_regression_posterior_equals_the_closed_form(make_snapshot, m):
    snapshot = with_errors(make_snapshot(n=25, m=m, d=5, task="regression"))
    known, rows = embedded(snapshot)
    start = snapshot.candidates.predictions.numpy()
    rng = np.random.default_rng(0)
    places = np.stack([rng.permutation(25)[:6] for _ in range(2)])
    labels = rng.normal(size=(2, 6))
    head = TargetHead(snapshot, 2, 6, ridge=0.3)
    information = known.T @ known
    leverages = np.einsum("nd,de,ne->n", known, np.linalg.inv(information + 0.3 * np.eye(6)), known)
    errors = (snapshot.labels - snapshot.labelled.predictions).numpy()
    variance = np.sum(errors**2) / max(1.0, m - leverages.sum())
    assert head.variance == pytest.approx(variance)
    for step in range(7):
        for path in range(2):
            x = rows[places[path, :step]]
            covariance = np.linalg.inv(0.3 * np.eye(6) + information + x.T @ x)
            delta = covariance @ x.T @ (labels[path, :step] - start[places[path, :step]])
            for probe in (0, 11, 24):
                mean, spread = (values[path] for values in head.posterior(torch.tensor([probe, probe])))
                assert float(mean) == pytest.approx(start[probe] + rows[probe] @ delta, abs=1e-9)
                assert float(spread) == pytest.approx(variance * (1 + rows[probe] @ covariance @ rows[probe]), rel=1e-9)
            np.testing.assert_allclose(head.view(path, torch.arange(25)).predictions, start + rows @ delta, atol=1e-9)
        if step < 6:
            head.learn(torch.from_numpy(places[:, step]), torch.from_numpy(labels[:, step]))


def with_errors(snapshot):
    """A network that does not fit its labels exactly, so that there is noise to draw."""
    noise = torch.randn(len(snapshot.labelled), generator=torch.Generator().manual_seed(1))
    return replace(snapshot, labels=snapshot.labels + noise)


def test_targets_are_drawn_from_the_posterior(make_snapshot):
    snapshot = with_errors(make_snapshot(n=25, task="regression"))
    head = TargetHead(snapshot, 4000, 1, 1.0)
    mean, variance = (float(value[0]) for value in head.posterior(torch.zeros(4000, dtype=torch.int64)))
    draws = head.draw(torch.zeros(4000, dtype=torch.int64), np.random.default_rng(0)).numpy()
    assert variance > 0.1
    assert draws.mean() == pytest.approx(mean, abs=4 * np.sqrt(variance / 4000))
    assert draws.var() == pytest.approx(variance, rel=4 * np.sqrt(2 / 4000))


@dataclass(frozen=True)
class Recorded:
    """A policy that records the snapshots it gets."""

    seen: list = field(default_factory=list, hash=False, compare=False)
    tasks: ClassVar = BOTH_TASKS
    reads: ClassVar = True

    def __call__(self, snapshot, streams):
        self.seen.append(snapshot)
        return Scored(-torch.from_numpy(snapshot.candidates.rows % 7).double())


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_the_policy_sees_the_round_as_it_would_be(make_snapshot, task):
    snapshot = make_snapshot(n=30, m=12, task=task)
    shuffled = np.random.default_rng(0).permutation(42)
    snapshot = replace(
        snapshot,
        labelled=replace(snapshot.labelled, rows=np.sort(shuffled[:12])),
        candidates=replace(snapshot.candidates, rows=np.sort(shuffled[12:])),
        candidate_duals=torch.arange(30.0),
    )
    policy = Recorded()
    found = label_paths(snapshot, policy, 5, 2, 1.0, Streams(0))
    head = RidgeHead().fit(Labelled(snapshot.labelled, snapshot.labels, snapshot.duals), Streams(3))
    assert len(policy.seen) == 10
    for number, seen in enumerate(policy.seen):
        step, path = divmod(number, 2)
        taken = found.places[path, :step]
        rows = snapshot.candidates.rows[taken]
        left = np.setdiff1d(np.arange(30), taken)
        assert seen.task == task
        assert seen.candidates.rows.tolist() == snapshot.candidates.rows[left].tolist()
        assert seen.candidate_duals.tolist() == left.tolist()
        assert torch.equal(seen.candidates.embeddings, snapshot.candidates.embeddings[left])
        assert seen.labelled.rows.tolist() == sorted([*snapshot.labelled.rows.tolist(), *rows.tolist()])
        old = np.searchsorted(seen.labelled.rows, snapshot.labelled.rows)
        new = np.searchsorted(seen.labelled.rows, rows)
        assert torch.equal(seen.labels[old], snapshot.labels)
        assert torch.equal(seen.duals[old], snapshot.duals)
        assert torch.equal(seen.labels[new], found.labels[path, :step])
        assert torch.equal(seen.labelled.embeddings[new], snapshot.candidates.embeddings[taken])
        picks = seen.labelled.at(torch.from_numpy(new))
        torch.testing.assert_close(seen.duals[new].double(), head.duals(picks), rtol=1e-5, atol=1e-6)
        for view in (seen.candidates, seen.labelled):
            assert view.embeddings.dtype == torch.float32
            if task == "classification":
                torch.testing.assert_close(view.probabilities.sum(1), torch.ones(len(view)))
                assert torch.equal(view.predictions, view.probabilities.argmax(1))
            else:
                assert view.probabilities is None
                assert view.predictions.dtype == torch.float64


def test_predicted_duals_follow_the_simulated_labels(make_snapshot):
    """Simulated λ lie on the fitted head, so the head stays and only the candidates' uncertainty moves the scores."""
    snapshot = make_snapshot(n=60, m=40)
    doubt = 1 - snapshot.labelled.probabilities.amax(1)
    snapshot = replace(snapshot, duals=doubt)
    policy = PredictedDual(RidgeHead(strengths=(1e-2,)))
    found = label_paths(snapshot, policy, 10, 1, 1.0, Streams(0))
    top = Top()(snapshot, policy(snapshot, Streams(0)).scores, 10, Streams(0), Limits()).rows
    path = snapshot.candidates.rows[found.places[0]]
    assert path[0] == top[0]
    assert set(path.tolist()) != set(top.tolist())


def test_duals_held_for_the_pool_are_not_changed_by_labels(make_snapshot):
    """Every path is then the order of those duals, and the batch is the top."""
    snapshot = replace(make_snapshot(n=50), candidate_duals=torch.rand(50, generator=torch.Generator().manual_seed(0)))
    chosen = choose(BestMatch(), snapshot, 7)
    top = Top()(snapshot, snapshot.candidate_duals.double(), 7, Streams(0), Limits())
    assert set(chosen.rows.tolist()) == set(top.rows.tolist())
    np.testing.assert_allclose(chosen.values, 1.0)


def copies_scene():
    """One very uncertain sample 12 times, and 20 others a little less uncertain in directions of their own."""
    generator = torch.Generator().manual_seed(0)
    rows = torch.cat([torch.eye(24)[:1].repeat(12, 1), torch.eye(24)[2:22]]) * 3
    p = torch.cat([torch.full((12, 1), 0.5), 0.55 + 0.02 * torch.rand(20, 1, generator=generator)])
    p = torch.cat([p, 1 - p], 1)
    known = View(
        np.arange(4),
        torch.randn(4, 24, generator=generator),
        torch.tensor([[0.9, 0.1], [0.1, 0.9]] * 2),
        torch.tensor([0, 1] * 2),
    )
    return Snapshot("classification", View(np.arange(4, 36), rows, p, p.argmax(1)), known, torch.tensor([0.0, 1.0] * 2))


@pytest.mark.parametrize("policy", [Margin(), Entropy()])
def test_copies_are_not_asked_again_and_again(policy):
    snapshot = copies_scene()
    top = Top()(snapshot, policy(snapshot, Streams(0)).scores, 8, Streams(0), Limits())
    assert (top.rows < 16).all()
    chosen = choose(BestMatch(policy, shortlist=None), snapshot, 8)
    assert (chosen.rows < 16).sum() <= 2


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_the_shortlist_keeps_to_the_highest(make_snapshot, task):
    snapshot = make_snapshot(n=200, task=task)
    chosen = BestMatch(shortlist=3)(snapshot, torch.arange(200, dtype=torch.float64), 5, Streams(0), Limits())
    assert chosen.rows.min() >= 20 + 185


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_equal_seeds_give_equal_picks_and_the_global_generator_is_left_alone(make_snapshot, task):
    snapshot = make_snapshot(n=80, task=task)
    snapshot = snapshot if task == "classification" else with_errors(snapshot)
    selection = BestMatch(paths=3)
    before = torch.random.get_rng_state()
    first, second = (choose(selection, snapshot, 8, seed=3) for _ in range(2))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert first.rows.tolist() == second.rows.tolist()
    assert first.values.tolist() == second.values.tolist()
    assert first.values.tolist() != choose(selection, snapshot, 8, seed=4).values.tolist()


def test_a_random_policy_differs_from_path_to_path(make_snapshot):
    found = label_paths(make_snapshot(n=50), Random(), 5, 3, 1.0, Streams(0)).places
    assert len({tuple(path) for path in found.tolist()}) == 3
    assert all(len(set(path)) == 5 for path in found.tolist())


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("change", ["equal", "zero", "few", "huge", "tiny"])
def test_degenerate_embeddings(make_snapshot, task, change):
    snapshot = make_snapshot(n=24, m=6, task=task)

    def changed(view):
        e = view.embeddings
        e = {
            "equal": torch.ones_like(e) * 0.1,
            "zero": 0 * e,
            "few": e[torch.arange(len(e)) % 3],
            "huge": 1e30 * e,
            "tiny": 1e-30 * e,
        }[change]
        return replace(view, embeddings=e)

    snapshot = replace(snapshot, candidates=changed(snapshot.candidates), labelled=changed(snapshot.labelled))
    for n in (1, 9, 24):
        chosen = choose(BestMatch(paths=3), snapshot, n)
        assert len(set(chosen.rows.tolist())) == n
        assert np.isfinite(chosen.values).all()


def test_embeddings_on_another_scale_give_the_same_picks(make_snapshot):
    snapshot = make_snapshot(n=80)
    scaled = replace(
        snapshot,
        **{
            side: replace(view, embeddings=view.embeddings * 2.0**20)
            for side, view in (("candidates", snapshot.candidates), ("labelled", snapshot.labelled))
        },
    )
    assert choose(BestMatch(paths=3), snapshot, 8).rows.tolist() == choose(BestMatch(paths=3), scaled, 8).rows.tolist()


@pytest.mark.parametrize("policy", [Margin(), PredictedDual()])
def test_probabilities_of_exactly_0_and_1(make_snapshot, policy):
    snapshot = make_snapshot(n=24, m=6)
    hard = replace(snapshot.candidates, probabilities=torch.eye(4)[torch.arange(24) % 4])
    snapshot = replace(
        snapshot, candidates=hard, labelled=replace(snapshot.labelled, probabilities=torch.eye(4)[:1].repeat(6, 1))
    )
    for n in (1, 9, 24):
        assert len(set(choose(BestMatch(policy, paths=3), snapshot, n).rows.tolist())) == n


def test_without_labelled_samples(make_snapshot):
    empty = View(np.empty(0, np.int64), torch.empty(0, 0), None, torch.empty(0))
    for task, policy in (("classification", Margin()), ("regression", Constant())):
        snapshot = Snapshot(task, make_snapshot(n=20, task=task).candidates, empty)
        assert len(set(choose(BestMatch(policy), snapshot, 7).rows.tolist())) == 7


def test_representations_other_than_the_embedding(make_snapshot):
    chosen = choose(BestMatch(features=Gradient()), make_snapshot(n=60), 6)
    assert len(set(chosen.rows.tolist())) == 6
    assert Strategy(PredictedDual(), BestMatch(features=Gradient())).tasks == {"classification"}


def test_tasks_are_those_of_the_policy():
    assert BestMatch().tasks == BOTH_TASKS
    assert BestMatch(Margin()).tasks == {"classification"}
    with pytest.raises(UnsupportedTask):
        ally.query(
            np.eye(5),
            [0.1, 0.5, 0.7, None, None],
            n=1,
            task="regression",
            strategy=Strategy(PredictedDual(), BestMatch(Margin())),
        )


def test_a_policy_that_reads_the_network_is_refused():
    with pytest.raises(
        InputError,
        match=r"MutualInformation\(samples=20, members=5\) reads the network itself.* use a score of predictions",
    ):
        BestMatch(MutualInformation())
    for policy in (Margin, "margin", None):
        with pytest.raises(InputError, match="is not a score; pass an instance"):
            BestMatch(policy)


@pytest.mark.parametrize(
    "bad", [{"paths": 0}, {"shortlist": 0}, {"ridge": 0.0}, {"ridge": np.nan}, {"bandwidth": 0.0}, {"paths": 2.5}]
)
def test_settings_are_checked(bad):
    with pytest.raises(InputError, match=next(iter(bad))):
        BestMatch(**bad)


def test_memory_is_checked_before_the_work(make_snapshot):
    policy = Recorded()
    with pytest.raises(MemoryBudgetExceeded, match="BestMatch with 8 paths of 5 picks from 100 candidates"):
        BestMatch(policy)(make_snapshot(), torch.zeros(200, dtype=torch.float64), 5, Streams(0), Limits(1000))
    assert policy.seen == []


@dataclass(frozen=True)
class Broken:
    tasks: ClassVar = BOTH_TASKS
    reads: ClassVar = True

    def __call__(self, snapshot, streams):
        values = torch.zeros(len(snapshot.candidates), dtype=torch.float64)
        values[3] = torch.nan if len(snapshot.labelled) > 20 else 0.0
        return Scored(values)


def test_a_score_that_fails_on_a_path_stops_the_round(make_snapshot):
    with pytest.raises(NonFiniteScore, match=r"Broken\(\) gave 1 scores that are NaN"):
        choose(BestMatch(Broken()), make_snapshot(n=30), 3)


CASES = params(
    {
        "margin by matching": Strategy(Margin(), BestMatch(Margin(), paths=3), "erm"),
        "ally by matching": Strategy(PredictedDual(), BestMatch(PredictedDual(), paths=3), "pdcl"),
    }
)


@pytest.mark.parametrize(("check", "strategy", "task"), CASES)
def test_conformance(check, strategy, task):
    check(strategy, task)


def test_conformance_covers_both_tasks():
    assert {(case.values[1].score, case.values[2]) for case in CASES} == {
        (Margin(), "classification"),
        (PredictedDual(), "classification"),
        (PredictedDual(), "regression"),
    }
