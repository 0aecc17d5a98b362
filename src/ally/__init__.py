"""ally: which samples should be labelled next, so that the model gains the most per label?"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ally import _renamed, errors

if TYPE_CHECKING:
    from ally.campaign import Campaign
    from ally.duals import DualReport, dual_report
    from ally.estimators import ConstrainedClassifier, ConstrainedRegressor
    from ally.experiment import bench
    from ally.hygiene import Hygiene
    from ally.loop import Loop, Query
    from ally.oneshot import query
    from ally.strategies import CATALOGUE, Strategy
    from ally.types import SKIP

__version__ = "0.1.0"

_LAZY = {
    "CATALOGUE": "ally.strategies",
    "Campaign": "ally.campaign",
    "ConstrainedClassifier": "ally.estimators",
    "ConstrainedRegressor": "ally.estimators",
    "Hygiene": "ally.hygiene",
    "Loop": "ally.loop",
    "Query": "ally.loop",
    "SKIP": "ally.types",
    "Strategy": "ally.strategies",
    "DualReport": "ally.duals",
    "bench": "ally.experiment",
    "dual_report": "ally.duals",
    "query": "ally.oneshot",
}

_MODULES = {
    "campaign",
    "data",
    "features",
    "generation",
    "models",
    "scoring",
    "selection",
    "store",
    "testing",
}

__all__ = [
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

_renamed.install()


def __getattr__(name: str) -> Any:
    """Imports the heavy parts (numpy, torch, scikit-learn) when they are first used: until then, a command that is
    interrupted ends with one word."""
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    if name in _MODULES:
        return importlib.import_module(f"ally.{name}")
    if name in _renamed.MODULES:
        return importlib.import_module(f"ally.{name}")
    raise AttributeError(f"module 'ally' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
