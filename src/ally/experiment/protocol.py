"""How long the networks of an experiment are trained: one rule for all of its strategies, with a name.

===========  ==================================================================================================
paper        stop early by a fixed random validation set, patience 2; network and duals of the epoch that is kept
fixed        a fixed number of epochs; no validation labels
early-duals  the duals of the epoch that the paper's rule keeps, the network of the last epoch
===========  ==================================================================================================

Labels of a validation set are bought at the start and counted.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, TypeAlias, get_args

from ally.learning.training import Training

Protocol: TypeAlias = Literal["paper", "fixed", "early-duals"]
PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)
PATIENCE = 2
MOST_EPOCHS = 100
"""Early stopping ends a training long before; the paper gives no number."""


def under(protocol: Protocol, training: Training, validation: int) -> tuple[Training, int]:
    """Settings of the trainer and the size of the validation set, from those of `fixed` and the size that the others
    use."""
    if protocol == "fixed":
        return training, 0
    if protocol == "early-duals":
        return replace(training, patience=PATIENCE, keep="last"), validation
    return replace(training, patience=PATIENCE, epochs=MOST_EPOCHS), validation


def protocol_of(training: Training, validation: int) -> str:
    """The name of the rule that these settings follow."""
    if not validation:
        return "fixed"
    if training.stops_after != PATIENCE:
        return f"patience {training.stops_after}"
    return "paper" if training.keep == "best" else "early-duals"
