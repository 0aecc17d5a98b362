"""scikit-learn estimators as learners: duals by reweighting, what is and is not possible, what estimators are told."""

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
)
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import ally
from ally.data import as_source
from ally.errors import ModelError, NonFiniteInput, OneClassError, UnknownName
from ally.learning.estimator import Estimator
from ally.learning.geometry import Leaves, Standardised, Transformed
from ally.learning.learner import Examples
from ally.learning.objectives import ERM, PDCL, VAAL, Feasibility, HalfSquaredNorm, Resilient
from ally.rng import streams
from ally.testing.pools import blobs

rng = np.random.default_rng(3)
N = 30
X = rng.normal(size=(N, 3))
MARGIN = X @ np.asarray([1.5, -1.0, 0.5])
BINARY = (MARGIN + 0.7 * rng.normal(size=N) > 0).astype(int)
TARGET = MARGIN + 0.4 * rng.normal(size=N)
TARGET = (TARGET - TARGET.mean()) / TARGET.std()


NAMED = Examples.of(X, BINARY, ("no", "yes"))


def solved(loss, w, eps, penalty, risk=1.0):
    """λ and w of mean ℓ + penalty·‖w‖² subject to ℓ ≤ ε, λ in the units of a mean."""
    constraint = loss <= eps
    problem = cp.Problem(cp.Minimize(risk * cp.sum(loss) / N + penalty * cp.sum_squares(w)), [constraint])
    problem.solve(solver=cp.CLARABEL)
    assert problem.status == "optimal"
    return N * constraint.dual_value, w.value


def test_duals_of_logistic_regression_are_those_of_the_convex_problem():
    C, w, b = 0.5, cp.Variable(3), cp.Variable()
    loss = cp.logistic(-cp.multiply(2 * BINARY - 1, X @ w + b))
    plain = LogisticRegression(C=C).fit(X, BINARY).predict_proba(X)[np.arange(N), BINARY]
    eps = 0.97 * -np.log(plain.min())
    duals, weights = solved(loss, w, eps, 1 / (2 * C * N))
    learner = Estimator(LogisticRegression(C=C, tol=1e-8, max_iter=1000), dual_steps=150)
    fitted = learner.fit(Examples.of(X, BINARY, (0, 1)), PDCL(eps=eps, dual_lr=4.0, dual_decay=0.0), streams(0))
    assert duals.max() > 0.1
    np.testing.assert_allclose(fitted.duals["labelled"], duals, atol=1e-3)
    np.testing.assert_allclose(fitted.estimator.coef_[0], weights, atol=1e-4)
    assert fitted.report.slacks.largest < 1e-3


@pytest.mark.parametrize(("objective", "risk", "eps"), [(PDCL, 1.0, 0.08), (Feasibility, 0.0, 0.068)])
def test_duals_of_ridge_regression_are_those_of_the_convex_problem(objective, risk, eps):
    alpha, w, b = 2.0, cp.Variable(3), cp.Variable()
    duals, weights = solved(cp.square(TARGET - X @ w - b), w, eps, alpha / N, risk)
    learner = Estimator(make_pipeline(StandardScaler(with_std=False), Ridge(alpha=alpha)), dual_steps=220)
    fitted = learner.fit(Examples.of(X, TARGET), objective(eps=eps, dual_lr=3.0, dual_decay=0.0), streams(0))
    assert duals.max() > 0.1
    np.testing.assert_allclose(fitted.duals["labelled"], duals, atol=5e-3)
    np.testing.assert_allclose(fitted.estimator[-1].coef_, weights, atol=1e-3)


