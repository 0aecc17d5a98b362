"""The page in a real browser: draws, answers to clicks, loads nothing, fits a phone."""

import time

import pytest
from report_grids import drawn

from ally.report import write_report

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("browser")]
HOSTILE = '<script>window.hurt=1</script><img src=x onerror="window.hurt=1">'


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("grid")
    drawn(strategies=("ally", "a-strategy-with-a-very-long-name-indeed · and a setting", HOSTILE, "random")).to_csv(
        folder / "results.csv", index=False
    )
    return write_report(folder).as_uri()


@pytest.fixture(params=[(1440, "light"), (390, "dark")], ids=["wide, light", "narrow, dark"])
def opened(request, browser, address):
    """The page once its curves are drawn, and what went wrong on the way."""
    width, scheme = request.param
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    trouble = []
    page.on("console", lambda message: trouble.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on(
        "request",
        lambda sent: trouble.append(sent.url) if not sent.url.startswith(("file:", "data:", "blob:")) else None,
    )
    page.goto(address)
    page.wait_for_selector("#chart-0 path.js-line", timeout=60_000)
    yield page, trouble
    page.close()


def lines(page):
    return page.locator("#chart-0 .scatterlayer .trace path.js-line").count()


def until(true, seconds=20.0):
    """Waits from outside: the page's policy forbids the evaluation that playwright's own waiting uses."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def test_the_page_draws_answers_and_fits(opened):
    page, trouble = opened
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert page.locator("#interactive").is_visible()
    assert not page.locator("#static").is_visible()
    named = page.locator("#chart-0 .legendtext").all_text_contents()
    assert any("<script>" in name for name in named), named

    before = lines(page)
    toggles = page.locator("#chart-0 .legendtoggle")
    toggles.nth(1).click()
    until(lambda: lines(page) < before)
    page.get_by_role("button", name="Show all").click()
    until(lambda: lines(page) == before)

    fills = page.locator("#chart-0 path.js-fill")
    assert fills.count() > 0
    page.select_option("#band", "none")
    until(lambda: fills.count() == 0)
    assert trouble == []
    assert page.evaluate("window.hurt") is None


def test_a_click_on_a_head_sorts(opened):
    page, trouble = opened
    table = page.locator("#comparison table").first
    head = table.locator("thead th").nth(1)

    def column():
        return [float(text) for text in table.locator("tbody tr td:nth-child(2)").all_inner_texts()]

    before = column()
    head.locator("button").click()
    assert column() == sorted(before)
    assert head.get_attribute("aria-sort") == "ascending"
    head.locator("button").click()
    assert column() == sorted(before, reverse=True)
    assert trouble == []


def test_the_chart_follows_the_colour_scheme(opened):
    page, _ = opened
    paper = "document.getElementById('chart-0')._fullLayout.paper_bgcolor"
    page.emulate_media(color_scheme="dark")
    until(lambda: page.evaluate(paper).lower() == "#16181d")
    page.emulate_media(color_scheme="light")
    until(lambda: page.evaluate(paper).lower() == "#ffffff")


def test_without_scripts_there_is_a_picture(browser, address):
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto(address)
    assert page.locator("#static img").is_visible()
    assert not page.locator("#interactive").is_visible()
    page.context.close()
