"""Captures that do not show their page: the word on the capture, why, what persons ruled, and what waits to be judged"""

from alembic import op
import sqlalchemy as sa
import holdfast.db.models.base

revision = '0011'
down_revision = '0010'
branch_labels = None
depends_on = None

KEY = sa.Text().with_variant(sa.Text(collation='C'), 'postgresql')
ID = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')
MOMENT = holdfast.db.models.base.Moment()
TOLD = sa.text("type <> 'unchanged' AND type <> 'noise'")
NOISE = sa.text("type = 'noise'")
CHANGES = {'execution': ['to_execution_id', 'to_captured_at', 'id'], 'source': ['source_id', 'to_captured_at', 'id'], 'moment': ['to_captured_at', 'id']}
SNAPSHOTS = {'execution': ['execution_id', 'id'], 'source': ['source_id', 'id'], 'page': ['url_hash', 'id']}
IS_NOISE = sa.text('noise IS NOT NULL')
UNMARKED = sa.text('NOT marked AND kind IS NOT NULL')
ERRORS = sa.text('kind IS NULL')
# Ids of snapshots begin with the number of their file.
ORDINALS = 1 << 22


def upgrade() -> None:
    op.add_column('snapshots', sa.Column('noise', sa.String(16), nullable=True))
    for name, columns in SNAPSHOTS.items():
        op.create_index(f'ix_snapshots_noise_{name}', 'snapshots', columns, unique=False, sqlite_where=IS_NOISE, postgresql_where=IS_NOISE)
    _tables()
    _changes(TOLD)
    for name, columns in CHANGES.items():
        op.create_index(f'ix_changes_{name}_noise', 'changes', columns, unique=False, sqlite_where=NOISE, postgresql_where=NOISE)
    # What is here already waits to be judged like what is still to come: a range for each file.
    op.execute(
        f"INSERT INTO noise_queue(first_id, last_id) SELECT id * {ORDINALS}, id * {ORDINALS} + {ORDINALS - 1}"
        " FROM warc_files WHERE index_state = 'indexed' ORDER BY id"
    )


def _tables() -> None:
    op.create_table(
        'noise_queue',
        sa.Column('id', ID, nullable=False),
        sa.Column('first_id', sa.BigInteger(), nullable=False),
        sa.Column('last_id', sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_noise_queue')),
    )
    op.create_table(
        'noise_suspects',
        sa.Column('snapshot_id', sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column('site', sa.BigInteger(), nullable=False),
        sa.Column('likeness', sa.BigInteger(), nullable=False),
        sa.Column('leaf', sa.BigInteger(), nullable=False),
        sa.Column('url_hash', sa.BigInteger(), nullable=False),
        sa.Column('kind', sa.String(16), nullable=True),
        sa.Column('said', sa.Text(), nullable=False),
        sa.Column('proof', sa.Text(), nullable=True),
        sa.Column('least', sa.SmallInteger(), nullable=False),
        sa.Column('chars', sa.Integer(), nullable=False),
        sa.Column('marked', sa.Boolean(), server_default=sa.text('false'), nullable=False),
        sa.PrimaryKeyConstraint('snapshot_id', name=op.f('pk_noise_suspects')),
    )
    op.create_index('ix_noise_suspects_alike', 'noise_suspects', ['site', 'likeness', 'kind', 'leaf'], unique=False)
    op.create_index('ix_noise_suspects_unmarked', 'noise_suspects', ['site', 'likeness', 'snapshot_id'], unique=False, sqlite_where=UNMARKED, postgresql_where=UNMARKED)
    op.create_index('ix_noise_suspects_url_hash', 'noise_suspects', ['url_hash'], unique=False)
    op.create_index('ix_noise_suspects_errors', 'noise_suspects', ['site'], unique=False, sqlite_where=ERRORS, postgresql_where=ERRORS)
    op.create_table(
        'noise_verdicts',
        sa.Column('snapshot_id', sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column('kind', sa.String(16), nullable=False),
        sa.Column('evidence', sa.Text(), nullable=False),
        sa.Column('decided_by', sa.String(), nullable=True),
        sa.Column('decided_at', MOMENT, nullable=False),
        sa.PrimaryKeyConstraint('snapshot_id', name=op.f('pk_noise_verdicts')),
    )
    op.create_table(
        'noise_rulings',
        sa.Column('id', ID, nullable=False),
        sa.Column('snapshot_id', sa.BigInteger(), nullable=True),
        sa.Column('url_key', KEY, nullable=True),
        sa.Column('subject', sa.Text(), nullable=False),
        sa.Column('kind', sa.String(16), nullable=True),
        sa.Column('reason', sa.Text(), nullable=False),
        sa.Column('actor', sa.String(), nullable=False),
        sa.Column('created_at', MOMENT, nullable=False),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_noise_rulings')),
    )
    op.create_index('ix_noise_rulings_snapshot', 'noise_rulings', ['snapshot_id', 'id'], unique=False)
    op.create_index('ix_noise_rulings_key', 'noise_rulings', ['url_key', 'id'], unique=False)


def _changes(told: sa.TextClause) -> None:
    """Lists of changes leave noise out: their indexes do, too."""
    for name, columns in CHANGES.items():
        op.drop_index(f'ix_changes_{name}_told', 'changes')
        op.create_index(f'ix_changes_{name}_told', 'changes', columns, unique=False, sqlite_where=told, postgresql_where=told)
