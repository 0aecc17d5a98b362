"""``ally generate``: what would a maximally informative sample look like?"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ally.cli.console import live_progress, stderr, stdout

if TYPE_CHECKING:
    from ally.generation import Learned, Progression

Head = Literal["ridge", "paper"]
Start = Literal["pool", "labelled"]
DRAWN_AS = {"digits": "1x8x8"}
"""Tables of the catalogue whose rows are images."""


@dataclass(frozen=True)
class Material:
    """Samples, the labels known of them (None elsewhere) and their names."""

    title: str
    X: Any
    y: list[Any]
    task: Any
    classes: Any = None
    ids: Any = None
    names: list[str] | None = None
    notes: tuple[str, ...] = ()


def generate(
    pool: Annotated[
        Path | None, typer.Argument(help="Features of yours: .npy, .npz (X, ids), .csv or .parquet; needs --labels.")
    ] = None,
    labels: Annotated[Path | None, typer.Option(help="Labels for POOL: a table with columns id and label.")] = None,
    dataset: Annotated[
        str | None, typer.Option(help="A name that `ally datasets` lists, or a file (default: digits).")
    ] = None,
    target: Annotated[str | None, typer.Option(help="Column with the labels, if --dataset is a table.")] = None,
    share: Annotated[
        float | None, typer.Option(help="Share of the data set to label and train on (default: 0.1).")
    ] = None,
    samples: Annotated[int, typer.Option(help="How many samples to lead.", min=1)] = 8,
    start: Annotated[
        Start, typer.Option(help="Start from the lowest predicted duals of the unlabelled pool or of the labelled.")
    ] = "pool",
    steps: Annotated[int, typer.Option(help="Steps of gradient ascent.", min=1)] = 200,
    step_size: Annotated[float, typer.Option(help="Length of a step, in standard deviations of the features.")] = 0.01,
    ceiling: Annotated[float | None, typer.Option(help="Lead no sample above this predicted dual.")] = None,
    head: Annotated[
        Head, typer.Option(help="How duals are predicted: ridge on the doubt, or the paper's network.")
    ] = "ridge",
    smooth: Annotated[
        bool,
        typer.Option(
            "--smooth", help="Change features the way they vary together in the data, rather than each on its own."
        ),
    ] = False,
    eps: Annotated[
        float | None,
        typer.Option(
            help="Every training loss is to stay below this (default: 0.01; the paper's value with its head)."
        ),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(help="Epochs of training (default: 40; with the paper's head 100 at most).", min=1)
    ] = None,
    validation: Annotated[
        int | None,
        typer.Option(
            help="Labels to stop training by (default: none; with the paper's head 200, a tenth at most).", min=0
        ),
    ] = None,
    image_shape: Annotated[
        str | None, typer.Option(help="Read rows as images of this shape, such as 28x28 or 3x32x32.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Equal seeds give equal samples.")] = 0,
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder of the data sets (default: ALLY_DATA, else a cache folder).")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for progression.png, .svg and .csv, and samples.npy.")] = Path(
        "ally-generate"
    ),
) -> None:
    """Lead uninformative samples to the highest predicted dual, by gradient ascent on the samples."""
    from ally.errors import InputError
    from ally.generation import ascend, learn

    began = time.perf_counter()
    if out.exists() and not out.is_dir():
        raise InputError(f"--out {out} is a file; give the name of a folder")
    if pool is None:
        name = "digits" if dataset is None else dataset
        material = _from_dataset(
            name, target, 0.1 if share is None else share, image_shape or DRAWN_AS.get(name), seed, data_dir, labels
        )
    else:
        material = _from_files(pool, labels, image_shape, {"--dataset": dataset, "--target": target, "--share": share})
    with live_progress() as progress:
        learned = learn(
            material.X,
            material.y,
            task=material.task,
            classes=material.classes,
            random_state=seed,
            progress=progress,
            **_training(head, eps, epochs, validation, sum(label is not None for label in material.y)),
        )
        rows = learned.quietest(samples, start)
        path = ascend(
            learned.dual,
            material.X[rows],
            bounds=learned.bounds,
            steps=steps,
            step_size=step_size,
            ceiling=ceiling,
            smooth=material.X if smooth else None,
            random_state=seed,
            progress=progress,
        )
    _write(out, path, material, rows)
    for note in (*material.notes, *learned.notes, *path.notes):
        stderr.print(f"note: {note}", highlight=False, soft_wrap=True)
    for line in (
        *_story(material, learned, path),
        f"{out / 'progression.png'}, progression.svg, progression.csv and samples.npy",
    ):
        stdout.print(line, highlight=False, soft_wrap=True)
    stderr.print(f"{time.perf_counter() - began:.0f} s", highlight=False)


def _training(head: Head, eps: float | None, epochs: int | None, validation: int | None, labels: int) -> dict[str, Any]:
    """How to learn. The paper's head is fitted on duals as the paper trains them: Algorithm 1, stopped early by some of
    the labels."""
    from dataclasses import replace

    from ally.experiment.protocol import MOST_EPOCHS, PATIENCE
    from ally.learning.dual_head import PaperHead, RidgeHead
    from ally.learning.training import Training
    from ally.strategies import ALGORITHM_1, DUALS

    if head == "ridge":
        own = DUALS if eps is None else replace(DUALS, eps=eps)
        return {
            "objective": own,
            "head": RidgeHead(),
            "training": Training(epochs=epochs or 40),
            "validation": validation or 0,
        }
    return {
        "objective": replace(ALGORITHM_1, eps=eps),
        "head": PaperHead(),
        "training": Training(epochs=epochs or MOST_EPOCHS, patience=PATIENCE),
        "validation": min(200, labels // 10) if validation is None else validation,
    }


def _from_dataset(
    name: str,
    target: str | None,
    share: float,
    image_shape: str | None,
    seed: int,
    data_dir: Path | None,
    labels: Path | None,
) -> Material:
    """A share of the pool, drawn at random, keeps its labels."""
    import numpy as np

    from ally.datasets import load
    from ally.errors import InputError
    from ally.rng import streams

    if labels is not None:
        raise InputError("--labels needs POOL; a data set has its own labels")
    if not 0 < share <= 1:
        raise InputError(f"--share {share:g} is not a share; give a number above 0 and up to 1")
    data = load(name, data_dir, target=target)
    if data.kind == "text":
        raise InputError(
            f"{name} is text: its features are hashed words, and no text belongs to a changed one; choose images or a "
            "table"
        )
    n = len(data.pool_labels)
    known = streams(seed).numpy("share").permutation(n)[: max(1, round(share * n))]
    y: list[Any] = [None] * n
    for row in known.tolist():
        y[row] = data.pool_labels[row]
    classes = None if data.task == "regression" else np.unique(data.pool_labels).tolist()
    return Material(data.name, _shaped(data.pool, image_shape), y, data.task, classes, notes=data.notes)


def _from_files(pool: Path, labels: Path | None, image_shape: str | None, others: dict[str, Any]) -> Material:
    """The samples and labels of the user; every label is trained on."""
    import numpy as np

    from ally.errors import InputError
    from ally.pool import Ids
    from ally.sources import as_source
    from ally.sources.arrays.files import read_labels, read_pool

    given = next((option for option, value in others.items() if value is not None), None)
    if given is not None:
        raise InputError(f"{given} does not go with POOL {pool}; leave out one of the two")
    if labels is None:
        raise InputError(f"POOL {pool} needs --labels: a table with columns id and label")
    X, ids = read_pool(pool)
    names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
    if names is not None:
        source = as_source(X)
        X = source.read(np.arange(len(source)))
    known = Ids(len(X), ids)
    y: list[Any] = [None] * len(X)
    for id, label in read_labels(labels).items():
        y[known.row(id)] = label
    return Material(pool.stem, _shaped(X, image_shape), y, "auto", ids=known, names=None if image_shape else names)


def _shaped(X: Any, image_shape: str | None) -> Any:
    """Rows as images."""
    import math

    from ally.errors import InputError

    if image_shape is None:
        return X
    sides = image_shape.lower().split("x")
    if len(sides) not in (2, 3) or not all(side.isdigit() and int(side) for side in sides):
        raise InputError(f"--image-shape {image_shape!r} is not a shape; write 28x28, or 3x32x32 with channels first")
    shape = tuple(map(int, sides))
    if math.prod(shape) != math.prod(X.shape[1:]):
        raise InputError(
            f"--image-shape {image_shape} holds {math.prod(shape)} numbers and a sample {math.prod(X.shape[1:])}; "
            "make them equal"
        )
    return X.reshape(len(X), *(shape if len(shape) == 3 else (1, *shape)))


def _write(out: Path, path: Progression, material: Material, rows: Any) -> None:
    import numpy as np

    from ally.generation import draw

    out.mkdir(parents=True, exist_ok=True)
    draw(path, out / "progression.png", out / "progression.svg", names=material.names)
    starts = rows if material.ids is None else material.ids.of(rows)
    path.table(material.names, starts).to_csv(out / "progression.csv", index=False)
    np.save(out / "samples.npy", path.samples[-1])


def _story(material: Material, learned: Learned, path: Progression) -> list[str]:
    """What happened, in sentences."""
    quality = (
        ""
        if learned.rank_quality is None
        else f"; the dual head ranks held-out ones with correlation {learned.rank_quality:.2f}"
    )
    rose = int((path.duals[-1] > path.duals[0]).sum())
    held_out = (
        f" and stopped at epoch {learned.report.kept_epoch} by {learned.validation} others"
        if learned.validation
        else ""
    )
    lines = [
        f"{material.title}: trained on {learned.report.samples} labelled samples{held_out}, "
        f"{100 * (learned.report.positive_duals or 0):.0f} % of their duals are positive{quality}",
        f"predicted dual from {path.duals[0].mean():.3g} to {path.duals[-1].mean():.3g} on average, up for {rose} of "
        f"{len(path)} samples",
    ]
    if len(learned.pool.rows):
        lines.append(
            f"{int((path.duals[-1] >= learned.high()).sum())} of {len(path)} end among the highest tenth of the "
            "pool's duals"
        )
    if path.probabilities is not None:
        first, last = path.probabilities[[0, -1]].max(axis=2).mean(axis=1)
        lines.append(f"probability of the likeliest class from {first:.2f} to {last:.2f} on average")
    return lines
