"""Draws docs/images/duals.png: what a dual says about the optimum, checked by moving each constraint.

    python docs/build_duals.py

Wine (178 samples, 3 classes), logistic regression with C = 2, ε = .05. For each sample ε is raised and lowered by 1e-4
and the problem is solved again; the change of the optimum per unit is drawn against −λ/n. The
largest difference is printed.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.datasets import load_wine

from ally.constrained.convex import Constraints, Design, cross_entropy, solve
from ally.drawing import use_own_style

IMAGE = Path(__file__).parent / "images" / "duals.png"
C, EPS, STEP = 2.0, 0.05, 1e-4


def main() -> None:
    X, y = load_wine(return_X_y=True)
    n = len(X)
    rows = Design((X - X.mean(0)) / X.std(0)).rows

    def solve_at(eps: np.ndarray) -> tuple[float, np.ndarray]:
        """The optimum (risk and penalty) and λ."""
        found = solve(rows, y, cross_entropy, 3, 1 / (C * n), Constraints(eps), tolerance=1e-10)
        return float(found.losses.mean() + np.square(found.weights).sum() / (2 * C * n)), found.duals

    level = np.full(n, EPS)
    _, duals = solve_at(level)
    steps = STEP * np.eye(n)
    slopes = np.asarray([(solve_at(level + step)[0] - solve_at(level - step)[0]) / (2 * STEP) for step in steps])
    print(f"largest difference {np.abs(slopes + duals / n).max():.1e}, largest slope {np.abs(slopes).max():.2g}")
    with use_own_style():
        draw(-duals / n, slopes, f"{(duals > 0).sum()} of {n} constraints cost something")


def draw(expected: np.ndarray, slopes: np.ndarray, title: str) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 4.2), layout="constrained")
    axes = figure.subplots()
    ends = [float(slopes.min()), 0.0]
    axes.plot(ends, ends, color="0.75", linewidth=1, zorder=0)
    axes.scatter(expected, slopes, s=18, color="#2563eb", alpha=0.7, edgecolor="none")
    axes.set_xlabel("−λ / n, from one solution")
    axes.set_ylabel("change of the optimum per unit of ε,\nfrom solving again with ε ± 0.0001")
    axes.set_title(title, loc="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(IMAGE, dpi=110)


if __name__ == "__main__":
    main()
