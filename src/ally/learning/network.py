"""A network as a learner. One trainer for every objective: Adam by default, decreasing step sizes, early stopping, and
by default θ and λ kept from the same epoch."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import torch
from torch import nn

from ally.checks import check_count
from ally.constrained import Geometric, Slacks, find_residuals
from ally.constrained.diagnostics import find_distance
from ally.data import Scaler, Source, blocks, fit_scaler
from ally.errors import InputError, ModelError, TrainingDiverged
from ally.execution.devices import resolve_device
from ally.learning.fitted_network import FittedNetwork, evaluate, input_dtype, seen_through, to_tensor
from ally.learning.learner import Examples, FitReport, Unlabelled
from ally.learning.losses import Loss, TargetScale, resolve_loss
from ally.learning.objectives import ERM, PDCL, Batch, Objective, Problem, Session, UnlabelledBatch
from ally.learning.objectives.regularizers import Regularizer
from ally.learning.splits import draw_held_out
from ally.learning.tokens import Tokenizing
from ally.learning.training import FEWEST_TO_SHARE, FINE_TUNING, Training
from ally.models import MODELS, ModelBuilder, Split, TextBuilder, find_head, is_split, split_block, split_network
from ally.rng import Streams, seeded_torch
from ally.types import IntArray, Progress, Task

Duals = dict[str, torch.Tensor]
LIGHTNING = ("lightning", "pytorch_lightning")
REFERENCE = 1024
"""How many samples of L ∪ U are used to work out the level of a constraint over the pool."""


@dataclass(frozen=True)
class Network:
    """Builds a fresh network for every fit and trains it.

    Features are standardised by the mean and scale of the pool, unless the network takes raw features.
    """

    build: ModelBuilder
    training: Training = Training()
    standardized: bool = True
    scaler: Scaler | None = field(default=None, repr=False, compare=False)
    """The scaler of the pool, once `prepared`; None before, and if nothing is standardised."""
    name: str | None = None
    """What `ally.models.MODELS` calls the network, or the import path of its builder; None if it has neither."""
    texts: Tokenizing | None = field(default=None, repr=False)
    """How texts become tokens; None for a network that reads numbers."""

    @classmethod
    def of_texts(
        cls, model: nn.Module, tokenizer: Any, training: Training = FINE_TUNING, longest: int = 128
    ) -> Network:
        """A model of transformers, trained from texts with its tokenizer. Each fit starts from the weights of `model`.

        What goes into its last linear layer is the embedding; a model without one gets a new one, on the mean of the
        last hidden state. Of each text the first `longest` tokens are read, or as many as the model can.
        """
        if not isinstance(model, nn.Module) or not callable(tokenizer):
            raise ModelError(
                f"of_texts was given a {type(model).__name__} and a {type(tokenizer).__name__}; pass a model of "
                "transformers and its tokenizer"
            )
        texts = Tokenizing.of(tokenizer, getattr(model, "config", None), check_count("longest", longest))
        return cls(TextBuilder(model), training, standardized=False, texts=texts)

    @property
    def objects(self) -> bool:
        """Whether samples are taken as they are, and need not be numbers."""
        return self.texts is not None

    @classmethod
    def named(cls, name: str, training: Training = Training()) -> Network:
        return cls(MODELS[name], training, name=name)

    def supports(self, objective: Objective, task: Task, needs: Collection[str] = ()) -> str | None:
        return None

    def prepared(self, source: Source, rows: IntArray, chunk_size: int | None = None) -> Network:
        if self.texts is not None:
            return replace(self, texts=self.texts.prepare(source, rows, chunk_size))
        if not self.standardized or self.scaler is not None:
            return self
        return replace(self, scaler=fit_scaler(source, rows, chunk_size))

    def settled(
        self, examples: Examples, objective: Objective, streams: Streams, progress: Progress | None = None
    ) -> Network:
        return self

    def points(self, source: Source, rows: IntArray) -> torch.Tensor:
        """The inputs as the network sees them, flattened; of texts the embedding before any training."""
        if self.texts is not None:
            return self._embed_untrained(source, rows)
        values = seen_through(self.scaler, source).read(rows).reshape(len(rows), math.prod(source.shape))
        return torch.from_numpy(values.astype(np.float32, copy=False))

    def _embed_untrained(self, source: Source, rows: IntArray) -> torch.Tensor:
        device = resolve_device(self.training.device)
        with seeded_torch(0, device):
            model = self.build(source.shape, 1).to(device)
        x = to_tensor(self._see(source).read(rows), device, torch.float32)
        divided = model if is_split(model) else Split.at(model, find_head(model, x[:2]))
        backbone = cast(nn.Module, divided.eval().backbone)
        with torch.inference_mode():
            parts = [backbone(part) for block in blocks(len(x)) for part in split_block(divided, x[block])]
        return torch.cat(parts).float().cpu()

    def _see(self, source: Source, shape: tuple[int, ...] | None = None) -> Source:
        return seen_through(self.scaler, source, shape, self.texts)

    def fit(
        self,
        examples: Examples,
        objective: Objective,
        streams: Streams,
        *,
        validation: Examples | None = None,
        unlabelled: Unlabelled | None = None,
        progress: Progress | None = None,
        member: int = 0,
    ) -> FittedNetwork:
        """Members of an ensemble differ only in their random streams: initial weights, shuffling and dropout.

        With a `Training.validation_share` and without `validation`, some labels are held out; their duals are NaN.
        """
        if validation is None and self.training.validation_share:
            return self._hold_out(examples, objective, streams, unlabelled, progress, member)
        started = time.perf_counter()
        device = resolve_device(self.training.device)
        task, outputs, shape = examples.task, examples.outputs, examples.source.shape
        scale = TargetScale.of(examples.labels) if task == "regression" else TargetScale()

        seen_pool = None
        if unlabelled is not None:
            seen_pool = Unlabelled(self._see(unlabelled.source), unlabelled.rows)

        def reference_loss(loss: Loss, regularizer: Regularizer | None) -> float:
            plain = self.fit(examples, ERM(regularizer), streams, validation=validation).model
            return float(loss(evaluate(plain, x), problem.targets).mean())

        def pool_reference(measure: Callable[[nn.Module, torch.Tensor], float]) -> float:
            plain = self.fit(examples, ERM(), streams, validation=validation).model
            with seeded_torch(streams.seed("reference"), device):
                return measure(plain, _some_of_all(x, seen_pool, streams))

        with seeded_torch(streams.seed("weights"), device):
            built = self.build(shape, outputs)
            if not isinstance(built, nn.Module):
                raise ModelError(f"the model's builder gave a {type(built).__name__}; it must give a torch module")
            # Copied, because a builder may return the same instance every time.
            model = copy.deepcopy(built).to(device)
            dtype = input_dtype(model)
            x = to_tensor(self._see(examples.source).read(examples.rows), device, dtype)
            if not any(p.requires_grad for p in model.parameters()):
                raise ModelError(
                    f"{type(model).__name__} has no trainable parameters; leave at least the head trainable"
                )
            model, head = split_network(model, x[:2], outputs)
            problem = Problem(
                targets=_targets(examples, scale, device, dtype),
                task=task,
                classes=examples.classes,
                loss=resolve_loss(self.training.loss, task, "loss"),
                reference_loss=reference_loss,
                n_unlabelled=0 if unlabelled is None else len(unlabelled.rows),
                pool_reference=pool_reference,
                weights=_weights(examples, device),
            )
            session = objective.start(problem)
            held_out = None
            if validation is not None:
                if not len(validation):
                    raise InputError("validation holds 0 samples; give at least one, or None")
                beside = self._see(validation.source, shape).read(validation.rows)
                held_out = to_tensor(beside, device, dtype), _targets(validation, scale, device, dtype)
            draw = _unlabelled_batches(session, seen_pool, streams, device, dtype)
            report, duals = self._train(model, session, x, held_out, draw, streams, progress)
        notes = (*report.notes, *_describe_network(built, head))
        report = replace(report, seconds=time.perf_counter() - started, notes=notes)
        modules = {name: module.eval() for name, module in session.modules().items()}
        return FittedNetwork(
            model.eval(),
            task,
            examples.classes,
            scale,
            report,
            {name: values.cpu() for name, values in duals.items()},
            modules,
            None if unlabelled is None else unlabelled.rows,
            self.scaler,
            shape,
            self.name,
            head,
            self.texts,
        )

    def _hold_out(
        self,
        examples: Examples,
        objective: Objective,
        streams: Streams,
        unlabelled: Unlabelled | None,
        progress: Progress | None,
        member: int,
    ) -> FittedNetwork:
        """A fit that is stopped by a share of the examples, spread over the classes or the range of the targets, if
        there are enough."""
        plain = replace(self, training=replace(self.training, validation_share=0.0))
        share = (self.training.validation_share or 0.0) if len(examples) >= FEWEST_TO_SHARE else 0.0
        drawing = streams.numpy("validation")
        held_out = draw_held_out(examples.labels, share, drawing, classes=examples.classes is not None)
        trained = np.setdiff1d(np.arange(len(examples)), held_out)
        fit = plain.fit(
            examples.at(trained),
            _for_some(objective, trained),
            streams,
            validation=examples.at(held_out) if len(held_out) else None,
            unlabelled=unlabelled,
            progress=progress,
            member=member,
        )
        note = _held_out_note(len(held_out), len(examples), self.training.epochs)
        duals = dict(fit.duals)
        if "labelled" in duals:
            duals["labelled"] = torch.full((len(examples),), torch.nan)
            duals["labelled"][torch.from_numpy(trained)] = fit.duals["labelled"]
        return replace(fit, duals=duals, report=replace(fit.report, notes=(*fit.report.notes, note)))

    def _train(
        self,
        model: nn.Module,
        session: Session,
        x: torch.Tensor,
        held_out: tuple[torch.Tensor, torch.Tensor] | None,
        draw: Iterator[UnlabelledBatch | None],
        streams: Streams,
        progress: Progress | None,
    ) -> tuple[FitReport, Duals]:
        training, problem = self.training, session.problem
        parameters = [p for p in model.parameters() if p.requires_grad]
        optimizer = training.build_optimizer(parameters)
        primal_step = Geometric(training.lr, training.lr_decay)
        shuffle = streams.torch("shuffle")
        best = _Best()
        stopped = False
        step = 0
        for epoch in range(1, training.epochs + 1):
            for settings in optimizer.param_groups:
                settings["lr"] = primal_step(epoch)
            session.start_epoch(epoch)
            _training_mode(model, len(x))
            total = torch.zeros((), device=x.device)
            for batch in self._batches(len(x), session.min_steps, shuffle):
                index = batch.to(x.device)
                value = session.loss(
                    model, Batch(index, training.augmented(x[index]), problem.targets[index]), next(draw)
                )
                optimizer.zero_grad(set_to_none=True)
                torch.autograd.backward(value)
                optimizer.step()
                total += value.detach()
                step += 1
                session.after_step(step, lambda: evaluate(model, x))
            session.after_epoch(epoch, lambda: evaluate(model, x))
            if not bool(torch.isfinite(total)):
                raise TrainingDiverged(
                    f"the training loss is {float(total)} in epoch {epoch} (lr={training.lr}); lower lr or dual_lr"
                )
            if progress is not None:
                progress("train", epoch, training.epochs)
            if held_out is not None:
                loss = float(problem.loss(evaluate(model, held_out[0]), held_out[1]).mean())
                if loss != loss:
                    raise TrainingDiverged(
                        f"the validation loss is NaN in epoch {epoch}; check the validation samples, or lower lr"
                    )
                if not stopped:
                    best.offer(loss, epoch, model, session)
                    stopped = epoch - best.epoch >= training.stops_after
                if stopped and training.keep == "best":
                    break
        if held_out is None:
            best.offer(0.0, epoch, model, session)
        if training.keep == "best":
            best.restore(model, session)
        outputs = evaluate(model, x)
        train_loss = float(problem.loss(outputs, problem.targets).mean())
        slacks = session.slacks(outputs)
        if not math.isfinite(train_loss):
            raise TrainingDiverged(
                f"the training loss is {train_loss} after epoch {epoch} (lr={training.lr}); lower lr or dual_lr"
            )
        duals = best.duals
        capped, residual = None, None
        if slacks is not None and "labelled" in duals:
            cap = math.inf if session.dual_cap is None else session.dual_cap
            capped = float((duals["labelled"] >= cap).float().mean())
            values = duals["labelled"].double().cpu().numpy()
            residual = float(find_residuals(values, slacks.double().cpu().numpy(), cap, session.dual_slope).max())
        report = FitReport(
            samples=len(x),
            epochs=epoch,
            kept_epoch=best.epoch if training.keep == "best" else epoch,
            dual_epoch=best.epoch,
            train_loss=train_loss,
            validation_loss=best.loss if held_out is not None else None,
            positive_duals=_positive(duals),
            slacks=None if slacks is None else Slacks.of(slacks),
            eps=session.eps,
            capped_duals=capped,
            dual_residual=residual,
            notes=() if slacks is None else find_distance(slacks.double().cpu().numpy()),
        )
        return report, best.duals

    def _batches(self, n: int, min_steps: int, shuffle: torch.Generator) -> Iterator[torch.Tensor]:
        """The batches of one epoch: a pass in a new order, or as many as it takes to reach `min_steps` over all
        epochs."""
        size = self.training.batch_size_for(n)
        per_pass = -(-n // size)
        for _ in range(max(1, -(-min_steps // (per_pass * self.training.epochs)))):
            yield from _near_equal(torch.randperm(n, generator=shuffle), size)


class _Best:
    """The epoch with the lowest validation loss: the parameters of the model and of the session's networks, and the
    duals."""

    def __init__(self) -> None:
        self.loss = float("inf")
        self.epoch = 0
        self.duals: Duals = {}
        self._states: list[dict[str, torch.Tensor]] = []

    def offer(self, loss: float, epoch: int, model: nn.Module, session: Session) -> None:
        # Of epochs with equal losses the last is kept: patience runs out only where the loss gets worse.
        if loss <= self.loss or not self._states:
            self.loss, self.epoch = loss, epoch
            networks = (model, *session.modules().values())
            self._states = [
                {name: value.detach().clone() for name, value in net.state_dict().items()} for net in networks
            ]
            self.duals = session.duals()

    def restore(self, model: nn.Module, session: Session) -> None:
        for net, state in zip((model, *session.modules().values()), self._states, strict=True):
            net.load_state_dict(state)


def _for_some(objective: Objective, places: IntArray) -> Objective:
    """The objective for the examples at these places: levels given one by one are theirs."""
    if isinstance(objective, PDCL) and isinstance(objective.eps, tuple):
        return replace(objective, eps=tuple(objective.eps[place] for place in places.tolist()))
    return objective


def _describe_network(built: nn.Module, head: str | None) -> tuple[str, ...]:
    """What was decided about a network of the user's own."""
    notes = []
    if head is not None:
        notes.append(
            f"the head of the network is its last linear layer, {head or type(built).__name__!r}; "
            "ally.models.Split.at(network, 'another layer') says otherwise"
        )
    if any(kind.__module__.partition(".")[0] in LIGHTNING for kind in type(built).__mro__):
        notes.append(
            f"{type(built).__name__} is trained by ally (Training says how): its training_step and "
            "configure_optimizers are not used"
        )
    return tuple(notes)


