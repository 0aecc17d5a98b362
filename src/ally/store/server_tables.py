"""What runs on a PostgreSQL server when a table is read or written, with the rights of whoever does so.

Whoever may make a schema there can put a view in the place of a table, or a trigger, rule or policy on it, and have
others run it. `ally` makes plain tables, so anything else is refused before one of them is used.
"""

from __future__ import annotations

from sqlalchemy import Connection, text

from ally.store.schema import metadata

VERSION_TABLE = "alembic_version"
_FOUND = text("""
WITH ours AS (
    SELECT oid, relname, relkind, relrowsecurity, relpersistence FROM pg_catalog.pg_class
    WHERE relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = pg_catalog.current_schema())
    AND relname = ANY (CAST(:names AS name[]))
)
SELECT 'is no plain table', relname FROM ours WHERE relkind <> 'r'
UNION ALL SELECT 'has a policy', relname FROM ours WHERE relrowsecurity
UNION ALL SELECT 'has a trigger', relname FROM ours JOIN pg_catalog.pg_trigger t ON tgrelid = ours.oid
    WHERE NOT tgisinternal
UNION ALL SELECT 'has a rule', relname FROM ours JOIN pg_catalog.pg_rewrite ON ev_class = ours.oid
UNION ALL SELECT 'has a computed value', relname FROM ours JOIN pg_catalog.pg_attrdef ON adrelid = ours.oid
UNION ALL SELECT 'has a check', relname FROM ours JOIN pg_catalog.pg_constraint ON conrelid = ours.oid
    WHERE contype NOT IN ('p', 'u', 'f', 'n')
UNION ALL SELECT 'has an index that computes', relname FROM ours JOIN pg_catalog.pg_index ON indrelid = ours.oid
    WHERE indexprs IS NOT NULL OR indpred IS NOT NULL
UNION ALL SELECT 'has a part elsewhere', relname FROM ours JOIN pg_catalog.pg_inherits
    ON ours.oid IN (inhparent, inhrelid)
UNION ALL SELECT 'has a column of a foreign type', relname FROM ours JOIN pg_catalog.pg_attribute
    ON attrelid = ours.oid JOIN pg_catalog.pg_type t ON t.oid = atttypid
    WHERE attnum > 0 AND t.typnamespace <> 'pg_catalog'::pg_catalog.regnamespace
LIMIT 1
""")


def find_foreign_part(connection: Connection) -> str | None:
    """The first thing about the tables that `ally` never makes, in words."""
    found = connection.execute(_FOUND, {"names": [*metadata.tables, VERSION_TABLE]}).first()
    return None if found is None else f"the table {found[1]!r} {found[0]}"
