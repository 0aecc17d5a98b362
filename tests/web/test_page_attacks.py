"""Hostile words in a real browser: whatever samples, classes, people and notes say is text on every screen."""

from __future__ import annotations

import pandas as pd
import pytest
from conftest_web import serving, until, write_photos
from screens import Screen

from ally import Campaign
from ally.web.server import Plan

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("browser")]
SCRIPT = '<script>window.hurt=1</script><img src=x onerror="window.hurt=1">'
WORDS = [
    SCRIPT,
    '<svg xmlns="http://www.w3.org/2000/svg" onload="window.hurt=1"></svg>',
    "javascript:window.hurt=1",
    "[a link](javascript:window.hurt=1) ![a picture](x) **bold**",
]
STRANGERS = (
    '[...document.querySelectorAll(\'script, iframe, object, embed, form, base, [onerror], [onload], [href^="java"],'
    " [src=\"x\"]')].filter(each => !each.src?.endsWith('/assets/main.js')).map(each => each.outerHTML)"
)


def harmless(screen):
    assert screen.run("window.hurt") is None
    assert screen.run(STRANGERS) == []
    assert screen.trouble == []


def test_names_of_files_classes_people_and_notes(browser, folder):
    truth = write_photos(folder / "photos", 60, side=8)
    for number, (id, words) in enumerate(zip(list(truth)[::3], WORDS * 5, strict=True)):
        name = f"{words.replace('/', '')} {number}.png"  # a file name has no slash
        (folder / "photos" / id).rename(folder / "photos" / name)
        truth[name] = truth.pop(id)
    said = dict(zip(sorted(set(truth.values())), WORDS, strict=False))
    truth = {id: said[label] for id, label in truth.items()}
    campaign = Campaign.create(
        folder / "words.db",
        folder / "photos",
        classes=WORDS,
        size=8,
        model="linear",
        encoder="none",
        strategy="margin",
        automatic=False,
        evaluate=0,
    )
    labels = dict(list(truth.items())[:40])
    campaign.relabel(labels, annotator=SCRIPT)
    first = next(iter(labels))
    campaign.relabel({first: next(words for words in WORDS if words != labels[first])}, annotator=WORDS[1])
    for id, words in zip(labels, WORDS, strict=False):
        campaign.page.note(id, words, annotator=SCRIPT)
    campaign.retrain()
    with serving(campaign, Plan(annotators=(SCRIPT,))) as served:
        screen = Screen(browser, served.address)
        screen.ready()
        until(lambda: screen.page.locator(".near figcaption").count() == 3)
        assert screen.page.locator(".class .name").all_inner_texts() == WORDS
        harmless(screen)
        for name, there in (("grid", ".tile"), ("progress", "td"), ("review", ".row"), ("settings", ".key")):
            screen.page.get_by_role("link", name=name.capitalize(), exact=True).click()
            until(lambda there=there: screen.page.locator(there).count() > 2)
            shown = screen.page.locator(".screen").inner_text()
            assert SCRIPT in shown, name
            harmless(screen)
        screen.close()


def test_columns_and_cells(browser, folder):
    rows = {"id": ["a", "b", "c", *WORDS], SCRIPT: [*WORDS, "d", "e", "f"], "n": range(7)}
    pd.DataFrame(rows).to_csv(folder / "rows.csv", index=False)
    campaign = Campaign.create(
        folder / "rows.db", folder / "rows.csv", id_column="id", classes=["x", "y"], automatic=False, evaluate=0
    )
    with serving(campaign) as served:
        screen = Screen(browser, served.address)
        seen = []
        for _ in range(7):
            id = screen.ready()
            assert SCRIPT in screen.page.locator(".sample dt").all_inner_texts()
            seen += screen.page.locator(".sample dd").all_inner_texts()
            harmless(screen)
            screen.press("1")
            until(lambda id=id: screen.id != id)
        assert {*WORDS} <= {*seen}
        screen.close()
