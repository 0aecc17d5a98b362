"""Labelled images as one folder per class: the layout that many tools read."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ally.data.export.answers import Answer, as_answers
from ally.data.paths import MIME, file_name, is_image, os_reason
from ally.data.samples import Samples
from ally.errors import DataError, LabelError
from ally.types import SKIP


def write_image_folder(
    folder: str | Path, answers: Iterable[Answer] | Mapping[str, Any], samples: Samples, *, link: bool = False
) -> int:
    """Copies (or, with `link`, hard links where the disk allows) the images of labelled samples to ``CLASS/id``;
    returns how many.

    Names that are not safe are encoded reversibly; `read_answers` gives the ids and classes (as texts) back. Skipped
    samples are left out. The folder must be new or empty, and has its name only when it is complete.
    """
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DataError(f"{folder} already exists and is not empty; give a new folder")
    wanted = _wanted(as_answers(answers), samples)
    partial = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    try:
        partial.mkdir(parents=True)
        for name in sorted({target.parts[0] for target, _ in wanted}):
            (partial / name).mkdir()
        for target, source in wanted:
            (partial / target).parent.mkdir(parents=True, exist_ok=True)
            _put(source, partial / target, link)
        if folder.exists():
            folder.rmdir()
        partial.replace(folder)
    except FileExistsError as error:
        met = os.path.relpath(error.filename2 or error.filename or ".", partial)
        raise DataError(
            f"two classes or ids have the same file name here ({met!r}), perhaps because case is ignored; "
            "export to CSV instead"
        ) from error
    except OSError as error:
        raise DataError(f"{folder} cannot be written ({os_reason(error)}); nothing was written") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return len(wanted)


def _wanted(answers: list[Answer], samples: Samples) -> list[tuple[Path, Path]]:
    """Where each image goes, below the folder, and where it is."""
    labels: dict[str, str] = {}
    wanted = []
    for id, label, *_ in answers:
        if label is SKIP:
            continue
        if isinstance(label, float):
            raise LabelError(f"the label of {id!r} is the number {label}; folders are for classes: export to CSV")
        if id in labels:
            raise LabelError(f"{id!r} has the labels {labels[id]!r} and {str(label)!r}; give one label per image")
        labels[id] = str(label)
        source = samples.show(id).path
        if source is None:
            raise DataError(f"{id!r} is not an image; export to CSV")
        wanted.append((Path(file_name(str(label)), *_parts(id, source)), source))
    return wanted


def _parts(id: str, source: Path) -> list[str]:
    """The names of an id below its class; ``%.`` marks an ending that is not part of the id."""
    parts = id.split("/")
    names = [file_name(part) for part in parts] if all(parts) else [file_name(id)]
    if not is_image(names[-1]):
        ending = source.suffix.lower()
        names[-1] += f"%{ending if ending in MIME else '.jpg'}"
    return names


def _put(source: Path, target: Path, link: bool) -> None:
    if link:
        try:
            os.link(source, target)
            return
        except FileExistsError:
            raise
        except OSError:
            pass
    with source.open("rb") as read, target.open("xb") as written:
        shutil.copyfileobj(read, written, 2**20)
    shutil.copystat(source, target)
