"""A model that learns beside somebody who labels texts: guesses, shared words, another model without a jump."""

from __future__ import annotations

import random

import pandas as pd
import pytest
from conftest_web import serving, until
from screens import Screen

from ally import Campaign
from ally.errors import AnswerError

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("browser")]
WORDS = {"good": "lovely bright room, friendly people", "bad": "dirty noisy room, rude people"}
FILLERS = ["we came by train", "it rained on sunday", "the harbour is near", "breakfast began at seven"]


@pytest.fixture(scope="module")
def mails(folder):
    rng = random.Random(0)
    kinds = [rng.choice(["good", "bad"]) for _ in range(80)]
    texts = [f"{rng.choice(FILLERS)}; {WORDS[kind]}; {rng.choice(FILLERS)} {n}" for n, kind in enumerate(kinds)]
    pd.DataFrame({"id": [f"m{n}" for n in range(80)], "body": texts}).to_csv(folder / "mails.csv", index=False)
    campaign = Campaign.create(
        folder / "mails.db",
        folder / "mails.csv",
        id_column="id",
        text="body",
        classes=["good", "bad"],
        model="linear",
        encoder="none",
        strategy="margin",
        automatic=False,
        evaluate=0,
    )
    truth = {f"m{n}": kind for n, kind in enumerate(kinds)}
    learn(campaign, truth)
    with serving(campaign) as served:
        yield served, truth


def learn(campaign, truth):
    query = campaign.ask(12, annotator="another")
    campaign.tell(query.id, {id: truth[id] for id in query.ids})
    campaign.retrain()


def test_when_a_new_model_serves_nothing_jumps(browser, mails):
    served, truth = mails
    screen = Screen(browser, served.address)
    released = []
    screen.page.on("request", lambda sent: released.append(sent.url) if sent.url.endswith("/release") else None)
    seen = screen.ready()
    assert "%" in "".join(screen.page.locator(".class .guess").all_inner_texts())
    until(lambda: screen.run("CSS.highlights.get('shared')?.size ?? 0") > 0, what="words of the nearest labelled text")
    until(lambda: screen.page.locator(".near figcaption").count() == 3)
    learn(served.campaign, truth)
    until(lambda: screen.id and released, what="giving back what nobody has seen")
    assert screen.ready() == seen, "what is on screen stays"
    newest = served.campaign.page.pulse().model
    screen.press("1" if truth[seen] == "good" else "2")
    following = until(lambda: screen.id != seen and screen.id)
    screen.saved()
    assert last_query(served.campaign, following).model == newest, "the next one is of the new model's choice"
    assert screen.trouble == []
    screen.close()


def last_query(campaign, id):
    """The newest query that asked about a sample."""
    number, found = 1, None
    while True:
        try:
            query = campaign.query(number)
        except AnswerError:
            return found
        if id in query.ids:
            found = query
        number += 1


def test_nothing_moves_while_labelling(browser, mails):
    """No layout shift from the first sample on, and five or more samples fetched ahead."""
    served, _ = mails
    screen = Screen(browser, served.address)
    screen.ready()
    screen.run(
        "(() => { window.shifts = []; new PerformanceObserver(list => "
        "window.shifts.push(...list.getEntries().map(each => each.value))).observe({type: 'layout-shift'}) })()"
    )
    fetched = "performance.getEntriesByType('resource').filter(each => each.name.includes('/samples?')).length"
    until(lambda: screen.run(fetched) >= 6)
    for _ in range(8):
        id = screen.ready()
        screen.press("1")
        until(lambda id=id: screen.id != id)
    screen.saved()
    assert sum(screen.run("window.shifts")) < 0.01
    for _ in range(8):
        screen.press("z")
    screen.saved()
    screen.close()
