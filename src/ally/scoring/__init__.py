"""How informative each candidate is: one number per candidate; a higher score is more worth labelling."""

from ally.scoring.adversarial import CriticUncertainty, Discriminator, PredictedLoss
from ally.scoring.bald import Disagreement, MutualInformation
from ally.scoring.base import Score, Scored, check_scores
from ally.scoring.predicted_dual import PredictedDual
from ally.scoring.reducible import Reducible
from ally.scoring.simple import Constant, Random
from ally.scoring.uncertainty import Entropy, Margin

__all__ = [
    "Constant",
    "CriticUncertainty",
    "Disagreement",
    "Discriminator",
    "Entropy",
    "Margin",
    "MutualInformation",
    "PredictedDual",
    "PredictedLoss",
    "Random",
    "Reducible",
    "Score",
    "Scored",
    "check_scores",
]
