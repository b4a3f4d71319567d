"""Taking captures out of sight, at once and for every reader, and bringing them back; each with a reason, audited."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy.orm import Session

from holdfast import audit
from holdfast.clock import Clock
from holdfast.db.engine import Database
from holdfast.db.models import SearchOutbox, Withdrawal
from holdfast.errors import Conflict, Invalid, NotFound
from holdfast.index import queries
from holdfast.index.keys import identify, url_key
from holdfast.urls import parse_seed


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawn:
    """What was hidden or shown again."""

    subject: str
    snapshots: int
    """Captures that are stored now and concerned by it."""


def hide(database: Database, clock: Clock, subject: str, *, reason: str) -> Withdrawn:
    """Hide a snapshot (by its id) or all captures of an address, present and future.

    Invalid without a reason; NotFound if there is no such snapshot; Conflict if it is hidden already.
    """
    if not reason.strip():
        raise Invalid("say why with --reason; it is kept in the audit log")
    with database.write() as session:
        snapshot_id, hashes = _meant(session, subject)
        if snapshot_id is not None and queries.any_snapshot(session, snapshot_id) is None:
            raise NotFound(f"there is no snapshot {snapshot_id}")
        known = queries.withdrawals_of(session, snapshot_id=snapshot_id, url_hashes=hashes)
        hidden = {(row.snapshot_id, row.url_hash) for row in known}
        wanted = [(snapshot_id, None)] if snapshot_id is not None else [(None, one) for one in hashes]
        new = [pair for pair in wanted if pair not in hidden]
        if not new:
            raise Conflict(f"{subject} is hidden already; show it again with: holdfast snapshot unhide {subject}")
        for one, url_hash in new:
            session.add(
                Withdrawal(
                    snapshot_id=one, url_hash=url_hash, subject=subject, reason=reason.strip(), actor=audit.actor(),
                    created_at=clock.now(),
                )
            )  # fmt: skip
        session.flush()
        _compare_again(session, snapshot_id, [])
        return _told(session, clock, "hidden", subject, (snapshot_id, hashes), reason)


def unhide(database: Database, clock: Clock, subject: str) -> Withdrawn:
    """Lift the withdrawals of a snapshot or an address; NotFound if it is not hidden."""
    with database.write() as session:
        snapshot_id, hashes = _meant(session, subject)
        rows = queries.withdrawals_of(session, snapshot_id=snapshot_id, url_hashes=hashes)
        if not rows:
            raise NotFound(f"{subject} is not hidden")
        for row in rows:
            row.lifted_at, row.lifted_by = clock.now(), audit.actor()
        session.flush()
        _compare_again(session, snapshot_id, hashes)
        return _told(session, clock, "shown", subject, (snapshot_id, hashes), None)


def _compare_again(session: Session, snapshot_id: int | None, hashes: list[int]) -> None:
    """Leave word for `changes`: the capture behind a hidden one is held against the one before it, and back again."""
    found = None if snapshot_id is None else queries.any_snapshot(session, snapshot_id)
    if found is not None:
        queries.compare_again(session, found)
    if hashes:
        queries.compare_pages_again(session, hashes)


def _meant(session: Session, subject: str) -> tuple[int | None, list[int]]:
    """Return the snapshot's id, or the hashes of all spellings of an address under its key."""
    if subject.isascii() and subject.isdecimal():
        return int(subject[:19]), []
    address = parse_seed(subject)
    other = address.fetch.replace("https://", "http://", 1) if address.scheme == "https" else None
    other = other or address.fetch.replace("http://", "https://", 1)
    hashes = {address.hash64, identify(other).url_hash}
    hashes.update(queries.page_hashes(session, url_key(address.fetch)))
    return None, sorted(hashes)


def _told(
    session: Session, clock: Clock, done: str, subject: str, meant: tuple[int | None, list[int]], reason: str | None
) -> Withdrawn:
    snapshot_id, hashes = meant
    session.add(
        SearchOutbox(
            kind="withdrawal", first_id=snapshot_id, last_id=snapshot_id, created_at=clock.now(),
            refs={"url_hashes": hashes, "hidden": done == "hidden"},
        )
    )  # fmt: skip
    detail = {"reason": reason, "snapshot_id": snapshot_id, "url_hashes": hashes}
    audit.record(session, clock, action=f"snapshot.{done}", subject=subject, detail=detail)
    session.flush()
    count = 1 if snapshot_id is not None else queries.captures_of(session, hashes)
    return Withdrawn(subject=subject, snapshots=count)
