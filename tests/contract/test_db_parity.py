"""Whether a database is what this code expects, on both kinds."""

from __future__ import annotations

import itertools
import os
import signal
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, delete, event, select, text, update

from holdfast.db.engine import Database
from holdfast.db.migrate import compare, downgrade, migrations, upgrade
from holdfast.db.models import SearchOutbox, Snapshot
from holdfast.db.schema import SCHEMA, schema_of
from holdfast.errors import Invalid, Unavailable
from tests.archive import BEGIN, Shot, build_archive


def test_a_migrated_database_is_whole(migrated_url: str) -> None:
    found = compare(migrated_url)

    assert (found.schema, found.missing, found.is_whole) == (SCHEMA, (), True)
    assert found.dialect in migrated_url
    assert found.version[0].isdigit()


def test_what_is_missing_is_named(bare_url: str) -> None:
    upgrade(bare_url)
    with closing(Database(bare_url)) as database, database.engine.begin() as connection:
        connection.execute(text("DROP TABLE recoveries"))
        connection.execute(text("ALTER TABLE holds RENAME COLUMN owner TO holder"))

    found = compare(bare_url)

    assert (sorted(found.missing), found.is_whole) == (["holds.owner", "recoveries"], False)


def test_a_database_that_is_not_there_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="holdfast migrate --apply"):
        compare(f"sqlite:///{tmp_path / 'none.db'}")
    assert not (tmp_path / "none.db").exists()
    with pytest.raises(Unavailable, match="cannot reach PostgreSQL"):
        compare("postgresql://nobody@127.0.0.1:1/none?connect_timeout=1")
    with pytest.raises(Invalid, match="mysql"):
        compare("mysql://nobody@127.0.0.1/none")


def test_migrations_are_undone_and_run_again_and_rows_stay(bare_url: str) -> None:
    upgrade(bare_url)
    with closing(Database(bare_url)) as database, database.engine.begin() as connection:
        for insert in (
            "sources(code, name, enabled, config, created_at, updated_at) VALUES ('a', 'A', true, '{}', 1, 1)",
            "jobs(source_id, kind, fingerprint, config, created_at) VALUES (1, 'x', 'y', '{}', 1)",
        ):
            connection.execute(text(f"INSERT INTO {insert}"))
    first = migrations()[0].revision

    downgrade(bare_url, first)
    assert schema_of(bare_url) == first
    upgrade(bare_url)

    assert compare(bare_url).is_whole
    with closing(Database(bare_url)) as database, database.engine.connect() as connection:
        assert connection.execute(text("SELECT source_id, kind FROM jobs")).all() == [(1, "x")]


def test_migration_separates_duplicates_by_source(migrated_url: str, tmp_path: Path) -> None:
    shots = [
        Shot(url="https://example.org/", source=source, moment=BEGIN + timedelta(hours=number), execution=number)
        for number, source in enumerate(("town", "county", "county", "town"), 1)
    ]
    with closing(build_archive(tmp_path / "home", shots, database_url=migrated_url).database) as database:
        downgrade(migrated_url, "0022")
        with database.write() as session:
            ids = list(session.scalars(select(Snapshot.id).order_by(Snapshot.captured_at)))
            # As the schema before left them: all of one day and body name the first, whatever its source is.
            session.execute(update(Snapshot).where(Snapshot.id != ids[0]).values(canonical_id=ids[0]))
            session.execute(update(Snapshot).values(compared=True))
            session.execute(delete(SearchOutbox))
        upgrade(migrated_url)
        with database.read() as session:
            found = session.execute(select(Snapshot.canonical_id, Snapshot.compared).order_by(Snapshot.captured_at))
            assert [tuple(row) for row in found] == [(None, True), (None, False), (ids[1], False), (ids[0], True)]
            told = session.execute(select(SearchOutbox.first_id, SearchOutbox.last_id, SearchOutbox.refs)).all()
    assert {number for first, last, _ in told for number in range(first, last + 1)} >= set(ids[1:3])
    assert all(refs == {} for *_, refs in told)


def test_a_migration_that_is_killed_has_changed_nothing_and_runs_again(bare_url: str) -> None:
    for at in (3, 40, 120):
        child = os.fork()
        if child == 0:
            _die_at(at)
            upgrade(bare_url)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        assert schema_of(bare_url) is None, "all of it is one transaction"

    upgrade(bare_url)
    assert compare(bare_url).is_whole


def _die_at(number: int) -> None:
    """Let this process be killed before its statement of this number."""
    seen = itertools.count(1)

    def look(*_: Any) -> None:
        if next(seen) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    event.listen(Engine, "before_cursor_execute", look)


def test_migrations_are_listed_in_their_order() -> None:
    found = migrations()

    assert [one.revision for one in found] == sorted(one.revision for one in found)
    assert found[-1].revision == SCHEMA
    assert all(one.title for one in found)


def test_what_an_older_extraction_did_not_read_is_not_known(bare_url: str) -> None:
    upgrade(bare_url)
    downgrade(bare_url, "0012")
    with closing(Database(bare_url)) as database, database.engine.begin() as connection:
        for number, (version, words) in enumerate([(2, 0), (3, 0), (3, 7)], 1):
            connection.execute(
                text(
                    "INSERT INTO documents(id, body_hash, charset, media_type, body_bytes, details, version,"
                    " created_at, word_count) VALUES (:id, :hash, '', 'text/html', 1, '{}', :version, 1, :words)"
                ),
                {"id": number, "hash": bytes([number]), "version": version, "words": words},
            )
    upgrade(bare_url)

    with closing(Database(bare_url)) as database, database.engine.connect() as connection:
        told = connection.execute(text("SELECT word_count, page_type FROM documents ORDER BY id")).all()
    assert [tuple(row) for row in told] == [(None, None), (0, "other"), (7, "other")]
    downgrade(bare_url, "0012")
    with closing(Database(bare_url)) as database, database.engine.connect() as connection:
        told = connection.execute(text("SELECT word_count, page_type FROM documents ORDER BY id")).all()
    assert [tuple(row) for row in told] == [(0, "other"), (0, "other"), (7, "other")]
