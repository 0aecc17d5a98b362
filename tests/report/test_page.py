"""The files of a report: complete, offline, safe against hostile names, the same every time."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import pandas as pd
import pytest
from report_grids import drawn, rows

from ally.errors import InputError
from ally.files import write_whole
from ally.report import answer, load, summarise, write_report
from ally.report.answer import against_constant, answer_parts
from ally.report.figure import draw
from ally.report.grid import Description
from ally.report.page.charts import chart_data
from ally.report.page.page import render_page
from ally.report.style import SHOWN, styles
from ally.report.write import FILES

HOSTILE = '<script>alert("x")</script>&</td>'


class Page(HTMLParser):
    """Tags with their attributes, headings in order, ids, and the text outside scripts."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.said, self.inside = [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.inside = tag

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        if self.inside not in ("script", "style"):
            self.said.append(data)

    def all(self, *names):
        return [attrs for tag, attrs in self.tags if tag in names]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("grid")
    both = [
        drawn(strategies=("ally", "margin", HOSTILE, "random"), seeds=5),
        drawn("rmse", gain=-0.1, seeds=5, dataset="<b>numbers</b>"),
    ]
    pd.concat(both).to_csv(folder / "results.csv", index=False)
    told = {
        "title": "A & <i>B</i>",
        "question": "why?",
        "notes": ["first <note>"],
        "settings": {"rounds": "4"},
        "environment": {"Python": "3"},
    }
    (folder / "settings.json").write_text(json.dumps({**told, "substitute": "tiny <data> for large"}))
    path = write_report(folder)
    return folder, path, path.read_text(encoding="utf-8")


def test_all_files_and_no_leftovers(written):
    folder, path, _ = written
    assert path == folder / "report.html"
    assert {file.name for file in folder.iterdir()} == {*FILES, "results.csv", "settings.json"}
    assert (folder / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (folder / "curves.svg").read_text()
    assert path.stat().st_size < 4e6


def test_nothing_is_loaded_from_elsewhere(written):
    page = Page(written[2])
    for attrs in page.all("script", "link", "img", "iframe", "a"):
        for name in ("src", "href"):
            assert attrs.get(name, "data:").startswith(("data:", "#")), attrs
    policy = next(attrs["content"] for attrs in page.all("meta") if "http-equiv" in attrs)
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy
    style = re.search("<style>(.*?)</style>", written[2], flags=re.DOTALL)[1]
    assert "url(" not in style
    assert "@import" not in style


def test_names_are_text(written):
    text = written[2]
    page = Page(text)
    assert HOSTILE not in text
    assert "<b>numbers" not in text
    assert "<i>B" not in text
    said = " ".join(page.said)
    assert all(
        part in said for part in (HOSTILE, "A & <i>B</i>", "tiny <data> for large", "first <note>", "<b>numbers</b>")
    )
    data = re.search('<script type="application/json" id="curves">(.*?)</script>', text, flags=re.DOTALL)[1]
    charts = json.loads(data)
    assert [chart["dataset"] for chart in charts] == ["toy", "<b>numbers</b>"]
    assert HOSTILE in [series["name"] for series in charts[0]["series"]]


def test_the_page_can_be_read_by_machines(written):
    page = Page(written[2])
    assert page.all("html") == [{"lang": "en"}]
    assert all(attrs.get("alt") for attrs in page.all("img"))
    assert all(attrs.get("scope") in ("col", "row") for attrs in page.all("th"))
    headings = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert headings[0] == 1
    assert headings.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(headings))
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert {attrs["href"][1:] for attrs in page.all("a")} <= set(ids)
    assert {attrs["aria-labelledby"] for attrs in page.all("section")} <= set(ids)


def test_the_answer_comes_first(written):
    said = [part for part in Page(written[2]).said if part.strip()]
    summary, _ = load(written[0])
    heading = len(said) - 1 - said[::-1].index("Curves")
    assert all(said.index(part) < heading for part in answer_parts(summary))
    assert answer(summary) == " ".join(answer_parts(summary))


