"""Queues events for webhooks and sends them: at least once, signed, oldest first, retried for three days.

Rows are the queue. Each attempt has a lease with a token, so that any number of processes may send; an
expired lease changes nothing. A hanging receiver only occupies its own few places.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from datetime import datetime, timedelta
from random import SystemRandom
from threading import Event, Thread

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from holdfast import __version__, audit, log
from holdfast.clock import Clock, SystemClock
from holdfast.config import Settings, WebhookSettings
from holdfast.db.engine import Database, SessionClock, moment_in
from holdfast.db.models import Webhook, WebhookAttempt, WebhookDelivery
from holdfast.errors import HoldfastError
from holdfast.events import EventName, record_event
from holdfast.fetch.client import Client, ClientSettings
from holdfast.fetch.guard import AddressGuard
from holdfast.outside_text import clean
from holdfast.processes import leases
from holdfast.types import Fetched, FetchRequest
from holdfast.warc.payload import parse_head, payload_chunks
from holdfast.webhooks import queries
from holdfast.webhooks.events import Position, PublicEvent, newest, read_after, withdrawn_changes, without_address
from holdfast.webhooks.registry import find, is_wanted, new_message_id, secrets_of, signed_headers

TIMEOUT_S = 15.0
"""Timeout for a receiver's response."""
# Limits of concurrent messages per process and per webhook: a slow receiver must not occupy all places.
_PARALLEL, PER_HOOK = 32, 4
MAX_WAITING = 10_000
"""Limit of pending deliveries per webhook; later events are queued when there is room."""
_KEEP_DAYS = 30
"""Days after which finished deliveries are deleted."""

_log = log.get()
RETRIES_S = (5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)
"""Seconds before the second attempt and each later one, as in the convention; then the webhook is disabled."""
# Random spread of the retries, so that messages that failed together are not retried together.
_JITTER = 0.1
ANSWER_BYTES = 1024
"""Bytes of a response that are stored."""
_ANSWER_LIMIT = 64 * 1024
_ERROR_CHARS = 500
# Events of each kind that one pass queues, and the longest wait that a receiver may request.
_EVENTS = 200
_LONGEST_S = 86_400
# How much longer a lease lasts than an attempt: a slow process needs time to store the result.
_GRACE_S = 30.0
_PRUNE_S = 3600.0
_PRUNED = 500
_LET_GO_S = 2.0
_random = SystemRandom()


Message = tuple[WebhookDelivery, FetchRequest]
"""A leased delivery, and its signed request."""
Result = tuple[WebhookAttempt, int | None]
"""An attempt, without its delivery and time, and the seconds that the receiver asked to wait."""


def attempt(
    *, status: int | None = None, error: str | None = None, answer: str | None = None, took_ms: int = 0
) -> WebhookAttempt:
    """Return an attempt; `error` says why there was no response or why it does not count, None on success."""
    return WebhookAttempt(status=status, error=error, answer=answer, took_ms=took_ms)


class Sender:
    """Sends messages through our own HTTP client: the address guard checks each connection; no redirects."""

    def __init__(self, settings: WebhookSettings, clock: Clock) -> None:
        self._settings = settings
        client = ClientSettings(
            user_agent=f"Holdfast-Webhooks/{__version__}",
            accept="*/*",
            connect_timeout_s=10.0,
            max_header_bytes=16 * 1024,
            max_connections=_PARALLEL,
        )
        self._client = Client(client, AddressGuard(settings.allow_networks), clock)

    async def send(self, request: FetchRequest) -> Result:
        """Attempt one delivery and return the result; never raises because of a receiver."""
        found = await self._client.fetch(request)
        took_ms = int(found.took_s * 1000)
        if not isinstance(found, Fetched):
            return attempt(error=clean(found.message, _ERROR_CHARS), took_ms=took_ms), None
        head = parse_head(found.response_head)
        try:
            answer = _beginning(payload_chunks(head, found.body))
        finally:
            found.body.close()
        if 200 <= found.status < 300:
            return attempt(status=found.status, answer=answer, took_ms=took_ms), None
        error = f"it answered {found.status}"
        if 300 <= found.status < 400:
            error += ": redirects are not followed, set the webhook's address to where it is now"
        wait = head.get("retry-after") or ""
        seconds = min(int(wait), _LONGEST_S) if wait.isdecimal() and len(wait) < 9 else None
        return attempt(status=found.status, error=error, answer=answer, took_ms=took_ms), seconds

    async def close(self) -> None:
        await self._client.close()


