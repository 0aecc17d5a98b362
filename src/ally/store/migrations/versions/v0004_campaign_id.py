"""A random id, by which decisions about a campaign are kept outside it."""

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("campaign", sa.Column("id", sa.String(32)))
    op.execute(sa.text("UPDATE campaign SET id = :id").bindparams(id=secrets.token_hex(16)))
