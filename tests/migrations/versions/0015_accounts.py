"""Users, sessions, tokens, one-time links, and failed sign-ins"""

from alembic import op
import sqlalchemy as sa
import holdfast.db.models.base

revision = '0015'
down_revision = '0014'
branch_labels = None
depends_on = None

Moment, BigId = holdfast.db.models.base.Moment, holdfast.db.models.base.BigId


def upgrade() -> None:
    op.create_table(
        'users',
        sa.Column('id', BigId, nullable=False),
        sa.Column('name', sa.String(length=64), nullable=False),
        sa.Column('role', sa.String(length=16), nullable=False),
        sa.Column('password_hash', sa.String(length=255), nullable=True),
        sa.Column('issuer', sa.String(length=255), nullable=True),
        sa.Column('subject', sa.String(length=255), nullable=True),
        sa.Column('created_at', Moment(), nullable=False),
        sa.Column('signed_in_at', Moment(), nullable=True),
        sa.Column('disabled_at', Moment(), nullable=True),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_users')),
        sa.UniqueConstraint('issuer', 'subject', name=op.f('uq_users_issuer_subject')),
        sa.UniqueConstraint('name', name=op.f('uq_users_name')),
    )
    op.create_table(
        'user_sessions',
        sa.Column('id', BigId, nullable=False),
        sa.Column('user_id', BigId, nullable=False),
        sa.Column('secret_hash', sa.LargeBinary(), nullable=False),
        sa.Column('created_at', Moment(), nullable=False),
        sa.Column('expires_at', Moment(), nullable=False),
        sa.Column('seen_at', Moment(), nullable=False),
        sa.Column('address', sa.String(length=64), nullable=False),
        sa.Column('agent', sa.String(length=200), nullable=False),
        sa.ForeignKeyConstraint(['user_id'], ['users.id'], name=op.f('fk_user_sessions_user_id'), ondelete='CASCADE'),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_user_sessions')),
        sa.UniqueConstraint('secret_hash', name=op.f('uq_user_sessions_secret_hash')),
    )
    op.create_index('ix_user_sessions_expires_at', 'user_sessions', ['expires_at'], unique=False)
    op.create_index('ix_user_sessions_user', 'user_sessions', ['user_id', 'id'], unique=False)
    op.create_table(
        'api_tokens',
        sa.Column('id', BigId, nullable=False),
        sa.Column('user_id', BigId, nullable=False),
        sa.Column('name', sa.String(length=100), nullable=False),
        sa.Column('secret_hash', sa.LargeBinary(), nullable=False),
        sa.Column('hint', sa.String(length=16), nullable=False),
        sa.Column('scopes', holdfast.db.models.base.Json, nullable=False),
        sa.Column('created_at', Moment(), nullable=False),
        sa.Column('expires_at', Moment(), nullable=False),
        sa.Column('used_at', Moment(), nullable=True),
        sa.ForeignKeyConstraint(['user_id'], ['users.id'], name=op.f('fk_api_tokens_user_id'), ondelete='CASCADE'),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_api_tokens')),
        sa.UniqueConstraint('secret_hash', name=op.f('uq_api_tokens_secret_hash')),
    )
    op.create_index('ix_api_tokens_user', 'api_tokens', ['user_id', 'id'], unique=False)
    op.create_table(
        'account_links',
        sa.Column('id', BigId, nullable=False),
        sa.Column('user_id', BigId, nullable=True),
        sa.Column('secret_hash', sa.LargeBinary(), nullable=False),
        sa.Column('created_at', Moment(), nullable=False),
        sa.Column('expires_at', Moment(), nullable=False),
        sa.ForeignKeyConstraint(['user_id'], ['users.id'], name=op.f('fk_account_links_user_id'), ondelete='CASCADE'),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_account_links')),
        sa.UniqueConstraint('secret_hash', name=op.f('uq_account_links_secret_hash')),
        sa.UniqueConstraint('user_id', name=op.f('uq_account_links_user_id')),
    )
    op.create_table(
        'sign_in_failures',
        sa.Column('key', sa.String(length=80), nullable=False),
        sa.Column('failures', sa.Integer(), nullable=False),
        sa.Column('since', Moment(), nullable=False),
        sa.PrimaryKeyConstraint('key', name=op.f('pk_sign_in_failures')),
    )
    op.create_index('ix_sign_in_failures_since', 'sign_in_failures', ['since'], unique=False)
