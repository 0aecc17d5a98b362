"""Experiments that the paper's text calls for: explanations to check, and its future work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ally.experiment.cell import Cell
from ally.experiment.folder import Grid
from ally.experiment.presets.ablations import asking, bed_for, own_ally, rounds_for
from ally.experiment.presets.base import (
    DIABETES,
    DIGITS,
    MNIST,
    PARKINSONS,
    SMOKE,
    Bed,
    Preset,
    Rounds,
    Scale,
    Variant,
    cells,
    grid,
)
from ally.learning.objectives import Feasibility, Objective, PDCLUnlabelled, SmoothUnlabelled
from ally.learning.training import Training
from ally.scoring import PredictedDual
from ally.selection import BestMatch, ClusterTop, Herding, KCenter, KMeansPP, Perturbed, Select, Shortlist, Top
from ally.strategies import ALGORITHM_1, DUALS

DUAL = PredictedDual()
TECHNIQUES: dict[str, Select] = {
    "none": Top(),
    "k-means, k = b, all candidates": ClusterTop(),
    "k-means, k = b, 20 b highest": ClusterTop(shortlist=20),
    "k-means, k = b / 10": ClusterTop(clusters=20),
    "perturbed, softmax": Perturbed("softmax"),
    "perturbed, power": Perturbed("power"),
    "perturbed, softrank": Perturbed("softrank"),
    "k-center, 20 b highest": Shortlist(KCenter(), times=20),
    "k-means++, 20 b highest": Shortlist(KMeansPP(), times=20),
    "herding, weighted": Herding(weighted=True),
    "best matching": BestMatch(DUAL),
}


def capacity(scale: Scale, data_dir: Path | None) -> Grid:
    """MNIST with an MLP against a small convolutional network."""
    bed, substitute = bed_for(MNIST, scale, data_dir)
    rounds = rounds_for(scale)
    names = ("ally-paper", "ally-clusters", "badge", *(() if scale == "smoke" else ("margin",)), "random")
    bed = bed if scale != "smoke" else replace(bed, dataset="digits-images")
    beds = (bed, replace(bed, model="cnn", training=replace(bed.training, lr=1e-3)))
    made = [
        cell for one in beds for cell in cells(one, rounds, asking(scale, [Variant(name, one.model) for name in names]))
    ]
    question = "Does ALLY's loss to BADGE on MNIST come from the MLP's weak embeddings?"
    return grid("Capacity", question, scale, made, substitute=substitute)


def bias(scale: Scale, data_dir: Path | None) -> Grid:
    """Three objectives trained on the same labelled sets: random ones, and ones shifted by active choice."""
    bed, substitute = bed_for(MNIST, scale, data_dir)
    objectives: dict[str, str | Objective] = {
        "erm": "erm",
        "pdcl": ALGORITHM_1,
        "feasibility": Feasibility(slacks="all", dual_every="epoch"),
    }
    lines = [
        Variant(name, f"trained by {kind}", objective=objective, changes=(("asks_as", name),))
        for name in ("random", "entropy", "ally-paper", "ally-clusters")
        for kind, objective in objectives.items()
    ]
    question = (
        "Does training for feasibility suffer less from an actively chosen training set than empirical "
        "risk minimisation?"
    )
    notes = [
        "a strategy chooses with its own training, whose time is part of the query's; "
        "the three objectives are then trained on the same labels"
    ]
    made = cells(bed, rounds_for(scale), asking(scale, lines))
    return grid("Bias of active sampling", question, scale, made, notes=notes, substitute=substitute)


def diversity(scale: Scale, data_dir: Path | None) -> Grid:
    bed, substitute = bed_for(MNIST, scale, data_dir)
    chosen = (
        {name: TECHNIQUES[name] for name in ("none", "perturbed, softmax", "k-means, k = b, 20 b highest")}
        if scale == "smoke"
        else TECHNIQUES
    )
    lines = [Variant("ally-clusters", name, own_ally(select)) for name, select in chosen.items()]
    question = "Which technique makes ALLY's batches diverse, at which cost?"
    made = cells(bed, rounds_for(scale), [Variant("random"), *lines])
    return grid("Batch diversity", question, scale, made, substitute=substitute)


def self_supervised(scale: Scale, data_dir: Path | None) -> Grid:
    """Strategy × objective: losses that need no label, over the whole pool, against training on labels alone."""

    objectives: dict[str, str | Objective] = {
        "erm": "erm",
        "pdcl": DUALS,
        "smooth-unlabelled": SmoothUnlabelled(steps=40) if scale == "smoke" else "smooth-unlabelled",
        "pdcl-unlabelled": PDCLUnlabelled(steps=40) if scale == "smoke" else "pdcl-unlabelled",
    }

    def lines(*names: str) -> Iterator[Variant]:
        for objective in objectives:
            for name in names:
                # The dual needs duals: under erm it is the accumulated loss, which trains as erm does; a penalty has
                # nothing like it.
                if (name, objective) == ("ally-clusters", "smooth-unlabelled"):
                    continue
                trained = "accumulated-loss" if (name, objective) == ("ally-clusters", "erm") else objectives[objective]
                yield Variant(name, objective, objective=trained)

    def made() -> Iterator[tuple[str, Cell]]:
        classes, numbers = (
            ("random", "margin", "badge", "ally-clusters"),
            ("random", "coreset", "lcmd", "ally-clusters"),
        )
        if scale == "smoke":
            yield from cells(DIGITS, replace(SMOKE, rounds=1, seeds=1), lines("random", "ally-clusters"))
            yield from cells(DIABETES, replace(SMOKE, rounds=1, seeds=1), lines("random", "ally-clusters"))
            return
        seeds = 2 if scale == "small" else 5
        gentle = Training(lr=2e-3, epochs=30, batch_size=64)
        beds: list[tuple[Bed, Rounds, tuple[str, ...]]] = [
            (replace(MNIST, training=gentle), Rounds(100, 150, 4 if scale == "small" else 6, seeds), classes),
            (replace(PARKINSONS, training=gentle), Rounds(200, 200, 4, seeds), numbers),
            (Bed("kin8nm", "mlp", gentle, "mse"), Rounds(200, 200, 4, seeds), numbers),
            (Bed("trec", "mlp", gentle), Rounds(200, 200, 4, seeds), classes),
        ]
        for bed, rounds, names in beds:
            yield from cells(bed, rounds, lines(*names))

    question = "What do losses that need no label save, as constraints or as a penalty, with which strategy?"
    notes = ["ally-clusters is not run with smooth-unlabelled, a penalty of fixed weight, which has no duals"]
    return grid("Self-supervised constraints", question, scale, made(), notes=notes)


BEYOND = {
    "capacity": Preset(
        "MNIST: MLP against a small CNN",
        "section 5.2",
        "ALLY's loss on MNIST comes from the weak embeddings of a small MLP.",
        capacity,
    ),
    "bias": Preset(
        "Objectives on the same shifted labels",
        "section 3.3, appendix C",
        "Feasibility suffers less from the shift than ERM.",
        bias,
    ),
    "diversity": Preset(
        "ALLY × diversity technique, by accuracy and cost", "future work", "Left open by the paper.", diversity
    ),
    # Constraints over the pool take 1500 steps and more: they are given those, and no validation labels.
    "self-supervised": Preset(
        "Strategy × objective, four data sets",
        "future work",
        "Left open by the paper.",
        self_supervised,
        protocol="fixed",
    ),
}
