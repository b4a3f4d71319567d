"""The first tables: sources to executions, the frontier, WARC files"""

from alembic import op
import sqlalchemy as sa
import holdfast.db.models.base

revision = '0001'
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('audit_events',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('at', holdfast.db.models.base.Moment(), nullable=False),
    sa.Column('actor', sa.String(), nullable=False),
    sa.Column('action', sa.String(length=64), nullable=False),
    sa.Column('subject', sa.String(), nullable=False),
    sa.Column('detail', holdfast.db.models.base.Json, nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_audit_events'))
    )
    op.create_table('domains',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('name', sa.String(), nullable=False),
    sa.Column('delay_s', sa.Double(), nullable=True),
    sa.Column('next_allowed_at', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('lease_owner', sa.BigInteger(), nullable=True),
    sa.Column('lease_token', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('lease_expires_at', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('circuit_state', sa.String(length=9), server_default='closed', nullable=False),
    sa.Column('circuit_failures', sa.Integer(), server_default='0', nullable=False),
    sa.Column('circuit_successes', sa.Integer(), server_default='0', nullable=False),
    sa.Column('circuit_opened_at', holdfast.db.models.base.Moment(), nullable=True),
    sa.Column('penalty', sa.Double(), server_default='1', nullable=False),
    sa.Column('unreachable_since', holdfast.db.models.base.Moment(), nullable=True),
    sa.Column('is_allowed', sa.Boolean(), server_default=sa.text('(true)'), nullable=False),
    sa.Column('created_at', holdfast.db.models.base.Moment(), nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_domains')),
    sa.UniqueConstraint('name', name=op.f('uq_domains_name'))
    )
    with op.batch_alter_table('domains', schema=None) as batch_op:
        batch_op.create_index('ix_domains_lease_owner', ['lease_owner'], unique=False, sqlite_where=sa.text('lease_owner IS NOT NULL'), postgresql_where=sa.text('lease_owner IS NOT NULL'))

    op.create_table('exclusions',
    sa.Column('execution_id', sa.BigInteger(), nullable=False),
    sa.Column('rule', sa.String(), nullable=False),
    sa.Column('host', sa.String(), nullable=False),
    sa.Column('count', sa.BigInteger(), nullable=False),
    sa.PrimaryKeyConstraint('execution_id', 'rule', 'host', name=op.f('pk_exclusions'))
    )
    op.create_table('execution_counts',
    sa.Column('execution_id', sa.BigInteger(), nullable=False),
    sa.Column('owner_id', sa.BigInteger(), nullable=False),
    sa.Column('counts', holdfast.db.models.base.Json, nullable=False),
    sa.Column('updated_at', holdfast.db.models.base.Moment(), nullable=False),
    sa.PrimaryKeyConstraint('execution_id', 'owner_id', name=op.f('pk_execution_counts'))
    )
    op.create_table('page_crawls',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('execution_id', sa.BigInteger(), nullable=False),
    sa.Column('domain_id', sa.BigInteger(), nullable=False),
    sa.Column('page_id', sa.BigInteger(), nullable=False),
    sa.Column('attempt', sa.SmallInteger(), nullable=False),
    sa.Column('kind', sa.String(length=9), nullable=False),
    sa.Column('priority', sa.SmallInteger(), nullable=False),
    sa.Column('depth', sa.Integer(), nullable=False),
    sa.Column('via_page_id', sa.BigInteger(), nullable=True),
    sa.Column('scheduled_for', sa.BigInteger(), nullable=True),
    sa.Column('crashes', sa.SmallInteger(), server_default='0', nullable=False),
    sa.Column('outcome', sa.String(length=14), nullable=True),
    sa.Column('reason', sa.String(), nullable=True),
    sa.Column('status_code', sa.SmallInteger(), nullable=True),
    sa.Column('message', sa.String(), nullable=True),
    sa.Column('media_type', sa.String(), nullable=True),
    sa.Column('wire_bytes', sa.BigInteger(), nullable=True),
    sa.Column('requests', sa.Integer(), nullable=True),
    sa.Column('payload_digest', sa.String(), nullable=True),
    sa.Column('content_hash', sa.String(), nullable=True),
    sa.Column('title', sa.String(), nullable=True),
    sa.Column('redirected_to', sa.String(), nullable=True),
    sa.Column('links_count', sa.Integer(), nullable=True),
    sa.Column('warc_file_id', sa.BigInteger(), nullable=True),
    sa.Column('warc_offset', sa.BigInteger(), nullable=True),
    sa.Column('warc_length', sa.BigInteger(), nullable=True),
    sa.Column('warc_ordinal', sa.Integer(), nullable=True),
    sa.Column('created_at', sa.BigInteger(), nullable=False),
    sa.Column('started_at', sa.BigInteger(), nullable=True),
    sa.Column('completed_at', sa.BigInteger(), nullable=True),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_page_crawls')),
    sa.UniqueConstraint('execution_id', 'domain_id', 'page_id', 'attempt', name=op.f('uq_page_crawls_execution_id_domain_id_page_id_attempt'))
    )
    with op.batch_alter_table('page_crawls', schema=None) as batch_op:
        batch_op.create_index('ix_page_crawls_queue', ['execution_id', 'domain_id', sa.text('priority DESC'), 'id'], unique=False, sqlite_where=sa.text('outcome IS NULL AND scheduled_for IS NULL'), postgresql_where=sa.text('outcome IS NULL AND scheduled_for IS NULL'))
        batch_op.create_index('ix_page_crawls_page_id', ['page_id', 'id'], unique=False)
        batch_op.create_index('ix_page_crawls_deferred', ['execution_id', 'domain_id', 'scheduled_for', 'id'], unique=False, sqlite_where=sa.text('outcome IS NULL AND scheduled_for IS NOT NULL'), postgresql_where=sa.text('outcome IS NULL AND scheduled_for IS NOT NULL'))
        batch_op.create_index('ix_page_crawls_warc_file', ['warc_file_id', 'warc_offset'], unique=False, sqlite_where=sa.text('warc_file_id IS NOT NULL'), postgresql_where=sa.text('warc_file_id IS NOT NULL'))

    op.create_table('pages',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('domain_id', sa.BigInteger(), nullable=False),
    sa.Column('url_hash', sa.BigInteger(), nullable=False),
    sa.Column('url', sa.String(), nullable=False),
    sa.Column('status', sa.String(length=10), server_default='discovered', nullable=False),
    sa.Column('language', sa.String(length=35), nullable=True),
    sa.Column('etag', sa.String(), nullable=True),
    sa.Column('last_modified', sa.String(), nullable=True),
    sa.Column('original_record_id', sa.String(), nullable=True),
    sa.Column('original_url', sa.String(), nullable=True),
    sa.Column('original_at', holdfast.db.models.base.Moment(), nullable=True),
    sa.Column('original_digest', sa.String(), nullable=True),
    sa.Column('original_file_id', sa.BigInteger(), nullable=True),
    sa.Column('original_offset', sa.BigInteger(), nullable=True),
    sa.Column('error_count', sa.SmallInteger(), server_default='0', nullable=False),
    sa.Column('created_at', holdfast.db.models.base.Moment(), nullable=False),
    sa.Column('fetched_at', holdfast.db.models.base.Moment(), nullable=True),
    sa.Column('failed_at', holdfast.db.models.base.Moment(), nullable=True),
    sa.Column('next_crawl_at', holdfast.db.models.base.Moment(), nullable=True),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_pages')),
    sa.UniqueConstraint('domain_id', 'url_hash', name=op.f('uq_pages_domain_id_url_hash'))
    )
    with op.batch_alter_table('pages', schema=None) as batch_op:
        batch_op.create_index('ix_pages_language', ['language'], unique=False, sqlite_where=sa.text('language IS NOT NULL'), postgresql_where=sa.text('language IS NOT NULL'))

    op.create_table('queues',
    sa.Column('execution_id', sa.BigInteger(), nullable=False),
    sa.Column('domain_id', sa.BigInteger(), nullable=False),
    sa.Column('open', sa.BigInteger(), nullable=False),
    sa.Column('succeeded', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('failed', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('ruled_out', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('due_at', sa.BigInteger(), nullable=False),
    sa.PrimaryKeyConstraint('execution_id', 'domain_id', name=op.f('pk_queues'))
    )
    with op.batch_alter_table('queues', schema=None) as batch_op:
        batch_op.create_index('ix_queues_due', ['execution_id', 'due_at', 'domain_id'], unique=False, sqlite_where=sa.text('open > 0'), postgresql_where=sa.text('open > 0'))

    op.create_table('sources',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('code', sa.String(length=16), nullable=False),
    sa.Column('name', sa.String(), nullable=False),
    sa.Column('base_url', sa.String(), nullable=True),
    sa.Column('description', sa.String(), nullable=True),
    sa.Column('enabled', sa.Boolean(), nullable=False),
    sa.Column('config', holdfast.db.models.base.Json, nullable=False),
    sa.Column('created_at', holdfast.db.models.base.Moment(), nullable=False),
    sa.Column('updated_at', holdfast.db.models.base.Moment(), nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_sources')),
    sa.UniqueConstraint('code', name=op.f('uq_sources_code'))
    )
    op.create_table('jobs',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('source_id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('kind', sa.String(length=16), nullable=False),
    sa.Column('fingerprint', sa.String(length=64), nullable=False),
    sa.Column('config', holdfast.db.models.base.Json, nullable=False),
    sa.Column('created_at', holdfast.db.models.base.Moment(), nullable=False),
    sa.ForeignKeyConstraint(['source_id'], ['sources.id'], name=op.f('fk_jobs_source_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_jobs'))
    )
    with op.batch_alter_table('jobs', schema=None) as batch_op:
        batch_op.create_index('ix_jobs_kind_fingerprint', ['kind', 'fingerprint'], unique=False)
        batch_op.create_index(batch_op.f('ix_jobs_source_id'), ['source_id'], unique=False)

    op.create_table('robots',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('domain_id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('origin', sa.String(), nullable=False),
    sa.Column('answer', sa.String(length=11), nullable=False),
    sa.Column('status', sa.Integer(), nullable=True),
    sa.Column('body', sa.LargeBinary(), nullable=False),
    sa.Column('failures', sa.Integer(), nullable=False),
    sa.Column('fetched_at', holdfast.db.models.base.Moment(), nullable=False),
    sa.Column('checked_at', holdfast.db.models.base.Moment(), nullable=False),
    sa.ForeignKeyConstraint(['domain_id'], ['domains.id'], name=op.f('fk_robots_domain_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_robots')),
    sa.UniqueConstraint('origin', name=op.f('uq_robots_origin'))
    )
    with op.batch_alter_table('robots', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_robots_domain_id'), ['domain_id'], unique=False)

    op.create_table('executions',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('job_id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('number', sa.Integer(), nullable=False),
    sa.Column('state', sa.String(length=16), nullable=False),
    sa.Column('reason', sa.String(), nullable=True),
    sa.Column('stop_requested', sa.String(length=8), nullable=True),
    sa.Column('config', holdfast.db.models.base.Json, nullable=False),
    sa.Column('output_dir', sa.String(), nullable=False),
    sa.Column('created_at', holdfast.db.models.base.Moment(), nullable=False),
    sa.Column('started_at', holdfast.db.models.base.Moment(), nullable=True),
    sa.Column('finished_at', holdfast.db.models.base.Moment(), nullable=True),
    sa.Column('run_seconds', sa.Double(), nullable=False),
    sa.ForeignKeyConstraint(['job_id'], ['jobs.id'], name=op.f('fk_executions_job_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_executions')),
    sa.UniqueConstraint('job_id', 'number', name=op.f('uq_executions_job_id_number'))
    )
    with op.batch_alter_table('executions', schema=None) as batch_op:
        batch_op.create_index('uq_executions_open', ['job_id'], unique=True, sqlite_where=sa.text("state IN ('running','stopped')"), postgresql_where=sa.text("state IN ('running','stopped')"))

    op.create_table('owners',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('kind', sa.String(length=16), nullable=False),
    sa.Column('host', sa.String(), nullable=False),
    sa.Column('pid', sa.Integer(), nullable=False),
    sa.Column('run_file', sa.String(), nullable=False),
    sa.Column('execution_id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=True),
    sa.Column('started_at', holdfast.db.models.base.Moment(), nullable=False),
    sa.Column('heartbeat_at', holdfast.db.models.base.Moment(), nullable=False),
    sa.Column('ended_at', holdfast.db.models.base.Moment(), nullable=True),
    sa.ForeignKeyConstraint(['execution_id'], ['executions.id'], name=op.f('fk_owners_execution_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_owners'))
    )
    with op.batch_alter_table('owners', schema=None) as batch_op:
        batch_op.create_index('ix_owners_open', ['host'], unique=False, sqlite_where=sa.text('ended_at IS NULL'), postgresql_where=sa.text('ended_at IS NULL'))

    op.create_table('warc_files',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('execution_id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('owner_id', sa.BigInteger(), nullable=True),
    sa.Column('path', sa.String(), nullable=False),
    sa.Column('state', sa.String(length=16), nullable=False),
    sa.Column('size', sa.BigInteger(), nullable=True),
    sa.Column('sha256', sa.String(length=64), nullable=True),
    sa.Column('crc32', sa.BigInteger(), nullable=True),
    sa.Column('record_count', sa.Integer(), nullable=True),
    sa.Column('repaired', sa.Boolean(), server_default=sa.text('(false)'), nullable=False),
    sa.Column('created_at', holdfast.db.models.base.Moment(), nullable=False),
    sa.Column('sealed_at', holdfast.db.models.base.Moment(), nullable=True),
    sa.ForeignKeyConstraint(['execution_id'], ['executions.id'], name=op.f('fk_warc_files_execution_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_warc_files')),
    sa.UniqueConstraint('path', name=op.f('uq_warc_files_path'))
    )
    with op.batch_alter_table('warc_files', schema=None) as batch_op:
        batch_op.create_index('ix_warc_files_execution_id', ['execution_id', 'id'], unique=False)
        batch_op.create_index('ix_warc_files_open', ['owner_id'], unique=False, sqlite_where=sa.text("state = 'open'"), postgresql_where=sa.text("state = 'open'"))
