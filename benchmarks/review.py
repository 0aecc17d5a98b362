"""Are samples whose dual stays high although they are labelled mislabelled? Rankings of labels to review, on labels
flipped on purpose.

    python benchmarks/review.py [--scale full] [--data-dir DATA] [--only DATA ...] [--out benchmarks/results/review.csv]

Of n samples, 5 % get another class, chosen uniformly (regression: the target of another sample, if it differs). A
ranking is as good as the share of flipped ones among the k it puts first, k being how many were flipped; samples of
equal rank count as if in random order.

    dual        λ after the last epoch of constrained training, ALLY's objective
    dual-mean   λ averaged over the epochs of that training
    loss-pdcl   loss of each sample after that training
    loss        loss of each sample after plain training
    loss-mean   loss averaged over the epochs of that training, each read when the sample was trained on
    loss-cv     loss of each sample under plain training on the four fifths it is not in: five trainings
    random      no training

MLP 2×256 (or another model) on standardised inputs and the trainer's defaults; constrained and plain training start
from equal weights and shuffle alike. Samples are drawn at random, or asked for by ALLY, a fifth at random and then a
tenth at a time, with the wrong answers told. Without DATA only what ships with scikit-learn is run. `--scale smoke`
takes seconds and writes no file unless told to. What is in the file is not run again.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from sklearn.metrics import average_precision_score
from sklearn.model_selection import KFold, StratifiedKFold

from ally import Loop
from ally.data import as_source, fit_scaler
from ally.data.catalogue import Dataset
from ally.data.catalogue import load as load_data
from ally.learning.fitted_network import FittedNetwork, evaluate
from ally.learning.learner import Examples
from ally.learning.losses import PRIMARY
from ally.learning.network import Network
from ally.learning.objectives import ERM, PDCL, Objective, Problem, Session
from ally.learning.training import Training
from ally.models import model_builder
from ally.rng import Streams
from ally.strategies import DUALS
from ally.types import AnyArray, FloatArray, IntArray, Progress, Task

FLIPPED = 0.05
FOLDS = 5
METHODS = ("dual", "dual-mean", "loss-pdcl", "loss", "loss-mean", "loss-cv", "random")
KEY = ["data", "n", "epochs", "chosen", "model"]
SHIPPED = ("digits", "breast-cancer")
RESULTS = Path(__file__).parent / "results" / "review.csv"

Ranking = tuple[FloatArray, float]
"""What samples are ranked by, (n,), the most suspect highest; and the seconds it took."""


@dataclass(frozen=True)
class Case:
    """n samples of a data set, chosen anew for every seed, and what is trained on them for how long."""

    data: str
    n: int
    epochs: int = Training().epochs
    chosen: Literal["random", "ally"] = "random"
    model: str = "mlp"
    seeds: int = 5

    @property
    def key(self) -> tuple[Any, ...]:
        """Its values in the columns `KEY`."""
        return tuple(getattr(self, name) for name in KEY)


FULL = (
    Case("digits", 1438),
    Case("digits", 1438, epochs=20),
    Case("digits", 1438, epochs=80),
    Case("digits", 300),
    Case("breast-cancer", 456),
    Case("mnist", 500),
    Case("mnist", 2000),
    Case("trec", 2000),
    Case("concrete", 824),
    Case("wine-quality-red", 1279),
    Case("ptd-total", 2000),
    Case("mnist", 5000, seeds=3),
    Case("digits", 300, chosen="ally"),
    Case("mnist", 500, chosen="ally"),
    Case("mnist", 500, model="resnet18-slim", seeds=2),
)
SMOKE = (Case("digits", 200, epochs=5, seeds=1), Case("breast-cancer", 200, epochs=5, seeds=1))


@dataclass(frozen=True, eq=False)
class Labelled:
    """Standardised inputs, labels of which some are wrong, and which (n,) those are."""

    task: Task
    classes: tuple[Any, ...] | None
    x: AnyArray
    y: FloatArray
    flipped: AnyArray


@dataclass(frozen=True)
class Watched:
    """An objective whose duals are noted at the end of every epoch, when `note` is the trainer's progress."""

    objective: Objective
    sessions: list[Session] = field(default_factory=list, compare=False)
    duals: list[torch.Tensor] = field(default_factory=list, compare=False)

    def start(self, problem: Problem) -> Session:
        self.sessions.append(self.objective.start(problem))
        return self.sessions[-1]

    def note(self, stage: str, done: int, total: int) -> None:
        self.duals.append(self.sessions[-1].duals()["labelled"])


