"""A search that is asked again is answered from memory, for as long as nothing changed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update
from starlette.types import Message, Receive, Scope, Send

from holdfast.api.app import create_inner_app
from holdfast.api.plain_searches import plain_request
from holdfast.api.record_answers import add_schemas
from holdfast.api.response_cache import KEPT_S, RECORDS, KeptResponses, ResponseCache, record_key
from holdfast.config.model import Secret
from holdfast.db import connect
from holdfast.db.models import Source, Withdrawal
from holdfast.records import Spelling
from holdfast.search.outbox import drain
from holdfast.search.records import SearchResults
from holdfast.search.search import SearchRequest, SearchService
from holdfast.search.substrings import SearchTooLong
from holdfast.wiring.archive import Archive
from tests.archive import BEGIN, Shot, add_captures, build_archive, days_later, index_all
from tests.client import APP, REPLAY, Client, asking
from tests.clock import FakeClock

_WITHDRAWN: dict[str, Any] = {"subject": "x", "reason": "asked", "actor": "test", "created_at": BEGIN}
_SHOTS = [Shot(url="https://example.org/"), Shot(url="https://example.org/b", body="<title>Other</title><p>Gneiss.")]


@pytest.fixture
def archive(tmp_path: Path, clock: FakeClock) -> Iterator[Archive]:
    built = replace(build_archive(tmp_path, _SHOTS), clock=clock)
    drain(built.database, built.home, built.clock)
    yield built
    built.database.close()


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """What was searched for, not what was answered from memory."""
    asked: list[str | None] = []
    ask = SearchService.ask

    def noted(self: SearchService, request: object, **options: object) -> object:
        asked.append(request.q)  # type: ignore[attr-defined]
        return ask(self, request, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(SearchService, "ask", noted)
    return asked


def _total(client: Client, query: str) -> int:
    answer = client.get(f"/api/search?q={query}")
    assert answer.status_code == 200
    return int(answer.json()["total"])


def test_the_same_search_is_made_once_in_a_while(
    archive: Archive, clock: FakeClock, searches: list[str | None]
) -> None:
    with asking(archive) as client:
        first, second = client.get("/api/search?q=gneiss"), client.get("/api/search?q=gneiss")
        assert second.content == first.content
        assert second.headers["content-type"] == first.headers["content-type"]
        assert first.headers["x-request-id"] != second.headers["x-request-id"]
        assert len(searches) == 1
        clock.advance(KEPT_S + 1)
        _total(client, "gneiss")
        assert len(searches) == 2


def test_what_was_withdrawn_is_gone_from_an_answer_that_is_kept(archive: Archive) -> None:
    with asking(archive) as client:
        found = client.get("/api/search?q=gneiss").json()
        assert found["total"] == 1
        with archive.database.write() as session:
            session.add(Withdrawal(snapshot_id=found["results"][0]["id"], **_WITHDRAWN))

        assert _total(client, "gneiss") == 0


def test_an_answer_is_not_kept_longer_than_its_index(archive: Archive) -> None:
    with asking(archive) as client:
        assert _total(client, "gneiss") == 1
        new = Shot(url="https://example.org/c", body="<title>New</title><p>More gneiss.", moment=days_later(1))
        with closing(connect(archive.settings.database)) as raw_db:
            add_captures(raw_db, archive.settings, archive.clock, [new])
            index_all(raw_db, archive.clock, archive.home)
        drain(archive.database, archive.home, archive.clock)

        assert _total(client, "gneiss") == 2


def test_a_record_that_was_just_sent_is_sent_again_and_not_once_it_is_withdrawn(archive: Archive) -> None:
    with asking(archive) as client:
        found = client.get("/api/search?q=gneiss").json()["results"][0]
        digits = found["captureTimestamp"][:19].translate({ord(mark): None for mark in "-:T"})
        path = f"{REPLAY}/web/{digits}id_/{found['originalUrl']}"
        first, again = client.get(path), client.get(path)

        assert first.status_code == again.status_code == 200
        assert b"Gneiss" in first.content
        assert again.content == first.content
        assert {name for name in again.headers if name != "x-request-id"} == {
            name for name in first.headers if name != "x-request-id"
        }
        assert client.get(path, headers={"range": "bytes=0-3"}).content == first.content[:4]
        with archive.database.write() as session:
            session.add(Withdrawal(snapshot_id=found["id"], **_WITHDRAWN))
        assert client.get(path).status_code == 404


def test_what_a_member_was_answered_is_kept_for_members_alone(archive: Archive) -> None:
    api = archive.settings.api.model_copy(update={"admin_token": Secret("x" * 20)})
    guarded = replace(archive, settings=archive.settings.model_copy(update={"api": api}))
    with archive.database.write() as session:
        session.execute(update(Source).values(visibility="members"))
    shown = {"x-admin-token": "x" * 20}

    with asking(guarded) as client:
        found = client.get("/api/search?q=gneiss", headers=shown).json()
        number = found["results"][0]["id"]
        assert found["total"] == client.get("/api/search?q=gneiss", headers=shown).json()["total"] == 1
        assert _total(client, "gneiss") == 0
        assert client.get(f"/api/snapshot/{number}", headers=shown).status_code == 200
        assert client.get(f"/api/snapshot/{number}").status_code == 404
        assert client.get("/cdx?url=example.org/b", headers=shown).text.count("\n") == 1
        assert client.get("/cdx?url=example.org/b").text == ""


def test_a_record_that_one_capability_opened_names_no_other(archive: Archive) -> None:
    with archive.database.write() as session:
        session.execute(update(Source).values(visibility="members"))
        number = session.scalars(select(Source.id)).first()
    with asking(archive) as client:
        found = client.get("/api/search?q=gneiss").json()["results"][0]
        digits = found["captureTimestamp"][:19].translate({ord(mark): None for mark in "-:T"})
        roots = []
        for _ in range(2):
            roots.append(client.app.state.replay_keys.root(number))  # type: ignore[attr-defined]
            archive.clock.shift_wall(1)  # type: ignore[attr-defined]
        answers = [client.get(f"{REPLAY}{root}/web/{digits}id_/{found['originalUrl']}") for root in roots]

    assert roots[0] != roots[1]
    assert [one.status_code for one in answers] == [200, 200]
    for root, other, answer in zip(roots, reversed(roots), answers, strict=True):
        assert root in answer.headers["link"]
        assert other not in str(answer.headers)


def test_response_cache_counts_the_size_of_keys(archive: Archive, clock: FakeClock) -> None:
    kept = KeptResponses(clock, archive.database.raw_reads)
    sent: list[Any] = []

    async def route(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request"}

    with ThreadPoolExecutor(1) as threads:
        cache = ResponseCache(route, kept, threads, paths=RECORDS, key=record_key)
        for number in range(10):
            headers = [(b"x-filler", b"%d" % number + b"x" * 20_000)]
            path = "/web/20240101000000id_/http://example.org/"
            scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": headers}
            asyncio.run(cache(scope, receive, send))

    assert len(sent) == 20
    assert 10 * 20_000 < kept.size < 10 * 25_000


def test_members_captures_are_found_with_a_credential_only(archive: Archive) -> None:
    page = "https://reader.example"
    api = archive.settings.api.model_copy(update={"cors_origins": (page,), "admin_token": Secret("a token of a test")})
    listing = replace(archive, settings=archive.settings.model_copy(update={"api": api}))
    with archive.database.write() as session:
        session.execute(update(Source).values(visibility="members"))
    shown = {"x-admin-token": "a token of a test"}

    with asking(listing) as client:
        answers = [
            client.get("/api/search?q=gneiss", headers=one) for one in (shown, {}, {"origin": page}, {"origin": APP})
        ]

    assert [one.json()["total"] for one in answers] == [1, 0, 0, 0]
    assert answers[2].headers["access-control-allow-origin"] == page


def test_a_page_whose_file_is_missing_does_not_say_where_files_are(archive: Archive) -> None:
    for path in archive.home.rglob("*.warc.gz"):
        path.unlink()
    with asking(archive) as client:
        found = client.get("/api/search?q=gneiss").json()["results"][0]
        digits = found["captureTimestamp"][:19].translate({ord(mark): None for mark in "-:T"})
        answers = [
            client.get(f"{REPLAY}/web/{digits}{one}/{found['originalUrl']}") for one in ("", "id_", "mp_", "im_")
        ]

    for answer in answers:
        assert answer.status_code == 404
        assert "there is no file" in answer.text
        assert str(archive.home) not in answer.text


@pytest.mark.parametrize(
    "asked",
    [
        "q=gneiss",
        "q=gneiss&view=pages&page=1&pageSize=5",
        "",
        "sort=newest",
        "q=gneis",
        "q=%22other%22+gneiss",
        "page=9",
    ],
)
def test_a_plain_search_is_answered_as_the_route_answers(archive: Archive, asked: str) -> None:
    assert plain_request(asked.encode()) is not None
    slow = Client(create_inner_app(archive))
    with asking(archive) as client:
        quick, whole = client.get(f"/api/search?{asked}"), slow.get(f"/api/search?{asked}")
    slow.close()

    assert quick.status_code == whole.status_code == 200
    assert quick.headers["content-type"] == whole.headers["content-type"]
    assert {**quick.json(), "tookMs": 0} == {**whole.json(), "tookMs": 0}
    # The body is built by hand: it must have each field of the documented record, and no other.
    schemas: dict[str, Any] = {}
    _check_fields(quick.json(), add_schemas(SearchResults, Spelling.CAMEL, schemas), schemas)


def _check_fields(value: Any, schema: dict[str, Any], schemas: dict[str, Any]) -> None:
    schema = schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    if schema.get("type") == "object":
        assert set(value) == set(schema["properties"])
        for name, field in schema["properties"].items():
            _check_fields(value[name], field, schemas)
    elif schema.get("type") == "array":
        for one in value:
            _check_fields(one, schema["items"], schemas)


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ("q=", 422), ("q=a&q=gneiss", 200), ("page=0", 422), ("page=%2B1", 200), ("pageSize=101", 422),
        ("page=1000000001", 422), ("view=other", 422), ("q=gneiss&other=1", 422), ("q=site:", 200),
        ("page=%D9%A1", 422), ("source=none", 404), ("q=gneiss&from=2020-01-01", 200),
        (f"q={'x' * 600}", 422), ("q=before:never", 422),
    ],
)  # fmt: skip
def test_another_search_is_read_by_the_route(archive: Archive, asked: str, status: int) -> None:
    slow = Client(create_inner_app(archive))
    with asking(archive) as client:
        quick, whole = client.get(f"/api/search?{asked}"), slow.get(f"/api/search?{asked}")
    slow.close()

    assert quick.status_code == whole.status_code == status
    changing = {"tookMs": 0, "requestId": ""}
    assert {**quick.json(), **changing} == {**whole.json(), **changing}


def test_a_search_that_takes_too_long_is_not_made_twice(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def never(_self: SearchService, request: SearchRequest) -> None:
        asked.append(request.q)
        raise SearchTooLong("the search took too long; ask for fewer words")

    monkeypatch.setattr(SearchService, "ask", never)
    with asking(archive) as client:
        answer = client.get("/api/search?q=gneiss")

    assert (answer.status_code, answer.json()["code"], asked) == (503, "search_too_long", ["gneiss"])
    assert answer.headers["retry-after"] == "5"
    assert answer.json()["requestId"] == answer.headers["x-request-id"]
