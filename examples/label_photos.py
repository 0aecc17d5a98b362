"""A labelling campaign in Python: photos of discs and squares, a person who labels (here: a function), a model that
learns beside."""

import tempfile
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

import ally

rng = np.random.default_rng(0)


def draw(path: Path, shape: str) -> None:
    picture = Image.new("RGB", (32, 32), "black")
    x, y, size = rng.integers(2, 10, 3).tolist()
    pen = ImageDraw.Draw(picture)
    (pen.ellipse if shape == "disc" else pen.rectangle)((x, y, x + 10 + size, y + 10 + size), fill="white")
    picture.save(path)


def look(path: Path) -> str:
    """What a person would answer. The corner of a square is white."""
    pixels = np.asarray(Image.open(path).convert("L")) > 127
    rows, columns = np.flatnonzero(pixels.any(1)), np.flatnonzero(pixels.any(0))
    return "square" if pixels[rows[0], columns[0]] else "disc"


with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    (folder / "photos").mkdir()
    for number in range(120):
        draw(folder / "photos" / f"{number:03}.png", "disc" if number % 2 else "square")

    place, photos = folder / "shapes.db", folder / "photos"
    with ally.Campaign.create(
        place, photos, classes=["disc", "square"], evaluate=20, batch=15, model="mlp", automatic=False
    ) as campaign:
        for _ in range(3):
            query = campaign.ask()
            campaign.tell(query, {id: look(campaign.show(id).path) for id in query.ids})
            campaign.retrain()
        status = campaign.status()
        for line in status.curve:
            print(f"{line.labels} labels: {line.metric} {line.value:.2f} on {line.evaluated_on} evaluation samples")
        print(status.advice.sentence)
        print(
            campaign.export(folder / "labels.csv"),
            "labels in labels.csv,",
            len(campaign.predict()),
            "photos left to the model",
        )
