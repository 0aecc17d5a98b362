"""Samples, queries, leases and answers."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

Number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "campaign",
        sa.Column("number", Number, autoincrement=False, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("seed", sa.BigInteger, nullable=False),
        sa.Column("settings", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_campaign"),
    )
    op.create_table(
        "samples",
        sa.Column("row", Number, autoincrement=False, nullable=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("hash", sa.Text),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("gone", sa.Boolean, nullable=False),
        sa.Column("draw", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("row", name="pk_samples"),
        sa.UniqueConstraint("id", name="uq_samples_id"),
    )
    op.create_index("ix_samples_role_draw_row", "samples", ["role", "draw", "row"])
    op.create_table(
        "queries",
        sa.Column("number", Number, autoincrement=False, nullable=False),
        sa.Column("annotator", sa.Text, nullable=False),
        sa.Column("key", sa.Text),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("model", Number),
        sa.PrimaryKeyConstraint("number", name="pk_queries"),
        sa.UniqueConstraint("annotator", "key", name="uq_queries_annotator_key"),
    )
    op.create_table(
        "asked",
        sa.Column("query", Number, autoincrement=False, nullable=False),
        sa.Column("place", Number, autoincrement=False, nullable=False),
        sa.Column("sample", Number, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("score", sa.Double),
        sa.Column("why", sa.Text),
        sa.PrimaryKeyConstraint("query", "place", name="pk_asked"),
        sa.UniqueConstraint("query", "sample", name="uq_asked_query_sample"),
        sa.ForeignKeyConstraint(["query"], ["queries.number"], name="fk_asked_query"),
        sa.ForeignKeyConstraint(["sample"], ["samples.row"], name="fk_asked_sample"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "leases",
        sa.Column("sample", Number, autoincrement=False, nullable=False),
        sa.Column("query", Number, nullable=False),
        sa.Column("annotator", sa.Text, nullable=False),
        sa.Column("until", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("sample", name="pk_leases"),
        sa.ForeignKeyConstraint(["sample"], ["samples.row"], name="fk_leases_sample"),
        sa.ForeignKeyConstraint(["query"], ["queries.number"], name="fk_leases_query"),
    )
    op.create_index("ix_leases_query", "leases", ["query"])
    op.create_table(
        "calls",
        sa.Column("number", Number, autoincrement=False, nullable=False),
        sa.Column("annotator", sa.Text, nullable=False),
        sa.Column("key", sa.Text),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("receipt", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_calls"),
        sa.UniqueConstraint("annotator", "key", name="uq_calls_annotator_key"),
    )
    op.create_table(
        "answers",
        sa.Column("number", Number, autoincrement=False, nullable=False),
        sa.Column("call", Number, nullable=False),
        sa.Column("sample", Number, nullable=False),
        sa.Column("annotator", sa.Text, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("value", sa.Text),
        sa.Column("query", Number),
        sa.Column("undoes", Number),
        sa.PrimaryKeyConstraint("number", name="pk_answers"),
        sa.UniqueConstraint("undoes", name="uq_answers_undoes"),
        sa.ForeignKeyConstraint(["call"], ["calls.number"], name="fk_answers_call"),
        sa.ForeignKeyConstraint(["sample"], ["samples.row"], name="fk_answers_sample"),
        sa.ForeignKeyConstraint(["query"], ["queries.number"], name="fk_answers_query"),
        sa.ForeignKeyConstraint(["undoes"], ["answers.number"], name="fk_answers_undoes"),
    )
    op.create_index("ix_answers_sample", "answers", ["sample"])
    op.create_index("ix_answers_annotator_number", "answers", ["annotator", "number"])
