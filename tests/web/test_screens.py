"""The screens beside labelling, in a real browser: progress, map, grid, review, settings; and accessibility of all."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from conftest_web import CLASSES, serving, until, write_photos
from screens import Screen

from ally import Campaign
from ally.campaign.people import user

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("browser")]
KEYS = {name: str(number + 1) for number, name in enumerate(CLASSES)}


@pytest.fixture(scope="module")
def trained(folder):
    """60 labels of two people who differ on four, one model, and a budget."""
    truth = write_photos(folder / "photos", 120, side=16)
    campaign = Campaign.create(
        folder / "a.db",
        folder / "photos",
        classes=CLASSES,
        size=8,
        model="linear",
        encoder="none",
        strategy="margin",
        automatic=False,
        evaluate=20,
        budget=100,
        batch=10,
    )
    for who in ("ann", "bob"):
        query = campaign.ask(30, annotator=who)
        campaign.tell(query.id, {id: truth[id] for id in query.ids})
    shared = query.ids[:8]
    other = {name: CLASSES[number - 1] for number, name in enumerate(CLASSES)}
    campaign.relabel({id: other[truth[id]] if n < 4 else truth[id] for n, id in enumerate(shared)}, annotator="ann")
    campaign.retrain()
    with serving(campaign) as served:
        yield served, truth


@pytest.fixture(scope="module")
def tab(browser, trained):
    """One for all tests: a new one costs a second of the machine."""
    opened = Screen(browser, trained[0].address)
    yield opened
    opened.close()


@pytest.fixture
def screen(tab):
    """The tab as a newcomer has it."""
    tab.run("localStorage.clear()")
    tab.page.emulate_media(color_scheme="light")
    tab.page.goto(tab.address)
    tab.ready()
    yield tab
    assert tab.trouble == []


def go(screen, name):
    screen.page.get_by_role("link", name=name, exact=True).click()
    until(lambda: screen.run("document.body.dataset.screen") == name.lower())
    until(lambda: screen.page.locator(".screen h1").count() == 1)


def test_a_guess_and_the_nearest_labelled(screen, trained):
    """Beside what the model chose, never beside what measures it; hidden by a key, for good."""
    _served, truth = trained
    seen = set()
    for _ in range(12):
        screen.ready()
        sentence = screen.page.locator(".why").inner_text()
        guesses = [text for text in screen.page.locator(".class .guess").all_inner_texts() if text]
        if "measure" in sentence:
            assert guesses == []
            assert screen.page.locator(".near figure").count() == 0
            seen.add("measure")
        elif "score" in sentence:
            assert len(guesses) == 1
            assert "%" in guesses[0]
            until(lambda: screen.page.locator(".near figcaption").count() == 3)
            seen.add("active")
        screen.label(truth, KEYS, 1)
    assert seen == {"measure", "active"}
    screen.press("h")
    assert [text for text in screen.page.locator(".class .guess").all_inner_texts() if text] == []
    screen.page.reload()
    screen.ready()
    assert [text for text in screen.page.locator(".class .guess").all_inner_texts() if text] == []
    screen.press("h")


def test_progress_and_map(screen, trained):
    _served, _ = trained
    go(screen, "Progress")
    words = until(lambda: screen.page.locator(".figures").inner_text())
    assert "of 100" in words
    assert "evaluated" in words
    assert screen.page.locator(".chart svg circle").count() == 1
    people = screen.page.locator("table").first.inner_text()
    assert "ann" in people
    assert "bob" in people
    assert "4 samples people disagree on" in screen.page.locator(".progress").inner_text()
    until(lambda: "asked" in screen.page.locator(".map .quiet").first.inner_text())
    canvas = screen.page.locator("canvas")
    canvas.scroll_into_view_if_needed()
    canvas.focus()
    for _ in range(5):
        screen.press("+", "ArrowLeft", "ArrowRight")
    screen.press("Enter")
    until(lambda: screen.page.locator(".picked-sample img").is_visible())
    box = canvas.bounding_box()
    screen.page.mouse.move(box["x"] + 200, box["y"] + 100)
    for _ in range(10):
        screen.page.mouse.wheel(0, -60)
    times = until(lambda: screen.run("performance.getEntriesByName('ally map').map(each => each.duration)"))
    assert sorted(times)[len(times) // 2] < 8


def test_a_grid_confirms_many_at_once(screen, trained):
    """The surest first, then those nearest to it as the model sees them; the key answers, one click takes out."""
    served, _truth = trained
    chart, _ = served.campaign.page._chart()
    go(screen, "Grid")
    until(lambda: screen.page.locator(".tile").count() > 2)
    shown = screen.run("[...document.querySelectorAll('.tile')].map(each => each.dataset.id)")
    places = [chart.rows.tolist().index(row) for row in served.campaign._store.samples.rows(shown)]
    gaps = np.square(chart.points[places] - chart.points[places[0]]).sum(1)
    assert (np.diff(gaps) >= 0).all()
    assert chart.probability[places[0]] == chart.probability[places].max()
    assert len({chart.predicted[place] for place in places}) == 1
    screen.press("ArrowRight", "ArrowRight", "Space")
    assert screen.run("document.querySelector('.tile[aria-pressed=\"false\"]').dataset.id") == shown[1]
    assert screen.page.locator('.tile[aria-pressed="false"]').count() == 1
    before = served.campaign.labels()
    screen.press("Enter")
    screen.saved()
    after = served.campaign.labels()
    assert set(after) - set(before) == {*shown} - {shown[1]}
    assert len({after[id] for id in set(after) - set(before)}) == 1
    until(lambda: screen.run("document.querySelector('.tile')?.dataset.id") not in shown)


def test_review_changes_a_label(screen, trained):
    served, truth = trained
    go(screen, "Review")
    rows = screen.page.locator("section", has_text="Disagreements").locator(".row")
    until(lambda: rows.count() == 4)
    id = rows.first.locator(".id").inner_text()
    rows.first.locator("select").select_option(label=truth[id])
    until(lambda: "now" in rows.first.inner_text())
    assert served.campaign.page.opinions(id)[user()] == truth[id]


def test_keys_can_be_changed_and_clashes_are_named(screen, trained):
    served, _truth = trained
    go(screen, "Settings")
    field = screen.page.get_by_label("Key for digit 0", exact=True)
    field.focus()
    screen.press("2")
    until(lambda: "class digit 0 and class digit 1" in screen.page.locator(".trouble").inner_text())
    screen.page.get_by_label("Key for digit 0", exact=True).focus()
    screen.press("q")
    until(lambda: screen.page.locator(".trouble").count() == 0)
    screen.page.get_by_role("link", name="Label", exact=True).click()
    id = screen.ready()
    screen.press("q")
    until(lambda: screen.id != id)
    screen.saved()
    assert served.campaign.page.opinions(id)[user()] == "digit 0"
    screen.press("z")
    until(lambda: screen.id == id)
    screen.saved()


def test_high_contrast_and_dark(screen):
    paper = "getComputedStyle(document.body).backgroundColor"
    light = screen.run(paper)
    screen.page.emulate_media(color_scheme="dark")
    dark = screen.run(paper)
    screen.page.locator(".theme").click()
    assert screen.run(paper) == light
    screen.page.locator(".theme").click()
    assert screen.run(paper) == dark
    screen.page.locator(".theme").click()
    assert screen.run(paper) == "rgb(0, 0, 0)"


@pytest.mark.parametrize("size", [(1280, 800), (390, 844)], ids=["wide", "phone"])
def test_axe_finds_nothing_serious(browser, trained, size):
    """Every screen in light by all rules, in dark and in high contrast by those about colours."""
    axe = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
    program = (Path(axe.__file__).parent / "axe.min.js").read_text()
    served, _ = trained
    screen = Screen(browser, served.address, viewport=dict(zip(("width", "height"), size, strict=True)))
    screen.ready()
    screen.run(program)
    screen.press("?")
    serious = {}

    def look(name, theme, rules):
        screen.run(f"document.documentElement.dataset.theme = '{theme}'")
        found = screen.run(
            f"axe.run(document, {{resultTypes: ['violations']{rules}}}).then(all => JSON.stringify(all.violations))"
        )
        for one in json.loads(found):
            if one["impact"] in ("serious", "critical"):
                serious[f"{name}, {theme}: {one['id']}"] = [node["html"][:120] for node in one["nodes"]][:3]

    for name, there in (
        ("Label", ".class"),
        ("Grid", ".tile"),
        ("Progress", "td"),
        ("Review", ".row"),
        ("Settings", "h2"),
    ):
        if name != "Label":
            go(screen, name)
        until(lambda there=there: screen.page.locator(there).count() > 0)
        look(name, "light", "")
        for theme in ("dark", "contrast"):
            look(name, theme, ", runOnly: ['color-contrast']")
    screen.close()
    assert serious == {}
