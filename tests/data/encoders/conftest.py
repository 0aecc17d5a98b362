from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ally.data.encoders import Function, open_encoder


@pytest.fixture(scope="session")
def minilm():
    return open_encoder("all-MiniLM-L6-v2", "text")


@pytest.fixture(scope="session")
def lite0():
    return open_encoder("efficientnet-lite0", "image")


@pytest.fixture(scope="session")
def tiny_vit(tmp_path_factory) -> Path:
    """The folder of a vision transformer with random weights, as Hugging Face writes it."""
    import torch
    from transformers import ViTConfig, ViTModel

    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("models") / "tiny-vit"
    config = ViTConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, image_size=24, patch_size=8
    )
    ViTModel(config).save_pretrained(folder)
    preprocessing = {
        "image_processor_type": "ViTImageProcessor",
        "do_resize": True,
        "size": {"height": 24, "width": 24},
        "resample": 2,
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": [0.5, 0.4, 0.3],
        "image_std": [0.2, 0.3, 0.4],
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(preprocessing))
    return folder


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory) -> Path:
    """The folder of a text model with random weights and a vocabulary of a few words."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizerFast

    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("models") / "tiny-bert"
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "cat", "purrs", "bonds", "fell"]
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    BertModel(BertConfig(vocab_size=len(words), max_position_embeddings=16, **sizes)).save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(words))
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    return folder


class Counting:
    """Letters of a text as a vector; counts what it was given."""

    def __init__(self) -> None:
        self.given: list[str] = []

    def __call__(self, texts: list[str]):
        self.given += texts
        return np.asarray([[text.count(letter) for letter in "abcd"] for text in texts], np.float32)


@pytest.fixture
def counting():
    """A function that counts letters, and the encoder made of it."""
    call = Counting()
    return call, Function(call, "letters-1", "text", width=4)
