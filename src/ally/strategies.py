"""The catalogue: every strategy is objective × score × selection (with its representation)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ally.errors import InputError, UnsupportedTask
from ally.features import Gradient
from ally.learning.dual_head import PaperHead
from ally.learning.objectives import PDCL, Objective, resolve_objective
from ally.learning.readouts import Readout, readouts_of
from ally.registry import Registry
from ally.scoring import Constant, Entropy, Margin, PredictedDual, Random, Score
from ally.selection import ClusterTop, FisherGreedy, KCenter, KMeansPP, Select, Top
from ally.types import Task


@dataclass(frozen=True)
class Strategy:
    """How the learner is trained, how candidates are scored, and how a batch is chosen from the scores."""

    score: Score = Constant()
    select: Select = Top()
    objective: str | Objective = "erm"
    about: str = ""

    def __post_init__(self) -> None:
        for part, wanted in ((self.score, Score), (self.select, Select)):
            if isinstance(part, (type, str)) or not isinstance(part, wanted):
                kind = wanted.__name__.lower()
                raise InputError(f"{kind}={part!r} is not a {kind}; pass an instance such as {'Margin()' if wanted is Score else 'Top()'}")

    @property
    def tasks(self) -> frozenset[Task]:
        """Tasks that every part is defined for."""
        features = getattr(self.select, "features", self.select)
        return frozenset(self.score.tasks & self.select.tasks & features.tasks)

    @property
    def trains(self) -> bool:
        """Whether any part looks at a trained learner."""
        return self.score.reads or self.select.reads

    @property
    def readouts(self) -> tuple[Readout, ...]:
        """What the parts read from the network beyond embeddings and predictions."""
        return readouts_of(self.score, self.select, getattr(self.select, "features", None))

    def ensure_task(self, task: Task, name: str = "this strategy") -> None:
        if task not in self.tasks:
            others = ", ".join(key for key, entry in CATALOGUE.items() if task in entry.tasks)
            raise UnsupportedTask(f"{name} is not defined for {task}; use one of {others}")


CATALOGUE: Registry[Strategy] = Registry(
    "strategy",
    {
        "ally": Strategy(PredictedDual(), ClusterTop(shortlist=20), PDCL(eps=0.01), "informative and diverse by predicted duals"),
        "ally-paper": Strategy(PredictedDual(PaperHead()), ClusterTop(), PDCL(), "ALLY with the paper's head and constraint level"),
        "random": Strategy(Random(), Top(), "erm", "a uniform sample: the baseline to beat"),
        "entropy": Strategy(Entropy(), Top(), "erm", "most uncertain class distribution"),
        "margin": Strategy(Margin(), Top(), "erm", "closest call between the two likeliest classes"),
        "badge": Strategy(Constant(), KMeansPP(Gradient()), "erm", "large and diverse hypothetical gradients"),
        "coreset": Strategy(Constant(), KCenter(), "erm", "covers the embedding space"),
        "bait": Strategy(Constant(), FisherGreedy(), "erm", "most Fisher information about the last layer"),
        "kmeanspp": Strategy(Constant(), KMeansPP(), "erm", "spread out in the embedding space"),
    },
)


def resolve_strategy(strategy: Any) -> Strategy:
    """A strategy by name, or the one given; its objective is checked."""
    if isinstance(strategy, str):
        strategy = CATALOGUE[strategy]
    if not isinstance(strategy, Strategy):
        raise InputError(f"strategy is a {type(strategy).__name__}; pass a name ({', '.join(CATALOGUE)}) or an ally.Strategy")
    resolve_objective(strategy.objective)
    return strategy
