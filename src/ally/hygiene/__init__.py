"""What a query keeps out of a batch: copies, near duplicates, outliers. Exactly n ids come back all the same."""

from ally.hygiene.choose import choose, put_last
from ally.hygiene.copies import EqualInputs, find_copies, fingerprints
from ally.hygiene.settings import Hygiene, SetAside

__all__ = ["EqualInputs", "Hygiene", "SetAside", "choose", "find_copies", "fingerprints", "put_last"]
