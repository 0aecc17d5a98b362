"""Why each sample was picked, as a table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch

from ally.data import Ids, LabelCode
from ally.features import ProductRows
from ally.learning.snapshot import Snapshot
from ally.neighbours import find_nearest
from ally.scoring import Scored
from ally.selection import Selection
from ally.selection.points import Points
from ally.types import AnyArray, FloatArray


def why(snapshot: Snapshot, scored: Scored, selection: Selection, ids: Ids, code: LabelCode) -> pd.DataFrame:
    """One row per picked id.

    Columns: ``score`` (what it was picked for: its own score, or what it adds to the batch), ``dual`` (λ, where the
    strategy scores by duals), ``percentile`` of its own score among the candidates, ``cluster`` and ``cluster_size``,
    ``predicted`` label and its ``probability``, ``nearest_labelled`` id and the ``distance`` to it in the embedding
    space (that of ``embeddings=``, where given). What a strategy does not know is missing (NaN or None).
    """
    n = len(selection.rows)
    places = np.searchsorted(snapshot.candidates.rows, selection.rows)
    picked = snapshot.candidates.at(torch.from_numpy(places))
    missing = np.full(n, np.nan)
    predicted: AnyArray = np.full(n, None, dtype=object)
    probability = missing
    nearest: AnyArray = np.full(n, None, dtype=object)
    distance = missing
    if len(picked.predictions):
        predicted = code.decode(picked.predictions.numpy())
        if picked.probabilities is not None:
            probability = picked.probabilities.amax(1).double().numpy()
    if len(picked.points) and len(snapshot.labelled.points):
        points, labelled = (Points(ProductRows((view.points,))) for view in (picked, snapshot.labelled))
        found = find_nearest(points, labelled)
        nearest, distance = ids.of(snapshot.labelled.rows[found.numbers[:, 0]]), np.sqrt(found.squared[:, 0])
    return pd.DataFrame(
        {
            "score": selection.values,
            "dual": missing if scored.duals is None else scored.duals.double().numpy()[places],
            "percentile": _percentiles(scored.scores, places),
            "cluster": missing if selection.clusters is None else selection.clusters,
            "cluster_size": missing if selection.cluster_sizes is None else selection.cluster_sizes,
            "predicted": predicted,
            "probability": probability,
            "nearest_labelled": nearest,
            "distance": distance,
        },
        index=pd.Index(ids.of(selection.rows), name="id"),
    )


def _percentiles(scores: torch.Tensor, places: AnyArray) -> FloatArray:
    """Share of candidates that score no higher, in percent; NaN where all scores are equal."""
    ordered = np.sort(scores.numpy())
    if not len(ordered) or ordered[0] == ordered[-1]:
        return np.full(len(places), np.nan)
    return 100.0 * np.searchsorted(ordered, scores.numpy()[places], side="right") / len(ordered)
