"""The migrations build the tables that the code uses, and the store stays light."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, create_engine, inspect
from sqlalchemy.engine import make_url

import ally.store
from ally.store.schema import VERSION, metadata
from ally.store.versions import upgrade


def _difference(engine: Engine) -> list[Any]:
    with engine.begin() as connection:
        upgrade(connection)
        context = MigrationContext.configure(connection, opts={"compare_type": True, "include_object": _ours})
        found = compare_metadata(context, metadata)
        tables = inspect(connection)
        for name, table in metadata.tables.items():
            assert {key["name"] for key in tables.get_foreign_keys(name)} == {
                key.name for key in table.foreign_key_constraints
            }
            assert tables.get_pk_constraint(name)["constrained_columns"] == [
                column.name for column in table.primary_key
            ]
    engine.dispose()
    return found


def _ours(_object: Any, name: str | None, kind: str, _reflected: bool, _compared: Any) -> bool:
    return not (kind == "table" and name == "alembic_version")


def test_migrations_and_tables_agree_in_sqlite(tmp_path: Path) -> None:
    assert _difference(create_engine(f"sqlite:///{tmp_path / 'a.db'}")) == []


def test_migrations_and_tables_agree_in_postgresql(new_database: Callable[[], str]) -> None:
    assert _difference(create_engine(make_url(new_database()).set(drivername="postgresql+psycopg"))) == []


def test_the_code_is_at_the_last_migration() -> None:
    assert ally.store.__file__ is not None
    scripts = ScriptDirectory(str(Path(ally.store.__file__).parent / "migrations"))
    assert scripts.get_heads() == [VERSION]


@pytest.mark.parametrize("work", ["ally.store.open(path)", "ally.store.create('memory', {}, [], now=0.0)"])
def test_a_server_that_opens_a_store_imports_nothing_heavy(tmp_path: Path, work: str) -> None:
    ally.store.create(tmp_path / "a.db", {}, [], now=0.0).close()
    code = f"import sys, ally.store; path = sys.argv[1]; {work}; print(*sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "a.db")], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert not loaded & {"torch", "pandas", "sklearn", "scipy", "numba", "matplotlib"}
    if "open" in work:
        assert "alembic" not in loaded
