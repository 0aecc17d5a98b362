"""BAIT against direct forms in double precision that use no recurrence and all C classes."""

import numpy as np
import pytest
import torch

import ally
from ally.errors import InputError, MemoryBudgetExceeded, NonFiniteInput
from ally.execution.engine import LocalEngine
from ally.features import fisher_factors
from ally.features.fisher import FisherRows, most_uncertain_classes, total_information, triangle
from ally.learning.snapshot import Snapshot, View
from ally.rng import Streams
from ally.selection import FisherGreedy
from ally.selection.base import Limits
from ally.selection.fisher_forms import CHUNK, Forms
from ally.selection.fisher_greedy import information, memory


def informations(view):
    """W ⊗ hhᵀ of every row, (n, Cd, Cd)."""
    factors = fisher_factors(view)
    return [torch.kron(w, torch.outer(h, h)) for w, h in zip(factors.curvature, factors.embeddings, strict=True)]


def naive_bait(snapshot, n, ridge, forward):
    """tr(M⁻¹F) with a full inverse for every candidate of every step: all picks and how much each gained, and those
    that stay."""
    parts, known = informations(snapshot.candidates), informations(snapshot.labelled)
    total, zero = len(known) + n, torch.zeros_like(parts[0])
    pooled = (sum(parts) + sum(known, zero)) / (len(parts) + len(known))
    matrix = ridge * torch.eye(len(pooled), dtype=torch.float64) + sum(known, zero) / total

    def objective(m):
        return float(torch.trace(torch.linalg.solve(m, pooled)))

    picks, gains = [], []
    for _ in range(forward):
        values = [np.inf if row in picks else objective(matrix + n / total * parts[row]) for row in range(len(parts))]
        picks.append(int(np.argmin(values)))
        gains.append(objective(matrix) - min(values))
        matrix = matrix + n / total * parts[picks[-1]]
    kept = list(picks)
    for _ in range(forward - n):
        out = kept.pop(int(np.argmin([objective(matrix - n / total * parts[row]) for row in kept])))
        matrix = matrix - n / total * parts[out]
    return picks, gains, kept


def direct_bait(snapshot, n, ridge, forward):
    """As `naive_bait`, with the gains of all rows in one formula: for pools of thousands."""
    candidates, labelled = fisher_factors(snapshot.candidates), fisher_factors(snapshot.labelled)
    h, w = candidates.embeddings, candidates.curvature * (n / (len(labelled) + n))
    classes, size = w.shape[1], h.shape[1]
    pooled = (candidates.mean() * len(candidates) + labelled.mean() * len(labelled)) / (len(candidates) + len(labelled))
    matrix = ridge * torch.eye(classes * size, dtype=torch.float64) + labelled.mean() * (
        len(labelled) / (len(labelled) + n)
    )

    def forms(b, rows):
        projected = (h[rows] @ b.view(classes, size, -1).permute(1, 0, 2).reshape(size, -1)).view(
            len(rows), classes, classes, size
        )
        return torch.einsum("nced,nd->nce", projected, h[rows])

    def gains(rows, sign):
        inverse = torch.linalg.inv(matrix)
        system = sign * torch.eye(classes, dtype=torch.float64) + forms(inverse, rows) @ w[rows]
        solved = torch.linalg.solve(system, forms(inverse @ pooled @ inverse, rows) @ w[rows], left=False)
        return solved.diagonal(dim1=1, dim2=2).sum(1)

    picks = []
    for _ in range(forward):
        found = gains(torch.arange(len(h)), 1.0)
        found[picks] = -torch.inf
        picks.append(int(found.argmax()))
        matrix = matrix + torch.kron(w[picks[-1]], torch.outer(h[picks[-1]], h[picks[-1]]))
    kept = list(picks)
    for _ in range(forward - n):
        out = kept.pop(int(gains(torch.tensor(kept), -1.0).argmax()))
        matrix = matrix - torch.kron(w[out], torch.outer(h[out], h[out]))
    return kept


def trained_like(n, labelled, d, classes, seed=0, task="classification"):
    """Embeddings after a ReLU, around one centre for each class, and a softmax that is sure of most of them; all in
    single precision."""
    generator = torch.Generator().manual_seed(seed)
    centres = 2.0 * torch.randn(classes, d, generator=generator)

    def side(rows):
        members = torch.randint(classes, (len(rows),), generator=generator)
        h = (centres[members] + 1.5 * torch.randn(len(rows), d, generator=generator)).relu()
        p = (h @ centres.T / d**0.5 - 2.0).softmax(1) if task == "classification" else None
        return View(rows, h, p, torch.zeros(len(rows)))

    return Snapshot(task, side(np.arange(labelled, labelled + n)), side(np.arange(labelled)))


def chosen(snapshot, n, limits=None, **settings):
    """Positions among the candidates."""
    size = len(snapshot.candidates)
    found = FisherGreedy(**settings)(snapshot, torch.zeros(size), n, Streams(0), limits or Limits())
    return (found.rows - snapshot.candidates.rows[0]).tolist()


