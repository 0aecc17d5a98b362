"""A map of the pool in two dimensions, for the model that serves."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

Number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "maps",
        sa.Column("model", Number, autoincrement=False, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("model", name="pk_maps"),
        sa.ForeignKeyConstraint(["model"], ["models.number"], name="fk_maps_model"),
    )
