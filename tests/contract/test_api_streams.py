"""The routes of live streams and webhooks on both databases; the streams end soon."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from holdfast.api.live import topics
from holdfast.api.live.hub import EndReason, FrameBatch, Hub, Listener
from holdfast.api.live.topics import CrawlerTopic, EventsTopic, LogKey, LogTopic
from holdfast.auth.principal import ANONYMOUS
from holdfast.auth.roles import Permission, Role
from holdfast.auth.tokens import make_token, revoke_token
from holdfast.auth.users import add_user, find_user
from holdfast.config import JobSettings
from holdfast.db.models import Event, Execution
from holdfast.events import EventName, record_event
from holdfast.jobs import journal
from holdfast.jobs.journal import LogBook
from holdfast.webhooks.events import Position, PublicEvent, newest
from tests.api_bed import CONFIG_FAULT, Server, serving
from tests.clock import FakeClock
from tests.patience import deadline
from tests.receiver import Receiver, receiving


class _Event(NamedTuple):
    name: str
    id: str | None
    data: Any


def _read(answer: httpx.Response) -> list[_Event]:
    """Return the events of a stream, by the rules of the format."""
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    found = []
    for block in answer.text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if "data" in fields:
            found.append(_Event(fields["event"], fields.get("id"), json.loads(fields["data"])))
    return found


@pytest.fixture
def quick(migrated_url: str, clock: FakeClock, tmp_path: Path) -> Iterator[Server]:
    """A server whose streams end at once."""
    with serving(migrated_url, clock, tmp_path) as (server,):
        yield server


def test_what_happens_to_jobs_is_streamed_and_taken_up_again(quick: Server) -> None:
    job_id = quick.bed.once("ex", max_retries=0)
    new = _read(quick.get("/api/crawler/events"))
    quick.bed.run_once(job_id, CONFIG_FAULT)

    all_of_it = _read(quick.get("/api/crawler/events", headers={"Last-Event-ID": "0"}))
    ids = [one.id for one in all_of_it if one.id]
    rest = _read(quick.get("/sse/crawler/events", headers={"Last-Event-ID": ids[1]}))

    assert [one.name for one in new] == ["connected", "end"]
    assert {"job:status", "job:completed", "pipeline:stage"} <= {one.name for one in all_of_it}
    stages = [(one.data["stage"], one.data["status"]) for one in all_of_it if one.name == "pipeline:stage"]
    assert stages == [("crawl", "running"), ("crawl", "failed")]
    assert [one.id for one in rest if one.id] == ids[2:]
    assert rest[-1].data == {"reason": "lifetime"}


def test_the_stream_of_events_speaks_the_words_of_webhooks(quick: Server) -> None:
    job_id = quick.bed.once("ex", max_retries=0)
    quick.bed.run_once(job_id, CONFIG_FAULT)
    with quick.bed.database.write() as session:
        record_event(session, EventName.ALERT_FIRING, at=quick.clock.now(), data={"alert": "low_disk"})

    told = [one for one in _read(quick.get("/api/events", headers={"Last-Event-ID": "0.0.0"})) if one.id]
    rest = [one for one in _read(quick.get("/sse/events", headers={"Last-Event-ID": told[2].id or ""})) if one.id]

    names = [one.name for one in told]
    assert names[0] == "job.created"
    assert {"execution.queued", "execution.started", "execution.failed", "job.failed"} <= set(names)
    assert (names[-1], told[-1].data["alert"]) == ("alert.firing", "low_disk")
    assert [one.id for one in rest] == [one.id for one in told[3:]]


@pytest.mark.parametrize("last_id", ["x", "-1", "1.2", "1.2.x", "9" * 50, "1.2.3.4", "\u0661"])
def test_an_id_that_is_none_of_ours_counts_as_none(quick: Server, last_id: str) -> None:
    for path in ("/api/crawler/events", "/api/events"):
        told = _read(quick.get(path, headers={"Last-Event-ID": last_id.encode()}))
        assert [one.name for one in told] == ["connected", "end"]


def test_a_client_that_missed_too_much_is_told_of_a_gap(quick: Server) -> None:
    with quick.bed.database.write() as session:
        session.add_all(Event(at=quick.clock.now(), name="report.created", data={}) for _ in range(1001))

    told = _read(quick.get("/api/events", headers={"Last-Event-ID": "0.0.0"}))

    assert [one.name for one in told] == ["connected", "gap", "end"]
    assert told[1].id == "0.1001.0"


def _rare(server: Server, *alerts: str) -> None:
    with server.bed.database.write() as session:
        for alert in alerts:
            record_event(session, EventName.ALERT_FIRING, at=server.clock.now(), data={"alert": alert})


def _told(topic: EventsTopic | CrawlerTopic | LogTopic, key: Hashable, listener: Listener) -> str:
    """Return what one look tells a listener."""
    frames = topic.poll([key])[key]
    if frames:
        listener.put(FrameBatch.of(frames))
    listener.end(EndReason.OVER)
    return asyncio.run(listener.next())[0].decode()


def _listener() -> Listener:
    return Listener(ANONYMOUS, Permission.WATCH, {"type": "http", "headers": []})


def test_a_client_that_comes_back_misses_nothing_that_another_table_tells(quick: Server) -> None:
    topic, listener = EventsTopic(quick.bed.database), _listener()
    topic.begin(None)
    before = str(newest_position(quick))
    _rare(quick, *(f"alert {number}" for number in range(5)))
    # Between a look and the next it comes back, and is told of the five; then a job is made.
    listener.has_seen(topic.replay(before))
    quick.bed.once("ex", max_retries=0)

    told = _told(topic, None, listener)

    assert "event: job.created" in told
    assert "alert" not in told


def newest_position(server: Server) -> Position:
    with server.bed.database.read() as session:
        return newest(session)


def test_what_was_missed_is_looked_for_only_so_far_back(quick: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    def nothing_told(_session: object, after: Position, *, limit: int) -> tuple[list[PublicEvent], Position]:
        nonlocal looks
        looks += 1
        return [], after._replace(changes=after.changes + 1)

    _rare(quick, "one")
    monkeypatch.setattr(topics, "read_after", nothing_told)
    frames = EventsTopic(quick.bed.database).replay("0.0.0")

    assert looks == 50
    assert [one.data.startswith(b"event: gap") for one in frames if one.data] == [True]


def test_a_look_that_ends_after_its_last_listener_left_is_forgotten(
    quick: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = CrawlerTopic(quick.bed.database)
    topic.begin(None)
    reading = journal.read_events

    def meanwhile(*arguments: Any, **options: Any) -> list[Any]:
        topic.forget(None)
        return reading(*arguments, **options)

    quick.bed.once("first", max_retries=0)
    with monkeypatch.context() as patched:
        patched.setattr(topics, "read_events", meanwhile)
        topic.poll([None])
    quick.bed.once("second", max_retries=0)
    topic.begin(None)

    assert topic.poll([None]) == {None: []}


def test_the_stream_of_one_execution_ends_with_it_and_tells_its_last_lines(quick: Server) -> None:
    job_id = quick.bed.once("ex", max_retries=0)
    quick.bed.party.scheduler.tick()
    lease = quick.bed.party.taken()
    topic = LogTopic(quick.bed.database)
    one, latest = LogKey(job_id, 1), LogKey(job_id, None)
    for key in (one, latest):
        topic.begin(key)
    # All of it between two looks: the last line, the end, and the next execution with its first line.
    _write_log(quick, lease.execution_id, "last words")
    quick.bed.party.leases.settle(lease, CONFIG_FAULT)
    with quick.bed.database.write() as session:
        first = session.get_one(Execution, lease.execution_id)
        second = Execution(
            job_id=job_id,
            number=2,
            state="running",
            output_dir=first.output_dir,
            config={},
            created_at=first.created_at,
        )
        session.add(second)
        session.flush()
        number = second.id
    _write_log(quick, number, "next one")

    frames = topic.poll([one, latest])
    again = topic.poll([one, latest])

    words = {key: [json.loads(found.data.split(b"data: ")[1]) for found in told] for key, told in frames.items()}
    assert [told.get("message", told.get("status")) for told in words[one]] == ["last words", "failed"]
    assert [told.get("message", told.get("status")) for told in words[latest]] == ["last words", "failed", "next one"]
    assert [found.is_last for found in frames[one]] == [False, True]
    assert not any(found.is_last for found in frames[latest])
    assert again == {one: [], latest: []}


def test_health_and_figures_are_told_at_once(quick: Server) -> None:
    health = _read(quick.get("/api/health/events"))
    figures = _read(quick.get("/sse/metrics/events"))

    assert (health[1].name, health[1].data["status"]) == ("health:status", "ok")
    assert (figures[1].name, figures[1].data["pages"]) == ("metrics:update", 0)


def _write_log(server: Server, execution_id: int, *messages: str) -> None:
    book = LogBook(server.bed.database, server.clock, execution_id, JobSettings())
    for message in messages:
        book.write("info", "crawler.lifecycle", message)
    book.flush()


def test_a_log_is_replayed_and_then_followed(quick: Server) -> None:
    job_id = quick.bed.once("ex", max_retries=0)
    quick.bed.party.scheduler.tick()
    lease = quick.bed.party.taken()
    _write_log(quick, lease.execution_id, *(f"line {number}" for number in range(250)))
    path = f"/api/v1/jobs/{job_id}/logs/stream/v2"

    first = _read(quick.get(path))
    replay = first[1]
    before = int(replay.id or 0) - 30
    missed = _read(quick.get(path, headers={"Last-Event-ID": str(before)}))

    assert (replay.name, replay.data["count"]) == ("log:replay", 200)
    assert [line["message"] for line in replay.data["lines"]] == [f"line {number}" for number in range(50, 250)]
    assert [line["message"] for line in missed[1].data["lines"]] == [f"line {number}" for number in range(220, 250)]
    assert quick.get(f"/api/v1/jobs/{job_id}/logs").json()["stream_v2_available"] is True


def test_the_log_of_a_run_that_is_over_ends_its_stream_and_is_not_asked_for_again(quick: Server) -> None:
    job_id = quick.bed.once("ex", max_retries=0)
    quick.bed.party.scheduler.tick()
    lease = quick.bed.party.taken()
    _write_log(quick, lease.execution_id, "the only line")
    quick.bed.party.leases.settle(lease, CONFIG_FAULT)
    path = f"/api/v1/jobs/{job_id}/logs/stream/v2?execution=1"

    told = _read(quick.get(path))
    again = quick.get(path, headers={"Last-Event-ID": told[1].id or ""})

    assert [one.name for one in told] == ["connected", "log:replay", "log:archived", "end"]
    assert told[-1].data == {"reason": "over"}
    assert (again.status_code, again.text) == (204, "")


def test_a_page_of_another_origin_may_not_listen(quick: Server) -> None:
    for path in ("/api/crawler/events", "/api/events", "/api/health/events", "/api/metrics/events"):
        for origin in ("https://evil.example", "null"):
            refused = quick.get(path, headers={"Origin": origin})
            assert (refused.status_code, refused.json()["code"]) == (403, "origin_refused")
        assert quick.get(path, headers={"Origin": "http://127.0.0.1:8060"}).status_code == 200


def test_a_job_that_is_not_there_has_no_stream(quick: Server) -> None:
    answer = quick.get("/api/v1/jobs/77/logs/stream/v2")

    assert (answer.status_code, answer.json()["code"]) == (404, "job_not_found")
    assert len(quick.client.app.state.hub) == 0  # type: ignore[attr-defined]


def _token(server: Server, role: Role, *scopes: Permission) -> tuple[str, int]:
    with server.bed.database.write() as session:
        user = add_user(session, server.clock, name=f"{role}.one", role=role, password="correct horse battery staple")
        made = make_token(session, server.clock, user, name="watch", scopes=scopes)
        return made.secret, made.row.id


def test_only_who_may_watch_may_listen(quick: Server) -> None:
    member, _ = _token(quick, Role.MEMBER)
    operator, _ = _token(quick, Role.OPERATOR, Permission.WATCH)

    answers = [
        quick.get("/api/crawler/events", headers={"Authorization": f"Bearer {token}"}) for token in (member, operator)
    ]

    assert [answer.status_code for answer in answers] == [403, 200]


def test_a_stream_ends_soon_after_its_token_is_revoked(quick: Server) -> None:
    secret, number = _token(quick, Role.OPERATOR, Permission.WATCH)
    hub: Hub = quick.client.app.state.hub  # type: ignore[attr-defined]
    hub.lasts_s, hub.recheck_s = deadline(30), 0.02

    def revoke() -> None:
        with quick.bed.database.write() as session:
            revoke_token(session, quick.clock, find_user(session, "operator.one"), number)

    async def listen() -> httpx.Response:
        headers = {"Authorization": f"Bearer {secret}"}
        asking = asyncio.create_task(quick.client._ask("GET", "/api/crawler/events", {"headers": headers}))
        while not len(hub):  # noqa: ASYNC110 - the hub tells nobody of a new listener
            await asyncio.sleep(0.005)
        await asyncio.to_thread(revoke)
        # For a second a server may remember who a token belongs to.
        quick.clock.advance(2)
        return await asking

    told = _read(quick.client._runner.run(listen()))

    assert [one.name for one in told if one.name != "beat"] == ["connected", "end"]
    assert told[-1].data == {"reason": "revoked"}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver on a real socket."""
    with receiving() as opened:
        yield opened


