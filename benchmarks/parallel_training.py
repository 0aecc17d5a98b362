"""PDCL shared by two processes beside one: the largest difference of a weight or dual, and the time of an epoch.

    OMP_NUM_THREADS=1 python benchmarks/parallel_training.py [--out benchmarks/results/parallel_training.json]

Both train on the same batches for the same number of steps, with one thread per process, in single and in double
precision (duals are always single).
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from ally.learning.fitted_network import FittedNetwork
from ally.learning.learner import Examples
from ally.learning.network import Network
from ally.learning.objectives import PDCL
from ally.learning.objectives.regularizers import HalfSquaredNorm
from ally.learning.parallel import shared_by
from ally.learning.training import Training
from ally.models import MLP, Split
from ally.rng import streams

CLASSES, EPOCHS = 10, 6
NETWORKS = ("linear", "mlp", "mlp in double precision")


def samples(n: int, features: int) -> Examples:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, features), np.float32)
    scores = x @ rng.standard_normal((features, CLASSES), np.float32) / features**0.5
    labels = (scores + rng.standard_normal((n, CLASSES), np.float32)).argmax(1)
    return Examples.of(x, labels, range(CLASSES))


def network(name: str, shape: tuple[int, ...], outputs: int) -> nn.Module:
    """Linear, which makes the problem convex; or an MLP, without dropout."""
    if name == "linear":
        return Split(nn.Flatten(), nn.Linear(shape[0], outputs))
    built = MLP(shape, outputs, hidden=(512, 512), dropout=0.0)
    return built.double() if name.endswith("double precision") else built


def fits(processes: int, n: int, features: int, batch: int) -> list[tuple[dict[str, torch.Tensor], float]]:
    """By network: weights and duals after `EPOCHS`, and the seconds of an epoch."""
    torch.set_num_threads(1)
    data, found = samples(n, features), []
    objective = PDCL(eps=0.3, dual_lr=0.2, regularizer=HalfSquaredNorm(1e-3))
    for name in NETWORKS:
        training = Training(lr=1e-3, epochs=EPOCHS, batch_size=batch, device="cpu", processes=processes)

        def fit(chosen: Training, name: str = name) -> FittedNetwork:
            return Network(partial(network, name), chosen).fit(data, objective, streams(0))

        _, short, long = (fit(replace(training, epochs=epochs)) for epochs in (1, 1, EPOCHS))
        state = {**long.model.state_dict(), **{f"duals {key}": value for key, value in long.duals.items()}}
        found.append((state, (long.report.seconds - short.report.seconds) / (EPOCHS - 1)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--features", type=int, default=128)
    parser.add_argument("--batches", type=int, nargs="+", default=[64, 512, 2048])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    results: list[dict[str, Any]] = []
    for batch in options.batches:
        one = fits(1, options.samples, options.features, batch)
        two = shared_by(2, partial(fits, 2, options.samples, options.features, batch))
        for name, (state, alone), (other, shared) in zip(NETWORKS, one, two, strict=True):
            apart = {key: float((state[key].double() - other[key].double()).abs().max()) for key in state}
            duals = apart.pop("duals labelled")
            results.append(
                {
                    "network": name,
                    "samples": options.samples,
                    "batch": batch,
                    "steps": EPOCHS * -(-options.samples // batch),
                    "positive_duals": float((state["duals labelled"] > 0).float().mean()),
                    "largest_dual": float(state["duals labelled"].max()),
                    "weights_differ_by": max(apart.values()),
                    "duals_differ_by": duals,
                    "epoch_seconds": [alone, shared],
                }
            )
            print(json.dumps(results[-1]), flush=True)
    if options.out:
        options.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
