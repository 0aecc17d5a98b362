"""How a loop uses a learner: prepared once and when it is needed, settled as labels grow, asked what it can do."""

import pickle
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import torch

import ally
from ally.data import as_source
from ally.errors import ModelError
from ally.execution.memory import Scratch
from ally.learning.learner import Fitted, Learner
from ally.learning.network import Network
from ally.learning.posterior import PosteriorSamples
from ally.learning.snapshot import view
from ally.learning.training import Training
from ally.models import MLP
from ally.testing.pools import blobs

QUICK = Training(epochs=2, device="cpu")


@dataclass(frozen=True)
class Watched:
    """A network that records what it is asked for."""

    inner: Network = Network.named("linear", QUICK)
    calls: list = field(default_factory=list)
    reason: str | None = None

    def supports(self, objective, task, needs=()):
        return self.reason

    def prepared(self, source, rows, chunk_size=None):
        self.calls.append("prepared")
        return replace(self, inner=self.inner.prepared(source, rows, chunk_size))

    def settled(self, examples, objective, streams, progress=None):
        self.calls.append(f"settled {len(examples)}")
        return self

    def points(self, source, rows):
        return self.inner.points(source, rows)

    def fit(self, *args, **named):
        self.calls.append("fit")
        return self.inner.fit(*args, **named)


def test_a_class_of_your_own_is_a_learner():
    assert isinstance(Watched(), Learner)
    assert isinstance(Network(MLP), Learner)


def test_prepared_once_and_settled_again_when_labels_have_grown_by_half():
    scene, learner = blobs("classification", labelled=12), Watched()
    loop = ally.Loop(scene.X, scene.y, strategy="margin", model=learner, random_state=0)
    assert learner.calls == []
    for count in (2, 4, 1):
        q = loop.ask(count)
        loop.tell(q.id, dict.fromkeys(q.ids.tolist(), 0.0))
    loop.fit()
    # 12 labels, 14, 18 (half as many again as 12), 19.
    assert learner.calls == ["prepared", "settled 12", "fit", "fit", "settled 18", "fit", "fit"]


def test_a_strategy_that_ignores_the_model_prepares_nothing():
    scene, learner = blobs("classification"), Watched()
    ally.query(scene.X, scene.y, n=3, strategy="random", model=learner, random_state=0)
    assert learner.calls == []


def test_an_unsupported_learner_fails_before_training():
    scene, learner = blobs("classification"), Watched(reason="this learner has no duals; use objective='erm'")
    with pytest.raises(ModelError, match="this learner has no duals"):
        ally.Loop(scene.X, scene.y, model=learner)
    assert learner.calls == []


def test_the_learner_of_a_loop_serves_another_without_a_new_pass():
    scene, learner = blobs("classification"), Watched()
    first = ally.Loop(scene.X, scene.y, strategy="margin", model=learner, random_state=0)
    ready = first.learner
    assert learner.calls == ["prepared", "settled 12"]
    assert ready.inner.scaler is ready.prepared(as_source(scene.X), np.arange(5)).inner.scaler
    second = ally.Loop(scene.X, scene.y, strategy="margin", model=ready.inner, random_state=0)
    assert (first.ask(5).ids == second.ask(5).ids).all()


def test_parts_of_a_pool_can_be_looked_at_elsewhere():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2500, 5)).astype(np.float32)
    y = np.where(X[:, 0] > 0, 1.0, 0.0)
    y[40:] = np.nan
    loop = ally.Loop(X, y, strategy="bald", model=Network(MLP, QUICK), training=QUICK, random_state=0)
    fits, source, rows = loop._members(2), as_source(X), np.arange(40, 2500)
    assert isinstance(fits[0], Fitted)
    readouts = (PosteriorSamples(members=2),)
    with Scratch() as scratch:
        whole = view(fits[0], source, rows, scratch, members=fits[1:], readouts=readouts, seed=3)
    for run in (slice(0, 1024), slice(1024, 2460)):
        sent = pickle.loads(pickle.dumps((fits[0], source, rows[run], fits[1:], readouts)))
        part = sent[0].view(sent[1], sent[2], members=sent[3], readouts=sent[4], seed=3, start=run.start)
        assert torch.equal(part.embeddings, whole.embeddings[run])
        assert torch.equal(part.probabilities, whole.probabilities[run])
        assert torch.equal(part.predictions, whole.predictions[run])
        assert torch.equal(part.readouts[readouts[0].name], whole.readouts[readouts[0].name][run])
