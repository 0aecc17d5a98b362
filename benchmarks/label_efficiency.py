"""How many labels `ally` saves: the development suite, its comparators, the ablation, and the page about them.

    python benchmarks/label_efficiency.py [--scale small|full] [--data-dir DATA] [--text-encoder FOLDER]
        [--suite development|report|auto|ablation] [--sets NAME ...] [--strategy NAME ...] [--seeds K] [--workers 1]
        [--runs FOLDER] [--results FOLDER]
    python benchmarks/label_efficiency.py --page    # docs/label-efficiency.md's tables and figures; runs nothing

Every set has one learner, the same for all strategies, a pool of at most 5000 samples, and eight rounds. A killed run
goes on where it was: rounds are kept in --runs, finished campaigns in label_efficiency.csv in --results (by default the
results that come with the sources, in which all are finished: give another folder to measure anew). Seeds go first: an
interrupted run has compared all strategies on whole seeds. Vectors of encoders are made once and kept in --runs.

--suite report: sets that guided no choice, run once. --suite auto: `ally` and random with ``model="auto"``, as a user
has them (chosen again as labels grow), and random with every learner that `auto` tries. --suite ablation changes one
part of `ally` at a time. Each has its own label_efficiency_SUITE.csv.

The synthetic sets are made here, the same ones every time: copies (each digit five times, with a little noise), rare
(one class of three is 3 % of the pool), flipped (one label in ten of digits is wrong, the test labels are right), heavy
(columns with heavy tails, a target that is mostly noise, and more of it at the edges), outliers (one image in ten is a
cluster of noise with random digits as labels; the test set is clean).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits

from ally.constrained import AbsoluteError
from ally.data.catalogue import load as load_set
from ally.experiment import Cell, Copies, Trial, run_grid
from ally.experiment.encoded import encoded_trial
from ally.features import Inputs
from ally.files import write_whole
from ally.learning.auto import AutoLearner
from ally.learning.linear import LinearLearner
from ally.learning.objectives import PDCL
from ally.learning.training import Training
from ally.learning.words import OfWords
from ally.rng import streams
from ally.scoring import Constant, ConstraintDual, DualByTask, Margin, PredictedDual
from ally.selection import ByTask, Herding, Influence, Top
from ally.strategies import ALLY, Strategy
from label_efficiency_page import labels_to_target, write_page

HERE = Path(__file__).parent
SUITES = ("development", "report", "auto", "ablation")
FILES = {name: f"label_efficiency{'' if name == 'development' else f'_{name}'}.csv" for name in SUITES}
MOST = 5000
KEY = ["dataset", "model", "objective", "setting", "strategy", "seed", "batch", "protocol"]
CLASSES = ("random", "margin", "badge", "uherding", "ally-paper", "ally")
NUMBERS = ("random", "lcmd", "coreset", "maxherding", "ally-paper", "ally")
DUALS = PDCL(eps=0.01)
PARTS: dict[str, Strategy] = {
    "ally": ALLY,
    "no weights": replace(ALLY, score=Constant()),
    "no geometry": replace(ALLY, select=Top()),
    "Herding everywhere": replace(ALLY, select=Herding(weighted=True, features=Inputs())),
    "Influence everywhere": replace(ALLY, select=Influence(features=Inputs())),
    "embedding of the network": replace(ALLY, select=ByTask(Herding(weighted=True), Influence())),
    "trained under constraints": replace(ALLY, objective=DUALS),
    "weights are predicted duals": replace(ALLY, score=PredictedDual(), objective=DUALS),
}
"""`ally` with one part changed."""
ONLY_CLASSES = {"calibrated margin": replace(ALLY, score=Margin(calibrated=True))}
ONLY_NUMBERS = {
    "spread as it is": replace(ALLY, score=DualByTask(numbers=ConstraintDual(AbsoluteError(), slope=1e-9))),
    "columns count the same": replace(ALLY, select=Influence(relevance=0.0, features=Inputs())),
}


@dataclass(frozen=True)
class Set:
    """One data set with its learner, and how many labels there are at the start and in a batch."""

    make: Callable[[Path | None, Path, str | None], Trial]
    model: str
    init: int = 20
    batch: int = 20
    rounds: int = 8
    slate: tuple[Any, ...] = ()
    """Learners that `auto` tries on such samples, for the suite `auto`."""


def named(name: str, data_dir: Path | None, runs: Path, encoder: str | None) -> Trial:
    return capped(Trial.of(load_set(name, data_dir)))


def encoded(name: str, data_dir: Path | None, runs: Path, encoder: str | None) -> Trial:
    """At most 5000 samples as vectors of the encoder, with the words of texts; photos go through the one that is
    installed."""
    data = load_set(name, data_dir)
    rows, tests = drawn(len(data.pool_labels), MOST), drawn(len(data.test_labels), 2000)
    raw = None if data.raw is None else ([data.raw[0][k] for k in rows], [data.raw[1][k] for k in tests])
    pool, test = data.pool[rows], data.test[tests]
    part = replace(
        data, pool=pool, pool_labels=data.pool_labels[rows], test=test, test_labels=data.test_labels[tests], raw=raw
    )
    model = encoder if data.kind == "text" else "efficientnet-lite0"
    if model is None:
        raise SystemExit(f"{name}, encoded: give the folder of a text encoder (--text-encoder)")
    return encoded_trial(part, model, runs / "vectors")


def drawn(size: int, most: int) -> Any:
    return np.sort(np.random.default_rng(0).permutation(size)[:most])


def capped(trial: Trial) -> Trial:
    rows, tests = drawn(trial.size, MOST), drawn(len(trial.test_labels), 2000)
    return replace(
        trial,
        pool=trial.pool[rows],
        pool_labels=trial.pool_labels[rows],
        test=trial.test[tests],
        test_labels=trial.test_labels[tests],
    )


def digits(rng: np.random.Generator) -> tuple[Any, Any, Any, Any]:
    X, y = load_digits(return_X_y=True)
    order = rng.permutation(len(X))
    X, y = X[order].astype(np.float32), y[order]
    return X[:1300], y[:1300], X[1300:], y[1300:]


def copies(*_: Any) -> Trial:
    pool, labels, test, truth = digits(np.random.default_rng(1))
    plain = Trial("copies", "classification", pool, labels, test, truth)
    return Copies(5, noise=0.05, of=800)(plain, streams(1))


def rare(*_: Any) -> Trial:
    """Three Gaussian classes in ten dimensions; two are common."""
    rng = np.random.default_rng(2)
    y = rng.choice(3, size=4000, p=[0.60, 0.37, 0.03])
    means = 1.1 * rng.standard_normal((3, 10))
    X = (means[y] + rng.standard_normal((4000, 10))).astype(np.float32)
    # The test set holds the three classes in equal parts: what is measured is whether the rare one was found.
    t = rng.choice(3, size=1500)
    Z = (means[t] + rng.standard_normal((1500, 10))).astype(np.float32)
    return Trial("rare", "classification", X, y, Z, t)


def flipped(*_: Any) -> Trial:
    rng = np.random.default_rng(3)
    pool, labels, test, truth = digits(rng)
    wrong = rng.random(len(labels)) < 0.1
    labels = np.where(wrong, (labels + rng.integers(1, 10, len(labels))) % 10, labels)
    return Trial("flipped", "classification", pool, labels, test, truth)


def heavy(*_: Any) -> Trial:
    rng = np.random.default_rng(4)
    n = 5000
    tails, skewed, plain = (
        rng.standard_t(1.5, (n, 3)),
        np.exp(1.5 * rng.standard_normal((n, 2))),
        rng.standard_normal((n, 5)),
    )
    near = np.tanh(tails)
    signal = 1.5 * np.sin(1.5 * plain[:, 0]) + np.log(skewed[:, 0]) + near[:, 0] * plain[:, 1]
    noise = 0.5 + 0.8 * np.abs(near[:, 1]) + 0.6 * np.clip(np.abs(tails[:, 2]), 0, 5)
    y = signal + noise * rng.standard_normal(n)
    X = np.column_stack([tails, skewed, plain])
    return Trial("heavy", "regression", X[:3500], y[:3500], X[3500:], y[3500:])


def outliers(*_: Any) -> Trial:
    rng = np.random.default_rng(5)
    pool, labels, test, truth = digits(rng)
    many = len(pool) // 10
    centres = rng.uniform(0, 16, (3, pool.shape[1]))
    noise = np.clip(centres[rng.integers(0, 3, many)] + rng.standard_normal((many, pool.shape[1])), 0, 16)
    X = np.concatenate([pool, noise.astype(np.float32)])
    y = np.concatenate([labels, rng.integers(0, 10, many)])
    order = rng.permutation(len(X))
    return Trial("outliers", "classification", X[order], y[order], test, truth)


SETS: dict[str, Set] = {
    "digits": Set(partial(named, "digits"), "mlp"),
    "concrete": Set(partial(named, "concrete"), "extra-trees"),
    "energy": Set(partial(named, "energy"), "extra-trees", batch=10),
    "wine-quality-red": Set(partial(named, "wine-quality-red"), "extra-trees"),
    "heavy": Set(heavy, "extra-trees"),
    "flipped": Set(flipped, "linear"),
    "trec, encoded": Set(partial(encoded, "trec"), "linear"),
    "power-plant": Set(partial(named, "power-plant"), "extra-trees"),
    "kin8nm": Set(partial(named, "kin8nm"), "mlp", init=50, batch=50),
    "copies": Set(copies, "mlp"),
    "rare": Set(rare, "linear"),
    "outliers": Set(outliers, "mlp"),
    "mnist": Set(partial(named, "mnist"), "mlp", init=50, batch=50),
    "trec": Set(partial(named, "trec"), "linear", init=50, batch=50),
    "sst2, encoded": Set(partial(encoded, "sst2"), "linear"),
    "sst2": Set(partial(named, "sst2"), "linear", init=50, batch=50),
    "cifar10, encoded": Set(partial(encoded, "cifar10"), "linear", init=30, batch=30),
}
TUNED = (
    "digits",
    "concrete",
    "energy",
    "wine-quality-red",
    "heavy",
    "flipped",
    "rare",
    "mnist",
    "trec, encoded",
    "trec",
    "sst2, encoded",
    "cifar10, encoded",
)
"""Sets that guided the choice of the default, or had other rows of theirs (another draw of `heavy` and `flipped`) do
so."""
SMALL = (
    "digits",
    "concrete",
    "energy",
    "wine-quality-red",
    "heavy",
    "flipped",
    "copies",
    "rare",
    "outliers",
    "power-plant",
)
REPORT: dict[str, Set] = {
    "parkinsons": Set(partial(named, "ptd-total"), "extra-trees"),
    "tiny-imagenet, encoded": Set(partial(encoded, "tiny-imagenet-32"), "linear", init=400, batch=200, rounds=4),
    "cifar10": Set(partial(named, "cifar10"), "resnet18-slim", init=200, batch=200, rounds=4),
}
"""Sets that guided no choice. Parkinsons by the random split: by subject nothing is learnt. CIFAR-10 with the paper's
network, on pixels."""


class Words(OfWords):
    """A linear model of the words of texts that an encoder has made into vectors."""

    def __repr__(self) -> str:
        return "words"


TREES = ("linear", "extra-trees", "gradient-boosting", "mlp")
TEXTS = ("linear", Words(LinearLearner()), "mlp")
AUTO: dict[str, Set] = {
    "concrete": replace(SETS["concrete"], slate=TREES),
    "power-plant": replace(SETS["power-plant"], slate=TREES),
    "digits": replace(SETS["digits"], slate=TREES),
    "sst2, encoded": replace(SETS["sst2, encoded"], slate=TEXTS),
    "trec, encoded": replace(SETS["trec, encoded"], slate=TEXTS),
    "cifar10, encoded": replace(SETS["cifar10, encoded"], slate=("linear", "mlp")),
    "flipped": replace(SETS["flipped"], slate=TREES),
    "mnist": replace(SETS["mnist"], slate=("linear", "extra-trees", "mlp")),
}


class AutoWithoutGraph(AutoLearner):
    """``model="auto"`` that learns from the labels alone."""

    def __repr__(self) -> str:
        return "auto without graph"


WITHOUT_GRAPH = AutoWithoutGraph(Training(device="cpu"), without=("graph",))


@cache
def load(data_dir: Path | None, runs: Path, encoder: str | None, name: str) -> Trial:
    return replace({**SETS, **REPORT}[name].make(data_dir, runs, encoder), name=name)


def cells(suite: str, names: list[str], seeds: range, trial: Callable[[str], Trial]) -> Iterator[tuple[str, Cell]]:
    for seed in seeds:
        for name in names:
            one = sets_of(suite)[name]
            for model, line, custom in lines(suite, one, trial(name).task):
                sizes = one.init, one.batch, one.rounds
                yield name, Cell(line, seed, *sizes, model, custom=custom)


def lines(suite: str, one: Set, task: str) -> Iterator[tuple[Any, str, Strategy | None]]:
    """Learner, name and composition (if it is none of the catalogue) of every line of a set."""
    if suite == "ablation":
        more = ONLY_CLASSES if task == "classification" else ONLY_NUMBERS
        yield from ((one.model, line, custom) for line, custom in {**PARTS, **more}.items())
    elif suite == "auto":
        both = ("auto", WITHOUT_GRAPH) if task == "classification" else ("auto",)
        yield from ((model, line, None) for model in both for line in ("ally", "random"))
        yield from ((model, "random", None) for model in one.slate)
    else:
        yield from ((one.model, line, None) for line in (CLASSES if task == "classification" else NUMBERS))


def sets_of(suite: str) -> dict[str, Set]:
    return {"report": REPORT, "auto": AUTO}.get(suite, SETS)


def run(out: Path, found: list[tuple[str, Cell]], trial: Callable[[str], Trial], runs: Path, workers: int) -> None:
    """Seed by seed; what is finished goes to `out`."""
    before = pd.read_csv(out, keep_default_na=False) if out.exists() else None
    done = {} if before is None else {tuple(k): int(v) for k, v in before.groupby(KEY)["round"].max().items()}
    todo = [(name, cell) for name, cell in found if done.get(cell.identity(name), -1) < cell.rounds]
    print(f"{len(todo)} of {len(found)} campaigns to run", flush=True)
    for seed in sorted({cell.seed for _, cell in todo}):
        group = [(name, cell) for name, cell in todo if cell.seed == seed]
        wanted = {cell.identity(name) for name, cell in group}
        table = run_grid(trial, group, runs / out.stem, workers)
        fresh = table[[tuple(row) in wanted for row in table[KEY].itertuples(index=False)]]
        before = fresh if before is None else pd.concat([before, fresh], ignore_index=True)
        write_whole(out, short(before).to_csv(index=False).encode())
        print(f"  seed {seed}", flush=True)


def short(table: pd.DataFrame) -> pd.DataFrame:
    """Six digits of what was measured, as text: the file is kept with the sources."""
    figures = ["value", "train_seconds", "query_seconds", "positive_duals", "rank_quality"]
    written = {name: [f"{float(one):.6g}" if one not in ("", None) else "" for one in table[name]] for name in figures}
    return table.assign(**{name: [one.replace("nan", "") for one in column] for name, column in written.items()})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", choices=["small", "full"], default="small")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--text-encoder")
    parser.add_argument("--suite", choices=SUITES, default="development")
    parser.add_argument("--sets", nargs="*", choices=[*SETS, *REPORT])
    parser.add_argument("--strategy", nargs="*")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--runs", type=Path, default=Path("runs") / "label-efficiency")
    parser.add_argument("--results", type=Path, default=HERE / "results")
    parser.add_argument("--page", action="store_true")
    given = parser.parse_args()
    results = {name: given.results / file for name, file in FILES.items()}
    if given.page:
        write_page(results, TUNED)
        return
    small = given.scale == "small" and given.suite in ("development", "ablation")
    names = given.sets or (list(SMALL) if small else list(sets_of(given.suite)))
    seeds = range(given.seeds or (2 if given.scale == "small" else 10))
    trial = partial(load, given.data_dir, given.runs, given.text_encoder)
    found = list(cells(given.suite, names, seeds, trial))
    found = [one for one in found if given.strategy is None or one[1].strategy in given.strategy]
    given.results.mkdir(parents=True, exist_ok=True)
    run(results[given.suite], found, trial, given.runs, given.workers)
    if given.suite == "development":
        print(labels_to_target(results["development"], TUNED))


if __name__ == "__main__":
    main()
