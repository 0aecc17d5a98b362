"""Trees out of a file, each checked node by node before native code follows it: that code trusts every index.

A node's children come after it, so no walk through a tree goes round; a feature is a column of the samples.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.tree._tree import NODE_DTYPE, Tree

from ally.errors import DataError
from ally.learning.archive import StoredObject
from ally.types import AnyArray

TREE = "sklearn.tree._tree.Tree"
PREDICTOR = "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"
NO_CHILD = -1


def rebuild_tree(record: Any, width: int, outputs: int) -> Tree:
    """A tree over samples of `width` columns whose leaves hold `outputs` numbers."""
    state = get_state(record, TREE)
    nodes, values = get_array(state, "nodes"), get_array(state, "values")
    if nodes.dtype != NODE_DTYPE or nodes.ndim != 1 or not len(nodes):
        raise DataError("a tree in the file has no nodes; train it again")
    if values.dtype != np.float64 or values.shape != (len(nodes), 1, outputs):
        raise DataError(f"a tree in the file has {values.shape} values for {len(nodes)} nodes; train it again")
    leaf = nodes["left_child"] == NO_CHILD
    _check_walk(leaf, nodes["left_child"], nodes["right_child"], nodes["feature"], width)
    if (nodes["right_child"][leaf] != NO_CHILD).any():
        raise DataError("a leaf of a tree in the file has a child; train it again")
    tree = Tree(width, np.array([outputs], dtype=np.intp), 1)
    depth = state.get("max_depth")
    depth = depth if isinstance(depth, int) and 0 <= depth < len(nodes) else len(nodes) - 1
    contents = {"nodes": np.ascontiguousarray(nodes), "values": np.ascontiguousarray(values)}
    tree.__setstate__({"max_depth": depth, "node_count": len(nodes), **contents})
    return tree


def rebuild_predictor(record: Any, width: int) -> TreePredictor:
    """A tree of boosting by histograms; none of ally's splits by categories."""
    state = get_state(record, PREDICTOR)
    nodes = get_array(state, "nodes")
    if nodes.dtype != PREDICTOR_RECORD_DTYPE or nodes.ndim != 1 or not len(nodes):
        raise DataError("a tree in the file has no nodes; train it again")
    if nodes["is_categorical"].any():
        raise DataError("a tree in the file splits by categories, which is not checked; train it again")
    _check_walk(nodes["is_leaf"] != 0, nodes["left"], nodes["right"], nodes["feature_idx"], width)
    no_categories = np.zeros((0, 8), dtype=np.uint32)
    return TreePredictor(np.ascontiguousarray(nodes), no_categories, no_categories)


def _check_walk(leaf: AnyArray, left: AnyArray, right: AnyArray, feature: AnyArray, width: int) -> None:
    """Every way down from the first node ends at a leaf and looks at columns that there are."""
    places = np.flatnonzero(~leaf)
    for children in (left[places].astype(np.int64), right[places].astype(np.int64)):
        if ((children <= places) | (children >= len(leaf))).any():
            raise DataError("a tree in the file has a child that is no node after its parent; train it again")
    if ((feature[places] < 0) | (feature[places] >= width)).any():
        raise DataError(f"a tree in the file looks at a column beyond the {width} there are; train it again")


def get_state(record: Any, path: str) -> dict[str, Any]:
    """The state of a record of this class."""
    if not isinstance(record, StoredObject) or record.path != path or not isinstance(record.state, dict):
        met = record.path if isinstance(record, StoredObject) else type(record).__name__
        raise DataError(f"the estimator in the file has {met!r:.200} where a {path} belongs; train it again")
    return record.state


def get_array(state: dict[str, Any], name: str) -> AnyArray:
    value = state.get(name)
    if not isinstance(value, np.ndarray) or value.dtype == object:
        raise DataError(f"the estimator in the file has no numbers called {name!r}; train it again")
    return value


def get_count(state: dict[str, Any], name: str) -> int:
    value = state.get(name)
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or not 1 <= value < 2**31:
        raise DataError(f"the estimator in the file has {name}={value!r:.60}; train it again")
    return int(value)
