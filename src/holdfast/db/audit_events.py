"""Appends to the audit log in the transaction of the recorded action, and holds the acting user's name.

Separate from `holdfast.audit`, which reads the log, so that a crawl need not load SQLAlchemy to write an event.
"""

from __future__ import annotations

import getpass
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal

from holdfast.clock import Clock, to_micros
from holdfast.db.raw import Transaction

AuditAction = (
    Literal["archive.imported", "archive.restored", "contact.changed", "domain.changed", "domain.purged"]
    | Literal["domain.reset", "domain.robots_refreshed", "edition.frozen", "edition.frozen_again"]
    | Literal["edition.gap_accepted", "edition.page_accepted", "edition.page_excluded", "edition.page_pending"]
    | Literal["edition.salvaged", "edition.scheduled", "edition.sharded", "edition.shard_accepted"]
    | Literal["edition.shard_excluded", "edition.shard_pending", "execution.cleaned", "execution.exclusions"]
    | Literal["execution.paused", "execution.registered", "execution.resumed", "execution.stop_asked"]
    | Literal["execution.zim_attached", "feed.added", "feed.disabled", "feed.enabled", "feed.removed"]
    | Literal["frontier.added", "frontier.cleared", "frontier.dropped", "frontier.recovered", "frontier.retried"]
    | Literal["job.cancel", "job.config_patched", "job.created", "job.deleted", "job.force-run", "job.index_reset"]
    | Literal["job.options_raised", "job.pause", "job.replanned", "job.resume", "job.retried", "job.retries_reset"]
    | Literal["job.retry", "job.run_again", "noise.cleared", "noise.marked", "operation.cancelled"]
    | Literal["operation.started", "report.triaged", "robots.ignored", "scheduler.rebalanced", "session.begun"]
    | Literal["session.ended", "session.ended_all", "snapshot.dedup_undone", "snapshot.hidden", "snapshot.shown"]
    | Literal["source.created", "source.deleted", "source.disabled", "source.edited", "source.enabled"]
    | Literal["source.imported", "source.renamed", "source.seeded", "source.visibility", "storage.cleaned"]
    | Literal["storage.path_freed", "token.made", "token.revoked", "upload.created", "upload.terminated"]
    | Literal["user.created", "user.deleted", "user.disabled", "user.enabled", "user.link_made"]
    | Literal["user.password_changed", "user.role_changed", "webhook.added", "webhook.changed", "webhook.disabled"]
    | Literal["webhook.redelivered", "webhook.removed", "webhook.secret_rotated"]
)
"""Every recorded action; the web application names each of them in both languages."""

# A context variable, because many threads serve requests, each for its own client.
_ACTING: ContextVar[str | None] = ContextVar("acting", default=None)


def append_event(tx: Transaction, clock: Clock, *, action: AuditAction, subject: str, detail: dict[str, Any]) -> None:
    """Append an event in the caller's transaction, so that it is stored if and only if the action is."""
    tx.execute(
        "INSERT INTO audit_events (at, actor, action, subject, detail) VALUES (?, ?, ?, ?, ?)",
        (to_micros(clock.now()), acting_user(), action, subject, json.dumps(detail)),
    )


def acting_user() -> str:
    """Return the name set by `acting`, or this process's user and machine."""
    return _ACTING.get() or f"{getpass.getuser()}@{socket.gethostname()}"


@contextmanager
def acting(name: str) -> Iterator[None]:
    """Attribute everything in this block to the HTTP client with this name."""
    token = _ACTING.set(name)
    try:
        yield
    finally:
        _ACTING.reset(token)
