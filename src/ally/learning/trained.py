"""A trained network with all that it takes to predict, and as one safetensors file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

from ally.errors import DataError, InputError
from ally.execution.memory import Scratch
from ally.files import write_whole
from ally.learning.fit import Fit, FitReport, TargetScale
from ally.learning.snapshot import View, view
from ally.models import MODELS
from ally.pool import LabelCode
from ally.sources import Scaler, Source
from ally.types import AnyArray, FloatArray

VERSION = 1
_NETWORK = "network."


@dataclass(frozen=True, eq=False)
class Trained:
    """`model` is a name of `ally.models.MODELS`; `about` holds plain values that travel with the weights."""

    fit: Fit = field(repr=False)
    model: str
    shape: tuple[int, ...]
    scaler: Scaler | None = field(default=None, repr=False)
    about: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def code(self) -> LabelCode:
        classes = self.fit.classes
        if classes is None:
            return LabelCode("regression", None)
        array: AnyArray = np.empty(len(classes), dtype=object)
        array[:] = classes
        return LabelCode("classification", array)

    def predict(self, source: Source) -> tuple[AnyArray, FloatArray | None]:
        """Labels (n,) or targets, and the probability of each label (None for regression), of all rows of a source."""
        seen = self.look(source)
        probability = None if seen.probabilities is None else seen.probabilities.amax(1).double().numpy()
        return self.code.decode(seen.predictions.numpy()), probability

    def look(self, source: Source) -> View:
        """What the network says about all rows of a source."""
        if source.shape != self.shape:
            raise InputError(
                f"the samples have shape {source.shape} and the model takes {self.shape}; pass the same features"
            )
        seen = source if self.scaler is None else self.scaler.of(source)
        with Scratch() as scratch:
            return view(self.fit, seen, np.arange(len(source)), scratch)

    def to_bytes(self) -> bytes:
        """A safetensors file; `from_bytes` reads it back."""
        tensors = {f"{_NETWORK}{name}": value.cpu().contiguous() for name, value in self.fit.model.state_dict().items()}
        if self.scaler is not None:
            tensors["input.mean"] = torch.from_numpy(np.ascontiguousarray(self.scaler.mean))
            tensors["input.scale"] = torch.from_numpy(np.ascontiguousarray(self.scaler.scale))
        facts = {
            "version": VERSION,
            "task": self.fit.task,
            "model": self.model,
            "shape": list(self.shape),
            "classes": None if self.fit.classes is None else list(self.fit.classes),
            "target": [self.fit.scale.mean, self.fit.scale.std],
            "about": dict(self.about),
        }
        return save(tensors, {"ally": json.dumps(facts)})

    def write(self, path: str | Path) -> None:
        write_whole(Path(path), self.to_bytes())

    @classmethod
    def from_bytes(cls, data: bytes, name: str = "the model") -> Trained:
        facts, tensors = _read(data, name)
        if facts.get("version") != VERSION:
            raise DataError(
                f"{name} has version {facts.get('version')!r} and {VERSION} is needed; update ally, or train again"
            )
        try:
            shape = tuple(int(side) for side in facts["shape"])
            classes = None if facts["classes"] is None else tuple(facts["classes"])
            net = MODELS[facts["model"]](shape, 1 if classes is None else len(classes))
            net.load_state_dict(
                {key.removeprefix(_NETWORK): value for key, value in tensors.items() if key.startswith(_NETWORK)}
            )
            scaler = (
                Scaler(tensors["input.mean"].numpy(), tensors["input.scale"].numpy())
                if "input.mean" in tensors
                else None
            )
            scale = TargetScale(*map(float, facts["target"]))
        except (KeyError, RuntimeError, TypeError, ValueError) as error:
            raise DataError(f"{name} does not hold what it says it does ({error}); train again") from error
        report = FitReport(0, 0, 0, float("nan"), None, None, None)
        fit = Fit(net.eval(), facts["task"], classes, scale, report, {})
        return cls(fit, facts["model"], shape, scaler, facts.get("about", {}))

    @classmethod
    def read(cls, path: str | Path) -> Trained:
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise DataError(
                f"{path} cannot be read ({error.strerror}); give the name of a .safetensors file"
            ) from error
        return cls.from_bytes(data, str(path))

    def with_about(self, about: Mapping[str, Any]) -> Trained:
        return replace(self, about=about)


def _read(data: bytes, name: str) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """The facts in the header and the tensors."""
    try:
        tensors = load(data)
        size = int.from_bytes(data[:8], "little")
        text = json.loads(data[8 : 8 + size]).get("__metadata__", {}).get("ally")
        if text is None:
            raise DataError(
                f"{name} is a safetensors file, but not one of ally's; give a model that `ally export` wrote"
            )
        return dict(json.loads(text)), tensors
    except (SafetensorError, ValueError) as error:
        raise DataError(f"{name} is not a whole safetensors file ({error}); export or train it again") from error
