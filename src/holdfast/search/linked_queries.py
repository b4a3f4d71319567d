"""Queries and updates for the counts of linked hosts: all by key, one WARC file at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple, TypeVar

from sqlalchemy import delete, exists, func, select
from sqlalchemy.orm import Session

from holdfast.db.engine import insert_into
from holdfast.db.models import IndexRun, LinkedHost, LinkedHostFile, LinkedHostVote, PageLink, Snapshot
from holdfast.warc.record import ORDINALS

Vote = tuple[str, str]
# Keys of one list in a statement.
_AT_ONCE: Final = 400
_ROWS: Final = 20_000

_Value = TypeVar("_Value")


def uncounted_files(session: Session, *, limit: int) -> dict[int, datetime]:
    """Return files read since their links were counted, with that time; examines one row per WARC file."""
    finished = IndexRun.finished_at
    statement = (
        select(IndexRun.warc_file_id, finished)
        .outerjoin(LinkedHostFile, LinkedHostFile.warc_file_id == IndexRun.warc_file_id)
        .where(finished.is_not(None), LinkedHostFile.read_at.is_(None) | (LinkedHostFile.read_at < finished))
        .order_by(IndexRun.warc_file_id)
        .limit(limit)
    )
    return {row[0]: row[1] for row in session.execute(statement) if row[1] is not None}


def hidden_marks(session: Session, files: Sequence[int]) -> dict[int, tuple[int, datetime]]:
    """Return takedown hash and counted index run of these files, and of all files that have captures under
    takedown.
    """
    found: dict[int, tuple[int, datetime]] = {}
    columns = (LinkedHostFile.warc_file_id, LinkedHostFile.hidden, LinkedHostFile.read_at)
    for part in _parts(files):
        rows = session.execute(select(*columns).where(LinkedHostFile.warc_file_id.in_(part)))
        found.update((row[0], (row[1], row[2])) for row in rows)
    rows = session.execute(select(*columns).where(LinkedHostFile.hidden != 0))
    found.update((row[0], (row[1], row[2])) for row in rows)
    return found


def links_of_file(session: Session, warc_file_id: int) -> Iterator[Sequence[tuple[int, str, str]]]:
    first, last = warc_file_id * ORDINALS, (warc_file_id + 1) * ORDINALS - 1
    after = (first, -(1 << 63))
    while True:
        owner, to_hash = after
        statement = (
            select(PageLink.snapshot_id, PageLink.to_hash, PageLink.to_url, Snapshot.url)
            .join(Snapshot, Snapshot.id == PageLink.snapshot_id)
            .where(PageLink.snapshot_id >= owner, PageLink.snapshot_id <= last)
            .where((PageLink.snapshot_id > owner) | (PageLink.to_hash > to_hash))
            .order_by(PageLink.snapshot_id, PageLink.to_hash)
            .limit(_ROWS)
        )
        rows = session.execute(statement).all()
        if not rows:
            return
        yield [(row[0], row[2], row[3]) for row in rows]
        after = (rows[-1][0], rows[-1][1])


def keys_of_file(session: Session, warc_file_id: int) -> Iterator[Sequence[str]]:
    after, last = warc_file_id * ORDINALS - 1, (warc_file_id + 1) * ORDINALS - 1
    while True:
        statement = select(Snapshot.id, Snapshot.url_key).where(Snapshot.id > after, Snapshot.id <= last)
        rows = session.execute(statement.order_by(Snapshot.id).limit(_ROWS)).all()
        if not rows:
            return
        yield [row[1] for row in rows]
        after = rows[-1][0]


def held_keys(session: Session, keys: Sequence[str]) -> set[str]:
    """Return those of these hosts that have a capture; one seek each."""
    # `)` ends the host in a key, and is followed by `*`.
    return {
        key
        for key in keys
        if session.scalar(
            select(Snapshot.id).where(Snapshot.url_key >= f"{key})", Snapshot.url_key < f"{key}*").limit(1)
        )
        is not None
    }


def counted_of(session: Session, warc_file_id: int) -> bytes | None:
    return session.scalar(select(LinkedHostFile.counted).where(LinkedHostFile.warc_file_id == warc_file_id))


def votes(session: Session, keys: Sequence[str], sites: Sequence[str]) -> dict[Vote, int]:
    found: dict[Vote, int] = {}
    for some_keys in _parts(keys):
        for some_sites in _parts(sites):
            statement = select(LinkedHostVote.key, LinkedHostVote.site, LinkedHostVote.links).where(
                LinkedHostVote.key.in_(some_keys), LinkedHostVote.site.in_(some_sites)
            )
            found.update(((row[0], row[1]), row[2]) for row in session.execute(statement))
    return found


def votes_of_site(session: Session, site: str, *, most: int) -> int:
    """Return the number of hosts a site links to, counting up to `most`."""
    counted = select(LinkedHostVote.key).where(LinkedHostVote.site == site).limit(most).subquery()
    return session.scalar(select(func.count()).select_from(counted)) or 0


def put_votes(session: Session, wanted: Mapping[Vote, int]) -> None:
    for (key, site), links in sorted(wanted.items()):
        if links <= 0:
            session.execute(delete(LinkedHostVote).where(LinkedHostVote.key == key, LinkedHostVote.site == site))
    rows = [{"key": key, "site": site, "links": links} for (key, site), links in sorted(wanted.items()) if links > 0]
    for part in _parts(rows):
        new = insert_into(session, LinkedHostVote).values(list(part))
        session.execute(new.on_conflict_do_update(index_elements=["key", "site"], set_={"links": new.excluded.links}))


class HostTotal(NamedTuple):
    links: int
    sites: int


def totals(session: Session, keys: Sequence[str]) -> dict[str, HostTotal]:
    found: dict[str, HostTotal] = {}
    for part in _parts(keys):
        rows = session.execute(
            select(LinkedHost.key, LinkedHost.links, LinkedHost.sites).where(LinkedHost.key.in_(part))
        )
        found.update((row[0], HostTotal(row[1], row[2])) for row in rows)
    return found


def put_totals(session: Session, wanted: Mapping[str, HostTotal]) -> None:
    """Set the counts of hosts; a host without links or sites is deleted."""
    gone = sorted(key for key, total in wanted.items() if total.links <= 0 or total.sites <= 0)
    for part in _parts(gone):
        session.execute(delete(LinkedHost).where(LinkedHost.key.in_(part)))
    kept = sorted(set(wanted) - set(gone))
    for part in _parts(kept):
        rows = [{"key": key, "links": wanted[key].links, "sites": wanted[key].sites} for key in part]
        new = insert_into(session, LinkedHost).values(rows)
        changed = {"links": new.excluded.links, "sites": new.excluded.sites}
        session.execute(new.on_conflict_do_update(index_elements=["key"], set_=changed))


def forget_hosts(session: Session, keys: Sequence[str]) -> None:
    for part in _parts(keys):
        session.execute(delete(LinkedHostVote).where(LinkedHostVote.key.in_(part)))
        session.execute(delete(LinkedHost).where(LinkedHost.key.in_(part)))


def put_counted(session: Session, warc_file_id: int, read_at: datetime, *, hidden: int, counted: bytes) -> None:
    row = {"warc_file_id": warc_file_id, "read_at": read_at, "hidden": hidden, "counted": counted}
    new = insert_into(session, LinkedHostFile).values(row)
    changed = {name: new.excluded[name] for name in ("read_at", "hidden", "counted")}
    session.execute(new.on_conflict_do_update(index_elements=["warc_file_id"], set_=changed))


def linked_hosts(session: Session, *, limit: int, offset: int) -> dict[str, HostTotal]:
    """Return by key the hosts that most sites link to, most first, without those captured since they were counted."""
    # One index seek per row read. Few are skipped, because indexing a file deletes the hosts captured in it.
    held = exists().where(Snapshot.url_key >= LinkedHost.key.concat(")"), Snapshot.url_key < LinkedHost.key.concat("*"))
    statement = (
        select(LinkedHost.key, LinkedHost.links, LinkedHost.sites)
        .where(~held)
        .order_by(LinkedHost.sites.desc(), LinkedHost.links.desc(), LinkedHost.key)
        .limit(limit)
        .offset(offset)
    )
    return {row[0]: HostTotal(row[1], row[2]) for row in session.execute(statement)}


def _parts(values: Sequence[_Value]) -> Iterator[Sequence[_Value]]:
    for at in range(0, len(values), _AT_ONCE):
        yield values[at : at + _AT_ONCE]
