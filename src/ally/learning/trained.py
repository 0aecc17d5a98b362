"""A fitted learner with everything needed to predict, stored as one safetensors file.

The header holds plain values as JSON, the tensors hold numbers; nothing is pickled. Each learner decides what it needs
to be rebuilt (`Fitted.packed`); `KINDS` maps each kind to its reader.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

from ally.data import LabelCode, Source
from ally.errors import DataError
from ally.execution.memory import Scratch
from ally.files import write_whole
from ally.learning.average import FittedAverage
from ally.learning.fitted_network import rebuilt
from ally.learning.graph import rebuild_graph
from ally.learning.learner import FitReport, Fitted
from ally.learning.linear import rebuilt as rebuilt_linear
from ally.learning.model_header import LONGEST_HEADER, VERSION, check_header
from ally.learning.snapshot import View, class_array, view
from ally.learning.words import FittedOfWords
from ally.registry import Registry
from ally.types import AnyArray, FloatArray

Rebuild: TypeAlias = Callable[
    [dict[str, Any], dict[str, torch.Tensor], FitReport, tuple[Any, ...] | None],
    Fitted,
]
"""A fitted learner from the values and tensors that it was packed as, a report, and the classes."""


def _rebuilt_estimator(
    values: dict[str, Any], tensors: dict[str, torch.Tensor], report: FitReport, classes: tuple[Any, ...] | None
) -> Fitted:
    from ally.learning.fitted_estimator import rebuilt

    return rebuilt(values, tensors, report, classes)


def _rebuilt_parts(
    facts: dict[str, Any], tensors: dict[str, torch.Tensor], report: FitReport, classes: tuple[Any, ...] | None
) -> tuple[Fitted, ...]:
    """The learners that another holds; tensors of the first begin with ``0.``, and so on."""
    fits = []
    for number, own in enumerate(facts["learners"]):
        prefix = f"{number}."
        parts = {name.removeprefix(prefix): part for name, part in tensors.items() if name.startswith(prefix)}
        fits.append(KINDS[own["kind"]]({"task": facts["task"], **own}, parts, report, classes))
    return tuple(fits)


def _rebuilt_average(
    facts: dict[str, Any], tensors: dict[str, torch.Tensor], report: FitReport, classes: tuple[Any, ...] | None
) -> FittedAverage:
    """From what `FittedAverage.packed` gave."""
    fits = _rebuilt_parts(facts, tensors, report, classes)
    weights = tuple(float(weight) for weight in facts["weights"])
    return FittedAverage(fits, weights, report)


def _rebuilt_of_words(
    facts: dict[str, Any], tensors: dict[str, torch.Tensor], report: FitReport, classes: tuple[Any, ...] | None
) -> FittedOfWords:
    """From what `FittedOfWords.packed` gave."""
    (fit,) = _rebuilt_parts(facts, tensors, report, classes)
    return FittedOfWords(fit, report)


KINDS: Registry[Rebuild] = Registry(
    "kind of learner",
    {
        "network": rebuilt,
        "linear": rebuilt_linear,
        "graph": rebuild_graph,
        "estimator": _rebuilt_estimator,
        "average": _rebuilt_average,
        "words": _rebuilt_of_words,
    },
)


@dataclass(frozen=True, eq=False)
class Trained:
    """`about` holds plain values stored with the learner."""

    fit: Fitted = field(repr=False)
    about: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def code(self) -> LabelCode:
        classes = self.fit.classes
        return LabelCode("regression", None) if classes is None else LabelCode("classification", class_array(classes))

    def predict(self, source: Source) -> tuple[AnyArray, FloatArray | None]:
        """Labels (n,) or targets, and the probability of each label (None where there is none), of all rows of a
        source."""
        seen = self.look(source)
        probability = None if seen.probabilities is None else seen.probabilities.amax(1).double().numpy()
        return self.code.decode(seen.predictions.numpy()), probability

    def look(self, source: Source) -> View:
        """What the learner says about all rows of a source."""
        with Scratch() as scratch:
            return view(self.fit, source, np.arange(len(source)), scratch)

    def to_bytes(self) -> bytes:
        """A safetensors file; `from_bytes` reads it back."""
        packed, tensors = self.fit.packed()
        facts = {
            "version": VERSION,
            "task": self.fit.task,
            "classes": None if self.fit.classes is None else list(self.fit.classes),
            "about": dict(self.about),
        }
        # Learners of an average may share a tensor, and safetensors writes none twice.
        written = {name: tensor.clone() for name, tensor in tensors.items()}
        return save(written, {"ally": json.dumps(facts | packed)})

    def write(self, path: str | Path) -> None:
        write_whole(Path(path), self.to_bytes())

    @classmethod
    def from_bytes(cls, data: bytes, name: str = "the model", trusted: Container[str] = ()) -> Trained:
        """`trusted` are import paths (``module:builder``) of your own models that may be called to rebuild it."""
        facts, tensors = _read(data, name)
        check_header(facts, name)
        for own in _builders(facts):
            if own not in trusted:
                raise DataError(
                    f"{name} was built by {own!r:.200}; reading it runs that code, so it is only read with "
                    f"trusted=[{own!r:.200}]"
                )
        report = FitReport(0, 0, 0, float("nan"), None, None, None)
        try:
            classes = None if facts["classes"] is None else tuple(facts["classes"])
            fit = KINDS[facts.get("kind", "network")](facts, tensors, report, classes)
        except DataError as error:
            raise DataError(f"{name}: {error}") from error
        except (KeyError, RuntimeError, TypeError, ValueError) as error:
            raise DataError(f"{name} is inconsistent ({error!s:.200}); train again") from error
        return cls(fit, facts.get("about", {}))

    @classmethod
    def read(cls, path: str | Path, trusted: Container[str] = ()) -> Trained:
        try:
            if Path(path).exists() and not Path(path).is_file():
                raise DataError(f"{path} is not a file; give the name of a .safetensors file")
            data = Path(path).read_bytes()
        except OSError as error:
            raise DataError(
                f"{path} cannot be read ({error.strerror}); give the name of a .safetensors file"
            ) from error
        return cls.from_bytes(data, str(path), trusted)

    def with_about(self, about: Mapping[str, Any]) -> Trained:
        return replace(self, about=about)


def _builders(facts: Mapping[str, Any]) -> list[str]:
    """The import paths that rebuilding it calls, of all learners that it holds."""
    own = [] if facts.get("own") is None else [facts["own"]]
    return [*own, *(path for learner in facts.get("learners", ()) for path in _builders(learner))]


def _read(data: bytes, name: str) -> tuple[Any, dict[str, torch.Tensor]]:
    """The facts in the header and the tensors."""
    size = int.from_bytes(data[:8], "little")
    if LONGEST_HEADER < size < len(data):
        raise DataError(f"{name} has a header of {size} bytes and {LONGEST_HEADER} is the most; train it again")
    try:
        tensors = load(data)
        text = json.loads(data[8 : 8 + size]).get("__metadata__", {}).get("ally")
        if text is None:
            raise DataError(
                f"{name} is a safetensors file, but not one of ally's; give a model that `ally export` wrote"
            )
        return json.loads(text), tensors
    except (SafetensorError, ValueError, KeyError, RecursionError) as error:
        raise DataError(
            f"{name} is not a complete safetensors file ({error!s:.200}); export or train it again"
        ) from error
