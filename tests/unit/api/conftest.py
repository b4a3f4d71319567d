"""An empty archive in a folder of its own, and a client for whatever settings a test wants."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from holdfast.config import ApiSettings, ReplaySettings, Settings
from holdfast.db.engine import Database
from holdfast.db.models import IssueReport, UsageCount
from holdfast.wiring import prepare
from holdfast.wiring.archive import Archive
from tests.client import Client, asking
from tests.clock import FakeClock

MakeArchive = Callable[..., Archive]
MakeClient = Callable[..., Client]


@pytest.fixture
def make_archive(tmp_path: Path, clock: FakeClock) -> Iterator[MakeArchive]:
    """Open an empty archive with these API settings."""
    with ExitStack() as stack:

        def make(*, replay_origin: str | None = None, **api: Any) -> Archive:
            limited = [name for name in api if name.endswith("_per_minute")]
            rates = [f"{name.removesuffix('_per_minute')}={api.pop(name)}" for name in limited]
            settings = Settings(
                home=tmp_path, api=ApiSettings(**api, rates=rates), replay=ReplaySettings(origin=replay_origin)
            )
            prepare(settings)
            database = Database(settings.database)
            stack.callback(database.close)
            return Archive(settings=settings, database=database, clock=clock)

        yield make


@pytest.fixture
def make_client(make_archive: MakeArchive) -> Iterator[MakeClient]:
    """Serve an empty archive with these API settings, in this process."""
    with ExitStack() as stack:

        def make(*, peer: str = "127.0.0.1", **api: Any) -> Client:
            return stack.enter_context(asking(make_archive(**api), peer=peer))

        yield make


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Archive, Client]]:
    """An archive without captures and a client for it, made once."""
    settings = Settings(home=tmp_path_factory.mktemp("home"), api=ApiSettings(rate_limiting=False))
    prepare(settings)
    archive = Archive(settings=settings, database=Database(settings.database), clock=FakeClock())
    with asking(archive) as client:
        yield archive, client
    archive.database.close()


@pytest.fixture
def client(shared: tuple[Archive, Client]) -> Client:
    """A client for an archive without captures, shared by all tests that leave it as it is; may ask without end."""
    return shared[1]


@pytest.fixture
def empty_client(shared: tuple[Archive, Client]) -> Client:
    """The same, for tests that count what they leave: reports and usage of earlier ones are cleared away."""
    archive, client = shared
    client.app.state.usage.flush()  # type: ignore[attr-defined]
    with archive.database.write() as session:
        session.query(IssueReport).delete()
        session.query(UsageCount).delete()
    return client
