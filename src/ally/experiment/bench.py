"""Does active learning pay off on these data? Builds a grid from names."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pandas as pd

from ally._renamed_arguments import renamed_arguments
from ally.catalogue_names import ensure_model
from ally.checks import check_count
from ally.data.catalogue import DATASETS, Reading
from ally.data.catalogue.own_data import DataOptions
from ally.data.defaults import learner_by_shape
from ally.data.encoders.choosing import reads_pixels
from ally.errors import InputError
from ally.experiment.cell import Cell
from ally.experiment.folder import Grid, run, told
from ally.experiment.opening import forget_trials, is_campaign, open_campaign, open_trial
from ally.experiment.trial import Trial
from ally.hygiene import Hygiene
from ally.learning.auto_objective import objective_of
from ally.learning.objectives import Objective
from ally.learning.training import Training
from ally.strategies import CATALOGUE
from ally.types import Progress, Task

STRATEGIES = ("ally", "badge", "margin", "random")


@renamed_arguments(target="label", candidates="look_at")
def bench(
    datasets: str | Path | Sequence[str | Path],
    strategies: str | Sequence[str] = STRATEGIES,
    *,
    out: str | Path,
    seeds: int = 5,
    init: int | None = None,
    batch: int | None = None,
    rounds: int = 8,
    models: str | Sequence[str | None] | None = None,
    objectives: str | Objective | Sequence[str | Objective | None] | None = None,
    validation: int = 0,
    look_at: int | None = None,
    metric: str | None = None,
    hygiene: Hygiene | None = Hygiene(),
    training: Training = Training(),
    label: str | None = None,
    task: Task | Literal["auto"] = "auto",
    reading: Mapping[str, Any] | None = None,
    encoder: str | Path | None = "auto",
    data_dir: str | Path | None = None,
    workers: int | None = None,
    engine: str = "local",
    progress: Progress | None = None,
    say: Callable[[str], None] | None = None,
) -> pd.DataFrame:
    """Simulated campaigns of every strategy on every data set, in the folder `out`; run it again and it continues.

    Args:
        datasets: names that ``ally datasets`` lists; your own files and folders, which are opened as
            `ally.Campaign.create` opens them (tables with `label`, folders of images by class); or campaigns
            (``"pets.db"``), whose labels are the answers and whose settings are used.
        strategies: names of the catalogue. Those not defined for a data set's task are left out there, with a note.
        seeds: campaigns per strategy; a seed sets the start, the weights and the strategy's own draws.
        init: random labels at the start; by default as many as a batch, and at least two per class.
        batch: labels per round; by default a hundredth of the pool, between 10 and 200.
        rounds: batches after the start. You can raise it later.
        models: names of learners; None is what a campaign has: ``"auto"``, the best by cross-validation on the labels
            so far, chosen again each time they have grown by half.
        objectives: how the networks are trained; None as each strategy says.
        validation: labels bought at the start for early stopping; they are counted.
        look_at: choose only among this many unlabelled samples, drawn at random.
        metric: what is measured on the test set: accuracy (the default for classes), balanced_accuracy, macro_f1, auroc
            or log_loss; rmse (the default for numbers), mae, r2 or mse.
        hygiene: which candidates every query sets aside, by default as in `ally.query`; None for none.
        label: the column of a table that holds the labels; without it the one called label, class, target or y.
        task: what the labels of a table are; by default up to 100 different whole numbers are classes.
        reading: how a table is read, where that is not found out; options of `ally.data.open_source` by name: text,
            image, columns, id_column, header, encoding, folder, embeddings (a file of vectors), ids,
            missing_label, size, channels.
        workers: campaigns at a time on this machine, each in a process of its own; by default one per core. 0 runs
            them in this process, for a debugger.
        engine: ``"local"``, or ``"ray"`` or ``"ray://host:port"``: campaigns as tasks of a Ray cluster, all of whose
            machines see the folder `out`. Numbers are the same.
        encoder: your texts and photos are learned from through this pretrained encoder: a name, the folder of a model,
            ``"none"``, or ``"auto"``: the one that is installed, as in a campaign. Named data sets have none unless it
            is named.

    Returns:
        The same table as in ``out/results.csv``.
    """
    names = [str(name) for name in _listed("datasets", datasets)]
    chosen = _listed("strategies", strategies)
    for name, value, least in (
        ("seeds", seeds, 1),
        ("init", init, 1),
        ("batch", batch, 1),
        ("look_at", look_at, 1),
        ("workers", workers, 0),
    ):
        if value is not None:
            check_count(name, value, least)
    wanted = [None] if models is None else _listed("models", models)
    trained_by = _listed("objectives", objectives)
    for model in wanted:
        if isinstance(model, str):
            ensure_model(model)
    for objective in trained_by:
        if objective is not None:
            objective_of(objective)
    read = Reading.of(reading)
    of_pixels = next((model for model in wanted if isinstance(model, str) and reads_pixels(model)), None)
    through = None if encoder is None else str(encoder)
    folder, kept_in = None if data_dir is None else Path(data_dir), Path(out).absolute() / "encoded"
    data = DataOptions(folder, label, task, read, through, of_pixels, kept_in)
    forget_trials()
    cells: list[tuple[str, Cell]] = []
    notes: list[str] = []
    for name in names:
        trial = open_trial(data, name, progress)
        sizes = _choose_sizes(trial, init, batch, rounds, validation)
        defaults = _find_defaults(name, trial, training, sizes[0])
        fitting = [strategy for strategy in chosen if trial.task in CATALOGUE[strategy].tasks]
        notes += [
            f"{strategy} is not defined for {trial.task}, so not run on {name}"
            for strategy in chosen
            if strategy not in fitting
        ]
        if not fitting:
            raise InputError(
                f"none of {', '.join(chosen)} is defined for {trial.task} ({name}); add 'random' or 'coreset'"
            )
        for seed, model, objective, strategy in itertools.product(range(seeds), wanted, trained_by, fitting):
            learner = defaults.model if model is None else model
            cell = Cell(
                strategy,
                seed,
                *sizes,
                rounds,
                learner,
                defaults.training if learner == defaults.network else training,
                defaults.objective if objective is None else objective,
                f"encoder {trial.encoder}" if trial.encoder else "",
                None,
                look_at,
                validation,
                metric=defaults.metric if metric is None else metric,
                hygiene=hygiene,
            )
            cells.append((name, cell))
    settings = {**told(tuple(cells)), **({} if label is None else {"label": label}), "task": task}
    settings |= {f"read with {option}": str(value) for option, value in read.options().items()}
    title, question = f"Active learning on {', '.join(names)}", "Does it pay to choose which samples are labelled?"
    grid = Grid(title, question, tuple(cells), settings, tuple(notes))
    return run(grid, Path(out), data=data, workers=workers, engine=engine, progress=progress, say=say)


class _CampaignDefaults(NamedTuple):
    """What a campaign on these data would use."""

    network: str
    """The network that is the default for such samples, and its training."""
    training: Training
    model: str = "auto"
    objective: str | None = None
    metric: str | None = None


def _find_defaults(name: str, trial: Trial, training: Training, labels: int) -> _CampaignDefaults:
    """For a data set of the catalogue, the training that was said, or that of networks in general; `labels` are those
    at the start."""
    default, settings = learner_by_shape(tuple(trial.pool.shape[1:]), labels)
    defaults = _CampaignDefaults(
        default, training if name in DATASETS or training != Training() else Training(**settings)
    )
    if not is_campaign(name):
        return defaults
    with open_campaign(name) as (campaign, _):
        kept = campaign.settings
    return defaults._replace(model=kept.model or default, objective=kept.objective, metric=kept.metric)


def _choose_sizes(trial: Trial, init: int | None, batch: int | None, rounds: int, validation: int) -> tuple[int, int]:
    """Labels at the start and per round: what was said, else by the pool, half of which is left where it is small."""
    least = 2 * len(trial.classes or ())
    size = min(200, max(10, trial.size // 100)) if batch is None else batch
    start = max(size, least) if init is None else init
    if batch is None and start + validation + rounds * size > trial.size:
        size = max(1, trial.size // (2 * (rounds + 1)))
        start = max(size, least) if init is None else init
    return start, size


def _listed(name: str, values: Any) -> list[Any]:
    """One value or several, in order, each once."""
    several = values if isinstance(values, (list, tuple)) else [values]
    if not several:
        raise InputError(f"{name} is empty; name at least one")
    return list(dict.fromkeys(several))
