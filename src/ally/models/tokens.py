"""Transformers over tokens, as networks of one tensor."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from ally.errors import ModelError
from ally.models.split import Split, find_head, read_logits

ROWS_AT_ONCE = 64
"""How many texts are predicted at once; each such part is as wide as its longest text."""


class TokenNetwork(nn.Module):
    """A model of transformers for samples (B, 2, T) of int64: the ids of the tokens, and 1 where there is one.

    It gives the model's logits; of a model that has none the mean of the last hidden state over the tokens, (B, d).
    """

    def __init__(self, transformer: nn.Module) -> None:
        super().__init__()
        self.transformer = transformer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = cut_padding(x) if self.training else x
        answer = self.answer(x)
        logits = read_logits(answer)
        if isinstance(logits, torch.Tensor):
            return logits
        hidden = getattr(answer, "last_hidden_state", None)
        if not isinstance(hidden, torch.Tensor):
            raise ModelError(
                f"{type(self.transformer).__name__} gives a {type(answer).__name__} without logits or "
                "last_hidden_state; pass a model of transformers, such as AutoModelForSequenceClassification"
            )
        return _average_tokens(hidden, x[:, 1])

    def answer(self, x: torch.Tensor) -> Any:
        return self.transformer(input_ids=x[:, 0], attention_mask=x[:, 1])


def _average_tokens(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    weights = mask.to(hidden.dtype)[:, :, None]
    return (hidden * weights).sum(1) / weights.sum(1)


def cut_padding(x: torch.Tensor) -> torch.Tensor:
    """Without the columns that hold no token of any sample; padding may be on either side."""
    used = x[:, 1].any(0).nonzero()
    return x[:, :, int(used[0]) : int(used[-1]) + 1]


def split_block(model: nn.Module, x: torch.Tensor) -> Iterator[torch.Tensor]:
    """The parts that a block of samples is predicted in: all of it, or a few texts at a time."""
    if any(isinstance(module, TokenNetwork) for module in model.modules()):
        yield from map(cut_padding, torch.split(x, ROWS_AT_ONCE))
    else:
        yield x


@dataclass(frozen=True)
class TextBuilder:
    """Copies a model of transformers for each fit; one without a head gets a new linear one."""

    transformer: nn.Module

    def __call__(self, shape: tuple[int, ...], outputs: int) -> nn.Module:
        network = TokenNetwork(copy.deepcopy(self.transformer))
        tokens = torch.ones(1, 2, 2, dtype=torch.int64, device=next(network.parameters()).device)
        with torch.inference_mode():
            answer = network.eval().answer(tokens)
            width = network(tokens).shape[-1]
        network.train()
        if read_logits(answer) is answer:
            return Split(network, nn.Linear(width, outputs))
        try:
            find_head(network, tokens)
        except ModelError as error:
            raise ModelError(
                f"{type(self.transformer).__name__} has no linear layer that gives its logits for a whole text; pass "
                "the model without its head (AutoModel), which gets a new one"
            ) from error
        return network

    def __repr__(self) -> str:
        return f"TextBuilder({type(self.transformer).__name__})"
