"""Which n candidates to ask about, given their scores and their geometry."""

from ally.selection.base import Select, Selection
from ally.selection.batchbald import BatchBALD
from ally.selection.best_match import BestMatch
from ally.selection.by_task import ByTask
from ally.selection.centre import ClusterCentre
from ally.selection.cluster_margin import ClusterMargin
from ally.selection.cluster_top import ClusterTop
from ally.selection.discriminative import Discriminative
from ally.selection.fisher_greedy import FisherGreedy
from ally.selection.herding import Herding
from ally.selection.influence import Influence
from ally.selection.kcenter import KCenter
from ally.selection.kmeanspp import KMeansPP
from ally.selection.lcmd import LCMD
from ally.selection.perturbed import Perturbed
from ally.selection.probcover import ProbCover
from ally.selection.shortlist import Shortlist
from ally.selection.top import Top
from ally.selection.typiclust import TypiClust

__all__ = [
    "LCMD",
    "BatchBALD",
    "BestMatch",
    "ByTask",
    "ClusterCentre",
    "ClusterMargin",
    "ClusterTop",
    "Discriminative",
    "FisherGreedy",
    "Herding",
    "Influence",
    "KCenter",
    "KMeansPP",
    "Perturbed",
    "ProbCover",
    "Select",
    "Selection",
    "Shortlist",
    "Top",
    "TypiClust",
]
