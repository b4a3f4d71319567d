"""Files that arrive in pieces over HTTP, on both databases: tus 1.0, what is refused, and what becomes of them."""

from __future__ import annotations

import errno
import fcntl
import os
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest

from holdfast.api.routes.uploads import VERSION
from holdfast.db.models import Upload
from holdfast.operations import uploads
from holdfast.operations.long_running import OperationState
from holdfast.operations.running import HeldOperation, OperationContext, run_operation
from holdfast.operations.uploads import PartFile, part_path, remove_expired
from holdfast.operations.works import WORKS
from tests.api_bed import Server
from tests.jobs_bed import end_holder
from tests.operations_bed import (
    TUS,
    UPLOADS,
    begin,
    checksum,
    metadata,
    new_upload,
    operation,
    run_next,
    run_waiting,
    send,
    taken,
    warc_bytes,
)


def test_a_file_sent_in_pieces_is_imported_and_can_be_replayed(server: Server) -> None:
    whole = warc_bytes("https://uploaded.example/", "https://uploaded.example/two")
    place = new_upload(server, len(whole), filename="../../etc/passwd", name="Uploaded")
    first = send(server, place, whole[:100], 0)
    asked = server.client.request("HEAD", place, headers=TUS)
    last = send(server, place, whole[100:], 100, **{"Upload-Checksum": checksum(whole[100:])})
    waiting = operation(server, last.headers["holdfast-operation"])

    ended = run_waiting(server)
    done = operation(server, waiting["id"])
    shown = server.get(place).json()
    found = server.client.get("/cdx", params={"url": "uploaded.example/*", "output": "json"}).text
    replayed = server.client.get("http://replay.localhost:8060/web/20260301100000id_/https://uploaded.example/two")

    assert (first.status_code, first.headers["upload-offset"]) == (204, "100")
    assert (asked.status_code, asked.headers["upload-offset"], asked.headers["upload-length"]) == (
        200,
        "100",
        str(len(whole)),
    )
    assert asked.headers["cache-control"] == "private, no-store"
    assert (last.status_code, waiting["state"], waiting["kind"]) == (204, "queued", "import")
    assert ended == [OperationState.DONE], done
    assert (done["state"], done["result"]["imported"], done["result"]["snapshots"]) == ("done", 1, 2)
    assert (shown["state"], shown["source"], shown["operationId"]) == ("imported", "up", waiting["id"])
    assert shown["name"] == "../../etc/passwd"
    assert not part_path(server.archive.home, shown["id"]).exists()
    assert "uploaded.example" in found
    assert "words of an upload" in replayed.text


def test_the_protocol_says_what_it_speaks(server: Server) -> None:
    answer = server.client.request("OPTIONS", UPLOADS)

    assert answer.status_code == 204
    assert answer.headers["tus-version"] == VERSION
    assert set(answer.headers["tus-extension"].split(",")) == {"creation", "checksum", "termination", "expiration"}
    assert answer.headers["tus-checksum-algorithm"] == "sha1,sha256"
    assert int(answer.headers["tus-max-size"]) == server.archive.settings.uploads.max_bytes


def test_a_piece_that_does_not_fit_is_refused_and_nothing_is_lost(server: Server) -> None:
    place = new_upload(server, 10)
    gap = send(server, place, b"abc", 4)
    kept = send(server, place, b"abcde", 0)
    again = send(server, place, b"abcde", 0)
    wrong = send(server, place, b"fgh", 5, **{"Upload-Checksum": checksum(b"xyz")})
    unknown = send(server, place, b"fgh", 5, **{"Upload-Checksum": "md5 AAAA"})
    over = send(server, place, b"fghijklm", 5)
    lost = send(server, place, b"abcdefghij", 2)
    typed = send(server, place, b"fgh", 5, **{"Content-Type": "application/json"})
    spoken = send(server, place, b"fgh", 5, **{"Tus-Resumable": "0.2.2"})

    assert (gap.status_code, gap.json()["code"]) == (409, "upload_offset")
    assert (kept.status_code, again.status_code) == (204, 409)
    assert (wrong.status_code, wrong.json()["code"]) == (460, "checksum_mismatch")
    assert (unknown.status_code, unknown.json()["field"]) == (422, "Upload-Checksum")
    assert (over.status_code, over.json()["code"]) == (413, "upload_too_large")
    assert "has 10 bytes and this piece exceeds them" in over.json()["detail"]
    # Who lost its place is told so, also where the piece would go beyond the end.
    assert (lost.status_code, lost.json()["code"]) == (409, "upload_offset")
    assert (typed.status_code, spoken.status_code) == (415, 412)
    assert server.get(place).json()["received"] == 5
    assert part_path(server.archive.home, server.get(place).json()["id"]).read_bytes() == b"abcde"


