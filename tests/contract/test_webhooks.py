"""Webhooks on both databases, with a receiver on a real socket that checks signatures by another implementation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network
from pathlib import Path

import pytest
from sqlalchemy import select
from standardwebhooks import Webhook as Verifier

from holdfast.clock import SystemClock
from holdfast.config import WebhookSettings
from holdfast.db import connect
from holdfast.db.engine import Database
from holdfast.db.models import AuditEvent, Event, Webhook, WebhookAttempt, WebhookDelivery
from holdfast.errors import Conflict
from holdfast.events import EventName, record_event
from holdfast.types import FetchRequest
from holdfast.webhooks import delivery, queries, registry
from holdfast.webhooks.delivery import (
    RETRIES_S,
    DeliveryThread,
    Result,
    Sender,
    attempt,
    lease_messages,
    queue_events,
    send_test,
    settle,
)
from holdfast.webhooks.events import Position, read_after
from holdfast.webhooks.records import WebhookRecord
from holdfast.webhooks.registry import WebhookRefused
from holdfast.withdrawals.hiding import hide
from tests.clock import FakeClock
from tests.contract.changes_bed import PAGE, compute, day, open_building
from tests.jobs_bed import Bed, failed, open_bed
from tests.patience import deadline
from tests.receiver import Answer, Receiver, receiving

_LOOPBACK = (ip_network("127.0.0.0/8"),)
_SETTINGS = WebhookSettings(allow_networks=_LOOPBACK)
_QUICK_S = 0.02


def _refused() -> Result:
    return attempt(status=500, error="it answered 500", answer="no", took_ms=3), None


@pytest.fixture
def now_clock() -> FakeClock:
    """A clock that shows the real time until it is moved: receivers refuse messages that are minutes old."""
    return FakeClock(SystemClock().now())


@pytest.fixture
def bed(migrated_url: str, now_clock: FakeClock, tmp_path: Path) -> Iterator[Bed]:
    """Jobs on an empty database of each kind."""
    with open_bed(migrated_url, now_clock, tmp_path) as opened:
        yield opened


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver on a real socket."""
    with receiving() as opened:
        yield opened


def _add(bed: Bed, url: str, *events: str, sources: tuple[str, ...] = ()) -> WebhookRecord:
    with bed.database.write() as session:
        return registry.add(session, bed.clock, _SETTINGS, url=url, events=events, sources=sources)


def _tell(bed: Bed, count: int = 1) -> None:
    for number in range(count):
        with bed.database.write() as session:
            record_event(session, EventName.REPORT_CREATED, at=bed.clock.now(), data={"reportId": number})


def _hook(bed: Bed, webhook_id: int) -> Webhook:
    with bed.database.read() as session:
        return session.get_one(Webhook, webhook_id)


def _deliveries(bed: Bed) -> list[WebhookDelivery]:
    with bed.database.read() as session:
        return list(session.scalars(select(WebhookDelivery).order_by(WebhookDelivery.id)))


def _lease(bed: Bed, limit: int = 100) -> list[WebhookDelivery]:
    return [row for row, _ in lease_messages(bed.database, bed.clock, limit=limit)]


def _queued(bed: Bed) -> int:
    return queue_events(bed.database, bed.clock, _SETTINGS)


def test_a_run_is_told_to_whom_it_concerns_and_signed(bed: Bed, receiver: Receiver) -> None:
    made = _add(bed, receiver.url("/all"), "execution.*", "job.failed", sources=("ex",)) if bed.source("ex") else None
    assert made is not None
    assert made.secret is not None
    _add(bed, receiver.url("/other"), "change.detected")
    job_id = bed.upsert(1, max_retries=0).job.id
    bed.run_once(job_id, failed())

    thread = DeliveryThread(bed.database, bed.clock, _SETTINGS, poll_s=_QUICK_S)
    thread.start()
    try:
        received = receiver.wait_for(4, "/all")
    finally:
        thread.close()

    told = [Verifier(made.secret).verify(one.body, one.headers) for one in received]
    by_name = {one["type"]: one["data"] for one in told}
    assert set(by_name) == {"execution.queued", "execution.started", "execution.failed", "job.failed"}
    assert by_name["execution.failed"]["errorMessage"] == "it broke"
    assert {one["jobId"] for one in by_name.values()} == {job_id}
    assert {one["source"] for one in by_name.values()} == {"ex"}
    assert len({one.headers["webhook-id"] for one in received}) == 4
    assert received[0].headers["content-type"] == "application/json"
    assert not [one for one in receiver.received if one.path == "/other"]
    assert {row.state for row in _deliveries(bed)} == {"delivered"}


