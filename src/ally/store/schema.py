"""The tables. `migrations/` builds them step by step; a test compares the two.

Answers, calls, queries, asked and events are only ever added to. Leases and rankings come and go: nothing is lost with
them.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

VERSION = "0004"
"""The revision this code reads and writes; see `migrations/versions`."""

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# SQLite keeps a table in the order of its key only for INTEGER, PostgreSQL wants BIGINT for more than two thousand
# million.
Number = BigInteger().with_variant(Integer(), "sqlite")


def _number(name: str) -> Column[int]:
    return Column(name, Number, primary_key=True, autoincrement=False)


campaign = Table(
    "campaign",
    metadata,
    _number("number"),
    Column("created", Double, nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("settings", Text, nullable=False),
    Column("id", String(32)),
)

samples = Table(
    "samples",
    metadata,
    _number("row"),
    Column("id", Text, nullable=False),
    Column("hash", Text),
    Column("role", String(16), nullable=False),
    Column("gone", Boolean, nullable=False),
    Column("draw", BigInteger, nullable=False),
    UniqueConstraint("id"),
    Index(None, "role", "draw", "row"),
)

queries = Table(
    "queries",
    metadata,
    _number("number"),
    Column("annotator", Text, nullable=False),
    Column("key", Text),
    Column("at", Double, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("model", Number),
    UniqueConstraint("annotator", "key"),
)

asked = Table(
    "asked",
    metadata,
    Column("query", Number, ForeignKey("queries.number"), primary_key=True, autoincrement=False),
    Column("place", Number, primary_key=True, autoincrement=False),
    Column("sample", Number, ForeignKey("samples.row"), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("score", Double),
    Column("why", Text),
    UniqueConstraint("query", "sample"),
    sqlite_with_rowid=False,
)

leases = Table(
    "leases",
    metadata,
    Column("sample", Number, ForeignKey("samples.row"), primary_key=True, autoincrement=False),
    Column("query", Number, ForeignKey("queries.number"), nullable=False, index=True),
    Column("annotator", Text, nullable=False),
    Column("until", Double, nullable=False),
)

calls = Table(
    "calls",
    metadata,
    _number("number"),
    Column("annotator", Text, nullable=False),
    Column("key", Text),
    Column("at", Double, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("receipt", Text, nullable=False),
    UniqueConstraint("annotator", "key"),
)

answers = Table(
    "answers",
    metadata,
    _number("number"),
    Column("call", Number, ForeignKey("calls.number"), nullable=False),
    Column("sample", Number, ForeignKey("samples.row"), nullable=False, index=True),
    Column("annotator", Text, nullable=False),
    Column("at", Double, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("value", Text),
    Column("query", Number, ForeignKey("queries.number")),
    Column("undoes", Number, ForeignKey("answers.number")),
    UniqueConstraint("undoes"),
    Index(None, "annotator", "number"),
)

models = Table(
    "models",
    metadata,
    _number("number"),
    Column("at", Double, nullable=False),
    Column("state", String(16), nullable=False),
    Column("seen", Number, nullable=False),
    Column("labels", Number, nullable=False),
    Column("report", Text, nullable=False),
)

weights = Table(
    "weights",
    metadata,
    Column("model", Number, ForeignKey("models.number"), primary_key=True, autoincrement=False),
    Column("data", LargeBinary, nullable=False),
)

maps = Table(
    "maps",
    metadata,
    Column("model", Number, ForeignKey("models.number"), primary_key=True, autoincrement=False),
    Column("data", LargeBinary, nullable=False),
)

measures = Table(
    "measures",
    metadata,
    Column("model", Number, ForeignKey("models.number"), primary_key=True, autoincrement=False),
    Column("name", String(200), primary_key=True),
    Column("value", Double, nullable=False),
    Column("low", Double),
    Column("high", Double),
    Column("n", Number),
)

ranking = Table(
    "ranking",
    metadata,
    Column("model", Number, ForeignKey("models.number"), primary_key=True, autoincrement=False),
    Column("place", Number, primary_key=True, autoincrement=False),
    Column("sample", Number, ForeignKey("samples.row"), nullable=False),
    Column("score", Double, nullable=False),
    Column("why", Text),
    sqlite_with_rowid=False,
)

events = Table(
    "events",
    metadata,
    _number("number"),
    Column("at", Double, nullable=False),
    Column("kind", String(200), nullable=False),
    Column("detail", Text, nullable=False),
)
