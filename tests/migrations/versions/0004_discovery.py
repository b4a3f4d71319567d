"""Feeds and their items; signals of pages without a body; frozen editions; recoveries; storage of executions"""

from alembic import op
import sqlalchemy as sa
import holdfast.db.models.base

revision = '0004'
down_revision = '0003'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('feed_items',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('source_id', sa.BigInteger(), nullable=False),
    sa.Column('feed_id', sa.BigInteger(), nullable=False),
    sa.Column('url_hash', sa.BigInteger(), nullable=False),
    sa.Column('url', sa.Text(), nullable=False),
    sa.Column('told_at', holdfast.db.models.base.Moment(), nullable=True),
    sa.Column('found_at', holdfast.db.models.base.Moment(), nullable=False),
    sa.Column('execution_id', sa.BigInteger(), nullable=True),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_feed_items')),
    sa.UniqueConstraint('source_id', 'url_hash', name=op.f('uq_feed_items_source_id_url_hash'))
    )
    op.create_index('ix_feed_items_waiting', 'feed_items', ['source_id', 'id'], unique=False, sqlite_where=sa.text('execution_id IS NULL'), postgresql_where=sa.text('execution_id IS NULL'))

    op.create_table('recoveries',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('job_id', sa.BigInteger(), nullable=False),
    sa.Column('execution_id', sa.BigInteger(), nullable=True),
    sa.Column('at', holdfast.db.models.base.Moment(), nullable=False),
    sa.Column('action', sa.String(length=24), nullable=False),
    sa.Column('reason', sa.String(), nullable=True),
    sa.Column('pages', sa.BigInteger(), server_default='0', nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_recoveries'))
    )
    op.create_index('ix_recoveries_job', 'recoveries', ['job_id', 'at'], unique=False)

    op.create_table('signal_links',
    sa.Column('page_id', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('to_hash', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('from_hash', sa.BigInteger(), nullable=False),
    sa.Column('to_url', sa.Text(), nullable=False),
    sa.PrimaryKeyConstraint('page_id', 'to_hash', name=op.f('pk_signal_links'))
    )
    op.create_index('ix_signal_links_to_hash', 'signal_links', ['to_hash'], unique=False)

    op.create_table('signal_pages',
    sa.Column('page_id', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('source_id', sa.BigInteger(), nullable=False),
    sa.Column('execution_id', sa.BigInteger(), nullable=False),
    sa.Column('fetched_at', holdfast.db.models.base.Moment(), nullable=False),
    sa.Column('status_code', sa.SmallInteger(), nullable=True),
    sa.Column('media_type', sa.String(), nullable=True),
    sa.Column('content_hash', sa.String(length=71), nullable=True),
    sa.Column('language', sa.String(length=35), nullable=True),
    sa.Column('title', sa.String(), nullable=True),
    sa.Column('description', sa.Text(), nullable=True),
    sa.Column('word_count', sa.Integer(), server_default='0', nullable=False),
    sa.Column('links_count', sa.Integer(), server_default='0', nullable=False),
    sa.PrimaryKeyConstraint('page_id', name=op.f('pk_signal_pages'))
    )
    op.create_index('ix_signal_pages_source', 'signal_pages', ['source_id', 'page_id'], unique=False)

    op.create_table('signal_words',
    sa.Column('word', sa.String(length=64), nullable=False),
    sa.Column('page_id', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('count', sa.SmallInteger(), nullable=False),
    sa.PrimaryKeyConstraint('word', 'page_id', name=op.f('pk_signal_words'))
    )
    op.create_index('ix_signal_words_page', 'signal_words', ['page_id'], unique=False)

    op.create_table('feeds',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('source_id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('url', sa.Text(), nullable=False),
    sa.Column('url_hash', sa.BigInteger(), nullable=False),
    sa.Column('kind', sa.String(length=8), nullable=False),
    sa.Column('origin', sa.String(length=10), nullable=False),
    sa.Column('created_at', holdfast.db.models.base.Moment(), nullable=False),
    sa.Column('last_polled_at', holdfast.db.models.base.Moment(), nullable=True),
    sa.Column('next_poll_at', holdfast.db.models.base.Moment(), nullable=True),
    sa.Column('etag', sa.String(), nullable=True),
    sa.Column('last_modified', sa.String(), nullable=True),
    sa.Column('content_hash', sa.String(length=71), nullable=True),
    sa.Column('last_item_count', sa.Integer(), nullable=True),
    sa.Column('consecutive_errors', sa.Integer(), server_default='0', nullable=False),
    sa.Column('last_error', sa.Text(), nullable=True),
    sa.Column('last_error_type', sa.String(length=20), nullable=True),
    sa.Column('disabled_at', holdfast.db.models.base.Moment(), nullable=True),
    sa.Column('lease_owner', sa.String(), nullable=True),
    sa.Column('lease_epoch', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('lease_until', holdfast.db.models.base.Moment(), nullable=True),
    sa.ForeignKeyConstraint(['source_id'], ['sources.id'], name=op.f('fk_feeds_source_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_feeds')),
    sa.UniqueConstraint('source_id', 'url_hash', name=op.f('uq_feeds_source_id_url_hash'))
    )
    op.create_index('ix_feeds_due', 'feeds', ['next_poll_at', 'id'], unique=False, sqlite_where=sa.text('next_poll_at IS NOT NULL'), postgresql_where=sa.text('next_poll_at IS NOT NULL'))

    op.add_column('editions', sa.Column('frozen_at', holdfast.db.models.base.Moment(), nullable=True))
    op.add_column('editions', sa.Column('frozen_path', sa.String(), nullable=True))
    op.add_column('editions', sa.Column('frozen_digest', sa.String(length=71), nullable=True))
    op.add_column('editions', sa.Column('frozen_count', sa.Integer(), nullable=True))

    op.add_column('executions', sa.Column('storage', holdfast.db.models.base.Json, server_default=sa.text("'{}'"), nullable=False))

    op.add_column('sources', sa.Column('feeds_sought_at', holdfast.db.models.base.Moment(), nullable=True))

    op.add_column('warc_files', sa.Column('first_at', holdfast.db.models.base.Moment(), nullable=True))
    op.add_column('warc_files', sa.Column('last_at', holdfast.db.models.base.Moment(), nullable=True))
