"""Attempts know how many redirects led to them and of which generation a requisite is; pages whose links count anew"""

from alembic import op
import sqlalchemy as sa

revision = '0007'
down_revision = '0006'
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name in ('hops', 'generation'):
        op.add_column('page_crawls', sa.Column(name, sa.SmallInteger(), server_default='0', nullable=False))
    # Until now the priority of an open attempt said both: ten for each redirect, and one for each generation above 4.
    op.execute("UPDATE page_crawls SET hops = priority / 10 WHERE outcome IS NULL AND priority >= 10")
    op.execute(
        "UPDATE page_crawls SET generation = priority % 10 - 4"
        " WHERE outcome IS NULL AND kind = 'requisite' AND priority % 10 > 4"
    )
    op.create_table(
        'rereads',
        sa.Column('execution_id', sa.BigInteger(), nullable=False),
        sa.Column('page_id', sa.BigInteger(), nullable=False),
        sa.Column('domain_id', sa.BigInteger(), nullable=False),
        sa.Column('depth', sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint('execution_id', 'page_id', name=op.f('pk_rereads')),
    )
