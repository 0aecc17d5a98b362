"""The paper's experiments: every preset builds at every scale, says what it does, and runs at the smallest."""

from dataclasses import replace
from pathlib import Path

import pytest

from ally.data.catalogue import DATASETS
from ally.data.catalogue.own_data import DataOptions
from ally.errors import InputError
from ally.experiment.estimate import estimate, in_words
from ally.experiment.opening import open_trial
from ally.experiment.presets import PRESETS, SCALES
from ally.experiment.run import CellsFailed
from ally.experiment.simulate import campaign
from ally.learning.dual_head import PaperHead
from ally.scoring import PredictedDual

GRIDS = [name for name, preset in PRESETS.items() if preset.make is not None]
NAMES = (
    "mnist-200 mnist-1000 cifar10-200 cifar10-1000 svhn-200 svhn-1000 stl10-200 stl10-1000 ptd epsilon-ablation "
    "redundancy clusters tiny-imagenet generation capacity bias diversity self-supervised"
)
NOWHERE = Path("no-such-folder")


def smallest(name):
    return open_trial(DataOptions(), name)


def test_every_experiment_has_a_preset():
    assert set(PRESETS) == set(NAMES.split())


@pytest.mark.parametrize("name", GRIDS)
@pytest.mark.parametrize("scale", SCALES)
def test_settings_are_stated(name, scale):
    grid = PRESETS[name].build(scale, NOWHERE)
    assert {"data", "network", "ε", "batch", "rounds", "final labels", "seeds", "strategies", "training"} <= set(
        grid.settings
    )
    keys = [cell.key(dataset) for dataset, cell in grid.cells]
    assert len(set(keys)) == len(keys) > 1
    assert all(cell.composition for _, cell in grid.cells)
    assert (
        len(
            {
                (cell.training, cell.init, cell.batch)
                for dataset, cell in grid.cells
                if (dataset, cell.model) == grid_first(grid)
            }
        )
        == 1
    )
    if scale == "smoke":
        assert grid.substitute or name == "self-supervised"
        assert any("no result" in note for note in grid.notes)


def grid_first(grid):
    dataset, cell = grid.cells[0]
    return dataset, cell.model


def here(folder, *names):
    """Files of these data sets, empty: enough to be there."""
    for file in (file for name in names for file in DATASETS[name].files):
        (folder / file.path).parent.mkdir(parents=True, exist_ok=True)
        (folder / file.path).touch()
    return folder


def datasets(grid):
    return list(dict.fromkeys(dataset for dataset, _ in grid.cells))


def test_absent_data_are_replaced_and_it_is_said(tmp_path):
    grid = PRESETS["redundancy"].build("full", here(tmp_path, "mnist"))
    assert datasets(grid) == ["mnist"]
    absent = "its files are not here (`ally datasets fetch stl10` for the paper's data)"
    assert grid.substitute == f"mnist with mlp stands in for stl10: {absent}"
    figure = PRESETS["epsilon-ablation"].build("full", tmp_path)
    assert (datasets(figure), figure.substitute) == (["mnist"], None)
    assert f"the figure's panel of stl10 is left out: {absent}" in figure.notes


@pytest.mark.parametrize(("name", "wanted"), [("tiny-imagenet", "tiny-imagenet"), ("redundancy", "stl10")])
def test_missing_data_is_not_used_as_a_substitute(name, wanted):
    grid = PRESETS[name].build("full", NOWHERE)
    assert (datasets(grid), grid.substitute) == ([wanted], None)


def test_the_figure_of_two_data_sets_has_both(tmp_path):
    folder = here(tmp_path, "mnist", "stl10")
    assert datasets(PRESETS["epsilon-ablation"].build("full", folder)) == ["stl10", "mnist"]
    small = PRESETS["epsilon-ablation"].build("small", folder)
    assert datasets(small) == ["stl10"]
    assert "data: stl10 instead of stl10, mnist" in small.notes


def test_what_a_smaller_scale_leaves_out_is_named():
    small = PRESETS["mnist-200"].build("small", NOWHERE)
    assert "not run at this scale: accumulated-loss; entropy; bait (10000 candidates)" in small.notes
    full = PRESETS["tiny-imagenet"].build("full", NOWHERE)
    assert {"entropy", "accumulated-loss"} <= {cell.strategy for _, cell in full.cells}
    assert any(note.startswith("bait is not run") for note in full.notes)