def test_tables_hold_the_numbers(written):
    folder, _, _ = written
    summary, _ = load(folder)
    table = pd.read_csv(folder / "summary.csv").set_index(["dataset", "series"])
    ally = next(c for c in summary.comparisons if c.strategy == "ally")
    assert table.loc[("toy", "ally"), "gain"] == pytest.approx(ally.gain)
    assert table.loc[("toy", "ally"), "label_ratio"] < 1
    curves = pd.read_csv(folder / "curves.csv")
    assert list(curves) == [
        "dataset",
        "metric",
        "series",
        "strategy",
        "labels",
        "seeds",
        "mean",
        "std",
        "low",
        "high",
        "smoothing",
    ]
    assert len(curves) == (4 + 2) * 4


def test_equal_results_give_equal_files(written):
    folder, _, text = written
    before = {name: (folder / name).read_bytes() for name in FILES}
    write_report(folder)
    assert {name: (folder / name).read_bytes() for name in FILES} == before
    assert text.encode() == before["report.html"]


def test_smoothing_is_marked_and_changes_curves_only(tmp_path):
    drawn().to_csv(tmp_path / "results.csv", index=False)
    write_report(tmp_path)
    raw, plain = pd.read_csv(tmp_path / "summary.csv"), (tmp_path / "curves.svg").read_text()
    path = write_report(tmp_path, smoothing=0.6, band="std")
    assert pd.read_csv(tmp_path / "summary.csv").equals(raw)
    assert set(pd.read_csv(tmp_path / "curves.csv")["smoothing"]) == {0.6}
    assert "smoothed by a moving average of weight 0.6" in path.read_text()
    assert '"smoothed":true' in path.read_text()
    assert '<option value="std" selected>' in path.read_text()
    assert "smoothed" in (tmp_path / "curves.svg").read_text()
    assert "smoothed" not in plain


def test_bad_settings_are_told_before_anything_is_written(tmp_path):
    drawn().to_csv(tmp_path / "results.csv", index=False)
    with pytest.raises(InputError, match="smoothing=2"):
        write_report(tmp_path, smoothing=2)
    with pytest.raises(InputError, match="band='sd' must be one of ci, std"):
        write_report(tmp_path, band="sd")
    (tmp_path / "settings.json").write_text('{"baseline": "bagde"}')
    with pytest.raises(
        InputError, match="the baseline 'bagde' is not among the results; it can be one of ally, random"
    ):
        write_report(tmp_path)
    with pytest.raises(InputError, match="is not a folder"):
        write_report(tmp_path / "nowhere")
    assert {file.name for file in tmp_path.iterdir()} == {"results.csv", "settings.json"}


def test_a_failed_write_leaves_the_old_file(tmp_path):
    write_whole(tmp_path / "a", b"old")
    with pytest.raises(TypeError):
        write_whole(tmp_path / "a", "no bytes")
    assert (tmp_path / "a").read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize(
    "table",
    [
        rows({("ally", 0): [0.5]}),
        rows({("ally", 0): [0.5, 0.6], ("ally-paper", 1): [0.5]}),
        rows({("random", 0): [0.5, 0.5], ("random", 1): [0.5, 0.5]}),
        pd.concat([drawn(dataset="a"), drawn(strategies=("ally", "margin"), dataset="b")]),
        rows({("_hidden $x^2$", 0): [3.0, 4.0], ("random", 0): [3.0, 4.0], ("random", 1): [3.0, 5.0]}, metric="rmse"),
    ],
    ids=[
        "one row",
        "no baseline, no shared seed",
        "only random",
        "a set without the baseline",
        "odd names, no progress",
    ],
)
def test_poor_grids_get_a_report_too(tmp_path, table):
    table.to_csv(tmp_path / "results.csv", index=False)
    assert write_report(tmp_path).stat().st_size > 1e5


def test_the_answer_is_honest():
    table = drawn(strategies=("ally", "margin", "random"), seeds=5, gain=0.0, noise=0.03)
    table = table[~((table["strategy"] == "margin") & (table["seed"] == 4) & (table["round"] > 1))]
    said = answer(summarise(table))
    assert "against random: " in said
    assert "Corrected for 2 comparisons (Holm, t test)" in said
    assert "over 4 to 5 paired seeds" in said
    assert "cannot give p < 0.0625 (0.125 once corrected for 2 comparisons)" in said
    assert "The runs are not all alike: margin on toy: 1 of 5 campaigns end before 40 labels." in said
    assert "Unfinished campaigns are left out of comparisons." in said
    many = answer(summarise(drawn(seeds=10)))
    assert (
        many
        == "On toy, against random: 1 of 1 series is shown to be better (ally). Intervals are over 10 paired seeds."
    )
    assert answer(summarise(drawn(seeds=1))) == "On toy: too few seeds to say how anything compares with random."


