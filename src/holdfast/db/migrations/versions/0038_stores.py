"""WARC files have a store and a key"""

import sqlalchemy as sa
from alembic import op
from alembic.migration import MigrationContext
from alembic.operations import Operations

from holdfast.db.models import WarcStore
from holdfast.storage.store import store_name

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None

_OLD, _NEW = "uq_warc_files_path", "uq_warc_files_key_store"
_STORES = WarcStore.metadata.tables["stores"]


def upgrade() -> None:
    _STORES.create(op.get_bind())
    op.execute("ALTER TABLE warc_files RENAME COLUMN path TO key")
    op.add_column("warc_files", sa.Column("store", sa.String(64), server_default="home", nullable=False))
    convert(op.get_bind())


def convert(connection: sa.Connection) -> None:
    """Make each folder outside the data directory a store; until now a row had the file's absolute path."""
    # A schema from before the first capture has got the table just now.
    if any(one["name"] == _OLD for one in sa.inspect(connection).get_unique_constraints("warc_files")):
        with Operations(MigrationContext.configure(connection)).batch_alter_table("warc_files") as table:
            table.drop_constraint(_OLD, type_="unique")
            table.create_unique_constraint(_NEW, ["key", "store"])
    rows = connection.execute(sa.text("SELECT id, key FROM warc_files WHERE key LIKE '/%'")).all()
    for number, path in rows:
        location, _, key = path.rpartition("/")
        name = store_name(location or "/")
        connection.execute(
            sa.text("INSERT INTO stores(name, location) VALUES (:name, :location) ON CONFLICT DO NOTHING"),
            {"name": name, "location": location or "/"},
        )
        connection.execute(
            sa.text("UPDATE warc_files SET store = :name, key = :key WHERE id = :id"),
            {"name": name, "key": key, "id": number},
        )



def downgrade() -> None:
    with op.batch_alter_table("warc_files") as table:
        table.drop_constraint(_NEW, type_="unique")
    op.execute(
        "UPDATE warc_files SET key = (SELECT location FROM stores WHERE name = warc_files.store) || '/' || key"
        " WHERE store <> 'home'"
    )
    with op.batch_alter_table("warc_files") as table:
        table.drop_column("store")
    op.execute("ALTER TABLE warc_files RENAME COLUMN key TO path")
    with op.batch_alter_table("warc_files") as table:
        table.create_unique_constraint(_OLD, ["path"])
    _STORES.drop(op.get_bind())
