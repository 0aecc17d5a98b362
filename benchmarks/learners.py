"""Every learner that `auto` tries, `auto` itself, and scikit-learn's own pipelines, on random labels.

    python benchmarks/learners.py --data-dir DATA [--data concrete trec ...] [--text-encoder FOLDER] [--seeds 5]
    python benchmarks/learners.py --tables    # docs/learners.md's tables from benchmarks/results/learners.csv
    python benchmarks/learners.py --time      # how long a query takes on 5000 x 20 with 200 labels

Pools and test sets of at most 5000; labels are the first n of a permutation by the seed, the same for every learner.
The error is the share of wrong labels, or the root mean squared error. Learners are trained on the labels alone (erm)
and see the pool once, for scales. Seed by seed; finished cells of the output file are not run again. Vectors of the
encoders are kept in --cache. --learners runs some learners only.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ally.data import Source, as_source
from ally.data.catalogue import load
from ally.data.catalogue.places import locate
from ally.data.catalogue.text import read_questions, read_reviews
from ally.data.samples import ById
from ally.data.text import WordWeights
from ally.learning.auto import chosen_name
from ally.learning.learner import Examples
from ally.learning.objectives import ERM
from ally.learning.resolve import resolve_learner
from ally.rng import streams

MOST = 5000
SIZES = (25, 50, 100, 200, 400)
TABLES = ("concrete", "energy", "kin8nm", "power-plant", "wine-quality-red", "ptd-total")
IMAGES = ("cifar10", "tiny-imagenet-32")
OUT = Path(__file__).parent / "results" / "learners.csv"
FIELDS = ("data", "features", "learner", "labels", "seed", "metric", "error", "seconds", "chosen")


@dataclass(frozen=True)
class Data:
    """What a learner reads, and what a pipeline of scikit-learn would read instead."""

    pool: Any
    labels: Any
    test: Any
    truth: Any
    classes: tuple[Any, ...] | None
    raw: tuple[Any, Any] | None = None
    vectors: bool = False
    """Whether they come from an encoder, as in a campaign."""
    words: tuple[Any, Any] | None = None
    """The words of pool and test beside vectors of texts."""

    def sources(self) -> tuple[Source, Source]:
        """The pool and the test set."""
        if not self.vectors:
            return as_source(self.pool), as_source(self.test)
        words = (None, None) if self.words is None else tuple(map(as_source, self.words))
        return _vectors(self.pool, words[0]), _vectors(self.test, words[1])


def _vectors(X: Any, words: Source | None) -> Source:
    return ById([*map(str, range(len(X)))], X.shape[1:], lambda ids: X[[*map(int, ids)]], vectors=True, words=words)


@cache
def texts(folder: Path, name: str) -> tuple[list[str], list[Any], list[str], list[Any]]:
    """At most MOST texts of the pool, drawn once, and of the test set."""
    if name == "trec":
        pool, test = (read_questions(locate(folder, f"text/trec/{part}.label")) for part in ("train_5500", "TREC_10"))
    else:
        pool, test = (read_reviews(locate(folder, f"text/sst2/{part}.tsv.gz")) for part in ("train", "test"))
    some = np.sort(np.random.default_rng(0).permutation(len(pool[0]))[:MOST])
    return [pool[0][k] for k in some], [pool[1][k] for k in some], test[0][:MOST], test[1][:MOST]


def text_data(folder: Path, name: str, encode: Callable[[Any], Any] | None) -> Data:
    pool, labels, test, truth = texts(folder, name)
    weights = WordWeights.learn([pool])
    words = weights(pool), weights(test)
    if encode is None:
        return _numbered(words[0], labels, words[1], truth, (pool, test))
    return replace(_numbered(encode(pool), labels, encode(test), truth, (pool, test)), vectors=True, words=words)


def image_data(folder: Path, name: str, encode: Callable[[Any], Any] | None) -> Data:
    data = load(name, folder)
    rng = np.random.default_rng(0)
    some, others = (np.sort(rng.permutation(n)[:most]) for n, most in ((len(data.pool), MOST), (len(data.test), 2000)))
    pool, test = np.asarray(data.pool[some]), np.asarray(data.test[others])
    both = (pool, test) if encode is None else (encode(pool), encode(test))
    labels, truth = np.asarray(data.pool_labels)[some], np.asarray(data.test_labels)[others]
    return replace(_numbered(both[0], labels, both[1], truth, (pool, test)), vectors=encode is not None)


def table_data(folder: Path, name: str) -> Data:
    data = load(name, folder)
    some = np.sort(np.random.default_rng(0).permutation(len(data.pool))[:MOST])
    return Data(data.pool[some], np.asarray(data.pool_labels)[some], data.test[:MOST], data.test_labels[:MOST], None)


def _numbered(pool: Any, labels: Any, test: Any, truth: Any, raw: tuple[Any, Any]) -> Data:
    classes = tuple(sorted(set(np.asarray(labels).tolist())))
    number = {label: place for place, label in enumerate(classes)}
    y, t = (np.array([number[label] for label in np.asarray(part).tolist()]) for part in (labels, truth))
    return Data(pool, y, test, t, tuple(range(len(classes))), raw)


def ours(data: Data, name: str, rows: Any, seed: int) -> tuple[Any, str]:
    """Predictions for the test set, and what was chosen."""
    source, test = data.sources()
    examples = Examples(source, rows, data.labels[rows].astype(float), "regression")
    if data.classes is not None:
        examples = Examples(source, rows, data.labels[rows], "classification", data.classes)
    learner = resolve_learner(name, source.shape).prepared(source, np.arange(len(source)))
    learner = learner.settled(examples, ERM(), streams(seed))
    fitted = learner.fit(examples, ERM(), streams(seed))
    return fitted.predict(test), chosen_name(learner)


def theirs(data: Data, name: str, rows: Any, seed: int) -> tuple[Any, str]:
    """Pipelines of scikit-learn at their defaults."""
    from sklearn.ensemble import ExtraTreesRegressor
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    labels = data.labels[rows]
    if name == "sklearn extra-trees":
        model = ExtraTreesRegressor(random_state=seed).fit(data.pool[rows], labels)
        return model.predict(data.test), ""
    assert data.raw is not None
    pool, test = data.raw
    if isinstance(pool, list):
        words = TfidfVectorizer().fit(pool)
        X, Z = words.transform([pool[k] for k in rows]), words.transform(test)
    else:
        X, Z = pool[rows].reshape(len(rows), -1) / 255, test.reshape(len(test), -1) / 255
    if len(set(labels.tolist())) < 2:
        return np.full(len(test), labels[0]), ""
    return LogisticRegression(max_iter=1000).fit(X, labels).predict(Z), ""


@dataclass(frozen=True)
class Task:
    """One data set as one kind of features, with its learners; `slow` ones have fewer seeds and sizes. `seeds` is how
    many there are at most."""

    data: str
    features: str
    learners: tuple[str, ...]
    theirs: tuple[str, ...] = ()
    slow: tuple[str, ...] = ()
    seeds: int = 99


VECTORS = ("linear", "graph", "mlp", "auto")
TASKS = (
    *(
        Task(
            name,
            "columns",
            (
                "linear",
                "graph",
                "extra-trees",
                "gaussian-process",
                "gradient-boosting",
                "hist-gradient-boosting",
                "mlp",
                "auto",
            ),
            ("sklearn extra-trees",),
            seeds=1 if name == "ptd-total" else 99,
        )
        for name in TABLES
    ),
    *(Task(name, "encoder", VECTORS) for name in ("trec", "sst2")),
    *(Task(name, "words", VECTORS, ("sklearn logistic",)) for name in ("trec", "sst2")),
    Task("cifar10", "encoder", VECTORS),
    Task("tiny-imagenet-32", "encoder", VECTORS, seeds=1),
    Task("tiny-imagenet-32", "pixels", ("linear", "graph"), ("sklearn logistic",), seeds=1),
    Task(
        "cifar10",
        "pixels",
        ("linear", "graph", "cnn", "resnet18-slim", "auto"),
        ("sklearn logistic",),
        ("cnn", "resnet18-slim", "auto"),
    ),
)
SLOW_SIZES, SLOW_SEEDS = (50, 200), 2


def cells(task: Task, seed: int, only: list[str] | None) -> Iterator[tuple[str, int, int]]:
    for n in SIZES:
        for name in (*task.learners, *task.theirs):
            if name in task.slow and (n not in SLOW_SIZES or seed >= SLOW_SEEDS):
                continue
            if only is None or name in only:
                yield name, n, seed


def run(task: Task, read: Callable[[], Data], out: Path, seed: int, only: list[str] | None) -> None:
    if seed >= task.seeds:
        return
    done = set()
    if out.exists():
        table = pd.read_csv(out, keep_default_na=False)
        mine = table[(table["data"] == task.data) & (table["features"] == task.features)]
        done = set(zip(mine["learner"], mine["labels"], mine["seed"], strict=True))
    wanted = [cell for cell in cells(task, seed, only) if cell not in done]
    if not wanted:
        return
    data = read()
    for name, n, seed in wanted:
        rows = np.sort(np.random.default_rng(seed).permutation(len(data.labels))[:n])
        began = time.process_time()
        predicted, chosen = (theirs if name in task.theirs else ours)(data, name, rows, seed)
        seconds = time.process_time() - began
        truth = np.asarray(data.truth)
        wrong = data.classes is not None
        error = np.mean(predicted != truth) if wrong else np.sqrt(np.mean(np.square(predicted - truth)))
        _append(out, (task.data, task.features, name, n, seed, "wrong" if wrong else "rmse", error, seconds, chosen))


def _append(out: Path, row: tuple[Any, ...]) -> None:
    new = not out.exists()
    with out.open("a", newline="") as file:
        writer = csv.writer(file)
        if new:
            writer.writerow(FIELDS)
        writer.writerow([f"{value:.6g}" if isinstance(value, float) else value for value in row])


def _encoder(name: str, folder: str | None, kept: Path) -> Callable[[Any], Any]:
    from ally.data.encoders import encode, open_encoder

    return partial(encode, open_encoder(folder or name), cache=kept)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, default=os.environ.get("ALLY_DATA"))
    parser.add_argument("--data", nargs="*", default=None, help="names of data sets, or name/features")
    parser.add_argument("--text-encoder", default=None, help="the folder of all-MiniLM-L6-v2")
    parser.add_argument("--cache", type=Path, default=Path("vectors"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--learners", nargs="*", default=None)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--tables", action="store_true")
    parser.add_argument("--time", action="store_true")
    given = parser.parse_args()
    if given.time:
        time_queries()
        return
    if given.tables:
        print(tables(given.out))
        return
    folder, wanted = Path(given.data_dir), set(given.data or ())
    tasks = [task for task in TASKS if not wanted or {task.data, f"{task.data}/{task.features}"} & wanted]
    readers = {task: cache(partial(read, folder, task, given.text_encoder, given.cache)) for task in tasks}
    for seed in range(given.seeds):
        for task in tasks:
            run(task, readers[task], given.out, seed, given.learners)
            print("seed", seed, task.data, task.features, "done", flush=True)


def time_queries() -> None:
    """Prints seconds of wall time; those of the first query include imports."""
    import ally

    rng = np.random.default_rng(0)
    X = rng.normal(size=(MOST, 20))
    truth = X[:, 0] ** 2 + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=MOST)
    classes = np.digitize(truth, [0.0, 1.5])
    for kind, known in (("numbers", truth[:200].tolist()), ("three classes", classes[:200].tolist())):
        for model in ("auto", "mlp"):
            began = time.perf_counter()
            ally.query(X, [*known, *[None] * (MOST - 200)], n=20, model=model, random_state=0)
            print(f"{kind}, {model}: {time.perf_counter() - began:.1f} s", flush=True)


def read(folder: Path, task: Task, text_encoder: str | None, kept: Path) -> Data:
    if task.data in TABLES:
        return table_data(folder, task.data)
    encode = None
    if task.data in IMAGES:
        if task.features == "encoder":
            encode = _encoder("efficientnet-lite0", None, kept)
        return image_data(folder, task.data, encode)
    if task.features == "encoder":
        encode = _encoder("all-MiniLM-L6-v2", text_encoder, kept)
    return text_data(folder, task.data, encode)


def tables(out: Path) -> str:
    """Mean errors by learner and labels, one table per data set and features, and how `auto` compares."""
    found = pd.read_csv(out, keep_default_na=False)
    parts = []
    for (data, features), group in found.groupby(["data", "features"], sort=False):
        metric = "share of wrong labels" if group["metric"].iloc[0] == "wrong" else "RMSE"
        means = group.pivot_table(index="learner", columns="labels", values="error", sort=False)
        seeds = group.groupby("learner", sort=False)["seed"].nunique()
        lines = [
            "| learner | seeds | " + " | ".join(map(str, means.columns)) + " |",
            "|---|---|" + "---|" * len(means.columns),
        ]
        for name, row in means.iterrows():
            cells = ["" if np.isnan(value) else f"{value:.3g}" for value in row]
            lines.append(f"| {name} | {seeds[name]} | " + " | ".join(cells) + " |")
        parts.append(f"#### {data}, {features}: {metric}\n\n" + "\n".join(lines))
    return "\n\n".join([*parts, summary(found)])


def summary(found: pd.DataFrame) -> str:
    """Ratios of `auto`'s error to that of others, over cells with at least 50 labels that both have."""
    keys = ["data", "features", "labels", "seed"]
    errors = found[found["labels"] >= 50].pivot_table(index=keys, columns="learner", values="error")
    auto = errors["auto"].dropna()
    own = errors.loc[auto.index, [name for name in errors if name != "auto" and not name.startswith("sklearn")]]
    mean = pd.concat([auto, own], axis=1).groupby(["data", "features", "labels"]).mean()
    best = mean["auto"] / mean.drop(columns="auto").min(axis=1)
    lines = [
        f"From 50 labels on, the error of `auto` is {best.mean() - 1:+.1%} away from the best single learner's on "
        f"average, at worst {best.max() - 1:+.1%} ({' '.join(map(str, best.idxmax()))}).",
        "",
        "| against | mean ratio | worst | cells |",
        "|---|---|---|---|",
    ]
    for name in errors:
        if name != "auto":
            both = (
                pd.concat([errors["auto"], errors[name]], axis=1)
                .dropna()
                .groupby(["data", "features", "labels"])
                .mean()
            )
            ratio = both["auto"] / both[name]
            if len(ratio):
                lines.append(f"| {name} | {np.exp(np.log(ratio).mean()):.3f} | {ratio.max():.3f} | {len(ratio)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
