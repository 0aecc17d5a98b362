"""Run folders of `ally bench` that somebody else made: results, settings, journals, and links in their places."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from case import HostileCase, Words

REPORT: Words = ("report", "{path}")
BENCH: Words = (
    *("bench", "--dataset", "digits", "--strategy", "random", "--seeds", "1", "--init", "20", "--batch", "10"),
    *("--rounds", "1", "--model", "linear", "--workers", "0", "--out", "{path}"),
)
COLUMNS = "dataset,model,objective,setting,strategy,seed,batch,round,labels,validation_labels,metric,value,train_seconds,query_seconds"
SCRIPT = "<script>fetch('http://127.0.0.1:9')</script>"
QUOTES = '"><img src=x onerror=alert(1)>'
WRITTEN, REFUSED = (
    "report.html",
    "results.csv|settings.json|damaged|is a link|not followed|is not a|does not exist|at most",
)


def write_results(strategies: list[str], dataset: str = "d", labels: int = 10, value: str = "0.5") -> str:
    lines = [
        f'"{dataset}",m,o,,"{name}",{seed},10,{number},{labels * (number + 1)},0,accuracy,{value},0,0'
        for name in strategies
        for seed in range(3)
        for number in range(3)
    ]
    return "\n".join([COLUMNS, *lines]) + "\n"


def make_run(results: Callable[[], str], settings: Callable[[], str] = lambda: "{}") -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / "run").mkdir()
        (folder / "run" / "results.csv").write_text(results())
        (folder / "run" / "settings.json").write_text(settings())
        return folder / "run"

    return make


def make_link(name: str, to: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / "run" / name
        path.parent.mkdir(parents=True)
        path.symlink_to(folder.parent / to)
        return folder / "run"

    return make


def make_pipe(name: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / "run" / "cells").mkdir(parents=True)
        os.mkfifo(folder / "run" / name)
        return folder / "run"

    return make


def make_journal(content: bytes) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / "run" / "cells").mkdir(parents=True)
        (folder / "run" / "cells" / "a.jsonl").write_bytes(content)
        return folder / "run"

    return make


def set_facts(**facts: object) -> Callable[[], str]:
    return lambda: json.dumps(facts)


HOSTILE = [SCRIPT, QUOTES.replace('"', '""'), "javascript:alert(1)", "$\\frac{x^", "_under", "\x1b]0;x\x07", "x" * 1000]

CASES = [
    HostileCase(
        "script in the names of a run", make_run(lambda: write_results(HOSTILE, SCRIPT)), WRITTEN, (REPORT,), True
    ),
    HostileCase(
        "script in the settings of a run",
        make_run(
            lambda: write_results(["random", "ally"]),
            set_facts(title=SCRIPT, question=QUOTES, notes=[SCRIPT], settings={SCRIPT: QUOTES}, substitute=SCRIPT),
        ),
        WRITTEN,
        (REPORT,),
    ),
    HostileCase("a name of a megabyte", make_run(lambda: write_results(["x" * 10**6])), REFUSED, (REPORT,)),
    HostileCase("labels beyond all bounds", make_run(lambda: write_results(["a"], labels=10**15)), REFUSED, (REPORT,)),
    HostileCase("a billion labels", make_run(lambda: write_results(["a", "b"], labels=3 * 10**8)), WRITTEN, (REPORT,)),
    HostileCase(
        "values beyond all bounds",
        make_run(lambda: write_results(["a", "b"], value="1e308")),
        f"{WRITTEN}|{REFUSED}",
        (REPORT,),
    ),
    HostileCase(
        "a thousand strategies",
        make_run(lambda: write_results([f"s{n}" for n in range(1000)])),
        REFUSED,
        (REPORT,),
        True,
    ),
    HostileCase("results with NUL", make_run(lambda: write_results(["a\0b"])), f"{WRITTEN}|{REFUSED}", (REPORT,)),
    HostileCase(
        "results of one endless line", make_run(lambda: COLUMNS + "\n" + '"' + "x" * 10**7), REFUSED, (REPORT,)
    ),
    HostileCase(
        "settings of deep lists", make_run(lambda: write_results(["a"]), lambda: "[" * 10**6), REFUSED, (REPORT,)
    ),
    HostileCase(
        "settings of the wrong kinds",
        make_run(lambda: write_results(["a"]), set_facts(constants={"d": 10**400})),
        f"{WRITTEN}|{REFUSED}",
        (REPORT,),
    ),
    HostileCase(
        "a baseline that is a list", make_run(lambda: write_results(["a"]), set_facts(baseline=[1])), REFUSED, (REPORT,)
    ),
    HostileCase("results that are a pipe", make_pipe("results.csv"), REFUSED, (REPORT,), False),
    HostileCase(
        "a lock that leads to a file of the user", make_link(".lock", "elsewhere/secret.txt"), REFUSED, (BENCH,), True
    ),
    HostileCase("a lock that is a pipe", make_pipe(".lock"), REFUSED, (BENCH,)),
    HostileCase("cells that lead elsewhere", make_link("cells", "elsewhere"), REFUSED, (BENCH,)),
    HostileCase(
        "a cell that leads to a file of the user", make_link("cells/a.jsonl", "elsewhere/secret.txt"), REFUSED, (BENCH,)
    ),
    HostileCase("a cell that is a pipe", make_pipe("cells/a.jsonl"), REFUSED, (BENCH,)),
    HostileCase("a cell of deep lists", make_journal(b"[" * 10**6 + b"\n"), REFUSED, (BENCH,)),
    HostileCase("a cell that is a number", make_journal(b"1\n2\n"), REFUSED, (BENCH,)),
    HostileCase("a cell whose settings are a list", make_journal(b'{"settings": []}\n'), REFUSED, (BENCH,)),
    HostileCase(
        "a cell whose identity is an object",
        make_journal(b'{"settings": {"identity": {"a": [1]}}}\n'),
        "results|random|damaged",
        (BENCH,),
    ),
    HostileCase(
        "a cell whose identity is lists",
        make_journal(b'{"settings": {"identity": [[1], {}]}}\n'),
        "results|random|damaged",
        (BENCH,),
    ),
]
