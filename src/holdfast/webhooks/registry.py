"""Management of webhooks: create, change, rotate the secret, delete; validation of target URLs.

A secret is shown once, when it is created. A URL on another host gets a new secret.
"""

from __future__ import annotations

import hmac
import secrets
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from hashlib import sha256
from ipaddress import IPv4Address
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from holdfast import audit
from holdfast.clock import Clock
from holdfast.config import WebhookSettings
from holdfast.db.audit_events import AuditAction, acting_user
from holdfast.db.engine import Database, moment_in
from holdfast.db.models import Webhook
from holdfast.errors import Conflict, Invalid, NotFound, UrlRefused
from holdfast.events import EventName
from holdfast.fetch.guard import REFUSAL, AddressGuard, parse_target
from holdfast.processes.leases import revoke
from holdfast.sources.queries import source_by_code
from holdfast.urls import parse
from holdfast.webhooks import queries
from holdfast.webhooks.events import newest
from holdfast.webhooks.records import DeliveryRecord, WebhookRecord, delivery_record, webhook_record

MAX_WEBHOOKS = 100
"""Limited because each event is compared with every webhook."""

OVERLAP = timedelta(hours=24)
"""How long messages are also signed with the old secret after a rotation."""
GROUPS = tuple(sorted({f"{name.partition('.')[0]}.*" for name in EventName}))
_MAX_URL_CHARS = 2048
_LOOPBACK = IPv4Address("127.0.0.1")
_MAX_NOTE_CHARS = 500
_PORTION = 1000


PREFIX = "whsec_"
# The convention requires 24 to 64 bytes.
_SECRET_BYTES = 32


def new_secret() -> str:
    return PREFIX + b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def new_message_id() -> str:
    return f"msg_{secrets.token_hex(16)}"


