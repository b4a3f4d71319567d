"""Account rows are locked in one order, the user before its links and sessions, so that no two requests deadlock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress

import pytest
from sqlalchemy import text

from holdfast.auth import queries
from holdfast.auth.errors import LinkSpent
from holdfast.auth.roles import Role
from holdfast.auth.sessions import Browser, SignIn
from holdfast.auth.users import ProviderIdentity, make_link
from holdfast.config import AuthSettings
from holdfast.db.engine import Database
from tests import patience
from tests.clock import FakeClock
from tests.flow.faults.bed import until

pytestmark = pytest.mark.postgres
_ADA = ProviderIdentity(issuer="https://login.example", subject="7", name="ada", role=Role.MEMBER)
_BROWSER = Browser(address="192.0.2.1", agent="")


@pytest.fixture
def database(migrated_postgres: str) -> Iterator[Database]:
    """A database on PostgreSQL: SQLite has one writer."""
    with closing(Database(migrated_postgres)) as opened:
        yield opened


@pytest.mark.parametrize("way", ["sign-in link", "password link", "provider"])
def test_sign_in_locks_the_user_before_its_rows(database: Database, clock: FakeClock, way: str) -> None:
    sign_in = SignIn(database, clock, AuthSettings())
    begun = sign_in.with_identity(_ADA, _BROWSER)
    user_id = begun.principal.user_id
    assert user_id is not None
    with database.write() as session:
        user = queries.locked_user(session, user_id)
        assert user is not None
        secret = make_link(session, clock, user, signs_in=way == "sign-in link")
    again = Browser(address="192.0.2.1", agent="", old_secret=begun.secret)
    ways: dict[str, Callable[[], object]] = {
        "sign-in link": lambda: sign_in.with_sign_in_link(secret, again),
        "password link": lambda: sign_in.with_link(secret, name="", password="an otter in the harbour", browser=again),
        "provider": lambda: sign_in.with_identity(_ADA, again),
    }

    def act() -> None:
        with suppress(LinkSpent):
            ways[way]()

    with ThreadPoolExecutor(1) as threads:
        with database.write() as session:
            session.execute(text("SET LOCAL lock_timeout = '5s'"))
            queries.locked_user(session, user_id)
            acting = threads.submit(act)
            until(lambda: _waits(database), within_s=20, what="the sign-in waits for the user")
            # As a password change does: the sign-in must hold none of these rows.
            queries.delete_sessions(session, user_id)
            queries.delete_links(session, user_id)
        acting.result(patience.deadline(20))


def _waits(database: Database) -> bool:
    with database.read() as session:
        waits = text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND state = 'active'")
        return bool(session.scalar(waits))


def test_last_use_of_sessions_is_noted_beside_a_password_change(database: Database, clock: FakeClock) -> None:
    sign_in = SignIn(database, clock, AuthSettings())
    first, _ = (sign_in.with_identity(_ADA, _BROWSER) for _ in range(2))
    user_id = first.principal.user_id
    assert user_id is not None
    with database.read() as session:
        ids = sorted(one.id for one in queries.sessions_of(session, user_id, now=clock.now(), after=0, limit=9))
    assert len(ids) == 2
    clock.advance(60)
    seen = dict.fromkeys(ids, clock.now())

    def note() -> None:
        with database.write() as session:
            queries.note_seen(session, sessions=seen, tokens={})

    with ThreadPoolExecutor(1) as threads:
        with database.write() as session:
            # A password change ends sessions in the order in which PostgreSQL finds them: here, the later one first.
            session.execute(text("SET LOCAL lock_timeout = '5s'"))
            queries.delete_sessions_by_id(session, ids[1:])
            noting = threads.submit(note)
            until(lambda: noting.done() or _waits(database), within_s=20, what="it is noted, or waits for the row")
            queries.delete_sessions(session, user_id)
        noting.result(patience.deadline(20))