def test_events_are_queued_once_whoever_looks(bed: Bed) -> None:
    _add(bed, "https://example.org/hook")
    _tell(bed, 3)

    with closing(Database(bed.url)) as other:
        counts = [_queued(bed), queue_events(other, bed.clock, _SETTINGS), _queued(bed)]

    assert counts == [3, 0, 0]
    assert [json.loads(row.body)["data"]["reportId"] for row in _deliveries(bed)] == [0, 1, 2]


def test_what_happened_before_a_webhook_was_made_is_not_told(bed: Bed) -> None:
    _tell(bed, 2)
    _add(bed, "https://example.org/hook")

    assert _queued(bed) == 0


def test_a_webhook_whose_queue_is_full_gets_the_rest_when_there_is_room(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "MAX_WAITING", 1)
    _add(bed, "https://example.org/hook")
    _tell(bed)
    assert queue_events(bed.database, bed.clock, _SETTINGS) == 1
    _tell(bed)

    full = queue_events(bed.database, bed.clock, _SETTINGS)
    (message,) = _lease(bed)
    settle(bed.database, bed.clock, message, (attempt(status=200), None))

    assert full == 0
    assert queue_events(bed.database, bed.clock, _SETTINGS) == 1


def test_a_message_is_tried_by_the_convention_s_times_and_then_the_webhook_is_disabled(
    bed: Bed, now_clock: FakeClock
) -> None:
    made = _add(bed, "https://example.org/hook")
    _tell(bed)
    _queued(bed)
    waits = []
    for _ in range(len(RETRIES_S) + 1):
        (message,) = _lease(bed)
        assert settle(bed.database, bed.clock, message, _refused())
        (row,) = _deliveries(bed)
        waits.append((row.next_at - now_clock.now()).total_seconds())
        assert _lease(bed) == []
        now_clock.advance(waits[-1] if row.state == "pending" else 0.0)

    hook = _hook(bed, made.id)
    with bed.database.read() as session:
        tries = list(session.scalars(select(WebhookAttempt)))
        last = session.scalars(select(Event).order_by(Event.id.desc())).first()
        audited = session.scalars(select(AuditEvent).order_by(AuditEvent.id.desc())).first()

    assert all(told <= wait <= told * 1.1 for told, wait in zip(RETRIES_S, waits, strict=False))
    assert (row.state, row.attempts, row.status) == ("failed", 10, 500)
    assert [(one.status, one.answer) for one in tries] == [(500, "no")] * 10
    assert hook.disabled_at is not None
    assert (last.name, last.data["webhookId"]) == ("webhook.disabled", hook.id) if last else False
    assert audited is not None
    assert audited.action == "webhook.disabled"


def test_a_receiver_that_is_gone_is_not_asked_again(bed: Bed) -> None:
    made = _add(bed, "https://example.org/hook")
    _tell(bed)
    _queued(bed)
    (message,) = _lease(bed)

    settle(bed.database, bed.clock, message, (attempt(status=410, error="it answered 410"), None))

    assert _hook(bed, made.id).disabled_reason == "it answered 410: the receiver is gone for good"
    assert _deliveries(bed)[0].state == "failed"


def test_a_receiver_may_ask_for_a_longer_wait(bed: Bed, now_clock: FakeClock) -> None:
    _add(bed, "https://example.org/hook")
    _tell(bed)
    _queued(bed)
    (message,) = _lease(bed)

    settle(bed.database, bed.clock, message, (attempt(status=429, error="it answered 429"), 900))

    assert _deliveries(bed)[0].next_at == now_clock.now() + timedelta(seconds=900)


def test_two_processes_never_hold_one_message_and_a_late_one_changes_nothing(bed: Bed, now_clock: FakeClock) -> None:
    _add(bed, "https://example.org/hook")
    _tell(bed, 6)
    _queued(bed)
    with closing(Database(bed.url)) as other:
        first = _lease(bed)
        second = lease_messages(other, bed.clock, limit=100)
    assert (len(first), second) == (4, [])  # four at once of one webhook, whoever sends them

    now_clock.advance(delivery.TIMEOUT_S + 31)
    again = _lease(bed)
    late = settle(bed.database, bed.clock, first[0], _refused())

    assert {one.id for one in again} == {one.id for one in first}
    assert late is False
    assert {row.attempts for row in _deliveries(bed)} == {0}


