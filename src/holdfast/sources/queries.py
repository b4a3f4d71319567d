"""Queries of sources."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Row, Select, exists, func, or_, select, update
from sqlalchemy.orm import Session

from holdfast.clock import Clock
from holdfast.db.engine import insert_into
from holdfast.db.models import AddedUrl, Edition, Execution, Feed, Job, PageGroup, Snapshot, Source
from holdfast.errors import Invalid, NotFound
from holdfast.sources.codes import CODE_CHARS, free_code

_NAMES = 10_000
# Values per IN: older SQLite versions bind at most 999.
_AT_ONCE = 500
_CODE = re.compile(rf"[a-z0-9](?:[a-z0-9-]{{0,{CODE_CHARS - 2}}}[a-z0-9])?")


def no_source(code: str) -> str:
    # Truncate and quote: input may be long and may contain control characters.
    return f"there is no source {code[:CODE_CHARS]!r}"


class SourceNotFound(NotFound):
    """No source has this code."""

    code = "source_not_found"

    def __init__(self, code: str) -> None:
        super().__init__(f"{no_source(code)}; see them with: holdfast source list")


def source_by_code(session: Session, code: str) -> Source | None:
    return session.scalars(select(Source).where(Source.code == code)).one_or_none()


def source_of_site(session: Session, front_page: str) -> Source | None:
    """Return the oldest source with this front page, else the oldest that starts at another page of the site."""
    of_site = select(Source).where(Source.base_url.startswith(front_page, autoescape=True))
    return session.scalars(of_site.order_by(Source.base_url != front_page, Source.id).limit(1)).first()


def new_code(session: Session, *, name: str | None, seed: str | None) -> str:
    return free_code(lambda code: source_by_code(session, code) is not None, name=name, seed=seed)


class SiteSource(NamedTuple):
    code: str
    """The source's code; an unused one if the site has no source."""
    config: Mapping[str, Any] | None
    """None if the site has no source."""
    id: int | None = None


def site_of(session: Session, front_page: str) -> SiteSource:
    known = source_of_site(session, front_page)
    if known is None:
        return SiteSource(new_code(session, name=None, seed=front_page), None)
    return SiteSource(known.code, known.config, known.id)


def find_source(session: Session, code: str) -> Source:
    """Return the source with this code; raise SourceNotFound."""
    found = source_by_code(session, code)
    if found is None:
        raise SourceNotFound(code)
    return found


def source_id_of(session: Session, code: str | None) -> int | None:
    """Return the id of a source; None without a code; raise SourceNotFound: an empty list would hide a typing error."""
    return None if code is None else find_source(session, code).id


def source_to_edit(session: Session, code: str) -> Source:
    """Return a source, reloaded and locked until the transaction ends; raise SourceNotFound.

    Its configuration is one value: of two processes that change parts of it, the second must read the first's
    result.
    """
    found = session.scalars(_locked(select(Source).where(Source.code == code))).one_or_none()
    if found is None:
        raise SourceNotFound(code)
    return found


def _locked(asked: Select[Source]) -> Select[Source]:
    # Do not lock the key: PostgreSQL checks it whenever a job of the source is written.
    return asked.with_for_update(key_share=True).execution_options(populate_existing=True)


def sources_by_code(session: Session, codes: Sequence[str], *, to_edit: bool = False) -> dict[str, Source]:
    """Return the existing sources by code; locked until the transaction ends if `to_edit`."""
    found: dict[str, Source] = {}
    # Lock in a fixed order: two processes that lock the same sources must not deadlock.
    codes = sorted(codes)
    for start in range(0, len(codes), _AT_ONCE):
        asked = select(Source).where(Source.code.in_(codes[start : start + _AT_ONCE])).order_by(Source.code)
        found |= {row.code: row for row in session.scalars(_locked(asked) if to_edit else asked)}
    return found


def source_by_id(session: Session, source_id: int) -> Source | None:
    return session.get(Source, source_id)


def sources_by_id(session: Session, ids: Iterable[int]) -> dict[int, Source]:
    return {row.id: row for row in session.scalars(select(Source).where(Source.id.in_(sorted(set(ids)))))}


