"""The reader of table files beside DuckDB and pyarrow: cost of every row, rows again by their place, and odd files.

python benchmarks/table_readers.py [--rows 10000000] [--gigabytes 1] [--folder /tmp] [--only narrow|texts|odd]

Needs duckdb (`pip install duckdb`) and pyarrow. DuckDB reads one file at a time, with external access and extension
loading off. All columns are read as texts, since a value is shown to a person as it is written. Each measurement has a
process of its own: CPU seconds of all its threads, elapsed seconds, peak memory. Files are written to `folder` and
removed afterwards.
"""

from __future__ import annotations

import argparse
import csv
import json
import multiprocessing
import random
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from ally.data import open_source
from ally.data.identity import Index, id_keys
from ally.data.tables import Row, open_rows

BATCH = 1024
AGAIN = 1000
"""Rows that are read once more, by id."""
TEXT = "the quick, brown fox jumps over a 'lazy' dog; naïve café \"quoted\"\nand a new line"

Rows = Iterator[dict[str, Any]]


def read_with_ally(path: Path) -> Rows:
    return (row.values for row in open_rows(path, decimal=".").scan() if isinstance(row, Row))


def connect(path: Path, database: str = ":memory:") -> Any:
    import duckdb

    plain = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    connection = duckdb.connect(database, config=plain)
    allowed = [str(path), *([database, f"{database}.wal"] if database != ":memory:" else [])]
    connection.execute(f"SET allowed_paths={allowed}")
    connection.execute("SET enable_external_access=false")
    return connection


def scan_sql(path: Path) -> str:
    columns = "{" + ", ".join(f"'{name}': 'VARCHAR'" for name in column_names(path)) + "}"
    if path.suffix == ".jsonl":
        return f"read_json('{path}', format='newline_delimited', columns={columns})"
    plain = "auto_detect=false, header=true, delim=',', quote='\"', escape='\"', max_line_size=16777216"
    return f"read_csv('{path}', columns={columns}, {plain})"


def column_names(path: Path) -> tuple[str, ...]:
    with path.open(encoding="utf-8-sig", errors="replace") as stream:
        line = stream.readline().strip()
    return tuple(json.loads(line)) if path.suffix == ".jsonl" else tuple(line.split(";" if ";" in line else ","))


def read_with_duckdb(path: Path) -> Rows:
    for batch in duckdb_batches(path):
        yield from batch.to_pylist()


def duckdb_batches(path: Path) -> Iterator[Any]:
    connection = connect(path)
    yield from connection.sql(f"SELECT * FROM {scan_sql(path)}").to_arrow_reader(BATCH)


def read_with_pyarrow(path: Path) -> Rows:
    for batch in pyarrow_batches(path):
        yield from batch.to_pylist()


def pyarrow_batches(path: Path) -> Iterator[Any]:
    import pyarrow as pa
    from pyarrow import csv as pyarrow_csv
    from pyarrow import json as pyarrow_json

    if path.suffix == ".jsonl":
        schema = pa.schema([(name, pa.string()) for name in column_names(path)])
        yield from pyarrow_json.open_json(path, parse_options=pyarrow_json.ParseOptions(explicit_schema=schema))
        return
    yield from pyarrow_csv.open_csv(
        path,
        parse_options=pyarrow_csv.ParseOptions(newlines_in_values=True),
        convert_options=pyarrow_csv.ConvertOptions(column_types=dict.fromkeys(column_names(path), pa.string())),
    )


READERS: dict[str, Callable[[Path], Rows]] = {
    "ally": read_with_ally,
    "DuckDB": read_with_duckdb,
    "pyarrow": read_with_pyarrow,
}
PARSERS: dict[str, Callable[[Path], Iterator[Any]]] = {"DuckDB": duckdb_batches, "pyarrow": pyarrow_batches}


def count_rows(reader: str, path: Path, folder: Path) -> str:
    return f"{sum(1 for _ in READERS[reader](path))} rows"


