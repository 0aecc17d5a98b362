"""The paper's ablations: constraint level, number of clusters, copies in the pool."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from ally.experiment.folder import Grid
from ally.experiment.presets.base import (
    DIGITS,
    MNIST,
    SMOKE,
    STL10,
    Bed,
    Preset,
    Rounds,
    Scale,
    Variant,
    absent,
    bed_or,
    cells,
    grid,
)
from ally.experiment.trial import Copies
from ally.learning.objectives import PDCL
from ally.scoring import PredictedDual
from ally.selection import ClusterTop, Perturbed, Select
from ally.strategies import ALGORITHM_1, DUALS, PAPER_DUAL, Strategy

RANDOM = Variant("random")
FEWER = 10_000
"""Candidates of the small scale."""


def paper_ally(select: Select, objective: PDCL = ALGORITHM_1) -> Strategy:
    """The paper's ALLY with another batch selection or constraint level."""
    return Strategy(PAPER_DUAL, select, objective)


def own_ally(select: Select, objective: PDCL = DUALS) -> Strategy:
    """The same of this project's default: its head, its way to read slacks."""
    return Strategy(PredictedDual(), select, objective)


def asking(scale: Scale, lines: Iterable[Variant]) -> Iterator[Variant]:
    """The lines; at the small scale with fewer candidates, the same for all."""
    for line in lines:
        yield replace(line, changes=(*line.changes, ("candidates", FEWER))) if scale == "small" else line


def bed_for(wanted: Bed, scale: Scale, data_dir: Path | None) -> tuple[Bed, str | None]:
    """The paper's data; else MNIST; at the smallest scale digits."""
    if scale == "smoke":
        return DIGITS, f"digits stand in for {wanted.dataset} at this scale"
    return bed_or(wanted, MNIST, data_dir)


def rounds_for(scale: Scale) -> Rounds:
    return {"smoke": SMOKE, "small": Rounds(200, 200, 5, 3), "full": Rounds(200, 200, 9, 5)}[scale]


def tightness(scale: Scale, data_dir: Path | None) -> Grid:
    """ε × the technique that makes batches diverse, on the paper's two data sets; `small` has one of them."""
    bed, substitute = bed_for(STL10, scale, data_dir)
    beds, notes = [bed], []
    if bed == MNIST:
        # MNIST is a panel of the figure itself.
        notes, substitute = [f"the figure's panel of stl10 is left out: {absent(STL10)}"], None
    elif bed == STL10 and scale == "full":
        beds.append(MNIST)
    levels = {
        "smoke": (0.01, 2.0),
        "small": (0.01, 0.2, 2.0, 20.0, "auto"),
        "full": (0.01, 0.05, 0.2, 0.5, 1.0, 2.0, 20.0, "auto"),
    }[scale]
    techniques: dict[str, Select] = {"k-means": ClusterTop(), "perturbed": Perturbed("softrank")}

    def lines() -> Iterator[Variant]:
        yield RANDOM
        for name, select in techniques.items():
            for eps in levels:
                setting = f"{name}, ε = {eps}"
                yield Variant("ally-paper", setting, paper_ally(select, replace(ALGORITHM_1, eps=eps)))
                yield Variant("ally-clusters", setting, own_ally(select, replace(DUALS, eps=eps)))

    notes.append(
        "perturbed: soft-rank noise, the strongest of the three kinds in `diversity`; the others drown the duals"
    )
    made = [cell for one in beds for cell in cells(one, rounds_for(scale), asking(scale, lines()))]
    question = "How much does ε matter, and to which batch selection?"
    return grid("Constraint level", question, scale, made, notes=notes, substitute=substitute)


def clusters(scale: Scale, data_dir: Path | None) -> Grid:
    bed, substitute = bed_for(MNIST, scale, data_dir)
    rounds = rounds_for(scale)
    counts = [k for k in ((1, 5) if scale == "smoke" else (1, 10, 50, 100)) if k < rounds.batch] + [rounds.batch]
    lines = [
        Variant(name, f"k = {k}", with_clusters(ClusterTop(clusters=k)))
        for k in counts
        for name, with_clusters in (("ally-paper", paper_ally), ("ally-clusters", own_ally))
    ]
    made = cells(bed, rounds, asking(scale, [RANDOM, *lines]))
    return grid("Number of clusters", "Are more clusters better?", scale, made, substitute=substitute)


def redundancy(scale: Scale, data_dir: Path | None) -> Grid:
    """Copies per sample, exact and with noise, × Entropy, ALLY, and ALLY with ten times fewer clusters; the paper's
    ALLY and ours."""
    bed, substitute = bed_for(STL10, scale, data_dir)
    rounds = replace(rounds_for(scale), rounds=SMOKE.rounds if scale == "smoke" else 5)
    different = {"smoke": 300, "small": 5000, "full": 11_000}[scale]
    levels = {"smoke": (1, 3), "small": (1, 5), "full": (1, 2, 5, 10)}[scale]
    few = max(1, rounds.batch // 10)
    compared = {
        "entropy": None,
        "ally-paper": paper_ally(ClusterTop()),
        "ally-paper, low diversity": paper_ally(ClusterTop(clusters=few)),
        "ally-clusters": own_ally(ClusterTop()),
        "ally-clusters, low diversity": own_ally(ClusterTop(clusters=few)),
        "random": None,
    }

    def lines() -> Iterator[Variant]:
        for times in levels:
            for noise in (0.0,) if times == 1 else (0.0, 0.1):
                kind = "no copies" if times == 1 else f"{times} copies" if not noise else f"{times} copies with noise"
                for name, custom in compared.items():
                    yield Variant(name, kind, custom, changes=(("copies", Copies(times, noise, different)),))

    notes = [
        f"{different} different samples, drawn anew for each seed; noise of a tenth of the pixels' deviation",
        f"ALLY, the paper's and ours: k-means over all candidates, {rounds.batch} clusters; low diversity: the same "
        f"with {few}",
    ]
    made = cells(bed, rounds, lines())
    return grid(
        "Redundancy", "What do copies in the pool do to each strategy?", scale, made, notes=notes, substitute=substitute
    )


ABLATIONS = {
    "epsilon-ablation": Preset(
        "Constraint level ε × batch selection, STL-10 and MNIST",
        "figure 4",
        "ε of 20 nats makes all duals zero, 2 finds outliers, 1.05 to 1.25 times the unconstrained loss works; "
        "k-means is less sensitive to it than perturbed scores.",
        tightness,
    ),
    "clusters": Preset("Number of clusters k, MNIST with an MLP", "appendix F", "More clusters are better.", clusters),
    "redundancy": Preset(
        "Copies of each sample, STL-10 (MNIST where it is absent)",
        "figure 5",
        "Copies hurt Entropy and ALLY with few clusters, not ALLY.",
        redundancy,
    ),
}
