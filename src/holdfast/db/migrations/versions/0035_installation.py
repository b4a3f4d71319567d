"""Values of the whole installation"""

from alembic import op

from holdfast.db.models import InstallationValue

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None

_TABLE = InstallationValue.metadata.tables["installation"]


def upgrade() -> None:
    _TABLE.create(op.get_bind())


def downgrade() -> None:
    _TABLE.drop(op.get_bind())
