"""Trees of LightGBM and XGBoost out of a file that this user's `ally` did not write.

Their libraries trust every index in a model. So the text is read here, each tree is checked node by node, and a new
text is written of nothing but the checked values. Trees that split by categories, that hold linear models or are
dropped at random are refused.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ally.errors import DataError
from ally.learning.archive import LONGEST_PLAN, MOST_NODES, MOST_VALUES, StoredObject
from ally.learning.boosted_trees import BoostedClassifier, BoostedRegressor
from ally.learning.rebuild_trees import get_array, get_count
from ally.types import AnyArray

LIGHTGBM_NUMBERS = ("regression", "regression_l1", "huber", "fair", "poisson", "quantile", "mape", "gamma", "tweedie")
"""Objectives of LightGBM for numbers."""
OPTION = re.compile(r"[a-z_]{1,30}:[-+.0-9e]{1,30}|sqrt", re.ASCII)
NO_PARENT = 2**31 - 1
DAMAGED = (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError, RecursionError)
"""What reading a text may raise if it lies."""


def rebuild_classifier(record: StoredObject) -> BoostedClassifier:
    state = _get_state(record)
    classes = get_array(state, "classes")
    if classes.ndim != 1 or not len(classes) or classes.dtype.kind not in "Uiubf":
        raise DataError(f"the model in the file has classes of shape {classes.shape}; train it again")
    text = _rebuild_text(state, len(classes))
    return BoostedClassifier(state["library"], text, state["n_features"], _get_missing(state), classes)


def rebuild_regressor(record: StoredObject) -> BoostedRegressor:
    state = _get_state(record)
    return BoostedRegressor(state["library"], _rebuild_text(state, 0), state["n_features"], _get_missing(state))


def _get_state(record: StoredObject) -> dict[str, Any]:
    if not isinstance(record.state, dict) or record.state.get("library") not in ("lightgbm", "xgboost"):
        raise DataError("the boosted trees in the file say not which library they are of; train them again")
    get_count(record.state, "n_features")
    return record.state


def _get_missing(state: Mapping[str, Any]) -> float:
    missing = state.get("missing")
    if not isinstance(missing, float):
        raise DataError(f"the boosted trees in the file have missing={missing!r:.60}; train them again")
    return missing


def _rebuild_text(state: dict[str, Any], classes: int) -> AnyArray:
    rebuild = _rebuild_lightgbm if state["library"] == "lightgbm" else _rebuild_xgboost
    try:
        text = get_array(state, "text").astype(np.uint8, casting="safe").tobytes().decode()
        _check_size(text)
        return np.frombuffer(rebuild(text, state["n_features"], classes).encode(), np.uint8)
    except DAMAGED as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else f"{error!s:.200}"
        raise DataError(f"the boosted trees in the file cannot be read ({reason}); train them again") from error


def _check_size(text: str) -> None:
    """A list of empty lists takes many times the memory of its text."""
    nodes, values = text.count("{") + text.count("["), text.count(",") + text.count(" ") + text.count("=")
    if len(text) > LONGEST_PLAN or nodes > MOST_NODES or values > MOST_VALUES:
        raise ValueError(f"{len(text)} characters with {nodes} lists and {values} values")


def _rebuild_lightgbm(text: str, width: int, classes: int) -> str:
    head, *blocks = re.split(r"^Tree=\d+$", text.partition("\nend of trees")[0], flags=re.MULTILINE)
    header = _read_fields(head)
    at_once = classes if classes > 2 else 1
    if len(header["feature_names"].split()) != width or int(header["num_tree_per_iteration"]) != at_once:
        raise ValueError(f"{width} columns and {at_once} trees at a time are needed")
    if not blocks or len(blocks) % at_once:
        raise ValueError(f"{len(blocks)} trees")
    names = " ".join(f"Column_{number}" for number in range(width))
    lines = ["tree", "version=v4", f"num_class={at_once}", f"num_tree_per_iteration={at_once}", "label_index=0",
             f"max_feature_idx={width - 1}", f"objective={_check_objective(header['objective'], classes)}",
             *(["average_output"] if "average_output" in header else []), f"feature_names={names}",
             f"feature_infos={' '.join(['none'] * width)}", ""]  # fmt: skip
    for number, block in enumerate(blocks):
        lines += [f"Tree={number}", *_rebuild_lightgbm_tree(_read_fields(block), width), "", ""]
    return "\n".join([*lines, "end of trees", "", "pandas_categorical:null", ""])


def _check_objective(objective: str, classes: int) -> str:
    name, *options = objective.split()
    known = LIGHTGBM_NUMBERS if not classes else ("multiclass", "multiclassova") if classes > 2 else ("binary",)
    if name not in known or not all(OPTION.fullmatch(option) for option in options):
        raise ValueError(f"the objective {objective!r:.60}")
    if classes > 2 and f"num_class:{classes}" not in options:
        raise ValueError(f"the objective {objective!r:.60} for {classes} classes")
    return objective


def _read_fields(block: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in block.splitlines() if line)
    return {name: value for name, _, value in pairs}


def _rebuild_lightgbm_tree(fields: Mapping[str, str], width: int) -> Iterator[str]:
    leaves = int(fields["num_leaves"])
    if leaves < 1 or fields["num_cat"] != "0" or fields.get("is_linear", "0") != "0":
        raise ValueError("a tree without leaves, with categories or with linear leaves")
    inner = leaves - 1
    yield f"num_leaves={leaves}"
    yield "num_cat=0"
    if inner:
        features = _read_integers(fields["split_feature"].split(), inner, 0, width)
        left, right = (
            _read_integers(fields[f"{side}_child"].split(), inner, -leaves, inner) for side in ("left", "right")
        )
        if any(0 <= child <= node for children in (left, right) for node, child in enumerate(children)):
            raise ValueError("a child that is no node after its parent")
        decisions = _read_integers(fields["decision_type"].split(), inner, 0, 12)
        if any(decision & 1 for decision in decisions):
            raise ValueError("a split by categories")
        thresholds = _read_floats(fields["threshold"].split(), inner)
        for name, values in (("split_feature", features), ("threshold", thresholds), ("decision_type", decisions),
                             ("left_child", left), ("right_child", right)):  # fmt: skip
            yield f"{name}={' '.join(map(repr, values))}"
    yield f"leaf_value={' '.join(map(repr, _read_floats(fields['leaf_value'].split(), leaves)))}"
    yield "is_linear=0"
    yield "shrinkage=1"


def _rebuild_xgboost(text: str, width: int, classes: int) -> str:
    whole = json.loads(text)
    learner, at_once = whole["learner"], classes if classes > 2 else 1
    booster, settings = learner["gradient_booster"], learner["learner_model_param"]
    objective = _rebuild_objective(learner["objective"]["name"], classes)
    if booster["name"] != "gbtree" or int(settings["num_feature"]) != width or int(settings.get("num_target", 1)) != 1:
        raise ValueError(f"a {booster['name']!r:.60} of {settings['num_feature']!r:.60} columns")
    starts = _read_floats(settings["base_score"].strip("[]").split(","), None)
    if len(starts) not in (1, at_once):
        raise ValueError(f"{len(starts)} starting values")
    model = booster["model"]
    trees = [_rebuild_xgboost_tree(tree, number, width) for number, tree in enumerate(model["trees"])]
    edges = _read_integers(model["iteration_indptr"], None, 0, len(trees) + 1)
    if not trees or edges[0] != 0 or edges[-1] != len(trees) or sorted(edges) != edges:
        raise ValueError(f"{len(trees)} trees in {len(edges) - 1} iterations")
    (alike,) = _read_integers([model["gbtree_model_param"]["num_parallel_tree"]], 1, 1, len(trees) + 1)
    rebuilt = {
        "gbtree_model_param": {"num_parallel_tree": str(alike), "num_trees": str(len(trees))},
        "cats": {"enc": [], "feature_segments": [], "sorted_idx": []},
        "iteration_indptr": edges,
        "tree_info": _read_integers(model["tree_info"], len(trees), 0, at_once),
        "trees": trees,
    }
    known = {
        "base_score": settings["base_score"] if len(starts) > 1 else repr(starts[0]),
        "boost_from_average": "1",
        "num_class": str(classes if classes > 2 else 0),
        "num_feature": str(width),
        "num_target": "1",
    }
    if settings["base_score"].startswith("["):
        known["base_score"] = f"[{','.join(map(repr, starts))}]"
    return json.dumps({
        "learner": {
            "attributes": {}, "feature_names": [], "feature_types": [],
            "gradient_booster": {"model": rebuilt, "name": "gbtree"},
            "learner_model_param": known, "objective": objective,
        },
        "version": _read_integers(whole["version"], 3, 0, 1000),
    })  # fmt: skip


def _rebuild_objective(name: Any, classes: int) -> dict[str, Any]:
    known = "multi:softprob" if classes > 2 else "binary:logistic" if classes else "reg:squarederror"
    if name != known:
        raise ValueError(f"the objective {name!r:.60}, where {known} belongs")
    if classes > 2:
        return {"name": known, "softmax_multiclass_param": {"num_class": str(classes)}}
    return {"name": known, "reg_loss_param": {"scale_pos_weight": "1"}}


def _rebuild_xgboost_tree(tree: Mapping[str, Any], number: int, width: int) -> dict[str, Any]:
    settings = tree["tree_param"]
    nodes = len(tree["left_children"])
    if int(settings["num_nodes"]) != nodes or int(settings["num_deleted"]) or int(settings["size_leaf_vector"]) > 1:
        raise ValueError(f"a tree of {nodes} nodes that says {settings!r:.200}")
    left, right = (_read_integers(tree[f"{side}_children"], nodes, -1, nodes) for side in ("left", "right"))
    parents = [NO_PARENT] * nodes
    for node, children in enumerate(zip(left, right, strict=True)):
        if (children[0] == -1) != (children[1] == -1) or any(0 <= child <= node for child in children):
            raise ValueError("a child that is no node after its parent")
        for child in children:
            if child != -1:
                parents[child] = node
    if nodes < 1 or parents.count(NO_PARENT) != 1 or left.count(-1) * 2 != nodes + 1:
        raise ValueError("nodes that are no tree")
    if any(_read_integers(tree["split_type"], nodes, 0, 2)) or tree["categories"]:
        raise ValueError("a split by categories")
    numbers = {
        name: _read_floats(tree[name], nodes)
        for name in ("split_conditions", "base_weights", "loss_changes", "sum_hessian")
    }
    return {
        **numbers,
        "split_indices": _read_integers(tree["split_indices"], nodes, 0, width),
        "default_left": _read_integers(tree["default_left"], nodes, 0, 2),
        "split_type": [0] * nodes,
        "left_children": left, "right_children": right, "parents": parents, "id": number,
        "categories": [], "categories_nodes": [], "categories_segments": [], "categories_sizes": [],
        "tree_param": {"num_deleted": "0", "num_feature": str(width), "num_nodes": str(nodes), "size_leaf_vector": "1"},
    }  # fmt: skip


def _read_integers(values: Sequence[Any], count: int | None, least: int, end: int) -> list[int]:
    """`count` whole numbers from `least` to before `end`; any number of them for None."""
    read = [int(value) for value in values]
    if (count is not None and len(read) != count) or not all(least <= value < end for value in read):
        raise ValueError(f"{len(read)} whole numbers that are not {count} from {least} to {end - 1}")
    return read


def _read_floats(values: Sequence[Any], count: int | None) -> list[float]:
    """`count` finite numbers; any number of them for None."""
    read = [float(value) for value in values]
    if (count is not None and len(read) != count) or not all(math.isfinite(value) for value in read):
        raise ValueError(f"{len(read)} numbers that are not {count} finite ones")
    return read
