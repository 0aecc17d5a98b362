"""Seconds and memory of batch selection, against other libraries and against plain forms of the same algorithms.

    python benchmarks/selection.py [--scale small|full] [--data-dir DATA] [--peers PYTHON] [--only KERNEL ...] [--again]
    python benchmarks/selection.py --tables

small: 20 000 candidates and plain forms, a minute or two; exits with 1 unless `ally` picks what the plain forms pick
    and is faster by
the margins in `SMALL`; writes nothing. full: every comparison of docs/performance.md, about 20 minutes on two idle
cores. Figures go to results/selection.csv; a comparison that is all there is not run again without --again. --tables
only writes the tables of docs/performance.md from that file. DATA holds mnist/, PYTHON is an interpreter with
requirements-peers.txt; what needs them is left out without them. The protocol is in docs/performance.md. Linux only.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import torch

import ally
from ally.features import Gradient
from ally.learning.learner import Examples
from ally.learning.network import Network
from ally.learning.objectives import PDCL
from ally.learning.snapshot import Snapshot, View
from ally.learning.training import Training
from ally.models import MLP
from ally.rng import Streams
from ally.scoring import Constant, Margin, PredictedDual, Score
from ally.selection import LCMD, ClusterTop, FisherGreedy, KCenter, KMeansPP, Select, Top
from ally.selection.base import Limits, largest
from ally.selection.kmeans import k_means
from peers import clocked, forget_peak, peak, repeated, resident

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "selection.csv"
PAGE = HERE.parent / "docs" / "performance.md"
MARKS = "<!-- tables: written by benchmarks/selection.py -->", "<!-- end of tables -->"
WHOLE = ("n", "d", "classes", "b", "threads", "repeats")
COLUMNS = (
    "kernel",
    "form",
    "data",
    "n",
    "d",
    "classes",
    "b",
    "threads",
    "seconds",
    "peak_mib",
    "own_mib",
    "quality",
    "repeats",
    "note",
)
LABELLED = 1000
LARGE, FEW_PICKS = 2 * 10**7, 100
"""Plain forms run only so many picks where the embeddings hold more numbers than this: every further pick does the same
work."""
FEW_CANDIDATES = 1000
SIZES = 25_000, 50_000, 100_000, 200_000, 400_000
BAIT_SIZES = 5_000, 10_000, 20_000
SMALL = {
    ("BADGE", "unpruned"): 1.5,
    ("Coreset", "unpruned"): 1.5,
    ("LCMD", "unpruned"): 1.5,
    ("ClusterTop", "scikit-learn"): 1.5,
    ("BAIT", "direct"): 20.0,
}
"""How many times faster `ally` is at least in a small run."""


@dataclass(frozen=True)
class Cell:
    """A problem: where its embeddings come from, and its sizes. With "+lr" the probabilities are a logistic
    regression's."""

    data: str
    n: int
    d: int = 128
    classes: int = 10
    b: int = 200

    @property
    def stem(self) -> str:
        """Name of its files; smaller pools are the first rows of larger ones."""
        return f"{self.data.removesuffix('+lr')}-{self.d}-{self.classes}"


@dataclass(frozen=True)
class Job:
    """A form of a kernel on cells in turn, in one process."""

    kernel: str
    form: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, eq=False)
class Problem:
    """A cell with its numbers."""

    cell: Cell
    snapshot: Snapshot
    folder: Path
    streams: Streams = Streams(0)

    @property
    def h(self) -> torch.Tensor:
        return self.snapshot.candidates.embeddings

    @property
    def p(self) -> torch.Tensor:
        assert self.snapshot.candidates.probabilities is not None
        return self.snapshot.candidates.probabilities

    def file(self, end: str) -> Path:
        return self.folder / f"{self.cell.stem}.{end}"


@dataclass(frozen=True)
class Work:
    """What is timed, and what is said about its result afterwards."""

    run: Callable[[], tuple[float, Any]]
    """Seconds and a result: picked rows, the cluster of every row, or a note."""
    quality: Callable[[Any], float] | None = None
    note: str = ""


Form = Callable[[Problem], Work]
Quality = Callable[[Problem, Any], float]


def write(folder: Path, cell: Cell, data_dir: Path | None) -> None:
    """The files of a cell: embeddings and probabilities of candidates as raw float32, the labelled samples as npz."""
    parts = mixture(cell) if cell.stem.startswith("mixture") else network(cell, *images_of(cell, data_dir))
    h, p, labels, duals = next(parts)
    with (folder / f"{cell.stem}.h").open("wb") as embeddings, (folder / f"{cell.stem}.p").open("wb") as probabilities:
        for part in parts:
            for file, values in zip((embeddings, probabilities), part, strict=True):
                values.astype(np.float32).tofile(file)
        for file in (embeddings, probabilities):
            file.flush()
            os.fsync(file.fileno())
    np.savez(folder / f"{cell.stem}.npz", h=h, p=p, labels=labels, duals=duals)


def mixture(cell: Cell) -> Iterator[tuple[Any, ...]]:
    """Labelled samples, then candidates in parts: 50 Gaussians with variances ∝ 1/j in the j-th direction, and a random
    linear head."""
    rng = np.random.default_rng(0)
    scales = ((1 + np.arange(cell.d)) ** -0.5).astype(np.float32)
    means = 2 * scales * rng.standard_normal((50, cell.d), dtype=np.float32)
    head = rng.standard_normal((cell.d, cell.classes), dtype=np.float32)

    def part(size: int) -> tuple[Any, Any]:
        h = means[rng.integers(len(means), size=size)] + scales * rng.standard_normal((size, cell.d), dtype=np.float32)
        return h, softmax(h @ head)

    h, p = part(LABELLED)
    labels = (p.cumsum(1) > rng.random((LABELLED, 1))).argmax(1)
    yield h, p, labels, np.maximum(0.0, -np.log(p[np.arange(LABELLED), labels]) - 0.01)
    for start in range(0, cell.n, 50_000):
        yield part(min(50_000, cell.n - start))


