"""How informative each candidate is: one number per candidate; a higher score is more worth labelling."""

from ally.scoring.adversarial import CriticUncertainty, Discriminator, PredictedLoss
from ally.scoring.bald import Disagreement, MutualInformation
from ally.scoring.base import Score, Scored, check_scores
from ally.scoring.by_task import DualByTask
from ally.scoring.constraint_dual import ConstraintDual
from ally.scoring.predicted_dual import PredictedDual
from ally.scoring.simple import Constant, Random
from ally.scoring.uncertainty import Entropy, Margin

__all__ = [
    "Constant",
    "ConstraintDual",
    "CriticUncertainty",
    "Disagreement",
    "Discriminator",
    "DualByTask",
    "Entropy",
    "Margin",
    "MutualInformation",
    "PredictedDual",
    "PredictedLoss",
    "Random",
    "Score",
    "Scored",
    "check_scores",
]
