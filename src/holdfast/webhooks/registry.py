"""Webhooks as administrators see them: made, changed, given a new secret, removed; what a message may be sent to.

A secret is shown when it is made and never again. An address on another host gets a secret of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from ipaddress import IPv4Address
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from sqlalchemy.orm import Session

from holdfast import audit
from holdfast.clock import Clock
from holdfast.config import WebhookSettings
from holdfast.coordination.events import EventName
from holdfast.db.audit_events import acting_user
from holdfast.db.engine import moment_in
from holdfast.db.models import Webhook, WebhookDelivery
from holdfast.errors import Conflict, Invalid, NotFound, UrlRefused
from holdfast.fetch.guard import REFUSAL, AddressGuard, parse_target
from holdfast.sources.queries import source_by_code
from holdfast.urls import parse
from holdfast.values import dataclass
from holdfast.webhooks import queries
from holdfast.webhooks.events import newest
from holdfast.webhooks.signing import new_secret

OVERLAP = timedelta(hours=24)
"""How long messages are signed with the old secret, too, after a rotation."""
GROUPS = tuple(sorted({f"{name.partition('.')[0]}.*" for name in EventName}))
_MAX_URL_CHARS = 2048
_LOOPBACK = IPv4Address("127.0.0.1")
_MAX_NOTE_CHARS = 500
_PORTION = 1000


class WebhookRefused(Invalid):
    """A webhook cannot be like this; `field` says which part of it is wrong."""

    code = "webhook_refused"

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field, self.reason = field, reason


class WebhookNotFound(NotFound):
    """There is no such webhook."""

    code = "webhook_not_found"

    def __init__(self, webhook_id: int) -> None:
        super().__init__(f"there is no webhook {webhook_id}; see them with: holdfast webhook list")


class DeliveryNotFound(NotFound):
    """There is no such delivery."""

    code = "delivery_not_found"

    def __init__(self, delivery_id: int) -> None:
        super().__init__(
            f"there is no delivery {delivery_id}, or none any more; see them with: holdfast webhook deliveries"
        )


class WebhookDisabled(Conflict):
    """Nothing is sent to a webhook that is disabled."""

    code = "webhook_disabled"

    def __init__(self, webhook_id: int) -> None:
        super().__init__(
            f"webhook {webhook_id} is disabled; enable it first: holdfast webhook enable {webhook_id} "
            f"(over HTTP: PATCH with enabled true)"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookWish:
    """What a webhook is to be; what is None stays as it is, or has its default."""

    url: str | None = None
    description: str | None = None
    events: tuple[str, ...] | None = None
    """Names or groups such as `job.*`; empty means all."""
    sources: tuple[str, ...] | None = None
    """Codes; empty means all."""
    enabled: bool | None = None


class Made(NamedTuple):
    """A webhook, and the secret that was made for it, to be shown this once; None if it kept its own."""

    webhook: Webhook
    secret: str | None


def find(session: Session, webhook_id: int) -> Webhook:
    """Return a webhook; WebhookNotFound."""
    found = queries.webhook(session, webhook_id)
    if found is None:
        raise WebhookNotFound(webhook_id)
    return found


def add(session: Session, clock: Clock, settings: WebhookSettings, wish: WebhookWish) -> Made:
    """Make a webhook that is told of what happens from now on; WebhookRefused, or Conflict if there are too many."""
    if queries.webhook_count(session) >= settings.most:
        raise Conflict(f"there are {settings.most} webhooks already; remove one, or raise HOLDFAST_WEBHOOKS_MOST")
    now, position, secret = moment_in(session, clock), newest(session), new_secret()
    made = Webhook(
        url=checked_url(wish.url or "", settings),
        description=_note(wish.description),
        events=_events(wish.events or ()),
        sources=_sources(session, wish.sources or ()),
        secret=secret,
        jobs_after=position.jobs,
        events_after=position.events,
        changes_after=position.changes,
        disabled_at=now if wish.enabled is False else None,
        disabled_reason="by hand" if wish.enabled is False else None,
        created_by=acting_user(),
        created_at=now,
        updated_at=now,
    )
    session.add(made)
    session.flush()
    _audit(session, clock, "added", made, url=made.url, events=made.events, sources=made.sources)
    return Made(made, secret)


def change(session: Session, clock: Clock, settings: WebhookSettings, webhook_id: int, wish: WebhookWish) -> Made:
    """Change a webhook; WebhookNotFound, WebhookRefused. An address on another host gets a new secret.

    One that is enabled again is told of what happens from then on, and gets the deliveries that were still waiting.
    """
    row, now = find(session, webhook_id), moment_in(session, clock)
    before: dict[str, Any] = {"url": row.url, "events": row.events, "sources": row.sources}
    secret = None
    if wish.url is not None:
        url = checked_url(wish.url, settings)
        # The operator of the new host could sign in the name of this archive to the old one, and the other way round.
        if _host(url) != _host(row.url):
            row.secret = secret = new_secret()
            row.previous_secret = row.previous_until = None
        row.url = url
    if wish.description is not None:
        row.description = _note(wish.description)
    if wish.events is not None:
        row.events = _events(wish.events)
    if wish.sources is not None:
        row.sources = _sources(session, wish.sources)
    if wish.enabled is True and row.disabled_at is not None:
        row.disabled_at = row.disabled_reason = None
        # What happened meanwhile is not made up for: that could be the changes of a year.
        row.jobs_after, row.events_after, row.changes_after = newest(session)
    elif wish.enabled is False and row.disabled_at is None:
        row.disabled_at, row.disabled_reason = now, "by hand"
    row.updated_at = now
    after = {"url": row.url, "events": row.events, "sources": row.sources}
    changed = {name: [before[name], after[name]] for name in after if before[name] != after[name]}
    _audit(session, clock, "changed", row, **changed, enabled=row.disabled_at is None, new_secret=secret is not None)
    return Made(row, secret)


def rotate(session: Session, clock: Clock, webhook_id: int, *, at_once: bool = False) -> Made:
    """Give a webhook a new secret; for a day messages are signed with the old one, too, unless it is known to others.

    WebhookNotFound.
    """
    row, now, secret = find(session, webhook_id), moment_in(session, clock), new_secret()
    row.previous_secret, row.previous_until = (None, None) if at_once else (row.secret, now + OVERLAP)
    row.secret, row.updated_at = secret, now
    _audit(session, clock, "secret_rotated", row, at_once=at_once)
    return Made(row, secret)


def remove(write: Callable[[], AbstractContextManager[Session]], clock: Clock, webhook_id: int) -> None:
    """Remove a webhook with its deliveries, in short transactions; WebhookNotFound."""
    with write() as session:
        row = find(session, webhook_id)
        # First: nothing is queued or sent any more while the rest goes.
        row.disabled_at, row.disabled_reason = row.disabled_at or moment_in(session, clock), "removed"
    dropped = _PORTION
    while dropped == _PORTION:
        with write() as session:
            dropped = queries.drop_of_webhook(session, webhook_id=webhook_id, limit=_PORTION)
    with write() as session:
        row = find(session, webhook_id)
        _audit(session, clock, "removed", row, url=row.url)
        session.delete(row)


def redeliver(session: Session, clock: Clock, webhook_id: int, delivery_id: int) -> WebhookDelivery:
    """Queue a delivery again, with its old id and body and all its tries; DeliveryNotFound, WebhookDisabled."""
    hook, row = find(session, webhook_id), queries.delivery(session, delivery_id)
    if row is None or row.webhook_id != webhook_id:
        raise DeliveryNotFound(delivery_id)
    if hook.disabled_at is not None:
        raise WebhookDisabled(webhook_id)
    row.state, row.attempts, row.next_at, row.finished_at = "pending", 0, moment_in(session, clock), None
    # A process that is sending it now must not write over this: its lease is gone.
    row.lease_token = row.lease_until = None
    _audit(session, clock, "redelivered", hook, delivery=delivery_id)
    return row


def secrets_of(row: Webhook, *, now: datetime) -> tuple[str, ...]:
    """Return the secrets that a message is signed with."""
    if row.previous_secret is None or row.previous_until is None or row.previous_until <= now:
        return (row.secret,)
    return (row.secret, row.previous_secret)


def is_wanted(row: Webhook, name: str, source: str | None) -> bool:
    """Return whether a webhook is told of an event."""
    if row.events and name not in row.events and f"{name.partition('.')[0]}.*" not in row.events:
        return False
    return not row.sources or source is None or source in row.sources


def checked_url(url: str, settings: WebhookSettings) -> str:
    """Return an address that messages may be sent to, in normal form; WebhookRefused says what is wrong with it."""
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
        # Judged as it is dialled: a name is judged by its addresses before each message.
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
    # RFC 6761, 6.3: whatever a resolver says.
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
            raise WebhookRefused("events", f"{name[:40]!r} is none of {', '.join(EventName)}, and no group as job.*")
    return list(dict.fromkeys(map(str, names)))


def _sources(session: Session, codes: Sequence[str]) -> list[str]:
    for code in codes:
        if "\x00" in code or source_by_code(session, code) is None:
            raise WebhookRefused("sources", f"there is no source {code[:40]!r}; see them with: holdfast source list")
    return list(dict.fromkeys(codes))


def _audit(session: Session, clock: Clock, action: str, row: Webhook, **detail: Any) -> None:
    audit.record(session, clock, action=f"webhook.{action}", subject=f"webhook {row.id}", detail=detail)
