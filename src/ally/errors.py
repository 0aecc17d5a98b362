"""Every error the library raises on purpose. Each message says what was wrong, the value met and the next step."""

from __future__ import annotations


class AllyError(Exception):
    """Base of all errors raised on purpose."""


class InputError(AllyError, ValueError):
    """Something the caller passed cannot be used as it is."""


class NonFiniteInput(InputError):
    """A feature or a target is NaN or infinite."""


class LabelError(InputError):
    """The labels do not fit the pool, the task or the declared classes."""


class OneClassError(LabelError):
    """A classifier was asked for, but the labels hold a single class."""


class IdError(InputError):
    """An id is unknown, repeated or of the wrong kind."""


class AnswerError(InputError):
    """An answer does not fit the query it was given for."""


class PoolExhausted(InputError):
    """Fewer samples are free than were asked for."""

    def __init__(self, available: int, requested: int, pending: int = 0) -> None:
        self.available = available
        self.requested = requested
        remedy = f"answer or release some of the {pending} pending ones" if pending else "add samples to the pool"
        fewer = f"ask for n <= {available} or " if available else ""
        super().__init__(f"{available} samples are free and {requested} were requested; {fewer}{remedy}")

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
    """A data set is not there, is damaged, or is not what its format says."""


class MissingPart(AllyError, ImportError):
    """An optional dependency is not installed."""


class TrainingDiverged(AllyError):
    """The training loss became NaN or infinite."""


class BrokenPart(AllyError):
    """A score or a selection broke its contract. It stops the round."""


class NonFiniteScore(BrokenPart):
    """A score is NaN or infinite. It is never patched."""


class MemoryBudgetExceeded(AllyError):
    """A selection would need more memory than the budget allows."""


class StoreError(AllyError):
    """A campaign's store cannot do what was asked. Nothing was written unless the message says so."""


class StoreMissing(StoreError):
    """There is no campaign at the place named."""


class StoreExists(StoreError):
    """There is a campaign at the place named already."""


class StoreVersion(StoreError):
    """The store was written by a newer version of the library."""


class StoreBusy(StoreError):
    """Others kept the store busy for too long."""


class StoreDamaged(StoreError):
    """The file is torn, truncated or not a store."""


class StoreFull(StoreError):
    """There is no room to write."""


class StoreReadOnly(StoreError):
    """The store can be read and not written."""


class StoreUnreachable(StoreError):
    """The database server does not answer. A call that was under way may or may not be recorded: repeat it with the same key."""
