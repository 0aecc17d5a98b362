"""A trained network, with everything needed to preprocess samples as in training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from ally.data import Checked, Scaler, Source, blocks
from ally.errors import DataError, InputError, ModelError, NonFiniteInput
from ally.learning.learner import FitReport
from ally.learning.losses import TargetScale
from ally.learning.model_header import get_scaler, get_tensor
from ally.learning.snapshot import ByBlocks, Seen
from ally.learning.tokens import Tokenizing
from ally.models import MODELS, Split, has_dropout, own_network, split_block
from ally.models.split import DROPOUT
from ally.rng import seeded_torch
from ally.types import AnyArray, IntArray, Task

WEIGHTS = "network."


@dataclass(frozen=True, eq=False)
class FittedNetwork(ByBlocks):
    """A network in evaluation mode, with the duals of the epoch it was kept from."""

    model: nn.Module = field(repr=False)
    task: Task
    classes: tuple[Any, ...] | None
    scale: TargetScale
    report: FitReport
    duals: dict[str, torch.Tensor] = field(default_factory=dict, repr=False)
    modules: dict[str, nn.Module] = field(default_factory=dict, repr=False)
    """Other networks the objective trained alongside the model, in evaluation mode, by name."""
    unlabelled_rows: IntArray | None = field(default=None, repr=False)
    """Absolute rows of ``duals["unlabelled"]``, which is NaN where a dual is not known."""
    scaler: Scaler | None = field(default=None, repr=False)
    """How features are standardised; None if the network takes them as they are."""
    shape: tuple[int, ...] | None = None
    """Shape of a sample; None if it is not known."""
    name: str | None = None
    """What `ally.models.MODELS` calls the network, or the import path of its builder (``module:builder``); None for a
    network that has neither."""
    head: str | None = None
    """The layer at which a network of the user's own was divided; None if it came as backbone and head."""
    texts: Tokenizing | None = field(default=None, repr=False)
    """How texts become tokens; None for a network that reads numbers."""

    @property
    def held_out(self) -> None:
        return None

    @property
    def spreads(self) -> bool:
        return has_dropout(self.model)

    def inputs(self, source: Source, rows: IntArray) -> torch.Tensor:
        """Samples as the network takes them, on its device."""
        seen = seen_through(self.scaler, source, self.shape, self.texts)
        return to_tensor(seen.read(rows), self.device, input_dtype(self.model))

    def embed(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Embeddings (B, d) and outputs of the head (B, C or 1) of one block of inputs, on the CPU."""
        with torch.inference_mode():
            embedding = torch.cat([cast(nn.Module, self.model.backbone)(part) for part in split_block(self.model, x)])
            outputs = cast(nn.Module, self.model.head)(embedding)
        return embedding.float().cpu(), outputs.float().cpu()

    def outputs(self, x: torch.Tensor) -> torch.Tensor:
        with _restored_modes(self.model):
            return self._predictive(self.embed(x)[1])

    def sampled(self, x: torch.Tensor, samples: int, seed: int) -> Sequence[torch.Tensor]:
        """Draws of the dropout masks."""
        if not self.spreads:
            raise ModelError(
                f"{type(self.model).__name__} has no dropout and there is one network, so predictions have no spread; "
                "use a model with dropout, such as model=functools.partial(MLP, dropout=0.2), or members > 1"
            )
        with seeded_torch(seed, str(x.device)), shared_masks(self.model):
            return [self._predictive(self._predict_whole(x)) for _ in range(samples)]

    def _predict_whole(self, x: torch.Tensor) -> torch.Tensor:
        """Outputs of the head for a block that is not cut: its samples share each mask."""
        with torch.inference_mode():
            outputs: torch.Tensor = cast(nn.Module, self.model.head)(cast(nn.Module, self.model.backbone)(x))
            return outputs.float().cpu()

    def dropped(self, x: torch.Tensor, samples: int, rate: float, seed: int) -> Sequence[torch.Tensor]:
        head = cast(nn.Module, self.model.head)
        with torch.inference_mode(), _restored_modes(self.model), seeded_torch(seed, str(x.device)):
            embedding = torch.cat([cast(nn.Module, self.model.backbone)(part) for part in split_block(self.model, x)])
            outputs = [head(F.dropout(embedding, rate, training=True)).float().cpu() for _ in range(samples)]
        return [self._predictive(one) for one in outputs]

    def packed(self) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
        if self.name is None or self.shape is None or self.texts is not None:
            raise ModelError(
                "a network of your own cannot be rebuilt from a file; pass a model by name or as 'module:builder', or "
                "keep loop.fit().model yourself"
            )
        tensors = {f"{WEIGHTS}{name}": value.cpu().contiguous() for name, value in self.model.state_dict().items()}
        if self.scaler is not None:
            tensors["input.mean"] = torch.from_numpy(np.ascontiguousarray(self.scaler.mean))
            tensors["input.scale"] = torch.from_numpy(np.ascontiguousarray(self.scaler.scale))
        return {
            "kind": "network",
            "own": self.name if ":" in self.name else None,
            "model": self.name,
            "shape": list(self.shape),
            "target": [self.scale.mean, self.scale.std],
            **({} if self.head is None else {"head": self.head}),
        }, tensors

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    def _look(self, x: torch.Tensor, rows: IntArray) -> Seen:
        embedding, outputs = self.embed(x)
        finite = torch.isfinite(embedding).all(1) & torch.isfinite(outputs).all(1)
        if not bool(finite.all()):
            row = int(rows[int((~finite).nonzero()[0])])
            raise NonFiniteInput(
                f"the network gives NaN or infinity for sample {row}; check its features, or lower the learning rate"
            ).at(row)
        if self.task == "classification":
            return Seen(embedding, outputs.double().softmax(1).float(), outputs.argmax(1))
        return Seen(embedding, None, self.scale.invert(outputs.double().squeeze(1)))

    def _predictive(self, outputs: torch.Tensor) -> torch.Tensor:
        return outputs.double().softmax(1) if self.task == "classification" else outputs.double()


def rebuilt(
    facts: dict[str, Any], tensors: dict[str, torch.Tensor], report: FitReport, classes: tuple[Any, ...] | None
) -> FittedNetwork:
    """A network from what `FittedNetwork.packed` gave. Its builder is `own`, which its user trusts, or one of ours,
    which takes memory only once the sizes of its tensors are those that are there."""
    shape, outputs = tuple(facts["shape"]), 1 if classes is None else len(classes)
    own, name = facts.get("own"), facts["model"]
    if own is None and name not in MODELS:
        raise DataError(f"the model {name!r:.60} is not one of {', '.join(MODELS)}; train again")
    with nullcontext() if own is not None else torch.device("meta"):
        net = MODELS[name](shape, outputs) if own is None else own_network(own)(shape, outputs)
    head = facts.get("head")
    if head is not None:
        net = Split.at(net, head)
    weights = {
        key: get_tensor(tensors, f"{WEIGHTS}{key}", tuple(needed.shape), needed.dtype)
        for key, needed in net.state_dict().items()
    }
    net.load_state_dict(weights, assign=own is None)
    scale = TargetScale(*map(float, facts["target"]))
    scaler = get_scaler(tensors, shape)
    return FittedNetwork(
        net.eval(), facts["task"], classes, scale, report, scaler=scaler, shape=shape, name=name, head=head
    )


def seen_through(
    scaler: Scaler | None, source: Source, shape: tuple[int, ...] | None = None, texts: Tokenizing | None = None
) -> Source:
    """A source as the network sees it: standardised, raw or as tokens, and checked, including the `shape` of its
    samples."""
    if texts is not None:
        return texts.open(source)
    if shape is not None and source.shape != shape:
        raise InputError(f"the samples have shape {source.shape} and the model takes {shape}; pass the same features")
    return Checked(source) if scaler is None else scaler.of(source)


def input_dtype(model: nn.Module) -> torch.dtype:
    """The dtype of the first floating-point parameter: what the network expects as input."""
    return next((p.dtype for p in model.parameters() if p.is_floating_point()), torch.float32)


def to_tensor(x: AnyArray, device: torch.device | str, dtype: torch.dtype) -> torch.Tensor:
    """Samples for the network: floats in its dtype, integers (tokens) as they are."""
    tensor = torch.from_numpy(np.ascontiguousarray(x))
    return tensor.to(device, dtype if tensor.is_floating_point() else None)


def evaluate(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Outputs of all rows of `x` in evaluation mode, block by block."""
    training = model.training
    model.eval()
    with torch.no_grad():
        outputs = torch.cat(
            [
                cast(nn.Module, model.head)(cast(nn.Module, model.backbone)(part))
                for block in blocks(len(x))
                for part in split_block(model, x[block])
            ]
        )
    model.train(training)
    return outputs


@contextmanager
def shared_masks(model: nn.Module) -> Iterator[None]:
    """Within, dropout layers drop, each call with one mask for all rows (the first dimension); all else is in
    evaluation mode.

    Given its mask, dropout of any kind is affine in its input, so its outputs for zeros and ones determine what it
    does to a row.
    """

    def drop(layer: nn.Module, inputs: Any, outputs: torch.Tensor) -> torch.Tensor:
        row = torch.ones_like(outputs[:1])
        layer.train()
        try:
            with torch.random.fork_rng(devices=[row.device] if row.is_cuda else []):
                shift: torch.Tensor = layer.forward(torch.zeros_like(row))
            scale: torch.Tensor = layer.forward(row) - shift
        finally:
            layer.eval()
        return outputs * scale + shift

    layers = [layer for layer in model.modules() if isinstance(layer, DROPOUT) and layer.p > 0]
    with _restored_modes(model):
        handles = [layer.register_forward_hook(drop) for layer in layers]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()


@contextmanager
def _restored_modes(model: nn.Module) -> Iterator[None]:
    """Evaluation mode within; every module's own mode afterwards."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training
