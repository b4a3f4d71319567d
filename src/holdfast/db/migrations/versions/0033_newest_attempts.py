"""An index of the newest attempts"""

from alembic import op

from holdfast.db.models import PageCrawl

revision = "0033"
down_revision = "0031"
branch_labels = None
depends_on = None

_INDEX = next(one for one in PageCrawl.metadata.tables["page_crawls"].indexes if one.name == "ix_page_crawls_made")


def upgrade() -> None:
    _INDEX.create(op.get_bind())


def downgrade() -> None:
    _INDEX.drop(op.get_bind())
