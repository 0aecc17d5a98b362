"""Tables, arrays and answers that lie, unpack to more than a machine has, or never end."""

from __future__ import annotations

import gzip
import io
import json
import os
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from case import HostileCase, Words
from openpyxl import Workbook

NEW: Words = ("new", "pets", "--from", "{path}", "--classes", "a,b", "--evaluate", "0")
QUERY: Words = ("query", "{path}", "--n", "1", "--strategy", "random", "--model", "linear")
BENCH: Words = (
    "bench",
    "--dataset",
    "{path}",
    "--strategy",
    "random",
    "--seeds",
    "1",
    "--workers",
    "0",
    "--out",
    "run",
)
TELL: Words = ("tell", "pets", "{path}")
OWN: Words = ("new", "pets", "--from", "own.csv", "--classes", "a,b", "--evaluate", "0")
EMBEDDED: Words = (*NEW[:3], "own.csv", *NEW[4:], "--embeddings", "{path}")
REFUSED = "cannot be read|is not|unpacks to|at most|are read|holds|damaged|never closed|has \\d+ columns"


def save_npy(array: np.ndarray) -> bytes:
    data = io.BytesIO()
    np.save(data, array)
    return data.getvalue()


def write_header(shape: str, descr: str = "'<f8'", body: bytes = b"", length: int | None = None) -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x02\0" + struct.pack("<I", len(text) if length is None else length) + text + body


def pack_zip(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method, compresslevel=9) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return data.getvalue()