def signature(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    key = b64decode(secret.removeprefix(PREFIX))
    signed = b"%b.%d.%b" % (message_id.encode(), timestamp, body)
    return f"v1,{b64encode(hmac.new(key, signed, sha256).digest()).decode()}"


def signed_headers(known: Iterable[str], message_id: str, timestamp: int, body: bytes) -> tuple[tuple[str, str], ...]:
    signatures = " ".join(signature(secret, message_id, timestamp, body) for secret in known)
    return (("webhook-id", message_id), ("webhook-timestamp", str(timestamp)), ("webhook-signature", signatures))


class WebhookRefused(Invalid):
    """Invalid webhook; `field` names the invalid part."""

    code = "webhook_refused"

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field, self.reason = field, reason


class WebhookNotFound(NotFound):
    """The webhook does not exist."""

    code = "webhook_not_found"

    def __init__(self, webhook_id: int) -> None:
        super().__init__(f"there is no webhook {webhook_id}; see them with: holdfast webhook list")


class DeliveryNotFound(NotFound):
    """The delivery does not exist."""

    code = "delivery_not_found"

    def __init__(self, delivery_id: int) -> None:
        super().__init__(
            f"there is no delivery {delivery_id}, or none any more; see them with: holdfast webhook deliveries"
        )


class WebhookDisabled(Conflict):
    """A disabled webhook receives no messages."""

    code = "webhook_disabled"

    def __init__(self, webhook_id: int) -> None:
        super().__init__(
            f"webhook {webhook_id} is disabled; enable it first: holdfast webhook enable {webhook_id} "
            f"(over HTTP: PATCH with enabled true)"
        )


def find(session: Session, webhook_id: int) -> Webhook:
    found = queries.webhook(session, webhook_id)
    if found is None:
        raise WebhookNotFound(webhook_id)
    return found


def shown(session: Session, webhook_id: int) -> WebhookRecord:
    return webhook_record(find(session, webhook_id), waiting=queries.pending_counts(session).get(webhook_id, 0))


def find_delivery(database: Database, delivery_id: int) -> DeliveryRecord:
    with database.read() as session:
        row = queries.delivery(session, delivery_id)
        if row is None:
            raise DeliveryNotFound(delivery_id)
        return delivery_record(row, queries.attempts_of(session, [delivery_id])[delivery_id])


def add(
    session: Session,
    clock: Clock,
    settings: WebhookSettings,
    *,
    url: str,
    description: str | None = None,
    events: Sequence[str] = (),
    sources: Sequence[str] = (),
    enabled: bool = True,
) -> WebhookRecord:
    """Create a webhook that receives events from now on; raise WebhookRefused, or Conflict at the limit."""
    if (session.scalar(select(func.count()).select_from(Webhook)) or 0) >= MAX_WEBHOOKS:
        raise Conflict(f"there are {MAX_WEBHOOKS} webhooks already; remove one first")
    now, position, secret = moment_in(session, clock), newest(session), new_secret()
    made = Webhook(
        url=checked_url(url, settings),
        description=_note(description),
        events=_events(events),
        sources=_sources(session, sources),
        secret=secret,
        jobs_after=position.jobs,
        events_after=position.events,
        changes_after=position.changes,
        disabled_at=now if not enabled else None,
        disabled_reason="by hand" if not enabled else None,
        created_by=acting_user(),
        created_at=now,
        updated_at=now,
    )
    session.add(made)
    session.flush()
    _audit(session, clock, "webhook.added", made, url=made.url, events=made.events, sources=made.sources)
    return webhook_record(made, secret=secret)


def change(
    session: Session,
    clock: Clock,
    webhook_id: int,
    *,
    settings: WebhookSettings,
    url: str | None = None,
    description: str | None = None,
    events: Sequence[str] | None = None,
    sources: Sequence[str] | None = None,
    enabled: bool | None = None,
) -> WebhookRecord:
    """Change a webhook; raise WebhookNotFound or WebhookRefused. A URL on another host gets a new secret.

    A webhook that is enabled again receives events from then on, and the deliveries that were still pending.
    """
    row, now = find(session, webhook_id), moment_in(session, clock)
    before: dict[str, Any] = {"url": row.url, "events": row.events, "sources": row.sources}
    secret = None
    if url is not None:
        url = checked_url(url, settings)
        # With the same secret, the operators of the two hosts could sign messages to each other in this archive's name.
        if _host(url) != _host(row.url):
            row.secret = secret = new_secret()
            row.previous_secret = row.previous_until = None
        row.url = url
    if description is not None:
        row.description = _note(description)
    if events is not None:
        row.events = _events(events)
    if sources is not None:
        row.sources = _sources(session, sources)
    if enabled is True and row.disabled_at is not None:
        row.disabled_at = row.disabled_reason = None
        # Skip the events of the meantime: that could be the changes of a year.
        row.jobs_after, row.events_after, row.changes_after = newest(session)
    elif enabled is False and row.disabled_at is None:
        row.disabled_at, row.disabled_reason = now, "by hand"
    row.updated_at = now
    after = {"url": row.url, "events": row.events, "sources": row.sources}
    changed = {name: [before[name], after[name]] for name in after if before[name] != after[name]}
    _audit(
        session,
        clock,
        "webhook.changed",
        row,
        **changed,
        enabled=row.disabled_at is None,
        new_secret=secret is not None,
    )
    return webhook_record(row, secret=secret)


def rotate(session: Session, clock: Clock, webhook_id: int, *, at_once: bool = False) -> WebhookRecord:
    """Create a new secret; for a day the old one signs messages, too, unless `at_once` is set because it leaked.

    Raise WebhookNotFound.
    """
    row, now, secret = find(session, webhook_id), moment_in(session, clock), new_secret()
    row.previous_secret, row.previous_until = (None, None) if at_once else (row.secret, now + OVERLAP)
    row.secret, row.updated_at = secret, now
    _audit(session, clock, "webhook.secret_rotated", row, at_once=at_once)
    return webhook_record(row, secret=secret)


def remove(write: Callable[[], AbstractContextManager[Session]], clock: Clock, webhook_id: int) -> None:
    """Delete a webhook with its deliveries, in short transactions; raise WebhookNotFound."""
    with write() as session:
        row = find(session, webhook_id)
        # Disable it first, so that nothing is queued or sent while its deliveries are deleted.
        row.disabled_at, row.disabled_reason = row.disabled_at or moment_in(session, clock), "removed"
    dropped = _PORTION
    while dropped == _PORTION:
        with write() as session:
            dropped = queries.drop_of_webhook(session, webhook_id=webhook_id, limit=_PORTION)
    with write() as session:
        row = find(session, webhook_id)
        _audit(session, clock, "webhook.removed", row, url=row.url)
        session.delete(row)


def redeliver(session: Session, clock: Clock, webhook_id: int, delivery_id: int) -> DeliveryRecord:
    """Queue a delivery again, with its old id and body and all retries; raise DeliveryNotFound or WebhookDisabled."""
    hook, row = find(session, webhook_id), queries.delivery(session, delivery_id)
    if row is None or row.webhook_id != webhook_id:
        raise DeliveryNotFound(delivery_id)
    if hook.disabled_at is not None:
        raise WebhookDisabled(webhook_id)
    row.state, row.attempts, row.next_at, row.finished_at = "pending", 0, moment_in(session, clock), None
    # A process that is sending it now must not overwrite this: revoke its lease.
    revoke(row)
    _audit(session, clock, "webhook.redelivered", hook, delivery=delivery_id)
    return delivery_record(row, queries.attempts_of(session, [row.id])[row.id])


def secrets_of(row: Webhook, *, now: datetime) -> tuple[str, ...]:
    if row.previous_secret is None or row.previous_until is None or row.previous_until <= now:
        return (row.secret,)
    return (row.secret, row.previous_secret)


def is_wanted(row: Webhook, name: str, source: str | None) -> bool:
    if row.events and name not in row.events and f"{name.partition('.')[0]}.*" not in row.events:
        return False
    return not row.sources or source is None or source in row.sources


def checked_url(url: str, settings: WebhookSettings) -> str:
    """Return a valid target URL in normal form; raise WebhookRefused with the reason otherwise."""
    if not url or len(url) > _MAX_URL_CHARS:
        raise WebhookRefused("url", f"give an http or https address of at most {_MAX_URL_CHARS:,} characters")
    try:
        parts = urlsplit(url)
        if "@" in parts.netloc:
            raise WebhookRefused(
                "url",
                "it carries a user or a password, which would stand in logs and lists; leave them out: "
                "receivers know our messages by their signature",
            )
        # Check an IP address as the client would connect to it; a host name is resolved and checked before each
        # message.
        target = parse_target(parse(url).fetch)
    except UrlRefused as exc:
        raise WebhookRefused("url", f"{exc.reason}; give an http or https address") from exc
    except ValueError as exc:
        raise WebhookRefused("url", "it is no address; give an http or https address") from exc
    literal = target.origin.literal
    if literal is None and _is_this_machine(target.origin.host):
        literal = _LOOPBACK
    if literal is not None and not AddressGuard(settings.allow_networks).judge(literal):
        raise WebhookRefused("url", f"{REFUSAL}: HOLDFAST_WEBHOOKS_ALLOW_NETWORKS")
    return parse(url).fetch


def _is_this_machine(host: str) -> bool:
    # RFC 6761, 6.3: these names are loopback whatever a resolver answers.
    name = host.lower().rstrip(".")
    return name == "localhost" or name.endswith(".localhost")


def _host(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc


def _note(text: str | None) -> str | None:
    if text is not None and len(text) > _MAX_NOTE_CHARS:
        raise WebhookRefused("description", f"write at most {_MAX_NOTE_CHARS} characters")
    return (text or "").strip() or None


def _events(names: Sequence[str]) -> list[str]:
    known = {*EventName, *GROUPS}
    for name in names:
        if name not in known:
            raise WebhookRefused("events", f"{name[:40]!r} is not one of {', '.join(EventName)}, and no group as job.*")
    return list(dict.fromkeys(map(str, names)))


def _sources(session: Session, codes: Sequence[str]) -> list[str]:
    for code in codes:
        if "\x00" in code or source_by_code(session, code) is None:
            raise WebhookRefused("sources", f"there is no source {code[:40]!r}; see them with: holdfast source list")
    return list(dict.fromkeys(codes))


def _audit(session: Session, clock: Clock, action: AuditAction, row: Webhook, **detail: Any) -> None:
    audit.record(session, clock, action=action, subject=f"webhook {row.id}", detail=detail)