def test_the_baseline_is_chosen_or_given():
    table = drawn(strategies=("ally", "margin", "coreset"))
    assert summarise(table).baseline == "margin"
    assert summarise(table, "coreset").baseline == "coreset"
    assert summarise(drawn()).baseline == "random"


def test_many_series_stay_readable():
    names = ("ally", *(f"s{number}" for number in range(20)), "random")
    look = styles(summarise(drawn(strategies=names, seeds=2)))
    assert sum(style.shown for style in look.values()) == SHOWN
    assert look["ally"].shown
    assert look["random"].shown
    assert look["random"].dashed
    assert look["ally"].strong
    shown = [(style.colour, style.marker) for style in look.values() if style.shown]
    assert len(set(shown)) == SHOWN


def test_the_best_curves_are_drawn_whatever_their_baseline():
    """Under the better training every strategy gains little on its own baseline, and still is best."""
    names = ["random", *(f"s{number}" for number in range(8))]
    plain = rows(
        {(name, 0): [0.5, 0.6 + 0.02 * place, 0.6] for place, name in enumerate(names)},
        labels=(10, 20, 30),
        setting="plain",
    )
    good = rows(
        {(name, 0): [0.9, 0.95 + 0.001 * place, 0.95] for place, name in enumerate(names)},
        labels=(10, 20, 30),
        setting="good",
    )
    summary = summarise(pd.concat([plain, good], ignore_index=True))
    look = styles(summary)
    assert all(style.shown for name, style in look.items() if name.endswith("good"))
    assert sum(style.shown for style in look.values()) == SHOWN
    text = render_page(summary, Description(), b"")
    assert f"{18 - SHOWN} of 18 series start hidden" in text
    assert "start hidden" not in render_page(summarise(drawn()), Description(), b"")


def test_nothing_to_compare_is_not_unfinished():
    start_only = rows({(name, seed): [0.5] for name in ("ally", "random") for seed in range(3)})
    assert answer(summarise(start_only)) == "On toy: nothing to compare with random yet."


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_values_that_are_no_numbers_are_refused(value):
    table = drawn()
    table.loc[3, "value"] = value
    with pytest.raises(InputError, match=rf"ally on toy, seed 0, round 3: value={value} is not a finite number"):
        summarise(table)


def contrast(first, second):
    def light(hexes):
        parts = [int(hexes[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    low, high = sorted((light(first), light(second)))
    return (high + 0.05) / (low + 0.05)


def test_colours_stand_out_from_both_backgrounds():
    from ally.report.page.charts import read_asset
    from ally.report.style import ALLY, OTHERS

    backs = re.findall(r"--back: (#\w{6})", read_asset("page.css"))
    texts = {
        name: re.findall(rf"--{name}: (#\w{{6}})", read_asset("page.css"))
        for name in ("text", "dim", "accent", "good", "bad")
    }
    for mode in (0, 1):
        assert all(contrast(pair[mode], backs[mode]) >= 3 for pair in (*ALLY, *OTHERS))
        assert all(contrast(found[mode], backs[mode]) >= 4.5 for found in texts.values())


@pytest.mark.parametrize(("constant", "drawn_as"), [(0.45, "a line"), (0.1, "words at the edge")])
def test_the_answer_that_is_always_the_same_is_in_both_charts(constant, drawn_as):
    summary = replace(summarise(drawn()), constants={"toy": constant})
    assert chart_data(summary)[0]["constant"] == {"name": "most common class", "value": constant}
    ax = draw(summary).axes[0]
    lines = [line for line in ax.lines if line.get_label() == "most common class"]
    words = [text.get_text() for text in ax.texts]
    if drawn_as == "a line":
        assert lines[0].get_ydata()[0] == constant
        assert ax.get_ylim()[0] < constant
        assert words == []
    else:
        assert not lines
        assert words == ["most common class: 0.1 ↓"]
    below = replace(summary, constants={"toy": 0.99})
    assert any("end no better" in told and "--model" in told for told in against_constant(below, "toy"))
