"""Acknowledged writes per second of one program: SQLite with a rollback journal, in WAL mode, and PostgreSQL.

python benchmarks/store_commits.py [--commits 200]
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from contextlib import ExitStack
from pathlib import Path

from ally.store import Store, create
from store_server import places


def rate(store: Store, commits: int) -> float:
    began = time.perf_counter()
    for number in range(commits):
        store.log(float(number), "commit")
    return round(commits / (time.perf_counter() - began), 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commits", type=int, default=200)
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", ".*is in WAL mode")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        new, _ = stack.enter_context(places("postgresql", folder))
        stores = {
            "sqlite rollback": create(folder / "rollback.db", {}, [], now=0.0, sqlite_journal="rollback"),
            "sqlite wal": create(folder / "wal.db", {}, [], now=0.0, sqlite_journal="wal"),
            "postgresql": create(new(), {}, [], now=0.0),
        }
        for name, store in stores.items():
            print(
                json.dumps({"store": name, "commits_per_second": rate(stack.enter_context(store), arguments.commits)})
            )


if __name__ == "__main__":
    main()