def rows_of(view, apart=None):
    return FisherRows(view.embeddings, view.probabilities, apart)


def changed(snapshot, embeddings=None, probabilities=None):
    old = snapshot.candidates
    h = old.embeddings if embeddings is None else embeddings
    p = old.probabilities if probabilities is None else probabilities
    return Snapshot(snapshot.task, View(old.rows, h, p, old.predictions), snapshot.labelled)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("classes", [1, 2, 4])
def test_forward_and_backward_equal_the_definition(make_snapshot, seed, classes):
    snapshot = make_snapshot(
        n=25, m=6, d=4, classes=classes, seed=seed, task="regression" if classes == 1 else "classification"
    )
    picks, gains, kept = naive_bait(snapshot, 5, 0.7, 10)
    state = information(rows_of(snapshot.candidates), rows_of(snapshot.labelled), 5, 0.7)
    positions, found = state.add(10)
    assert positions.tolist() == picks
    np.testing.assert_allclose(found.numpy(), gains, rtol=1e-6)
    assert positions[state.remove(positions, 5)].tolist() == kept
    assert chosen(snapshot, 5, ridge=0.7) == kept


@pytest.mark.parametrize("ridge", [1.0, 0.01])
@pytest.mark.parametrize(("task", "classes", "d"), [("classification", 5, 16), ("regression", 3, 32)])
def test_a_large_pool_equals_the_direct_form(task, classes, d, ridge):
    snapshot = trained_like(2000, 60, d, classes, task=task)
    assert chosen(snapshot, 20, ridge=ridge) == direct_bait(snapshot, 20, ridge, 40)


@pytest.mark.parametrize(("task", "classes", "d"), [("classification", 4, 8), ("regression", 3, 32)])
def test_gains_that_fall_by_many_digits_equal_the_direct_form(task, classes, d):
    """Five labelled samples and almost no ridge, so nothing is known about most directions at first."""
    snapshot = trained_like(600, 5, d, classes, seed=1, task=task)
    assert chosen(snapshot, 20, ridge=1e-6) == direct_bait(snapshot, 20, 1e-6, 40)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_the_number_of_shards_and_threads_changes_nothing(task):
    snapshot = trained_like(3500, 40, 12, 4, seed=3, task=task)
    alone = chosen(snapshot, 25, Limits(engine=LocalEngine(threads=1, shards=1)), ridge=0.1)
    for threads, shards in ((1, 2), (1, 3), (2, 4)):
        assert chosen(snapshot, 25, Limits(engine=LocalEngine(threads=threads, shards=shards)), ridge=0.1) == alone


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_the_triangle_is_a_root_of_the_curvature(make_snapshot, classes):
    p = make_snapshot(n=40, classes=classes).candidates.probabilities.double()
    p = p / p.sum(1, keepdim=True)
    p[0], p[1] = 0.0, 0.0
    p[0, 0], p[1, -1] = 1.0, 1.0
    root = triangle(p)
    assert (root.tril(-1) == 0).all()
    expected = torch.diag_embed(p) - p[:, :, None] * p[:, None, :]
    torch.testing.assert_close(root.mT @ root, expected[:, :-1, :-1], atol=1e-14, rtol=1e-12)


