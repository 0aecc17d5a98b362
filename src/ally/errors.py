"""Every error the library raises on purpose. Each message says what is wrong, the value found and what to do next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self


class AllyError(Exception):
    """Base of all errors raised on purpose."""

    argument: str | None = None
    """The argument the error is about, if it is about one."""
    value: Any = None
    """What that argument was."""
    problem: str = ""
    """What is wrong with it, and the next step."""
    sample: int | None = None
    """The row of the sample the error is about, if it is about one."""

    def at(self, sample: int) -> Self:
        """The same error, about the sample of this row."""
        self.sample = int(sample)
        return self

    @classmethod
    def about(cls, argument: str, value: Any, problem: str) -> Self:
        """An error about one argument; it reads ``argument=value problem``."""
        error = cls(_sentence(f"{argument}=", value, problem))
        error.argument, error.value, error.problem = argument, value, problem
        return error

    def worded(self, name: Callable[[str], str]) -> str:
        """The message for callers who know the argument by another name, such as an option of a command."""
        return str(self) if self.argument is None else _sentence(f"{name(self.argument)} ", self.value, self.problem)


def _sentence(named: str, value: Any, problem: str) -> str:
    return f"{named}{value!r}{problem if problem[:1] in tuple(';:,') else f' {problem}'}"


class InputError(AllyError, ValueError):
    """An argument cannot be used."""


class NoDuals(InputError, AttributeError):
    """A fitted model was asked for duals, or for what only exact duals say, and has none."""


class NonFiniteInput(InputError):
    """A feature or a target is NaN or infinite."""


class LabelError(InputError):
    """The labels do not fit the pool, the task or the declared classes."""


class UnknownClasses(LabelError):
    """Labels that are not among the declared classes."""

    labels: tuple[Any, ...] = ()
    """Each label once."""


class OneClassError(LabelError):
    """A classifier was asked for, but the labels hold a single class."""


class IdError(InputError):
    """An id is unknown, repeated or of the wrong kind."""


class AnswerError(InputError):
    """An answer does not fit the query it was given for."""


class AnswerConflict(AnswerError):
    """Somebody answered the sample meanwhile; `number` is the answer that stands, `annotator` who gave it."""

    def __init__(self, message: str, number: int = 0, annotator: str = "", label: Any = None) -> None:
        super().__init__(message)
        self.number = number
        self.annotator = annotator
        self.label = label


class PoolExhausted(InputError):
    """Fewer samples are free than were asked for."""

    def __init__(self, available: int, requested: int, pending: int = 0, hint: str = "") -> None:
        self.available = available
        self.requested = requested
        self.pending = pending
        remedy = f"answer or release some of the {pending} pending ones" if pending else "add samples to the pool"
        fewer = f"ask for n <= {available} or " if available else ""
        super().__init__(f"{available} samples are free and {requested} were requested; {fewer}{hint or remedy}")

    def __reduce__(self) -> tuple[type[PoolExhausted], tuple[int, int]]:
        return PoolExhausted, (self.available, self.requested)


class UnsupportedTask(InputError):
    """A strategy or one of its parts is not defined for the task."""


class UnknownName(InputError, KeyError):
    """No entry of that name is registered."""

    __str__ = Exception.__str__


class ModelError(InputError):
    """A model does not have the shape the library needs (backbone + head)."""


class DataError(AllyError):
    """A data set is missing, damaged, or not in the format it claims."""


class NotTrusted(AllyError):
    """A file from somebody else asks for something that only its user may allow; see `ally trust`."""


class StateUnavailable(AllyError):
    """The folder for this person's decisions and keys cannot be used."""


class MissingPart(AllyError, ImportError):
    """An optional dependency is not installed."""


class TrainingDiverged(AllyError):
    """The training loss became NaN or infinite."""


class BrokenPart(AllyError):
    """A score or a selection broke its contract. It stops the round."""


class EngineError(AllyError):
    """An engine cannot be reached, or its workers are lost again and again."""


class NonFiniteScore(BrokenPart):
    """A score is NaN or infinite. It is never replaced by another number."""


class MemoryBudgetExceeded(AllyError):
    """A selection would need more memory than the budget allows."""


class StoreError(AllyError):
    """A campaign's store cannot do what was asked. Nothing was written unless the message says so."""


class StoreMissing(StoreError):
    """There is no campaign at this place."""


class StoreExists(StoreError):
    """There is already a campaign at this place."""


class StoreVersion(StoreError):
    """The store was written by a newer version of the library."""


class StoreBusy(StoreError):
    """The store was in use by others for too long."""


class StoreDamaged(StoreError):
    """The file is damaged, truncated or not a store."""


class StoreFull(StoreError):
    """The disk is full."""


class StoreReadOnly(StoreError):
    """The store can be read but not written."""


class StoreUnreachable(StoreError):
    """The database server does not answer. A call that was under way may or may not be recorded: repeat it with the
    same key."""
