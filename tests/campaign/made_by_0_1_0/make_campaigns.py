"""Makes `campaigns.zip`, with the package as it was at commit 91a74c4, the last before campaigns had ids:

    git worktree add --detach ../ally-0.1.0 91a74c4
    PYTHONPATH=../ally-0.1.0/src python tests/campaign/made_by_0_1_0/make_campaigns.py

Each campaign has 12 labels, a skip, an undone answer, a query that waits, and the folder of its source beside it.
`models.db` asks for what only its user may allow: a builder of its own, and a source elsewhere.
"""

from __future__ import annotations

import itertools
import os
import tempfile
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image

from ally import SKIP, Campaign

TARGET = Path(__file__).with_name("campaigns.zip")
CLASSES = ["cat", "dog"]


def make_sources(folder: Path) -> None:
    rng = np.random.default_rng(0)
    texts = [f"t{n:02},{'meow' if n % 2 else 'woof'} number {n}" for n in range(24)]
    (folder / "texts.csv").write_text("id,text\n" + "\n".join(texts) + "\n")
    rows = [f"r{n:02},{n % 2 + rng.normal(0, 0.2):.3f},{'red' if n % 3 else 'blue'}" for n in range(24)]
    for place in (folder, folder / "elsewhere"):
        place.mkdir(exist_ok=True)
        (place / "rows.csv").write_text("id,size,colour\n" + "\n".join(rows) + "\n")
    (folder / "photos").mkdir()
    for n in range(24):
        pixels = rng.integers(0, 60, (8, 8, 3), dtype=np.uint8) + np.uint8(120 * (n % 2))
        Image.fromarray(pixels).save(folder / "photos" / f"{n:02}.png")


def label(campaign: Campaign) -> None:
    query = campaign.ask(14, annotator="ann")
    answers = {id: CLASSES[int(id.strip("tr.png")) % 2] for id in query.ids[:13]}
    campaign.tell(query, {**answers, query.ids[13]: SKIP})
    campaign.undo(annotator="ann", number=1)
    campaign.ask(3, annotator="ben")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_sources(folder)
        os.chdir(folder)
        clock = itertools.count(1_700_000_000).__next__
        known = {"classes": CLASSES, "automatic": False, "evaluate": 4, "clock": lambda: float(clock())}
        for made, source, more in (
            ("texts", "texts.csv", {"encoder": "none"}),
            ("rows", "rows.csv", {"model": "linear"}),
            ("photos", "photos", {"encoder": "none"}),
            ("models", "elsewhere/rows.csv", {"model": "sklearn.linear_model:LogisticRegression"}),
        ):
            place = folder / ("apart" if made == "models" else ".") / f"{made}.db"
            place.parent.mkdir(exist_ok=True)
            with Campaign.create(place, folder / source, **known, **more) as campaign:
                label(campaign)
        with zipfile.ZipFile(TARGET, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for path in sorted(folder.rglob("*")):
                if path.is_file() and path.suffix in (".db", ".csv", ".png"):
                    archive.write(path, path.relative_to(folder))


if __name__ == "__main__":
    main()
