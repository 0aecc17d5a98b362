import pytest
import torch
from torch import nn

from ally.errors import ModelError, UnknownName
from ally.models import CNN, MLP, MODELS, ResNet18, Split, check_split, model_builder
from ally.models.resnet import FULL


@pytest.mark.parametrize(
    ("name", "shape", "embedding"),
    [
        ("mlp", (7,), 256),
        ("linear", (7,), 7),
        ("resnet18-slim", (3, 32, 32), 128),
        ("resnet18", (3, 32, 32), 512),
    ],
)
def test_every_net_is_backbone_and_head(name, shape, embedding):
    net = MODELS[name](shape, 5)
    x = torch.randn(2, *shape)
    assert check_split(net, x, 5) == embedding
    torch.testing.assert_close(net.eval()(x), net.head(net.backbone(x)))


def test_resnet_sizes_are_those_of_resnet18():
    full = sum(p.numel() for p in ResNet18((3, 32, 32), 10, FULL).parameters())
    assert full == 11_173_962
    convolutions = [
        m for m in ResNet18((3, 32, 32), 10).modules() if isinstance(m, nn.Conv2d) and m.kernel_size == (3, 3)
    ]
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


@pytest.mark.parametrize(
    ("side", "stem", "positions"),
    [
        (28, "small", 4),
        (32, "small", 4),
        (48, "small", 6),
        (64, "medium", 4),
        (80, "medium", 5),
        (96, "large", 3),
        (128, "large", 4),
    ],
)
def test_the_stem_fits_the_size_of_the_images(side, stem, positions):
    automatic, chosen = ResNet18((3, side, side), 5), ResNet18((3, side, side), 5, stem=stem)
    assert [str(layer) for layer in automatic.backbone] == [str(layer) for layer in chosen.backbone]
    assert automatic.eval().backbone[:-2](torch.zeros(1, 3, side, side)).shape == (1, 128, positions, positions)


def test_stems_keep_small_images_as_they_were():
    """Layer by layer the network for 32×32 before there were stems: equal seeds gave these weights."""
    torch.manual_seed(3)
    net = ResNet18((3, 32, 32), 10).eval()
    torch.manual_seed(3)
    first = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
    torch.testing.assert_close(net.backbone[0].weight, first.weight, rtol=0, atol=0)
    assert len(net.backbone) == 3 + 8 + 2
    assert list(net.state_dict())[:3] == ["backbone.0.weight", "backbone.1.weight", "backbone.1.bias"]


def test_the_stl_variant_embeds_in_512():
    assert check_split(MODELS["resnet18-stl"]((3, 96, 96), 10), torch.randn(2, 3, 96, 96), 10) == 512


def test_unknown_stem():
    with pytest.raises(ModelError, match="stem='huge' is unknown"):
        ResNet18((3, 32, 32), 2, stem="huge")


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (1, 8, 8), (3, 30, 21), (1, 4, 4)])
def test_cnn(shape):
    net = MODELS["cnn"](shape, 10)
    assert check_split(net, torch.randn(2, *shape), 10) == 128
    assert not any(isinstance(m, nn.Dropout) for m in net.modules())


def test_cnn_sees_where_things_are_near_each_other():
    """Away from the borders, a shift by whole pooling cells shifts the feature maps."""
    stages = CNN((1, 28, 28), 10).backbone[:6]
    image = torch.zeros(1, 1, 28, 28)
    image[..., 8:12, 8:12] = torch.rand(4, 4)
    moved = torch.roll(image, (4, 8), (2, 3))
    torch.testing.assert_close(stages(image)[..., 1:4, 1:4], stages(moved)[..., 2:5, 3:6])


def test_cnn_errors():
    with pytest.raises(ModelError, match="a CNN takes images"):
        CNN((7,), 2)
    with pytest.raises(ModelError, match="too small for 2 halvings"):
        CNN((1, 2, 8), 2)
