r"""Learning Loss (Yoo & Kweon, 2019): a module attached to the network learns to rank samples by their loss.

The network and the module minimise

.. math:: \frac1B\sum_i \ell_i + w\,\frac2B\sum_{(i,j)} \max\bigl(0, -\mathbb 1(\ell_i, \ell_j)(\hat\ell_i - \hat\ell_j)
+ \xi\bigr),

where 𝟙 is +1 if ℓ_i > ℓ_j and −1 otherwise, and the pairs split the batch in two. The module reads inner layers of the
backbone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import torch
from torch import nn

from ally.checks import check_count, check_number
from ally.learning.objectives.base import Batch, Problem, Session, UnlabelledBatch
from ally.rng import Streams, seeded_torch

LOSS_PREDICTION = "loss prediction"


@dataclass(frozen=True)
class LearningLoss:
    """Mean ℓ plus `weight` times the ranking loss of predicted losses.

    Attributes:
        weight: weight of the ranking loss (λ in the paper).
        margin: ξ.
        stop_gradient_after: epochs after which the ranking loss no longer trains the backbone; None for never. The
            paper stops after 60 % of the epochs, which is 24 of the trainer's 40.
        layers: how many layers the module reads: the embedding and inner ones, evenly spread over the backbone's
            children.
        width: units per layer read.
        lr: learning rate of the module's Adam.
    """

    weight: float = 1.0
    margin: float = 1.0
    stop_gradient_after: int | None = 24
    layers: int = 4
    width: int = 128
    lr: float = 1e-3

    needs: ClassVar[tuple[str, ...]] = ("extra training",)

    def __post_init__(self) -> None:
        for name in ("weight", "margin"):
            check_number(name, getattr(self, name))
        check_number("lr", self.lr, positive=True)
        for name in ("layers", "width"):
            check_count(name, getattr(self, name))
        if self.stop_gradient_after is not None:
            check_count("stop_gradient_after", self.stop_gradient_after, least=0)

    def start(self, problem: Problem) -> Session:
        return _LearningLossSession(problem, self)


def ranking_loss(predicted: torch.Tensor, losses: torch.Tensor, margin: float) -> torch.Tensor:
    """Mean over the pairs (i, B−1−i) of a batch, (B,) and (B,) → scalar. The middle of an odd batch has no partner; the
    loss is 0 without pairs."""
    pairs = len(losses) // 2
    if not pairs:
        return predicted.sum() * 0.0
    sign = torch.where(losses[:pairs] > losses.flip(0)[:pairs], 1.0, -1.0).to(predicted)
    return torch.relu(margin - sign * (predicted - predicted.flip(0))[:pairs]).mean()


class LossPrediction(nn.Module):
    """A linear layer and ReLU per layer read, concatenated, then a linear layer to one number."""

    def __init__(self, names: Sequence[str], inputs: Sequence[int], width: int) -> None:
        super().__init__()
        self.names = tuple(names)
        self.branches = nn.ModuleList(nn.Sequential(nn.Linear(size, width), nn.ReLU()) for size in inputs)
        self.out = nn.Linear(width * len(inputs), 1)

    def forward(self, features: Sequence[torch.Tensor]) -> torch.Tensor:
        """Features (B, d_1), (B, d_2), … → (B,)."""
        parts = [branch(feature) for branch, feature in zip(self.branches, features, strict=True)]
        return cast(torch.Tensor, self.out(torch.cat(parts, 1))).squeeze(1)


def read_layers(backbone: nn.Module, names: Sequence[str], x: torch.Tensor) -> list[torch.Tensor]:
    """The outputs of the named submodules for `x`, pooled to (B, d_k), and then the embedding, all from one forward
    pass."""
    with _recorded(backbone, names) as found:
        embedding = backbone(x)
    return [*(_pooled(found[name]) for name in names), embedding]


@contextmanager
def _recorded(backbone: nn.Module, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The outputs of the named submodules, in the order they are called; the hooks are removed after the block."""
    found: dict[str, Any] = {}

    def keep(name: str) -> Callable[[nn.Module, Any, Any], None]:
        def hook(module: nn.Module, inputs: Any, output: Any) -> None:
            found[name] = output

        return hook

    handles = [backbone.get_submodule(name).register_forward_hook(keep(name)) for name in names]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def _evaluating(module: nn.Module) -> Iterator[None]:
    """Evaluation mode inside the block; afterwards every submodule is back in its own mode."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training


def _pooled(values: torch.Tensor) -> torch.Tensor:
    """Global average pooling to (B, channels). Sequences keep both axes, since either may be the channels."""
    if values.ndim == 3:
        return torch.cat([values.mean(1), values.mean(2)], 1)
    return values.flatten(2).mean(2) if values.ndim > 2 else values


def _inner_layers(backbone: nn.Module, x: torch.Tensor, count: int) -> tuple[list[str], list[int]]:
    """Names of at most `count` submodules, evenly spread over the children that give new features before the embedding.

    Also returns the sizes of their pooled features, and of the embedding at the end.
    """
    names = _stages(backbone)
    with _evaluating(backbone), torch.no_grad(), _recorded(backbone, names) as found:
        embedding = backbone(x)
    chosen: dict[str, torch.Tensor] = {}
    learned = False
    for name, output in found.items():
        if (
            not isinstance(output, torch.Tensor)
            or not output.is_floating_point()
            or output.ndim < 2
            or len(output) != len(x)
        ):
            continue
        own = any(True for _ in backbone.get_submodule(name).parameters())
        learned = learned or own
        feature = _pooled(output)
        if not learned or not feature.shape[1]:
            continue
        # An activation or pooling replaces the layer it follows.
        if not own and chosen and feature.shape == next(reversed(chosen.values())).shape:
            chosen.popitem()
        chosen[name] = feature
    if chosen:
        last = next(reversed(chosen.values()))
        if last.shape == embedding.shape and torch.allclose(last, embedding):
            chosen.popitem()
    kept = list(chosen)
    if len(kept) > count:
        kept = [kept[(place + 1) * (len(kept) + 1) // (count + 1) - 1] for place in range(count)]
    return kept, [*(chosen[name].shape[1] for name in kept), embedding.shape[1]]


def _stages(backbone: nn.Module) -> list[str]:
    """The backbone's children, or those of its only child."""
    module, prefix = backbone, ""
    while len(children := dict(module.named_children())) == 1:
        ((name, module),) = children.items()
        prefix += f"{name}."
    return [prefix + name for name in children] or ([prefix[:-1]] if prefix else [])