def count_parsed(reader: str, path: Path, folder: Path) -> str:
    return f"{sum(batch.num_rows for batch in PARSERS[reader](path))} rows"


def read_again(reader: str, path: Path, folder: Path) -> str:
    """Makes what is needed to read rows by id, then reads some, as a page and a training do."""
    begin = time.process_time()
    if reader == "ally":
        rows, index = open_rows(path, decimal="."), Index()
        for row in rows.scan():
            if isinstance(row, Row):
                index.add(row.values["id"], row.position)
        index.close()
        made = time.process_time()
        places, _ = index.find(id_keys(wanted_ids(path)))
        found: Any = rows.at(places.tolist())
        size = index.arrays.nbytes
    elif reader == "DuckDB":
        kept = folder / "rows.duckdb"
        connection = connect(path, str(kept))
        connection.execute(f"CREATE TABLE rows AS SELECT * FROM {scan_sql(path)}")
        connection.execute("CHECKPOINT")
        made = time.process_time()
        found = connection.execute("SELECT * FROM rows WHERE id IN (SELECT unnest(?))", [wanted_ids(path)]).fetchall()
        size = kept.stat().st_size
        kept.unlink()
    else:
        import pyarrow as pa
        import pyarrow.parquet

        kept = folder / "rows.parquet"
        batches = pyarrow_batches(path)
        first = next(batches)
        with pa.parquet.ParquetWriter(kept, first.schema) as out:
            out.write_batch(first)
            for batch in batches:
                out.write_batch(batch)
        made = time.process_time()
        found = pa.parquet.read_table(kept, filters=[("id", "in", wanted_ids(path))]).to_pylist()
        size = kept.stat().st_size
        kept.unlink()
    assert len(found) == AGAIN, len(found)
    return f"{made - begin:.1f} s and {size / 2**20:.0f} MiB to find them, then {time.process_time() - made:.2f} s"


def open_campaign(reader: str, path: Path, folder: Path) -> str:
    """All that a campaign does with a table when it is created: columns, ids, hashes and places."""
    samples = open_source(path, id_column="id", cache=folder / "cache")
    return f"{sum(1 for _ in samples.scan())} samples"


def wanted_ids(path: Path) -> list[str]:
    rows = int(path.stem.rpartition("-")[2])
    return [f"s{number}" for number in random.Random(0).sample(range(rows), AGAIN)]


def measure(name: str, work: Callable[[str, Path, Path], str], reader: str, path: Path, folder: Path) -> None:
    queue: Any = multiprocessing.get_context("spawn").Queue()
    process = multiprocessing.get_context("spawn").Process(target=run, args=(queue, work, reader, path, folder))
    process.start()
    process.join()
    seconds, elapsed, peak, answer = queue.get() if not queue.empty() else (0.0, 0.0, 0, f"ended: {process.exitcode}")
    row = f"| {name} | {reader} | {seconds:.1f} | {elapsed:.1f} | {peak / 2**10:.0f} | {answer} |"
    print(row, flush=True)


def run(queue: Any, work: Callable[[str, Path, Path], str], reader: str, path: Path, folder: Path) -> None:
    begin = time.perf_counter()
    try:
        answer = work(reader, path, folder)
    except Exception as error:
        answer = str(error).splitlines()[0][:150]
    usage = resource.getrusage(resource.RUSAGE_SELF)
    queue.put((usage.ru_utime + usage.ru_stime, time.perf_counter() - begin, usage.ru_maxrss, answer))
    queue.close()
    queue.join_thread()