def pack_zeros(gigabytes: float, header: bytes, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """An .npz whose X is nothing but zeros."""
    data = io.BytesIO()
    with (
        zipfile.ZipFile(data, "w", method, compresslevel=9) as archive,
        archive.open("X.npy", "w", force_zip64=True) as out,
    ):
        out.write(header)
        for _ in range(int(gigabytes * 64)):
            out.write(bytes(2**24))
    return data.getvalue()


def change_workbook(name: str, change: Callable[[bytes], bytes]) -> bytes:
    book, data = Workbook(), io.BytesIO()
    for row in (["id", "x", "y"], *([f"s{n}", n, "ab"[n % 2] if n < 6 else None] for n in range(20))):
        book.active.append(row)
    book.save(data)
    with zipfile.ZipFile(data) as archive:
        members = {one: archive.read(one) for one in archive.namelist()}
    members[name] = change(members[name])
    return pack_zip(members)


def change_sheet(change: Callable[[bytes], bytes]) -> bytes:
    return change_workbook("xl/worksheets/sheet1.xml", change)


def add_rows(rows: bytes) -> bytes:
    return change_sheet(lambda sheet: sheet.replace(b"</sheetData>", rows + b"</sheetData>"))


def add_entities(sheet: bytes) -> bytes:
    lines = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    head = f'<?xml version="1.0"?><!DOCTYPE worksheet [<!ENTITY e0 "aaaaaaaaaa">{lines}]>'.encode()
    return head + sheet[sheet.index(b"<worksheet") :].replace(b"<v>0</v>", b"<v>&e11;</v>", 1)


def add_external(sheet: bytes) -> bytes:
    head = b'<?xml version="1.0"?><!DOCTYPE worksheet [<!ENTITY x SYSTEM "file:../elsewhere/secret.txt">]>'
    return head + sheet[sheet.index(b"<worksheet") :].replace(b"<v>0</v>", b"<v>&x;</v>", 1)


def write_parquet(**options: object) -> Callable[[], bytes]:
    def write() -> bytes:
        import pyarrow as pa
        import pyarrow.parquet as pq

        data = io.BytesIO()
        pq.write_table(pa.table(options["columns"]()), data, **options.get("how", {}))  # type: ignore[operator, arg-type]
        return data.getvalue()

    return write


def repeat_text() -> dict[str, object]:
    import pyarrow as pa

    places = pa.array(np.zeros(200_000, np.int32))
    return {"id": np.arange(200_000), "t": pa.DictionaryArray.from_arrays(places, ["x" * 10**6])}


def repeat_number() -> dict[str, object]:
    return {f"c{n}": np.zeros(3_000_000) for n in range(40)}


def damage(data: bytes, place: int) -> bytes:
    return data[:place] + b"\xff" * 40 + data[place + 40 :]


def write_small() -> dict[str, object]:
    return {"id": [f"s{n}" for n in range(40)], "x": list(range(40)), "y": [*"ababab", *[None] * 34]}


def add_ids(text: str) -> str:
    return "id,x,y\n" + "".join(f"s{n},{n},{'ab'[n % 2] if n < 6 else ''}\n" for n in range(20)) + text


HEAD = "id,x,y\n"
FILES: dict[str, tuple[str, Callable[[], bytes], str, bool]] = {
    "an array of 7 TiB": ("a.npy", lambda: write_header("(1000000000000, 1)"), REFUSED, True),
    "an array of no bytes": ("a.npy", lambda: write_header("(1000000000000, 0)"), REFUSED, False),
    "texts of no length": ("a.npy", lambda: write_header("(1000000000000,)", "'<U0'"), REFUSED, False),
    "an array that counts backwards": ("a.npy", lambda: write_header("(-4, -4)", body=bytes(128)), REFUSED, False),
    "a header of deep brackets": ("a.npy", lambda: write_header("(" * 5000 + ")" * 5000), REFUSED, False),
    "a header of 4 GiB": ("a.npy", lambda: write_header("(1, 1)", length=2**32 - 1), REFUSED, False),
    "a header that calls": (
        "a.npy",
        lambda: write_header("__import__('os').system('touch ../elsewhere/marker')"),
        REFUSED,
        False,
    ),
    "an array of objects": ("a.npy", lambda: save_npy(np.array([{}], dtype=object)), REFUSED, False),
    "an .npz of 2 GiB": ("a.npz", lambda: pack_zeros(2, write_header("(32, 8388608)")), REFUSED, False),
    "an .npz of bytes": ("a.npz", lambda: pack_zeros(0.2, write_header("(13631488, 16)", "'|u1'")), REFUSED, False),
    "an .npz that claims 7 TiB": (
        "a.npz",
        lambda: pack_zip({"X.npy": write_header("(1000000000000, 1)")}),
        REFUSED,
        False,
    ),
    "an .npz packed by bzip2": (
        "a.npz",
        lambda: pack_zeros(1, write_header("(32, 4194304)"), zipfile.ZIP_BZIP2),
        REFUSED,
        False,
    ),
    "an .npz of many members": ("a.npz", lambda: pack_zip({f"m{n}.npy": b"" for n in range(20000)}), REFUSED, False),
    "an .npz that is cut": ("a.npz", lambda: pack_zip({"X.npy": save_npy(np.ones((9, 9)))})[:-30], REFUSED, False),
    "a workbook of a shared gigabyte": (
        "a.xlsx",
        lambda: add_rows(b"<!--" + b" " * 2**28 + b"-->"),
        REFUSED,
        True,
    ),
    "a workbook with entities": ("a.xlsx", lambda: change_sheet(add_entities), REFUSED, True),
    "a workbook that names a file": ("a.xlsx", lambda: change_sheet(add_external), REFUSED, False),
    "a workbook of a huge dimension": (
        "a.xlsx",
        lambda: change_sheet(lambda sheet: sheet.replace(b'ref="A1:C21"', b'ref="A1:XFD1048576"')),
        "pets|id|cells",
        False,
    ),
    "a workbook of far cells": (
        "a.xlsx",
        lambda: add_rows(b'<row><c r="XFD30"><v>1</v></c></row>' * 20000),
        "pets|id|at most|cells|unpack",
        False,
    ),
    "a workbook of a far row": (
        "a.xlsx",
        lambda: add_rows(b'<row r="2000000000"><c r="A2000000000" t="str"><v>z</v></c></row>'),
        "pets|id",
        False,
    ),
    "a workbook of empty cells": (
        "a.xlsx",
        lambda: add_rows((b"<row>" + b"<c/>" * 100 + b"</row>") * 9000),
        "pets|id",
        False,
    ),
    "a workbook of fonts": (
        "a.xlsx",
        lambda: change_workbook(
            "xl/styles.xml", lambda text: text.replace(b"<fonts", b"<fonts>" + b"<font/>" * 10**6 + b"</fonts><fonts")
        ),
        "pets|id|cannot be read",
        False,
    ),
    "a workbook that names the text 10^9": (
        "a.xlsx",
        lambda: add_rows(b'<row><c t="s"><v>1000000000</v></c></row>'),
        REFUSED,
        False,
    ),
    "a workbook that is a picture": ("a.xlsx", lambda: b"\x89PNG\r\n\x1a\n" + bytes(100), REFUSED, False),
    "Parquet of a text for all rows": ("a.parquet", write_parquet(columns=repeat_text), REFUSED, False),
    "Parquet of a number for all rows": ("a.parquet", write_parquet(columns=repeat_number), REFUSED, False),
    "Parquet with a damaged footer": (
        "a.parquet",
        lambda: damage(data := write_parquet(columns=write_small)(), len(data) - 200),
        REFUSED,
        False,
    ),
    "Parquet with damaged pages": (
        "a.parquet",
        lambda: damage(write_parquet(columns=write_small)(), 30),
        f"{REFUSED}|pets|id",
        False,
    ),
    "JSON of deep lists": ("a.json", lambda: b"[" * 10**6, REFUSED, True),
    "JSON of empty objects": ("a.json", lambda: b"[" + b"{}," * 4_000_000 + b"{}]", REFUSED, False),
    "JSON lines of deep lists": (
        "a.jsonl",
        lambda: b"[" * 10**6 + b"\n" + b'{"id": "a", "x": 1}\n' * 2,
        "problem|not JSON|line",
        False,
    ),
    "JSON lines of a number without end": (
        "a.jsonl",
        lambda: b'{"id": "a", "x": ' + b"9" * 10**6 + b"}\n" + b'{"id": "b", "x": 2}\n',
        "not JSON",
        False,
    ),
    "JSON lines of odd numbers": (
        "a.jsonl",
        lambda: b"".join(
            b'{"id": "s%d", "x": %s, "y": "a"}\n' % (n, x)
            for n, x in enumerate((b"NaN", b"1e999", b"9" * 4000, b"-Infinity", b"1"))
        ),
        "pets|id|no usable feature column",
        False,
    ),
    "JSON lines of a million columns": (
        "a.jsonl",
        lambda: json.dumps({f"c{n}": 1 for n in range(10**6)}).encode() + b"\n",
        "columns",
        False,
    ),
    "a table of a million columns": (
        "a.csv",
        lambda: ",".join(f"c{n}" for n in range(10**6)).encode() + b"\n",
        "columns",
        True,
    ),
    "a table of one line": ("a.csv", lambda: HEAD.encode() + b"x" * 2**28, f"{REFUSED}|longer", False),
    "quotes that are never closed": ("a.csv", lambda: add_ids('x","\n' * 10**6).encode(), "never closed", True),
    "a quoted field without end": (
        "a.csv",
        lambda: add_ids('"' + "y\n" * 10**6).encode(),
        "1 problem|cannot be split|row",
        False,
    ),
    "a table with NUL": ("a.csv", lambda: add_ids("\0s,1\0,a\n").encode(), "pets|NUL|id", False),
    "a packed table of zeros": ("a.csv.gz", lambda: gzip.compress(HEAD.encode() + bytes(2**30)), REFUSED, False),
    "a packed table of rows": (
        "a.csv.gz",
        lambda: gzip.compress(HEAD.encode() + b"s,1,a\n" * 2**26, 9),
        REFUSED,
        False,
    ),
    "a packed table that is cut": ("a.csv.gz", lambda: gzip.compress(add_ids("").encode())[:-20], REFUSED, False),
    "a text that is a workbook": ("a.csv", lambda: pack_zip({"a": b"b"}), f"{REFUSED}|cannot", False),
}
SLOW = ("a packed table of rows", "Parquet of a number", "JSON of empty")
EMBEDDINGS = ("an .npz of 2 GiB", "an array of 7 TiB", "a workbook with entities")
TASKS: dict[str, object] = {
    "tasks whose data are a list": [{"data": [1]}],
    "tasks whose annotations are a text": [{"data": {"id": "s1"}, "annotations": "x"}],
    "tasks whose results are numbers": [{"data": {"id": "s1"}, "annotations": [{"result": [1]}]}],
    "tasks whose values are lists": [
        {"data": {"id": "s1"}, "annotations": [{"result": [{"type": "choices", "value": [1]}]}]}
    ],
    "tasks whose choices are objects": [
        {"data": {"id": "s1"}, "annotations": [{"result": [{"type": "choices", "value": {"choices": [{}]}}]}]}
    ],
}


def make_file(name: str, content: Callable[[], bytes]) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / "own.csv").write_text(add_ids(""))
        (folder / name).write_bytes(content())
        return folder / name

    return make