def flip(y: FloatArray, classes: int | None, rng: np.random.Generator) -> tuple[FloatArray, AnyArray]:
    """Labels of which a share is wrong, and which (n,) are: another class, uniformly, or without classes another
    sample's target."""
    chosen = rng.choice(len(y), size=max(1, round(FLIPPED * len(y))), replace=False)
    labels = y.copy()
    if classes is not None:
        labels[chosen] = (y[chosen] + rng.integers(1, classes, size=len(chosen))) % classes
    else:
        labels[chosen] = [rng.choice(y[y != target]) for target in y[chosen]]
    flipped = np.zeros(len(y), dtype=bool)
    flipped[chosen] = True
    return labels, flipped


def ask(data: Dataset, labels: FloatArray, n: int, streams: Streams) -> IntArray:
    """Rows that ALLY asks for, the answers being `labels` of the whole pool: class numbers, or targets."""
    start = streams.numpy("samples").permutation(len(labels))[: n // 5]
    known = np.full(len(labels), np.nan)
    known[start] = labels[start]
    classes = None if data.task == "regression" else np.unique(labels).tolist()
    loop = Loop(
        data.pool,
        known,
        model="mlp",
        task=data.task,
        classes=classes,
        random_state=streams.seed("asking"),
        device="cpu",
    )
    while len(loop.labelled) < n:
        query = loop.ask(min(n // 10, n - len(loop.labelled)))
        loop.tell(query.id, {row: labels[row] for row in query.ids.tolist()})
    return np.asarray(np.sort(loop.labelled))


def draw(data: Dataset, case: Case, streams: Streams) -> Labelled:
    """Samples of the pool, some of them with flipped labels."""
    size = len(data.pool_labels)
    if size < case.n:
        raise SystemExit(f"{data.name} has {size} samples and {case} wants more; lower n")
    classes, labels = None, np.asarray(data.pool_labels)
    if data.task == "classification":
        classes, labels = np.unique(labels, return_inverse=True)
    truth = labels.astype(np.float64)
    many = None if classes is None else len(classes)
    if case.chosen == "ally":
        wrong, everywhere = flip(truth, many, streams.numpy("flips"))
        rows = ask(data, wrong, case.n, streams)
        given, flipped = wrong[rows], everywhere[rows]
    else:
        rows = np.sort(streams.numpy("samples").permutation(size)[: case.n])
        given, flipped = flip(truth[rows], many, streams.numpy("flips"))
    source = as_source(data.pool)
    x = fit_scaler(source, rows).of(source).read(rows)
    return Labelled(data.task, None if classes is None else tuple(classes.tolist()), x, given, flipped)


def train(
    some: Labelled, rows: Any, objective: Objective, case: Case, streams: Streams, progress: Progress | None = None
) -> FittedNetwork:
    build = model_builder(case.model, some.x.shape[1:])
    learner = Network(build, Training(epochs=case.epochs, device="cpu"))
    return learner.fit(Examples.of(some.x[rows], some.y[rows], some.classes), objective, streams, progress=progress)


def losses(fit: FittedNetwork, some: Labelled, rows: Any) -> FloatArray:
    """Loss of each of `rows` under its given label, (len(rows),), in nats or in squared units of the target."""
    outputs = evaluate(fit.model, torch.from_numpy(some.x[rows])).double()
    targets = torch.as_tensor(some.y[rows])
    if some.task == "regression":
        return np.asarray(PRIMARY[some.task](fit.scale.invert(outputs), targets))
    return np.asarray(PRIMARY[some.task](outputs, targets.long()))


def constrained_rankings(some: Labelled, case: Case, streams: Streams) -> dict[str, Ranking]:
    """dual, dual-mean and loss-pdcl, from one training."""
    watched, started = Watched(DUALS), time.perf_counter()
    everyone = np.arange(len(some.y))
    fit = train(some, everyone, watched, case, streams, watched.note)
    mean = torch.stack(watched.duals).mean(0)
    found = {"dual": fit.duals["labelled"].numpy(), "dual-mean": mean.numpy(), "loss-pdcl": losses(fit, some, everyone)}
    seconds = time.perf_counter() - started
    return {method: (scores, seconds) for method, scores in found.items()}


def plain_rankings(some: Labelled, case: Case, streams: Streams) -> dict[str, Ranking]:
    """loss and loss-mean, from one training. Duals without weight, at ε = 0, add up the loss of every epoch."""
    started = time.perf_counter()
    everyone = np.arange(len(some.y))
    fit = train(some, everyone, PDCL(eps=0.0, dual_lr=1 / case.epochs, dual_decay=0.0, weighted=False), case, streams)
    found = {"loss": losses(fit, some, everyone), "loss-mean": fit.duals["labelled"].numpy()}
    seconds = time.perf_counter() - started
    return {method: (scores, seconds) for method, scores in found.items()}


def held_out_ranking(some: Labelled, case: Case, streams: Streams) -> Ranking:
    """loss-cv: folds keep the shares of the given classes."""
    started = time.perf_counter()
    kind = KFold if some.classes is None else StratifiedKFold
    folds = kind(FOLDS, shuffle=True, random_state=streams.seed("folds") % 2**32)
    scores = np.empty(len(some.y))
    for number, (rows, others) in enumerate(folds.split(some.y, some.y)):
        fit = train(some, rows, ERM(), case, streams.child(f"fold {number}"))
        scores[others] = losses(fit, some, others)
    return scores, time.perf_counter() - started


def precision(scores: FloatArray, flipped: AnyArray) -> float:
    """Share of flipped samples among the k highest scores, k flipped in all; those that tie at the border count by
    their share."""
    k = int(flipped.sum())
    border = np.sort(scores)[-k]
    above, level = scores > border, scores == border
    return float((flipped[above].sum() + (k - above.sum()) * flipped[level].mean()) / k)


def run(case: Case, seed: int, data: Dataset) -> Iterator[dict[str, Any]]:
    """One row per ranking."""
    streams = Streams(seed).child("review", case.data)
    some = draw(data, case, streams)
    training = streams.child("training")
    rankings = {
        **constrained_rankings(some, case, training),
        **plain_rankings(some, case, training),
        "loss-cv": held_out_ranking(some, case, training),
        "random": (streams.numpy("random").random(case.n), 0.0),
    }
    for method in METHODS:
        scores, seconds = rankings[method]
        yield {
            **dict(zip(KEY, case.key, strict=True)),
            "method": method,
            "seed": seed,
            "precision": round(precision(scores, some.flipped), 4),
            "average_precision": round(float(average_precision_score(some.flipped, scores)), 4),
            "seconds": round(seconds, 2),
        }


def table(results: pd.DataFrame, column: str) -> str:
    """Mean ± standard deviation over seeds: a line per case, a column per ranking, in Markdown."""
    lines = [f"| {' | '.join([*KEY, *METHODS])} |", f"|{'---|' * (len(KEY) + len(METHODS))}"]
    for case, part in results.groupby(KEY, sort=False):
        values = [part.loc[part["method"] == method, column] for method in METHODS]
        cells = [
            f"{value.mean():.2f} ± {value.std():.2f}" if len(value) > 1 else f"{value.mean():.2f}" for value in values
        ]
        lines.append(f"| {' | '.join([*map(str, case), *cells])} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", choices=["smoke", "full"], default="smoke")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--only", nargs="*", help="names of data sets")
    parser.add_argument(
        "--out", type=Path, help="default: benchmarks/results/review.csv for the full scale, no file for smoke"
    )
    arguments = parser.parse_args()
    torch.set_num_threads(1)

    full = arguments.scale == "full"
    out: Path | None = arguments.out or (RESULTS if full else None)
    load = lru_cache(maxsize=1)(lambda name: load_data(name, arguments.data_dir))
    rows: list[Any] = pd.read_csv(out).to_dict("records") if out is not None and out.exists() else []
    list(
        run(Case("breast-cancer", 50, epochs=1), 0, load("breast-cancer"))
    )  # torch's first step is slow and would be timed
    for case in FULL if full else SMOKE:
        if arguments.only and case.data not in arguments.only:
            continue
        if arguments.data_dir is None and case.data not in SHIPPED:
            print(f"no --data-dir: {case.data} is left out")
            continue
        done = {row["seed"] for row in rows if tuple(row[name] for name in KEY) == case.key}
        for seed in sorted(set(range(case.seeds)) - done):
            fresh = list(run(case, seed, load(case.data)))
            rows += fresh
            print(f"{case} seed {seed}:", *(f"{row['method']} {row['precision']:.2f}" for row in fresh), flush=True)
            if out is not None:
                out.parent.mkdir(parents=True, exist_ok=True)
                pd.DataFrame(rows).to_csv(out, index=False)
    for column in ("precision", "average_precision", "seconds"):
        print(f"\n{column}\n{table(pd.DataFrame(rows), column)}")


if __name__ == "__main__":
    main()