@pytest.mark.parametrize(("slope", "steps", "near"), [(1.0, None, 0.02), (1.0, 30, 1e-3), (2.0, 40, 1e-3)])
def test_resilient_duals_of_an_estimator_rest_at_the_closed_form(slope, steps, near):
    objective = Resilient(eps=0.2, slope=slope, dual_cap=0.4)
    fitted = Estimator(LogisticRegression(tol=1e-8), dual_steps=steps).fit(NAMED, objective, streams(0))
    losses = -np.log(fitted.estimator.predict_proba(X)[np.arange(N), BINARY])
    duals = fitted.duals["labelled"].numpy()
    np.testing.assert_allclose(duals, np.clip(slope * (losses - 0.2), 0, 0.4), atol=near)
    assert duals.min() == 0
    assert duals.max() == pytest.approx(0.4, abs=near)


class Recorder(ClassifierMixin, BaseEstimator):
    """Remembers what it was told, in a list that clones share."""

    told: list = []  # noqa: RUF012

    def __init__(self, random_state=None, names=None):
        self.random_state = random_state
        self.names = names

    def fit(self, X, y, sample_weight=None):
        self.told.append((X, y, None if sample_weight is None else sample_weight.copy(), self.random_state))
        self.inner_ = DecisionTreeClassifier(max_depth=1, random_state=self.random_state).fit(X, y, sample_weight)
        self.classes_ = self.inner_.classes_
        return self

    def predict(self, X):
        return self.inner_.predict(X)

    def predict_proba(self, X):
        return self.inner_.predict_proba(X)


@pytest.fixture
def recorder():
    Recorder.told.clear()
    return Recorder()


def test_weights_are_one_plus_the_duals_and_classes_have_their_names(recorder):
    fitted = Estimator(recorder, losses="in-sample", dual_steps=3).fit(NAMED, PDCL(eps=0.1), streams(0))
    weights = [told[2] for told in Recorder.told]
    assert weights[0] is None
    assert len(weights) == 4 == fitted.report.epochs
    np.testing.assert_allclose(weights[-1], 1 + fitted.duals["labelled"])
    assert set(Recorder.told[0][1].tolist()) == {"no", "yes"}
    assert len({told[3] for told in Recorder.told}) == 1
    assert Recorder.told[0][3] is not None
    assert recorder.random_state is None


def test_dual_steps_diminish_as_for_networks(recorder):
    objective = PDCL(eps=0.0, dual_lr=0.5, dual_decay=0.5, weighted=False)
    one, two, three = (
        Estimator(recorder, dual_steps=steps).fit(NAMED, objective, streams(0)).duals["labelled"] for steps in (1, 2, 3)
    )
    torch.testing.assert_close(two - one, one * 2**-0.5)
    torch.testing.assert_close(three - two, one * 3**-0.5)


def test_losses_can_be_recorded_without_weights():
    recording = PDCL(eps=0.0, dual_lr=0.1, dual_decay=0.0, weighted=False)
    fitted = Estimator(KNeighborsClassifier()).fit(NAMED, recording, streams(0))
    assert float(fitted.duals["labelled"].max()) > 0


def test_a_random_state_of_the_user_is_kept():
    Recorder.told.clear()
    Estimator(Recorder(random_state=5)).fit(NAMED, ERM(), streams(0))
    assert Recorder.told[0][3] == 5


def test_losses_are_read_out_of_fold_where_an_estimator_memorises():
    trees = Estimator(ExtraTreesClassifier(20)).fit(NAMED, PDCL(eps=0.1), streams(0))
    assert trees.report.positive_duals > 0.1
    probabilities, predictions = trees.held_out
    assert 0.5 < float((predictions.numpy() == BINARY).mean()) < 1
    assert probabilities.shape == (N, 2)
    own = trees.view(NAMED.source, NAMED.rows)
    assert float((own.predictions.numpy() == BINARY).mean()) == 1
    linear = Estimator(LogisticRegression()).fit(NAMED, PDCL(eps=0.1), streams(0))
    assert linear.held_out is None


