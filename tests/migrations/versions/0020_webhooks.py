"""Events that are told outside, webhooks, and their deliveries"""

from alembic import op
import sqlalchemy as sa
import holdfast.db.models.base

revision = '0020'
down_revision = '0019'
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')
MOMENT = holdfast.db.models.base.Moment()
JSON = holdfast.db.models.base.Json
PENDING = sa.text("state = 'pending'")


def upgrade() -> None:
    op.create_table(
        'events',
        sa.Column('id', ID, nullable=False),
        sa.Column('at', MOMENT, nullable=False),
        sa.Column('name', sa.String(32), nullable=False),
        sa.Column('source_id', sa.BigInteger(), nullable=True),
        sa.Column('data', JSON, nullable=False),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_events')),
    )
    op.create_index('ix_events_at', 'events', ['at'], unique=False)
    op.create_table(
        'webhooks',
        sa.Column('id', ID, nullable=False),
        sa.Column('url', sa.Text(), nullable=False),
        sa.Column('description', sa.Text(), nullable=True),
        sa.Column('events', JSON, nullable=False),
        sa.Column('sources', JSON, nullable=False),
        sa.Column('secret', sa.Text(), nullable=False),
        sa.Column('previous_secret', sa.Text(), nullable=True),
        sa.Column('previous_until', MOMENT, nullable=True),
        sa.Column('jobs_after', sa.BigInteger(), server_default='0', nullable=False),
        sa.Column('events_after', sa.BigInteger(), server_default='0', nullable=False),
        sa.Column('changes_after', sa.BigInteger(), server_default='0', nullable=False),
        sa.Column('disabled_at', MOMENT, nullable=True),
        sa.Column('disabled_reason', sa.Text(), nullable=True),
        sa.Column('created_by', sa.String(), nullable=False),
        sa.Column('created_at', MOMENT, nullable=False),
        sa.Column('updated_at', MOMENT, nullable=False),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_webhooks')),
    )
    op.create_table(
        'webhook_deliveries',
        sa.Column('id', ID, nullable=False),
        sa.Column('webhook_id', sa.BigInteger(), nullable=False),
        sa.Column('event_key', sa.String(40), nullable=False),
        sa.Column('message_id', sa.String(40), nullable=False),
        sa.Column('event', sa.String(32), nullable=False),
        sa.Column('body', sa.Text(), nullable=False),
        sa.Column('state', sa.String(9), nullable=False),
        sa.Column('attempts', sa.SmallInteger(), server_default='0', nullable=False),
        sa.Column('next_at', MOMENT, nullable=False),
        sa.Column('lease_token', sa.String(32), nullable=True),
        sa.Column('lease_until', MOMENT, nullable=True),
        sa.Column('status', sa.SmallInteger(), nullable=True),
        sa.Column('created_at', MOMENT, nullable=False),
        sa.Column('finished_at', MOMENT, nullable=True),
        sa.ForeignKeyConstraint(['webhook_id'], ['webhooks.id'], name=op.f('fk_webhook_deliveries_webhook_id'), ondelete='CASCADE'),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_webhook_deliveries')),
        sa.UniqueConstraint('webhook_id', 'event_key', name=op.f('uq_webhook_deliveries_webhook_id_event_key')),
    )
    op.create_index('ix_webhook_deliveries_webhook', 'webhook_deliveries', ['webhook_id', 'id'], unique=False)
    op.create_index('ix_webhook_deliveries_age', 'webhook_deliveries', ['created_at'], unique=False)
    op.create_index('ix_webhook_deliveries_due', 'webhook_deliveries', ['webhook_id', 'next_at', 'id'], unique=False, sqlite_where=PENDING, postgresql_where=PENDING)
    op.create_table(
        'webhook_attempts',
        sa.Column('id', ID, nullable=False),
        sa.Column('delivery_id', sa.BigInteger(), nullable=False),
        sa.Column('at', MOMENT, nullable=False),
        sa.Column('took_ms', sa.Integer(), nullable=False),
        sa.Column('status', sa.SmallInteger(), nullable=True),
        sa.Column('error', sa.Text(), nullable=True),
        sa.Column('answer', sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(['delivery_id'], ['webhook_deliveries.id'], name=op.f('fk_webhook_attempts_delivery_id'), ondelete='CASCADE'),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_webhook_attempts')),
    )
    op.create_index('ix_webhook_attempts_delivery', 'webhook_attempts', ['delivery_id', 'id'], unique=False)
