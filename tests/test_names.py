"""One name for one thing at every door: arguments and options, and those of 0.1, which warn."""

import inspect
import warnings

import numpy as np
import pandas as pd
import pytest
import typer.main

import ally
from ally import generation
from ally.cli._renamed_options import RENAMED, Command
from ally.cli.app import app
from ally.data import catalogue, open_source
from ally.errors import InputError
from ally.report import write_report

RETIRED = {"target", "label_column", "every_class", "learner", "n_samples", "n_jobs", "seed", "validate"}
"""Argument names that no public function has: what they meant has another name."""
RETIRED_OPTIONS = {option for names in RENAMED.values() for option in names} - {"--smooth"}
"""`ally generate --smooth` is another thing than what `ally report` calls smoothing."""
GENERATION = (generation.learn, generation.ascend, generation.Learned.quietest)
DOORS = {
    "query": (ally.query, ally.Hygiene, open_source, ally.Campaign.open),
    "bench": (ally.bench, open_source),
    "report": (write_report,),
    "generate": (
        generation.learn,
        generation.ascend,
        generation.Learned.quietest,
        ally.bench,
        ally.ConstrainedClassifier,
    ),
    "new": (ally.Campaign.create, open_source),
    "ask": (ally.Campaign.ask, ally.Campaign.open),
    "tell": (ally.Campaign.tell, ally.Campaign.import_labels),
    "skip": (ally.Campaign.skip,),
    "undo": (ally.Campaign.undo,),
    "review": (ally.Campaign.review, ally.Campaign.open),
    "import": (ally.Campaign.import_labels,),
    "export": (ally.Campaign.export, ally.Campaign.open),
    "retrain": (ally.Campaign.retrain, ally.Campaign.open),
    "predict": (ally.Campaign.predict, ally.Campaign.open, open_source),
    "change": (ally.Campaign.create, ally.Campaign.change),
}
"""By command, what takes its options in Python."""
ELSEWHERE = {"--seed": "random_state", "--from": "source", "--lease": "lease_seconds", "--flat": "recursive"}
ELSEWHERE |= {"--by-hand": "automatic"}
"""Options that differ from their argument: docs/sources.md says why of the first."""
ONLY_HERE = {"--json", "--out", "--dry-run", "--show", "--no-show", "--labels", "--start", "--image-shape", "--share"}
ONLY_HERE |= {"--background", "--with-columns", "--record", "--model", "--as", "--disagreements", "--query"}
"""Options of a command alone: files it reads or writes, and what it prints."""
TABLE = pd.DataFrame({"id": range(60), "x": np.arange(60) % 7, "w": np.arange(60) % 5, "kind": list("ab") * 30})


def walk_commands(group=None, path=()):
    for name, command in (group or typer.main.get_command(app)).commands.items():
        if hasattr(command, "commands"):
            yield from walk_commands(command, (*path, name))
        else:
            yield (*path, name), command


def list_public_functions():
    for home in (ally, ally.Campaign, ally.Loop, generation):
        for name, member in inspect.getmembers(home):
            if not name.startswith("_") and callable(member) and "ally" in str(getattr(member, "__module__", "")):
                yield f"{home.__name__}.{name}", member
    yield "ally.data.catalogue.load", catalogue.load


def test_no_public_function_has_a_retired_name():
    functions = dict(list_public_functions())
    assert {"ally.query", "ally.bench", "Campaign.create", "Campaign.tell", "Loop.ask"} <= set(functions)
    shown = {name: RETIRED & set(inspect.signature(function).parameters) for name, function in functions.items()}
    assert {name: odd for name, odd in shown.items() if odd} == {}


def test_no_command_shows_a_retired_option():
    commands = {" ".join(path): command for path, command in walk_commands()}
    assert set(RENAMED) <= set(commands)
    for name, command in commands.items():
        options = {option for item in command.params for option in (*item.opts, *item.secondary_opts)}
        assert not options & RETIRED_OPTIONS, name
        if name in RENAMED:
            assert isinstance(command, Command)
            assert not options & set(RENAMED[name])
            assert {today.split()[0] for today in RENAMED[name].values()} <= options