def test_a_snapshot_sees_labelled_samples_as_if_they_were_not_trained_on():
    y = np.where(np.arange(300) < N, 1.0, np.nan)
    pool = np.random.default_rng(1).normal(size=(300, 3))
    y[:N] = (pool[:N, 0] + 0.5 * rng.normal(size=N) > 0).astype(float)
    first = ally.query(pool, y, n=100, strategy="ally-clusters", model=ExtraTreesClassifier(20), random_state=0)
    assert len(set(first.scores.tolist())) > 1
    assert first.report["rank_quality"] is not None


def test_losses_of_regression_are_in_standardised_units():
    data = Examples.of(X, 1e4 + 100 * TARGET)
    one = Estimator(Ridge()).fit(data, PDCL(eps=0.2), streams(0))
    other = Estimator(Ridge()).fit(Examples.of(X, TARGET), PDCL(eps=0.2), streams(0))
    np.testing.assert_allclose(one.duals["labelled"], other.duals["labelled"], atol=1e-9)
    assert one.report.train_loss == pytest.approx(other.report.train_loss)
    np.testing.assert_allclose(one.predict(data.source), 1e4 + 100 * other.predict(data.source), rtol=1e-9)


REASONS = [
    (ExtraTreesRegressor(), ERM(), "classification", "ExtraTreesRegressor is not a classifier"),
    (LogisticRegression(), ERM(), "regression", "LogisticRegression is not a regressor"),
    (KNeighborsClassifier(), PDCL(), "classification", "does not take sample_weight"),
    (LinearSVC(), PDCL(), "classification", "LinearSVC has no predict_proba, so its losses"),
    (LogisticRegression(), VAAL(), "classification", "VAAL trains networks"),
    (LogisticRegression(), ERM(HalfSquaredNorm(1.0)), "classification", "ERM trains networks"),
    (LogisticRegression(), PDCL(secondary_loss="brier"), "classification", "has its own loss"),
]


@pytest.mark.parametrize(("estimator", "objective", "task", "reason"), REASONS)
def test_unsupported_requests_are_refused_with_a_reason(estimator, objective, task, reason):
    assert reason in Estimator(estimator).supports(objective, task)
    y = BINARY if task == "classification" else TARGET
    with pytest.raises(ModelError, match=reason):
        ally.Loop(X, y, task=task, model=estimator, objective=objective, strategy="random")


@pytest.mark.parametrize("strategy", ["random", "coreset", "lcmd", "kmeanspp", "maxherding", "typiclust", "dal"])
def test_strategies_that_need_no_probabilities_work_without(strategy):
    scene = blobs("classification")
    assert len(ally.query(scene.X, scene.y, n=3, strategy=strategy, model=LinearSVC(), random_state=0)) == 3


@pytest.mark.parametrize("strategy", ["margin", "badge", "bald", "uherding", "dropquery", "ally-clusters"])
def test_strategies_that_need_probabilities_say_so(strategy):
    scene = blobs("classification")
    with pytest.raises(ModelError, match="no predict_proba"):
        ally.query(scene.X, scene.y, n=3, strategy=strategy, model=LinearSVC(), random_state=0)
    calibrated = CalibratedClassifierCV(LinearSVC(), cv=2)
    assert len(ally.query(scene.X, scene.y, n=3, strategy=strategy, model=calibrated, random_state=0)) == 3


def test_the_default_strategy_asks_no_more_of_a_model_than_to_predict():
    scene = blobs("classification")
    plain = ally.query(scene.X, scene.y, n=3, model=LinearSVC(), random_state=0)
    assert any(
        note.startswith("the model gives no probabilities: all candidates weigh the same") for note in plain.notes
    )
    assert plain.report["constraint"] is None
    assert plain.why["dual"].isna().all()
    scene = blobs("regression")
    for model, constraint in ((KNeighborsRegressor(3), None), (ExtraTreesRegressor(10), "AbsoluteError")):
        found = ally.query(scene.X, scene.y, n=3, model=model, random_state=0)
        assert len(set(found.ids.tolist())) == 3
        assert found.report["constraint"] == constraint
        assert found.why["dual"].notna().all() == (constraint is not None)
        assert "the batch is chosen by Influence" in found.notes


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("model", ["extra-trees", "random-forest", "hist-gradient-boosting"])
def test_estimators_by_name(model, task):
    scene = blobs(task)
    q = ally.query(scene.X, scene.y, n=3, strategy="lcmd", task=task, model=model, random_state=0)
    assert len(q) == 3


