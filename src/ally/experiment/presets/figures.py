"""The curves of the paper: strategies against each other on its data sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from ally.experiment.folder import Grid
from ally.experiment.presets.base import (
    CIFAR10,
    DIABETES,
    DIGITS,
    MNIST,
    PARKINSONS,
    SMOKE,
    STL10,
    SVHN,
    TINY_IMAGENET,
    Bed,
    Preset,
    Rounds,
    Scale,
    Variant,
    bed_or,
    cells,
    grid,
)

QUESTION = "How many labels does each strategy need?"
BAIT = Variant("bait", "10000 candidates", changes=(("candidates", 10_000),), seeds=3)
"""Its cost grows with candidates × classes² × embedding: all of them would take longer than everything else
together."""
COMPARED = ("ally-clusters", "ally-paper", "accumulated-loss", "random", "entropy", "margin", "badge", "coreset")
FEW = ("ally-clusters", "ally-paper", "random", "margin", "badge", "coreset")


def classification(bed: Bed, batch: int, rounds: int, scale: Scale, data_dir: Path | None) -> Grid:
    title = f"{bed.dataset}, batches of {batch}"
    if scale == "smoke":
        return grid(
            title,
            QUESTION,
            scale,
            cells(DIGITS, SMOKE, map(Variant, ("ally-clusters", "badge", "random"))),
            substitute=stands_in(DIGITS, bed),
        )
    whole = Rounds(init=200, batch=batch, rounds=rounds, seeds=5)
    if scale == "full":
        return grid(title, QUESTION, scale, cells(bed, whole, [*map(Variant, COMPARED), BAIT]))
    less = replace(whole, rounds=min(4, rounds), seeds=3)
    if bed.model == "mlp":
        return grid(title, QUESTION, scale, cells(bed, less, map(Variant, FEW)))
    bed = replace(bed, training=replace(bed.training, epochs=20))
    fewer = (("candidates", 5000), ("test", 2000))
    return grid(title, QUESTION, scale, cells(bed, less, [Variant(name, changes=fewer) for name in FEW]))


def parkinsons(scale: Scale, data_dir: Path | None) -> Grid:
    title, question = "Parkinsons Telemonitoring", "Does ALLY choose better than Random and Coreset for regression?"
    strategies = ("ally-clusters", "ally-paper", "accumulated-loss", "random", "coreset", "kmeanspp", "lcmd", "bait")
    if scale == "smoke":
        return grid(
            title,
            question,
            scale,
            cells(DIABETES, SMOKE, map(Variant, ("ally-clusters", "coreset", "random"))),
            substitute=stands_in(DIABETES, PARKINSONS),
        )
    rounds = Rounds(init=200, batch=200, rounds=9, seeds=10 if scale == "full" else 5)
    names = ("ptd-total", "ptd-total-by-subject", *(("ptd-motor", "ptd-motor-by-subject") if scale == "full" else ()))
    made = [
        cell for name in names for cell in cells(replace(PARKINSONS, dataset=name), rounds, map(Variant, strategies))
    ]
    notes = ["the paper's random split lets recordings of one person be on both sides; by-subject keeps people apart"]
    return grid(title, question, scale, made, notes=notes)


def tiny_imagenet(scale: Scale, data_dir: Path | None) -> Grid:
    title = "Tiny ImageNet, batches of 1000"
    if scale == "smoke":
        return classification(TINY_IMAGENET, 1000, 0, scale, data_dir)
    bed, substitute = bed_or(TINY_IMAGENET, replace(TINY_IMAGENET, dataset="tiny-imagenet-32"), data_dir)
    rounds = Rounds(
        init=200, batch=1000, rounds=3 if scale == "small" or substitute else 9, seeds=2 if scale == "small" else 5
    )
    names = COMPARED if scale == "full" else FEW
    notes = ["bait is not run: its cost grows with the square of the 200 classes"]
    return grid(title, QUESTION, scale, cells(bed, rounds, map(Variant, names)), notes=notes, substitute=substitute)


def stands_in(bed: Bed, wanted: Bed) -> str:
    return f"{bed.dataset} stands in for {wanted.dataset} at this scale"


def curve(bed: Bed, batch: int, rounds: int, place: str, claim: str) -> Preset:
    build: Callable[[Scale, Path | None], Grid] = partial(classification, bed, batch, rounds)
    return Preset(f"{bed.dataset} with {bed.model}, batches of {batch}", place, claim, build)


TOP = "ALLY is among the two best; it needs {} % fewer labels than the best baseline for 97 % of the final accuracy."
NO_WORD = "No figure is given in the text."
FIGURES = {
    "mnist-200": curve(
        MNIST,
        200,
        9,
        "figure 2, top",
        "BADGE and BAIT beat ALLY, which the paper explains by the weak embeddings of an MLP.",
    ),
    "mnist-1000": curve(MNIST, 1000, 5, "figure 2, bottom", "BADGE and BAIT beat ALLY."),
    "cifar10-200": curve(CIFAR10, 200, 9, "figure 2, top", TOP.format(2)),
    "cifar10-1000": curve(CIFAR10, 1000, 5, "figure 2, bottom", NO_WORD),
    "svhn-200": curve(SVHN, 200, 9, "figure 2, top", NO_WORD),
    "svhn-1000": curve(SVHN, 1000, 5, "figure 2, bottom", TOP.format(8)),
    "stl10-200": curve(STL10, 200, 9, "figure 2, top", TOP.format(9)),
    "stl10-1000": curve(STL10, 1000, 5, "figure 2, bottom", NO_WORD),
    "ptd": Preset(
        "Parkinsons Telemonitoring with an MLP, batches of 200",
        "figure 3",
        "ALLY beats Random and Coreset, most at the start.",
        parkinsons,
    ),
    "tiny-imagenet": Preset("Tiny ImageNet with a ResNet-18, batches of 1000", "appendix G", NO_WORD, tiny_imagenet),
}
