"""Stores noise findings in one transaction: on the capture, with the evidence, and queued for search and changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import NamedTuple

from sqlalchemy.orm import Session

from holdfast.db.models import Snapshot
from holdfast.index.queries import renew_good_captures
from holdfast.noise import queries
from holdfast.noise.queries import Ruled
from holdfast.values import dataclass
from holdfast.withdrawals.recomparing import compare_again


class NoiseFinding(NamedTuple):
    kind: str
    evidence: str


@dataclass(slots=True, kw_only=True)
class WrittenFindings:
    marked: Counter[str] = field(default_factory=Counter)
    cleared: int = 0


def write_findings(
    session: Session, found: Mapping[int, NoiseFinding | None], ruled: Mapping[int, Ruled], *, now: datetime
) -> WrittenFindings:
    """Store changed findings of these captures; a manual ruling wins.

    `ruled` holds rulings known already; for other captures they are queried. The caller holds the lock of changes.
    """
    rows = queries.snapshots(session, found.keys())
    unasked = ((row.id, row.page_key or row.url_key) for row in rows if row.id not in ruled)
    rulings = {**ruled, **queries.rulings_on(session, unasked)}
    written = WrittenFindings()
    marked, cleared, touched = list[int](), list[int](), list[Snapshot]()
    for row in rows:
        ruling = rulings.get(row.id)
        finding = found[row.id] if ruling is None else ruled_finding(ruling)
        kind = None if finding is None else finding.kind
        (cleared if finding is None else marked).append(row.id)
        if finding is not None and (row.noise != kind or ruling is not None):
            by = None if ruling is None else ruling.actor
            queries.put_verdict(session, row.id, finding.kind, finding.evidence, by=by, now=now)
        if row.noise != kind:
            touched.append(row)
            row.noise = kind
            written.cleared += kind is None
            written.marked.update([] if kind is None else [kind])
    # Before the neighbours are looked at: which captures of a page answered hangs on what is noise now.
    session.flush()
    for row in touched:
        # One that was not compared yet is going to be, and what follows it with it.
        if row.is_page and row.compared:
            compare_again(session, row)
    queries.drop_verdicts(session, [row.id for row in touched if row.noise is None])
    queries.note_marked(session, marked, cleared)
    queries.tell_search(session, [row.id for row in touched if row.is_page], now=now)
    renew_good_captures(session, touched, now=now)
    return written


def ruled_finding(ruling: Ruled) -> NoiseFinding | None:
    return None if ruling.kind is None else NoiseFinding(ruling.kind, f"{ruling.actor} ruled so: {ruling.reason}")