def test_a_class_and_an_unknown_name_are_refused():
    scene = blobs("classification")
    with pytest.raises(ModelError, match=r"model is the class ExtraTreesClassifier; pass an instance"):
        ally.query(scene.X, scene.y, n=3, model=ExtraTreesClassifier)
    with pytest.raises(UnknownName, match="unknown model 'extra-tree'; did you mean 'extra-trees'"):
        ally.query(scene.X, scene.y, n=3, model="extra-tree")


def test_one_class_is_named_where_an_estimator_needs_two():
    y = np.where(np.arange(N) < 9, 0.0, np.nan)
    with pytest.raises(OneClassError, match="all 9 labels are 0 so far, and LogisticRegression needs at least two"):
        ally.query(X, y, n=3, strategy="margin", model=LogisticRegression(), classes=[0, 1])
    assert len(ally.query(X, y, n=3, strategy="coreset", model="extra-trees", classes=[0, 1], random_state=0)) == 3


def test_a_failure_names_the_estimator():
    with pytest.raises(ModelError, match="LogisticRegression cannot be trained on these 30 samples"):
        Estimator(LogisticRegression(C=-1)).fit(NAMED, ERM(), streams(0))


def test_a_warning_becomes_a_note():
    q = ally.query(
        X * [1, 1e4, 1], [*BINARY[:20], *[None] * 10], n=3, strategy="margin", model=LogisticRegression(max_iter=1)
    )
    assert any(note.startswith("LogisticRegression warns: lbfgs failed to converge") for note in q.notes)


def test_the_estimator_is_cloned_and_never_changed():
    pipe = make_pipeline(StandardScaler(), ExtraTreesClassifier(10))
    before = repr(pipe.get_params())
    scene = blobs("classification")
    ally.query(scene.X, scene.y, n=3, model=pipe, random_state=0)
    assert repr(pipe.get_params()) == before
    assert not hasattr(pipe[-1], "estimators_")


def test_sparse_samples_stay_sparse(recorder):
    class Takes(Recorder):
        def fit(self, X, y, sample_weight=None):
            assert scipy.sparse.issparse(X)
            return super().fit(X, y, sample_weight)

    matrix = scipy.sparse.csr_matrix(np.where(rng.random((60, 5)) < 0.4, 1.0, 0.0))
    y = [float(k % 2) if k < 20 else None for k in range(60)]
    assert len(ally.query(matrix, y, n=4, model=Takes(), random_state=0)) == 4
    for strategy in ("ally", "badge", "dropquery"):
        assert len(ally.query(matrix, y, n=4, strategy=strategy, model="extra-trees", random_state=0)) == 4


def test_texts_go_through_a_pipeline_as_they_are():
    texts = [f"{word} {noun} {k}" for k in range(40) for word, noun in (("good", "film"), ("bad", "book"))]
    y = [("pos", "neg")[k % 2] if k < 12 else None for k in range(80)]
    pipe = make_pipeline(TfidfVectorizer(), LogisticRegression())
    for given in (texts, np.array(texts), np.array(texts, dtype=object), pd.Series(texts)):
        for strategy in ("ally", "coreset"):
            assert len(ally.query(given, y, n=4, strategy=strategy, model=pipe, random_state=0)) == 4
    assert len(ally.query(texts, None, n=4, model=pipe, random_state=0)) == 4
    loop = ally.Loop(texts, y, strategy="margin", model=pipe, random_state=0)
    assert loop.predict(["good film", "bad book"]).tolist() == ["pos", "neg"]
    copies = ally.query([*texts, *texts], [*y, *[None] * 80], n=60, strategy="random", model=pipe, random_state=0)
    assert copies.report["set_aside"]["exact"] == 80