def write_narrow(folder: Path, rows: int) -> list[Path]:
    """A table of an id, two numbers and a category."""
    draw = random.Random(1)
    paths = [folder / f"narrow-{rows}.csv", folder / f"narrow-{rows}.jsonl"]
    with paths[0].open("w") as table, paths[1].open("w") as lines:
        table.write("id,size,price,kind\n")
        for number in range(rows):
            size, price, kind = draw.randrange(1000), draw.randrange(10**6) / 100, "flat" if number % 3 else "house"
            table.write(f"s{number},{size},{price},{kind}\n")
            lines.write(f'{{"id": "s{number}", "size": "{size}", "price": "{price}", "kind": "{kind}"}}\n')
    return paths


def write_texts(folder: Path, gigabytes: float) -> list[Path]:
    """Texts of 200 to 20 000 characters with quotes, separators and line ends, by an id."""
    draw = random.Random(2)
    paths = [folder / "texts.csv", folder / "texts.jsonl"]
    long = " ".join(draw.choices(TEXT.split(" "), k=10**6))
    with paths[0].open("w", newline="") as table, paths[1].open("w") as lines:
        writer, number = csv.writer(table), 0
        writer.writerow(["id", "text"])
        while table.tell() < gigabytes * 10**9 or number < 100_000:
            start, length = draw.randrange(len(long) - 20_000), int(200 * 100 ** draw.random())
            text = long[start : start + length]
            writer.writerow([f"s{number}", text])
            lines.write(json.dumps({"id": f"s{number}", "text": text}, ensure_ascii=False) + "\n")
            number += 1
    return [path.rename(path.with_stem(f"{path.stem}-{number}")) for path in paths]


GOOD = b"id,x,text\na,1,one\nb,2,two\n"
ODD: dict[str, tuple[str, bytes]] = {
    "a row with too few fields, one with too many": ("a.csv", GOOD + b"c,3\nd,4,four,4\ne,5,five\n"),
    "a bad row behind a line end in quotes": ("a.csv", GOOD + b'c,3,"two\nlines"\nd,4\ne,5,five\n'),
    "a quote that is never closed": ("a.csv", GOOD + b'c,3,"three\nd,4,four\ne,5,five\n'),
    "text behind a closed quote": ("a.csv", GOOD + b'c,3,"three"x\nd,4,four\n'),
    "decimal commas": ("a.csv", b"id;x;text\na;1,5;one\nb;2,5;two\n"),
    "latin-1": ("a.csv", GOOD + "c,3,café\n".encode("latin-1")),
    "utf-16": ("a.csv", GOOD.decode().encode("utf-16")),
    "a byte order mark": ("a.csv", b"\xef\xbb\xbf" + GOOD),
    "a NUL byte": ("a.csv", GOOD + b"c,3,th\0ree\nd,4,four\n"),
    "a repeated name in the header": ("a.csv", b"id,x,x\na,1,one\nb,2,two\n"),
    "names missing in the header": ("a.csv", b"id,,\na,1,one\nb,2,two\n"),
    "leading zeros, NA and quotes": ("a.csv", b'id,x,text\n007,NA,""\n008,null,one\n'),
    "a line of 20 MB": ("a.csv", GOOD + b"c,3," + b"x" * 20_000_000 + b"\nd,4,four\n"),
    "JSON of mixed types": (
        "a.jsonl",
        b'{"id": 1, "x": 1}\n{"id": "b", "x": "two"}\n{"id": "c", "x": [1, {"y": 2}]}\n',
    ),
    "a broken line of JSON": ("a.jsonl", b'{"id": "a", "x": "1"}\n{"id": "b", "x": \n{"id": "c", "x": "3"}\n'),
    "a line of JSON that is a list": ("a.jsonl", b'{"id": "a", "x": "1"}\n[1, 2]\n{"id": "c", "x": "3"}\n'),
    "new keys in later lines of JSON": (
        "a.jsonl",
        b'{"id": "a", "x": "1"}\n' * 2000 + b'{"id": "c", "x": "3", "new": "4"}\n',
    ),
    "JSON of deep lists": (
        "a.jsonl",
        b'{"id": "a", "x": "1"}\n{"id": "b", "x": ' + b"[" * 99999 + b"]" * 99999 + b"}\n",
    ),
}


