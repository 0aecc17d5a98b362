"""Which rows are labelled, pending, ignored or free; their labels; and the oracle that keeps hidden labels."""

from ally.pool.ids import Ids
from ally.pool.labels import LabelCode, ParsedLabels, parse_labels
from ally.pool.oracle import Oracle
from ally.pool.pool import Pool, State

__all__ = ["Ids", "LabelCode", "Oracle", "ParsedLabels", "Pool", "State", "parse_labels"]
