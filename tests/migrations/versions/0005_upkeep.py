"""Indexes of changes: in the order of time for all sources and for a crawl, in the order of ids for a source; feeds without leases of their own; runs that failed"""

from alembic import op
import sqlalchemy as sa
import holdfast.db.models.base

revision = '0005'
down_revision = '0004'
branch_labels = None
depends_on = None

TOLD = sa.text("type <> 'unchanged'")
FAILED = sa.text("pruned_at IS NULL AND (state = 'failed' OR index_state = 'index_failed')")


def upgrade() -> None:
    op.drop_index('ix_changes_page', 'changes')
    op.drop_index('ix_changes_execution', 'changes')
    op.drop_index('ix_changes_execution_told', 'changes')
    op.create_index('ix_changes_execution', 'changes', ['to_execution_id', 'to_captured_at', 'id'], unique=False)
    op.create_index('ix_changes_execution_told', 'changes', ['to_execution_id', 'to_captured_at', 'id'], unique=False, sqlite_where=TOLD, postgresql_where=TOLD)
    op.create_index('ix_changes_moment_told', 'changes', ['to_captured_at', 'id'], unique=False, sqlite_where=TOLD, postgresql_where=TOLD)
    op.create_index('ix_changes_source_order', 'changes', ['source_id', 'id'], unique=False)

    # A feed is asked under the lease of its domain, by the execution that polls its source.
    for name in ('lease_owner', 'lease_epoch', 'lease_until'):
        op.drop_column('feeds', name)
    op.create_index('ix_feeds_disabled', 'feeds', ['disabled_at', 'id'], unique=False, sqlite_where=sa.text('disabled_at IS NOT NULL'), postgresql_where=sa.text('disabled_at IS NOT NULL'))

    op.create_index('ix_executions_failed', 'executions', ['finished_at', 'id'], unique=False, sqlite_where=FAILED, postgresql_where=FAILED)
