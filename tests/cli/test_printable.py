"""Nothing out of a file moves the cursor, changes colours or turns lines around on a terminal; files and pipes get it
as it is."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest

import ally
from ally.cli import main
from ally.cli.campaign.sheets import write_rows
from ally.cli.console import make_printable

HOSTILE = ["\x1b[2Jgone", "\x1b]0;title\x07", "\u202egnp.exe", "a\rb", "\u2066x\u2069", "\x9b31m", "line\nerror: fine"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("odd", HOSTILE)
def test_ids_are_printable_on_a_terminal_and_true_in_a_pipe(monkeypatch: pytest.MonkeyPatch, odd: str) -> None:
    screen, pipe = Terminal(), io.StringIO()
    for stream in (screen, pipe):
        monkeypatch.setattr(sys, "stdout", stream)
        assert write_rows(None, ["id"], [{"id": odd}]) == 1
    assert screen.getvalue().splitlines() == ["id", make_printable(pipe.getvalue()[3:-1])]
    assert all(line.isprintable() for line in screen.getvalue().splitlines())
    assert odd in pipe.getvalue()


@pytest.mark.parametrize("odd", HOSTILE)
def test_errors_are_one_printable_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], odd: str
) -> None:
    monkeypatch.setattr(sys, "argv", ["ally", "status", f"no{odd}where"])
    with pytest.raises(SystemExit):
        main()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.isprintable()


def test_commands_print_nothing_that_moves_the_cursor(tmp_path: Path) -> None:
    rows = "".join(f'"s{n}\x1b[2J\u202e",{n}\n' for n in range(30))
    (tmp_path / "rows.csv").write_text(f"id,x\n{rows}")
    with ally.Campaign.create(
        tmp_path / "a.db", tmp_path / "rows.csv", classes=["a\x1b[31m", "b\u202e"], automatic=False
    ) as campaign:
        campaign.relabel({"s1\x1b[2J\u202e": "a\x1b[31m"}, annotator="ann\x1b[2J")
    for words in (["status", "a"], ["classes", "a"], ["ask", "a", "--n", "2"], ["doctor", "a"], ["review", "a"]):
        seen = run_on_terminal(words, tmp_path)
        # rich colours nothing in plain texts, and carriage returns are the terminal's own.
        assert "\x1b[2J" not in seen
        assert "\x1b[31m" not in seen
        assert "\u202e" not in seen


def run_on_terminal(words: list[str], folder: Path) -> str:
    code = "import pty, sys; sys.exit(pty.spawn([sys.executable, '-m', 'ally', *sys.argv[1:]]) >> 8)"
    done = subprocess.run(
        [sys.executable, "-c", code, *words], cwd=folder, capture_output=True, check=False, timeout=60
    )
    return done.stdout.decode()
