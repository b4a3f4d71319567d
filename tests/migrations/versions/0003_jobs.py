"""Jobs: schedules, locks, holds, events, logs; executions that wait in a queue"""

from alembic import op
import sqlalchemy as sa
import holdfast.db.models.base

revision = '0003'
down_revision = '0002'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('holds',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('job_id', sa.BigInteger(), nullable=False),
    sa.Column('execution_id', sa.BigInteger(), nullable=False),
    sa.Column('epoch', sa.BigInteger(), nullable=False),
    sa.Column('owner', sa.String(), nullable=False),
    sa.Column('acquired_at', holdfast.db.models.base.Moment(), nullable=False),
    sa.Column('ended_at', holdfast.db.models.base.Moment(), nullable=True),
    sa.Column('ending', sa.String(length=10), nullable=True),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_holds')),
    sa.UniqueConstraint('job_id', 'epoch', name=op.f('uq_holds_job_id_epoch'))
    )
    op.create_index('ix_holds_execution', 'holds', ['execution_id', 'id'], unique=False)

    op.create_table('job_events',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('at', holdfast.db.models.base.Moment(), nullable=False),
    sa.Column('name', sa.String(length=16), nullable=False),
    sa.Column('job_id', sa.BigInteger(), nullable=False),
    sa.Column('execution_id', sa.BigInteger(), nullable=True),
    sa.Column('data', holdfast.db.models.base.Json, nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_job_events'))
    )
    op.create_index('ix_job_events_at', 'job_events', ['at'], unique=False)
    op.create_index('ix_job_events_job', 'job_events', ['job_id', 'id'], unique=False)

    op.create_table('log_lines',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('execution_id', sa.BigInteger(), nullable=False),
    sa.Column('at', holdfast.db.models.base.Moment(), nullable=False),
    sa.Column('level', sa.SmallInteger(), nullable=False),
    sa.Column('category', sa.String(length=32), nullable=False),
    sa.Column('message', sa.Text(), nullable=False),
    sa.Column('fields', holdfast.db.models.base.Json, nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_log_lines'))
    )
    op.create_index('ix_log_lines_execution', 'log_lines', ['execution_id', 'id'], unique=False)

    op.create_table('run_hours',
    sa.Column('hour', holdfast.db.models.base.Moment(), nullable=False),
    sa.Column('succeeded', sa.Integer(), server_default='0', nullable=False),
    sa.Column('failed', sa.Integer(), server_default='0', nullable=False),
    sa.Column('cancelled', sa.Integer(), server_default='0', nullable=False),
    sa.Column('duration_ms', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('stale_locks', sa.Integer(), server_default='0', nullable=False),
    sa.PrimaryKeyConstraint('hour', name=op.f('pk_run_hours'))
    )
    op.add_column('executions', sa.Column('due_at', holdfast.db.models.base.Moment(), nullable=True))
    op.add_column('executions', sa.Column('queued_at', holdfast.db.models.base.Moment(), nullable=True))
    op.add_column('executions', sa.Column('takeovers', sa.SmallInteger(), server_default='0', nullable=False))
    op.add_column('executions', sa.Column('retry_attempt', sa.Integer(), server_default='0', nullable=False))
    op.add_column('executions', sa.Column('resumed_from', sa.BigInteger(), nullable=True))
    op.add_column('executions', sa.Column('failure', sa.String(length=20), nullable=True))
    op.add_column('executions', sa.Column('exit_code', sa.Integer(), nullable=True))
    op.add_column('executions', sa.Column('stage', sa.String(), nullable=True))
    op.add_column('executions', sa.Column('duration_ms', sa.BigInteger(), nullable=True))
    op.add_column('executions', sa.Column('cpu_ms', sa.BigInteger(), nullable=True))
    op.add_column('executions', sa.Column('peak_memory_bytes', sa.BigInteger(), nullable=True))
    op.add_column('executions', sa.Column('items_crawled', sa.BigInteger(), server_default='0', nullable=False))
    op.add_column('executions', sa.Column('items_indexed', sa.BigInteger(), server_default='0', nullable=False))
    op.add_column('executions', sa.Column('items_failed', sa.BigInteger(), server_default='0', nullable=False))
    op.add_column('executions', sa.Column('items_total', sa.BigInteger(), server_default='0', nullable=False))
    op.add_column('executions', sa.Column('error', sa.Text(), nullable=True))
    op.add_column('executions', sa.Column('stack', sa.Text(), nullable=True))
    op.add_column('executions', sa.Column('metrics', holdfast.db.models.base.Json, server_default=sa.text("'{}'"), nullable=False))
    op.add_column('executions', sa.Column('index_state', sa.String(length=12), nullable=True))
    op.add_column('executions', sa.Column('artifacts', holdfast.db.models.base.Json, server_default=sa.text("'{}'"), nullable=False))
    op.add_column('executions', sa.Column('cleanup_status', sa.String(length=20), server_default='none', nullable=False))
    op.add_column('executions', sa.Column('cleaned_at', holdfast.db.models.base.Moment(), nullable=True))
    op.add_column('executions', sa.Column('log_lines', sa.Integer(), server_default='0', nullable=False))
    op.add_column('executions', sa.Column('log_bytes', sa.BigInteger(), server_default='0', nullable=False))
    op.add_column('executions', sa.Column('log_dropped', sa.Integer(), server_default='0', nullable=False))
    op.add_column('executions', sa.Column('pruned_at', holdfast.db.models.base.Moment(), nullable=True))
    op.create_index('ix_executions_aging', 'executions', ['finished_at', 'id'], unique=False, sqlite_where=sa.text('pruned_at IS NULL AND finished_at IS NOT NULL'), postgresql_where=sa.text('pruned_at IS NULL AND finished_at IS NOT NULL'))
    op.create_index('ix_executions_queued', 'executions', ['queued_at', 'id'], unique=False, sqlite_where=sa.text("state = 'queued'"), postgresql_where=sa.text("state = 'queued'"))
    op.create_index('ix_executions_to_index', 'executions', ['id'], unique=False, sqlite_where=sa.text("index_state IN ('pending','indexing')"), postgresql_where=sa.text("index_state IN ('pending','indexing')"))
    op.create_index('ix_executions_unpruned', 'executions', ['job_id', 'number'], unique=False, sqlite_where=sa.text('pruned_at IS NULL'), postgresql_where=sa.text('pruned_at IS NULL'))
    op.create_index('uq_executions_due', 'executions', ['job_id', 'due_at'], unique=True)

    op.add_column('jobs', sa.Column('updated_at', holdfast.db.models.base.Moment(), nullable=True))
    op.add_column('jobs', sa.Column('deleted_at', holdfast.db.models.base.Moment(), nullable=True))
    op.add_column('jobs', sa.Column('name', sa.String(), nullable=True))
    op.add_column('jobs', sa.Column('url', sa.String(), nullable=True))
    op.add_column('jobs', sa.Column('state', sa.String(length=9), nullable=True))
    op.add_column('jobs', sa.Column('interval_minutes', sa.Integer(), nullable=True))
    op.add_column('jobs', sa.Column('interval_type', sa.String(length=7), server_default='minutes', nullable=False))
    op.add_column('jobs', sa.Column('schedule_enabled', sa.Boolean(), server_default=sa.text('false'), nullable=False))
    op.add_column('jobs', sa.Column('adaptive_scheduling', sa.Boolean(), server_default=sa.text('true'), nullable=False))
    op.add_column('jobs', sa.Column('next_run_at', holdfast.db.models.base.Moment(), nullable=True))
    op.add_column('jobs', sa.Column('due_at', holdfast.db.models.base.Moment(), nullable=True))
    op.add_column('jobs', sa.Column('rhythm_at', holdfast.db.models.base.Moment(), nullable=True))
    op.add_column('jobs', sa.Column('placed_at', holdfast.db.models.base.Moment(), nullable=True))
    op.add_column('jobs', sa.Column('paused_at', holdfast.db.models.base.Moment(), nullable=True))
    op.add_column('jobs', sa.Column('paused_by', sa.String(length=6), nullable=True))
    op.add_column('jobs', sa.Column('cancelled_at', holdfast.db.models.base.Moment(), nullable=True))
    op.add_column('jobs', sa.Column('lock_token', sa.String(length=32), nullable=True))
    op.add_column('jobs', sa.Column('lock_epoch', sa.BigInteger(), server_default='0', nullable=False))
    op.add_column('jobs', sa.Column('lock_owner', sa.String(), nullable=True))
    op.add_column('jobs', sa.Column('lock_acquired_at', holdfast.db.models.base.Moment(), nullable=True))
    op.add_column('jobs', sa.Column('lock_heartbeat_at', holdfast.db.models.base.Moment(), nullable=True))
    op.add_column('jobs', sa.Column('max_retries', sa.Integer(), server_default='3', nullable=False))
    op.add_column('jobs', sa.Column('retry_backoff_seconds', sa.Integer(), server_default='60', nullable=False))
    op.add_column('jobs', sa.Column('current_retry_count', sa.Integer(), server_default='0', nullable=False))
    op.add_column('jobs', sa.Column('infra_retry_count', sa.Integer(), server_default='0', nullable=False))
    op.add_column('jobs', sa.Column('last_failure_at', holdfast.db.models.base.Moment(), nullable=True))
    op.add_column('jobs', sa.Column('error_message', sa.String(), nullable=True))
    op.add_column('jobs', sa.Column('last_execution_at', holdfast.db.models.base.Moment(), nullable=True))
    op.add_column('jobs', sa.Column('total_runs', sa.Integer(), server_default='0', nullable=False))
    op.add_column('jobs', sa.Column('successful_runs', sa.Integer(), server_default='0', nullable=False))
    op.add_column('jobs', sa.Column('failed_runs', sa.Integer(), server_default='0', nullable=False))
    op.add_column('jobs', sa.Column('total_duration_ms', sa.BigInteger(), server_default='0', nullable=False))
    op.add_column('jobs', sa.Column('start_hash', sa.String(length=128), nullable=True))
    op.add_column('jobs', sa.Column('start_changed_at', holdfast.db.models.base.Moment(), nullable=True))
    op.add_column('jobs', sa.Column('unchanged_count', sa.Integer(), server_default='0', nullable=False))
    op.add_column('jobs', sa.Column('details', holdfast.db.models.base.Json, server_default=sa.text("'{}'"), nullable=False))
    op.add_column('jobs', sa.Column('edition_id', sa.BigInteger(), nullable=True))
    op.add_column('jobs', sa.Column('shard_key', sa.String(length=64), nullable=True))
    op.add_column('jobs', sa.Column('shard_kind', sa.String(length=20), nullable=True))
    op.add_column('jobs', sa.Column('acceptance_state', sa.String(length=16), nullable=True))
    op.create_index('ix_jobs_due', 'jobs', ['next_run_at', 'id'], unique=False, sqlite_where=sa.text('next_run_at IS NOT NULL'), postgresql_where=sa.text('next_run_at IS NOT NULL'))
    op.create_index('ix_jobs_edition', 'jobs', ['edition_id'], unique=False)
    op.create_index('ix_jobs_locked', 'jobs', ['lock_heartbeat_at', 'id'], unique=False, sqlite_where=sa.text('lock_token IS NOT NULL'), postgresql_where=sa.text('lock_token IS NOT NULL'))
    op.create_index('ix_jobs_state', 'jobs', ['state', 'id'], unique=False)
    op.create_index('ix_jobs_updated', 'jobs', ['updated_at'], unique=False)
    op.create_index('uq_jobs_crawl', 'jobs', ['source_id'], unique=True, sqlite_where=sa.text("kind = 'crawl' AND state <> 'cancelled' AND deleted_at IS NULL"), postgresql_where=sa.text("kind = 'crawl' AND state <> 'cancelled' AND deleted_at IS NULL"))
    op.drop_index('uq_executions_open', 'executions')
    op.create_index('uq_executions_open', 'executions', ['job_id'], unique=True, sqlite_where=sa.text("state IN ('queued','running','stopped')"), postgresql_where=sa.text("state IN ('queued','running','stopped')"))
