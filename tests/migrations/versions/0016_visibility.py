"""A source is public or for members; what replay of members' pages is signed with"""

from alembic import op
import sqlalchemy as sa

revision = '0016'
down_revision = '0015'
branch_labels = None
depends_on = None

MEMBERS = sa.text("visibility = 'members'")


def upgrade() -> None:
    op.add_column(
        'sources', sa.Column('visibility', sa.String(length=8), server_default=sa.text("'public'"), nullable=False)
    )
    op.create_index(
        'ix_sources_members',
        'sources',
        ['visibility', 'id'],
        unique=False,
        sqlite_where=MEMBERS,
        postgresql_where=MEMBERS,
    )
    op.create_table(
        'replay_keys',
        sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
        sa.Column('secret', sa.LargeBinary(length=32), nullable=False),
        sa.Column('created_at', sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_replay_keys')),
    )