def sources(session: Session, *, enabled: bool | None = None, after: str = "", limit: int = 1000) -> list[Source]:
    """Return the sources by code, after `after`."""
    query = select(Source).where(Source.code > after).order_by(Source.code).limit(limit)
    return list(session.scalars(query if enabled is None else query.where(Source.enabled == enabled)))


def names_of_sources(session: Session) -> list[Row[tuple[int, str, str, bool, str | None]]]:
    """Return id, code, name, `enabled` and schedule hint of the sources, by code; at most 10,000."""
    hint = Source.config["schedule_hint"].as_string().label("hint")
    query = select(Source.id, Source.code, Source.name, Source.enabled, hint).order_by(Source.code).limit(_NAMES)
    return list(session.execute(query))


def listed_sources(
    session: Session, *, enabled: bool | None = None, search: str = "", limit: int = 50, offset: int = 0
) -> tuple[list[Source], int]:
    """Return one page of sources by code, and the total; `search` is a part of code, name or address."""
    where = [] if enabled is None else [Source.enabled == enabled]
    if search:
        # Search words are data: escape % and _.
        part = search.lower().replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        columns = (Source.code, Source.name, Source.base_url)
        where.append(or_(*(func.lower(column).like(f"%{part}%", escape="\\") for column in columns)))
    total = session.scalar(select(func.count()).select_from(Source).where(*where)) or 0
    page = select(Source).where(*where).order_by(Source.code).limit(limit).offset(offset)
    return list(session.scalars(page)), total


def members_codes(session: Session) -> list[str]:
    return list(session.scalars(select(Source.code).where(Source.visibility == "members").order_by(Source.code)))


def with_feeds(session: Session) -> set[int]:
    # Filter in Python: the two databases spell JSON paths differently, and there are only hundreds of sources.
    return {row[0] for row in session.execute(select(Source.id, Source.config)) if row[1].get("feeds")}


def note_search(session: Session, *, source_id: int, at: datetime | None) -> None:
    """Store when a source was last searched for feeds; None makes the next poll search it."""
    session.execute(update(Source).where(Source.id == source_id).values(feeds_sought_at=at))


def belongings(session: Session, *, source_id: int) -> str | None:
    """Return the kind of objects that belong to a source and prevent its deletion, or None."""
    for what, column in (
        ("captures", Snapshot.source_id),
        ("captures", PageGroup.source_id),
        ("editions", Edition.source_id),
        ("jobs", Job.source_id),
        ("feeds", Feed.source_id),
        ("addresses that wait for its next run", AddedUrl.source_id),
    ):
        if session.scalar(select(column).where(column == source_id).limit(1)) is not None:
            return what
    return None


def started_among(session: Session, source_ids: Sequence[int]) -> set[int]:
    """Return the sources among these that have run or have captures: links and files contain their codes."""
    runs = select(Job.source_id).where(Job.source_id.in_(source_ids), exists().where(Execution.job_id == Job.id))
    return set(session.scalars(runs.distinct()))


def is_code(text: str) -> bool:
    return _CODE.fullmatch(text) is not None


def named_source(
    session: Session, clock: Clock, *, code: str, name: str | None = None, base_url: str | None = None
) -> Source:
    """Return the source with this code, created with this name and address if it is new.

    An existing one is unchanged. Raise Invalid for an invalid code.
    """
    if not _CODE.fullmatch(code):
        raise Invalid(f"{code!r} is no code of a source: write 1 to {CODE_CHARS} letters, digits and hyphens")
    source = source_by_code(session, code)
    if source is None:
        now = clock.now()
        row: dict[str, Any] = {"code": code, "name": name or code, "base_url": base_url, "enabled": True, "config": {}}
        insert = insert_into(session, Source).values({**row, "created_at": now, "updated_at": now})
        # If another process creates it at the same time, use its row.
        session.execute(insert.on_conflict_do_nothing(index_elements=["code"]))
        source = session.scalars(select(Source).where(Source.code == code)).one()
    return source
