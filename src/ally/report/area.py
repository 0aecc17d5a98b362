"""Area under a learning curve."""

from __future__ import annotations

from scipy.integrate import trapezoid

from ally.report.campaigns import Curve


def normalised_area(curve: Curve) -> float:
    """Trapezoid over labels, divided by the range of labels: the metric at a label count drawn evenly from the
    range."""
    width = float(curve.labels[-1] - curve.labels[0])
    if width == 0:
        return float(curve.values[0])
    return float(trapezoid(curve.values, curve.labels)) / width
