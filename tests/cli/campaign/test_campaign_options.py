"""Settings become options, and errors name options on the command line."""

import inspect
from dataclasses import fields, make_dataclass
from pathlib import Path

import numpy as np
import pytest

import ally
from ally.campaign import Settings, setting_checks, settings
from ally.campaign.settings import declarations
from ally.cli import main
from ally.cli.campaign.options import FORMS, LATER, option_of
from ally.errors import AnswerError, InputError


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (InputError.about("batch", 0, "must be a whole number"), "--batch 0 must be a whole number"),
        (InputError.about("random_share", 1.5, "is not a share"), "--random-share 1.5 is not a share"),
        (InputError.about("lease_seconds", 0, "must be > 0"), "--lease 0 must be > 0"),
        (InputError.about("policy", "x", "; use another"), "--policy 'x'; use another"),
        (AnswerError.about("key", "a b", "was used by 'ann'"), "--key 'a b' was used by 'ann'"),
        (InputError("label=x.csv is empty; give a file"), "label=x.csv is empty; give a file"),
    ],
)
def test_an_error_names_the_option(error, words):
    assert error.worded(option_of) == words


@pytest.mark.parametrize(
    "chosen",
    [{"batch": 0}, {"opinions": 0}, {"budget": 0}, {"random_share": 2}, {"classes": ["a"]}, {"policy": "first"}],
)
def test_settings_are_named_by_their_options(chosen):
    with pytest.raises(InputError) as refused:
        Settings(None, {}, {}, **chosen)
    (name,) = chosen
    assert refused.value.argument == name
    assert refused.value.worded(option_of).startswith(f"--{name.replace('_', '-')} ")
    assert str(refused.value).startswith(f"{name}=")


def page(capsys, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("sys.argv", ["ally", command, "--help"])
    with pytest.raises(SystemExit):
        main()
    return capsys.readouterr().out


@pytest.mark.parametrize(("command", "forms"), [("new", FORMS), ("change", LATER)])
def test_every_setting_is_an_option_with_its_meaning(capsys, monkeypatch, command, forms):
    shown = page(capsys, monkeypatch, command)
    offered = [item for item in declarations() if command == "new" or not item.fixed]
    for item in offered:
        option = forms[item.name].option if item.name in forms else item.name
        assert f"--{option.replace('_', '-')} " in shown or f"--{option}/" in shown, item
        assert item.name in forms or item.meaning[:40] in shown, item
    if command == "change":
        assert "--seed" not in shown
        assert "--validation" not in shown


def test_every_setting_is_in_the_signature_of_create_and_in_the_documentation():
    shown = inspect.signature(ally.Campaign.create)
    for item in declarations():
        assert shown.parameters[item.name].default == item.default
        assert f"{item.name}: {item.meaning}" in ally.Campaign.create.__doc__


def test_the_page_lists_the_settings_as_they_are(monkeypatch):
    docs = Path(__file__).parents[3] / "docs"
    monkeypatch.syspath_prepend(str(docs))
    import build_settings

    text = (docs / "campaign.md").read_text(encoding="utf-8")
    assert text == build_settings.page(text), "run python docs/build_settings.py"
    assert "`random_share` | `0.0` | yes |" in text


def test_a_setting_declared_in_one_place_is_everywhere(monkeypatch):
    """What it takes to add one: a field."""
    extra = settings.setting(3, "Queries", "How often to say hello.", setting_checks.check_positive)
    grown = make_dataclass("Settings", [("hellos", int, extra)], bases=(Settings,), frozen=True)
    monkeypatch.setattr(settings, "Settings", grown)
    settings.declarations.cache_clear()
    try:
        assert [item.name for item in settings.declarations()][-1] == "hellos"
        assert grown(None, {}, {}, hellos=5).to_json()["hellos"] == 5
        with pytest.raises(InputError, match="hellos=0 must be a whole number of at least 1"):
            grown(None, {}, {}, hellos=0)
        assert settings.changed_settings(grown(None, {}, {}), {"hellos": 9}).hellos == 9
    finally:
        settings.declarations.cache_clear()


def test_each_setting_has_a_check():
    for item in fields(Settings):
        assert item.name in ("place", "options", "fingerprint", "ignored") or callable(item.metadata["check"])


def test_an_unknown_argument_of_create_names_those_there_are(tmp_path):
    with pytest.raises(
        InputError, match=r"colour= is not known; a source takes kind, id_column, .*; a campaign has .*batch"
    ):
        ally.Campaign.create(tmp_path / "a.db", np.zeros((30, 2)), colour="red")


def test_an_empty_file_is_reported(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    np.save("none.npy", np.zeros((0, 3)))
    (tmp_path / "none.csv").write_text("id,a\n")
    for name in ("none.npy", "none.csv"):
        monkeypatch.setattr("sys.argv", ["ally", "query", name, "--n", "1"])
        with pytest.raises(SystemExit):
            main()
        told = {
            "none.npy": "has 0 sample(s), while a minimum of 1",
            "none.csv": "has no sample that can be read (it has a header",
        }
        assert capsys.readouterr().err.startswith(f"error: {name} {told[name]}")
