"""f = head ∘ backbone: the one structure that every network must have."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, cast

import torch
from torch import nn

from ally.errors import ModelError

DROPOUT = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)


class Split(nn.Module):
    """A network made of any two modules, ``backbone``: x → (B, d) and ``head``: (B, d) → (B, outputs)."""

    backbone: nn.Module
    head: nn.Module

    def __init__(self, backbone: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.backbone = backbone
        self.head = head

    @classmethod
    def at(cls, network: nn.Module, head: str) -> Split:
        """A copy of any network, divided at the layer called `head` in ``network.named_modules()``: what goes into that
        layer is the embedding, and what comes out of it the prediction. What would follow is left out."""
        copied = copy.deepcopy(network)
        names = [name for name, _ in copied.named_modules()]
        if head not in names:
            raise ModelError(
                f"{type(network).__name__} has no layer {head!r}; its last are {', '.join(map(repr, names[-5:]))}"
            )
        layer = copied.get_submodule(head)
        if not head:
            return cls(nn.Identity(), layer)
        parent, _, name = head.rpartition(".")
        setattr(copied.get_submodule(parent), name, _HeadPlace())
        return cls(Headless(copied), layer)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return cast(torch.Tensor, self.head(self.backbone(x)))


class Headless(nn.Module):
    """A network up to its head: what goes into that layer comes out, and what would follow is not computed."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        try:
            self.network(x)
        except _HeadReached as reached:
            return reached.embedding
        raise ModelError(f"{type(self.network).__name__} never calls the layer that is said to be its head")


class _HeadReached(BaseException):
    """Not an error, so that no network catches it as one."""

    def __init__(self, embedding: torch.Tensor) -> None:
        super().__init__()
        self.embedding = embedding


class _HeadPlace(nn.Module):
    """Stands where the head was."""

    def forward(self, embedding: torch.Tensor) -> torch.Tensor:
        raise _HeadReached(embedding)


def read_logits(answer: Any) -> Any:
    """The logits of what a network of transformers answers; what any other network answers as it is."""
    return getattr(answer, "logits", answer)


def has_dropout(model: nn.Module) -> bool:
    """Whether a forward pass in training mode drops units."""
    return any(isinstance(module, DROPOUT) and module.p > 0 for module in model.modules())


class SplitNetwork(NamedTuple):
    """A network of backbone and head, and the layer that was found to be its head; None if it came in two."""

    network: nn.Module
    head: str | None = None


def split_network(model: nn.Module, x: torch.Tensor, outputs: int) -> SplitNetwork:
    """The model itself if it is backbone + head, else divided at its last linear layer, `find_head`. It fits a batch
    `x` and `outputs`, or an error says why not."""
    if is_split(model):
        check_split(model, x, outputs)
        return SplitNetwork(model)
    head = find_head(model, x)
    layer = model.get_submodule(head)
    if layer.out_features != outputs:
        raise ModelError(
            f"the last linear layer {head!r} of {type(model).__name__} has {layer.out_features} outputs and {outputs} "
            f"{'is' if outputs == 1 else 'are'} needed: give it {outputs} (num_labels of transformers), declare all "
            f"classes (classes=), or, if it is not the head, {_DIVIDE}"
        )
    divided = Split.at(model, head)
    check_split(divided, x, outputs)
    with _evaluating(model), _evaluating(divided):
        answer = read_logits(model(x))
        if not torch.allclose(divided(x).reshape(answer.shape), answer, rtol=1e-4, atol=1e-5):
            raise ModelError(f"{type(model).__name__} gives something else once its head {head!r} is apart; {_DIVIDE}")
    return SplitNetwork(divided, head)


_DIVIDE = (
    "say where the head begins: ally.models.Split(backbone, head) of two modules, or ally.models.Split.at(network, "
    "'name of the layer')"
)


def is_split(model: nn.Module) -> bool:
    return all(isinstance(getattr(model, part, None), nn.Module) for part in ("backbone", "head"))


def find_head(model: nn.Module, x: torch.Tensor) -> str:
    """The name of the linear layer whose output is that of the network."""
    answers: list[tuple[str, torch.Tensor]] = []
    handles = [
        layer.register_forward_hook(lambda layer, given, answer, path=path: answers.append((path, answer)))
        for path, layer in model.named_modules()
        if isinstance(layer, nn.Linear)
    ]
    name = type(model).__name__
    try:
        with _evaluating(model):
            answer = read_logits(model(x))
    except _MISFITS as error:
        raise ModelError(f"{name} does not take samples of shape {tuple(x.shape[1:])}: {error}") from error
    finally:
        for handle in handles:
            handle.remove()
    if not isinstance(answer, torch.Tensor):
        raise ModelError(f"{name} gives a {type(answer).__name__}, where one tensor is needed; {_DIVIDE}")
    last = [path for path, found in answers if found.numel() == answer.numel() and _is_equal(found, answer)]
    if not last:
        met = f"more follows {answers[-1][0]!r}, the last one" if answers else "it has none"
        raise ModelError(
            f"{name} does not end with a linear layer ({met}), and a network must give logits, or numbers as they are; "
            f"{_DIVIDE}"
        )
    if len(last) > 1:
        raise ModelError(f"{name} has several last linear layers ({', '.join(map(repr, last))}); {_DIVIDE}")
    return last[0]


def _is_equal(found: torch.Tensor, answer: torch.Tensor) -> bool:
    return bool((found.reshape(answer.shape) == answer).all())


_MISFITS = (RuntimeError, TypeError, ValueError, IndexError)
"""What a network raises for samples that it does not take."""


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode within, without gradients."""
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(training)


def check_split(model: nn.Module, x: torch.Tensor, outputs: int) -> int:
    """The size d of the embedding. Raises unless the model is backbone + head and fits a batch `x` and `outputs`."""
    for part in ("backbone", "head"):
        if not isinstance(getattr(model, part, None), nn.Module):
            raise ModelError(f"{type(model).__name__} has no `{part}`; {_DIVIDE}")
    try:
        with _evaluating(model):
            embedding = cast(nn.Module, model.backbone)(x)
            prediction = cast(nn.Module, model.head)(embedding)
    except _MISFITS as error:
        raise ModelError(
            f"{type(model).__name__} does not take samples of shape {tuple(x.shape[1:])}: {error}"
        ) from error
    if not isinstance(embedding, torch.Tensor) or not isinstance(prediction, torch.Tensor):
        odd = type(prediction if isinstance(embedding, torch.Tensor) else embedding).__name__
        raise ModelError(f"{type(model).__name__} gives a {odd}; backbone and head must each give one tensor")
    if embedding.ndim != 2:
        raise ModelError(
            f"the backbone gives shape {tuple(embedding.shape)} for {len(x)} samples; it must be (B, d): flatten or "
            "pool at its end"
        )
    if tuple(prediction.shape) != (len(x), outputs):
        raise ModelError(
            f"the head gives shape {tuple(prediction.shape)}; {(len(x), outputs)} is needed: set its outputs to "
            f"{outputs}"
        )
    return int(embedding.shape[1])
