"""The rows of sources."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from holdfast.clock import Clock
from holdfast.db.models import Source

CODE_CHARS = 16


def source_by_code(session: Session, code: str) -> Source | None:
    """Return the source with this code."""
    return session.scalars(select(Source).where(Source.code == code)).one_or_none()


def ensure_source(session: Session, clock: Clock, *, host: str, base_url: str) -> Source:
    """Return the source of an ad-hoc crawl, made if it is new; its code comes from the host."""
    code = free_code(session, host, base_url)
    source = source_by_code(session, code)
    if source is None:
        now = clock.now()
        source = Source(code=code, name=host, base_url=base_url, enabled=True, config={}, created_at=now,
                        updated_at=now)  # fmt: skip
        session.add(source)
        session.flush()
    return source


def free_code(session: Session, host: str, base_url: str) -> str:
    """Return a code for a host: letters, digits and hyphens, at most 16; a clash with another site gets a number."""
    plain = "".join(c if c.isascii() and c.isalnum() else "-" for c in host.removeprefix("www.").lower()).strip("-")
    stem = plain[:CODE_CHARS].rstrip("-") or "site"
    for number in range(1, 10_000):
        suffix = "" if number == 1 else f"-{number}"
        code = stem[: CODE_CHARS - len(suffix)] + suffix
        taken = source_by_code(session, code)
        if taken is None or taken.base_url == base_url:
            return code
    return stem
