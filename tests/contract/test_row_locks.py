"""Two processes that change one row at the same moment, on PostgreSQL: the second finds what the first wrote."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from argon2 import PasswordHasher
from sqlalchemy import func, select

from holdfast.auth import passwords, sessions
from holdfast.auth.errors import PasswordRefused, SignInFailed
from holdfast.auth.passwords import hash_password, is_password
from holdfast.auth.roles import Role
from holdfast.auth.sessions import Browser, SignIn, begin_session
from holdfast.auth.users import add_user, change_user, find_user, replace_password, set_password
from holdfast.clock import SystemClock
from holdfast.config import AuthSettings
from holdfast.db.engine import Database
from holdfast.db.models import UserSession
from holdfast.sources import registry
from holdfast.sources.config import merge_fields
from holdfast.sources.queries import find_source
from tests.patience import deadline

pytestmark = pytest.mark.postgres

OLD, NEW = "an otter in the harbour", "a heron on the pier"
CLOCK = SystemClock()
BROWSER = Browser(address="192.0.2.1", agent="a test")


@pytest.fixture
def database(migrated_postgres: str) -> Iterator[Database]:
    with closing(Database(migrated_postgres)) as opened:
        yield opened


@pytest.fixture
def user_id(database: Database, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(passwords, "_HASHER", PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))
    with database.write() as session:
        return add_user(session, CLOCK, name="ada", role=Role.MEMBER, password=OLD).id


class Beside:
    """Something that another process does meanwhile; it is done before this one goes on, unless a lock holds it up."""

    def __init__(self, deed: Callable[[], object]) -> None:
        self.errors: list[Exception] = []
        self._thread = threading.Thread(target=self._do, args=(deed,))

    def _do(self, deed: Callable[[], object]) -> None:
        try:
            deed()
        except Exception as exc:
            self.errors.append(exc)

    def begin(self, until: threading.Event | None = None) -> None:
        """Begin, and wait until it is there, or give it time."""
        self._thread.start()
        if until is None:
            self.give_time()
        else:
            assert until.wait(deadline(30))

    def give_time(self) -> None:
        """Give it half a second: more than it needs, unless a lock holds it up."""
        self._thread.join(0.5)

    def end(self) -> None:
        """Wait for its end."""
        self._thread.join(deadline(30))
        assert not self._thread.is_alive()


def _password_changed(database: Database, user_id: int) -> None:
    with database.write() as session:
        set_password(session, CLOCK, find_user(session, user_id), NEW)


def _disabled(database: Database, user_id: int) -> None:
    with database.write() as session:
        change_user(session, CLOCK, user_id, disabled=True)


@pytest.mark.parametrize("change", [_password_changed, _disabled])
def test_a_session_with_the_old_password_does_not_outlive_its_change(
    database: Database, user_id: int, monkeypatch: pytest.MonkeyPatch, change: Callable[[Database, int], None]
) -> None:
    beside = Beside(lambda: change(database, user_id))

    def begun(*args: Any, **named: Any) -> Any:
        beside.begin()
        return begin_session(*args, **named)

    monkeypatch.setattr(sessions, "begin_session", begun)
    SignIn(database, CLOCK, AuthSettings()).with_password("ada", OLD, BROWSER)
    beside.end()

    assert beside.errors == []
    with database.read() as session:
        assert session.scalar(select(func.count()).select_from(UserSession)) == 0


def test_an_old_password_is_never_written_over_a_new_one(
    database: Database, user_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = Beside(lambda: _password_changed(database, user_id))

    def hashed(password: str, **named: Any) -> str:
        if password == OLD:
            beside.begin()
        return hash_password(password, **named)

    # As after a change of the parameters of hashes: the password that was given is hashed anew.
    monkeypatch.setattr(sessions, "is_outdated", lambda _stored: True)
    monkeypatch.setattr(sessions, "hash_password", hashed)
    SignIn(database, CLOCK, AuthSettings()).with_password("ada", OLD, BROWSER)
    beside.end()

    with database.read() as session:
        assert is_password(find_user(session, user_id).password_hash, NEW)
    with pytest.raises(SignInFailed):
        SignIn(database, CLOCK, AuthSettings()).with_password("ada", OLD, BROWSER)


def test_of_two_that_change_a_password_at_once_one_is_refused(
    database: Database, user_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change(new: str) -> None:
        signing = SignIn(database, CLOCK, AuthSettings())
        signing.change_password(user_id, current=OLD, new=new, browser=BROWSER, keep=None)

    beside, is_ready, may_go = Beside(lambda: change(NEW)), threading.Event(), threading.Event()

    def hashed(password: str, **named: Any) -> str:
        if password == NEW:
            is_ready.set()
            assert may_go.wait(deadline(30))
        else:
            beside.begin(is_ready)
        return hash_password(password, **named)

    def replaced(*args: Any, **named: Any) -> int:
        if threading.current_thread() is threading.main_thread():
            may_go.set()
            beside.give_time()
        return replace_password(*args, **named)

    # Both have shown the old password before either writes the new one.
    monkeypatch.setattr(sessions, "hash_password", hashed)
    monkeypatch.setattr(sessions, "replace_password", replaced)
    change("a gull over the quay")
    beside.end()

    assert [type(one) for one in beside.errors] == [PasswordRefused]
    with database.read() as session:
        assert is_password(find_user(session, user_id).password_hash, "a gull over the quay")


def _edited(database: Database, **config: Any) -> None:
    with database.write() as session:
        registry.edit(session, CLOCK, "ex", {"config": config})


def test_of_two_edits_of_one_source_none_is_lost(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    with database.write() as session:
        entry = {"code": "ex", "config": {"seeds": ["https://ex.example/"]}}
        registry.create(session, CLOCK, registry.read_spec(entry))
    beside = Beside(lambda: _edited(database, delay_s=10))

    def merged(*args: Any) -> Any:
        if threading.current_thread() is threading.main_thread():
            beside.begin()
        return merge_fields(*args)

    monkeypatch.setattr(registry, "merge_fields", merged)
    _edited(database, max_depth=7)
    beside.end()

    assert beside.errors == []
    with database.read() as session:
        config = registry.config_of(find_source(session, "ex"))
    assert (config.delay_s, config.max_depth) == (10.0, 7)
