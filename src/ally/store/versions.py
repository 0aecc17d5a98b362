"""The version of a store's schema: read, made, and brought up to date. Alembic is imported only when something
changes."""

from __future__ import annotations

import re
import warnings

from sqlalchemy import Connection, inspect, text

from ally.errors import StoreDamaged, StoreMissing, StoreVersion
from ally.store.database import Database
from ally.store.schema import VERSION

REVISION = re.compile("[0-9]{4}")


def version_of(connection: Connection) -> str | None:
    """The revision a database is at; None if there is no campaign in it."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalars().all()
    if len(found) != 1 or not isinstance(found[0], str) or not REVISION.fullmatch(found[0]):
        raise StoreDamaged(f"the version of the store is {found!r:.80}, not one of four digits; restore a backup")
    return found[0]


def upgrade(connection: Connection, to: str = VERSION) -> None:
    """Runs the migrations within the caller's transaction."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "ally.store:migrations")
    config.attributes["connection"] = connection
    command.upgrade(config, to)


def find_version(database: Database) -> str:
    """The revision of a campaign. Refuses a database without one, or from a newer version."""
    found = database.read(version_of)
    if found is None:
        raise StoreMissing(f"{database.name} holds no campaign; check the name, or create one under another name")
    if found > VERSION:
        raise StoreVersion(
            f"{database.name} was written by a newer version of ally (schema {found}, this one knows {VERSION}); "
            "update: pip install -U ally-learn"
        )
    return found


def bring_up_to_date(database: Database, found: str) -> None:
    """Upgrades a campaign at an older revision, after a backup."""
    backup = database.prepare_upgrade(found)

    def work(connection: Connection) -> None:
        # Another process may have been faster.
        if version_of(connection) == found:
            upgrade(connection)

    database.write(work)
    where = f"; the file as it was is {backup}" if backup else ""
    warnings.warn(f"{database.name} was upgraded from schema {found} to {VERSION}{where}", UserWarning, stacklevel=2)
