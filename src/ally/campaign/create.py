"""A new campaign: the source is read once, and the store is whole or not there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ally.campaign.encoding import encode_samples
from ally.campaign.settings import Evaluate, Settings
from ally.campaign.source import beside, cache, encoded_folder, kept_options, kept_place, new_sample
from ally.campaign.status import GIVEN
from ally.encoders.samples import ENCODED
from ally.errors import InputError, ModelError
from ally.names import ANY_SHAPE, LEARNERS, ensure_model, ensure_objective, ensure_strategy
from ally.sources import Samples, open_source
from ally.store import NewSample, Store
from ally.store import create as create_store
from ally.store.values import Role
from ally.types import Progress

MEASURED = 5
"""Different labels with fractions, from which on they are taken as measurements."""
EVALUATE, PART, LEAST = 100, 10, 20
"""The evaluation sample by default: 100 samples, no more than a tenth of all, and none if that were fewer than 20."""


def create(
    place: str | Path,
    source: Any,
    options: Mapping[str, Any],
    chosen: Mapping[str, Any],
    *,
    evaluate: Evaluate | None,
    clock: Callable[[], float],
    progress: Progress | None,
) -> tuple[Store, Samples]:
    """`chosen` are settings but for the place, options and fingerprint of the source, and for `evaluate`."""
    folder = beside(place)
    chosen = {**chosen, "model": chosen.get("model") or "auto"}
    others = {name: value for name, value in chosen.items() if name != "encoder"}

    def settings(fingerprint: Mapping[str, Any], evaluated: Evaluate) -> Settings:
        return Settings(
            kept_place(source, folder),
            kept_options(options, folder),
            fingerprint,
            evaluate=evaluated,
            encoder=fingerprint.get(ENCODED, {}).get("name"),
            **others,
        )

    draft = settings({}, evaluate or 0)
    check_names(draft)
    samples = open_source(source, **options, cache=cache(place))
    embeddings, kept_in = options.get("embeddings"), encoded_folder(place)
    samples = encode_samples(samples, chosen["encoder"], draft.model, embeddings, kept_in, folder)
    reading = _Reading(samples, draft, progress)

    def evaluated() -> Evaluate:
        return evaluate if evaluate is not None else evaluate_by_default(reading.found)

    def reserve() -> dict[Role, int]:
        held_out = 0 if evaluate == "cv" else int(evaluated())
        sizes: dict[Role, int] = {"evaluate": held_out, "validate": draft.validate}
        return {role: n for role, n in sizes.items() if n}

    def finished() -> dict[str, Any]:
        reading.ensure_classes()
        check_model(draft, samples)
        return settings(samples.fingerprint(), evaluated()).to_json()

    store = create_store(place, finished, reading, now=clock(), seed=draft.seed, reserve=reserve, labelled_by=GIVEN)
    return store, samples


class _Reading:
    """New samples of a source, counted as they pass."""

    def __init__(self, samples: Samples, settings: Settings, progress: Progress | None) -> None:
        self.samples = samples
        self.settings = settings
        self.progress = progress
        self.found = 0
        self.labels = 0
        self.fractions: list[float] = []
        self.first: dict[str, Any] = {}

    def __iter__(self) -> Iterator[NewSample]:
        for sample in self.samples.scan():
            self.found += 1
            if self.progress is not None and self.found % 1000 == 0:
                self.progress("reading samples", self.found, 0)
            new = new_sample(sample, self.settings, self.first)
            self.labels += new.label is not None
            if isinstance(new.label, float) and not new.label.is_integer():
                self.fractions.append(new.label)
            yield new

    def ensure_classes(self) -> None:
        """Labels with fractions, most of them different, are measurements."""
        different = len(set(self.fractions))
        if self.settings.task == "classification" and different >= MEASURED and 2 * different > self.labels:
            raise InputError(
                f"the labels are numbers such as {self.fractions[0]}, {different} different ones of {self.labels}; to "
                "predict numbers say task='regression' (--regression), or label='none' (--label none) to leave them out"
            )


def evaluate_by_default(samples: int) -> int:
    size = min(EVALUATE, samples // PART)
    return size if size >= LEAST else 0


def kept_model(model: Any) -> str | None:
    """A model as text that a process of its own can rebuild it from: a name, ``module:builder``, or an estimator.

    Functions and classes of a module are named by their import path; whatever has no text is refused.
    """
    if model is None or isinstance(model, str):
        return model
    if isinstance(model, type) and hasattr(model, "get_params"):
        raise ModelError(f"model is the class {model.__name__}; pass an instance, {model.__name__}()")
    if hasattr(model, "get_params") and hasattr(model, "fit"):
        from ally.learning.stored_estimator import as_text

        return as_text(model)
    module, name = getattr(model, "__module__", None), getattr(model, "__qualname__", "")
    if callable(model) and module not in (None, "__main__") and name and "<" not in name:
        return f"{module}:{name}"
    what = f"the function {name}" if name else f"a {type(model).__name__}"
    raise ModelError(
        f"model is {what}, which another process cannot rebuild; name it as 'module:builder', a function of a module "
        "that gives an estimator or a network"
    )


def check_model(settings: Settings, samples: Samples) -> None:
    """The model can take the samples."""
    if settings.model is not None and settings.model not in (*ANY_SHAPE, *LEARNERS):
        from ally.learning.network import Network
        from ally.learning.resolve import resolve_learner

        shape = samples.features([]).shape
        learner = resolve_learner(settings.model, shape)
        if isinstance(learner, Network):
            learner.build(shape, 2)


def check_names(settings: Settings) -> None:
    """The strategy, the objective and the model exist and suit the task."""
    ensure_strategy(settings.strategy, settings.task)
    if settings.objective is not None:
        ensure_objective(settings.objective)
    if settings.model is not None:
        ensure_model(settings.model)
