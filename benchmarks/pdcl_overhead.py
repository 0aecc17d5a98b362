"""What the constraints cost: seconds of a PDCL epoch over seconds of a plain epoch, by the same trainer in one run.

    python benchmarks/pdcl_overhead.py [--repeats 15] [--limit 1.10]

Plain and constrained fits alternate, so that a change of the machine's speed hits both; the figure is the median of the
paired ratios. Exits with 1 if a ratio is above the limit.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time

import numpy as np
import torch

from ally.learning.learner import Examples
from ally.learning.network import Network
from ally.learning.objectives import ERM, PDCL, Objective
from ally.learning.training import Training
from ally.models import MODELS
from ally.rng import Streams

CASES = {
    "mlp 784-256-256-10, n=2000": ("mlp", (1, 28, 28), 2000, 8),
    "resnet18-slim 3x32x32, n=256": ("resnet18-slim", (3, 32, 32), 256, 1),
}


def seconds(learner: Network, examples: Examples, objective: Objective) -> float:
    began = time.perf_counter()
    learner.fit(examples, objective, Streams(0))
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--limit", type=float, default=1.10)
    arguments = parser.parse_args()
    worst = 0.0
    for name, (model, shape, n, epochs) in CASES.items():
        rng = np.random.default_rng(0)
        x, y = rng.normal(size=(n, *shape)).astype(np.float32), rng.integers(0, 10, size=n).astype(float)
        examples = Examples.of(x, y, range(10))
        learner = Network(MODELS[model], Training(epochs=epochs, batch_size=64, device="cpu"))
        ratios = []
        for repeat in range(arguments.repeats + 1):
            plain = seconds(learner, examples, ERM())
            constrained = seconds(learner, examples, PDCL())
            if repeat:
                ratios.append(constrained / plain)
        ratio = statistics.median(ratios)
        worst = max(worst, ratio)
        spread = f"{min(ratios):.3f} … {max(ratios):.3f}"
        print(
            f"{name:32s} {ratio:.3f} (of {len(ratios)} pairs {spread}; {1000 * plain / epochs:.0f} ms a plain epoch)",
            flush=True,
        )
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads; limit {arguments.limit}")
    sys.exit(worst > arguments.limit)


if __name__ == "__main__":
    main()
