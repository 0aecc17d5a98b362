import pytest
import torch
from torch import nn

from ally.errors import ModelError, UnknownName
from ally.models import MLP, MODELS, ResNet18, Split, check_split, model_builder
from ally.models.resnet import FULL


@pytest.mark.parametrize(("name", "shape", "embedding"), [
    ("mlp", (7,), 256), ("linear", (7,), 7), ("resnet18-slim", (3, 32, 32), 128), ("resnet18", (3, 32, 32), 512),
])  # fmt: skip
def test_every_net_is_backbone_and_head(name, shape, embedding):
    net = MODELS[name](shape, 5)
    x = torch.randn(2, *shape)
    assert check_split(net, x, 5) == embedding
    torch.testing.assert_close(net.eval()(x), net.head(net.backbone(x)))


def test_resnet_sizes_are_those_of_resnet18():
    full = sum(p.numel() for p in ResNet18((3, 32, 32), 10, FULL).parameters())
    assert full == 11_173_962
    convolutions = [m for m in ResNet18((3, 32, 32), 10).modules() if isinstance(m, nn.Conv2d) and m.kernel_size == (3, 3)]
    assert len(convolutions) == 17


def test_resnet_halves_the_resolution_three_times():
    net = ResNet18((1, 32, 32), 2)
    assert net.backbone[:-2](torch.randn(1, 1, 32, 32)).shape == (1, 128, 4, 4)


def test_mlp_without_hidden_layers_is_linear():
    net = MLP((3,), 2, hidden=())
    x, y = torch.randn(4, 3), torch.randn(4, 3)
    torch.testing.assert_close(net(x) + net(y) - net(torch.zeros(4, 3)), net(x + y))


def test_dropout_is_where_it_was_asked_for():
    assert sum(isinstance(m, nn.Dropout) for m in MLP((3,), 2, (8, 8), dropout=0.5).modules()) == 2
    assert not any(isinstance(m, nn.Dropout) for m in MLP((3,), 2).modules())


def test_defaults_by_shape():
    assert isinstance(model_builder(None, (9,))((9,), 2), MLP)
    assert isinstance(model_builder(None, (3, 32, 32))((3, 32, 32), 2), ResNet18)
    assert isinstance(model_builder(None, (1, 4, 4))((1, 4, 4), 2), MLP)


def test_a_module_is_copied_for_every_fit():
    net = Split(nn.Linear(2, 2), nn.Linear(2, 2))
    build = model_builder(net, (2,))
    assert build((2,), 2) is not net
    torch.testing.assert_close(build((2,), 2).head.weight, net.head.weight)


def test_errors():
    with pytest.raises(UnknownName, match="unknown model 'vgg'"):
        model_builder("vgg", (3,))
    with pytest.raises(ModelError, match="a ResNet takes images"):
        ResNet18((7,), 2)
