"""``ally generate``: what would a maximally informative sample look like?"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ally.cli.console import live_progress, make_printable, stderr, stdout
from ally.errors import InputError

if TYPE_CHECKING:
    from ally.generation import Learned, Progression

Head = Literal["ridge", "paper"]
Start = Literal["pool", "labelled"]
of_data = partial(typer.Option, rich_help_panel="Data")
of_training = partial(typer.Option, rich_help_panel="Training")
of_ascent = partial(typer.Option, rich_help_panel="Gradient ascent")
DRAWN_AS = {"digits": "1x8x8"}
"""Tables of the catalogue whose rows are images."""


@dataclass(frozen=True)
class PoolWithLabels:
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
        Path | None,
        typer.Argument(
            help="Your own features: .npy, .npz (X, ids), .csv or .parquet; needs --labels.", metavar="POOL"
        ),
    ] = None,
    labels: Annotated[Path | None, of_data(help="Labels for POOL: a table with the columns id and label.")] = None,
    dataset: Annotated[
        str | None, of_data(help="A name listed by `ally datasets`, or a file (default: digits).")
    ] = None,
    label: Annotated[str | None, of_data(help="Column with the labels, if --dataset is a table.")] = None,
    share: Annotated[float | None, of_training(help="Share of the data set to train on (default: 0.1).")] = None,
    n: Annotated[int, of_ascent("--n", help="How many samples to generate.", min=1, metavar="N")] = 8,
    start: Annotated[
        Start, of_ascent(help="Start from the lowest predicted duals in the pool, or among the labelled.")
    ] = "pool",
    steps: Annotated[int, of_ascent(help="Number of steps.", min=1, metavar="N")] = 200,
    step_size: Annotated[float, of_ascent(help="Length of a step, in standard deviations of the features.")] = 0.01,
    ceiling: Annotated[float | None, of_ascent(help="Stop a sample at this predicted dual.")] = None,
    head: Annotated[
        Head, of_training(help="How duals are predicted: ridge (on the uncertainty) or the paper's network.")
    ] = "ridge",
    smooth: Annotated[
        bool,
        of_ascent("--smooth", help="Change features together, as they vary in the data, not each on its own."),
    ] = False,
    eps: Annotated[
        float | None,
        of_training(help="Keep every training loss below this (default: 0.01; with the paper's head, its value)."),
    ] = None,
    epochs: Annotated[
        int | None, of_training(help="Epochs (default: 40; with the paper's head, at most 100).", min=1, metavar="N")
    ] = None,
    validation: Annotated[
        int | None,
        of_training(
            help="Labels kept for early stopping (default: 0; with the paper's head 200, at most a tenth).",
            min=0,
            metavar="N",
        ),
    ] = None,
    image_shape: Annotated[
        str | None, of_data(help="Read rows as images of this shape, such as 28x28 or 3x32x32.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same samples.")] = 0,
    data_dir: Annotated[
        Path | None, of_data(help="Where the data sets are (default: ALLY_DATA, else a cache folder).")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for progression.png, .svg and .csv, and samples.npy.")] = Path(
        "ally-generate"
    ),
) -> None:
    """Change samples until the model would learn the most from them (gradient ascent on the predicted dual).

    Example: ally generate --dataset digits --n 8 --out ally-generate
    """
    from ally.generation import ascend, learn

    began = time.perf_counter()
    if out.exists() and not out.is_dir():
        raise InputError(f"--out {out} is a file; give the name of a folder")
    if pool is None:
        name = "digits" if dataset is None else dataset
        labelled = _from_dataset(
            name, label, 0.1 if share is None else share, image_shape or DRAWN_AS.get(name), seed, data_dir, labels
        )
    else:
        labelled = _from_files(pool, labels, image_shape, {"--dataset": dataset, "--label": label, "--share": share})
    with live_progress() as progress:
        learned = learn(
            labelled.X,
            labelled.y,
            task=labelled.task,
            classes=labelled.classes,
            random_state=seed,
            progress=progress,
            **_training(head, eps, epochs, validation, sum(label is not None for label in labelled.y)),
        )
        rows = learned.quietest(n, start)
        path = ascend(
            learned.dual,
            labelled.X[rows],
            bounds=learned.bounds,
            steps=steps,
            step_size=step_size,
            ceiling=ceiling,
            smooth=labelled.X if smooth else None,
            random_state=seed,
            progress=progress,
        )
    _write(out, path, labelled, rows)
    for note in (*labelled.notes, *learned.notes, *path.notes):
        print(f"note: {make_printable(note)}", file=sys.stderr)
    for line in (
        *_story(labelled, learned, path),
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
    label: str | None,
    share: float,
    image_shape: str | None,
    seed: int,
    data_dir: Path | None,
    labels: Path | None,
) -> PoolWithLabels:
    """A share of the pool, drawn at random, keeps its labels."""
    import numpy as np

    from ally.data import KINDS
    from ally.data.catalogue import load
    from ally.rng import streams

    if labels is not None:
        raise InputError("--labels is for POOL; a data set has its own labels")
    if not 0 < share <= 1:
        raise InputError(f"--share {share:g} is out of range; give a number above 0 and up to 1")
    data = load(name, data_dir, label=label)
    if KINDS[data.kind].widget == "text":
        raise InputError(
            f"{name} is text, and changed features no longer correspond to a text; choose images or a table"
        )
    n = len(data.pool_labels)
    known = streams(seed).numpy("share").permutation(n)[: max(1, round(share * n))]
    y: list[Any] = [None] * n
    for row in known.tolist():
        y[row] = data.pool_labels[row]
    classes = None if data.task == "regression" else np.unique(data.pool_labels).tolist()
    return PoolWithLabels(data.name, _shaped(data.pool, image_shape), y, data.task, classes, notes=data.notes)


def _from_files(pool: Path, labels: Path | None, image_shape: str | None, others: dict[str, Any]) -> PoolWithLabels:
    """The samples and labels of the user; every label is trained on."""
    import numpy as np

    from ally.data import Ids, open_pool
    from ally.data.aligning import labels_by_row
    from ally.data.labels_file import read_labels

    given = next((option for option, value in others.items() if value is not None), None)
    if given is not None:
        raise InputError(f"{given} and POOL {pool} exclude each other; leave one out")
    if labels is None:
        raise InputError(f"POOL {pool} needs --labels: a table with columns id and label")
    opened = open_pool(pool, labelled=True, encoder=None)
    known = Ids(len(opened.source), opened.ids)
    X = opened.source.read(np.arange(len(known)))
    y = labels_by_row(read_labels(labels), known)
    names = None if opened.names is None or image_shape else list(opened.names)
    return PoolWithLabels(pool.stem, _shaped(X, image_shape), y, "auto", ids=known, names=names)


def _shaped(X: Any, image_shape: str | None) -> Any:
    """Rows as images."""
    import math

    if image_shape is None:
        return X
    sides = image_shape.lower().split("x")
    if len(sides) not in (2, 3) or not all(side.isdigit() and int(side) for side in sides):
        raise InputError(f"--image-shape {image_shape!r} is not a shape; write 28x28, or 3x32x32 with channels first")
    shape = tuple(map(int, sides))
    if math.prod(shape) != math.prod(X.shape[1:]):
        raise InputError(
            f"--image-shape {image_shape} has {math.prod(shape)} numbers, but a sample has {math.prod(X.shape[1:])}; "
            "make them equal"
        )
    return X.reshape(len(X), *(shape if len(shape) == 3 else (1, *shape)))


def _write(out: Path, path: Progression, labelled: PoolWithLabels, rows: Any) -> None:
    import numpy as np

    from ally.generation import draw

    out.mkdir(parents=True, exist_ok=True)
    draw(path, out / "progression.png", out / "progression.svg", names=labelled.names)
    starts = rows if labelled.ids is None else labelled.ids.of(rows)
    path.table(labelled.names, starts).to_csv(out / "progression.csv", index=False)
    np.save(out / "samples.npy", path.samples[-1])


def _story(labelled: PoolWithLabels, learned: Learned, path: Progression) -> list[str]:
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
        f"{labelled.title}: trained on {learned.report.samples} labelled samples{held_out}, "
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