def _held_out_note(held_out: int, labels: int, epochs: int) -> str:
    if held_out:
        return (
            f"{held_out} of the {labels} labels are held out to stop training early; pass validation=(X, y) to train "
            "on all of them"
        )
    return (
        f"the method stops training early by validation samples, and of {labels} labels none is held out (from "
        f"{FEWEST_TO_SHARE} on): all {epochs} epochs are run, and the duals of samples that are fitted by then have "
        "fallen back to zero; pass validation=(X, y)"
    )


def _weights(examples: Examples, device: str) -> torch.Tensor | None:
    """The weights of the samples, 1 on average."""
    if examples.weights is None:
        return None
    return torch.as_tensor(examples.weights / examples.weights.mean(), dtype=torch.float32, device=device)


def _targets(examples: Examples, scale: TargetScale, device: str, dtype: torch.dtype) -> torch.Tensor:
    """(n,) class numbers, or standardised targets."""
    if examples.task == "classification":
        return torch.as_tensor(np.asarray(examples.labels, dtype=np.int64), device=device)
    return torch.as_tensor(scale.apply(examples.labels)).to(dtype).to(device)


def _positive(duals: Duals) -> float | None:
    """Share of the known duals that are positive; None without any."""
    known = [values[~values.isnan()] for values in duals.values()]
    return float((torch.cat(known) > 0).float().mean()) if known else None


