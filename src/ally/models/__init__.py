"""Networks, each with a backbone that embeds and a head that predicts."""

from ally.models.build import MODELS, ModelBuilder, model_builder, model_name, own_network
from ally.models.cnn import CNN
from ally.models.mlp import MLP
from ally.models.resnet import ResNet18
from ally.models.split import Split, check_split, has_dropout

__all__ = [
    "CNN",
    "MLP",
    "MODELS",
    "ModelBuilder",
    "ResNet18",
    "Split",
    "check_split",
    "has_dropout",
    "model_builder",
    "model_name",
    "own_network",
]
