"""Start pages that a job names itself are seeds; those that were taken from its source are not"""

from alembic import op
import sqlalchemy as sa

revision = '0009'
down_revision = '0008'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column('jobs', sa.Column('url_given', sa.Boolean(), server_default=sa.text('false'), nullable=False))
