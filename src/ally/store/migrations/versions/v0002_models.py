"""Models, what they want to ask next, their figures, and events."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

Number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "models",
        sa.Column("number", Number, autoincrement=False, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("seen", Number, nullable=False),
        sa.Column("labels", Number, nullable=False),
        sa.Column("report", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_models"),
    )
    op.create_table(
        "weights",
        sa.Column("model", Number, autoincrement=False, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("model", name="pk_weights"),
        sa.ForeignKeyConstraint(["model"], ["models.number"], name="fk_weights_model"),
    )
    op.create_table(
        "measures",
        sa.Column("model", Number, autoincrement=False, nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("value", sa.Double, nullable=False),
        sa.Column("low", sa.Double),
        sa.Column("high", sa.Double),
        sa.Column("n", Number),
        sa.PrimaryKeyConstraint("model", "name", name="pk_measures"),
        sa.ForeignKeyConstraint(["model"], ["models.number"], name="fk_measures_model"),
    )
    op.create_table(
        "ranking",
        sa.Column("model", Number, autoincrement=False, nullable=False),
        sa.Column("place", Number, autoincrement=False, nullable=False),
        sa.Column("sample", Number, nullable=False),
        sa.Column("score", sa.Double, nullable=False),
        sa.Column("why", sa.Text),
        sa.PrimaryKeyConstraint("model", "place", name="pk_ranking"),
        sa.ForeignKeyConstraint(["model"], ["models.number"], name="fk_ranking_model"),
        sa.ForeignKeyConstraint(["sample"], ["samples.row"], name="fk_ranking_sample"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "events",
        sa.Column("number", Number, autoincrement=False, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("kind", sa.String(200), nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_events"),
    )
