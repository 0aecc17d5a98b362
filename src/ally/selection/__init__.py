"""Which n candidates to ask about, given their scores and their geometry."""

from ally.selection.base import Select, Selection
from ally.selection.cluster_top import ClusterTop
from ally.selection.fisher_greedy import FisherGreedy
from ally.selection.kcenter import KCenter
from ally.selection.kmeanspp import KMeansPP
from ally.selection.perturbed import Perturbed
from ally.selection.top import Top

__all__ = ["ClusterTop", "FisherGreedy", "KCenter", "KMeansPP", "Perturbed", "Select", "Selection", "Top"]