def test_webhooks_are_made_shown_changed_and_removed(server: Server) -> None:
    made = server.ask("POST", "/api/admin/webhooks", url="https://example.org/hook", events=["job.*"])
    number = made.json()["id"]
    shown = server.get(f"/api/admin/webhooks/{number}").json()
    changed = server.ask("PATCH", f"/api/admin/webhooks/{number}", events=[], enabled=False).json()
    moved = server.ask("PATCH", f"/api/admin/webhooks/{number}", url="https://example.com/").json()
    rotated = server.ask("POST", f"/api/admin/webhooks/{number}/rotate-secret").json()
    listed = server.get("/api/admin/webhooks").json()
    removed = server.ask("DELETE", f"/api/admin/webhooks/{number}")

    assert made.status_code == 201
    assert made.json()["secret"].startswith("whsec_")
    assert (shown["secret"], shown["events"], shown["enabled"]) == (None, ["job.*"], True)
    assert (changed["secret"], changed["events"], changed["enabled"]) == (None, [], False)
    assert moved["secret"] not in (None, made.json()["secret"])
    assert rotated["secret"] not in (None, moved["secret"])
    assert rotated["previousSecretUntil"] is not None
    assert [one["id"] for one in listed["items"]] == [number]
    assert "whsec_" not in json.dumps(listed)
    assert removed.status_code == 204
    assert server.get(f"/api/admin/webhooks/{number}").status_code == 404
    actions = [action for _, action, _ in server.deeds() if action.startswith("webhook.")]
    assert actions == [f"webhook.{word}" for word in ("added", "changed", "changed", "secret_rotated", "removed")]


