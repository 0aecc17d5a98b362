"""Opens a user's data (a folder, a file, what is in memory) as samples by id."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from ally.checks import check_count
from ally.data.arrays.memory import Channels
from ally.data.arrays.parts import is_parts
from ally.data.arrays.samples import ArraySamples, is_array_file, read_array_file, read_ids
from ally.data.containers import Collate, Container, PictureList, unpack
from ally.data.embeddings import align_vectors, is_aligned, open_embeddings
from ally.data.fingerprint import LARGEST_SIDE, SMALLEST_SIDE, check_fingerprint
from ally.data.given_labels import unmarked
from ally.data.identity import KeptIndex
from ally.data.images.folder import ImageFolder, open_thumbnails
from ally.data.images.in_memory import PictureSamples
from ally.data.kinds import BUILT_IN, KINDS, SampleKind, SourceRequest, find_kind
from ally.data.samples import Samples
from ally.data.tables import TABLES, Rows, open_rows, rows_of_dictionaries
from ally.data.tables.columns import ColumnKind
from ally.data.tables.frames import FrameRows, is_frame
from ally.data.tables.layout import NO_LABEL, Layout, decide_layout
from ally.data.tables.samples import RowSamples
from ally.errors import DataError, InputError


class ReadOptions(TypedDict, total=False):
    """How data are read, at every door; see `open_source`."""

    kind: SampleKind | str | None
    id_column: str | None
    text: str | None
    image: str | None
    label: str | None
    columns: Any
    collate: Collate | None
    recursive: bool
    folder: str | Path | None
    encoding: str
    header: bool
    size: int


def open_source(
    place: Any,
    *,
    kind: SampleKind | str | None = None,
    id_column: str | None = None,
    text: str | None = None,
    image: str | None = None,
    label: str | None = None,
    embeddings: Any = None,
    columns: str | Sequence[str] | Mapping[str, ColumnKind | None] | None = None,
    collate: Collate | None = None,
    recursive: bool = True,
    ids: Any = None,
    folder: str | Path | None = None,
    encoding: str = "utf-8",
    header: bool = True,
    size: int = 32,
    channels: Channels = "auto",
    missing_label: str | int | None = None,
    cache: str | Path | None = None,
    known: Mapping[str, Any] | None = None,
    other: bool = False,
    labelled: bool = False,
    name: str | None = None,
) -> Samples:
    """The samples of a folder of images, a table, a text file, an array of features or a frame in memory.

    Args:
        place: a folder; a .csv, .tsv, .xlsx, .parquet, .jsonl, .json, .txt (one text a line), .npy or .npz file; a
            pandas or Polars frame, an Arrow table, a dictionary of columns, a Hugging Face data set, a list of
            dictionaries, texts or pictures; a numpy array, a sparse matrix, a tensor, a torch data set.
        kind: the kind of data, if it is not to be found out: a `SampleKind` of your own, its import path
            ``module:NAME`` (which is imported), or the name of one.
        id_column: the column of ids (default: ``id``, ``ID``, ``Id``, ``name`` or one like article_id, if its values
            are all different; else a hash).
        text: the column of texts (default: ``text``, or one of long texts).
        image: the column of image paths, relative to `folder`.
        label: the column of known labels (default: label, class, target or y); ``"none"`` for none; ``"folder"`` for a
            folder of images whose subfolders are classes.
        embeddings: vectors to learn from instead: a table or an .npz file with ids, a mapping, a pair (array, ids), or
            an array or .npy file with one row per sample, in sample order (or with `ids`).
        columns: the columns to learn from, or a mapping from them to ``"number"``, ``"category"`` or None (default: all
            usable ones); of a container with columns of arrays or pictures, the one to learn from.
        collate: of a data set that gives an item for each number, a function of an item: ``x`` or ``(x, label)``.
        recursive: whether images in subfolders are samples too.
        ids: ids of an array, or of the rows of `embeddings`: a sequence, or a file with one id per line. Default: row
            numbers, or the samples' ids in order.
        folder: what the paths of `image` are relative to (default: the table's folder).
        encoding: text file encoding.
        header: whether the first line of a .csv, .tsv or .xlsx file names the columns.
        size: side of the images that the model sees, in pixels.
        channels: which axis of an image array has the channels: ``"first"``, ``"last"``, or ``"auto"`` to detect.
        missing_label: a label that marks samples without one, such as -1; empty labels never count.
        cache: a folder for small copies of the images and for row positions of long files; without it nothing is
            written.
        known: an earlier `fingerprint` of this source, whose columns, categories and weights are then used.
        other: with `known`, read other samples of the same kind; their ids and labels may be missing.
        labelled: whether the labels are elsewhere, so that none are looked for here.
        name: what errors call data in memory.
    """
    if known is not None and known.get("version") != 1:
        raise InputError(
            f"the kept fingerprint has version {known.get('version')!r} and 1 is needed; update ally, or create the "
            "campaign again"
        )
    if known is not None:
        check_fingerprint(known)
    _check_side(size)
    if embeddings is not None and ids is not None:
        embeddings, ids = (embeddings, ids), None  # one id for each vector
    if is_aligned(embeddings):
        plain: dict[str, Any] = {"kind": kind, "id_column": id_column, "text": text, "image": image, "label": label}
        plain |= {
            "columns": columns,
            "collate": collate,
            "missing_label": missing_label,
            "folder": folder,
            "encoding": encoding,
            "header": header,
            "recursive": recursive,
        }
        embeddings = align_vectors(embeddings, place, open_source(place, **plain))
    name = name or _name(place)
    found, container = find_kind(kind, place, known), Container(place)
    if not found.is_own:
        container = _unpack(place, name, label, columns, collate, known, other or labelled)
        found = find_kind(kind, container.data, known)
        label, columns = container.options.get("label", label), container.options.get("columns", columns)
    roles = {"id_column": id_column, "text": text, "image": image, "label": label, "columns": columns}
    _ensure_options(found, {**roles, "embeddings": embeddings, "ids": ids})
    options = {**roles, "recursive": recursive, "ids": ids, "folder": folder, "encoding": encoding, "header": header}
    options |= {"size": size, "channels": channels, "missing_label": missing_label, "name": name}
    vectors = None if embeddings is None else open_embeddings(embeddings)
    folder_of_copies = None if cache is None else Path(cache)
    request = SourceRequest(container.data, options, vectors, known, other, folder_of_copies, container)
    if known is not None:
        _ensure_from(known, found, place)
    return _matched(found.open(request), known)


def _unpack(
    place: Any,
    name: str,
    label: str | None,
    columns: Any,
    collate: Collate | None,
    known: Mapping[str, Any] | None,
    labelled: bool,
) -> Container:
    """What is in the container, as the campaign that has the fingerprint `known` took it."""
    container = unpack(place, label=label, columns=columns, collate=collate, labelled=labelled, name=name)
    if isinstance(container.data, PictureList) and known is not None and known.get("kind") == "features":
        # Campaigns of before took pictures of one size for arrays.
        pictures = container.data
        return container._replace(data=np.stack([np.asarray(pictures[row]) for row in range(len(pictures))]))
    return container


def _open_array(request: SourceRequest) -> ArraySamples:
    options, known, container = request.options, request.known, request.container
    file, channels = read_array_file(request.place), options["channels"]
    labels = container.labels if file.labels is None else file.labels
    labels = None if labels is None or options["label"] == NO_LABEL else unmarked(labels, options["missing_label"])
    ids = options["ids"] if options["ids"] is not None else file.ids if file.ids is not None else container.ids
    if known is not None and channels == "auto":
        # Campaigns of before took the axes as they were.
        channels = "first" if known.get("shape") == list(getattr(file.X, "shape", ()))[1:] else "auto"
    chosen = None if ids is None else read_ids(ids)
    return ArraySamples(file.X, chosen, options["name"], channels, labels, container.notes, known)


def _open_images(request: SourceRequest) -> ImageFolder | PictureSamples:
    if not isinstance(request.place, PictureList):
        return ImageFolder.open(request)
    labels = request.container.labels
    labels = None if labels is None else unmarked(labels, request.options["missing_label"])
    return PictureSamples(request.place, open_thumbnails(request), labels, request.container.notes)


def _check_side(size: int) -> int:
    if check_count("size", size, least=SMALLEST_SIDE) > LARGEST_SIDE:
        raise InputError.about("size", size, f"is out of range; use at most {LARGEST_SIDE} pixels a side")
    return size


def _open_rows(request: SourceRequest) -> RowSamples:
    place, known, other, folder = request.place, request.known, request.other, request.options["folder"]
    encoding, header = request.options["encoding"], request.options["header"]
    roles = {name: request.options[name] for name in ("id_column", "text", "image", "label", "columns")}
    thumbnails = open_thumbnails(request)
    # A campaign that was made before commas were read as decimal points keeps its ids, some of which are hashes.
    decimal = None if known is None or other else str(known.get("decimal", "."))

    def reopen() -> Rows:
        if is_frame(place):
            return FrameRows(place)
        if isinstance(place, (list, tuple)):
            return rows_of_dictionaries(place)
        return open_rows(Path(place), encoding, header=header, decimal=decimal)

    below = None if folder is None else Path(folder)
    held = is_frame(place) or isinstance(place, (list, tuple))
    if not held:
        if not Path(place).exists():
            raise DataError(
                f"{place} does not exist; give a folder of images, a table ({', '.join(TABLES)}), a .txt or .npy file"
            )
        below = below or Path(place).parent
    rows = reopen()
    if known is None:
        layout = decide_layout(rows, **roles)
    else:
        layout = Layout.from_json(known["layout"], rows, other=other)
        _ensure_same_roles(layout, roles)
    if layout.image is not None and below is None:
        raise InputError("a frame with paths of images needs folder=: the folder that the paths start from")
    places = None
    if thumbnails.cache is not None and not held:
        places = KeptIndex(
            thumbnails.cache, os.path.abspath(place), repr((layout.id, layout.text, layout.columns, encoding))
        )
    samples = RowSamples(
        rows,
        reopen,
        layout,
        folder=below,
        thumbnails=thumbnails,
        embeddings=request.vectors,
        kept=known,
        kept_index=places,
        missing_label=request.options["missing_label"],
    )
    samples.decided = request.container.notes
    return samples


def _ensure_same_roles(layout: Layout, roles: Mapping[str, Any]) -> None:
    kept = {"id_column": layout.id, "text": layout.text, "image": layout.image, "label": layout.label}
    for role, name in kept.items():
        if role == "label" and (roles[role], name) == (NO_LABEL, None):
            continue
        if roles[role] not in (None, name):
            raise InputError(
                f"{role}={roles[role]!r} differs from {name!r}, as it was when the campaign was created; leave it out"
            )


def _matched(samples: Samples, known: Mapping[str, Any] | None) -> Samples:
    """The samples, if what a learner reads of them has the shape it had."""
    if known is not None:
        now = samples.fingerprint(learned=False)
        for name in ("kind", "from", "embeddings", "shape", "numbered"):
            if known.get(name) != now.get(name):
                met = f"the source has {name} {now.get(name)!r}, but had {known.get(name)!r} before"
                raise InputError(f"{met}; open it with the same files and settings")
    return samples


def _ensure_from(known: Mapping[str, Any], kind: SampleKind, place: Any) -> None:
    """The source is of the kind it was; a table may hold images or texts, and is one of them only once it is read."""
    form = _FORMS.get(kind.name, "own") if not kind.is_own else "own"
    before = known.get("from")
    if before != form or (form == "own" and known.get("kind") != kind.name):
        others = {_FORMS[name]: KINDS[name].source for name in BUILT_IN}
        own = f"the kind {known.get('kind')!r} of its user's own; pass it: kind='module:NAME' (--kind)"
        was = own if before == "own" else others.get(str(before), "something else")
        raise InputError(f"{_name(place)} is {kind.source}, but the campaign was created from {was}")


def _ensure_options(kind: SampleKind, given: Mapping[str, Any]) -> None:
    """What was given applies to the kind."""
    odd = next((name for name, value in given.items() if value is not None and name not in kind.options), None)
    if odd == "label" and given["label"] == NO_LABEL:
        return
    if odd == "ids":
        raise InputError(
            "ids= belongs to an array of features; a table names its id_column, and images have their paths"
        )
    if odd is not None:
        raise InputError(f"{odd}= does not apply to {kind.source}; leave it out")


def _name(place: Any) -> str:
    return str(place) if isinstance(place, (str, Path)) else f"the {type(place).__name__}"


def _is_images(data: Any) -> bool:
    if isinstance(data, (str, Path)):
        return Path(data).is_dir() and not is_parts(Path(data))
    return isinstance(data, PictureList)


def _is_array(data: Any) -> bool:
    """Numbers in memory, or a file or a folder of them."""
    if isinstance(data, (str, Path)):
        path = Path(data)
        return is_array_file(path) or (path.is_dir() and is_parts(path))
    return not is_frame(data) and not isinstance(data, (list, tuple, PictureList))


def _is_texts(place: Any) -> bool:
    return isinstance(place, (str, Path)) and Path(place).suffix.lower() == ".txt"


_FORMS = {"features": "array", "images": "folder", "text": "rows", "table": "rows"}
"""How the fingerprint of each built-in kind says what it was made from."""
_ROLES = frozenset({"id_column", "text", "image", "label", "columns", "embeddings"})
KINDS.add(
    "features",
    SampleKind(
        "features",
        ("row of features", "rows of features"),
        recognises=_is_array,
        open=_open_array,
        options=frozenset({"ids"}),
        source="an array",
    ),
)
KINDS.add(
    "images",
    SampleKind(
        "images",
        ("image", "images"),
        recognises=_is_images,
        open=_open_images,
        widget="image",
        encoder="image",
        beside_encoder="rival",
        source="a folder of images",
    ),
)
KINDS.add(
    "text",
    SampleKind(
        "text",
        ("text", "texts"),
        recognises=_is_texts,
        open=_open_rows,
        widget="text",
        encoder="text",
        beside_encoder="joined",
        options=_ROLES,
        source="a table or a text file",
    ),
)
KINDS.add(
    "table",
    SampleKind(
        "table",
        ("row", "rows"),
        recognises=lambda place: True,
        open=_open_rows,
        options=_ROLES,
        source="a table or a text file",
    ),
)
