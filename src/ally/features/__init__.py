"""Representations of samples in which selections measure distances or information."""

from ally.features.embedding import Embedding
from ally.features.fisher import FisherFactors, fisher_factors
from ally.features.gradient import Gradient, LastLayer
from ally.features.inputs import Inputs
from ally.features.product import ProductRows, Representation

__all__ = [
    "Embedding",
    "FisherFactors",
    "Gradient",
    "Inputs",
    "LastLayer",
    "ProductRows",
    "Representation",
    "fisher_factors",
]