def test_factors_and_sums_equal_the_definition(make_snapshot):
    view = make_snapshot(n=12, classes=3).candidates
    p = view.probabilities.double()
    factors = fisher_factors(view)
    torch.testing.assert_close(
        factors.curvature, torch.diag_embed(p) - p[:, :, None] * p[:, None, :], atol=1e-7, rtol=1e-6
    )
    mean = sum(informations(view)) / 12
    torch.testing.assert_close(factors.mean(), mean)
    torch.testing.assert_close(total_information(rows_of(view)) / 12, mean[:12, :12], atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_forms_follow_picks_like_forms_computed_anew(make_snapshot, task):
    """More than one chunk, with rows that leave and rows that join."""
    snapshot = make_snapshot(n=CHUNK + 90, m=9, d=5, classes=4, task=task)
    rows = rows_of(snapshot.candidates)
    state = information(rows, rows_of(snapshot.labelled), 8, 0.5)
    design, scale = state._design, state._scale
    followed, fresh = Forms(rows, scale, len(rows)), Forms(rows, scale, len(rows))
    generator = np.random.default_rng(0)
    for place, sign in ((3, 1.0), (CHUNK + 5, 1.0), (40, 1.0), (3, -1.0)):
        some = np.flatnonzero(generator.random(len(rows)) < 0.9)
        followed.hold(some, design.inverse, design.spread)
        followed.take(design.take(rows.take(slice(place, place + 1), scale), sign)[1])
        fresh.hold(followed.places[:0], design.inverse, design.spread)
        fresh.hold(some, design.inverse, design.spread)
        order = np.argsort(followed.places)
        assert followed.places[order].tolist() == fresh.places.tolist() == some.tolist()
        np.testing.assert_allclose(followed.gains()[order], fresh.gains(), rtol=1e-9, atol=1e-14)
        np.testing.assert_allclose(followed.reaches()[order], fresh.reaches(), rtol=1e-9, atol=1e-14)


def test_as_many_classes_as_there_are_change_nothing(make_snapshot):
    snapshot = make_snapshot(n=120, d=5, classes=4)
    for k in (4, 9):
        assert chosen(snapshot, 10, classes=k) == chosen(snapshot, 10)


def test_fewer_classes_are_bait_on_merged_probabilities(make_snapshot):
    snapshot = make_snapshot(n=22, m=6, d=3, classes=6)
    apart = most_uncertain_classes(snapshot.candidates.probabilities, 2)

    def fewer(view):
        p = view.probabilities
        other = [c for c in range(6) if c not in apart.tolist()]
        return View(
            view.rows, view.embeddings, torch.cat([p[:, apart], p[:, other].sum(1, keepdim=True)], 1), view.predictions
        )

    merged = Snapshot("classification", fewer(snapshot.candidates), fewer(snapshot.labelled))
    assert chosen(snapshot, 4, classes=3) == naive_bait(merged, 4, 1.0, 8)[2]
    spread = (snapshot.candidates.probabilities * (1 - snapshot.candidates.probabilities)).sum(0)
    assert apart.tolist() == sorted(np.argsort(-spread.numpy())[:2].tolist())


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("n", [1, 8, 20, 30])
def test_exactly_n(make_snapshot, task, n):
    assert len(set(chosen(make_snapshot(n=30, task=task), n))) == n


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("shards", [1, 3])
def test_degenerate_pools(make_snapshot, task, shards):
    snapshot = make_snapshot(n=2500, d=4, classes=3, task=task)
    limits = Limits(engine=LocalEngine(threads=1, shards=shards))
    h, p = snapshot.candidates.embeddings, snapshot.candidates.probabilities
    copies = changed(snapshot, h[:1].repeat(2500, 1), None if p is None else p[:1].repeat(2500, 1))
    assert sorted(chosen(copies, 6, limits, oversample=1.0)) == list(range(6))
    assert len(set(chosen(copies, 6, limits))) == 6
    assert sorted(chosen(changed(snapshot, torch.zeros_like(h)), 6, limits, oversample=1.0)) == list(range(6))
    nothing = Snapshot(task, snapshot.candidates, make_snapshot(m=0, d=4, classes=3, task=task).labelled)
    assert len(set(chosen(nothing, 6, limits))) == 6
    if p is not None:
        sure = torch.zeros_like(p)
        sure[:, 1] = 1.0
        assert sorted(chosen(changed(snapshot, probabilities=sure), 6, limits, oversample=1.0)) == list(range(6))
        half = p.clone()
        half[1250:] = sure[1250:]
        assert max(chosen(changed(snapshot, probabilities=half), 6, limits)) < 1250


def test_rows_too_large_to_compare_are_an_error(make_snapshot):
    snapshot = make_snapshot(n=30, task="regression")
    huge = changed(snapshot, snapshot.candidates.embeddings.double() * 1e160)
    with pytest.raises(NonFiniteInput):
        chosen(huge, 3)


def test_it_says_what_it_needs_before_it_starts(make_snapshot):
    snapshot = make_snapshot(n=200, d=6, classes=4)
    needed = memory(200, 6, 4, 1)
    with pytest.raises(
        MemoryBudgetExceeded, match=r"BAIT on 200 candidates with 4 classes needs .* FisherGreedy\(classes=k\)"
    ):
        chosen(snapshot, 5, Limits(memory_budget=needed - 1))
    with pytest.raises(MemoryBudgetExceeded, match="with 3 classes"):
        chosen(snapshot, 5, Limits(memory_budget=1000), classes=3)
    assert len(chosen(snapshot, 5, Limits(memory_budget=needed))) == 5
    assert memory(200, 6, 3, 1) < needed


def test_the_state_is_two_matrices_of_single_precision_for_each_row(make_snapshot):
    rows = rows_of(make_snapshot(n=10, d=3, classes=7).candidates)
    forms = Forms(rows, 1.0, 4 * CHUNK)
    assert sum(array.nbytes for array in (forms._q, forms._g, forms._p)) == 4 * CHUNK * 2 * 7**2 * 4


def test_settings_are_checked():
    for settings in ({"ridge": 0.0}, {"oversample": -1.0}, {"classes": 1}, {"classes": 2.5}):
        with pytest.raises(InputError):
            FisherGreedy(**settings)


def test_approximated_classes_are_noted_in_the_query():
    X = np.random.default_rng(0).normal(size=(80, 5))
    y = np.where(np.arange(80) < 30, np.arange(80) % 6, np.nan)
    query = ally.query(
        X, y, n=4, strategy=ally.Strategy(select=FisherGreedy(classes=3)), model="linear-network", random_state=0
    )
    assert any(
        note.startswith("BAIT told 2 of 6 classes apart and took the others as one (classes=3)") for note in query.notes
    )
    assert not any(
        "BAIT" in note for note in ally.query(X, y, n=4, strategy="bait", model="linear-network", random_state=0).notes
    )