def _beginning(answer: Iterator[bytes]) -> str | None:
    kept = b""
    for piece in answer:
        kept += piece
        if len(kept) >= ANSWER_BYTES:
            break
    return clean(kept[:ANSWER_BYTES].decode("utf-8", "replace"), ANSWER_BYTES) or None


def queue_events(database: Database, clock: Clock, settings: WebhookSettings) -> int:
    """Queue deliveries for new events to interested webhooks; return how many. Usually one cheap query."""
    with database.read() as session:
        hooks = queries.enabled_webhooks(session)
        last = newest(session) if hooks else Position()
        behind = [hook for hook in hooks if _position(hook) != last]
        waiting = queries.pending_counts(session) if behind else {}
        # Skip the other webhooks: each pass would read thousands of rows for a receiver that is away for days.
        room = {hook.id: _position(hook) for hook in behind if waiting.get(hook.id, 0) < MAX_WAITING}
        # Read outside the write transaction, so that SQLite's other writers do not wait.
        found = {position: read_after(session, position, limit=_EVENTS) for position in set(room.values())}
    if not room:
        return 0
    queued = 0
    with database.write() as session:
        now = moment_in(session, clock)
        for hook in queries.enabled_webhooks(session, locked=True):
            # Another process may have queued the same events meanwhile: then the position has changed.
            if hook.id in room and (read := found.get(_position(hook))) is not None:
                events, following = read
                rows = [_row(hook, event, now) for event in events if is_wanted(hook, event.name, event.source)]
                queries.insert_deliveries(session, rows)
                hook.jobs_after, hook.events_after, hook.changes_after = following
                queued += len(rows)
    return queued


def _position(hook: Webhook) -> Position:
    return Position(hook.jobs_after, hook.events_after, hook.changes_after)


def _row(hook: Webhook, event: PublicEvent, now: datetime) -> dict[str, object]:
    return {
        "webhook_id": hook.id,
        "event_key": event.key,
        "message_id": new_message_id(),
        "event": event.name.value,
        "body": event.body(),
        "state": "pending",
        "next_at": now,
        "created_at": now,
    }


def lease_messages(database: Database, clock: Clock, *, limit: int, owner_id: int | None = None) -> list[Message]:
    """Lease due deliveries, only a few of each webhook."""
    with database.read() as session:
        due = queries.webhooks_due(session, now=moment_in(session, clock))
    if not due or limit <= 0:
        return []
    # Rotate the order: with more webhooks than places, each gets its turn.
    _random.shuffle(due)
    messages: list[Message] = []
    with database.write() as session:
        now = moment_in(session, clock)
        until = now + timedelta(seconds=TIMEOUT_S + _GRACE_S)
        for webhook_id in due:
            under_way = queries.leased_count(session, webhook_id=webhook_id, now=now)
            most = min(PER_HOOK - under_way, limit - len(messages))
            if most <= 0:
                continue
            hook = queries.webhook(session, webhook_id)
            rows = queries.lease_due(
                session, webhook_id=webhook_id, owner_id=owner_id, now=now, until=until, limit=most
            )
            _hide_withdrawn(session, rows)
            messages += [_message(hook, row, now) for row in rows if hook is not None]
    return messages


def _hide_withdrawn(session: Session, rows: Sequence[WebhookDelivery]) -> None:
    """Remove URLs from pending or redelivered messages if their captures were taken down since."""
    hidden = withdrawn_changes(session, [row.event_key for row in rows])
    for row in rows:
        if row.event_key in hidden:
            row.body = without_address(row.body)


def _message(hook: Webhook, row: WebhookDelivery, now: datetime) -> Message:
    body = row.body.encode()
    signed = signed_headers(secrets_of(hook, now=now), row.message_id, int(now.timestamp()), body)
    headers = (("Content-Type", "application/json"), ("Accept-Encoding", "identity"), *signed)
    request = FetchRequest(
        url=hook.url, headers=headers, content=body, deadline_s=TIMEOUT_S, max_body_bytes=_ANSWER_LIMIT
    )
    return row, request


