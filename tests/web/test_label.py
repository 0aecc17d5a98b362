"""Labelling in a real browser, by keyboard."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from conftest_web import CLASSES, serving, until, write_photos
from PIL import Image
from screens import Screen

from ally import Campaign
from ally.campaign.people import user
from ally.web.server import Plan

KEYS = {name: str(number + 1) for number, name in enumerate(CLASSES)}
SCRIPT = '<script>window.hurt=1</script><img src=x onerror="window.hurt=1">'
pytestmark = [pytest.mark.long, pytest.mark.xdist_group("browser")]


@pytest.fixture(scope="module")
def photos(folder):
    truth = write_photos(folder / "photos", 240)
    campaign = Campaign.create(folder / "photos.db", folder / "photos", classes=CLASSES, automatic=False, evaluate=0)
    with serving(campaign) as served:
        yield served, truth


@pytest.fixture
def open_page(browser):
    opened = []

    def start(address, **options):
        opened.append(Screen(browser, address, **options))
        return opened[-1]

    yield start
    for screen in opened:
        screen.close()


def test_fifty_images_undo_and_reload(open_page, photos):
    served, truth = photos
    screen = open_page(served.address)
    done = screen.label(truth, KEYS, 25)
    on_screen = screen.ready()
    screen.saved()
    screen.page.reload()
    assert screen.ready() == on_screen, "a reload deals anew"
    done += screen.label(truth, KEYS, 25)
    screen.saved()
    assert served.campaign.labels() == {id: truth[id] for id in done}
    assert len(list(served.campaign.answers.all())) == 50, "something was sent twice"

    # Undo across a reload: the sample is back, with its old label marked.
    screen.page.reload()
    screen.ready()
    screen.press("z")
    until(lambda: screen.id == done[-1])
    assert screen.page.locator(".class.old .name").inner_text() == truth[done[-1]]
    screen.press("z")
    until(lambda: screen.id == done[-2])
    until(lambda: len(served.campaign.labels()) == 48)
    screen.press(KEYS[truth[done[-2]]], KEYS[truth[done[-1]]])
    screen.saved()
    assert served.campaign.labels() == {id: truth[id] for id in done}

    # Back, and a change by the strip.
    wrong = next(name for name in CLASSES if name != truth[done[-1]])
    now = screen.ready()
    screen.press("b")
    until(lambda: screen.id == done[-1])
    screen.press(KEYS[wrong])
    until(lambda: screen.id == now)
    screen.saved()
    assert served.campaign.labels()[done[-1]] == wrong
    screen.page.locator(".past").last.click()
    until(lambda: screen.id == done[-1])
    screen.press("Numpad" + KEYS[truth[done[-1]]])
    until(lambda: screen.id == now)
    screen.saved()
    assert served.campaign.labels()[done[-1]] == truth[done[-1]]
    assert screen.trouble == []


def test_skip_note_keys_and_zoom(open_page, photos):
    served, _ = photos
    screen = open_page(served.address)
    first = screen.ready()
    screen.press("n")
    screen.page.keyboard.type("is it 1 or 2?")
    screen.press("Enter")
    until(lambda: served.campaign.page.notes().get(first, {}).get(user()) == "is it 1 or 2?")
    assert screen.id == first, "the digits of the note were taken for answers"
    screen.press("+", "]")
    assert "scale(1.5)" in screen.run("document.querySelector('.sample img').style.transform")
    assert "brightness" in screen.run("document.querySelector('.sample img').style.filter")
    screen.press("?")
    assert screen.page.locator(".help").is_visible()
    screen.press("Escape", "s")
    until(lambda: screen.id != first)
    screen.saved()
    assert first not in served.campaign.labels()
    assert served.campaign.page.last_answers(1)[0].kind == "skip"
    assert screen.trouble == []


def test_the_network_goes_and_comes_back(open_page, photos):
    served, truth = photos
    screen = open_page(served.address)
    screen.ready()
    before = len(list(served.campaign.answers.all()))
    until(
        lambda: screen.run("performance.getEntriesByType('resource').filter(e => e.name.includes('image')).length") > 5
    )
    screen.context.set_offline(True)
    done = screen.label(truth, KEYS, 5)
    until(lambda: "offline, 5 waiting" in screen.dot)
    assert any("does not answer" in line for line in screen.messages)
    assert len(list(served.campaign.answers.all())) == before
    screen.context.set_offline(False)
    screen.saved()
    assert {id: served.campaign.labels()[id] for id in done} == {id: truth[id] for id in done}
    assert len(list(served.campaign.answers.all())) == before + 5


def test_unsent_answers_survive_a_closed_tab(open_page, photos):
    served, truth = photos
    screen = open_page(served.address)
    screen.ready()
    screen.page.route("**/api/v1/answers", lambda route: route.abort())
    screen.page.route("**/api/v1/notes", lambda route: route.abort())
    screen.press("n")
    screen.page.keyboard.type("cut off")
    screen.press("Enter")
    (done,) = screen.label(truth, KEYS, 1)
    until(lambda: "2 waiting" in screen.dot)
    screen.page.close()
    assert done not in served.campaign.labels()
    assert done not in served.campaign.page.notes()
    again = open_page(served.address, context=screen.context)
    again.saved()
    until(lambda: served.campaign.labels().get(done) == truth[done])
    assert list(served.campaign.page.notes()[done].values()) == ["cut off"]


def test_an_answer_that_was_saved_and_not_heard_of_is_not_doubled(open_page, photos):
    served, truth = photos
    screen = open_page(served.address)
    screen.ready()
    before = len(list(served.campaign.answers.all()))
    lost = []

    def lose(route):
        if lost:
            return route.continue_()
        lost.append(route.fetch())  # it reaches the server, and the reply is lost
        route.abort()

    screen.page.route("**/api/v1/answers", lose)
    screen.label(truth, KEYS, 2)
    screen.saved()
    assert len(list(served.campaign.answers.all())) == before + 2


def test_a_stale_tab_does_not_overwrite(open_page, photos):
    served, truth = photos
    screen = open_page(served.address)
    id = screen.ready()
    wrong = next(name for name in CLASSES if name != truth[id])
    served.campaign.relabel({id: truth[id]}, annotator="another")
    screen.press(KEYS[wrong])
    until(lambda: any("in the meantime" in line for line in screen.messages))
    assert served.campaign.labels()[id] == truth[id]
    screen.page.get_by_role("button", name="Record mine too").click()
    until(lambda: served.campaign.page.opinions(id).get(user()) == wrong)


def test_a_phone(open_page, photos):
    served, _ = photos
    screen = open_page(served.address, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    id = screen.ready()
    assert screen.run("document.documentElement.scrollWidth <= innerWidth")
    first = screen.page.locator(".class").first
    box = first.bounding_box()
    assert box["height"] >= 44
    assert box["y"] > 422, "classes are within a thumb's reach"
    first.tap()
    until(lambda: screen.id != id)
    screen.saved()
    assert served.campaign.labels()[id] == CLASSES[0]
    assert screen.trouble == []


def test_two_annotators_at_once(browser, folder):
    truth = write_photos(folder / "two", 90)
    campaign = Campaign.create(folder / "two.db", folder / "two", classes=CLASSES, automatic=False, evaluate=0)
    with serving(campaign, Plan(share=True)) as served:
        access = served.ready.page.access
        screens = [Screen(browser, f"{served.address}#{access.new_link(name)}") for name in ("ann", "bob")]
        for screen in screens:
            screen.ready()
            assert screen.page.url == served.address, "the secret leaves the address bar"
            (cookie,) = screen.context.cookies()
            assert (cookie["name"], cookie["httpOnly"], cookie["sameSite"]) == (access.cookie_name, True, "Strict")
        done: list[str] = []
        for _ in range(10):
            for screen in screens:
                done += screen.label(truth, KEYS, 1)
        for screen in screens:
            screen.saved()
        assert len(set(done)) == 20, "a sample was dealt twice"
        assert campaign.labels() == {id: truth[id] for id in done}
        assert dict(campaign.status().annotators) == {"ann": 10, "bob": 10}
        owner = Screen(browser, f"{served.address}#{access.new_link('owner', 'owner')}")
        owner.ready()
        owner.page.get_by_role("link", name="Settings", exact=True).click()
        owner.page.get_by_label("Invite").fill("eve")
        owner.page.get_by_role("button", name="Make a link").click()
        link = until(lambda: owner.page.locator("code").count() and owner.page.locator("code").inner_text())
        eve = Screen(browser, link)
        assert eve.ready() not in done
        assert "owner" not in eve.page.locator("nav").inner_text()
        ended = owner.page.locator("li", has_text="ann").get_by_role("button", name="End access")
        ended.click()
        until(lambda: ended.count() == 0, what="the end of access")
        screens[0].label(truth, KEYS, 1)
        until(lambda: any("not signed in" in line for line in screens[0].messages))
        assert "not saved (1)" in screens[0].dot
        for screen in (*screens[1:], owner, eve):
            assert screen.trouble == []
        for screen in (*screens, owner, eve):
            screen.close()


def test_numbers(open_page, folder):
    frame = pd.DataFrame({"id": [f"h{n}" for n in range(40)], "rooms": np.arange(40) % 7, "area": np.arange(40) * 3.5})
    frame["price"] = [100.0 + n if n < 30 else None for n in range(40)]
    frame.to_csv(folder / "houses.csv", index=False)
    campaign = Campaign.create(
        folder / "houses.db",
        folder / "houses.csv",
        id_column="id",
        task="regression",
        label="price",
        model="linear",
        automatic=False,
        evaluate=0,
    )
    with serving(campaign) as served:
        screen = open_page(served.address)
        first = screen.ready()
        assert "area" in screen.page.locator(".sample.table").inner_text()
        screen.page.keyboard.type("12x")
        screen.press("Enter")
        assert "not a number" in screen.page.locator(".range").inner_text()
        field = screen.page.locator("input.number")
        field.fill("9000")
        screen.press("Enter")
        assert "far from the others" in screen.page.locator(".range").inner_text()
        assert screen.id == first
        field.fill("117,5")
        screen.press("ArrowUp", "Enter")
        second = until(lambda: screen.id != first and screen.id)
        screen.page.keyboard.type("120")
        screen.press("NumpadEnter")
        third = until(lambda: screen.id != second and screen.id)
        screen.press("s")
        until(lambda: screen.id != third)
        screen.saved()
        labels = campaign.labels()
        assert (labels[first], labels[second]) == (118.5, 120.0)
        assert third not in labels
        screen.press("z")
        until(lambda: screen.id == third)
        screen.press("z")
        until(lambda: screen.id == second)
        assert field.input_value() == "120"
        screen.saved()
        assert second not in campaign.labels()
        campaign.retrain()
        screen.page.get_by_role("link", name="Progress", exact=True).click()
        words = screen.page.locator(".map .quiet").first
        until(lambda: "40 samples" in words.inner_text())
        assert "beyond" not in words.inner_text()
        screen.page.get_by_label("by guess").check()
        assert "guesses beyond all numbers so far" in words.inner_text(), "larger houses than any with a price"
        assert screen.trouble == []


def test_two_hundred_classes_and_a_long_text(open_page, folder):
    """100 kB open at once; classes are found by typing; words of hostile data are text."""
    classes = [f"topic {n:03}" for n in range(199)] + [SCRIPT]
    texts = [
        f"note {n} about tides\n{SCRIPT}\n" + ("lorem ipsum dolor sit amet " * 4000 if n < 3 else "") for n in range(12)
    ]
    pd.DataFrame({"id": [f"t{n} {SCRIPT}" for n in range(12)], "body": texts}).to_csv(folder / "texts.csv", index=False)
    campaign = Campaign.create(
        folder / "texts.db",
        folder / "texts.csv",
        id_column="id",
        text="body",
        classes=classes,
        automatic=False,
        evaluate=0,
    )
    with serving(campaign, Plan(annotators=(SCRIPT,))) as served:
        screen = open_page(served.address)
        seen = []
        for _ in range(12):
            id = screen.ready()
            seen.append(id)
            shown = until(lambda: screen.page.locator(".sample.text").inner_text(), what="the text")
            assert SCRIPT in shown
            screen.page.keyboard.type("topic 04")
            assert screen.page.locator(".class").count() == 10
            screen.press("ArrowDown", "Enter")
            until(lambda id=id: screen.id != id)
        screen.saved()
        assert len(set(seen)) == 12
        assert set(campaign.labels().values()) == {"topic 041"}
        assert np.median(screen.times()) < 150
        screen.press("Backspace")
        last = until(lambda: screen.id)
        assert last == seen[-1]
        screen.page.keyboard.type("<script>")
        screen.press("Enter")
        screen.saved()
        assert campaign.labels()[last] == SCRIPT
        assert screen.run("window.hurt") is None
        assert screen.trouble == []


def test_a_photo_of_fifty_megapixels(open_page, folder):
    (folder / "large").mkdir()
    small = np.random.default_rng(0).integers(0, 255, (58, 87, 3), dtype=np.uint8)
    large = Image.fromarray(small).resize((8700, 5800), Image.Resampling.BILINEAR)
    turned = Image.Exif()
    turned[0x0112] = 6
    large.save(folder / "large" / "a.jpg", quality=80, exif=turned)
    large.resize((600, 400)).save(folder / "large" / "b.jpg")
    (folder / "large" / "c.jpg").write_bytes((folder / "large" / "b.jpg").read_bytes())
    campaign = Campaign.create(folder / "large.db", folder / "large", classes=CLASSES, automatic=False, evaluate=0)
    (folder / "large" / "c.jpg").write_bytes(b"broken")
    with serving(campaign) as served:
        screen = open_page(served.address)
        seen = set()
        for _ in range(3):
            id = screen.ready()
            seen.add(id)
            if id == "c.jpg":
                assert "cannot be shown" in screen.page.locator(".sample.broken").inner_text()
            else:
                sizes = screen.run(
                    "(() => { const image = document.querySelector('.sample img');"
                    " return [image.naturalWidth, image.naturalHeight] })()"
                )
                assert sizes == ([1067, 1600] if id == "a.jpg" else [600, 400]), "upright and bounded"
            if id == "a.jpg":
                screen.press("+", "+")
                until(lambda: "size=large" in screen.run("document.querySelector('.sample img').src"), 40)
            screen.press("s")
            until(lambda id=id: screen.id != id)
        assert seen == {"a.jpg", "b.jpg", "c.jpg"}
        screen.saved()
        until(lambda: "Nothing left" in screen.page.locator(".stage").inner_text())
