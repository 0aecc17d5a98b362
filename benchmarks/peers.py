"""One batch by another library, from embeddings in a file; prints seconds, memory and ids as JSON.

    PEERS/bin/python benchmarks/peers.py NAME PROBLEM.npz [--repeats 3]

NAME is one of `PEERS`. The file holds `x` (n, d) candidates, `known` (L, d) labelled samples with `labels` (L,),
`weights` (C, d) and `biases` (C,) of a logistic regression fitted on them, and `b`. The environment is that of
requirements-peers.txt; `ally` is not part of it. OMP_NUM_THREADS sets the number of threads. The functions that measure
time and memory serve selection.py too. Linux only.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

LONG = 15.0
"""Seconds after which a measurement is not repeated."""

Problem = dict[str, Any]
Pick = Callable[[], Any]


def resident(pid: int | str = "self") -> tuple[int, int]:
    """Bytes of a process in memory, and those of them that no file backs."""
    total, shared = (
        int(pages) * resource.getpagesize() for pages in Path(f"/proc/{pid}/statm").read_text().split()[1:3]
    )
    return total, total - shared


def forget_peak() -> None:
    """The system's record of the most memory this process had starts anew."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")


def peak() -> int:
    """The most bytes this process had in memory since `forget_peak`."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split("VmHWM:")[1].split()[0])


def clocked(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds, and what the work gave."""
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def repeated(run: Callable[[], tuple[float, Any]], repeats: int) -> Iterator[tuple[float, Any]]:
    """Seconds and result of every run, up to `repeats` of them; what takes long is not repeated."""
    began = time.perf_counter()
    for done in range(repeats):
        if not done or time.perf_counter() - began < LONG:
            yield run()


def scikit_activeml_badge(problem: Problem) -> Pick:
    """`Badge` with a fitted classifier; the embeddings are its inputs, as they are for a linear classifier."""
    from skactiveml.classifier import SklearnClassifier  # type: ignore[import-not-found]
    from skactiveml.pool import Badge  # type: ignore[import-not-found]
    from sklearn.linear_model import LogisticRegression

    x, y = _with_missing(problem)
    classifier = SklearnClassifier(LogisticRegression(max_iter=5), classes=np.arange(len(problem["biases"])))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # five iterations do not converge: only the fitted object is wanted
        classifier.fit(problem["known"], problem["labels"])
    classifier.estimator_.coef_, classifier.estimator_.intercept_ = problem["weights"], problem["biases"]
    return lambda: Badge(random_state=0).query(x, y, classifier, fit_clf=False, batch_size=int(problem["b"]))


def scikit_activeml_coreset(problem: Problem) -> Pick:
    from skactiveml.pool import CoreSet

    x, y = _with_missing(problem)
    return lambda: CoreSet(random_state=0).query(x, y, batch_size=int(problem["b"]))


def bmdal_lcmd(problem: Problem) -> Pick:
    return _bmdal(problem, "lcmd", with_labelled=True)


def bmdal_kmeanspp(problem: Problem) -> Pick:
    """Without the labelled samples as centres, as `ally` has it."""
    return _bmdal(problem, "kmeanspp", with_labelled=False)


PEERS = {
    "scikit-activeml-badge": scikit_activeml_badge,
    "scikit-activeml-coreset": scikit_activeml_coreset,
    "bmdal-lcmd": bmdal_lcmd,
    "bmdal-kmeanspp": bmdal_kmeanspp,
}


def _with_missing(problem: Problem) -> tuple[Any, Any]:
    """Candidates, then labelled samples; labels are NaN where missing. Positions of candidates are then those of
    `x`."""
    missing = np.full(len(problem["x"]), np.nan)
    return np.concatenate([problem["x"], problem["known"]]), np.concatenate([missing, problem["labels"].astype(float)])


def _bmdal(problem: Problem, method: str, with_labelled: bool) -> Pick:
    """Its own entry point with the embeddings as features of a linear kernel."""
    vars(np)["Inf"] = np.inf  # bmdal_reg is older than NumPy 2, which dropped the name
    import torch
    from bmdal_reg.bmdal.algorithms import select_batch  # type: ignore[import-not-found]
    from bmdal_reg.bmdal.feature_data import TensorFeatureData  # type: ignore[import-not-found]

    def pick() -> Any:
        data = {
            name: TensorFeatureData(torch.from_numpy(problem[key])) for name, key in (("train", "known"), ("pool", "x"))
        }
        ids, _ = select_batch(
            int(problem["b"]),
            [torch.nn.Identity()],
            data,
            None,
            "linear",
            [],
            method,
            sel_with_train=with_labelled,
            verbosity=0,
        )
        return ids.numpy()

    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002, the library draws from the global generator
    return pick


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=PEERS)
    parser.add_argument("problem", type=Path)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    with np.load(arguments.problem) as file:
        problem = dict(file)
    make = PEERS[arguments.name]
    make({**problem, "x": problem["x"][:500], "b": 5})()
    pick = make(problem)
    forget_peak()
    before = resident()[0]
    runs, memory = [], 0
    for seconds, result in repeated(lambda: clocked(pick), arguments.repeats):
        memory = memory or peak() - before
        runs.append((seconds, result))
    ids = [int(row) for row in runs[0][1]]
    print(json.dumps({"seconds": [seconds for seconds, _ in runs], "peak": memory, "ids": ids}))


if __name__ == "__main__":
    main()
