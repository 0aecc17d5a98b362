"""Campaigns with models other than ours: by name, as an estimator, by the import path of a builder."""

import os
import sys

import pytest
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC
from torch import nn

from ally import Campaign
from ally.campaign.permissions import revoke
from ally.campaign.training import worker
from ally.errors import DataError, InputError, ModelError, UnknownName
from ally.learning.fitted_estimator import FittedEstimator
from ally.learning.trained import Trained
from ally.models import MLP

OWN = """
def trees():
    from sklearn.ensemble import ExtraTreesClassifier
    return ExtraTreesClassifier(10)

def build(shape, outputs):
    from ally.models import MLP
    return MLP(shape, outputs, (8,))
"""
SETTINGS = {"batch": 20, "evaluate": 20, "automatic": False}


@pytest.fixture
def own(tmp_path, monkeypatch):
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "campaign_models_of_a_test.py").write_text(OWN, encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", f"{folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    yield "campaign_models_of_a_test"
    sys.modules.pop("campaign_models_of_a_test", None)


@pytest.mark.parametrize(
    "model",
    [
        "extra-trees",
        make_pipeline(StandardScaler(), LogisticRegression(C=0.5)),
        "campaign_models_of_a_test:trees",
        "campaign_models_of_a_test:build",
    ],
    ids=["name", "estimator", "builder", "network"],
)
def test_a_campaign_is_trained_by_it(tmp_path, table, own, answer_all, model):
    source, truth = table
    strategy = "margin" if model == "extra-trees" else "ally"
    with Campaign.create(tmp_path / "c.db", source, model=model, strategy=strategy, **SETTINGS) as campaign:
        answer_all(campaign, truth, 40)
        campaign.retrain()
        answer_all(campaign, truth, 20)
        campaign.retrain()
        assert campaign.status().model.value > 0.7
        assert campaign.status().model.agreement is not None
        assert len(campaign.ask(5).ids) == 5
    with Campaign.open(tmp_path / "c.db") as campaign:
        trained = campaign.training.model()
        assert set(campaign.predict()["label"]) <= {"digit 0", "digit 1", "digit 2"}
        trained.write(tmp_path / "m.safetensors")
        kept = str(campaign.settings.model)
    again = Trained.read(tmp_path / "m.safetensors", trusted=[kept])
    assert again.fit.classes == trained.fit.classes
    if kept.startswith("skops,"):
        assert isinstance(again.fit, FittedEstimator)
        assert again.fit.estimator[-1].C == 0.5


def lightgbm_trees():
    trees = pytest.importorskip("lightgbm").LGBMClassifier(n_estimators=10, min_child_samples=3, verbose=-1)
    return make_pipeline(StandardScaler(), trees)


def xgboost_trees():
    return pytest.importorskip("xgboost").XGBClassifier(n_estimators=10, max_depth=3)


@pytest.mark.parametrize("make", [lightgbm_trees, xgboost_trees])
def test_boosted_trees_of_other_libraries_are_kept(tmp_path, table, answer_all, make):
    source, truth = table
    with Campaign.create(tmp_path / "c.db", source, model=make(), strategy="margin", **SETTINGS) as campaign:
        answer_all(campaign, truth, 40)
        campaign.retrain()
        assert campaign.status().model.value > 0.7
    with Campaign.open(tmp_path / "c.db") as campaign:
        predicted = campaign.predict().set_index("id")["label"]
        assert (predicted == [truth[id] for id in predicted.index]).mean() > 0.7
        assert len(campaign.ask(5).ids) == 5
        assert campaign.settings.ignored == ()
        # Whoever gets the campaign decides first whether the library may be used.
        revoke(campaign.id)
    with Campaign.open(tmp_path / "c.db") as campaign:
        assert [one.name for one in campaign.settings.ignored] == ["model"]
        assert campaign.settings.model == "auto"


def test_a_network_of_skorch_is_refused_with_what_to_do(tmp_path, table):
    net = pytest.importorskip("skorch").NeuralNetClassifier(nn.Linear, module__in_features=64, module__out_features=3)
    with pytest.raises(ModelError, match=r"network of skorch.*'module:builder', a function .shape, outputs."):
        Campaign.create(tmp_path / "c.db", table[0], model=net, **SETTINGS)
    assert not (tmp_path / "c.db").exists()


def test_an_estimator_of_many_settings_is_kept(tmp_path, table):
    model = make_pipeline(*(StandardScaler() for _ in range(20)), LinearSVC())
    with Campaign.create(tmp_path / "c.db", table[0], model=model, **SETTINGS) as campaign:
        assert len(campaign.settings.model) > 4000
    with Campaign.open(tmp_path / "c.db") as campaign, pytest.raises(InputError, match="at most 4000 are allowed"):
        campaign.change(model="m" * 5000)


def test_only_what_its_user_allowed_rebuilds_a_model(tmp_path, table, own, answer_all):
    source, truth = table
    place = tmp_path / "c.db"
    with Campaign.create(place, source, model=f"{own}:build", strategy="random", **SETTINGS) as campaign:
        answer_all(campaign, truth, 40)
        campaign.retrain()
        campaign.change(model="linear")
        assert len(campaign.predict())  # allowed once, though it is no longer the model
        revoke(campaign._store.id)
        sys.modules.pop(own)
        for read in (campaign.predict, campaign.training.model):
            with pytest.raises(DataError, match=rf"was built by '{own}:build'.*labels are safe, and `ally retrain`"):
                read()
        assert own not in sys.modules
        campaign.retrain()
        assert len(campaign.predict())


def test_a_change_of_the_model_holds_from_the_next_training_on(tmp_path, table, own, answer_all):
    source, truth = table
    with Campaign.create(tmp_path / "c.db", source, model=f"{own}:build", strategy="margin", **SETTINGS) as campaign:
        answer_all(campaign, truth, 40)
        campaign.retrain()
        campaign.change(model=ExtraTreesClassifier(10))
        answer_all(campaign, truth, 20)
        campaign.retrain()
        assert isinstance(campaign.training.model().fit, FittedEstimator)
        assert campaign.status().model.agreement is not None


@pytest.mark.parametrize("model", [KNeighborsClassifier(), LinearSVC()], ids=["no weights", "no probabilities"])
def test_estimators_that_cannot_do_everything_train_a_campaign(tmp_path, table, answer_all, model):
    source, truth = table
    with Campaign.create(tmp_path / "c.db", source, model=model, strategy="coreset", **SETTINGS) as campaign:
        answer_all(campaign, truth, 40)
        campaign.retrain()
        assert campaign.status().model.value > 0.5
        assert campaign.training.model().predict(campaign.source.samples.features(["s000"]))[0][0] in set(
            truth.values()
        )


def _double(x):
    return 2 * x


def _local():
    def build():
        return LogisticRegression()

    return build


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (lambda: LogisticRegression(), "which another process cannot rebuild"),
        (_local(), "which another process cannot rebuild"),
        (MLP((4,), 2), "model is a MLP, which another process cannot rebuild"),
        ("no_such_module:f", "cannot be imported"),
        (make_pipeline(FunctionTransformer(_double), LogisticRegression()), "not a trusted type|without pickling"),
        (ExtraTreesClassifier, "ExtraTreesClassifier"),
    ],
)
def test_models_a_worker_cannot_rebuild_are_refused(tmp_path, table, model, reason):
    with pytest.raises(ModelError, match=reason):
        Campaign.create(tmp_path / "c.db", table[0], model=model, **SETTINGS)
    assert not (tmp_path / "c.db").exists()
    with Campaign.create(tmp_path / "d.db", table[0], **SETTINGS) as campaign:
        with pytest.raises(ModelError, match=reason):
            campaign.change(model=model)
        assert campaign.settings.model == "auto"


