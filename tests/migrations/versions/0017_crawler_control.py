"""An operator's word on a domain reaches a crawl that runs, and addresses that were added wait for theirs"""

from alembic import op
import sqlalchemy as sa
import holdfast.db.models.base

revision = '0017'
down_revision = '0016'
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name in ('paused_at', 'robots_after', 'changed_at'):
        op.add_column('domains', sa.Column(name, holdfast.db.models.base.Moment(), nullable=True))
    for name in ('changed_at', 'unreachable_since'):
        there = sa.text(f'{name} IS NOT NULL')
        op.create_index(f'ix_domains_{name}', 'domains', [name], unique=False, sqlite_where=there, postgresql_where=there)
    op.create_table(
        'added_urls',
        sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
        sa.Column('source_id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
        sa.Column('domain', sa.String(), nullable=False),
        sa.Column('url_hash', sa.BigInteger(), nullable=False),
        sa.Column('url', sa.String(), nullable=False),
        sa.Column('priority', sa.SmallInteger(), nullable=False),
        sa.Column('depth', sa.Integer(), nullable=False),
        sa.Column('execution_id', sa.BigInteger(), nullable=True),
        sa.Column('added_at', holdfast.db.models.base.Moment(), nullable=False),
        sa.Column('added_by', sa.String(), nullable=False),
        sa.ForeignKeyConstraint(['source_id'], ['sources.id'], name=op.f('fk_added_urls_source_id')),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_added_urls')),
        sa.UniqueConstraint('source_id', 'domain', 'url_hash', name=op.f('uq_added_urls_source_id_domain_url_hash')),
    )
