"""Run by Alembic: migrates the connection it is given, in the transaction that is open."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
with context.begin_transaction():
    context.run_migrations()
