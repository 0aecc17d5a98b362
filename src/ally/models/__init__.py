"""Networks, each with a backbone that embeds and a head that predicts."""

from ally.models.build import MODELS, ModelBuilder, model_builder, model_name, own_network
from ally.models.cnn import CNN
from ally.models.mlp import MLP
from ally.models.resnet import ResNet18
from ally.models.split import Split, check_split, find_head, has_dropout, is_split, split_network
from ally.models.tokens import TextBuilder, split_block

__all__ = [
    "CNN",
    "MLP",
    "MODELS",
    "ModelBuilder",
    "ResNet18",
    "Split",
    "TextBuilder",
    "check_split",
    "find_head",
    "has_dropout",
    "is_split",
    "model_builder",
    "model_name",
    "own_network",
    "split_block",
    "split_network",
]
