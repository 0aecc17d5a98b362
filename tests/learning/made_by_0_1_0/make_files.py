"""Made the files beside it with the code of 0.1.0 (commit 91a74c4), from a checkout of it:

PYTHONPATH=src python .../made_by_0_1_0/make_files.py FOLDER
"""

import json
import os
import sys
import zipfile
from pathlib import Path

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingRegressor, HistGradientBoostingClassifier
from sklearn.neighbors import KNeighborsClassifier

from ally import Campaign, Loop
from ally.data import as_source
from ally.learning.average import Average
from ally.learning.estimator import Estimator
from ally.learning.linear import LinearLearner
from ally.learning.training import Training

X = np.random.default_rng(0).normal(size=(40, 3)).round(2)
CLASSES = np.where(X[:, 0] + X[:, 1] > 0, "yes", "no").astype(object)
NUMBERS = 10 * X[:, 0]
MODELS = {
    "linear": ("linear", CLASSES),
    "linear_numbers": ("linear", NUMBERS),
    "linear_network": ("linear-network", CLASSES),
    "trees": (ExtraTreesClassifier(2, max_depth=2), CLASSES),
    "boosting_numbers": (GradientBoostingRegressor(n_estimators=2, max_depth=1), NUMBERS),
    "histograms": (HistGradientBoostingClassifier(max_iter=2, max_leaf_nodes=3, min_samples_leaf=3), CLASSES),
    "process_numbers": ("gaussian-process", NUMBERS),
    "average": (Average((LinearLearner(), Estimator(ExtraTreesClassifier(1, max_depth=1))), (0.5, 0.5)), CLASSES),
    "neighbours": (KNeighborsClassifier(3), CLASSES),
}


def main(folder):
    values = {}
    for name, (model, labels) in MODELS.items():
        task = "regression" if labels is NUMBERS else "classification"
        training = Training(epochs=2, device="cpu")
        loop = Loop(X, labels, strategy="random", model=model, task=task, random_state=0, training=training)
        trained = loop.trained().with_about({"labels": 40})
        trained.write(folder / f"{name}.safetensors")
        seen = trained.look(as_source(X))
        values[name] = seen.predictions.tolist() if seen.probabilities is None else seen.probabilities[:, 1].tolist()
    (folder / "values.json").write_text(json.dumps(values))
    rows = [f"s{n},{x},{z}" for n, (x, z, _) in enumerate(X)]
    (folder / "rows.csv").write_text("id,x,z\n" + "\n".join(rows) + "\n")
    os.chdir(folder)
    with Campaign.create(
        "pets.db", "rows.csv", classes=["no", "yes"], model="linear", evaluate=0, automatic=False
    ) as campaign:
        campaign.relabel({f"s{n}": CLASSES[n] for n in range(20)})
        campaign.retrain()
        campaign.predict().to_csv("predicted.csv", index=False)
    with zipfile.ZipFile("campaign.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("pets.db", "rows.csv", "predicted.csv"):
            archive.write(name)
            Path(name).unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
