"""What `load` gives goes into `Loop` as it is: tables, sparse text, images of bytes."""

import numpy as np
import pytest

import ally
from ally.data.catalogue import load
from ally.learning.training import Training


def campaign(data, model, strategy="margin", init=40, batch=20, rounds=2, epochs=8):
    """Accuracy or error before and after `rounds` batches."""
    known = np.full(data.pool.shape[0], None, dtype=object)
    start = np.random.default_rng(0).permutation(data.pool.shape[0])[:init]
    known[start] = data.pool_labels[start]
    classes = None if data.task == "regression" else np.unique(data.pool_labels).tolist()
    training = Training(lr=2e-3, epochs=epochs, batch_size=16, device="cpu")
    loop = ally.Loop(
        data.pool,
        known,
        strategy=strategy,
        model=model,
        task=data.task,
        classes=classes,
        random_state=0,
        training=training,
    )
    for _ in range(rounds):
        query = loop.ask(batch)
        loop.tell(query.id, {row: data.pool_labels[row] for row in query.ids.tolist()})
    assert len(loop.labelled) == init + rounds * batch
    return loop.predict(data.test)


def test_a_table_of_classes():
    data = load("digits")
    predicted = campaign(data, "mlp", strategy="ally")
    assert np.mean(predicted == data.test_labels) > 0.7


def test_a_table_of_numbers():
    data = load("diabetes")
    predicted = campaign(data, "mlp", strategy="coreset")
    assert np.sqrt(np.mean((predicted - data.test_labels) ** 2)) < 1.2 * data.test_labels.std()


def test_sparse_text(tmp_path):
    rng = np.random.default_rng(0)
    words = {
        "ANIMAL": ["cat", "dog", "bird", "fish"],
        "FOOD": ["bread", "rice", "cake", "soup"],
        "CITY": ["rome", "oslo", "paris", "cairo"],
    }
    folder = tmp_path / "text" / "trec"
    folder.mkdir(parents=True)
    for name, n in (("train_5500.label", 200), ("TREC_10.label", 60)):
        kinds = rng.choice(list(words), n)
        lines = [f"{kind}:x what about {' '.join(rng.choice(words[kind], 2))} ?" for kind in kinds]
        (folder / name).write_text("\n".join(lines))
    data = load("trec", tmp_path)
    for strategy in ("margin", "ally"):
        predicted = campaign(data, "mlp", strategy=strategy, rounds=1, epochs=4)
        assert np.mean(predicted == data.test_labels) > 0.9


@pytest.mark.parametrize("model", ["cnn", "resnet18-slim"])
def test_images_of_bytes(tmp_path, model):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 60, (150, 1, 16, 16), dtype=np.uint8)
    labels = np.arange(150) % 3
    for k, label in enumerate(labels):
        images[k, 0, 5 * label : 5 * label + 5] += 150
    np.savez(tmp_path / "bars.npz", X=images, y=labels)
    data = load(str(tmp_path / "bars.npz"))
    predicted = campaign(data, model, init=30, batch=10, rounds=1, epochs=4)
    assert np.mean(predicted == data.test_labels) > 0.9