def test_unknown_names_are_still_unknown(tmp_path, table):
    with pytest.raises(UnknownName, match="unknown model 'extra-tree'; did you mean 'extra-trees'"):
        Campaign.create(tmp_path / "c.db", table[0], model="extra-tree", **SETTINGS)


@pytest.mark.long
def test_a_worker_rebuilds_the_model(tmp_path, table, own, answer_all):
    source, truth = table
    with Campaign.create(tmp_path / "c.db", source, model=f"{own}:trees", strategy="margin", **SETTINGS) as campaign:
        answer_all(campaign, truth, 40)
    assert worker.start(str(tmp_path / "c.db"), campaign.id, now=True)
    assert worker._children[str(tmp_path / "c.db")].wait(120) == 0
    with Campaign.open(tmp_path / "c.db") as campaign:
        assert isinstance(campaign.training.model().fit, FittedEstimator)


def test_a_campaign_chooses_again_when_labels_have_grown_by_half(tmp_path, table, answer_all):
    source, truth = table
    chosen = []
    with Campaign.create(tmp_path / "c.db", source, strategy="random", evaluate=0, automatic=False) as campaign:
        for more in (6, 2, 1):
            answer_all(campaign, truth, more)
            campaign.retrain()
            chosen.append(campaign._store.models.newest().report["choice"]["labels"])
    assert chosen == [6, 6, 9]


def test_a_campaign_keeps_its_objective_until_labels_have_grown_by_half(tmp_path, table, answer_all):
    source, truth = table
    settings = {"strategy": "random", "model": "mlp", "objective": "auto", "evaluate": 0, "automatic": False}
    kept = []
    with Campaign.create(tmp_path / "c.db", source, **settings) as campaign:
        for more in (6, 2, 1):
            answer_all(campaign, truth, more)
            campaign.retrain()
            kept.append(campaign._store.models.newest().report["objective"])
    assert kept == [{"name": "erm", "labels": labels} for labels in (6, 6, 9)]