def make_pipe(name: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / "own.csv").write_text(add_ids(""))
        os.mkfifo(folder / name)
        return folder / name

    return make


CASES = [
    *(
        HostileCase(name, make_file(file, content), answer, (NEW,) if name.startswith(SLOW) else (NEW, QUERY), short)
        for name, (file, content, answer, short) in FILES.items()
    ),
    *(
        HostileCase(f"{name} as embeddings", make_file(*FILES[name][:2]), f"{REFUSED}|has no ids", (EMBEDDED,))
        for name in EMBEDDINGS
    ),
    *(
        HostileCase(f"{name} in a benchmark", make_file(*FILES[name][:2]), REFUSED, (BENCH,))
        for name in ("an .npz of 2 GiB", "a workbook with entities", "quotes that are never closed")
    ),
    *(
        HostileCase(
            name,
            make_file("tasks.json", lambda tasks=tasks: json.dumps(tasks).encode()),
            "pets|Label Studio|label|choices",
            (OWN, TELL, ("import", "pets", "{path}")),
        )
        for name, tasks in TASKS.items()
    ),
    *(
        HostileCase(
            f"a pipe called {name}",
            make_pipe(name),
            "not|missing|pets|has the ending",
            (OWN, TELL, (*NEW[:1], "other", *NEW[2:])),
            name == "a.json",
        )
        for name in ("a.json", "a.csv", "a.npy", "a.npz", "a.xlsx", "a.parquet")
    ),
]
