import numpy as np
import pytest

import ally
from ally.errors import InputError
from ally.features import Gradient, Inputs, LastLayer
from ally.learning.dual_head import PaperHead, RidgeHead
from ally.learning.objectives import PDCL, resolve_objective
from ally.learning.training import Training
from ally.scoring import Constant, DualByTask, Entropy, Margin, PredictedDual, Random
from ally.selection import (
    LCMD,
    BestMatch,
    ByTask,
    ClusterTop,
    FisherGreedy,
    Herding,
    Influence,
    KCenter,
    KMeansPP,
    Top,
)
from ally.testing.pools import blobs


def parts(name):
    entry = ally.CATALOGUE[name]
    return entry.score, entry.select, resolve_objective(entry.objective)


def test_the_catalogue_is_what_it_says():
    erm = resolve_objective("erm")
    assert parts("ally") == (
        DualByTask(),
        ByTask(Herding(weighted=True, features=Inputs()), Influence(features=Inputs())),
        erm,
    )
    assert ally.CATALOGUE["ally"].first == Herding()
    assert parts("ally-clusters") == (
        PredictedDual(RidgeHead()),
        ClusterTop(shortlist=20),
        PDCL(eps=0.01, dual_cap=10.0),
    )
    assert parts("ally-paper") == (PredictedDual(PaperHead()), ClusterTop(clusters=None), PDCL(slacks="all"))
    assert ally.CATALOGUE["ally-paper"].patience == 2
    algorithm = resolve_objective(ally.CATALOGUE["ally-paper"].objective)
    assert (algorithm.eps, algorithm.dual_init, algorithm.dual_lr, algorithm.primal_steps) == (None, 0.0, 0.05, 1)
    assert parts("random") == (Random(), Top(), erm)
    assert parts("entropy") == (Entropy(), Top(), erm)
    assert parts("margin") == (Margin(), Top(), erm)
    assert parts("badge") == (Constant(), KMeansPP(Gradient()), erm)
    assert parts("coreset") == (Constant(), KCenter(), erm)
    assert parts("bait") == (Constant(), FisherGreedy(), erm)
    assert parts("kmeanspp") == (Constant(), KMeansPP(), erm)
    assert parts("lcmd") == (Constant(), LCMD(LastLayer()), erm)
    assert parts("uherding") == (Margin(calibrated=True), Herding(weighted=True), erm)


def test_coverage_needs_no_labels():
    covering = {name for name, entry in ally.CATALOGUE.items() if entry.covers}
    assert covering == {"coreset", "kmeanspp", "lcmd", "typiclust", "probcover", "maxherding"}


def test_calibration_is_known_to_take_more_trainings():
    assert {name for name, entry in ally.CATALOGUE.items() if entry.calibrates} == {"uherding"}
    assert "extra training" in ally.CATALOGUE["uherding"].needs
    assert ally.Strategy(Margin(), BestMatch(Margin(calibrated=True))).calibrates


def test_tasks_follow_from_the_parts():
    only = {name for name, entry in ally.CATALOGUE.items() if entry.tasks == {"classification"}}
    assert {"entropy", "margin", "badge"} <= only
    assert {"ally", "ally-paper", "random", "coreset", "bait", "kmeanspp"}.isdisjoint(only)


def test_an_objective_is_a_free_choice():
    scene = blobs("classification")
    plain = ally.query(scene.X, scene.y, n=5, strategy="margin", model="mlp", random_state=0)
    constrained = ally.query(scene.X, scene.y, n=5, strategy="margin", model="mlp", objective="pdcl", random_state=0)
    assert plain.report["fit"].positive_duals is None
    assert constrained.report["fit"].positive_duals is not None


def test_the_papers_ally_says_what_it_means_to_train_without_validation():
    scene = blobs("classification")
    alone = ally.query(scene.X, scene.y, n=3, strategy="ally-paper", model="mlp", random_state=0)
    assert any(
        "stops training early by validation samples, and there are none: all 40 epochs are run" in note
        for note in alone.notes
    )
    assert alone.report["fit"].epochs == 40
    held_out = blobs("classification", labelled=60, seed=1)
    loop = ally.Loop(
        scene.X, scene.y, strategy="ally-paper", validation=(held_out.X, held_out.y), model="mlp", random_state=0
    )
    stopped = loop.ask(3)
    fit = stopped.report["fit"]
    assert not any("validation" in note for note in stopped.notes)
    assert fit.epochs == min(40, fit.kept_epoch + 2)
    plain = ally.query(scene.X, scene.y, n=3, strategy="ally", model="mlp", random_state=0)
    assert not any("validation" in note for note in plain.notes)


def test_an_empty_validation_set_is_reported():
    scene = blobs("classification")
    with pytest.raises(InputError, match=r"^validation has 0 sample\(s\), while a minimum of 1 is required$"):
        ally.query(scene.X, scene.y, n=3, strategy="ally-paper", validation=(scene.X[:0], []))


def test_settings_of_the_trainer_come_before_the_methods_patience():
    scene, held_out = blobs("classification"), blobs("classification", labelled=60, seed=1)
    validation = held_out.X, held_out.y
    own = Training(epochs=30, patience=5)
    fit = (
        ally.Loop(
            scene.X, scene.y, strategy="ally-paper", validation=validation, model="mlp", training=own, random_state=0
        )
        .fit()
        .report
    )
    assert fit.epochs == min(30, fit.kept_epoch + 5)


def test_rounds_draw_anew():
    scene = blobs("classification", n=300)
    loop = ally.Loop(scene.X, scene.y, strategy="random", random_state=0)
    first = loop.ask(20)
    loop.release(first.id)
    assert set(loop.ask(20).ids.tolist()) != set(first.ids.tolist())


def test_percentiles_are_shares_of_the_candidates():
    scene = blobs("classification", n=212)
    q = ally.query(scene.X, scene.y, n=4, strategy="margin", model="linear", random_state=0)
    assert q.why["percentile"].tolist() == [100.0, 99.5, 99.0, 98.5]


def test_batches_fit_the_labelled_set():
    training = Training()
    assert [training.batch_size_for(n) for n in (5, 200, 640, 10_000)] == [8, 12, 40, 64]
    assert Training(batch_size=7).batch_size_for(10_000) == 7


def test_labels_decide_the_task_alike_for_every_kind():
    scene = blobs("classification")
    for y in (
        scene.y,
        np.where(np.isnan(scene.y), None, scene.y),
        [None if label != label else f"c{label:.0f}" for label in scene.y],
    ):
        assert "classification" in ally.query(scene.X, y, n=2, strategy="random").notes[0]