def test_a_wrong_webhook_is_refused_with_its_field(server: Server) -> None:
    for body, field in (
        ({"url": "https://a:b@example.org/"}, "url"),
        ({"url": "http://192.168.0.1/"}, "url"),
        ({"url": "https://example.org/", "events": ["job.exploded"]}, "events"),
        ({"url": "https://example.org/", "sources": ["nope"]}, "sources"),
    ):
        answer = server.ask("POST", "/api/admin/webhooks", **body)
        assert (answer.status_code, answer.json()["detail"].partition(":")[0]) == (422, field)


def test_a_test_message_is_sent_and_told_and_can_be_sent_again(
    migrated_url: str, clock: FakeClock, tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_WEBHOOKS_ALLOW_NETWORKS", "127.0.0.0/8")
    with serving(migrated_url, clock, tmp_path) as (server,):
        server.ask("POST", "/api/admin/webhooks", url=receiver.url())
        sent = server.ask("POST", "/api/admin/webhooks/1/test").json()
        path = f"/api/admin/webhooks/1/deliveries/{sent['id']}/redeliver"
        again = server.ask("POST", path).json()
        listed = server.get("/api/admin/webhooks/1/deliveries?limit=1").json()
        pending = server.get("/api/admin/webhooks/1/deliveries?state=failed").json()
        missing = server.ask("POST", "/api/admin/webhooks/1/deliveries/99/redeliver")
        bad = server.get("/api/admin/webhooks/1/deliveries?cursor=x")

    assert (sent["state"], sent["event"], sent["log"][0]["status"]) == ("delivered", "webhook.test", 204)
    assert receiver.received[0].headers["webhook-id"] == sent["messageId"]
    assert (again["state"], again["attempts"], len(again["log"])) == ("pending", 0, 1)
    assert [one["id"] for one in listed["items"]] == [sent["id"]]
    assert pending["items"] == []
    assert (missing.status_code, missing.json()["code"]) == (404, "delivery_not_found")
    assert (bad.status_code, bad.json()["code"]) == (422, "bad_cursor")
