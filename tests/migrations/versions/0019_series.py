"""What happens is recorded by execution and minute, with totals; alerts that were raised, and who looks for them"""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from alembic import op
import sqlalchemy as sa
import holdfast.db.models.base

revision = '0019'
down_revision = '0018'
branch_labels = None
depends_on = None

OUTCOMES = ('success', 'failed', 'timeout', 'blocked_robots', 'blocked_4xx', 'blocked_5xx', 'excluded')
COUNTED = (
    'pages', 'requests', 'bytes', 'links', 'unchanged', 'retries', *OUTCOMES,
    'status_2xx', 'status_3xx', 'status_4xx', 'status_5xx', 'status_other',
    'latency_50ms', 'latency_100ms', 'latency_250ms', 'latency_500ms', 'latency_1s', 'latency_2500ms', 'latency_5s',
    'latency_10s', 'latency_30s', 'latency_longer', 'latency_ms', 'circuits_opened', 'circuits_closed',
    'imported_records', 'imported_bytes', 'queue',
)


def _counted() -> Iterator[sa.Column[Any]]:
    return (sa.Column(name, sa.BigInteger(), server_default='0', nullable=False) for name in COUNTED)


def upgrade() -> None:
    op.create_table(
        'series',
        sa.Column('execution_id', sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column('step_s', sa.Integer(), autoincrement=False, nullable=False),
        sa.Column('at', holdfast.db.models.base.Moment(), nullable=False),
        sa.Column('domains_waiting', sa.BigInteger(), server_default='0', nullable=False),
        *_counted(),
        sa.PrimaryKeyConstraint('execution_id', 'step_s', 'at', name=op.f('pk_series')),
    )
    op.create_index('ix_series_at', 'series', ['step_s', 'at'], unique=False)
    op.create_table(
        'series_totals',
        sa.Column('source_id', sa.BigInteger(), autoincrement=False, nullable=False),
        *_counted(),
        sa.PrimaryKeyConstraint('source_id', name=op.f('pk_series_totals')),
    )
    op.create_table(
        'cleanup_counts',
        sa.Column('name', sa.String(length=32), nullable=False),
        sa.Column('removed', sa.BigInteger(), server_default='0', nullable=False),
        sa.Column('last_at', holdfast.db.models.base.Moment(), nullable=False),
        sa.PrimaryKeyConstraint('name', name=op.f('pk_cleanup_counts')),
    )
    op.create_table(
        'alerts',
        sa.Column('id', holdfast.db.models.base.BigId, nullable=False),
        sa.Column('name', sa.String(length=32), nullable=False),
        sa.Column('severity', sa.String(length=8), nullable=False),
        sa.Column('since', holdfast.db.models.base.Moment(), nullable=False),
        sa.Column('last_seen_at', holdfast.db.models.base.Moment(), nullable=False),
        sa.Column('resolved_at', holdfast.db.models.base.Moment(), nullable=True),
        sa.Column('value', sa.Float(), nullable=False),
        sa.Column('message', sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_alerts')),
    )
    firing = sa.text('resolved_at IS NULL')
    op.create_index('uq_alerts_firing', 'alerts', ['name'], unique=True, sqlite_where=firing, postgresql_where=firing)
    op.create_index('ix_alerts_resolved', 'alerts', ['resolved_at'], unique=False)
    op.create_table(
        'alert_turns',
        sa.Column('id', sa.SmallInteger(), autoincrement=False, nullable=False),
        sa.Column('looked_at', holdfast.db.models.base.Moment(), nullable=False),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_alert_turns')),
    )
    broken = sa.text("circuit_state <> 'closed'")
    op.create_index(
        'ix_domains_circuit', 'domains', ['circuit_state'], unique=False, sqlite_where=broken, postgresql_where=broken
    )
    _fill_totals()


def _fill_totals() -> None:
    """Begin the totals with what was counted before: counters must not fall to zero with an upgrade."""
    totals: dict[int, Counter[str]] = {}
    bind = op.get_bind()
    for execution_id, counts in bind.execute(sa.text('SELECT execution_id, counts FROM execution_counts')):
        found = json.loads(counts) if isinstance(counts, str) else counts
        total = totals.setdefault(execution_id, Counter())
        for name in ('pages', 'requests', 'bytes', 'retries'):
            total[name] += int(found.get(name, 0))
        for name in OUTCOMES:
            total[name] += int(found.get('outcomes', {}).get(name, 0))
    # Runs of a tool, whose processes kept no totals of their own.
    reported = bind.execute(
        sa.text(
            'SELECT id, items_crawled, items_failed FROM executions e WHERE (items_crawled > 0 OR items_failed > 0)'
            ' AND NOT EXISTS (SELECT 1 FROM execution_counts c WHERE c.execution_id = coalesce(e.frontier_id, e.id))'
        )
    )
    for execution_id, crawled, failed in reported:
        totals[execution_id] = Counter(pages=crawled, success=crawled, failed=failed)
    waiting = bind.execute(sa.text('SELECT execution_id, sum(open) FROM queues WHERE open > 0 GROUP BY execution_id'))
    for execution_id, count in waiting:
        totals.setdefault(execution_id, Counter())['queue'] = int(count)
    table = sa.table('series', *(sa.column(name) for name in ('execution_id', 'step_s', 'at', *COUNTED)))
    rows = [
        {'execution_id': number, 'step_s': 0, 'at': 0, **{name: max(0, total[name]) for name in COUNTED}}
        for number, total in totals.items()
    ]
    for start in range(0, len(rows), 500):
        bind.execute(sa.insert(table), rows[start : start + 500])
