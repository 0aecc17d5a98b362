import inspect
import subprocess
import sys

import pytest

import ally
from ally import errors


def test_public_names():
    assert ally.__all__ == [
        "CATALOGUE",
        "SKIP",
        "Campaign",
        "ConstrainedClassifier",
        "ConstrainedRegressor",
        "DualReport",
        "Hygiene",
        "Loop",
        "Query",
        "Strategy",
        "bench",
        "dual_report",
        "errors",
        "query",
    ]
    for name in ally.__all__:
        assert getattr(ally, name) is not None
        assert name in dir(ally)


def test_catalogue_names():
    assert list(ally.CATALOGUE)[:9] == [
        "ally",
        "ally-paper",
        "random",
        "entropy",
        "margin",
        "badge",
        "coreset",
        "bait",
        "kmeanspp",
    ]


def test_import_is_light():
    heavy = ("numpy", "torch", "sklearn", "pandas", "matplotlib")
    code = f"import sys, ally; sys.exit(any(name in sys.modules for name in {heavy}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_error_derives_from_ally_error():
    raised = [item for _, item in inspect.getmembers(errors, inspect.isclass) if item.__module__ == "ally.errors"]
    assert len(raised) > 10
    assert all(issubclass(item, errors.AllyError) for item in raised)


def test_query_signature_is_the_contract():
    assert list(inspect.signature(ally.query).parameters) == [
        "X",
        "y",
        "n",
        "strategy",
        "objective",
        "model",
        "task",
        "classes",
        "ids",
        "candidates",
        "embeddings",
        "validation",
        "missing_label",
        "random_state",
        "device",
        "chunk_size",
        "memory_budget",
        "engine",
        "progress",
        "hygiene",
        "channels",
        "encoder",
        "reading",
    ]


def test_unknown_attribute():
    with pytest.raises(AttributeError, match="nothing"):
        ally.nothing  # noqa: B018
