"""Does active learning pay off on these data? Builds a grid from names."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from ally._renamed_arguments import renamed_arguments
from ally.catalogue_names import ensure_model
from ally.checks import check_count
from ally.data.catalogue import Reading, load
from ally.errors import InputError
from ally.experiment.cell import Cell
from ally.experiment.encoded import encoded_trial
from ally.experiment.folder import Grid, run, told, trial
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
    encoder: str | Path | None = None,
    data_dir: str | Path | None = None,
    workers: int | None = None,
    engine: str = "local",
    progress: Progress | None = None,
    say: Callable[[str], None] | None = None,
) -> pd.DataFrame:
    """Simulated campaigns of every strategy on every data set, in the folder `out`; run it again and it continues.

    Args:
        datasets: names that ``ally datasets`` lists, table files (with `label`) or folders of images by class.
        strategies: names of the catalogue. Those not defined for a data set's task are left out there, with a note.
        seeds: campaigns per strategy; a seed sets the start, the weights and the strategy's own draws.
        init: random labels at the start; by default as many as a batch, and at least two per class.
        batch: labels per round; by default a hundredth of the pool, between 10 and 200.
        rounds: batches after the start. You can raise it later.
        models: names of learners; None is ``"auto"``: the best by cross-validation on the first labels of each seed,
            for all strategies alike.
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
            missing_label.
        workers: campaigns at a time on this machine, each in a process of its own; by default one per core. 0 runs
            them in this process, for a debugger.
        engine: ``"local"``, or ``"ray"`` or ``"ray://host:port"``: campaigns as tasks of a Ray cluster, all of whose
            machines see the folder `out`. Numbers are the same.
        encoder: texts and images are learned from through this pretrained encoder: a name, or the folder of a model.

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
    folder = None if data_dir is None else Path(data_dir)
    read = Reading.of(reading)
    through = None if encoder is None else (str(encoder), Path(out) / "encoded")
    cells: list[tuple[str, Cell]] = []
    notes: list[str] = []
    for name in names:
        if through is not None:
            data_set = load(name, folder, label=label, task=task, reading=read)
            encoded_trial(data_set, *through, progress)  # to see how far it is
        data = trial(folder, label, task, name, reading=read, encoder=through)
        size = min(200, max(10, data.size // 100)) if batch is None else batch
        start = max(size, 2 * len(data.classes or ())) if init is None else init
        fitting = [strategy for strategy in chosen if data.task in CATALOGUE[strategy].tasks]
        notes += [
            f"{strategy} is not defined for {data.task}, so not run on {name}"
            for strategy in chosen
            if strategy not in fitting
        ]
        if not fitting:
            raise InputError(
                f"none of {', '.join(chosen)} is defined for {data.task} ({name}); add 'random' or 'coreset'"
            )
        for seed, model, objective, strategy in itertools.product(
            range(seeds),
            _listed("models", "auto" if models is None else models),
            _listed("objectives", objectives),
            fitting,
        ):
            if isinstance(model, str):
                ensure_model(model)
            if objective is not None:
                objective_of(objective)
            cell = Cell(
                strategy,
                seed,
                start,
                size,
                rounds,
                model,
                training,
                objective,
                "" if through is None else f"encoder {Path(through[0]).name}",
                None,
                look_at,
                validation,
                metric=metric,
                hygiene=hygiene,
            )
            cells.append((name, cell))
    settings = {**told(tuple(cells)), **({} if label is None else {"label": label}), "task": task}
    settings |= {f"read with {option}": str(value) for option, value in read.options().items()}
    title, question = f"Active learning on {', '.join(names)}", "Does it pay to choose which samples are labelled?"
    grid = Grid(title, question, tuple(cells), settings, tuple(notes))
    return run(
        grid,
        Path(out),
        data_dir=folder,
        label=label,
        task=task,
        reading=read,
        encoder=through,
        workers=workers,
        engine=engine,
        progress=progress,
        say=say,
    )


def _listed(name: str, values: Any) -> list[Any]:
    """One value or several, in order, each once."""
    several = values if isinstance(values, (list, tuple)) else [values]
    if not several:
        raise InputError(f"{name} is empty; name at least one")
    return list(dict.fromkeys(several))