class _LearningLossSession(Session):
    def __init__(self, problem: Problem, objective: LearningLoss) -> None:
        super().__init__(problem)
        self._objective = objective
        self._streams = Streams(torch.initial_seed(), ("learning loss",))
        self._module: LossPrediction | None = None
        self._optimizer: torch.optim.Optimizer | None = None
        self._attached = True

    def start_epoch(self, epoch: int) -> None:
        stop = self._objective.stop_gradient_after
        self._attached = stop is None or epoch <= stop

    def loss(self, model: nn.Module, batch: Batch, unlabelled: UnlabelledBatch | None) -> torch.Tensor:
        backbone, head = cast(nn.Module, model.backbone), cast(nn.Module, model.head)
        module = self._module or self._build(model, batch.x)
        features = read_layers(backbone, module.names, batch.x)
        losses = self.problem.loss(head(features[-1]), batch.targets)
        predicted = module(features if self._attached else [feature.detach() for feature in features])
        return losses.mean() + self._objective.weight * ranking_loss(predicted, losses.detach(), self._objective.margin)

    def after_step(self, step: int, outputs: Callable[[], torch.Tensor]) -> None:
        assert self._optimizer is not None
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)

    def modules(self) -> dict[str, nn.Module]:
        return {} if self._module is None else {LOSS_PREDICTION: self._module}

    def _build(self, model: nn.Module, x: torch.Tensor) -> LossPrediction:
        objective = self._objective
        names, sizes = _inner_layers(cast(nn.Module, model.backbone), x, objective.layers - 1)
        like = next(parameter for parameter in model.parameters() if parameter.is_floating_point())
        with seeded_torch(self._streams.seed("weights")):
            module = LossPrediction(names, sizes, objective.width)
        self._module = module.to(device=like.device, dtype=like.dtype)
        self._optimizer = torch.optim.Adam(self._module.parameters(), lr=objective.lr, fused=True)
        return self._module
