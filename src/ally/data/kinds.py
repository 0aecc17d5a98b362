"""Kinds of data: all that differs from one kind to another is one entry, a `SampleKind`.

`open_source` asks the entries which of them recognises what it is given, and the entry opens it. The samples then say
their `kind`, and whoever has a question that depends on it asks the entry: which encoder reads them, what learns them
by default, how one and many of them are called, and how a page shows them.

A kind of your own is a class of samples and an entry (docs/sources.md). It is code, so a campaign keeps its import path
``module:NAME``, and other processes and other people run it only by the rule of trust (docs/security.md).
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ally.data.containers import Container
from ally.data.defaults import DefaultLearner, learner_by_shape
from ally.errors import InputError
from ally.importing import ensure_importable, import_named
from ally.registry import Registry

if TYPE_CHECKING:
    from ally.data.embeddings import Embeddings
    from ally.data.encoders.base import EncoderKind
    from ally.data.samples import Samples

Widget: TypeAlias = Literal["image", "text", "card"]
"""How a page shows a sample: a picture to zoom into, a text to read, or its columns."""
BesideEncoder: TypeAlias = Literal["unused", "joined", "rival"]
BUILT_IN = ("features", "images", "text", "table")
FOLDER_OPTIONS = frozenset({"recursive", "label", "embeddings"})
"""The options of `open_source` for a folder of files that are a sample each."""


@dataclass(frozen=True)
class SourceRequest:
    """What `open_source` is asked for, once it is known which kind it is.

    Attributes:
        place: the folder, file or object.
        options: the other options of `open_source`, by name.
        vectors: the user's own vectors to learn from, if there are any.
        known: an earlier `Samples.fingerprint` of this source, which has the form of one.
        other: whether, with `known`, other samples of the same kind are to be read.
        cache: a folder for small copies; None: nothing is written.
        container: what `place` came in, with the labels and ids that were in it.
    """

    place: Any
    options: Mapping[str, Any] = field(default_factory=dict)
    vectors: Embeddings | None = None
    known: Mapping[str, Any] | None = None
    other: bool = False
    cache: Path | None = None
    container: Container = Container(None)


@dataclass(frozen=True, eq=False, repr=False)
class SampleKind:
    """A kind of data.

    Attributes:
        name: what a campaign records of it; lower-case letters, digits and hyphens.
        words: how one and many samples are called: ``("image", "images")``.
        recognises: whether a source that a user gives is of this kind; looks at it, and reads as little as possible.
        open: its samples.
        widget: how a page shows a sample.
        encoder: the kind of encoder that reads what `Samples.contents` gives, if one can.
        beside_encoder: what becomes of `Samples.features` where there is an encoder: they are ``"unused"``,
            ``"joined"`` to its vectors, or a ``"rival"`` that the learner is compared on.
        learner: the model by default, for samples of a shape and a number of labels.
        options: the options of `open_source` that it takes.
        source: what a source of this kind is called.
    """

    name: str
    words: tuple[str, str]
    recognises: Callable[[Any], bool]
    open: Callable[[SourceRequest], Samples]
    widget: Widget = "card"
    encoder: EncoderKind | None = None
    beside_encoder: BesideEncoder = "unused"
    learner: Callable[[tuple[int, ...], int], DefaultLearner] = learner_by_shape
    options: frozenset[str] = FOLDER_OPTIONS
    source: str = "such a source"

    def __post_init__(self) -> None:
        plain = self.name.replace("-", "")
        if not (plain.isascii() and plain.isalnum() and self.name == self.name.lower()):
            raise InputError.about("name", self.name, "names no kind; use lower-case letters, digits and hyphens")

    def __repr__(self) -> str:
        return f"<kind of data {self.name!r}>"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            message = "the kind of samples is a SampleKind now: compare kind.name; comparing a text goes with 0.3"
            warnings.warn(message, DeprecationWarning, stacklevel=2)
            return self.name == other
        return self is other

    __hash__ = object.__hash__

    @property
    def is_own(self) -> bool:
        """Whether it is a user's, and not one of ours."""
        return self.name not in BUILT_IN or KINDS[self.name] is not self


KINDS: Registry[SampleKind] = Registry("kind of data")
"""Every kind by name: ours, added by `ally.data.opening`, and those that `register_kind` added."""


def register_kind(kind: SampleKind) -> SampleKind:
    """Let `open_source` recognise a kind of your own in this process. It is asked before the built-in ones, when a
    source is opened for the first time. One of the same name that was registered before makes room."""
    if kind.name in BUILT_IN:
        raise InputError.about("name", kind.name, "is that of a built-in kind; choose another")
    return KINDS.replace(kind.name, kind)


def find_kind(kind: SampleKind | str | None, place: Any, known: Mapping[str, Any] | None) -> SampleKind:
    """The kind that was asked for, or that recognises a source; with `known`, only ours are asked, since nothing in a
    file decides that other code runs."""
    if isinstance(kind, SampleKind):
        return kind
    if isinstance(kind, str):
        return load_kind(kind) if ":" in kind else KINDS[kind]
    if kind is not None:
        raise InputError.about("kind", kind, "is no kind of data; pass a SampleKind, or its import path module:NAME")
    own = [one for one in KINDS.values() if one.is_own] if known is None else []
    ours = [KINDS[name] for name in BUILT_IN]
    return next(one for one in (*own, *ours) if one.recognises(place))


def load_kind(path: str) -> SampleKind:
    """The kind at an import path, whose module is imported."""
    kind = import_named(path, "kind", "module:NAME")
    if not isinstance(kind, SampleKind):
        raise InputError.about("kind", path, f"is a {type(kind).__name__}; name a SampleKind")
    return kind


def name_kind(kind: SampleKind | str) -> str | None:
    """How a campaign keeps a kind: the name of one of ours, else the import path of a user's. None if it belongs to the
    program itself and has to be passed again."""
    if isinstance(kind, SampleKind) and not kind.is_own:
        return kind.name
    if isinstance(kind, str) and kind in BUILT_IN:
        return kind
    if isinstance(kind, str):
        path = kind if ":" in kind else name_kind(KINDS[kind])
    else:
        home = _find_home(kind)
        variables = vars(sys.modules[home]) if home in sys.modules else {}
        name = next((name for name, value in variables.items() if value is kind), None)
        if name is None and home != "__main__":
            raise InputError(
                f"the kind {kind.name!r} has no name in the module {home!r} of its samples, so that other processes "
                "cannot find it; assign it to a variable there"
            )
        path = None if home == "__main__" else f"{home}:{name}"
    if path is not None:
        ensure_importable(path, "kind")
    return path


def _find_home(kind: SampleKind) -> str:
    """The module that says how samples of a kind are opened."""
    owner: Any = kind.open.__self__ if inspect.ismethod(kind.open) else kind.open
    return str(owner.__module__)
