"""Draws the pictures of the labelling page in docs/images: real servers, a real browser, data made here or shipped with
scikit-learn.

    python docs/build_page_images.py [--only NAME]

Needs chromium on the PATH, and playwright. Answers are given by a script that knows the truth, with a few slips.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
from PIL import Image, ImageDraw
from playwright.sync_api import sync_playwright
from sklearn.datasets import load_diabetes, load_digits, load_wine

from ally import Campaign
from ally.web.server import Plan, Server, prepare

OUT = Path(__file__).parent / "images"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WIDE, MIDDLE, PHONE = (1440, 900), (1024, 768), (390, 844)
MOST = 140_000
"""Bytes of a picture; a larger one gets a palette."""


def draw_scene(kind: str, rng: random.Random) -> Image.Image:
    """A house, a boat or a tree in a landscape."""

    def shade(red: int, green: int, blue: int, spread: int = 30) -> tuple[int, ...]:
        return tuple(max(0, min(255, part + rng.randint(-spread, spread))) for part in (red, green, blue))

    picture = Image.new("RGB", (960, 720))
    pen = ImageDraw.Draw(picture)
    sky, horizon = shade(150, 190, 230), rng.randint(380, 470)
    for y in range(horizon):
        pen.line((0, y, 960, y), fill=tuple(min(255, part + y // 12) for part in sky))
    ground = shade(60, 110, 160, 15) if kind == "boat" else shade(120, 160, 90)
    for y in range(horizon, 720):
        pen.line((0, y, 960, y), fill=tuple(max(0, part - (y - horizon) // 6) for part in ground))
    x, y, s = rng.randint(250, 650), rng.randint(horizon + 10, 600), rng.uniform(0.7, 1.5)
    for _ in range(rng.randint(1, 4)):
        cx, cy, r = rng.randint(0, 960), rng.randint(30, 200), rng.randint(30, 70)
        pen.ellipse((cx - 2 * r, cy - r // 2, cx + 2 * r, cy + r // 2), fill=shade(240, 242, 245, 8))
    if kind == "house":
        pen.rectangle((x - 130 * s, y - 150 * s, x + 130 * s, y), fill=shade(210, 190, 160))
        roof = [(x - 160 * s, y - 150 * s), (x, y - 270 * s), (x + 160 * s, y - 150 * s)]
        pen.polygon(roof, fill=shade(160, 70, 50))
        pen.rectangle((x - 25 * s, y - 80 * s, x + 25 * s, y), fill=shade(90, 60, 40, 10))
        for side in (-85, 85):
            left = x + side * s
            pen.rectangle((left - 28 * s, y - 115 * s, left + 28 * s, y - 65 * s), fill=shade(190, 215, 235, 10))
    elif kind == "boat":
        hull = [(x - 170 * s, y - 60 * s), (x + 170 * s, y - 60 * s), (x + 110 * s, y), (x - 120 * s, y)]
        pen.polygon(hull, fill=shade(150, 60, 50, 50))
        pen.line((x, y - 60 * s, x, y - 320 * s), fill=(70, 55, 45), width=int(9 * s))
        sail = shade(245, 240, 225, 10)
        pen.polygon([(x + 10 * s, y - 310 * s), (x + 150 * s, y - 85 * s), (x + 10 * s, y - 85 * s)], fill=sail)
        pen.polygon([(x - 12 * s, y - 270 * s), (x - 110 * s, y - 85 * s), (x - 12 * s, y - 85 * s)], fill=sail)
    else:
        pen.rectangle((x - 18 * s, y - 150 * s, x + 18 * s, y), fill=shade(100, 75, 50, 15))
        for _ in range(14):
            cx, cy = x + rng.randint(-100, 100) * s, y - (210 + rng.randint(-80, 80)) * s
            r = rng.randint(50, 80) * s
            pen.ellipse((cx - r, cy - r, cx + r, cy + r), fill=shade(70, 130, 60))
    return picture


def scenes(folder: Path) -> tuple[Campaign, dict[str, Any]]:
    rng = random.Random(4)
    truth = {}
    (folder / "scenes").mkdir()
    for number in range(150):
        kind = rng.choice(["boat", "house", "tree"])
        id = f"scene-{number:03}.jpg"
        draw_scene(kind, rng).save(folder / "scenes" / id, quality=88)
        truth[id] = kind
    more: dict[str, Any] = {"classes": ["boat", "house", "tree", "neither"], "size": 16, "model": "cnn", "budget": 120}
    return _campaign(folder, "scenes", folder / "scenes", more), truth


def digits(folder: Path) -> tuple[Campaign, dict[str, Any]]:
    data = load_digits()
    truth = {}
    (folder / "digits").mkdir()
    for number, (pixels, digit) in enumerate(zip(data.images[:900], data.target, strict=False)):
        id = f"{number:04}.png"
        Image.fromarray((15.9 * pixels).astype("uint8")).resize((96, 96), Image.Resampling.NEAREST).save(
            folder / "digits" / id
        )
        truth[id] = int(digit)
    more = {"classes": list(range(10)), "size": 8, "model": "mlp", "budget": 400, "evaluate": 90}
    return _campaign(folder, "digits", folder / "digits", more), truth


PARTS = {
    "praise": ["The staff were kind and the room was spotless.", "Breakfast was a joy, and the view even better."],
    "complaint": [
        "The shower leaked all night and nobody came.",
        "We waited an hour to check in, then got a smaller room.",
    ],
    "question": ["Is there parking near the station entrance?", "Could we check in before noon on Saturday?"],
}
FILLERS = [
    "We stayed three nights in March with two children.",
    "The tram stops right in front of the door.",
    "Our room was on the fourth floor and looked over the harbour.",
    "It rained, so we spent more time inside than we had planned.",
    "My sister had recommended the place last summer.",
]


def texts(folder: Path) -> tuple[Campaign, dict[str, Any]]:
    rng = random.Random(2)
    rows = []
    for number in range(200):
        kind = rng.choice(list(PARTS))
        parts = [*rng.sample(FILLERS, 3), *PARTS[kind]]
        rng.shuffle(parts)
        rows.append((f"mail {number:03}", " ".join(parts), kind))
    pd.DataFrame(rows, columns=["number", "body", "kind"])[["number", "body"]].to_csv(folder / "mails.csv", index=False)
    more = {"classes": list(PARTS), "id_column": "number", "text": "body", "model": "linear", "encoder": "none"}
    return _campaign(folder, "mails", folder / "mails.csv", more), {id: kind for id, _, kind in rows}


def table(folder: Path) -> tuple[Campaign, dict[str, Any]]:
    data = load_wine(as_frame=True)
    frame = data.frame.drop(columns="target")
    frame.insert(0, "bottle", [f"bottle {number:03}" for number in range(len(frame))])
    frame.to_csv(folder / "wine.csv", index=False)
    names = [f"cultivar {number + 1}" for number in data.target]
    more = {"classes": ["cultivar 1", "cultivar 2", "cultivar 3"], "id_column": "bottle", "model": "linear"}
    return _campaign(folder, "wine", folder / "wine.csv", more), dict(zip(frame["bottle"], names, strict=True))


def numbers(folder: Path) -> tuple[Campaign, dict[str, Any]]:
    data = load_diabetes(as_frame=True, scaled=False)
    frame = data.frame.drop(columns="target")
    frame.insert(0, "patient", [f"patient {number:03}" for number in range(len(frame))])
    frame.to_csv(folder / "patients.csv", index=False)
    more = {"task": "regression", "id_column": "patient", "model": "linear"}
    truth = dict(zip(frame["patient"], data.target.tolist(), strict=True))
    return _campaign(folder, "progression", folder / "patients.csv", more), truth


def _campaign(folder: Path, name: str, source: Path, more: dict[str, Any]) -> Campaign:
    if "task" not in more:
        more = {"strategy": "margin", **more}
    return Campaign.create(folder / f"{name}.db", source, automatic=False, batch=20, **more)


def label(campaign: Campaign, truth: dict[str, Any], rounds: int, slips: int = 0) -> None:
    """Two people label in turns; a model is trained after each round. A few labels are wrong."""
    rng = random.Random(0)
    for turn in range(rounds):
        query = campaign.ask(20, annotator=("ann", "ben")[turn % 2])
        answers = {id: truth[id] for id in query.ids}
        for id in rng.sample(sorted(answers), slips):
            answers[id] = rng.choice(sorted(set(truth.values()) - {truth[id]}, key=str))
        campaign.tell(query.id, answers)
        campaign.retrain()
    if slips:
        again = rng.sample(sorted(campaign.labels()), 12)
        campaign.relabel({id: truth[id] for id in again}, annotator="ann")


@contextmanager
def served(campaign: Campaign) -> Iterator[str]:
    ready = prepare(campaign, Plan(annotators=("ann",)))
    up = threading.Event()
    server = Server(ready.page, up.set)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [ready.socket]}, daemon=True)
    thread.start()
    up.wait(30)
    yield ready.address
    server.handle_exit(signal.SIGINT, None)
    thread.join()
    campaign.close()


class Camera:
    def __init__(self, browser: Any, address: str) -> None:
        self.browser = browser
        self.address = address

    def take(
        self,
        name: str,
        size: tuple[int, int],
        scheme: str = "light",
        path: str = "",
        before: Callable[[Any], None] = lambda page: None,
    ) -> None:
        viewport = {"width": size[0], "height": size[1]}
        phone = {"has_touch": True, "is_mobile": True} if size == PHONE else {}
        context = self.browser.new_context(viewport=viewport, color_scheme=scheme, **phone)
        page = context.new_page()
        page.goto(f"{self.address}{path}")
        wanted = ".stage .sample:not(.outline)" if not path else ".screen h1"
        page.wait_for_selector(wanted, timeout=30_000)
        before(page)
        time.sleep(0.8)
        picture = OUT / f"page-{name}.png"
        page.screenshot(path=str(picture))
        context.close()
        whole = Image.open(picture).convert("RGB")
        whole.save(picture, optimize=True)
        for colours in (256, 96, 48):
            if picture.stat().st_size > MOST:
                whole.quantize(colours).save(picture, optimize=True)
        print(f"{picture.name}: {picture.stat().st_size // 1000} kB")


def answer(*keys: str) -> Callable[[Any], None]:
    def press(page: Any) -> None:
        for key in keys:
            page.keyboard.press(key)
            time.sleep(0.25)

    return press


def map_in_view(page: Any) -> None:
    time.sleep(1.5)
    page.locator(".map").scroll_into_view_if_needed()
    page.evaluate("document.querySelector('.map').scrollIntoView({block: 'center'})")
    page.get_by_label("by guess").check()
    box = page.locator("canvas").bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.locator("canvas").focus()
    page.keyboard.press("Enter")


PICTURES: dict[str, Callable[[Any, Path], None]] = {}


def picture(make: Callable[[Any, Path], None]) -> Callable[[Any, Path], None]:
    PICTURES[make.__name__] = make
    return make


@picture
def images(browser: Any, folder: Path) -> None:
    campaign, truth = scenes(folder)
    label(campaign, truth, 3)
    with served(campaign) as address:
        camera = Camera(browser, address)
        camera.take("images", WIDE, before=answer("1", "2", "3", "1", "2"))
        camera.take("images-dark", MIDDLE, "dark", before=answer("3", "1"))
        camera.take("phone", PHONE, before=lambda page: time.sleep(0.5))
        camera.take("phone-dark", PHONE, "dark")


@picture
def looking(browser: Any, folder: Path) -> None:
    campaign, truth = digits(folder)
    label(campaign, truth, 8, slips=1)
    with served(campaign) as address:
        camera = Camera(browser, address)
        camera.take("progress", WIDE, path="progress", before=lambda page: time.sleep(1.5))
        camera.take("map", WIDE, path="progress", before=map_in_view)
        camera.take("map-dark", MIDDLE, "dark", path="progress", before=map_in_view)
        camera.take("review", WIDE, path="review", before=lambda page: time.sleep(1.5))
        camera.take("review-dark", MIDDLE, "dark", path="review", before=lambda page: time.sleep(1.5))
        camera.take("grid", MIDDLE, path="grid", before=lambda page: time.sleep(1.5))
        camera.take("settings", MIDDLE, path="settings")


@picture
def text(browser: Any, folder: Path) -> None:
    campaign, truth = texts(folder)
    label(campaign, truth, 2)
    with served(campaign) as address:
        camera = Camera(browser, address)
        camera.take("text", WIDE, before=answer("1", "2", "3"))
        camera.take("text-dark", MIDDLE, "dark")


@picture
def rows(browser: Any, folder: Path) -> None:
    campaign, truth = table(folder)
    label(campaign, truth, 2)
    with served(campaign) as address:
        Camera(browser, address).take("table", MIDDLE, before=answer("1", "3"))
        Camera(browser, address).take("table-dark", WIDE, "dark")


@picture
def values(browser: Any, folder: Path) -> None:
    campaign, truth = numbers(folder)
    label(campaign, truth, 2)
    with served(campaign) as address:

        def tell(page: Any) -> None:
            for number in ("112", "203", "151"):
                page.keyboard.type(number)
                page.keyboard.press("Enter")
                time.sleep(0.3)
            page.keyboard.type("14")

        Camera(browser, address).take("numbers", MIDDLE, before=tell)
        Camera(browser, address).take("numbers-dark", WIDE, "dark")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=sorted(PICTURES))
    given = parser.parse_args()
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("chromium is not on the PATH: install it with the system's package manager")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        for name, make in PICTURES.items():
            if given.only in (None, name):
                with tempfile.TemporaryDirectory() as folder:
                    make(browser, Path(folder))
        browser.close()


if __name__ == "__main__":
    main()