def test_delivery_of_a_dead_owner_is_free_at_once(bed: Bed) -> None:
    _add(bed, "https://example.org/hook")
    _tell(bed)
    _queued(bed)
    with closing(connect(bed.url)) as raw_db, raw_db.write() as tx:
        [(owner_id,)] = tx.execute(
            "INSERT INTO owners (kind, host, pid, run_file, started_at, heartbeat_at)"
            " VALUES ('worker', 'h', 1, 'r', 1, 1) RETURNING id"
        )
    [(first, _)] = lease_messages(bed.database, bed.clock, limit=100, owner_id=owner_id)
    assert _lease(bed) == []

    with closing(connect(bed.url)) as raw_db, raw_db.write() as tx:
        tx.execute("UPDATE owners SET ended_at = 2")
    [again] = _lease(bed)

    assert (again.id, again.token) == (first.id, first.token + 1)
    assert settle(bed.database, bed.clock, first, _refused()) is False
    assert settle(bed.database, bed.clock, again, _refused()) is True
    assert settle(bed.database, bed.clock, again, _refused()) is False, "it was released"


def test_redelivery_rejects_the_result_of_the_attempt_before(bed: Bed) -> None:
    made = _add(bed, "https://example.org/hook")
    _tell(bed)
    _queued(bed)
    [sending] = _lease(bed)
    with bed.database.write() as session:
        registry.redeliver(session, bed.clock, made.id, sending.id)

    assert settle(bed.database, bed.clock, sending, _refused()) is False
    [again] = _lease(bed)
    assert settle(bed.database, bed.clock, again, _refused()) is True


def test_a_receiver_that_hangs_delays_no_other(bed: Bed, receiver: Receiver) -> None:
    _add(bed, receiver.url("/hangs"))
    _add(bed, receiver.url("/works"))
    receiver.hangs.add("/hangs")
    _tell(bed, 10)

    thread = DeliveryThread(bed.database, bed.clock, _SETTINGS, poll_s=_QUICK_S)
    thread.start()
    try:
        worked = receiver.wait_for(10, "/works")
        hung = [one for one in receiver.received if one.path == "/hangs"]
        receiver.released.set()
    finally:
        thread.close()

    assert len(worked) == 10
    assert len(hung) <= delivery.PER_HOOK


def test_a_message_that_was_under_way_at_the_end_of_a_process_is_sent_by_the_next(bed: Bed, receiver: Receiver) -> None:
    _add(bed, receiver.url("/hangs"))
    receiver.hangs.add("/hangs")
    _tell(bed)
    thread = DeliveryThread(bed.database, bed.clock, _SETTINGS, poll_s=_QUICK_S)
    thread.start()
    receiver.wait_for(1, "/hangs")
    thread.close()

    receiver.released.set()
    following = DeliveryThread(bed.database, bed.clock, _SETTINGS, poll_s=_QUICK_S)
    following.start()
    try:
        received = receiver.wait_for(2, "/hangs")
    finally:
        following.close()

    assert received[0].headers["webhook-id"] == received[1].headers["webhook-id"]
    assert _deliveries(bed)[0].state == "delivered"


