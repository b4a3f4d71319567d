"""The Alembic environment: runs migrations over the connection that `holdfast.db.migrate` passes in."""

from alembic import context

from holdfast.db.models import Model

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=Model.metadata, render_as_batch=True, compare_type=True)
with context.begin_transaction():
    context.run_migrations()
