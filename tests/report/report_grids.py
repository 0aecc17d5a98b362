"""Small grids of results, written down by hand or drawn from a seeded generator."""

import numpy as np
import pandas as pd

from ally.report.grid import COLUMNS


def rows(curves, labels=(10, 20, 30, 40), **same):
    """`curves`: {(strategy, seed): values}, or {(strategy, seed, {column: value}): values}."""
    found = []
    for (strategy, seed, *own), values in curves.items():
        for number, value in enumerate(values):
            row = {
                "dataset": "toy",
                "model": "mlp",
                "objective": "erm",
                "setting": "",
                "strategy": strategy,
                "seed": seed,
                "batch": 10,
                "round": number,
                "labels": labels[number],
                "validation_labels": 0,
                "metric": "accuracy",
                "value": value,
                "train_seconds": 1.0,
                "query_seconds": 0.5 if number + 1 < len(values) else 0.0,
                "protocol": "fixed",
                "learner": "",
            }
            found.append({**row, **same, **(own[0] if own else {})})
    return pd.DataFrame(found, columns=list(COLUMNS))


def drawn(metric="accuracy", gain=0.1, noise=0.01, seeds=6, strategies=("ally", "random"), rounds=4, dataset="toy"):
    """Curves that rise from a level per seed; each strategy adds its place times `gain`, the last none."""
    rng = np.random.default_rng(0)
    curves = {}
    for seed in range(seeds):
        level = rng.normal(0.5, 0.05)
        for place, strategy in enumerate(reversed(strategies)):
            steps = np.arange(rounds)
            values = (
                level
                + 0.05 * steps
                + gain * place / max(len(strategies) - 1, 1) * (steps > 0)
                + noise * rng.normal(size=rounds)
            )
            curves[strategy, seed] = values.tolist()
    ordered = {key: curves[key] for name in strategies for key in curves if key[0] == name}
    return rows(ordered, labels=[10 * (n + 1) for n in range(rounds)], metric=metric, dataset=dataset)
