import numpy as np
import pytest

import ally
from ally.errors import InputError
from ally.features import Gradient, Inputs, LastLayer
from ally.learning.auto import AutoLearner
from ally.learning.dual_head import PaperHead, RidgeHead
from ally.learning.network import Network
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
    assert parts("ally-paper") == (
        PredictedDual(PaperHead()),
        ClusterTop(clusters=None),
        PDCL(slacks="all", dual_every="epoch"),
    )
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
    assert parts("uherding") == (
        Margin(calibrated=True),
        Herding(weighted=True, bandwidth="labelled"),
        erm,
    )


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
    assert any("of 12 labels none is held out (from 50 on): all 40 epochs are run" in note for note in alone.notes)
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


def test_the_papers_ally_holds_out_a_share_of_the_labels_to_stop_early():
    scene = blobs("classification", n=160, labelled=100)
    loop = ally.Loop(scene.X, scene.y, strategy="ally-paper", model="mlp", random_state=0)
    query = loop.ask(3)
    fit = query.report["fit"]
    assert any(note.startswith("20 of the 100 labels are held out to stop training early") for note in query.notes)
    assert (fit.samples, fit.epochs) == (80, min(40, fit.kept_epoch + 2))
    assert fit.validation_loss is not None
    duals = loop.fit().duals["labelled"]
    assert (len(duals), int(duals.isnan().sum())) == (100, 20)
    every = ally.Loop(
        scene.X,
        scene.y,
        strategy="ally-paper",
        model="mlp",
        training=Training(validation_share=0.0),
        random_state=0,
    )
    assert every.fit().report.samples == 100
    plain = ally.Loop(scene.X, scene.y, strategy="margin", model="mlp", random_state=0)
    assert plain.fit().report.samples == 100


def test_levels_of_single_samples_follow_the_labels_that_are_trained_on():
    scene = blobs("classification", n=160, labelled=100)
    levels = np.where(np.arange(100) < 50, 0.0, 20.0)
    loop = ally.Loop(scene.X, scene.y, strategy="ally-paper", objective=PDCL(eps=levels), model="mlp", random_state=0)
    duals = loop.fit().duals["labelled"].numpy()
    assert (duals[:50][~np.isnan(duals[:50])] > 0).all()
    assert (duals[50:][~np.isnan(duals[50:])] == 0).all()


def test_the_papers_ally_takes_a_network_where_the_model_is_open():
    scene = blobs("classification")
    for model in ("auto", None, AutoLearner()):
        query = ally.query(scene.X, scene.y, n=3, strategy="ally-paper", model=model, random_state=0)
        assert "mlp: the strategy is defined for a network" in query.notes
        assert not any("cross-validation" in note for note in query.notes)
    own = ally.query(scene.X, scene.y, n=3, strategy="ally-paper", model="mlp", random_state=0)
    assert own.ids.tolist() == query.ids.tolist()
    assert not any("defined for a network" in note for note in own.notes)
    images = ally.Loop(np.zeros((20, 1, 8, 8), np.float32), strategy="ally-paper")
    assert isinstance(images.learner, Network)
    assert images.learner.name == "resnet18-slim"


@pytest.mark.parametrize("model", ["linear", "extra-trees"])
def test_the_papers_ally_with_another_model_says_that_it_is_not_the_papers(model):
    scene = blobs("classification", n=160, labelled=100)
    query = ally.query(scene.X, scene.y, n=3, strategy="ally-paper", model=model, random_state=0)
    assert any("is defined for a network, and " in note and " is none: " in note for note in query.notes)
    assert not any("epochs are run" in note or "held out to stop" in note for note in query.notes)


def test_an_empty_validation_set_is_reported():
    scene = blobs("classification")
    with pytest.raises(InputError, match=r"^validation has 0 sample\(s\), while a minimum of 1 is required$"):
        ally.query(scene.X, scene.y, n=3, strategy="ally-paper", validation=(scene.X[:0], []))


@pytest.mark.parametrize(
    ("patience", "settings"),
    [
        (5, {"model": "mlp", "training": Training(epochs=30, patience=5)}),
        (2, {"model": "mlp", "training": Training(epochs=30)}),
        (5, {"model": Network.named("mlp", Training(epochs=30, patience=5))}),
        (2, {"model": Network.named("mlp", Training(epochs=30))}),
        (5, {"model": ally.ConstrainedClassifier(epochs=30, patience=5)}),
        (2, {"model": ally.ConstrainedClassifier(epochs=30)}),
    ],
)
def test_only_a_patience_that_was_chosen_comes_before_the_methods(patience, settings):
    scene, held_out = blobs("classification"), blobs("classification", labelled=60, seed=1)
    loop = ally.Loop(
        scene.X, scene.y, strategy="ally-paper", validation=(held_out.X, held_out.y), random_state=0, **settings
    )
    fit = loop.fit().report
    assert fit.epochs == min(30, fit.kept_epoch + patience)
    assert fit.kept_epoch + patience < 30


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