def describe_odd(reader: str, path: Path, folder: Path) -> str:
    """The rows that were read, and what was said about the others. The readers find out for themselves how the file is
    written, but for the names of the columns of CSV where DuckDB is told."""
    messages: list[str] = []
    rows: list[Any] = []
    try:
        ODD_READERS[reader](path, rows, messages)
    except Exception as error:
        messages.append(f"{type(error).__name__}: {' '.join(str(error).split())}")
    shown = str(rows) if len(str(rows)) < 150 else f"{len(rows)} rows … {str(rows[-1])[:60]}"
    return f"{shown} {' / '.join(messages)[:400]}"


def try_ally(path: Path, rows: list[Any], messages: list[str]) -> None:
    table = open_rows(path)
    messages += list(getattr(table, "notes", ()))
    for row in table.scan():
        if isinstance(row, Row):
            rows.append(tuple(row.values.values()))
        else:
            messages.append(f"{row.name}: {row.reason}")


def try_duckdb(path: Path, rows: list[Any], messages: list[str], told: bool = True) -> None:
    connection = connect(path)
    if path.suffix == ".jsonl":
        scan = f"read_json_auto('{path}')"
    elif told:
        scan = scan_sql(path).removesuffix(")") + ", store_rejects=true)"
    else:
        scan = f"read_csv('{path}', all_varchar=true, store_rejects=true)"
    rows += connection.sql(f"SELECT * FROM {scan}").fetchall()
    with suppress(Exception):
        bad = connection.sql("SELECT line, error_message FROM reject_errors").fetchall()
        messages += [f"line {line}: {words}" for line, words in bad]


def try_duckdb_alone(path: Path, rows: list[Any], messages: list[str]) -> None:
    try_duckdb(path, rows, messages, told=False)


def try_pyarrow(path: Path, rows: list[Any], messages: list[str]) -> None:
    from pyarrow import csv as pyarrow_csv
    from pyarrow import json as pyarrow_json

    def skip(row: Any) -> str:
        messages.append(f"row {row.number}: {row.actual_columns} fields")
        return "skip"

    if path.suffix == ".jsonl":
        table = pyarrow_json.read_json(path)
    else:
        table = pyarrow_csv.read_csv(
            path,
            read_options=pyarrow_csv.ReadOptions(use_threads=False),
            parse_options=pyarrow_csv.ParseOptions(newlines_in_values=True, invalid_row_handler=skip),
        )
    rows += [tuple(row.values()) for row in table.to_pylist()]


ODD_READERS: dict[str, Callable[[Path, list[Any], list[str]], None]] = {
    "ally": try_ally,
    "DuckDB": try_duckdb,
    "DuckDB, not told": try_duckdb_alone,
    "pyarrow": try_pyarrow,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--only", choices=("narrow", "texts", "odd"))
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=options.folder, prefix="table-readers-"))
    try:
        print("| file | reader | CPU s | elapsed s | peak MiB | |\n|---|---|---|---|---|---|")
        paths = write_narrow(folder, options.rows) if options.only in (None, "narrow") else []
        paths += write_texts(folder, options.gigabytes) if options.only in (None, "texts") else []
        for path in paths:
            name = f"{path.name}, {path.stat().st_size / 10**6:.0f} MB"
            measure(f"{name}: a campaign", open_campaign, "ally", path, folder)
            for reader in READERS:
                measure(f"{name}: rows", count_rows, reader, path, folder)
                if reader in PARSERS:
                    measure(f"{name}: columns only", count_parsed, reader, path, folder)
                measure(f"{name}: {AGAIN} rows by id", read_again, reader, path, folder)
            path.unlink()
        for name, (file, content) in ODD.items() if options.only in (None, "odd") else ():
            path = folder / file
            path.write_bytes(content)
            for reader in ODD_READERS:
                measure(name, describe_odd, reader, path, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
