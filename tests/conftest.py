"""What every test may ask for: a clock to move, the misbehaving web, a database of each kind."""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Generator, Iterator
from pathlib import Path

import hypothesis
import pytest
from sqlalchemy import Connection, Engine, event
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from tests import needs
from tests.clock import FakeClock
from tests.postgres import Postgres, find_binaries
from tests.scheduling import WEB, FilesOrTests
from tests.site import Site
from tests.slow import SLOW
from tests.statements import SharedStatements

__all__ = ["FakeClock"]

# Commands run inside the tests' own process: one that stepped back would make every test after it slow.
os.environ["HOLDFAST_INDEX_NICE"] = "0"
# Under another name for the tests and their workers: no setting of the program, which says so of any that it finds.
if (required := os.environ.pop("HOLDFAST_REQUIRE_SERVICES", None)) is not None:
    os.environ[needs.REQUIRED] = required

# Looking for garbage after every 700 objects was a fifteenth of the CPU of tests that run in this process.
gc.set_threshold(20_000, 20, 10)

# An example that takes long on a busy machine is no fault of the code: work is counted, not timed.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")


_statements = SharedStatements()


@event.listens_for(Engine, "engine_connect")
def _share_statements(connection: Connection) -> None:
    """Translate each statement to SQL once in a run: every test opens a database anew, which would do it again."""
    connection.execution_options(compiled_cache=_statements)


_TESTS = Path(__file__).parent
_SERVED = {"postgres", "postgres_url", "bare_postgres_url"}
_LONG = (
    "test_real_site.py",
    "test_feeds_odd.py",
    "test_worker_kills.py",
    "test_index_faults.py",
    "test_politeness.py",
    "test_guides.py",
)
"""Files whose tests take longest: begun last, they would keep one core waiting for the other."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling | None:
    """Hand out work by file, and by test where the tests of a flow share nothing: no core waits for a long file."""
    return FilesOrTests(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage among the modules and tests that are collected, then or later: all of it stays."""
    gc.disable()
    try:
        found = yield
    finally:
        gc.freeze()
        gc.enable()
    return found


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what needs PostgreSQL, so that `make quick` can leave it out; what takes longest comes first."""
    without = [item for item in items if not needs.has_samples(item)]
    if without:
        config.hook.pytest_deselected(items=without)
        items[:] = [item for item in items if item not in without]
    for item in items:
        if isinstance(item, pytest.Function) and _SERVED & set(item.fixturenames):
            item.add_marker(pytest.mark.postgres)
        if getattr(item, "originalname", None) in SLOW.get(item.path.relative_to(_TESTS).as_posix(), ()):
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: item.path.name not in _LONG and not item.nodeid.startswith(WEB))


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a long value by its argument: readable, and the same in every worker even if the bytes hold the time."""
    return argname if isinstance(val, bytes | str) and len(val) > 24 else None


@pytest.fixture(autouse=True)
def _default_log_level() -> None:
    """Reset the log level: a command that ran in this process may have silenced the warnings of later tests."""
    logging.getLogger("holdfast").setLevel(logging.WARNING)


@pytest.fixture
def clock() -> FakeClock:
    """A clock that stands still until the test moves it."""
    return FakeClock()


@pytest.fixture
def site() -> Iterator[Site]:
    """The misbehaving web on eight hosts, in a thread; a page that breaks by its own fault fails the test."""
    with Site.start(hosts=8) as running:
        yield running
        faults = running.faults()
    assert not faults, f"pages broke by their own fault: {faults}"


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A throw-away cluster; each xdist worker has its own, so that a test may kill it."""
    binaries = find_binaries()
    if binaries is None:
        needs.lacking("PostgreSQL 15", "`tools/services` installs it (package postgresql)")
    assert binaries is not None
    cluster = Postgres(binaries)
    yield cluster
    cluster.stop()


@pytest.fixture
def postgres_url(postgres: Postgres) -> str:
    """A PostgreSQL database for this test alone, with the schema and no rows."""
    return postgres.fresh()


@pytest.fixture
def bare_postgres_url(postgres: Postgres) -> str:
    """A PostgreSQL database for this test alone with nothing in it."""
    return postgres.bare()


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The address of a SQLite file that does not exist yet."""
    return f"sqlite:///{tmp_path / 'holdfast.db'}"


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database_url(request: pytest.FixtureRequest) -> str:
    """A database of each kind, without rows and, on SQLite, not there yet: a test that asks for it runs on both."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def bare_url(request: pytest.FixtureRequest) -> str:
    """The same with nothing in it at all, for what makes the schema."""
    url: str = request.getfixturevalue("sqlite_url" if request.param == "sqlite" else "bare_postgres_url")
    return url


# Redis comes here in the same shape: a session-wide server on a kernel-chosen port, one logical database a test.