def test_a_loop_reads_texts_as_a_query_does():
    loop = ally.Loop(["a b", "c d", "a d"], ["x", None, "y"], model="linear", strategy="margin")
    assert loop.ask(1).ids.tolist() == [1]


def test_tables_of_any_columns_keep_their_names():
    frame = pd.DataFrame({"size": rng.normal(size=60), "kind": rng.choice(["a", "b"], 60), "gap": rng.normal(size=60)})
    frame.loc[3, "gap"] = np.nan
    y = [float(size > 0) if k < 20 else None for k, size in enumerate(frame["size"])]
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    columns = ColumnTransformer([("n", numbers, ["size", "gap"]), ("c", OneHotEncoder(), ["kind"])])
    pipe = make_pipeline(columns, LogisticRegression())
    q = ally.query(frame, y, n=4, model=pipe, random_state=0)
    assert len(q) == 4
    only = make_pipeline(ColumnTransformer([("n", numbers, ["size"])]), LogisticRegression())
    assert len(ally.query(frame[["size"]], y, n=4, strategy="badge", model=only, random_state=0)) == 4


def test_nan_goes_to_estimators_that_take_it():
    holes = X.copy()
    holes[[2, 25], 1] = np.nan
    y = [float(k % 2) if k < 20 else None for k in range(N)]
    model = HistGradientBoostingClassifier(max_iter=5)
    assert len(ally.query(holes, y, n=4, strategy="coreset", model=model, random_state=0)) == 4
    with pytest.raises(NonFiniteInput, match="X holds nan at row 2, feature 1"):
        ally.query(holes, y, n=4, strategy="coreset", model=LogisticRegression(), random_state=0)


def test_images_are_flattened():
    images = rng.random((40, 1, 4, 4))
    y = [float(k % 2) if k < 12 else None for k in range(40)]
    assert len(ally.query(images, y, n=4, model="extra-trees", random_state=0)) == 4


def test_distances_are_those_of_standardised_inputs():
    scene = blobs("classification")
    far = scene.X * [1, 1000, 1, 1]
    one, other = (
        ally.query(x, scene.y, n=5, strategy="coreset", model="extra-trees", random_state=0) for x in (far, scene.X)
    )
    assert one.ids.tolist() == other.ids.tolist()
    fitted = ally.Loop(scene.X, scene.y, strategy="margin", model="extra-trees", random_state=0).fit()
    assert isinstance(fitted.geometry, Standardised)


def test_leaves_are_near_where_trees_agree():
    learner = Estimator(ExtraTreesClassifier(50, random_state=0), geometry="leaves")
    fitted = learner.fit(NAMED, ERM(), streams(0))
    assert isinstance(fitted.geometry, Leaves)
    points = fitted.view(NAMED.source, NAMED.rows).embeddings
    leaves = fitted.estimator.apply(X)
    share = (leaves[:, None, :] == leaves[None, :, :]).mean(2)
    assert np.abs((points @ points.T).numpy() - share).max() < 0.3
    assert np.corrcoef((points @ points.T).numpy().ravel(), share.ravel())[0, 1] > 0.9
    with pytest.raises(ModelError, match="LogisticRegression is not a forest, so it has no leaves"):
        Estimator(LogisticRegression(), geometry="leaves")


def test_wide_texts_are_projected_and_keep_their_distances():
    words = np.random.default_rng(0).integers(0, 2000, (200, 30))
    texts = [" ".join(f"w{word}" for word in row) for row in words]
    steps = make_pipeline(TfidfVectorizer()).fit(texts)
    geometry = Transformed.of(steps, texts[:1])
    assert geometry.projection is not None
    exact = steps.transform(texts).toarray()
    found = geometry(texts).numpy()
    ratio = np.linalg.norm(found[:100] - found[100:], axis=1) / np.linalg.norm(exact[:100] - exact[100:], axis=1)
    assert abs(ratio.mean() - 1) < 0.05
    assert ratio.std() < 0.1


