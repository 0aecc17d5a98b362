"""Where a labelling campaign keeps everything. `create` and `open` take a file name, a PostgreSQL URL, or "memory".

    store = ally.store.create("pets.db", {"classes": ["cat", "dog"]}, [NewSample("a.jpg"), NewSample("b.jpg")],
    now=time.time()) query = store.ask("ann", 1, time.time(), lease_seconds=600, key="first") store.answer("ann",
    time.time(), [NewAnswer(query.ids[0], "cat")], query.number, key="second")

The contract is in `ally.store.base`, what it survives and why in docs/durability.md.
"""

from ally.store.base import Store
from ally.store.start import create, new_id, open
from ally.store.values import (
    ANYTHING,
    Added,
    AnswerCall,
    Asked,
    Counts,
    Event,
    Label,
    Measure,
    NewAnswer,
    NewSample,
    Ranked,
    Receipt,
    Recorded,
    RoleCounts,
    StoredAnswer,
    StoredModel,
    StoredQuery,
    StoredSample,
)

__all__ = [
    "ANYTHING",
    "Added",
    "AnswerCall",
    "Asked",
    "Counts",
    "Event",
    "Label",
    "Measure",
    "NewAnswer",
    "NewSample",
    "Ranked",
    "Receipt",
    "Recorded",
    "RoleCounts",
    "Store",
    "StoredAnswer",
    "StoredModel",
    "StoredQuery",
    "StoredSample",
    "create",
    "new_id",
    "open",
]
