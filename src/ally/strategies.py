"""The catalogue: every strategy is objective × score × selection (with its representation)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ally.catalogue_names import ensure_task
from ally.checks import check_count
from ally.errors import InputError
from ally.features import Gradient, LastLayer
from ally.learning.dual_head import PaperHead
from ally.learning.objectives import (
    PDCL,
    Feasibility,
    Objective,
    PDCLUnlabelled,
    resolve_objective,
)
from ally.learning.readouts import Readout, readouts_of
from ally.registry import Registry
from ally.scoring import (
    Constant,
    CriticUncertainty,
    Disagreement,
    Discriminator,
    DualByTask,
    Entropy,
    Margin,
    MutualInformation,
    PredictedDual,
    PredictedLoss,
    Random,
    Score,
)
from ally.selection import (
    LCMD,
    BatchBALD,
    ByTask,
    ClusterCentre,
    ClusterMargin,
    ClusterTop,
    Discriminative,
    FisherGreedy,
    Herding,
    KCenter,
    KMeansPP,
    Perturbed,
    ProbCover,
    Select,
    Top,
    TypiClust,
)
from ally.types import Task


@dataclass(frozen=True)
class Strategy:
    """How the learner is trained, how candidates are scored, and how a batch is chosen from the scores."""

    score: Score = Constant()
    select: Select = Top()
    objective: str | Objective = "erm"
    about: str = ""
    patience: int | None = None
    """Epochs without a better validation loss after which the method stops training, where it says so. Without
    validation samples, a share of the labels is held out (`Training.validation_share`). Only a patience that the caller
    chose comes first."""
    first: Select = field(default=ClusterCentre(), repr=False)
    """What picks the first batch, before there are labels, where the strategy itself needs some. It is no part of the
    repr, by which experiments are known: those start from random labels."""

    needs_network: bool = field(default=False, repr=False)
    """Whether the method is defined for a network only: ``model="auto"`` is then the network for such samples, and a
    note says so where another model is used."""

    def __post_init__(self) -> None:
        for part, wanted in ((self.score, Score), (self.select, Select), (self.first, Select)):
            if isinstance(part, (type, str)) or not isinstance(part, wanted):
                kind = wanted.__name__.lower()
                raise InputError(
                    f"{kind}={part!r} is not a {kind}; pass an instance such as "
                    f"{'Margin()' if wanted is Score else 'Top()'}"
                )
        if self.patience is not None:
            check_count("patience", self.patience)

    @property
    def tasks(self) -> frozenset[Task]:
        """Tasks that every part is defined for."""
        features = getattr(self.select, "features", self.select)
        return frozenset(self.score.tasks & self.select.tasks & features.tasks)

    @property
    def needs(self) -> tuple[str, ...]:
        """What it takes besides a training on the labels."""
        objective = getattr(resolve_objective(self.objective), "needs", ())
        found = {
            "a network": self.needs_network,
            "probabilities": self.tasks == {"classification"},
            "embeddings": self.select.reads,
            "duals": "duals" in objective,
            "dropout or an ensemble": any(readout.members > 1 for readout in self.readouts),
            "extra training": self.calibrates or "extra training" in objective,
        }
        return tuple(name for name, wanted in found.items() if wanted)

    @property
    def trains(self) -> bool:
        """Whether any part looks at a trained learner."""
        return self.score.reads or self.select.reads

    @property
    def covers(self) -> bool:
        """Whether it uses distances between samples only, and so works without labels."""
        geometry = (self.select, getattr(self.select, "features", self.select))
        return getattr(self.score, "constant", False) and all(getattr(part, "label_free", False) for part in geometry)

    @property
    def compares_inputs(self) -> bool:
        """Whether it measures distances between the samples themselves where a network would learn an embedding."""
        parts = getattr(self.select, "parts", (self.select,))
        return any(getattr(getattr(part, "features", None), "compares_inputs", False) for part in parts)

    @property
    def calibrates(self) -> bool:
        """Whether a score asks for predictions of held-out labels."""
        return any(getattr(part, "calibrated", False) for part in (self.score, getattr(self.select, "policy", None)))

    @property
    def readouts(self) -> tuple[Readout, ...]:
        """What the parts read from the network beyond embeddings and predictions."""
        return readouts_of(self.score, self.select, getattr(self.select, "features", None))

    def ensure_task(self, task: Task, name: str = "this strategy") -> None:
        ensure_task(task, self.tasks, name, CATALOGUE)


DUALS = PDCL(eps=0.01, dual_cap=10.0)
ALGORITHM_1 = PDCL(slacks="all", dual_every="epoch")
PAPER_DUAL = PredictedDual(PaperHead())
CLUSTERS = ClusterTop(shortlist=20)
CALIBRATED = Margin(calibrated=True)
ALLY = Strategy(
    DualByTask(), ByTask(), "erm", "samples that cover the pool, weighted by duals in closed form", first=Herding()
)

CATALOGUE: Registry[Strategy] = Registry(
    "strategy",
    {
        "ally": ALLY,
        "ally-paper": Strategy(
            PAPER_DUAL, ClusterTop(), ALGORITHM_1, "ALLY as the paper describes it", patience=2, needs_network=True
        ),
        "random": Strategy(Random(), Top(), "erm", "a uniform sample: the baseline to beat"),
        "entropy": Strategy(Entropy(), Top(), "erm", "most uncertain class distribution"),
        "margin": Strategy(Margin(), Top(), "erm", "closest call between the two likeliest classes"),
        "badge": Strategy(Constant(), KMeansPP(Gradient()), "erm", "large and diverse hypothetical gradients"),
        "coreset": Strategy(Constant(), KCenter(), "erm", "covers the embedding space"),
        "bait": Strategy(Constant(), FisherGreedy(), "erm", "most Fisher information about the last layer"),
        "kmeanspp": Strategy(Constant(), KMeansPP(), "erm", "spread out in the embedding space"),
        "ally-clusters": Strategy(PredictedDual(), CLUSTERS, DUALS, "predicted duals, the highest of each cluster"),
        "ally-herding": Strategy(
            PredictedDual(), Herding(weighted=True), DUALS, "coverage weighted by predicted duals"
        ),
        "ally-feasibility": Strategy(
            PredictedDual(), CLUSTERS, Feasibility(eps=0.01, dual_cap=10.0), "ALLY trained on the constraints alone"
        ),
        "ally-unlabelled": Strategy(
            PredictedDual(), CLUSTERS, PDCLUnlabelled(), "duals of smoothness constraints over the whole pool"
        ),
        "accumulated-loss": Strategy(
            PredictedDual(), CLUSTERS, "accumulated-loss", "ablation: ally-clusters without the dual weighting"
        ),
        "bald": Strategy(MutualInformation(), Top(), "erm", "labels that tell most about the weights"),
        "powerbald": Strategy(MutualInformation(), Perturbed("power"), "erm", "BALD with randomised batches"),
        "batchbald": Strategy(Constant(), BatchBALD(), "erm", "small batches that tell most together"),
        "learning-loss": Strategy(
            PredictedLoss(), Top(), "learning-loss", "highest loss, predicted by a module on the network"
        ),
        "vaal": Strategy(Discriminator(), Top(), "vaal", "most likely unlabelled, by a discriminator of latents"),
        "waal": Strategy(
            CriticUncertainty(), Top(), "waal", "uncertain, and unlike the labelled set by a Wasserstein critic"
        ),
        "dal": Strategy(Constant(), Discriminative(), "erm", "most clearly different from the labelled set"),
        "lcmd": Strategy(Constant(), LCMD(LastLayer()), "erm", "spread that follows density; strong for regression"),
        "typiclust": Strategy(
            Constant(), TypiClust(), "erm", "typical samples of uncovered clusters: the first labels"
        ),
        "probcover": Strategy(Constant(), ProbCover(), "erm", "covers by balls: few labels, good embeddings"),
        "maxherding": Strategy(Constant(), Herding(), "erm", "covers by a kernel: few labels, nothing to tune"),
        "uherding": Strategy(
            CALIBRATED,
            Herding(weighted=True, bandwidth="labelled"),
            "erm",
            "coverage weighted by uncertainty: any number of labels",
        ),
        "dropquery": Strategy(
            Disagreement(), ClusterCentre(threshold=0.5), "erm", "predictions that change under dropout, spread out"
        ),
        "cluster-margin": Strategy(
            Margin(), ClusterMargin(), "erm", "uncertain and spread over clusters: very large batches"
        ),
    },
)


def resolve_strategy(strategy: Any) -> Strategy:
    """A strategy by name, or the one given; its objective is checked."""
    if isinstance(strategy, str):
        strategy = CATALOGUE[strategy]
    if not isinstance(strategy, Strategy):
        raise InputError(
            f"strategy is a {type(strategy).__name__}; pass a name ({', '.join(CATALOGUE)}) or an ally.Strategy"
        )
    resolve_objective(strategy.objective)
    return strategy
