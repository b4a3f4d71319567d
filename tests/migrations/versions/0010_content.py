"""Documents know their terms, author, dates, keywords and kind of page; the words of links are kept for their targets"""

from alembic import op
import sqlalchemy as sa

revision = '0010'
down_revision = '0009'
branch_labels = None
depends_on = None


def upgrade() -> None:
    for column in (
        sa.Column('terms', sa.Text(), nullable=True),
        sa.Column('author', sa.String(), nullable=True),
        sa.Column('published_at', sa.BigInteger(), nullable=True),
        sa.Column('modified_at', sa.BigInteger(), nullable=True),
        sa.Column('keywords', sa.Text(), nullable=True),
        sa.Column('word_count', sa.Integer(), server_default='0', nullable=False),
        sa.Column('page_type', sa.String(length=16), server_default=sa.text("'other'"), nullable=False),
    ):
        op.add_column('documents', column)
    op.create_table(
        'link_texts',
        sa.Column('to_hash', sa.BigInteger(), nullable=False),
        sa.Column('host_hash', sa.BigInteger(), nullable=False),
        sa.Column('text', sa.String(length=80), nullable=False),
        sa.Column('snapshot_id', sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint('to_hash', 'host_hash', 'text', name=op.f('pk_link_texts')),
        # The key is nearly all of a row: one tree instead of two.
        sqlite_with_rowid=False,
    )