def _training_mode(model: nn.Module, n: int) -> None:
    """Training mode; for a batch of one sample, batch norm uses its running statistics."""
    model.train()
    if n == 1:
        for module in model.modules():
            if isinstance(module, nn.modules.batchnorm._BatchNorm):
                module.eval()


def _near_equal(order: torch.Tensor, size: int) -> tuple[torch.Tensor, ...]:
    """Batches of at most `size`, whose sizes differ by at most one, so that the last one is not tiny."""
    return torch.tensor_split(order, max(1, -(-len(order) // size)))


def _some_of_all(x: torch.Tensor, unlabelled: Unlabelled | None, streams: Streams) -> torch.Tensor:
    """At most `REFERENCE` of the labelled inputs `x` and the unlabelled ones together, (m, *shape)."""
    if unlabelled is None or not len(unlabelled.rows):
        return x[:REFERENCE]
    drawn = torch.randperm(len(x) + len(unlabelled.rows), generator=streams.torch("reference"))[:REFERENCE]
    labelled, others = drawn[drawn < len(x)], (drawn[drawn >= len(x)] - len(x)).sort().values
    read = to_tensor(unlabelled.source.read(unlabelled.rows[others.numpy()]), x.device, x.dtype)
    return torch.cat([x[labelled.to(x.device)], read])


def _unlabelled_batches(
    session: Session, unlabelled: Unlabelled | None, streams: Streams, device: str, dtype: torch.dtype
) -> Iterator[UnlabelledBatch | None]:
    """Endless unlabelled batches of the size the session wants, each pass in a new order; None where it wants none."""
    size = session.unlabelled_batch
    if not size:
        while True:
            yield None
    if unlabelled is None or not len(unlabelled.rows):
        raise InputError(
            f"{type(session).__name__} draws unlabelled samples and none are available; use another objective"
        )
    generator = streams.torch("unlabelled")
    while True:
        for index in _near_equal(torch.randperm(len(unlabelled.rows), generator=generator), size):
            x = unlabelled.source.read(unlabelled.rows[index.numpy()])
            yield UnlabelledBatch(index.to(device), to_tensor(x, device, dtype))
