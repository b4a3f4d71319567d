"""The rows of sources that an ad-hoc crawl finds or makes, without a session: a crawl stays small."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from holdfast.db.raw import Transaction

# A code of 16 letters is how the source of a host is found again: `is_code_of`.
CODE_CHARS = 16
# Hosts that share their first 16 letters are few; the loop only has to end.
_CLASHES = 10_000


class AdhocSource(NamedTuple):
    """A source, as far as a crawl needs to know it."""

    id: int
    code: str
    base_url: str | None


def ensure_source(tx: Transaction, *, host: str, base_url: str, now: int) -> AdhocSource:
    """Return the source of an ad-hoc crawl, made if it is new and locked; its code comes from the host.

    Until the transaction ends no other start makes a job for it: of two that begin at one moment, the second finds what
    the first has made.
    """
    while True:
        code = free_code(tx, host, base_url)
        # The insert brings nothing if another process made the row a moment ago; the next round then reads it.
        found = source_by_code(tx, code) or insert_source(tx, AdhocSource(0, code, base_url), name=host, now=now)
        if found is not None:
            # Changes nothing and takes the lock of the row: on PostgreSQL a second start waits here until the job of
            # the first is committed.
            tx.execute("UPDATE sources SET updated_at = updated_at WHERE id = ?", (found.id,))
            return found


def source_by_code(tx: Transaction, code: str) -> AdhocSource | None:
    """Return the source with this code."""
    rows = tx.execute("SELECT id, code, base_url FROM sources WHERE code = ?", (code,))
    return AdhocSource(*rows[0]) if rows else None


def insert_source(tx: Transaction, source: AdhocSource, *, name: str, now: int) -> AdhocSource | None:
    """Make a source and give it its id; None if another transaction has just made one with this code."""
    rows = tx.execute(
        "INSERT INTO sources (code, name, base_url, enabled, config, created_at, updated_at)"
        " VALUES (?, ?, ?, true, '{}', ?, ?) ON CONFLICT (code) DO NOTHING RETURNING id",
        (source.code, name, source.base_url, now, now),
    )
    return source._replace(id=int(rows[0][0])) if rows else None


def free_code(tx: Transaction, host: str, base_url: str) -> str:
    """Return a code for a host: letters, digits and hyphens, at most 16; a clash with another site gets a number."""

    def taken(code: str) -> str | None:
        found = source_by_code(tx, code)
        return None if found is None else found.base_url or ""

    return code_for(host, base_url, taken)


def code_for(host: str, base_url: str, taken: Callable[[str], str | None]) -> str:
    """Return the code of a host's source; `taken` tells the address of the source that has a code, None if none has."""
    stem = _stem(host)
    for number in range(1, _CLASHES):
        code = _numbered(stem, number)
        # The same site again is no clash: its next ad-hoc crawl belongs to the same source.
        if taken(code) in (None, base_url):
            return code
    return stem


def is_code_of(code: str, host: str) -> bool:
    """Return whether an ad-hoc crawl of this host may have given its source this code."""
    number = code.rpartition("-")[2]
    # int() of a very long run of digits is slow, and Python refuses more than 4,300 of them.
    numbers = {1, int(number) if number.isascii() and number.isdecimal() and len(number) < CODE_CHARS else 1}
    return any(_numbered(_stem(host), one) == code for one in numbers)


def _stem(host: str) -> str:
    plain = "".join(c if c.isascii() and c.isalnum() else "-" for c in host.removeprefix("www.").lower()).strip("-")
    return plain[:CODE_CHARS].rstrip("-") or "site"


def _numbered(stem: str, number: int) -> str:
    suffix = "" if number == 1 else f"-{number}"
    return stem[: CODE_CHARS - len(suffix)] + suffix
