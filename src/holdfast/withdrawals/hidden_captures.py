"""The captures under takedown of an execution, of page groups and of sources: those that counts and packages omit.

All queries start from the takedowns in force, which are few, and never scan all captures.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, ColumnElement, Select, bindparam, func, select, union
from sqlalchemy.orm import Session

from holdfast.db.models import Snapshot
from holdfast.urls import page_key, url_key
from holdfast.withdrawals.visibility import (
    hidden_keys,
    hidden_sources,
    is_any_withdrawn,
    names_hidden_original,
    originals_hidden,
    withdrawn_captures,
)

_PAGES = (Snapshot.is_page, Snapshot.group_id.is_not(None))


class HiddenRecord(NamedTuple):
    warc_file_id: int
    offset: int
    length: int


def hidden_records(session: Session, execution_id: int, file_ids: list[int]) -> list[HiddenRecord]:
    """Return the positions of an execution's records under takedown, in order; one seek per takedown in force."""
    known = set(file_ids)
    found: set[HiddenRecord] = set()
    for question in withdrawn_captures(Snapshot.warc_file_id, Snapshot.warc_offset, Snapshot.warc_length):
        # `+ 0` keeps the planner on the withdrawals: the index of executions would read the whole execution.
        rows = session.execute(question.where(Snapshot.execution_id + 0 == execution_id))
        found.update(map(HiddenRecord._make, rows))
    return sorted(record for record in found if record.warc_file_id in known)


_AT_ONCE = 2_000


def hidden_addresses(session: Session, urls: Iterable[str]) -> set[str]:
    keys = {url: (url_key(url), page_key(url)) for url in urls}
    found = hidden_keys(session, *zip(*keys.values(), strict=True)) if keys else set[int | str]()
    return {url for url, both in keys.items() if not found.isdisjoint(both)}


def veiled_revisits(session: Session, which: ColumnElement[bool]) -> dict[int, HiddenRecord]:
    """Return the revisits, among captures that match a clause, that name a capture hidden from the viewer.

    Their records contain its address. By id, with their positions.
    """
    veiled: dict[int, HiddenRecord] = {}
    if not (is_any_withdrawn(session) or hidden_sources(session)):
        return veiled
    columns = Snapshot.id, Snapshot.warc_file_id, Snapshot.warc_offset, Snapshot.warc_length
    wanted = (
        select(*columns, Snapshot.refers_to_url)
        .where(which, Snapshot.record_type == "revisit", names_hidden_original())
        .order_by(Snapshot.id)
        .limit(_AT_ONCE)
    )
    after, is_more = -1, True
    while is_more:
        rows = session.execute(wanted.where(Snapshot.id > after)).all()
        borrowed = originals_hidden(session, (row[0] for row in rows))
        secret = hidden_addresses(session, {row[4] for row in rows if row[4]})
        veiled |= {row[0]: HiddenRecord(*row[1:4]) for row in rows if row[0] in borrowed or row[4] in secret}
        after, is_more = (rows[-1][0] if rows else after), len(rows) == _AT_ONCE
    return veiled


def hidden_counts(session: Session, *, source_id: int, executions: Collection[int]) -> dict[int, int]:
    """Return the number of page captures under takedown for each of these executions; zeros are omitted.

    A capture that is taken down both itself and with its page counts once.
    """
    if not executions:
        return {}
    rows = session.execute(_counts(), {"source_id": source_id, "executions": list(executions)})
    return {row[0]: row[1] for row in rows}


def touched_addresses(session: Session, urls: Collection[str]) -> frozenset[str]:
    """Return which of these captured addresses have a capture under takedown."""
    questions = withdrawn_captures(Snapshot.url) if urls else ()
    # Use `||`: a planner that uses the index of addresses would read all captures of one.
    found = (session.scalars(question.where(Snapshot.url.concat("").in_(urls))) for question in questions)
    return frozenset(url for part in found for url in part)


# Build it once: that takes longer than running most of them, and half a megabyte meanwhile.
@cache
def hidden_groups() -> Select[*tuple[Any, ...]]:
    """Return a query of the page groups with a capture under takedown, itself or with its page.

    The database seeks each such capture. For use as a subquery: a page may have any number of them.
    """
    found = union(*(question.where(*_PAGES) for question in withdrawn_captures(Snapshot.group_id))).subquery()
    return select(found.c.group_id)


@cache
def _counts() -> Select[*tuple[Any, ...]]:
    # Use `+ 0`: a planner that uses the index of sources or executions would read all of one.
    of_source = Snapshot.source_id + 0 == bindparam("source_id", type_=BigInteger)
    kept = [*_PAGES, of_source, (Snapshot.execution_id + 0).in_(bindparam("executions", expanding=True))]
    questions = withdrawn_captures(Snapshot.id, Snapshot.execution_id)
    found = union(*(question.where(*kept) for question in questions)).subquery()
    return select(found.c.execution_id, func.count()).group_by(found.c.execution_id)