@pytest.mark.parametrize("name", ["ally-paper", "ally-clusters"])
def test_both_lines_of_ally_choose_among_the_same_candidates(name):
    cells = [
        cell
        for _, cell in PRESETS["redundancy"].build("small", NOWHERE).cells
        if cell.strategy in (name, f"{name}, low diversity")
    ]
    assert (
        len({replace(cell.composition, select=replace(cell.composition.select, clusters=None)) for cell in cells}) == 1
    )
    assert {cell.composition.select.clusters for cell in cells} == {None, 20}


@pytest.mark.parametrize("name", GRIDS)
def test_every_strategy_of_an_experiment_is_trained_by_the_papers_protocol(name):
    grid = PRESETS[name].build("small", NOWHERE)
    own = "fixed" if name == "self-supervised" else "paper"
    assert {cell.protocol for _, cell in grid.cells} == {own}
    assert grid.settings["protocol"] == own
    if own == "paper":
        assert {cell.validation for _, cell in grid.cells} == {100 if name == "ptd" else 200}
        assert {cell.training.patience for _, cell in grid.cells} == {2}
    fixed = PRESETS[name].build("small", NOWHERE, "fixed")
    assert {(cell.protocol, cell.validation) for _, cell in fixed.cells} == {("fixed", 0)}


@pytest.mark.parametrize("name", ["epsilon-ablation", "redundancy", "clusters", "capacity", "bias"])
def test_ablations_examine_the_papers_method_and_ours_beside_it(name):
    cells = [cell for _, cell in PRESETS[name].build("full", NOWHERE).cells]
    paper = [cell for cell in cells if cell.strategy.startswith("ally-paper")]
    own = [cell for cell in cells if cell.strategy.startswith("ally") and cell not in paper]
    assert len(paper) == len(own) > 0
    for cell in paper:
        asking = cell.leader.composition if cell.leader else cell.composition
        assert asking.score == PredictedDual(PaperHead())
        assert asking.objective.slacks == "all"
        assert asking.objective.eps is None or name == "epsilon-ablation"


@pytest.mark.parametrize("name", GRIDS)
def test_the_last_line_of_every_preset_runs(name):
    dataset, cell = PRESETS[name].build("smoke", None).cells[-1]
    rounds = list(campaign(smallest(dataset), cell))
    assert len(rounds) == cell.rounds + 1
    assert rounds[-1].record.labels == cell.labels
    assert rounds[-1].record.value == pytest.approx(rounds[-1].record.value)


def test_the_estimate_is_of_the_order_of_what_it_takes():
    cells = [(dataset, cell) for dataset, cell in PRESETS["mnist-200"].build("smoke", None).cells if cell.seed == 0]
    cells = [(dataset, replace(cell, rounds=4)) for dataset, cell in cells]
    estimated = estimate(smallest, cells)
    records = [done.record for dataset, cell in cells for done in campaign(smallest(dataset), cell)]
    taken = sum(record.train_seconds + record.query_seconds for record in records)
    assert taken / 6 < estimated < 6 * taken


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "1 seconds"), (80, "80 seconds"), (300, "5.0 minutes"), (7200, "2.0 hours"), (1e5, "28 hours")],
)
def test_times_in_words(seconds, words):
    assert in_words(seconds) == words


def test_missing_data_is_a_clear_error(tmp_path):
    from ally.experiment import run

    grid = PRESETS["svhn-200"].build("small", tmp_path)
    with pytest.raises(Exception, match=r"the data set 'svhn' is not in .*ally datasets fetch svhn"):
        run(grid, tmp_path / "out", data=DataOptions(tmp_path))
    assert not (tmp_path / "out").exists()


def test_errors_are_the_librarys():
    assert issubclass(CellsFailed, Exception)
    with pytest.raises(InputError, match="unknown preset 'mnist'; did you mean"):
        PRESETS["mnist"]


def test_settings_that_a_smaller_scale_leaves_out_are_named_once(tmp_path):
    small = PRESETS["redundancy"].build("small", tmp_path)
    assert "not run at this scale: 2 copies; 2 copies with noise; 10 copies; 10 copies with noise" in small.notes
