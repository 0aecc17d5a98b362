"""Networks that do not come as backbone and head: where the head is found, and what is said where it is not."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import nn

import ally
from ally.errors import ModelError
from ally.learning.network import Network
from ally.learning.trained import Trained
from ally.learning.training import Training
from ally.loop import Loop
from ally.models import Split, split_network
from ally.testing.learner import check_learner

X = np.random.default_rng(0).normal(size=(200, 4)).astype(np.float32)
Y = np.where(np.arange(200) < 80, (X[:, 0] > 0).astype(float), np.nan)
QUICK = Training(lr=0.02, epochs=20, device="cpu")
x = torch.from_numpy(X[:2])


def layers(*more, outputs=2):
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, outputs), *more)


class Two(nn.Module):
    """A network whose head is not its last attribute."""

    def __init__(self, outputs=2):
        super().__init__()
        self.classify = nn.Linear(6, outputs)
        self.body = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Dropout(0.1))

    def forward(self, x):
        return self.classify(self.body(x))


class Flat(Two):
    """Numbers without a last axis."""

    def forward(self, x):
        return super().forward(x).squeeze(-1)


class Same(Two):
    """One layer twice, and another beside the head that gives the same."""

    def __init__(self):
        super().__init__()
        self.beside = nn.Linear(6, 2)
        self.beside.load_state_dict(self.classify.state_dict())

    def forward(self, x):
        return (super().forward(x) + self.beside(self.body(x))) / 2


class Widens(Two):
    def forward(self, x):
        return self.classify(self.body(x) if self.classify.__class__ is nn.Linear else self.body(x) * 2)


class Idle(Two):
    def __init__(self):
        super().__init__()
        self.never = nn.Linear(4, 2)


class Pair(Two):
    def forward(self, x):
        return super().forward(x), x


@pytest.mark.parametrize(
    ("network", "head", "width", "outputs"),
    [(layers(), "2", 8, 2), (Two(), "classify", 6, 2), (Flat(1), "classify", 6, 1), (nn.Linear(4, 2), "", 4, 2)],
)
def test_the_last_linear_layer_is_the_head(network, head, width, outputs):
    before = {name: value.clone() for name, value in network.state_dict().items()}
    divided, found = split_network(network, x, outputs)
    assert found == head
    assert divided.eval().backbone(x).shape == (2, width)
    torch.testing.assert_close(divided(x).reshape(-1), network.eval()(x).reshape(-1))
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())


@pytest.mark.parametrize(
    ("network", "reason"),
    [
        (layers(outputs=3), r"the last linear layer '2' of Sequential has 3 outputs and 2 are needed.*num_labels"),
        (layers(nn.LogSoftmax(1)), r"does not end with a linear layer \(more follows '2', the last one\)"),
        (nn.Sequential(nn.Flatten()), r"does not end with a linear layer \(it has none\)"),
        (Same(), r"Same has several last linear layers \('classify', 'beside'\)"),
        (Widens(), r"Widens gives something else once its head 'classify' is apart"),
        (Pair(), r"Pair gives a tuple, where one tensor is needed"),
        (nn.Sequential(nn.Unflatten(1, (2, 2)), nn.Linear(2, 2)), r"the backbone gives shape \(2, 2, 2\)"),
    ],
)
def test_what_is_unclear_is_said_with_the_way_to_say_it(network, reason):
    with pytest.raises(ModelError, match=reason) as met:
        split_network(network, x, 2)
    assert "backbone gives" in reason or "ally.models.Split.at(network, 'name of the layer')" in str(met.value)


def test_a_network_may_be_divided_at_any_layer():
    network = layers(nn.LogSoftmax(1)).eval()
    divided = Split.at(network, "2").eval()
    torch.testing.assert_close(divided(x).log_softmax(1), network(x))
    assert divided.backbone(x).shape == (2, 8)
    loop = Loop(X, Y, model=divided, training=QUICK, strategy="margin", random_state=0)
    assert (loop.predict(X) == (X[:, 0] > 0)).mean() > 0.9
    with pytest.raises(ModelError, match="has no layer '7'; its last are '', '0', '1', '2', '3'"):
        Split.at(network, "7")
    with pytest.raises(ModelError, match="Idle never calls the layer that is said to be its head"):
        Split.at(Idle(), "never").backbone(x)


def test_a_query_says_which_layer_it_took():
    q = ally.query(X, Y, n=4, model=layers(), random_state=0, strategy="badge")
    assert "the head of the network is its last linear layer, '2'; ally.models.Split.at(network, " in " ".join(q.notes)
    loop = Loop(X, Y, model=layers(), training=QUICK, strategy="margin", random_state=0)
    assert (loop.predict(X) == (X[:, 0] > 0)).mean() > 0.9


@dataclass(frozen=True)
class Builder:
    def __call__(self, shape, outputs):
        return layers(outputs=outputs)


def test_a_module_keeps_the_contract_of_learners():
    check_learner(Network(Builder(), QUICK, standardized=False))


def test_a_lightning_module_is_trained_as_the_module_it_is():
    lightning = pytest.importorskip("pytorch_lightning")

    class Lit(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = layers()

        def forward(self, x):
            return self.net(x)

        def training_step(self, batch, number):
            raise AssertionError("ally has a loop of its own")

        def configure_optimizers(self):
            raise AssertionError("ally has an optimizer of its own")

    loop = Loop(X, Y, model=Lit(), training=QUICK, strategy="margin", random_state=0)
    assert any(note.startswith("Lit is trained by ally (Training says how)") for note in loop.ask(4).notes)
    assert (loop.predict(X) == (X[:, 0] > 0)).mean() > 0.9
    assert loop.fit().head == "net.2"


def build_layers(shape, outputs):
    return layers(outputs=outputs)


def test_a_builder_of_such_a_network_is_kept_in_a_file(tmp_path):
    path = f"{__name__}:build_layers"
    trained = Loop(X, Y, model=path, training=QUICK, strategy="random", random_state=0).trained()
    trained.write(tmp_path / "m.safetensors")
    again = Trained.read(tmp_path / "m.safetensors", trusted=[path])
    one, other = (each.look(ally.data.as_source(X)) for each in (trained, again))
    assert torch.equal(one.embeddings, other.embeddings)
    assert torch.equal(one.probabilities, other.probabilities)
