"""Alembic's entry: it runs on the connection, and in the transaction, of the one who upgrades."""

from alembic import context

from lakehouse.catalog.store.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
