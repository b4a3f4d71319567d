"""Operations that take long, and files that arrive in pieces"""

from alembic import op
import sqlalchemy as sa
import holdfast.db.models.base

revision = '0018'
down_revision = '0017'
branch_labels = None
depends_on = None

_JSON = holdfast.db.models.base.Json
_MOMENT = holdfast.db.models.base.Moment


def upgrade() -> None:
    op.create_table(
        'operations',
        sa.Column('id', holdfast.db.models.base.BigId, nullable=False),
        sa.Column('kind', sa.String(length=32), nullable=False),
        sa.Column('flight', sa.Text(), nullable=False),
        sa.Column('subject', sa.Text(), nullable=False),
        sa.Column('parameters', _JSON, nullable=False),
        sa.Column('state', sa.String(length=16), nullable=False),
        sa.Column('phase', sa.String(length=64), nullable=True),
        sa.Column('done_units', sa.BigInteger(), server_default='0', nullable=False),
        sa.Column('total_units', sa.BigInteger(), nullable=True),
        sa.Column('result', _JSON, nullable=False),
        sa.Column('error', sa.Text(), nullable=True),
        sa.Column('error_code', sa.String(length=64), nullable=True),
        sa.Column('actor', sa.Text(), nullable=False),
        sa.Column('stop_asked', sa.Boolean(), server_default=sa.text('false'), nullable=False),
        sa.Column('attempt', sa.Integer(), server_default='0', nullable=False),
        sa.Column('run_file', sa.Text(), nullable=True),
        sa.Column('lease_until', _MOMENT(), nullable=True),
        sa.Column('created_at', _MOMENT(), nullable=False),
        sa.Column('started_at', _MOMENT(), nullable=True),
        sa.Column('updated_at', _MOMENT(), nullable=False),
        sa.Column('finished_at', _MOMENT(), nullable=True),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_operations')),
    )
    op.create_index(
        'uq_operations_open_flight',
        'operations',
        ['flight'],
        unique=True,
        sqlite_where=sa.text('finished_at IS NULL'),
        postgresql_where=sa.text('finished_at IS NULL'),
    )
    op.create_index('ix_operations_kind', 'operations', ['kind', 'id'], unique=False)
    op.create_table(
        'uploads',
        sa.Column('id', holdfast.db.models.base.BigId, nullable=False),
        sa.Column('source_code', sa.String(length=64), nullable=False),
        sa.Column('source_name', sa.Text(), nullable=True),
        sa.Column('name', sa.Text(), nullable=False),
        sa.Column('strict', sa.Boolean(), server_default=sa.text('false'), nullable=False),
        sa.Column('sha256', sa.String(length=64), nullable=True),
        sa.Column('metadata_text', sa.Text(), nullable=False),
        sa.Column('size', sa.BigInteger(), nullable=False),
        sa.Column('received', sa.BigInteger(), server_default='0', nullable=False),
        sa.Column('state', sa.String(length=16), nullable=False),
        sa.Column('operation_id', sa.BigInteger(), nullable=True),
        sa.Column('actor', sa.Text(), nullable=False),
        sa.Column('created_at', _MOMENT(), nullable=False),
        sa.Column('updated_at', _MOMENT(), nullable=False),
        sa.Column('expires_at', _MOMENT(), nullable=True),
        sa.ForeignKeyConstraint(['operation_id'], ['operations.id'], name=op.f('fk_uploads_operation_id')),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_uploads')),
    )
    op.create_index(
        'ix_uploads_expiry',
        'uploads',
        ['expires_at'],
        unique=False,
        sqlite_where=sa.text('expires_at IS NOT NULL'),
        postgresql_where=sa.text('expires_at IS NOT NULL'),
    )
    op.create_index(
        'uq_uploads_open_digest',
        'uploads',
        ['sha256'],
        unique=True,
        sqlite_where=sa.text('expires_at IS NOT NULL AND sha256 IS NOT NULL'),
        postgresql_where=sa.text('expires_at IS NOT NULL AND sha256 IS NOT NULL'),
    )
