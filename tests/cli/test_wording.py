"""Errors name options on the command line, and what the user gave is left as it is."""

import numpy as np
import pytest

from ally.campaign import Settings
from ally.cli import main
from ally.cli.wording import OPTIONS, worded
from ally.errors import InputError


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("batch=0 must be a whole number of at least 1", "--batch 0 must be a whole number of at least 1"),
        ("random_share=1.5 is not a share", "--random-share 1.5 is not a share"),
        ("label 'x' is not one of the 2 classes; declare it in `classes`", "label 'x' is not one of the 2 classes; list it in --classes"),
        ("the label of 'n=0' is 'batch=2'; declare it", "the label of 'n=0' is 'batch=2'; declare it"),
        ("1 of 1 sample ids are unknown, the first is 'classes=a'", "1 of 1 sample ids are unknown, the first is 'classes=a'"),
        ("n= is not known", "n= is not known"),
        ("label=x.csv is empty; give a file", "label=x.csv is empty; give a file"),
        ("n=5.csvx is not there; give another", "n=5.csvx is not there; give another"),
        ("key='a b' was used by 'ann' for other answers", "--key 'a b' was used by 'ann' for other answers"),
    ],
)
def test_words(message, words):
    assert worded(message) == words


@pytest.mark.parametrize(
    "chosen", [{"batch": 0}, {"opinions": 0}, {"budget": 0}, {"random_share": 2}, {"random_share": 0.8}, {"classes": ["a"]}]
)
def test_settings_are_named_by_their_options(chosen):
    with pytest.raises(InputError) as refused:
        Settings(None, {}, {}, **chosen)
    (name,) = chosen
    assert f"--{name.replace('_', '-')} " in worded(str(refused.value))
    assert "_" not in worded(str(refused.value))


def test_every_option_is_one_of_a_command(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    pages = ""
    for command in ("new", "ask", "tell"):
        monkeypatch.setattr("sys.argv", ["ally", command, "--help"])
        with pytest.raises(SystemExit):
            main()
        pages += capsys.readouterr().out
    assert [name for name in OPTIONS if f"--{name.replace('_', '-')} " not in pages] == []


def test_an_empty_file_is_called_so(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    np.save("none.npy", np.zeros((0, 3)))
    (tmp_path / "none.csv").write_text("id,a\n")
    for name in ("none.npy", "none.csv"):
        monkeypatch.setattr("sys.argv", ["ally", "query", name, "--n", "1"])
        with pytest.raises(SystemExit):
            main()
        assert capsys.readouterr().err == f"error: {name} has no rows; give at least one sample\n"