def test_a_message_that_cannot_be_sent_in_an_unforeseen_way_counts_as_tried(
    bed: Bed, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(_self: Sender, _request: FetchRequest) -> Result:
        raise ZeroDivisionError

    monkeypatch.setattr(Sender, "send", broken)
    _add(bed, receiver.url("/hook"))
    _tell(bed)
    thread = DeliveryThread(bed.database, bed.clock, _SETTINGS, poll_s=_QUICK_S)
    thread.start()
    try:
        limit = SystemClock().monotonic() + deadline(10)
        while not (tried := [row.attempts for row in _deliveries(bed) if row.attempts]):
            assert SystemClock().monotonic() < limit
    finally:
        thread.close()
    with bed.database.read() as session:
        errors = list(session.scalars(select(WebhookAttempt.error)))

    assert (tried, errors) == ([1], ["it could not be sent: ZeroDivisionError"])


def test_nothing_is_read_for_a_webhook_whose_queue_is_full(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    _add(bed, "https://hook.example/")
    monkeypatch.setattr(delivery, "MAX_WAITING", 1)
    _tell(bed, 2)
    queued = queue_events(bed.database, bed.clock, _SETTINGS)
    _tell(bed, 2)

    def forbidden(*_arguments: object, **_options: object) -> None:
        raise AssertionError("it was read")

    monkeypatch.setattr(delivery, "read_after", forbidden)

    assert (queued, queue_events(bed.database, bed.clock, _SETTINGS)) == (2, 0)


def test_redirects_are_not_followed_and_answers_are_kept_in_part(bed: Bed, receiver: Receiver) -> None:
    made = _add(bed, receiver.url("/moved"))
    moved = Answer(302, (("Location", receiver.url("/private")),), b"x" * 5000)
    receiver.answers["/moved"] = lambda _: moved

    number = send_test(bed.database, bed.clock, _SETTINGS, made.id)

    with bed.database.read() as session:
        row = queries.delivery(session, number)
        (attempt,) = queries.attempts_of(session, [number])[number]
    assert row is not None
    assert (row.state, attempt.status, attempt.answer) == ("failed", 302, "x" * 1024)
    assert "redirects are not followed" in (attempt.error or "")
    assert [one.path for one in receiver.received] == ["/moved"]


@pytest.mark.parametrize("status", [500, 410])
def test_a_test_whose_process_died_is_tried_no_further_and_disables_nothing(
    bed: Bed, now_clock: FakeClock, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    made = _add(bed, "https://example.org/hook")

    async def dies(*_: object) -> Result:
        raise SystemExit

    monkeypatch.setattr("holdfast.webhooks.delivery._send_one", dies)
    with pytest.raises(SystemExit):
        send_test(bed.database, bed.clock, _SETTINGS, made.id)
    now_clock.advance(delivery.TIMEOUT_S + 31)
    (message,) = _lease(bed)
    settle(bed.database, bed.clock, message, (attempt(status=status, error=f"it answered {status}"), None))
    now_clock.advance(4 * 86_400)

    assert (_lease(bed), [row.state for row in _deliveries(bed)]) == ([], ["failed"])
    assert _hook(bed, made.id).disabled_at is None


def test_nothing_is_sent_to_a_private_address(bed: Bed, receiver: Receiver) -> None:
    made = _add(bed, f"http://localhost:{receiver.port}/hook")
    closed = WebhookSettings()

    number = send_test(bed.database, bed.clock, closed, made.id)

    with bed.database.read() as session:
        (attempt,) = queries.attempts_of(session, [number])[number]
    assert "does not lead to a public address" in (attempt.error or "")
    assert receiver.received == []


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("https://user:secret@example.org/", "carries a user or a password"),
        ("https://user@example.org/", "carries a user or a password"),
        ("http://10.0.0.7/hook", "does not lead to a public address"),
        ("https://LocalHost:8443/hook", "does not lead to a public address"),
        ("https://here.localhost./hook", "does not lead to a public address"),
        ("http://0x7f.1/hook", "does not lead to a public address"),
        ("http://[::1]/hook", "does not lead to a public address"),
        ("ftp://example.org/", "http or https"),
        ("example.org", "http or https"),
        ("", "http or https"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused_with_its_reason(bed: Bed, url: str, reason: str) -> None:
    with pytest.raises(WebhookRefused, match=reason) as caught, bed.database.write() as session:
        registry.add(session, bed.clock, WebhookSettings(), url=url)

    assert "secret" not in str(caught.value)


def test_during_a_rotation_both_secrets_hold_and_then_the_new_one_alone(
    bed: Bed, receiver: Receiver, now_clock: FakeClock
) -> None:
    made = _add(bed, receiver.url())
    assert made.secret is not None
    with bed.database.write() as session:
        rotated = registry.rotate(session, bed.clock, made.id).secret
    assert rotated is not None

    send_test(bed.database, bed.clock, _SETTINGS, made.id)
    now_clock.advance(24 * 3600 + 1)
    send_test(bed.database, bed.clock, _SETTINGS, made.id)

    first, second = receiver.received
    for secret in (made.secret, rotated):
        assert Verifier(secret).verify(first.body, first.headers)["type"] == "webhook.test"
    at = datetime.fromtimestamp(int(second.headers["webhook-timestamp"]), UTC)
    signed = Verifier(rotated).sign(second.headers["webhook-id"], at, second.body.decode())
    assert second.headers["webhook-signature"] == signed


def test_an_address_on_another_host_gets_a_secret_of_its_own(bed: Bed) -> None:
    made = _add(bed, "https://example.org/hook")
    with bed.database.write() as session:
        registry.rotate(session, bed.clock, made.id)
        same = registry.change(session, bed.clock, 1, settings=_SETTINGS, url="https://example.org/b")
    before = _hook(bed, 1).secret
    with bed.database.write() as session:
        other = registry.change(session, bed.clock, 1, settings=_SETTINGS, url="https://example.com/b")

    assert same.secret is None
    assert other.secret not in (None, before)
    hook = _hook(bed, 1)
    assert (hook.secret, hook.previous_secret) == (other.secret, None)


def test_an_enabled_webhook_gets_what_waited_and_nothing_of_what_it_missed(bed: Bed) -> None:
    made = _add(bed, "https://example.org/hook")
    _tell(bed)
    _queued(bed)
    with bed.database.write() as session:
        registry.change(session, bed.clock, made.id, settings=_SETTINGS, enabled=False)
    _tell(bed, 3)
    assert (_queued(bed), _lease(bed)) == (0, [])

    with bed.database.write() as session:
        registry.change(session, bed.clock, made.id, settings=_SETTINGS, enabled=True)

    assert _queued(bed) == 0
    assert len(_lease(bed)) == 1


def test_a_removed_webhook_takes_its_deliveries_along(bed: Bed) -> None:
    made, other = _add(bed, "https://example.org/hook"), _add(bed, "https://example.org/other")
    _tell(bed, 5)
    _queued(bed)

    registry.remove(bed.database.write, bed.clock, made.id)

    assert {row.webhook_id for row in _deliveries(bed)} == {other.id}
    with bed.database.read() as session:
        assert [row.id for row in queries.webhooks(session, limit=10)] == [other.id]


def test_webhooks_beyond_the_limit_are_refused(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "MAX_WEBHOOKS", 1)
    _add(bed, "https://example.org/hook")

    with pytest.raises(Conflict, match="there are 1 webhooks already"), bed.database.write() as session:
        registry.add(session, bed.clock, _SETTINGS, url="https://example.org/b")


def test_what_is_over_is_forgotten_in_time_and_what_waits_is_not(bed: Bed, now_clock: FakeClock) -> None:
    _add(bed, "https://example.org/hook")
    _tell(bed, 2)
    _queued(bed)
    settle(bed.database, bed.clock, _lease(bed, 1)[0], (attempt(status=200), None))
    now_clock.advance(31 * 86_400)

    with bed.database.write() as session:
        before = bed.clock.now() - timedelta(days=30)
        dropped = queries.drop_finished(session, before=before, limit=10)

    assert dropped == 1
    assert [row.state for row in _deliveries(bed)] == ["pending"]


def test_the_newest_event_is_never_pruned_so_that_numbers_are_not_used_again(bed: Bed, now_clock: FakeClock) -> None:
    job_id = bed.once("ex")
    bed.run_once(job_id)
    _tell(bed, 3)
    now_clock.advance(60 * 86_400)
    bed.party.scheduler.tick()
    _add(bed, "https://example.org/hook")

    _tell(bed)

    assert _queued(bed) == 1
    with bed.database.read() as session:
        assert [row.id for row in session.scalars(select(Event))] == [3, 4]


def test_no_event_carries_the_address_of_a_capture_that_was_withdrawn_meanwhile(
    database_url: str, tmp_path: Path
) -> None:
    other = "https://example.org/other"
    with open_building(tmp_path, database_url) as build:
        archive = build([day(0, "one"), day(0, "one", url=other), day(1, "two"), day(1, "two", url=other)])
        database, clock = archive.database, archive.clock
        for name in ("queued", "late"):
            with database.write() as session:
                url = f"https://{name}.example.org/"
                registry.add(session, clock, _SETTINGS, url=url, events=("change.detected",))
        compute(archive)
        with database.write() as session:  # its queue was full
            late = session.get_one(Webhook, 2)
            before, late.disabled_at = late.changes_after, clock.now()
        assert queue_events(database, clock, _SETTINGS) == 2
        hide(database, clock, PAGE, reason="asked for")
        compute(archive)
        with database.write() as session:
            session.get_one(Webhook, 2).disabled_at = None
        assert queue_events(database, clock, _SETTINGS) == 2

        messages = lease_messages(database, clock, limit=10)

        told = [(json.loads(row.body)["type"], json.loads(row.body)["data"]["url"]) for row, _ in messages]
        assert sorted(told, key=str) == [("change.detected", other)] * 2 + [("change.detected", None)] * 2
        with database.read() as session:
            kept = list(session.scalars(select(WebhookDelivery.body)))
            streamed, _ = read_after(session, Position(changes=before), limit=10)
        assert PAGE not in str(kept), "nor is it kept to be sent again"
        urls = {event.data["url"] for event in streamed if event.name == "change.detected"}
        assert (len(streamed), urls) == (4, {None, other})
