"""Withdrawals by the key of a page: they hold for every spelling of an address and for captures still to come"""

from typing import Any

from alembic import op
import sqlalchemy as sa

from holdfast.errors import UrlRefused
from holdfast.urls import page_key, parse_seed

revision = '0006'
down_revision = '0005'
branch_labels = None
depends_on = None

KEY = sa.Text().with_variant(sa.Text(collation='C'), 'postgresql')
STANDING = sa.text('lifted_at IS NULL')
APART = sa.text('page_key IS NOT NULL')
BATCH = 5_000

withdrawals = sa.table('withdrawals', sa.column('id', sa.BigInteger), sa.column('url_hash', sa.BigInteger), sa.column('url_key', sa.Text), sa.column('subject', sa.Text), sa.column('created_at', sa.BigInteger), sa.column('lifted_at', sa.BigInteger))
snapshots = sa.table('snapshots', sa.column('id', sa.BigInteger), sa.column('url', sa.Text), sa.column('url_key', sa.Text), sa.column('url_hash', sa.BigInteger), sa.column('page_key', sa.Text), sa.column('method', sa.Text))
signal_pages = sa.table('signal_pages', sa.column('page_id', sa.BigInteger), sa.column('page_key', sa.Text))
pages = sa.table('pages', sa.column('id', sa.BigInteger), sa.column('url', sa.Text))


def upgrade() -> None:
    op.add_column('snapshots', sa.Column('page_key', KEY, nullable=True))
    op.add_column('signal_pages', sa.Column('page_key', KEY, server_default='', nullable=False))
    op.add_column('withdrawals', sa.Column('url_key', KEY, nullable=True))
    connection = op.get_bind()
    _key_snapshots(connection)
    _key_signal_pages(connection)
    _key_withdrawals(connection)
    op.drop_index('ix_withdrawals_url', 'withdrawals')
    op.drop_column('withdrawals', 'url_hash')
    op.create_index('ix_withdrawals_key', 'withdrawals', ['url_key'], unique=False, sqlite_where=STANDING, postgresql_where=STANDING)
    op.create_index('ix_snapshots_page_key', 'snapshots', ['page_key'], unique=False, sqlite_where=APART, postgresql_where=APART)


def _key_snapshots(connection: sa.Connection) -> None:
    """Only an address with a query, or one that data was sent to, can have a page key apart from its own."""
    wanted = sa.select(snapshots.c.id, snapshots.c.url, snapshots.c.url_key).where(sa.or_(snapshots.c.url.like('%?%'), snapshots.c.method.is_not(None)))
    put = sa.update(snapshots).where(snapshots.c.id == sa.bindparam('number')).values(page_key=sa.bindparam('key'))
    after = -1
    while rows := connection.execute(wanted.where(snapshots.c.id > after).order_by(snapshots.c.id).limit(BATCH)).all():
        keyed = [(row[0], page_key(row[1]), row[2]) for row in rows]
        apart = [{'number': number, 'key': key} for number, key, own in keyed if key != own]
        if apart:
            connection.execute(put, apart)
        after = rows[-1][0]


def _key_signal_pages(connection: sa.Connection) -> None:
    wanted = sa.select(signal_pages.c.page_id, pages.c.url).join(pages, pages.c.id == signal_pages.c.page_id)
    put = sa.update(signal_pages).where(signal_pages.c.page_id == sa.bindparam('number')).values(page_key=sa.bindparam('key'))
    after = -1
    while rows := connection.execute(wanted.where(signal_pages.c.page_id > after).order_by(signal_pages.c.page_id).limit(BATCH)).all():
        connection.execute(put, [{'number': row[0], 'key': page_key(row[1])} for row in rows])
        after = rows[-1][0]


def _key_withdrawals(connection: sa.Connection) -> None:
    """A row stood for each spelling that was known; one for each request is left, under the key of them all."""
    table = withdrawals.c
    rows = connection.execute(sa.select(table.id, table.url_hash, table.subject, table.created_at, table.lifted_at).where(table.url_hash.is_not(None)).order_by(table.id)).all()
    seen: set[tuple[Any, ...]] = set()
    for row in rows:
        key = _key_of(connection, row.url_hash, row.subject)
        request = (key, row.subject, row.created_at, row.lifted_at)
        if request in seen:
            connection.execute(sa.delete(withdrawals).where(table.id == row.id))
        else:
            connection.execute(sa.update(withdrawals).where(table.id == row.id).values(url_key=key))
        seen.add(request)


def _key_of(connection: sa.Connection, url_hash: int, subject: str) -> str:
    url = connection.execute(sa.select(snapshots.c.url).where(snapshots.c.url_hash == url_hash).limit(1)).scalar()
    return page_key(_address(subject) if url is None else url)


def _address(subject: str) -> str:
    try:
        return parse_seed(subject).fetch
    except UrlRefused:
        return subject
