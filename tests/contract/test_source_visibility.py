"""Who may see a source: set by routes and files, kept where it is not named, audited, and not lost with a database."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import delete, event, select
from sqlalchemy.orm import Session

from holdfast.api.app import create_inner_app
from holdfast.api.errors import ExportOutdated
from holdfast.api.heavy import while_visible
from holdfast.clock import SystemClock
from holdfast.db.engine import Database
from holdfast.db.models import AuditEvent, SearchOutbox, Source
from holdfast.errors import Invalid, Unavailable
from holdfast.exports.queries import ExportReach
from holdfast.exports.tables import snapshot_rows
from holdfast.sources import registry
from holdfast.sources.members_file import MEMBERS, note_members, restore_members, write_noting
from holdfast.sources.queries import named_source
from holdfast.withdrawals.viewers import EVERYTHING, PUBLIC, seen_by
from holdfast.withdrawals.visibility import visibility_mark
from holdfast.worker.loop import RunnerTable, open_worker
from tests.api_bed import Server
from tests.archive import Shot, build_archive
from tests.patience import deadline


@pytest.fixture(autouse=True)
def _no_note(server: Server) -> Iterator[None]:
    """Begin and end without a note: archives of one run of tests may share a data directory."""
    (server.archive.home / MEMBERS).unlink(missing_ok=True)
    yield
    (server.archive.home / MEMBERS).unlink(missing_ok=True)


def _make(server: Server, **more: object) -> dict[str, object]:
    made = server.ask("POST", "/api/v1/sources", code="ex", config={"seeds": ["https://ex.example/"]}, **more)
    assert made.status_code == 201, made.text
    answer: dict[str, object] = made.json()
    return answer


def test_a_source_is_public_unless_it_is_said(server: Server) -> None:
    made = _make(server)

    assert made["visibility"] == "public"
    changed = server.ask("PATCH", f"/api/v1/sources/{made['id']}", visibility="members")
    assert changed.json()["visibility"] == "members"
    assert server.get(f"/api/v1/sources/{made['id']}").json()["visibility"] == "members"
    assert server.get("/api/v1/sources").json()["sources"][0]["visibility"] == "members"


def test_one_can_be_made_for_members_from_the_start(server: Server) -> None:
    assert _make(server, visibility="members")["visibility"] == "members"
    assert json.loads((server.archive.home / MEMBERS).read_text()) == {"members": ["ex"]}


def test_another_word_is_refused_and_changes_nothing(server: Server) -> None:
    made = _make(server, visibility="members")

    for word in ("everybody", "", 7):
        assert server.ask("PATCH", f"/api/v1/sources/{made['id']}", visibility=word).status_code == 400
    assert server.get(f"/api/v1/sources/{made['id']}").json()["visibility"] == "members"


def test_what_does_not_name_it_opens_nothing(server: Server) -> None:
    made = _make(server, visibility="members")
    path = f"/api/v1/sources/{made['id']}"
    whole = {"code": "ex", "name": "Other", "config": {"seeds": ["https://ex.example/"]}}

    assert server.ask("PUT", path, **whole).json()["visibility"] == "members"
    assert server.ask("PATCH", path, name="Third", visibility=None).json()["visibility"] == "members"
    assert server.ask("POST", "/api/v1/sources/import", sources=[whole]).status_code == 200
    assert server.get(path).json()["visibility"] == "members"


def test_source_without_seeds_can_be_edited(server: Server) -> None:
    now = server.archive.clock.now()
    with server.archive.database.write() as session:
        row = Source(code="mem", name="mem", enabled=True, config={}, created_at=now, updated_at=now)
        session.add(row)
        session.flush()
        path = f"/api/v1/sources/{row.id}"

    assert server.ask("PATCH", path, visibility="members").json()["visibility"] == "members"
    assert server.ask("PATCH", path, config={"delay_s": 5}).json()["config"] == {"delay_s": 5.0}
    assert server.ask("PUT", path, code="mem", name="Other", config={}).json()["name"] == "Other"
    assert (server.get(path).json()["visibility"], server.get(path).json()["warnings"]) == ("members", [])


@pytest.mark.parametrize("form", ["yaml", "toml", "json"])
def test_a_file_carries_it(server: Server, form: str) -> None:
    made = _make(server, visibility="members")
    file = server.get(f"/api/v1/sources/export?format={form}")
    assert "members" in file.text
    server.ask("PATCH", f"/api/v1/sources/{made['id']}", visibility="public")

    taken = server.client.post(
        "/api/v1/sources/import", content=file.content, headers={"Content-Type": f"application/{form}"}
    )

    assert taken.status_code == 200, taken.text
    assert taken.json()["updated"] == ["ex"]
    assert server.get(f"/api/v1/sources/{made['id']}").json()["visibility"] == "members"


def test_every_change_is_audited_and_told_to_search(server: Server) -> None:
    made = _make(server)
    for word in ("members", "members", "public"):
        server.ask("PATCH", f"/api/v1/sources/{made['id']}", visibility=word)

    with server.bed.database.read() as session:
        told = session.scalars(
            select(AuditEvent).where(AuditEvent.action == "source.visibility").order_by(AuditEvent.id)
        )
        details = [row.detail for row in told]
        waiting = session.scalars(select(SearchOutbox).where(SearchOutbox.kind == "visibility")).all()
    assert details == [{"from": "public", "to": "members"}, {"from": "members", "to": "public"}]
    assert [row.first_id for row in waiting] == [made["id"], made["id"]]
    assert json.loads((server.archive.home / MEMBERS).read_text()) == {"members": []}


def test_a_lost_database_does_not_open_what_was_for_members(server: Server) -> None:
    _make(server, visibility="members")
    home, clock = server.archive.home, SystemClock()
    with closing(Database(server.bed.database.url)) as database:
        with database.write() as session:
            session.execute(delete(Source))

        assert restore_members(database, clock, home) == 1

        with database.read() as session:
            assert session.scalars(select(Source.visibility)).all() == ["members"]
        assert restore_members(database, clock, home) == 0, "a row is newer than the note"
        note_members(database, home)
    assert json.loads((home / MEMBERS).read_text()) == {"members": ["ex"]}


def _noted(server: Server) -> list[str]:
    codes: list[str] = json.loads((server.archive.home / MEMBERS).read_text())["members"]
    return codes


def test_a_source_is_noted_before_it_is_for_members_and_taken_off_behind_that(server: Server) -> None:
    database, home, seen = server.bed.database, server.archive.home, list[list[str]]()

    def look(_session: Session) -> None:
        seen.append(_noted(server))

    def change(word: str) -> None:
        with write_noting(database, home) as session:
            registry.edit(session, SystemClock(), "ex", {"visibility": word})
            event.listen(session, "before_commit", look)

    _make(server)
    (home / MEMBERS).write_text('{"members": []}')
    change("members")
    change("public")

    assert seen == [["ex"], ["ex"]]
    assert _noted(server) == []


def test_a_change_whose_answer_was_lost_leaves_the_source_noted(server: Server) -> None:
    made = _make(server)

    def dies(_session: Session) -> None:
        raise Unavailable("the answer was lost")

    def change() -> None:
        with write_noting(server.bed.database, server.archive.home) as session:
            registry.edit(session, SystemClock(), "ex", {"visibility": "members"})
            event.listen(session, "after_commit", dies)

    with pytest.raises(Unavailable):
        change()

    assert server.get(f"/api/v1/sources/{made['id']}").json()["visibility"] == "members"
    assert _noted(server) == ["ex"]


def test_a_process_that_notes_while_another_commits_leaves_out_nothing(server: Server) -> None:
    database, home = server.bed.database, server.archive.home
    _make(server, visibility="members")
    with database.write() as session:
        for code in ("second", "stale"):
            named_source(session, SystemClock(), code=code)

    def beside() -> None:
        with closing(Database(database.url)) as other:
            note_members(other, home)

    thread = threading.Thread(target=beside)

    def meanwhile(_session: Session) -> None:
        (home / MEMBERS).write_text('{"members": ["ex", "second", "stale"]}')
        thread.start()
        thread.join(0.5)

    def dies(_session: Session) -> None:
        raise Unavailable("the answer was lost")

    def change() -> None:
        with write_noting(database, home) as session:
            registry.edit(session, SystemClock(), "second", {"visibility": "members"})
            event.listen(session, "before_commit", meanwhile)
            event.listen(session, "after_commit", dies)

    with pytest.raises(Unavailable):
        change()
    thread.join(deadline(30))

    assert _noted(server) == ["ex", "second"]


def test_a_note_that_makes_no_sense_ends_a_rebuild_and_is_written_anew_by_a_start(server: Server) -> None:
    _make(server, visibility="members")
    (server.archive.home / MEMBERS).write_text('{"members": [')

    with pytest.raises(Invalid, match="makes no sense"):
        restore_members(server.bed.database, SystemClock(), server.archive.home)
    note_members(server.bed.database, server.archive.home)

    assert _noted(server) == ["ex"]


def test_a_start_mends_the_note_and_forgets_nothing_of_a_lost_database(server: Server) -> None:
    _make(server, visibility="members")
    note = server.archive.home / MEMBERS
    note.write_text('{"members": ["lost"]}')

    async def start() -> None:
        app = create_inner_app(server.archive)
        async with app.router.lifespan_context(app):
            pass

    asyncio.run(start())
    mended = _noted(server)
    note.unlink()
    with open_worker(server.archive.settings, RunnerTable({}, ())):
        pass

    assert mended == ["ex", "lost"]
    assert _noted(server) == ["ex"]


def test_export_in_progress_ends_when_a_source_becomes_members(server: Server) -> None:
    _make(server)
    database, closed = server.archive.database, list[str]()

    def pieces() -> Iterator[bytes]:
        try:
            while True:
                yield b"x" * 1024 * 1024
        finally:
            closed.append("closed")

    for looking, is_shown in ((PUBLIC, False), (EVERYTHING, True)):
        with seen_by(looking):
            with database.read() as session:
                mark = visibility_mark(session)
            sent = while_visible(pieces(), database, mark)
            assert len(next(sent)) == len(next(sent)) == 1024 * 1024
            with database.write() as session:
                registry.edit(session, server.archive.clock, "ex", {"visibility": "members"})
            if is_shown:
                assert next(sent)
            else:
                with pytest.raises(ExportOutdated):
                    next(sent)
            sent.close()  # type: ignore[attr-defined]
        with database.write() as session:
            registry.edit(session, server.archive.clock, "ex", {"visibility": "public"})
    assert closed == ["closed", "closed"]


def test_rows_of_a_source_that_became_members_are_not_exported(tmp_path: Path, migrated_url: str) -> None:
    shots = [
        Shot(url=f"https://{source}.example/{number}", source=source)
        for source in ("club", "open")
        for number in range(600)
    ]
    archive = build_archive(tmp_path / "home", shots, database_url=migrated_url)
    rows = snapshot_rows(archive.database, ExportReach(), site="")
    first = next(rows)
    with archive.database.write() as session:
        registry.edit(session, archive.clock, "club", {"visibility": "members"})
    codes = [str(row[1]) for row in rows]
    archive.database.close()

    assert first[1] == "club"
    assert (codes.count("club"), codes.count("open")) == (499, 600), "one batch had been read"