def settle(database: Database, clock: Clock, leased: WebhookDelivery, result: Result) -> bool:
    """Record the result of an attempt and schedule what follows; return False if the lease was lost meanwhile."""
    with database.write() as session:
        row = queries.held_delivery(session, leased)
        if row is None:
            return False
        tried, retry_after_s = result
        now = moment_in(session, clock)
        _note(session, row, tried, now)
        if tried.error is None:
            row.state, row.finished_at = "delivered", now
        elif row.event == EventName.WEBHOOK_TEST:
            # A process died while it waited for the response: a test message is not retried, and its failure does not
            # count for the webhook.
            row.state, row.finished_at = "failed", now
        elif tried.status == 410:
            row.state, row.finished_at = "failed", now
            _disable(session, clock, row, now, "it answered 410: the receiver is gone for good")
        elif row.attempts > len(RETRIES_S):
            row.state, row.finished_at = "failed", now
            _disable(session, clock, row, now, f"{row.attempts} attempts at one message failed: {tried.error}")
        else:
            wait = RETRIES_S[row.attempts - 1] * (1 + _random.uniform(0, _JITTER))
            row.next_at = now + timedelta(seconds=max(wait, retry_after_s or 0))
    return True


def _note(session: Session, row: WebhookDelivery, tried: WebhookAttempt, now: datetime) -> None:
    row.attempts += 1
    row.status = tried.status
    leases.release(row)
    tried.delivery_id, tried.at = row.id, now
    session.add(tried)


def _disable(session: Session, clock: Clock, row: WebhookDelivery, now: datetime, reason: str) -> None:
    hook = find(session, row.webhook_id)
    if hook.disabled_at is not None:
        return
    hook.disabled_at, hook.disabled_reason, hook.updated_at = now, reason, now
    audit.record(session, clock, action="webhook.disabled", subject=f"webhook {hook.id}", detail={"reason": reason})
    _log.warning("webhook.disabled", webhook=hook.id, reason=reason)
    record_event(session, EventName.WEBHOOK_DISABLED, at=now, data={"webhookId": hook.id, "reason": reason})


def send_test(database: Database, clock: Clock, settings: WebhookSettings, webhook_id: int) -> int:
    """Send a test message now and wait for the response; return its delivery's id. Raise WebhookNotFound.

    It is attempted once, even if the webhook is disabled.
    """
    with database.write() as session:
        hook, now = find(session, webhook_id), moment_in(session, clock)
        data = {"webhookId": hook.id, "message": "This is a test message of Holdfast."}
        event = PublicEvent(f"test:{secrets.token_hex(16)}", EventName.WEBHOOK_TEST, now, None, data)
        row = WebhookDelivery(**_row(hook, event, now))
        leases.take(row, None, until=now + timedelta(seconds=TIMEOUT_S + _GRACE_S))
        session.add(row)
        session.flush()
        request = _message(hook, row, now)[1]
    tried, _ = asyncio.run(_send_one(settings, clock, request))
    with database.write() as session:
        if (held := queries.held_delivery(session, row)) is not None:
            now = moment_in(session, clock)
            _note(session, held, tried, now)
            held.state, held.finished_at = "delivered" if tried.error is None else "failed", now
    return row.id


async def _send_one(settings: WebhookSettings, clock: Clock, request: FetchRequest) -> Result:
    sender = Sender(settings, clock)
    try:
        return await sender.send(request)
    finally:
        await sender.close()