@pytest.mark.parametrize(
    ("headers", "status", "field"),
    [
        ({"Upload-Length": "10"}, 422, "Upload-Metadata"),
        ({"Upload-Metadata": metadata(source="up")}, 422, "Upload-Length"),
        ({"Upload-Length": "-1", "Upload-Metadata": metadata(source="up")}, 422, "Upload-Length"),
        ({"Upload-Length": "1e3", "Upload-Metadata": metadata(source="up")}, 422, "Upload-Length"),
        ({"Upload-Length": "9" * 30, "Upload-Metadata": metadata(source="up")}, 422, "Upload-Length"),
        ({"Upload-Length": "0", "Upload-Metadata": metadata(source="up")}, 422, "Upload-Length"),
        ({"Upload-Length": "10", "Upload-Metadata": metadata(source="../up")}, 422, "Upload-Metadata.source"),
        ({"Upload-Length": "10", "Upload-Metadata": "source !!"}, 422, "Upload-Metadata.source"),
        ({"Upload-Length": "10", "Upload-Metadata": "source dXA=,source dXA="}, 422, "Upload-Metadata"),
        (
            {"Upload-Length": "10", "Upload-Metadata": metadata(source="up", sha256="abc")},
            422,
            "Upload-Metadata.sha256",
        ),
    ],
)
def test_an_upload_that_cannot_be_is_refused_with_its_field(
    one_source: Server, headers: dict[str, str], status: int, field: str
) -> None:
    answer = one_source.client.request("POST", UPLOADS, headers={**TUS, **headers})

    assert (answer.status_code, answer.json()["field"].lower()) == (status, field.lower()), answer.text


