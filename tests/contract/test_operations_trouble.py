"""Operations under which the disk fills or the database blinks, on both databases: nothing is lost or slandered."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.db.raw import RawDatabase
from holdfast.errors import NoSpace, Unavailable
from holdfast.imports.placing import write_new
from holdfast.operations.long_running import OperationState
from holdfast.operations.running import MOST_ATTEMPTS, OperationContext
from holdfast.operations.uploads import part_path
from holdfast.operations.works import verify
from holdfast.storage.store import FileKey
from holdfast.warc import queries as files
from tests.api_bed import Server
from tests.operations_bed import new_upload, operation, run_next, run_waiting, send, taken, warc_bytes


def _package(*names: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("datapackage.json", '{"profile": "data-package", "resources": []}')
        for name in names:
            archive.writestr(f"archive/{name}.warc.gz", warc_bytes(f"https://{name}.example/", body=f"<p>{name}</p>"))
    return out.getvalue()


def _failing(call: Callable[..., Any], error: Exception, *, at: int) -> Callable[..., Any]:
    """Return a function that does what another does, but for one call, which raises."""
    calls = 0

    def instead(*args: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == at:
            raise error
        return call(*args, **named)

    return instead


def test_an_import_whose_disk_fills_keeps_the_upload_and_is_tried_again(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = _package("one", "two", "three")
    place = new_upload(server, len(whole), source="trouble", filename="three.wacz")
    send(server, place, whole, 0)
    with monkeypatch.context() as patched:
        patched.setattr("holdfast.imports.importer.write_new", _failing(write_new, NoSpace("no room"), at=2))
        ended = run_waiting(server)
    failed = server.get(place).json()
    told = operation(server, failed["operationId"])
    part = part_path(server.archive.home, failed["id"])
    is_kept = part.is_file()

    again = server.ask("POST", f"{place}/import")
    run_waiting(server)
    done = operation(server, again.json()["id"])

    assert (ended, told["state"], told["errorCode"]) == ([OperationState.FAILED], "failed", "no_space")
    assert (failed["state"], is_kept) == ("failed", True)
    assert (done["state"], done["result"]["imported"], done["result"]["again"]) == ("done", 2, 1)
    assert (server.get(place).json()["state"], part.exists()) == ("imported", False)
    for name in ("one", "two", "three"):
        assert server.get("/cdx", params={"url": f"{name}.example/", "output": "json"}).json(), name


def _two_files(server: Server) -> None:
    whole = _package("one", "two")
    place = new_upload(server, len(whole), source="trouble", filename="two.wacz")
    send(server, place, whole, 0)
    assert run_waiting(server) == [OperationState.DONE]


def _started(server: Server, *, quick: bool = False) -> int:
    number: int = server.ask("POST", "/api/admin/verifications", quick=quick).json()["id"]
    return number


def test_an_operation_whose_database_blinks_goes_on_where_it_was(server: Server) -> None:
    number, attempts = _started(server), list[tuple[int, dict[str, Any]]]()

    def work(context: OperationContext) -> dict[str, Any]:
        attempts.append((context.attempt, dict(context.result)))
        if context.attempt == 1:
            context.result = {"after": 7}
            raise Unavailable("the database did not answer")
        return {"done": True}

    assert run_next(server, work) is OperationState.QUEUED
    server.clock.advance(1)
    between = operation(server, number)
    ended = run_next(server, work)
    done = operation(server, number)

    assert (between["state"], between["error"], between["finishedAt"]) == ("queued", None, None)
    assert attempts == [(1, {}), (2, {"after": 7})]
    assert (ended, done["state"], done["result"]) == (OperationState.DONE, "done", {"done": True})


def test_released_operation_waits_for_database_after_many_starts(server: Server) -> None:
    number = _started(server)
    for _ in range(25):
        lease = taken(server)
        assert lease is not None
        server.bed.party.leases.release(lease)

    def work(_context: OperationContext) -> dict[str, Any]:
        raise Unavailable("the database did not answer")

    assert run_next(server, work) is OperationState.QUEUED
    assert operation(server, number)["error"] is None


def test_an_operation_that_finds_the_same_thing_away_each_time_fails_and_says_what(server: Server) -> None:
    number, begun_times = _started(server), 0

    def work(_context: OperationContext) -> dict[str, Any]:
        nonlocal begun_times
        begun_times += 1
        raise Unavailable("cannot write to the shelf")

    for _ in range(MOST_ATTEMPTS - 1):
        assert run_next(server, work) is OperationState.QUEUED
        server.clock.advance(60)
    ended = run_next(server, work)
    told = operation(server, number)

    assert (ended, begun_times) == (OperationState.FAILED, MOST_ATTEMPTS)
    assert (told["state"], told["errorCode"], told["error"]) == ("failed", "unavailable", "cannot write to the shelf")


@pytest.mark.parametrize("quick", [False, True])
def test_a_database_that_blinks_is_no_damage_of_the_archive(
    server: Server, monkeypatch: pytest.MonkeyPatch, quick: bool
) -> None:
    _two_files(server)
    number = _started(server, quick=quick)

    def work(context: OperationContext) -> dict[str, Any]:
        with monkeypatch.context() as patched:
            read = context.runtime.raw_db.read
            away = Unavailable("the database did not take the transaction")
            patched.setattr(type(context.runtime.raw_db), "read", _failing(lambda _self: read(), away, at=2))
            return verify(context)

    assert run_next(server, work) is OperationState.QUEUED
    server.clock.advance(1)
    ended = run_waiting(server)
    found = operation(server, number)["result"]

    assert ended == [OperationState.DONE]
    assert (found["files"], found["ok"], found["damaged"], found["missing"]) == (2, 2, 0, 0)


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("fate", ["discarded", "moved"])
def test_a_file_that_is_moved_or_discarded_since_it_was_listed_is_not_missing(
    server: Server, monkeypatch: pytest.MonkeyPatch, quick: bool, fate: str
) -> None:
    _two_files(server)
    number = _started(server, quick=quick)

    def work(context: OperationContext) -> dict[str, Any]:
        raw_db: RawDatabase = context.runtime.raw_db
        said = context.say

        def say(phase: str, done: int = 0, total: int | None = None) -> None:
            said(phase, done, total)
            # Behind the list, before the second file's turn.
            if context.result.get("files") == 1:
                with raw_db.write() as tx:
                    (file_id, path) = tx.execute("SELECT id, key FROM warc_files ORDER BY id DESC")[0]
                    there = context.settings.home / path
                    if fate == "discarded" and there.exists():
                        tx.execute("UPDATE warc_files SET state = 'discarded' WHERE id = ?", (file_id,))
                        there.unlink()
                    elif fate == "moved" and there.name != "moved.warc.gz":
                        new = path.replace(there.name, "moved.warc.gz")
                        files.relocate_file(tx, old=FileKey(path), new=FileKey(new))
                        there.rename(there.with_name("moved.warc.gz"))

        patched.setattr(OperationContext, "say", lambda _self, *args: say(*args))
        return verify(context)

    with monkeypatch.context() as patched:
        ended = run_next(server, work)
    found = operation(server, number)["result"]

    assert ended is OperationState.DONE, found
    assert (found["files"], found["missing"], found["damaged"]) == (1 if fate == "discarded" else 2, 0, 0)
