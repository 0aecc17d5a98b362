"""The paper's experiments by name."""

from ally.experiment.presets.ablations import ABLATIONS
from ally.experiment.presets.base import SCALES, Preset, Scale
from ally.experiment.presets.beyond import BEYOND
from ally.experiment.presets.figures import FIGURES
from ally.registry import Registry

GENERATION = Preset(
    "Samples of maximal dual by gradient ascent, an MLP on 10 % of MNIST",
    "section 4.4",
    "Uninformative samples turn into ambiguous ones as their predicted dual grows.",
    None,
)
PRESETS: Registry[Preset] = Registry("preset", {**FIGURES, **ABLATIONS, **BEYOND, "generation": GENERATION})

__all__ = ["PRESETS", "SCALES", "Preset", "Scale"]