def test_what_is_too_large_or_finds_no_room_is_refused_before_a_byte_is_sent(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = begin(server, server.archive.settings.uploads.max_bytes + 1)

    def full(_path: object) -> os.statvfs_result:
        return os.statvfs_result((4096, 4096, 10**9, 10**6, 10**6, 0, 0, 0, 0, 255))

    monkeypatch.setattr(os, "statvfs", full)
    crowded = begin(server, 10**9)

    assert (large.status_code, large.json()["code"]) == (413, "upload_too_large")
    assert (crowded.status_code, crowded.json()["code"]) == (507, "upload_no_room")
    assert server.get(UPLOADS).json()["items"] == []


def test_a_disk_that_fills_up_on_the_way_answers_507_and_the_upload_goes_on(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = new_upload(server, 10)
    send(server, place, b"abc", 0)

    def full(_self: PartFile, _piece: bytes) -> None:
        raise uploads.no_room_or(OSError(errno.ENOSPC, "No space left on device"), Path("upload-1"))

    with monkeypatch.context() as patched:
        patched.setattr(PartFile, "write", full)
        refused = send(server, place, b"defgh", 3)
    after = send(server, place, b"defgh", 3)

    assert (refused.status_code, refused.json()["code"]) == (507, "upload_no_room")
    assert (after.status_code, after.headers["upload-offset"]) == (204, "8")


def test_bytes_that_a_killed_server_wrote_without_saying_so_do_not_count(server: Server) -> None:
    place = new_upload(server, 10)
    send(server, place, b"abc", 0)
    part_path(server.archive.home, server.get(place).json()["id"]).write_bytes(b"abcGARBAGE of a dead server")

    goes_on = send(server, place, b"de", 3)

    assert (goes_on.status_code, goes_on.headers["upload-offset"]) == (204, "5")
    assert part_path(server.archive.home, server.get(place).json()["id"]).read_bytes() == b"abcde"


def test_two_servers_write_to_one_upload_one_after_the_other(servers: list[Server]) -> None:
    one, other = servers
    place = new_upload(one, 10)
    row_id = one.get(place).json()["id"]
    with uploads.open_part(one.archive.home, row_id, 0, lambda: _row(one, row_id)):
        locked = send(other, place, b"abc", 0)
    free = send(other, place, b"abc", 0)

    assert (locked.status_code, locked.json()["code"]) == (423, "upload_locked")
    assert free.status_code == 204


def test_a_piece_that_comes_late_never_touches_what_is_being_imported(
    servers: list[Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = servers
    whole = warc_bytes()
    place = new_upload(one, len(whole))
    path = part_path(one.archive.home, one.get(place).json()["id"])
    lock, sent = fcntl.flock, list[httpx.Response]()

    def overtaken(fd: int, how: int) -> None:
        # Between the look at the row and the lock, another request brings the whole file.
        if not sent:
            sent.append(httpx.Response(0))
            sent.append(send(other, place, whole, 0))
        lock(fd, how)

    with monkeypatch.context() as patched:
        patched.setattr(fcntl, "flock", overtaken)
        late = send(one, place, b"something else", 0)

    assert sent[1].status_code == 204
    assert (late.status_code, late.json()["code"]) == (409, "upload_offset")
    assert path.read_bytes() == whole
    assert run_waiting(one) == [OperationState.DONE]


def test_an_import_that_never_began_leaves_an_upload_that_can_be_tried_again_and_ended(server: Server) -> None:
    whole = warc_bytes()
    place = new_upload(server, len(whole))
    last = send(server, place, whole, 0)
    server.clock.advance(3600)
    cancelled = server.ask("POST", f"{last.headers['holdfast-operation']}/cancel").json()
    failed = server.get(place).json()
    again = server.ask("POST", f"{place}/import")
    server.ask("POST", f"{again.headers['location']}/cancel")
    ended = server.client.request("DELETE", place, headers=TUS)

    assert (cancelled["state"], failed["state"]) == ("cancelled", "failed")
    assert failed["expiresAt"] > (server.clock.now() + timedelta(hours=23)).isoformat()
    assert (again.status_code, ended.status_code) == (202, 204)


def test_an_import_that_breaks_in_an_unforeseen_way_leaves_no_upload_that_is_busy_for_ever(server: Server) -> None:
    whole = warc_bytes()
    place = new_upload(server, len(whole))
    send(server, place, whole, 0)

    def breaks(_context: OperationContext) -> dict[str, Any]:
        raise OSError(errno.EIO, "Input/output error")

    broken = run_next(server, breaks)
    shown = server.get(place).json()
    again = server.ask("POST", f"{place}/import")

    assert (broken, shown["state"]) == (OperationState.FAILED, "failed")
    assert again.status_code == 202
    assert run_waiting(server) == [OperationState.DONE]


def test_a_worker_that_lost_its_operation_says_nothing_of_the_upload(server: Server) -> None:
    whole = warc_bytes()
    place = new_upload(server, len(whole))
    send(server, place, whole, 0)
    late = taken(server)
    assert late is not None
    end_holder(server.bed.database, "w1")
    server.bed.party.scheduler.sweep()
    assert taken(server, "w2") is not None
    upload_id = server.get(place).json()["id"]
    held = HeldOperation(late.execution_id, late.claim)
    told = list[dict[str, Any]]()

    run_operation(server.archive.settings, server.clock, held, WORKS, tell=told.append)

    assert (told[-1]["end"], told[-1]["code"]) == ("failed", "lease_lost")
    assert server.get(place).json()["state"] == "received"
    assert part_path(server.archive.home, upload_id).exists()


def test_result_of_an_import_survives_its_process(server: Server) -> None:
    whole = warc_bytes()
    place = new_upload(server, len(whole))
    send(server, place, whole, 0)
    lease = taken(server)
    assert lease is not None
    held = HeldOperation(lease.execution_id, lease.claim)
    # The process is killed before its worker reads what it reported.
    run_operation(server.archive.settings, server.clock, held, WORKS, tell=lambda _told: None)
    server.bed.party.leases.release(lease, has_died=True)

    assert run_waiting(server) == [OperationState.DONE]
    assert operation(server, lease.execution_id)["result"]["imported"] == 1


def _row(server: Server, upload_id: int) -> Upload:
    with server.archive.database.read() as session:
        return uploads.find(session, upload_id)


def test_a_file_that_an_older_database_left_is_not_written_to_for_the_archive_may_have_it_too(server: Server) -> None:
    first = server.get(new_upload(server, 10)).json()["id"]
    left = part_path(server.archive.home, first + 1)
    left.write_bytes(b"a capture")
    archived = server.archive.home / "warcs" / "archived.warc"
    archived.parent.mkdir(parents=True, exist_ok=True)
    # As the import of an upload keeps it.
    os.link(left, archived)

    place = new_upload(server, 3)
    send(server, place, b"xyz", 0)

    assert server.get(place).json()["id"] == first + 1
    assert (left.read_bytes(), archived.read_bytes()) == (b"xyz", b"a capture")


def test_an_upload_is_ended_or_expires_and_its_bytes_go(server: Server) -> None:
    ended, left = new_upload(server, 10), new_upload(server, 10)
    send(server, ended, b"abc", 0)
    gone = server.client.request("DELETE", ended, headers=TUS)
    again = server.client.request("DELETE", ended, headers=TUS)

    server.clock.advance(uploads.EXPIRE_S - 1)
    kept = remove_expired(server.archive.database, server.clock, server.archive.settings)
    server.clock.advance(2)
    removed = remove_expired(server.archive.database, server.clock, server.archive.settings)

    assert (gone.status_code, again.status_code, again.json()["code"]) == (204, 410, "upload_gone")
    assert (kept, removed) == (0, 1)
    assert server.get(left).json()["state"] == "expired"
    assert server.client.request("HEAD", left, headers=TUS).status_code == 410
    assert send(server, left, b"abc", 0).status_code == 410
    assert not list(uploads.uploads_folder(server.archive.home).glob("upload-*"))


def test_an_upload_lives_on_while_pieces_come(server: Server) -> None:
    place = new_upload(server, 10)
    server.clock.advance(uploads.EXPIRE_S - 1)
    send(server, place, b"abc", 0)
    server.clock.advance(10)

    assert remove_expired(server.archive.database, server.clock, server.archive.settings) == 0
    assert server.get(place).json()["state"] == "receiving"


def test_the_same_file_twice_at_once_is_409_and_names_the_first(server: Server) -> None:
    whole = warc_bytes()
    place = new_upload(server, len(whole), sha256=sha256(whole).hexdigest())
    second = begin(server, len(whole), sha256=sha256(whole).hexdigest())
    send(server, place, whole, 0)
    third = begin(server, len(whole), sha256=sha256(whole).hexdigest())
    ended = run_waiting(server)
    later = new_upload(server, len(whole), sha256=sha256(whole).hexdigest())
    send(server, later, whole, 0)
    run_waiting(server)
    done = operation(server, server.get(later).json()["operationId"])

    upload_id = server.get(place).json()["id"]
    assert (second.status_code, second.json()["code"]) == (409, "upload_open")
    assert f"upload {upload_id}" in second.json()["error"]
    assert (third.status_code, ended) == (409, [OperationState.DONE])
    # The same bytes again are known: indexed anew, kept once.
    assert (done["state"], done["result"]["imported"], done["result"]["again"]) == ("done", 0, 1)


def test_an_import_whose_every_file_fails_has_failed_and_may_be_tried_again(server: Server) -> None:
    place = new_upload(server, 10)
    send(server, place, b"no archive", 0)
    ended = run_waiting(server)
    failed = server.get(place).json()
    done = operation(server, failed["operationId"])
    again = server.ask("POST", f"{place}/import")
    busy = server.ask("POST", f"{place}/import")
    kept = server.client.request("DELETE", place, headers=TUS)

    assert ended == [OperationState.FAILED]
    assert (done["state"], done["errorCode"], done["result"]["failed"]) == ("failed", "import_failed", 1)
    assert done["error"]
    assert failed["state"] == "failed"
    assert (again.status_code, again.headers["location"]) == (202, f"/api/admin/operations/{again.json()['id']}")
    assert (busy.status_code, busy.json()["code"]) == (409, "upload_busy")
    assert (kept.status_code, kept.json()["code"]) == (409, "upload_busy")
    assert str(again.json()["id"]) in kept.json()["error"]


def test_a_file_that_is_not_what_its_digest_says_is_not_imported(server: Server) -> None:
    whole = warc_bytes()
    place = new_upload(server, len(whole), sha256="0" * 64)
    send(server, place, whole, 0)
    run_waiting(server)
    done = operation(server, server.get(place).json()["operationId"])

    assert (done["state"], done["errorCode"]) == ("failed", "upload_digest_wrong")
    assert server.get("/api/sources").json() == []


def test_only_so_many_uploads_are_open(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = server.archive.settings
    monkeypatch.setattr(uploads, "AT_ONCE", 2)
    with server.archive.database.write() as session:
        for _ in range(2):
            uploads.create(session, server.clock, settings, Upload(size=5, name="x", source_code="up"))
        with pytest.raises(uploads.UploadsFull):
            uploads.create(session, server.clock, settings, Upload(size=5, name="x", source_code="up"))


def test_uploads_are_listed_by_state_piece_by_piece(server: Server) -> None:
    places = [new_upload(server, 10) for _ in range(3)]
    server.client.request("DELETE", places[1], headers=TUS)
    first = server.get(UPLOADS, params={"limit": 2}).json()
    rest = server.get(UPLOADS, params={"limit": 2, "cursor": first["next"]}).json()
    open_ones = server.get(UPLOADS, params={"state": "receiving"}).json()
    misspelled = server.get(UPLOADS, params={"stat": "receiving"})

    ids = [one["id"] for one in [*first["items"], *rest["items"]]]
    assert ids == sorted(ids, reverse=True)
    assert (len(ids), rest["next"], first["limit"]) == (3, None, 2)
    assert len(open_ones["items"]) == 2
    assert (misspelled.status_code, misspelled.json()["field"]) == (422, "stat")
    assert "did you mean state?" in misspelled.json()["error"]


def test_expired_means_a_day_unless_set_otherwise() -> None:
    assert timedelta(seconds=uploads.EXPIRE_S) == timedelta(days=1)
