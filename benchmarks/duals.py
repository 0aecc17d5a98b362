"""What duals are good for beyond queries: finding wrong labels, and finding samples that can be left out.

    python benchmarks/duals.py [--data-dir DATA] [--text-encoder FOLDER] [--runs FOLDER] [--only NAME ...]
    python benchmarks/duals.py --page    # the tables and the figure of docs/duals.md; runs nothing

Needs cleanlab 2.9 beside ally. Writes `results/duals_labels.csv` and `results/duals_pruning.csv`; what is there is not
run again.

*Wrong labels.* 5 or 10 % of 800 labels get another class, chosen uniformly. A ranking is measured by the share of wrong
labels among its first 20 and by its average precision. Equal ranks count as in random order.

    dual             λ of `ally.dual_report`, ε of the paper, no bound: exact for the linear model
    dual, bounded    the same with ε = .01 and λ at most 10, as `ally-clusters` trains
    …, ties by slack equal λ by the slack, as the report ranks
    loss             of a plain training, on the labels themselves
    loss, mean over epochs   of a plain training, read when the label was trained on; the MLP only
    loss, held out   of five plain trainings, each on four fifths
    cleanlab         label quality (self-confidence) from the same five trainings
    cleanlab, normalised margin

*Pruning.* From 800 clean labels 10 … 50 % are left out: those of the lowest λ, of the lowest loss, or at random. A
plain training on the rest is measured on the test set.

The models are logistic regression (its penalty chosen by cross-validation) and the MLP of `ally`, five seeds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import average_precision_score
from sklearn.model_selection import StratifiedKFold

from ally import Loop, dual_report
from ally.learning.objectives import PDCL
from ally.learning.training import Training
from duals_page import write_page
from label_efficiency import encoded, named

RESULTS = Path(__file__).parent / "results"
N, SEEDS, FOLDS, FIRST = 800, 5, 5, 20
SETS = ("digits", "breast-cancer", "mnist", "trec, encoded", "sst2, encoded", "cifar10, encoded")
MODELS = ("linear", "mlp")
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5)
BOUNDED = {"eps": 0.01, "dual_cap": 10.0}


def open_sets(asked: argparse.Namespace) -> Callable[[str], Any]:
    @lru_cache(maxsize=1)
    def open_set(name: str) -> Any:
        data, _, kind = name.partition(", ")
        reader = encoded if kind else named
        return reader(data, asked.data_dir, asked.runs, asked.text_encoder)

    return open_set


def draw_samples(trial: Any, seed: int) -> tuple[Any, Any]:
    rows = np.sort(np.random.default_rng(seed).permutation(len(trial.pool_labels))[:N])
    return np.asarray(trial.pool)[rows].reshape(len(rows), -1), np.asarray(trial.pool_labels)[rows]


def flip_labels(labels: Any, share: float, seed: int) -> tuple[Any, Any]:
    """The labels with a share of them changed, and which."""
    rng, classes = np.random.default_rng([seed, round(100 * share)]), np.unique(labels)
    wrong = np.zeros(len(labels), bool)
    wrong[rng.permutation(len(labels))[: round(share * len(labels))]] = True
    changed = labels.copy()
    for row in np.flatnonzero(wrong):
        changed[row] = rng.choice(classes[classes != labels[row]])
    return changed, wrong


def predict_plainly(model: str, X: Any, y: Any, others: Any, seed: int) -> Any:
    """Probabilities of other samples, in the order of the classes of y."""
    loop = Loop(X, y, model=model, strategy="random", objective="erm", task="classification", random_state=seed)
    return loop.predict_proba(others)


def read_losses(probabilities: Any, labels: Any) -> Any:
    numbers = np.unique(labels, return_inverse=True)[1]
    return -np.log(np.clip(probabilities[np.arange(len(labels)), numbers], 1e-12, None))


def hold_out(model: str, X: Any, y: Any, seed: int) -> Any:
    """(n, C) from trainings on the other folds; a class that a training has not seen has the probability 0."""
    classes = np.unique(y)
    found = np.zeros((len(y), len(classes)))
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(X, y):
        seen = np.searchsorted(classes, np.unique(y[train]))
        found[np.ix_(test, seen)] = predict_plainly(model, X[train], y[train], X[test], seed)
    return found


def rank_labels(model: str, X: Any, y: Any, seed: int) -> Iterator[tuple[str, Any]]:
    from cleanlab.rank import get_label_quality_scores

    settings = {"task": "classification", "random_state": seed}
    for name, how in (("dual", {}), ("dual, bounded", BOUNDED)):
        report = dual_report(model, X, y, **how, **settings)
        yield name, report.duals
        order = np.empty(len(y))
        order[report.ranking] = np.arange(len(y), 0, -1)
        yield f"{name}, ties by slack", order
    yield "loss", read_losses(predict_plainly(model, X, y, X, seed), y)
    if model == "mlp":
        # Duals that add up the loss of each epoch and weigh nothing.
        adding = PDCL(eps=0.0, dual_lr=1 / Training().epochs, dual_decay=0.0, weighted=False)
        yield "loss, mean over epochs", dual_report(model, X, y, objective=adding, **settings).duals
    held_out = hold_out(model, X, y, seed)
    yield "loss, held out", read_losses(held_out, y)
    numbers = np.unique(y, return_inverse=True)[1]
    held_out = np.clip(held_out, 1e-12, None)
    held_out /= held_out.sum(1, keepdims=True)
    for method, name in (("self_confidence", "cleanlab"), ("normalized_margin", "cleanlab, normalised margin")):
        yield name, -get_label_quality_scores(numbers, held_out, method=method)


def measure_first(scores: Any, wrong: Any) -> float:
    """The share of wrong ones among the first; equal scores count as in random order."""
    edge = np.sort(scores)[::-1][FIRST - 1]
    surely, tied = scores > edge, scores == edge
    return float((wrong[surely].sum() + wrong[tied].mean() * (FIRST - surely.sum())) / FIRST)


def find_labels(name: str, open_set: Callable[[str], Any], seed: int) -> Iterator[dict[str, Any]]:
    X, truth = draw_samples(open_set(name), seed)
    for share in (0.05, 0.1):
        y, wrong = flip_labels(truth, share, seed)
        for model in MODELS:
            for ranking, scores in rank_labels(model, X, y, seed):
                yield {
                    "data": name, "seed": seed, "share": share, "model": model, "ranking": ranking,
                    "precision": round(measure_first(scores, wrong), 4),
                    "average_precision": round(float(average_precision_score(wrong, scores)), 4),
                }  # fmt: skip


def prune(name: str, open_set: Callable[[str], Any], seed: int) -> Iterator[dict[str, Any]]:
    trial = open_set(name)
    X, y = draw_samples(trial, seed)
    test, truth = np.asarray(trial.test).reshape(len(trial.test_labels), -1), np.asarray(trial.test_labels)
    classes = np.unique(y)
    for model in MODELS:
        losses = read_losses(predict_plainly(model, X, y, X, seed), y)
        keys = {
            "dual": dual_report(model, X, y, task="classification", random_state=seed).duals,
            "dual, bounded": dual_report(model, X, y, task="classification", random_state=seed, **BOUNDED).duals,
            "loss": losses,
            "random": np.random.default_rng([seed, 1]).random(len(y)),
        }
        for ranking, scores in keys.items():
            # Equal duals, such as 0, are broken by the loss: the sample fitted best goes first.
            order = np.lexsort((losses, scores))
            for share in (0.0, *SHARES):
                kept = np.sort(order[round(share * len(y)) :])
                seen = np.unique(y[kept])
                predicted = seen[predict_plainly(model, X[kept], y[kept], test, seed).argmax(1)]
                yield {
                    "data": name, "seed": seed, "model": model, "ranking": ranking, "left_out": share,
                    "classes": len(seen) == len(classes), "accuracy": round(float((predicted == truth).mean()), 4),
                }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--text-encoder", help="a folder with a text encoder")
    parser.add_argument("--runs", type=Path, default=Path("runs/duals"), help="where vectors are kept")
    parser.add_argument("--only", nargs="*", default=SETS)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--page", action="store_true", help="write the page from what was run")
    asked = parser.parse_args()
    labels, pruning = RESULTS / "duals_labels.csv", RESULTS / "duals_pruning.csv"
    if asked.page:
        write_page(pd.read_csv(labels), pd.read_csv(pruning))
        return
    open_set = open_sets(asked)
    for study, path in ((find_labels, labels), (prune, pruning)):
        done = pd.read_csv(path) if path.exists() else pd.DataFrame({"data": [], "seed": []})
        for name in asked.only:
            for seed in range(asked.seeds):
                if ((done["data"] == name) & (done["seed"] == seed)).any():
                    continue
                rows = pd.DataFrame(study(name, open_set, seed))
                done = pd.concat([done, rows], ignore_index=True).astype({"seed": int})
                done.to_csv(path, index=False)
                print(path.stem, name, seed, flush=True)


if __name__ == "__main__":
    main()