def images_of(cell: Cell, data_dir: Path | None) -> tuple[Any, Any]:
    """Training images of MNIST, or scikit-learn's digits, (m, 1, side, side), and their classes."""
    if cell.stem.startswith("digits") or data_dir is None:
        from sklearn.datasets import load_digits

        digits = load_digits()
        return digits.images[:, None], digits.target
    from mnist import load as load_mnist

    data = load_mnist(data_dir, "mnist")
    return data.pool, data.pool_labels


def network(cell: Cell, images: Any, labels: Any) -> Iterator[tuple[Any, ...]]:
    """The same from a network with hidden layers 256–256–d trained by PDCL on 1000 images, which embeds the others.

    Larger pools go through those images again, shifted by up to a fourteenth of their side (one pixel at least) and
    with noise of a tenth of the standard deviation.
    """
    rng = np.random.default_rng(0)
    images = images.astype(np.float32)
    images = (images - images.mean()) / images.std()
    known, free = np.split(rng.permutation(len(images)), [LABELLED])
    training = Training(lr=5e-3, epochs=30, batch_size=64, device="cpu")
    learner = Network(partial(MLP, hidden=(256, 256, cell.d)), training)
    examples = Examples.of(images[known], labels[known].astype(float), range(cell.classes))
    fit = learner.fit(examples, PDCL(eps=0.01), Streams(0))

    def embed(x: Any) -> tuple[Any, Any]:
        h, outputs = fit.embed(torch.from_numpy(x))
        return h.numpy(), softmax(outputs.double().numpy())

    yield (*embed(images[known]), labels[known], fit.duals["labelled"].numpy())
    most = max(1, images.shape[2] // 14)
    shifts = sorted(
        itertools.product(range(-most, most + 1), repeat=2), key=lambda shift: abs(shift[0]) + abs(shift[1])
    )
    for turn, start in enumerate(range(0, cell.n, len(free))):
        some = free[: cell.n - start]
        for rows in np.array_split(some, -(-len(some) // 5_000)):
            x = images[rows]
            if turn:
                x = np.roll(x, shifts[turn % len(shifts)], axis=(2, 3)) + 0.1 * rng.standard_normal(
                    x.shape, dtype=np.float32
                )
            yield embed(x)


def softmax(outputs: Any) -> Any:
    shifted = np.exp(outputs - outputs.max(1, keepdims=True))
    return shifted / shifted.sum(1, keepdims=True)


def load(folder: Path, cell: Cell, mapped: bool = False) -> Problem:
    """The first n rows of a cell's files, in memory or memory-mapped."""

    def read(end: str, width: int) -> torch.Tensor:
        path, shape = folder / f"{cell.stem}.{end}", (cell.n, width)
        if mapped:
            return torch.from_numpy(np.memmap(path, np.float32, "c", shape=shape))
        return torch.from_numpy(np.fromfile(path, np.float32, cell.n * width).reshape(shape))

    h, p, nothing = read("h", cell.d), read("p", cell.classes), torch.empty(0)
    with np.load(folder / f"{cell.stem}.npz") as file:
        known = {name: torch.from_numpy(file[name]) for name in file}
    if cell.data.endswith("+lr"):
        weights, biases = logistic(known["h"], known["labels"])
        p, known["p"] = (
            torch.from_numpy(softmax(some.numpy() @ weights.T + biases).astype(np.float32)) for some in (h, known["h"])
        )
    candidates = View(np.arange(cell.n), h, p, nothing)
    labelled = View(np.arange(cell.n, cell.n + LABELLED), known["h"], known["p"], nothing)
    return Problem(
        cell, Snapshot("classification", candidates, labelled, known["labels"].double(), known["duals"]), folder
    )


def logistic(h: torch.Tensor, labels: torch.Tensor) -> tuple[Any, Any]:
    """Weights (C, d) and biases (C,) of a logistic regression on the labelled embeddings."""
    from sklearn.linear_model import LogisticRegression

    fitted = LogisticRegression(max_iter=200, tol=1e-2).fit(h.numpy(), labels.numpy())
    return fitted.coef_, fitted.intercept_


def clocked_from_disk(problem: Problem, work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds and result when the system holds nothing of the files."""
    for end in ("h", "p"):
        handle = os.open(problem.file(end), os.O_RDONLY)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(handle)
    return clocked(work)


def plain_coreset(problem: Problem) -> Iterator[int]:
    """One matrix-vector product per pick."""
    norms, nearest, _ = to_labelled(problem)
    while True:
        row = int(nearest.argmax())
        yield row
        torch.minimum(nearest, torch.addmv(norms, problem.h, problem.h[row], alpha=-2.0).add_(norms[row]), out=nearest)
        nearest[row] = -1.0


def plain_lcmd(problem: Problem) -> Iterator[int]:
    norms, nearest, cluster = to_labelled(problem)
    for number in itertools.count(LABELLED):
        sizes = torch.bincount(cluster, weights=nearest.double())
        row = int(torch.where(cluster == sizes.argmax(), nearest, -1.0).argmax())
        yield row
        squared = torch.addmv(norms, problem.h, problem.h[row], alpha=-2.0).add_(norms[row]).clamp_(min=0.0)
        cluster.masked_fill_(squared < nearest, number)
        torch.minimum(nearest, squared, out=nearest)
        nearest[row], cluster[row] = 0.0, number


def plain_badge(problem: Problem) -> Iterator[int]:
    """One product per factor and pick; drawn by the same uniform numbers as `ally`."""
    h, a = problem.h, residuals(problem.p)
    norms = square_norms(h) * square_norms(a)
    nearest = torch.full_like(norms, torch.inf)
    row = int(norms.argmax())
    for uniform in problem.streams.numpy("d2 draws").random(problem.cell.b + 1)[1:]:
        yield row
        inner = (h @ h[row]).mul_(a @ a[row])
        torch.minimum(nearest, inner.mul_(-2.0).add_(norms).add_(norms[row]).clamp_(min=0.0), out=nearest)
        nearest[row] = 0.0
        edges = nearest.double().cumsum(0)
        row = int(torch.searchsorted(edges, uniform * edges[-1], right=True))


def to_labelled(problem: Problem) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """‖h‖², the squared distance to the nearest labelled sample, and its number, (n,) each."""
    norms, centres = square_norms(problem.h), problem.snapshot.labelled.embeddings
    nearest, number = torch.empty_like(norms), torch.empty(len(norms), dtype=torch.int64)
    for start in range(0, len(norms), 4096):
        part = slice(start, start + 4096)
        squared = torch.addmm(square_norms(centres)[None, :], problem.h[part], centres.T, alpha=-2.0).add_(
            norms[part, None]
        )
        nearest[part], number[part] = squared.clamp_(min=0.0).min(1)
    return norms, nearest, number


def residuals(p: torch.Tensor) -> torch.Tensor:
    """p − onehot(argmax p), (n, C); the gradient of the last layer is its product with h."""
    top = p.argmax(1, keepdim=True)
    others = p.scatter(1, top, 0.0)
    return others.scatter_(1, top, -others.sum(1, keepdim=True))


def square_norms(rows: torch.Tensor) -> torch.Tensor:
    return torch.cat([part.square().sum(1) for part in torch.split(rows, 4096)])


def stepwise(picks: Callable[[Problem], Iterator[int]], quality: Quality | None = None) -> Form:
    """A plain form, whole or extrapolated from its first picks."""

    def form(problem: Problem) -> Work:
        b = problem.cell.b
        few = b if problem.h.numel() <= LARGE else min(b, FEW_PICKS)

        def run() -> tuple[float, Any]:
            steps = picks(problem)
            first, row = clocked(lambda: next(steps))
            rest, rows = clocked(lambda: list(itertools.islice(steps, few - 1)))
            return first + rest * (b - 1) / max(1, few - 1), np.asarray([row, *rows])

        if few < b:
            return Work(run, note=f"extrapolated from {few} picks")
        return Work(run, None if quality is None else partial(quality, problem))

    return form


def fisher_rows(h: torch.Tensor, p: torch.Tensor) -> torch.Tensor:
    """X = S⊗hᵀ, where XᵀX is the Fisher information of a sample, (n, C, C·d) float64."""
    h, p = h.double(), p.double()
    roots = torch.diag_embed(p.sqrt()) - p.sqrt()[:, :, None] * p[:, None, :]
    return (roots[:, :, :, None] * h[:, None, None, :]).flatten(2)


def direct_gains(x: torch.Tensor, inverse: torch.Tensor, around: torch.Tensor, sign: float = 1.0) -> torch.Tensor:
    """tr(X AFA Xᵀ (±I + X A Xᵀ)⁻¹) of every candidate by products with A (`inverse`) and AFA (`around`), both C·d ×
    C·d."""
    q, g = ((x.flatten(0, 1) @ matrix).view(x.shape) @ x.transpose(1, 2) for matrix in (inverse, around))
    solved: torch.Tensor = torch.linalg.solve(q + sign * torch.eye(x.shape[1], dtype=x.dtype), g, left=False)
    return solved.diagonal(dim1=1, dim2=2).sum(1)


def direct_bait(problem: Problem, ridge: float = 1.0) -> Any:
    """2b picks, then b of them removed, with every matrix computed anew: for tiny problems."""
    known, b = problem.snapshot.labelled, problem.cell.b
    assert known.probabilities is not None
    x, labelled = fisher_rows(problem.h, problem.p), fisher_rows(known.embeddings, known.probabilities)
    pooled = torch.cat([x, labelled]).flatten(0, 1)
    pooled = pooled.T @ pooled / (len(x) + len(labelled))
    information = (
        labelled.flatten(0, 1).T @ labelled.flatten(0, 1) / (len(labelled) + b) + ridge * torch.eye(x.shape[2]).double()
    )
    x *= (b / (len(labelled) + b)) ** 0.5
    rows: list[int] = []
    for sign in [1.0] * 2 * b + [-1.0] * b:
        inverse = torch.linalg.inv(information)
        gains = direct_gains(x, inverse, inverse @ pooled @ inverse, sign)
        others = rows if sign > 0 else np.setdiff1d(np.arange(len(x)), rows).tolist()
        gains[others] = -torch.inf
        row = int(gains.argmax())
        information += sign * x[row].T @ x[row]
        rows = [*rows, row] if sign > 0 else [other for other in rows if other != row]
    return np.asarray(rows)


def direct_bait_time(problem: Problem) -> Work:
    """One pick among few candidates with matrices of the right size, taken as often as 2b picks among all are."""
    few = min(problem.cell.n, FEW_CANDIDATES)
    x = fisher_rows(problem.h[:few], problem.p[:few])
    inverse = torch.eye(x.shape[2]).double() + 1e-4

    def run() -> tuple[float, Any]:
        seconds, gains = clocked(lambda: direct_gains(x, inverse, inverse))
        return seconds * 2 * problem.cell.b * problem.cell.n / few, gains

    return Work(run, note=f"extrapolated from one pick among {few}; removals not counted")


def by_ally(select: Select, quality: Quality | None = None) -> Form:
    """A selection from embeddings and probabilities in memory."""

    def form(problem: Problem) -> Work:
        snapshot, streams = problem.snapshot, problem.streams
        score = PredictedDual() if isinstance(select, ClusterTop) else Constant()
        scores = score(snapshot, streams).scores
        run = lambda: select(snapshot, scores, problem.cell.b, streams, Limits()).rows  # noqa: E731
        return Work(lambda: clocked(run), None if quality is None else partial(quality, problem))

    return form


def from_disk(score: Score, select: Select, quality: Quality | None = None) -> Form:
    """A score and a selection from memory-mapped files."""

    def form(problem: Problem) -> Work:
        def query() -> Any:
            here = load(problem.folder, problem.cell, mapped=True)
            scores = score(here.snapshot, here.streams).scores
            return select(here.snapshot, scores, here.cell.b, here.streams, Limits()).rows

        return Work(
            lambda: clocked_from_disk(problem, query),
            None if quality is None else partial(quality, problem),
            "from disk",
        )

    return form


def reading(problem: Problem) -> Work:
    """Both files once, and nothing else."""

    def read() -> None:
        for end in ("h", "p"):
            with problem.file(end).open("rb", buffering=0) as file:
                while file.read(2**26):
                    pass

    return Work(lambda: clocked_from_disk(problem, read), note="from disk")


def faiss_means(rows: str) -> Form:
    """faiss's k-means with ClusterTop's k and iterations, and the assignment of all points; in memory."""

    def form(problem: Problem) -> Work:
        import faiss

        points, k = problem.h, problem.cell.b
        if rows == "shortlist":
            points = points[largest(PredictedDual()(problem.snapshot, problem.streams).values, 20 * k).sort().values]
        data = np.array(points.numpy())
        limit = {} if rows == "sample" else {"max_points_per_centroid": len(data)}

        def cluster() -> Any:
            means = faiss.Kmeans(
                data.shape[1], k, niter=ClusterTop().iterations, seed=1, min_points_per_centroid=1, **limit
            )
            means.train(data)
            return means.index.search(data, 1)[1][:, 0]

        return Work(lambda: clocked(cluster), None if rows == "shortlist" else partial(inertia, problem))

    return form


def sklearn_means(init: str) -> Form:
    """scikit-learn's k-means with ClusterTop's k and iterations."""

    def form(problem: Problem) -> Work:
        from sklearn.cluster import KMeans

        means = KMeans(problem.cell.b, init=init, n_init=1, max_iter=ClusterTop().iterations, random_state=0)
        return Work(lambda: clocked(lambda: means.fit(problem.h.numpy()).labels_), partial(inertia, problem))

    return form


def cluster_top_inertia(problem: Problem, rows: Any) -> float:
    """That of the clusters which the rows were picked from."""
    return inertia(
        problem, k_means(problem.h, problem.cell.b, ClusterTop().iterations, problem.streams.seed("k-means"))
    )


def inertia(problem: Problem, clusters: Any) -> float:
    """Σ ‖h − mean of its cluster‖² over all candidates."""
    number, squares = torch.from_numpy(np.asarray(clusters)).long(), 0.0
    sums = torch.zeros(problem.cell.b, problem.cell.d, dtype=torch.float64)
    for h, some in zip(torch.split(problem.h, 4096), torch.split(number, 4096), strict=True):
        sums.index_add_(0, some, h.double())
        squares += float(h.double().square().sum())
    return squares - float((sums.square().sum(1) / torch.bincount(number, minlength=problem.cell.b).clamp(min=1)).sum())


def gradient_spread(problem: Problem, rows: Any) -> float:
    """Σ of squared distances to the nearest pick, of the hypothetical gradients: what k-means++ keeps small."""
    total, picks = 0.0, torch.from_numpy(np.asarray(rows)).long()
    h, a = problem.h, residuals(problem.p)
    centres = square_norms(h[picks]) * square_norms(a[picks])
    for some_h, some_a in zip(torch.split(h, 4096), torch.split(a, 4096), strict=True):
        inner = (some_h @ h[picks].T) * (some_a @ a[picks].T)
        total += float(((centres - 2.0 * inner).amin(1) + square_norms(some_h) * square_norms(some_a)).double().sum())
    return total


def whole_query(problem: Problem) -> Work:
    """`ally.query` with the embeddings' file as its samples, 1000 of them labelled, and a network with one hidden
    layer."""
    cell = problem.cell
    labels = np.full(cell.n, -1)
    known = np.random.default_rng(0).permutation(cell.n)[: min(LABELLED, cell.n // 2)]
    labels[known] = problem.p.numpy()[known].argmax(1)

    def run() -> tuple[float, Any]:
        stages: dict[str, float] = {}
        last = time.perf_counter()

        def progress(stage: str, done: int, total: int) -> None:
            nonlocal last
            now = time.perf_counter()
            stages[stage], last = stages.get(stage, 0.0) + now - last, now

        def ask() -> Any:
            nonlocal last
            last = time.perf_counter()
            x = np.memmap(problem.file("h"), np.float32, "r", shape=(cell.n, cell.d))
            model = ally.ConstrainedClassifier(hidden=(cell.d,), device="cpu")
            found = ally.query(
                x,
                labels,
                n=cell.b,
                missing_label=-1,
                classes=range(cell.classes),
                model=model,
                random_state=0,
                progress=progress,
            )
            progress("score and select", 1, 1)
            return found

        seconds, found = clocked_from_disk(problem, ask)
        before, stages["train"] = stages["train"], found.report["fit"].seconds
        stages["scale"] = before - stages["train"]
        return seconds, "from disk; seconds: " + ", ".join(f"{stage} {value:.1f}" for stage, value in stages.items())

    return Work(run)


FORMS: dict[str, dict[str, Form]] = {
    "BADGE": {
        "ally": by_ally(KMeansPP(Gradient()), gradient_spread),
        "unpruned": stepwise(plain_badge, gradient_spread),
    },
    "Coreset": {"ally": by_ally(KCenter()), "unpruned": stepwise(plain_coreset)},
    "LCMD": {"ally": by_ally(LCMD()), "unpruned": stepwise(plain_lcmd)},
    "k-means++": {"ally": by_ally(KMeansPP())},
    "BAIT": {"ally": by_ally(FisherGreedy()), "direct": direct_bait_time},
    "ClusterTop": {
        "ally": by_ally(ClusterTop(), cluster_top_inertia),
        "scikit-learn": sklearn_means("k-means++"),
        "scikit-learn, random start": sklearn_means("random"),
    },
    "ALLY query": {
        "ally": from_disk(PredictedDual(), ClusterTop(shortlist=20)),
        "reading once": reading,
        "faiss, 20·b rows": faiss_means("shortlist"),
    },
    "ALLY query, all rows": {
        "ally": from_disk(PredictedDual(), ClusterTop(), cluster_top_inertia),
        "faiss": faiss_means("all"),
        "faiss, its sample": faiss_means("sample"),
    },
    "Margin query": {"ally": from_disk(Margin(), Top())},
    "BADGE query": {"ally": from_disk(Constant(), KMeansPP(Gradient()))},
    "ally.query": {"ally": whole_query},
}
PEERS = {
    ("BADGE", "scikit-activeml"): "scikit-activeml-badge",
    ("Coreset", "scikit-activeml"): "scikit-activeml-coreset",
    ("LCMD", "bmdal_reg"): "bmdal-lcmd",
    ("k-means++", "bmdal_reg"): "bmdal-kmeanspp",
}


def comparison(kernel: str, cell: Cell, *others: str) -> list[Job]:
    """`ally` and other forms, whose figures are set against each other."""
    return [Job(kernel, form, (cell,)) for form in ("ally", *others)]


def small() -> list[list[Job]]:
    """On embeddings of scikit-learn's digits."""
    cells = {"BAIT": Cell("mixture", 2_000, 64, b=20)}
    return [comparison(kernel, cells.get(kernel, Cell("digits", 20_000)), form) for kernel, form in SMALL]


def full(real: bool) -> list[list[Job]]:
    names = ("mnist", "mixture") if real else ("mixture",)
    jobs: list[list[Job]] = []
    for data in names:
        cell = Cell(data, 20_000)
        jobs += [
            comparison("BADGE", replace(cell, data=f"{data}+lr"), "unpruned", "scikit-activeml"),
            comparison("Coreset", cell, "unpruned", "scikit-activeml"),
            comparison("LCMD", cell, "unpruned", "bmdal_reg"),
            comparison("k-means++", cell, "bmdal_reg"),
            comparison("ClusterTop", cell, "scikit-learn", "scikit-learn, random start"),
        ]
        cell = Cell(data, 100_000, b=1000)
        jobs += [comparison(kernel, cell, "unpruned") for kernel in ("BADGE", "Coreset", "LCMD")]
        jobs += [comparison("ClusterTop", cell, "scikit-learn")]
        jobs += [comparison(kernel, replace(cell, n=1_000_000), "unpruned") for kernel in ("BADGE", "Coreset")]
    jobs += [comparison(kernel, Cell(names[0], 100_000, d=512, b=1000), "unpruned") for kernel in ("BADGE", "Coreset")]
    jobs += [comparison("BADGE", Cell("mixture", 100_000, classes=100, b=1000), "unpruned")]
    jobs += [comparison("BAIT", Cell(names[0], 50_000), "direct")]
    cell = Cell(names[0], 1_000_000, b=1000)
    jobs += [
        comparison("ALLY query", cell, "reading once", "faiss, 20·b rows"),
        comparison("ALLY query, all rows", cell, "faiss", "faiss, its sample"),
        comparison("ally.query", cell),
    ]
    for kernel in ("BADGE", "Coreset", "LCMD", "ClusterTop", "ALLY query"):
        jobs += [[Job(kernel, "ally", tuple(Cell(names[0], n) for n in SIZES))]]
    jobs += [[Job("BAIT", "ally", tuple(Cell(names[0], n, b=50) for n in BAIT_SIZES))]]
    jobs += [
        comparison(kernel, Cell("mixture", 10_000_000, 64)) for kernel in ("ALLY query", "Margin query", "BADGE query")
    ]
    return jobs


def in_child(function: Callable[..., None], *arguments: Any) -> Iterator[tuple[str, Any, int]]:
    """Runs ``function(connection, *arguments)`` in a fresh process.

    Gives what it sends, and the most memory of its own that it had since the last message. A process that fails sends
    "failed".
    """
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=guarded, args=(theirs, function, *arguments))
    process.start()
    theirs.close()
    own = 0
    while True:
        try:
            while not ours.poll(0.01):
                own = max(own, resident(process.pid or "self")[1])
            name, value = ours.recv()
        except (EOFError, OSError):
            break
        yield name, value, own
        own = 0
    process.join()
    if process.exitcode:
        yield "failed", f"the process ended with code {process.exitcode}", own


def guarded(connection: Connection, function: Callable[..., None], *arguments: Any) -> None:
    try:
        function(connection, *arguments)
    except Exception as error:
        traceback.print_exc()
        connection.send(("failed", f"{type(error).__name__}: {error}"))


def prepare(connection: Connection, folder: Path, cell: Cell, data_dir: Path | None) -> None:
    write(folder, cell, data_dir)


def measure(connection: Connection, job: Job, folder: Path, threads: int, repeats: int) -> None:
    """For every cell sends "start" with the memory in use, "ran", and "done" with the figures."""
    import faiss

    torch.set_num_threads(threads)
    faiss.omp_set_num_threads(threads)
    mapped = "query" in job.kernel
    for number, cell in enumerate(job.cells):
        problem = load(folder, cell, mapped)
        if number == 0:
            warm_up(job, problem, mapped)
        work = FORMS[job.kernel][job.form](problem)
        forget_peak()
        before, own = resident()
        connection.send(("start", own))
        seconds, results, most = [], [], 0
        for each, result in repeated(work.run, repeats):
            seconds.append(each)
            results = [result]
            most = most or peak() - before
        connection.send(("ran", None))
        result = results[0]
        note = result if isinstance(result, str) else work.note
        quality = None if work.quality is None or len(job.cells) > 1 else work.quality(result)
        row = {
            "seconds": statistics.median(seconds),
            "peak_mib": most / 2**20,
            "quality": quality,
            "repeats": len(seconds),
            "note": note,
        }
        connection.send(("done", (cell, row, result if np.shape(result) == (cell.b,) else None)))


def warm_up(job: Job, problem: Problem, mapped: bool) -> None:
    """Compiles and loads what the job needs, on 2000 rows of the same files."""
    cell = replace(problem.cell, n=2_000, b=10)
    with tempfile.TemporaryDirectory(dir=problem.folder) as folder:
        tiny = Problem(cell, problem.snapshot, Path(folder))
        problem.h[: cell.n].numpy().tofile(tiny.file("h"))
        problem.p[: cell.n].numpy().tofile(tiny.file("p"))
        tiny.file("npz").write_bytes(problem.file("npz").read_bytes())
        FORMS[job.kernel][job.form](load(tiny.folder, cell, mapped)).run()


@dataclass
class Bench:
    """A run of comparisons: its files, its settings, and the figures so far."""

    folder: Path
    largest: dict[str, Cell]
    """The largest cell of each stem: its files serve the others."""
    data_dir: Path | None
    peers: str | None
    threads: int
    repeats: int
    out: Path | None = None
    rows: list[dict[str, Any]] = field(default_factory=list)
    failed: int = 0

    def run(self, jobs: list[Job]) -> None:
        """One comparison, from the first form to the last."""
        picked: dict[Cell, Any] = {}
        for job in jobs:
            for cell in job.cells:
                self.ensure(cell)
            found = self.by_peer(job) if (job.kernel, job.form) in PEERS else self.by_child(job)
            for cell, row, rows in found:
                if job.form == "ally":
                    picked[cell] = rows
                elif rows is not None and job.kernel in ("Coreset", "LCMD") and cell in picked:
                    same = len(np.intersect1d(rows, picked[cell]))
                    row["note"] = f"{same} of {len(rows)} ids as ally's"
                self.add(job, cell, row)

    def ensure(self, cell: Cell) -> None:
        """Writes the files of a cell if they are not there."""
        if not (self.folder / f"{cell.stem}.npz").exists():
            began = time.perf_counter()
            for name, value, _ in in_child(prepare, self.folder, self.largest[cell.stem], self.data_dir):
                if name == "failed":
                    raise SystemExit(f"the data of {cell} could not be written: {value}")
            print(
                f"  {cell.stem}: {self.largest[cell.stem].n:,} rows written in {time.perf_counter() - began:.0f} s",
                flush=True,
            )

    def by_child(self, job: Job) -> Iterator[tuple[Cell, dict[str, Any], Any]]:
        before, own = 0, 0
        for name, value, most in in_child(measure, job, self.folder, self.threads, self.repeats):
            if name == "start":
                before = value
            elif name == "ran":
                own = max(0, most - before)
            elif name == "done":
                cell, row, rows = value
                yield cell, {**row, "own_mib": own / 2**20}, rows
            else:
                self.fail(job, value)

    def by_peer(self, job: Job) -> Iterator[tuple[Cell, dict[str, Any], Any]]:
        for cell in job.cells if self.peers is not None else ():
            problem = load(self.folder, cell)
            known, labels = problem.snapshot.labelled.embeddings, problem.snapshot.labels
            assert labels is not None
            weights, biases = logistic(known, labels)
            file = self.folder / "peer.npz"
            np.savez(
                file,
                x=problem.h.numpy(),
                known=known.numpy(),
                labels=labels.numpy(),
                weights=weights,
                biases=biases,
                b=cell.b,
            )
            command = [
                str(self.peers),
                str(HERE / "peers.py"),
                PEERS[job.kernel, job.form],
                str(file),
                "--repeats",
                str(self.repeats),
            ]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                self.fail(job, done.stderr)
                continue
            found = json.loads(done.stdout.splitlines()[-1])
            quality = gradient_spread(problem, found["ids"]) if job.kernel == "BADGE" else None
            seconds, rows = found["seconds"], np.asarray(found["ids"])
            row = {
                "seconds": statistics.median(seconds),
                "peak_mib": found["peak"] / 2**20,
                "own_mib": None,
                "quality": quality,
            }
            yield cell, {**row, "repeats": len(seconds), "note": ""}, rows

    def fail(self, job: Job, why: str) -> None:
        self.failed += 1
        print(f"FAILED {job.kernel} ({job.form}): {why}", flush=True)

    def add(self, job: Job, cell: Cell, row: dict[str, Any]) -> None:
        row = {"kernel": job.kernel, "form": job.form, **vars(cell), "threads": self.threads, **row}
        self.rows = [other for other in self.rows if key(other) != key(row)] + [row]
        if self.out is not None:
            with self.out.open("w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
                writer.writeheader()
                writer.writerows(
                    {name: f"{each[name]:.6g}" if isinstance(each[name], float) else each[name] for name in COLUMNS}
                    for each in self.rows
                )
        own = "" if row["own_mib"] is None else f", own {row['own_mib']:.0f}"
        print(
            f"{job.kernel:20s} {job.form:26s} {cell.data:10s} {cell.n:>10,} × {cell.d} C={cell.classes} b={cell.b}  "
            f"{row['seconds']:9.3f} s  {row['peak_mib']:6.0f} MiB{own}  {row['note']}",
            flush=True,
        )


def key(row: dict[str, Any]) -> tuple[Any, ...]:
    """What a figure is a figure of."""
    return tuple(row[name] for name in COLUMNS[:8])


def stored(path: Path) -> list[dict[str, Any]]:
    """The figures of earlier runs."""
    if not path.exists():
        return []
    words = ("kernel", "form", "data", "note")
    with path.open(newline="", encoding="utf-8") as file:
        return [
            {
                name: text if name in words else None if text == "" else int(text) if name in WHOLE else float(text)
                for name, text in row.items()
            }
            for row in csv.DictReader(file)
        ]


def done_before(rows: list[dict[str, Any]], jobs: list[Job], threads: int, peers: bool) -> bool:
    """Whether every figure of a comparison is there; other libraries count only if they can be run."""
    wanted = [job for job in jobs if peers or (job.kernel, job.form) not in PEERS]
    return {(job.kernel, job.form, *vars(cell).values(), threads) for job in wanted for cell in job.cells} <= {
        key(row) for row in rows
    }


class Figures:
    """Rows by kernel, form and cell."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = {(row["kernel"], row["form"], Cell(*key(row)[2:7])): row for row in rows}

    def cells(self, kernel: str, form: str, n: int | None = None, b: int | None = None) -> list[Cell]:
        """Where `ally` and a form were measured; with n and b, of 128 dimensions and 10 classes."""
        ours, theirs = (
            {cell for name, which, cell in self.rows if (name, which) == (kernel, one)} for one in ("ally", form)
        )
        return sorted((cell for cell in ours & theirs if n is None or cell == Cell(cell.data, n, b=b or 0)), key=str)

    def seconds(self, kernel: str, form: str, cell: Cell) -> float:
        return float(self.rows[kernel, form, cell]["seconds"])

    def ratio(self, kernel: str, form: str, cell: Cell) -> float:
        """How many times faster `ally` is."""
        return self.seconds(kernel, form, cell) / self.seconds(kernel, "ally", cell)

    def exponent(self, kernel: str, data: str) -> float | None:
        """Slope of log seconds over log n; None unless all sizes were measured."""
        cells = [Cell(data, n, b=50) for n in BAIT_SIZES] if kernel == "BAIT" else [Cell(data, n) for n in SIZES]
        if any((kernel, "ally", cell) not in self.rows for cell in cells):
            return None
        logs = np.log([(cell.n, self.seconds(kernel, "ally", cell)) for cell in cells])
        return float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])


@dataclass(frozen=True)
class Goal:
    """What was aimed at, and what was measured."""

    kernel: str
    aim: str
    data: str
    measured: str
    met: bool


def goals(figures: Figures) -> Iterator[Goal]:
    """Those that the figures decide."""
    ratios = [
        ("BADGE", "scikit-activeml", 20_000, 200, 50),
        ("BADGE", "unpruned", 100_000, 1000, 3),
        ("Coreset", "scikit-activeml", 20_000, 200, 10),
        ("Coreset", "unpruned", 100_000, 1000, 3),
        ("LCMD", "bmdal_reg", 20_000, 200, 3),
        ("BAIT", "direct", 50_000, 200, 300),
    ]
    for kernel, form, n, b, least in ratios:
        for cell in figures.cells(kernel, form, n, b):
            ratio = figures.ratio(kernel, form, cell)
            yield Goal(kernel, f"≥ {least}× {form}, n = {n:,}, b = {b}", cell.data, f"{ratio:.3g}×", ratio >= least)
    for cell in figures.cells("BAIT", "ally", 50_000, 200):
        seconds = figures.seconds("BAIT", "ally", cell)
        yield Goal("BAIT", "n = 50,000, b = 200 in under 120 s", cell.data, f"{seconds:.3g} s", seconds < 120)
    for n, b in ((20_000, 200), (100_000, 1000)):
        for cell in figures.cells("ClusterTop", "scikit-learn", n, b):
            ratio = figures.ratio("ClusterTop", "scikit-learn", cell)
            ours, theirs = (figures.rows["ClusterTop", form, cell]["quality"] for form in ("ally", "scikit-learn"))
            aim = f"≥ 3× scikit-learn, n = {n:,}, k = {b}, inertia no higher"
            higher = round(ours / theirs, 3)
            yield Goal("ClusterTop", aim, cell.data, f"{ratio:.3g}×, inertia {higher:.3f}×", ratio >= 3 and higher <= 1)
    yield from query_goals(figures)
    for kernel, data in itertools.product(
        ("BADGE", "Coreset", "LCMD", "ClusterTop", "ALLY query", "BAIT"), ("mnist", "mixture")
    ):
        slope = figures.exponent(kernel, data)
        if slope is not None:
            yield Goal(kernel, "seconds grow with n to the power ≤ 1.1", data, f"{slope:.2f}", slope <= 1.1)


def query_goals(figures: Figures) -> Iterator[Goal]:
    """Whole queries: time against reading their input once and faiss's k-means of the same rows, and memory."""
    for kernel, form in (
        ("ALLY query", "faiss, 20·b rows"),
        ("ALLY query, all rows", "faiss"),
        ("ALLY query, all rows", "faiss, its sample"),
    ):
        for cell in figures.cells(kernel, form, 1_000_000, 1000):
            read = figures.rows.get(("ALLY query", "reading once", cell))
            if read is not None:
                ratio = figures.seconds(kernel, "ally", cell) / (read["seconds"] + figures.seconds(kernel, form, cell))
                ours, theirs = (figures.rows[kernel, one, cell]["quality"] for one in ("ally", form))
                measured = f"{ratio:.2f}×" + (f", inertia {ours / theirs:.3f}×" if ours and theirs else "")
                yield Goal(
                    kernel, f"≤ 3× (reading once + {form}), n = 1,000,000, b = 1000", cell.data, measured, ratio <= 3
                )
    for kernel in ("ALLY query", "ALLY query, all rows"):
        for cell in figures.cells(kernel, "ally", 1_000_000, 1000):
            own = figures.rows[kernel, "ally", cell]["own_mib"]
            yield Goal(kernel, "own memory below 1 GiB, n = 1,000,000", cell.data, f"{own:.0f} MiB", own < 1024)
    for kernel in ("ALLY query", "Margin query", "BADGE query"):
        row = figures.rows.get((kernel, "ally", Cell("mixture", 10_000_000, 64)))
        if row is not None:
            yield Goal(
                kernel,
                "10,000,000 × 64, b = 200, finishes",
                "mixture",
                f"{row['seconds']:.3g} s, own {row['own_mib']:.0f} MiB",
                True,
            )


def tables(rows: list[dict[str, Any]]) -> str:
    """Goals, then every figure, in Markdown."""
    figures = Figures(rows)
    lines = ["### Goals", "", "| kernel | goal | data | measured | |", "|---|---|---|---|---|"]
    lines += [
        f"| {goal.kernel} | {goal.aim} | {goal.data} | {goal.measured} | {verdict(goal.met)} |"
        for goal in goals(figures)
    ]
    lines += [
        "",
        "### Figures",
        "",
        "| kernel | data | n | d | C | b | form | seconds | / ally | peak MiB | own MiB | quality | note |",
    ]
    lines += ["|---|---|---|---|---|---|---|---|---|---|---|---|---|"]
    in_order = sorted(
        figures.rows.items(), key=lambda item: (list(FORMS).index(item[0][0]), *vars(item[0][2]).values())
    )
    for (kernel, form, cell), row in in_order:
        over = (
            f"{figures.ratio(kernel, form, cell):.3g}×"
            if form != "ally" and (kernel, "ally", cell) in figures.rows
            else ""
        )
        own, quality = ("" if row[name] is None else f"{row[name]:.4g}" for name in ("own_mib", "quality"))
        values = (
            kernel,
            cell.data,
            f"{cell.n:,}",
            cell.d,
            cell.classes,
            cell.b,
            form,
            f"{row['seconds']:.3g}",
            over,
            f"{row['peak_mib']:.0f}",
            own,
            quality,
            row["note"],
        )
        lines.append(f"| {' | '.join(map(str, values))} |")
    return "\n".join(lines)


def verdict(met: bool) -> str:
    return "met" if met else "**missed**"


def write_page(rows: list[dict[str, Any]], page: Path) -> None:
    """Puts the tables between their marks."""
    before, _, rest = page.read_text(encoding="utf-8").partition(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    page.write_text(f"{before}{MARKS[0]}\n\n{tables(rows)}\n\n{MARKS[1]}{after}", encoding="utf-8")


def check_twins() -> None:
    """`ally` and the plain forms pick the same on tiny problems."""
    for kernel in ("BADGE", "Coreset", "LCMD", "BAIT"):
        cell = Cell("mixture", 80, 6, 3, 6) if kernel == "BAIT" else Cell("mixture", 3_000, b=50)
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), cell, None)
            problem = load(Path(folder), cell)
        ours = FORMS[kernel]["ally"](problem).run()[1]
        plain = direct_bait(problem) if kernel == "BAIT" else FORMS[kernel]["unpruned"](problem).run()[1]
        if ours.tolist() != plain.tolist():
            raise SystemExit(f"{kernel} picks {ours.tolist()}, its plain form {plain.tolist()}")
    print("BADGE, Coreset, LCMD and BAIT pick what their plain forms pick", flush=True)


def fast_enough(figures: Figures) -> bool:
    """Whether `ally` is faster by the margins of a small run; says by how much."""
    good = True
    for (kernel, form), least in SMALL.items():
        for cell in figures.cells(kernel, form):
            ratio = figures.ratio(kernel, form, cell)
            good &= ratio >= least
            print(f"{kernel:12s} {ratio:6.1f}× {form}, at least {least}×: {verdict(ratio >= least)}")
    return good


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", choices=["small", "full"], default="small")
    parser.add_argument("--data-dir", type=Path, help="folder that holds mnist/")
    parser.add_argument("--peers", help="interpreter of the other libraries")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--repeats", type=int, default=3, help="of which the median counts; what takes long is run once"
    )
    parser.add_argument("--scratch", type=Path, help="where to put up to 5 GB of temporary files")
    parser.add_argument("--only", nargs="*", help="names of kernels")
    parser.add_argument("--again", action="store_true", help="also what is in the results")
    parser.add_argument("--tables", action="store_true", help="only write the tables")
    arguments = parser.parse_args()
    if arguments.tables:
        write_page(stored(RESULTS), PAGE)
        return
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[name] = str(arguments.threads)
    complete = arguments.scale == "full"
    plan = full(arguments.data_dir is not None) if complete else small()
    plan = [jobs for jobs in plan if arguments.only is None or jobs[0].kernel in arguments.only]
    if not complete:
        check_twins()
    elif arguments.data_dir is None:
        print("no --data-dir: MNIST is left out")
    if complete and arguments.peers is None:
        print("no --peers: other libraries are left out")
    largest: dict[str, Cell] = {}
    for cell in (cell for jobs in plan for job in jobs for cell in job.cells):
        largest[cell.stem] = max(largest.get(cell.stem, cell), cell, key=lambda cell: cell.n)
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
        bench = Bench(Path(folder), largest, arguments.data_dir, arguments.peers, arguments.threads, arguments.repeats)
        if complete:
            bench.out, bench.rows = RESULTS, stored(RESULTS)
        for jobs in plan:
            if arguments.again or not done_before(bench.rows, jobs, arguments.threads, arguments.peers is not None):
                bench.run(jobs)
    if not complete:
        sys.exit(bool(bench.failed) or not fast_enough(Figures(bench.rows)))
    write_page(bench.rows, PAGE)
    for goal in goals(Figures(bench.rows)):
        print(f"{goal.kernel:20s} {goal.aim:66s} {goal.data:10s} {goal.measured:26s} {verdict(goal.met)}")
    sys.exit(bool(bench.failed))


if __name__ == "__main__":
    main()