class DeliveryThread:
    """Queues and sends until it is closed, on its own thread and event loop."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        settings: WebhookSettings,
        *,
        poll_s: float,
        owner_id: int | None = None,
    ) -> None:
        self._database, self._settings, self._poll_s, self._owner_id = database, settings, poll_s, owner_id
        # Several machines share the leases, so the database's clock decides if the database is on another machine.
        self._clock: Clock = SessionClock(clock) if isinstance(clock, SystemClock) else clock
        self._ending = Event()
        self._wake = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pruned_at: float | None = None
        self._thread = Thread(target=self._run, name="webhooks", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Stop; running requests may finish within a moment, and another process sends the rest."""
        self._ending.set()
        if self._thread.is_alive():
            # The loop may be ending by itself right now.
            with suppress(RuntimeError):
                if self._loop is not None:
                    self._loop.call_soon_threadsafe(self._wake.set)
            self._thread.join()

    def _run(self) -> None:
        while not self._ending.is_set():
            try:
                asyncio.run(self._serve())
            except Exception:
                # If this thread ended, nothing would ever be sent, and no request would notice.
                _log.exception("webhooks.failed")
                self._ending.wait(self._poll_s)

    async def _serve(self) -> None:
        self._wake, self._loop = asyncio.Event(), asyncio.get_running_loop()
        # Use one thread, and so one connection, for all reads and writes here: the others are for requests.
        self._loop.set_default_executor(ThreadPoolExecutor(1, "webhooks"))
        sender = Sender(self._settings, self._clock)
        under_way: dict[asyncio.Task[None], WebhookDelivery] = {}

        def ended(task: asyncio.Task[None]) -> None:
            under_way.pop(task)
            # Its place is free: more messages may wait for the same receiver.
            self._wake.set()

        try:
            while not self._ending.is_set():
                self._wake.clear()
                for leased, request in await asyncio.to_thread(self._look, _PARALLEL - len(under_way)):
                    delivering = self._deliver(sender, leased, request)
                    task = asyncio.create_task(delivering, name=f"deliver {leased.id}")
                    under_way[task] = leased
                    task.add_done_callback(ended)
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._poll_s):
                        await self._wake.wait()
            if under_way:
                await asyncio.wait(under_way, timeout=_LET_GO_S)
        finally:
            left = dict(under_way)
            for task in left:
                task.cancel()
            if left:
                await asyncio.wait(left, timeout=_LET_GO_S)
            await sender.close()
            await asyncio.to_thread(self._tried, lambda: self._release(left.values()))

    def _look(self, room: int) -> list[Message]:
        self._tried(lambda: queue_events(self._database, self._clock, self._settings))
        self._tried(self._prune)
        found = self._tried(lambda: lease_messages(self._database, self._clock, limit=room, owner_id=self._owner_id))
        return found if isinstance(found, list) else []

    def _tried(self, work: Callable[[], object]) -> object:
        try:
            return work()
        except (HoldfastError, SQLAlchemyError, OSError) as exc:
            _log.warning("webhooks.wait", message=str(exc).partition("\n")[0])
            return None

    async def _deliver(self, sender: Sender, leased: WebhookDelivery, request: FetchRequest) -> None:
        result: Result
        try:
            result = await sender.send(request)
        except HoldfastError as exc:
            result = attempt(error=clean(str(exc), _ERROR_CHARS)), None
        except Exception as exc:
            # Count an unexpected error like any other failure: otherwise the message would be retried forever, whenever
            # its lease ends, and its webhook would never be disabled.
            _log.exception("webhooks.send_failed", delivery=leased.id)
            result = attempt(error=f"it could not be sent: {type(exc).__name__}"), None
        with suppress(asyncio.CancelledError):
            kept = await asyncio.to_thread(self._tried, lambda: settle(self._database, self._clock, leased, result))
            if kept is not True:
                # Its lease expires, and the message is sent again: delivery is at least once.
                _log.warning("webhooks.unsettled", delivery=leased.id)

    def _prune(self) -> None:
        now = self._clock.monotonic()
        if self._pruned_at is not None and now - self._pruned_at < _PRUNE_S:
            return
        with self._database.write() as session:
            before = moment_in(session, self._clock) - timedelta(days=_KEEP_DAYS)
            dropped = queries.drop_finished(session, before=before, limit=_PRUNED)
        # After a full portion, the next pass deletes more.
        self._pruned_at = None if dropped == _PRUNED else now

    def _release(self, unsent: Collection[WebhookDelivery]) -> None:
        if not unsent:
            return
        with self._database.write() as session:
            for leased in unsent:
                if (held := queries.held_delivery(session, leased)) is not None:
                    leases.release(held)


@contextmanager
def open_deliveries(settings: Settings, *, owner_id: int) -> Iterator[None]:
    """Queue and send for this owner while the block runs, with a connection of its own."""
    with closing(Database(settings.database)) as database:
        poll_s = settings.timings.webhooks_poll_s
        thread = DeliveryThread(database, SystemClock(), settings.webhooks, poll_s=poll_s, owner_id=owner_id)
        thread.start()
        try:
            yield
        finally:
            thread.close()
