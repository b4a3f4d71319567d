"""Counts linked hosts without captures, one WARC file at a time: candidates for sources.

Each file's share is stored, so that a file that is read again, or has a new takedown, replaces its earlier
share. A page can create few rows: a file adds at most 2,000 pairs of host and linking site, a site names at
most 1,000 hosts, whatever its subdomains. A host is deleted once any of its URLs is captured.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Final

from sqlalchemy.orm import Session

from holdfast import log
from holdfast.clock import Clock
from holdfast.db.engine import Database
from holdfast.processes.runfile import alone
from holdfast.search import linked_queries, queries
from holdfast.search.addresses import host_of
from holdfast.search.directory import IndexBusy, IndexDirectory, IndexElsewhere
from holdfast.search.linked_queries import HostTotal, Vote
from holdfast.search.outbox import Stopping, demand_outbox
from holdfast.search.records import LinkedHostRecord
from holdfast.urls import is_ip, registrable, surt
from holdfast.warc.record import ORDINALS

PAIRS_OF_FILE: Final = 2_000
"""Limit on pairs of host and linking site per file; those with the most links win."""
HOSTS_OF_SITE: Final = 1_000
"""Limit on hosts per linking site; the first ones found win."""
MAX_LISTED: Final = 500
# Pairs that are counted of one file at most before the best are chosen.
_COUNTED: Final = 50_000
# Files whose links are counted before others have a turn.
_FILES: Final = 20
_MAX_HOST_CHARS: Final = 253

_log = log.get(room="search")

_Pairs = Mapping[Vote, int]


def refresh_linked_hosts(
    database: Database, home: Path, clock: Clock, *, limit_s: float | None = None, is_stopping: Stopping = lambda: False
) -> bool:
    """Count the links of files that were read, or whose takedowns changed, since the last call.

    Each file is one short transaction. Return True if any was counted; False also if another process is counting,
    or if the index of this database belongs to another data directory: one process counts at a time.
    """
    directory = IndexDirectory(home)
    until = None if limit_s is None else clock.monotonic() + limit_s
    done = 0
    try:
        with database.read() as session:
            demand_outbox(session, directory)
            due = _due(session)
        if not due:
            return False
        directory.folder.mkdir(parents=True, exist_ok=True)
        with alone(directory.folder / "linked-hosts.lock", IndexBusy("another process counts the linked hosts")):
            with database.read() as session:
                # Again, under the lock: another process may just have counted them.
                due = _due(session)
            for warc_file_id, read_at, hidden in due:
                if is_stopping() or (until is not None and clock.monotonic() >= until):
                    break
                _count_file(database, warc_file_id, read_at, hidden)
                done += 1
    except (IndexBusy, IndexElsewhere):
        return False
    if done:
        _log.info("search.links_counted", files=done)
    return done > 0


def _due(session: Session) -> list[tuple[int, datetime, tuple[int, ...]]]:
    hidden: dict[int, list[int]] = defaultdict(list)
    for snapshot_id in queries.withdrawn_ids(session):
        hidden[snapshot_id // ORDINALS].append(snapshot_id)
    due = linked_queries.uncounted_files(session, limit=_FILES)
    for warc_file_id, (mark, read_at) in linked_queries.hidden_marks(session, sorted(hidden)).items():
        if mark != _mark(hidden.get(warc_file_id, ())):
            due.setdefault(warc_file_id, read_at)
    return [(number, due[number], tuple(hidden.get(number, ()))) for number in sorted(due)[:_FILES]]


def _mark(hidden: Sequence[int]) -> int:
    if not hidden:
        return 0
    digest = sha256(",".join(map(str, sorted(hidden))).encode()).digest()
    return int.from_bytes(digest[:7], "big") or 1


def _count_file(database: Database, warc_file_id: int, read_at: datetime, hidden: tuple[int, ...]) -> None:
    with database.read() as session:
        pairs, captured = _links_of(session, warc_file_id, frozenset(hidden)), _hosts_of(session, warc_file_id)
        held = linked_queries.held_keys(session, sorted({key for key, _ in pairs}))
    counted = {pair: links for pair, links in pairs.items() if pair[0] not in held}
    with database.write() as session:
        before = _unpacked(linked_queries.counted_of(session, warc_file_id))
        accepted = _move(session, before, counted)
        linked_queries.put_counted(session, warc_file_id, read_at, hidden=_mark(hidden), counted=_packed(accepted))
        # Candidates no more: something of them is here now.
        known = linked_queries.totals(session, sorted(captured))
        linked_queries.forget_hosts(session, sorted(known))


def _links_of(session: Session, warc_file_id: int, hidden: frozenset[int]) -> dict[Vote, int]:
    found: Counter[tuple[str, str]] = Counter()
    for rows in linked_queries.links_of_file(session, warc_file_id):
        for snapshot_id, to_url, from_url in rows:
            pair = host_of(to_url).lower(), host_of(from_url).lower()
            # A page may name hosts without end: beyond a bound only those are counted that are known already.
            if snapshot_id not in hidden and pair[0] != pair[1] and (pair in found or len(found) < _COUNTED):
                found[pair] += 1
    merged: Counter[Vote] = Counter()
    for (target, linking), links in found.items():
        key = _key(target)
        if key is not None and key != _key(linking):
            merged[key, registrable(_bare(linking))] += links
    best = sorted(merged.items(), key=lambda item: (-item[1], item[0]))
    return dict(best[:PAIRS_OF_FILE])


def _key(host: str) -> str | None:
    """Return the key of a host without its port and `www.`; None if it is not a public host name."""
    bare = _bare(host)
    if "." not in bare or len(bare) > _MAX_HOST_CHARS or is_ip(bare):
        return None
    return surt(f"http://{bare}/").partition(")")[0]


def _bare(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() else host


def host_key(name: str) -> str:
    """Return the key of a host: `org,example` for example.org."""
    return ",".join(reversed(name.split(".")))


def host_name(key: str) -> str:
    return ".".join(reversed(key.split(",")))


def _hosts_of(session: Session, warc_file_id: int) -> set[str]:
    """Return the keys of the hosts that a file captured; a key includes the port, so that it matches no candidate."""
    return {key.partition(")")[0] for keys in linked_queries.keys_of_file(session, warc_file_id) for key in keys}


def _move(session: Session, before: _Pairs, after: _Pairs) -> dict[Vote, int]:
    """Replace a file's old share of the counts by the new one; return the accepted part of the new one."""
    touched = sorted(set(before) | set(after))
    stored = linked_queries.votes(session, sorted({key for key, _ in touched}), sorted({site for _, site in touched}))
    room = {
        site: HOSTS_OF_SITE - linked_queries.votes_of_site(session, site, most=HOSTS_OF_SITE)
        for site in sorted({site for _, site in after})
    }
    accepted: dict[Vote, int] = {}
    wanted: dict[Vote, int] = {}
    for pair in touched:
        now, links = stored.get(pair, 0), after.get(pair, 0)
        if links and not now:
            # A new host of this site; there are only so many.
            if room[pair[1]] <= 0:
                links = 0
            else:
                room[pair[1]] -= 1
        if links:
            accepted[pair] = links
        wanted[pair] = max(0, now - before.get(pair, 0)) + links
    changed = {pair: links for pair, links in wanted.items() if links != stored.get(pair, 0)}
    linked_queries.put_votes(session, changed)
    _move_totals(session, stored, changed)
    return accepted


def _move_totals(session: Session, stored: _Pairs, changed: _Pairs) -> None:
    known = linked_queries.totals(session, sorted({key for key, _ in changed}))
    moved: dict[str, HostTotal] = {}
    for (key, site), links in changed.items():
        total, was = moved.get(key) or known.get(key) or HostTotal(0, 0), stored.get((key, site), 0)
        moved[key] = HostTotal(total.links + links - was, total.sites + (links > 0) - (was > 0))
    linked_queries.put_totals(session, moved)


def _packed(pairs: _Pairs) -> bytes:
    by_site: dict[str, dict[str, int]] = defaultdict(dict)
    for (key, site), links in pairs.items():
        by_site[site][key] = links
    return zlib.compress(json.dumps(by_site, separators=(",", ":")).encode())


def _unpacked(packed: bytes | None) -> dict[Vote, int]:
    by_site = json.loads(zlib.decompress(packed)) if packed else {}
    return {(key, site): int(links) for site, hosts in by_site.items() for key, links in hosts.items()}


def linked_host_records(found: Mapping[str, HostTotal]) -> list[LinkedHostRecord]:
    return [
        LinkedHostRecord(host=host_name(key), links=one.links, linking_sites=one.sites) for key, one in found.items()
    ]
