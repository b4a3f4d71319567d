"""${message}"""

from alembic import op
import sqlalchemy as sa
import holdfast.db.models.base

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None


def upgrade() -> None:
    ${upgrades if upgrades else "pass"}
    convert(op.get_bind())


def convert(connection: sa.Connection) -> None:
    """Do all that is not a new table, column or index: databases from below the baseline run this alone."""


def downgrade() -> None:
    ${downgrades if downgrades else "pass"}
