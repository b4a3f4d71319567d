"""Hosts that captures link to and of which nothing is kept, counted file by file"""

from alembic import op
import sqlalchemy as sa
import holdfast.db.models.base

revision = '0012'
down_revision = '0011'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        'linked_hosts',
        sa.Column('key', holdfast.db.models.base.KeyText, nullable=False),
        sa.Column('links', sa.BigInteger(), nullable=False),
        sa.Column('sites', sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint('key', name=op.f('pk_linked_hosts')),
    )
    op.create_index('ix_linked_hosts_sites', 'linked_hosts', [sa.text('sites DESC'), sa.text('links DESC'), 'key'], unique=False)
    op.create_table(
        'linked_host_votes',
        sa.Column('key', holdfast.db.models.base.KeyText, nullable=False),
        sa.Column('site', holdfast.db.models.base.KeyText, nullable=False),
        sa.Column('links', sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint('key', 'site', name=op.f('pk_linked_host_votes')),
    )
    op.create_index('ix_linked_host_votes_site', 'linked_host_votes', ['site'], unique=False)
    op.create_table(
        'linked_host_files',
        sa.Column('warc_file_id', sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column('read_at', holdfast.db.models.base.Moment(), nullable=False),
        sa.Column('hidden', sa.BigInteger(), server_default='0', nullable=False),
        sa.Column('counted', sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint('warc_file_id', name=op.f('pk_linked_host_files')),
    )