def test_missing_classes_have_probability_zero():
    fitted = Estimator(LogisticRegression()).fit(Examples.of(X, 2 * BINARY, ("a", "b", "c")), ERM(), streams(0))
    seen = fitted.view(NAMED.source, NAMED.rows)
    assert (seen.probabilities[:, 1] == 0).all()
    assert set(fitted.predict(NAMED.source).tolist()) == {"a", "c"}


def test_classes_of_several_types_are_told_by_number():
    fitted = Estimator(LogisticRegression()).fit(Examples.of(X, BINARY, (1, "1")), ERM(), streams(0))
    assert set(fitted.predict(NAMED.source).tolist()) == {1, "1"}


def test_a_forest_gives_its_trees_and_others_are_refitted_on_bootstraps():
    forest = Estimator(ExtraTreesClassifier(30)).fit(NAMED, ERM(), streams(0))
    x = forest.inputs(NAMED.source, NAMED.rows)
    trees = torch.stack(list(forest.sampled(x, 100, 0)))
    assert len(trees) == 30
    torch.testing.assert_close(trees.mean(0), forest.outputs(x))
    linear = Estimator(LogisticRegression())
    one, other = (linear.fit(NAMED, ERM(), streams(7), member=member).outputs(x) for member in (0, 1))
    assert float((one - other).abs().max()) > 0.01
    scene = blobs("classification")
    assert len(ally.query(scene.X, scene.y, n=3, strategy="batchbald", model=LogisticRegression(), random_state=0)) == 3


def test_validation_is_measured_and_not_trained_on():
    learner = Estimator(LogisticRegression())
    plain = learner.fit(NAMED, ERM(), streams(0))
    beside = learner.fit(NAMED, ERM(), streams(0), validation=NAMED.at(np.arange(8)))
    assert np.array_equal(plain.estimator.coef_, beside.estimator.coef_)
    p = plain.outputs(plain.inputs(NAMED.source, NAMED.rows[:8])).numpy()[np.arange(8), BINARY[:8]]
    assert beside.report.validation_loss == pytest.approx(-np.log(p).mean())


def test_automatic_levels_come_from_an_unconstrained_fit():
    learner = replace(Estimator(LogisticRegression()), dual_steps=1)
    plain = learner.fit(NAMED, ERM(), streams(0)).report.train_loss
    fitted = learner.fit(NAMED, PDCL(eps="auto", dual_lr=1.0), streams(0))
    p = learner.fit(NAMED, ERM(), streams(0)).outputs(X).numpy()[np.arange(N), BINARY]
    expected = np.clip(-np.log(p) - 1.15 * plain, 0, None)
    np.testing.assert_allclose(fitted.duals["labelled"], expected, atol=1e-6)


def test_other_samples_have_the_same_shape():
    loop = ally.Loop(X, BINARY, strategy="random", model=LogisticRegression())
    with pytest.raises(ally.errors.InputError, match=r"the samples have shape \(4,\) and the model takes \(3,\)"):
        loop.predict(np.zeros((2, 4)))
    assert as_source(X).shape == (3,)


@pytest.mark.parametrize(
    "model",
    [ExtraTreesClassifier(n_estimators=-1), GradientBoostingClassifier(max_depth=-1)],
    ids=["forest", "boosting"],
)
def test_settings_of_an_ensemble_are_still_checked(model):
    scene = blobs("classification")
    with pytest.raises(
        ModelError, match=r"parameter of (ExtraTrees|GradientBoosting)Classifier must be an int in the range"
    ):
        ally.query(scene.X, scene.y, n=2, strategy="margin", model=model, random_state=0)
