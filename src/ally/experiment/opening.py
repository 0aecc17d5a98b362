"""What a grid runs on: data sets by name, the user's own data as a campaign opens them, and campaigns."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import numpy as np

from ally.data.catalogue import DATASETS, load
from ally.data.catalogue.load import find_own
from ally.data.catalogue.own_data import (
    DataOptions,
    LabelledSamples,
    ensure_different,
    label_array,
    make_dataset,
    read_own_data,
    split_labelled,
)
from ally.data.encoders.choosing import AUTO, NONE
from ally.errors import InputError
from ally.experiment.encoded import encoded_trial
from ally.experiment.trial import Trial
from ally.types import Progress

if TYPE_CHECKING:
    from ally.campaign import Campaign

CAMPAIGNS = (".db", ".sqlite", ".sqlite3")
LEAST_EVALUATED = 20
"""With so many labels of the evaluation sample, these are the test set."""
MOST_OPEN = 4


_open_trials: dict[tuple[DataOptions, str], Trial] = {}


def open_trial(options: DataOptions, name: str, progress: Progress | None = None) -> Trial:
    """The data of that name, opened once in a process until `forget_trials`."""
    key = options, name
    if key not in _open_trials:
        while len(_open_trials) >= MOST_OPEN:
            del _open_trials[next(iter(_open_trials))]
        _open_trials[key] = _read_trial(options, name, progress)
    return _open_trials[key]


def forget_trials() -> None:
    """Files and campaigns may have changed."""
    _open_trials.clear()


def _read_trial(options: DataOptions, name: str, progress: Progress | None) -> Trial:
    if name in DATASETS:
        data = load(name, options.data_dir, label=options.label, task=options.task, reading=options.reading)
        if options.encoder in (None, AUTO, NONE) or options.kept_in is None:
            return Trial.of(data)
        return encoded_trial(data, str(options.encoder), options.kept_in, progress)
    if is_campaign(name):
        return _read_campaign(name, options, progress)
    return Trial.of(read_own_data(find_own(name), name, options, progress))


def is_campaign(name: str) -> bool:
    return "://" in name or name.lower().endswith(CAMPAIGNS)


@contextmanager
def open_campaign(name: str) -> Iterator[tuple[Campaign, list[str]]]:
    """The campaign, which is only read, and notes about what its user has not allowed."""
    from ally.campaign import Campaign
    from ally.campaign.permissions import RestrictedWarning

    if "://" in name and urlsplit(name).password is not None:
        raise InputError(
            "the address of the campaign holds a password, and a run folder keeps it; leave it to PGPASSFILE"
        )
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", RestrictedWarning)
        campaign = Campaign.open(name)
    with campaign:
        yield campaign, [str(warning.message) for warning in warned if issubclass(warning.category, RestrictedWarning)]


def _read_campaign(name: str, options: DataOptions, progress: Progress | None) -> Trial:
    """The labels of a campaign on its samples, as its model sees them."""
    from ally.campaign.training.data import gather

    given = {"label": options.label, **options.reading.options()}
    given |= {"task": None if options.task == "auto" else options.task}
    given |= {"encoder": None if options.encoder == AUTO else options.encoder}
    odd = next((option for option, value in given.items() if value is not None), None)
    if odd is not None:
        raise InputError.about(odd, given[odd], f"does not go with {name}: a campaign keeps how it reads its samples")
    with open_campaign(name) as (campaign, notes):
        settings, samples = campaign.settings, campaign.source.samples
        gathered = gather(campaign.answers.store, samples, settings, 0)
        if not len(gathered.every_label):
            raise InputError(f"{name} has no labels to compare strategies by; label some samples, or import labels")
        parts = [gathered.training, gathered.validate, gathered.evaluate]
        values = [label for part in parts for label in part.labels]
        declared = list(settings.classes or ())
        labels = label_array([*values, *declared], settings.task)
        ends = np.cumsum([len(part) for part in parts])
        every = LabelledSamples(samples, gathered.every_label.ids, labels[: len(values)])
        pool, test = every.take(np.arange(ends[1])), every.take(np.arange(ends[1], ends[2]))
        notes = ["the labels of the campaign are the answers, and its settings those of the benchmark", *notes]
        if len(gathered.gone):
            notes.append(f"{len(gathered.gone)} samples are no longer in the source and are left out")
        if len(test.ids) >= LEAST_EVALUATED and len(pool.ids):
            notes.append(f"the test set is the evaluation sample: {len(test.ids)} labels, drawn at random")
            ensure_different(name, pool)
        else:
            notes.append("the test set is one label in five of those there are, many of which the campaign chose")
            pool, test = split_labelled(name, settings.task, every)
        data = make_dataset(name, settings.task, pool, test, notes, progress, known=True)
    return replace(Trial.of(data), declared=tuple(labels[len(values) :].tolist()))