def test_an_option_is_named_like_the_argument_that_it_sets():
    group = typer.main.get_command(app)
    odd = {}
    for command, doors in DOORS.items():
        arguments = {argument for door in doors for argument in inspect.signature(door).parameters}
        for item in group.commands[command].params:
            for option in (*item.opts, *item.secondary_opts):
                if option.startswith("--") and option not in ONLY_HERE:
                    words = option[2:].removeprefix("no-").replace("-", "_")
                    plural = words.removesuffix("y") + "ies" if words.endswith("y") else f"{words}s"
                    if not {ELSEWHERE.get(option, words), plural} & arguments:
                        odd.setdefault(command, []).append(option)
    assert odd == {}


def warned(function, *args, **arguments):
    """What it returns, after a warning that names today's argument."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function(*args, **arguments)
    (warning,) = [one for one in caught if issubclass(one.category, DeprecationWarning)]
    assert warning.filename == __file__
    return result, str(warning.message)


def test_a_data_set_by_the_former_name_is_the_same(tmp_path):
    TABLE.to_csv(tmp_path / "t.csv", index=False)
    today = catalogue.load(tmp_path / "t.csv", label="kind")
    former, words = warned(catalogue.load, tmp_path / "t.csv", target="kind")
    assert words == "target= is label= now; the old name goes with 0.3"
    np.testing.assert_array_equal(former.pool, today.pool)
    np.testing.assert_array_equal(former.pool_labels, today.pool_labels)
    with pytest.raises(InputError, match="target= is label= now, and both are passed; leave target= out"):
        catalogue.load(tmp_path / "t.csv", target="kind", label="kind")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_benchmark_by_former_names_is_the_same(tmp_path):
    TABLE.to_csv(tmp_path / "t.csv", index=False)
    few = {"seeds": 1, "rounds": 1, "init": 6, "batch": 3, "workers": 0, "models": "linear"}
    today, former = (
        ally.bench(tmp_path / "t.csv", "margin", out=tmp_path / name, **few, **names)
        for name, names in (
            ("today", {"label": "kind", "look_at": 9}),
            ("former", {"target": "kind", "candidates": 9}),
        )
    )
    figures = ["strategy", "labels", "value"]
    pd.testing.assert_frame_equal(today[figures], former[figures])
    assert len(today) == 2
    assert "9 drawn at random" in (tmp_path / "former" / "settings.json").read_text()


def test_a_campaign_by_former_names_is_the_same(tmp_path):
    data = {"columns": ["x", "w"], "label": "none", "classes": ["a", "b"], "model": "linear", "evaluate": 0}
    data |= {"automatic": False}
    today = ally.Campaign.create(tmp_path / "today.db", TABLE, random_state=3, validation=4, **data)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        former = ally.Campaign.create(tmp_path / "former.db", TABLE, seed=3, validate=4, **data)
    words = {str(one.message) for one in caught if issubclass(one.category, DeprecationWarning)}
    assert words == {
        "seed= is random_state= now; the old name goes with 0.3",
        "validate= is validation= now; the old name goes with 0.3",
    }
    labels = TABLE[["id", "kind"]].rename(columns={"kind": "answer"})[:20]
    with today, former:
        assert former.settings == today.settings
        assert today.settings.to_json().items() >= {"seed": 3, "validate": 4}.items()
        assert today.status().validate.samples == 4
        today.import_labels(labels, label="answer")
        _, told = warned(former.import_labels, labels, label_column="answer")
        assert told == "label_column= is label= now; the old name goes with 0.3"
        assert former.labels() == today.labels() == dict(labels.to_numpy())
        assert former.ask(5).ids == today.ask(5).ids
        today.retrain()
        former.retrain()
        told, words = warned(former.predict, every_class=True)
        assert words == "every_class= is probabilities= now; the old name goes with 0.3"
        pd.testing.assert_frame_equal(told, today.predict(probabilities=True))
        assert "probability of b" in told
    with pytest.raises(InputError, match="seed= is random_state= now, and both are passed; leave seed= out"):
        ally.Campaign.create(tmp_path / "both.db", TABLE, seed=3, random_state=3, **data)
    with ally.Campaign.open(tmp_path / "former.db", TABLE) as again:
        assert (again.settings.random_state, again.settings.validation) == (3, 4)
