"""The default learner of each kind of source learns something from some labels, within seconds on a CPU."""

import numpy as np
import pytest
from PIL import Image

from ally.data import default_learner, open_source
from ally.errors import InputError
from ally.learning.learner import Examples
from ally.learning.network import Network
from ally.learning.objectives import ERM
from ally.learning.training import Training
from ally.rng import streams


def learned(samples, labels):
    """Accuracy on the second half of the samples after training on the first."""
    ids = [sample.id for sample in samples.scan()]
    model, settings = default_learner(samples, "classification")
    source = samples.features(ids)
    kinds = sorted(set(labels.values()))
    y = np.array([kinds.index(labels[id]) for id in ids])
    train, test = np.split(np.arange(len(ids)), [len(ids) // 2])
    learner = Network.named(model, Training(**settings)).prepared(source, np.arange(len(ids)))
    examples = Examples(source, train, y[train].astype(np.float64), "classification", tuple(kinds))
    seen = learner.fit(examples, ERM(), streams(0)).view(source, test)
    return float((seen.predictions.numpy() == y[test]).mean())


def test_table(tmp_path):
    rng = np.random.default_rng(0)
    x, colour = rng.normal(size=200), rng.choice(["red", "blue"], size=200)
    path = tmp_path / "t.csv"
    path.write_text("id,x,colour\n" + "".join(f"i{n},{x[n]},{colour[n]}\n" for n in range(200)))
    labels = {f"i{n}": "a" if (x[n] > 0) ^ (colour[n] == "red") else "b" for n in range(200)}
    assert learned(open_source(path), labels) > 0.85


def test_text(tmp_path):
    rng = np.random.default_rng(0)
    words = {"good": ["fine", "great", "lovely"], "bad": ["awful", "poor", "sad"]}
    lines, kinds = [], []
    for number in range(120):
        kind = ["good", "bad"][number % 2]
        kinds.append(kind)
        lines.append(
            f"{rng.choice(['film', 'book', 'song'])} {number} was {rng.choice(words[kind])} and "
            f"{rng.choice(words[kind])}"
        )
    path = tmp_path / "t.txt"
    path.write_text("\n".join(lines))
    samples = open_source(path)
    labels = dict(zip([sample.id for sample in samples.scan()], kinds, strict=True))
    assert learned(samples, labels) > 0.85


def test_images(tmp_path):
    rng = np.random.default_rng(0)
    labels = {}
    for number in range(80):
        pixels = rng.integers(0, 120, size=(24, 24, 3), dtype=np.uint8)
        kind = "top" if number % 2 else "bottom"
        pixels[slice(0, 12) if kind == "top" else slice(12, 24)] += 80
        labels[f"{number:02d}.png"] = kind
        Image.fromarray(pixels).save(tmp_path / f"{number:02d}.png")
    assert learned(open_source(tmp_path, size=16), labels) > 0.85


def test_embeddings_take_the_perceptron(photos):
    ids = [sample.id for sample in open_source(photos).scan()]
    samples = open_source(photos, embeddings=(np.eye(5), ids))
    assert default_learner(samples, "classification").model == "mlp"
    assert default_learner(open_source(photos), "regression").model == "resnet18-slim"
    with pytest.raises(InputError, match="task='auto'"):
        default_learner(samples, "auto")
