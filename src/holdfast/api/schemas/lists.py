"""Paginated lists: `items`, an opaque cursor `next`, and the effective `limit`."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from typing import Annotated, Generic, TypeVar

from fastapi import Query

from holdfast.errors import Invalid
from holdfast.records import Public, record
from holdfast.sources.config import why_not_plain

T = TypeVar("T")
R = TypeVar("R")
DEFAULT_LIMIT = 50
MAX_LIMIT = 500
_MAX_CURSOR_CHARS = 2000

ListLimit = Annotated[int, Query(ge=1, le=MAX_LIMIT, description="How many to list at most.")]
ListCursor = Annotated[
    str | None, Query(max_length=_MAX_CURSOR_CHARS, description="`next` of the answer before; left out at the start.")
]


@record
class Piece(Generic[T]):
    """A page of a list."""

    items: Public[list[T]]
    next: Public[str | None]
    """Send it as `cursor` to continue; null at the end."""
    limit: Public[int]


def piece_of(rows: Sequence[R], limit: int, shown: Callable[[R], T], place: Callable[[R], str | int]) -> Piece[T]:
    """Return a page from rows that were read with one more than the limit, and the cursor of the next page."""
    after = encode_cursor(place(rows[limit - 1])) if len(rows) > limit else None
    return Piece(items=[shown(row) for row in rows[:limit]], next=after, limit=limit)


class BadCursor(Invalid):
    """The cursor is invalid."""

    code = "bad_cursor"

    def __init__(self) -> None:
        super().__init__(
            "cursor: it is not one that a list answered with; leave it out to start at the beginning", field="cursor"
        )


def encode_cursor(*place: str | int | None) -> str:
    """Return the cursor of a position in a list: the sort key of the last item shown."""
    written = json.dumps(place, separators=(",", ":")).encode()
    return urlsafe_b64encode(written).rstrip(b"=").decode()


def decode_cursor(cursor: str | None, *kinds: type[str] | type[int]) -> Sequence[str | int] | None:
    """Return the position of a cursor, None without one; raise BadCursor if its parts are not of these types."""
    if cursor is None:
        return None
    try:
        place = json.loads(urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4)))
    except (ValueError, UnicodeError, RecursionError):
        raise BadCursor from None
    # Use `type(…) is`: true is an int to isinstance. Larger numbers break a database driver, and NUL breaks PostgreSQL.
    if not isinstance(place, list) or [type(part) for part in place] != list(kinds):
        raise BadCursor
    for part in place:
        if why_not_plain(part) is not None:
            raise BadCursor
    return place


def decode_ints(cursor: str | None, count: int) -> list[int] | None:
    """Return the numbers of a cursor, None without one; raise BadCursor if it does not hold `count` of them."""
    place = decode_cursor(cursor, *[int] * count)
    return None if place is None else [int(part) for part in place]


def decode_id(cursor: str | None) -> int | None:
    """Return the one number of a cursor, None without one; raise BadCursor if it holds anything else."""
    place = decode_ints(cursor, 1)
    return None if place is None else place[0]
