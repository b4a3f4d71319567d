"""Two editions held against each other: what is new, gone, changed, unchanged, and what moved to another address.

Each edition is read once, sorted by address outside memory, and merged with the other. The body that vanished here and
the one that appeared there are then matched by their digest. A frozen edition is compared as it was frozen.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from holdfast.changes.site import SiteKind
from holdfast.changes.site.queries import Held
from holdfast.clock import from_micros, to_micros
from holdfast.db.engine import Database
from holdfast.editions import queries
from holdfast.editions.freezing import captures_of, frozen_list
from holdfast.editions.queries import CaptureRow
from holdfast.editions.volume import Volume
from holdfast.sorting import sorted_lines

WITHDRAWN: Final = "withdrawn"
_AT_ONCE = 500


class Kept(NamedTuple):
    """What an edition holds of a page: its last capture that may be seen, or only that it was withdrawn."""

    place: tuple[bytes, bytes]
    held: Held | None
    """None if everything of it was withdrawn."""
    id: int


class Difference(NamedTuple):
    """What became of one page from the earlier edition to the later."""

    kind: str
    """One of `SiteKind`, or withdrawn: then no address is told."""
    url: str | None = None
    from_url: str | None = None
    """Where it was, if it moved."""
    from_snapshot_id: int | None = None
    to_snapshot_id: int | None = None


def pages_of(database: Database, home: Path, volume: Volume, scratch: Path) -> Iterator[Kept]:
    """Yield each page of an edition once, by address: as it was frozen, or as its executions have it."""
    rows = _frozen(database, home, volume) if volume.edition.frozen_at else _live(database, volume)
    for place, group in groupby(sorted_lines(map(_pack, rows), scratch), key=_place):
        yield _kept(place, [json.loads(line.rsplit(b"\x00", 1)[1]) for line in group])


def _live(database: Database, volume: Volume) -> Iterator[CaptureRow]:
    return captures_of(database, volume, pages_only=True)


def _frozen(database: Database, home: Path, volume: Volume) -> Iterator[CaptureRow]:
    with frozen_list(home, volume.edition).open("rb") as file:
        while batch := list(islice(file, _AT_ONCE)):
            ids = [row["snapshot_id"] for line in batch if (row := json.loads(line)).get("page", True)]
            with database.read() as session:
                found = queries.captures_by_id(session, ids)
            yield from (found[number] for number in ids if number in found and found[number].is_page)


def _pack(row: CaptureRow) -> bytes:
    key = row.url_key.replace("\x00", "%00").replace("\n", "%0A").encode("utf-8", "replace")
    body = row.body_hash.hex() if row.body_hash is not None else None
    fields = [row.id, row.execution_id, row.url, row.url_hash, to_micros(row.captured_at), row.status, body,
              row.withdrawn]  # fmt: skip
    page = row.url_hash & 0xFFFF_FFFF_FFFF_FFFF
    return b"%b\x00%016x\x00%020d\x00%020d\x00%b\n" % (
        key, page, to_micros(row.captured_at), row.id, json.dumps(fields).encode()
    )  # fmt: skip


def _place(line: bytes) -> tuple[bytes, bytes]:
    key, page, _ = line.split(b"\x00", 2)
    return key, page


def _kept(place: tuple[bytes, bytes], captures: list[list[Any]]) -> Kept:
    """Return the last capture that may be seen; lines of one page come in the order of time."""
    seen = [capture for capture in captures if not capture[7]]
    if not seen:
        return Kept(place, None, captures[-1][0])
    number, execution, url, page, micros, status, body, _ = seen[-1]
    held = Held(number, execution, url, page, from_micros(micros), status, bytes.fromhex(body) if body else None, None)
    return Kept(place, held, number)


def compare(before: Iterable[Kept], now: Iterable[Kept], scratch: Path) -> Iterator[Difference]:
    """Yield what became of every page, in the order of the addresses; what moved stands where it is now."""
    yield from (
        Difference._make(json.loads(line.rsplit(b"\x00", 1)[1]))
        for line in sorted_lines(_differences(before, now, scratch), scratch)
    )


def _differences(before: Iterable[Kept], now: Iterable[Kept], scratch: Path) -> Iterator[bytes]:
    """Yield differences as sortable lines: at once what is settled, and after the pairing what came or went."""
    loose: list[bytes] = []

    def settled() -> Iterator[bytes]:
        for a, b in joined(before, now):
            kind = verdict(a, b)
            if kind is None:
                continue
            line = _line(kind, a, b)
            body = _loose_body(kind, a, b)
            if body is None:
                yield b"0\x00" + line
            else:
                # Sorted by body, those that went before those that came, each in the order of its address.
                yield b"1\x00%b\x00%d\x00%b" % (body, kind == SiteKind.NEW, line)

    for line in sorted_lines(settled(), scratch):
        if line.startswith(b"0\x00"):
            yield line[2:]
            continue
        if loose and loose[0].split(b"\x00", 2)[1] != line.split(b"\x00", 2)[1]:
            yield from _paired(loose)
            loose = []
        loose.append(line)
    yield from _paired(loose)


def _paired(lines: list[bytes]) -> Iterator[bytes]:
    """Yield the lines of one body: what went and what came, paired in order, moved; the rest stays gone or new."""
    parts = [line.split(b"\x00", 3) for line in lines]
    gone = [part[3] for part in parts if part[2] == b"0"]
    new = [part[3] for part in parts if part[2] == b"1"]
    for there, here in zip(gone, new, strict=False):
        left = Difference._make(json.loads(there.rsplit(b"\x00", 1)[1]))
        came = Difference._make(json.loads(here.rsplit(b"\x00", 1)[1]))
        moved = came._replace(kind=SiteKind.MOVED.value, from_url=left.url, from_snapshot_id=left.from_snapshot_id)
        yield b"%b\x00%b\n" % (here.rsplit(b"\x00", 1)[0], json.dumps(moved).encode())
    pairs = min(len(gone), len(new))
    yield from gone[pairs:]
    yield from new[pairs:]


def joined(before: Iterable[Kept], now: Iterable[Kept]) -> Iterator[tuple[Kept | None, Kept | None]]:
    """Yield the pages of two sorted editions side by side, None where one of them has nothing."""
    lefts, rights = iter(before), iter(now)
    left, right = next(lefts, None), next(rights, None)
    while left is not None or right is not None:
        if right is None or (left is not None and left.place < right.place):
            yield left, None
            left = next(lefts, None)
        elif left is None or right.place < left.place:
            yield None, right
            right = next(rights, None)
        else:
            yield left, right
            left, right = next(lefts, None), next(rights, None)


def verdict(before: Kept | None, now: Kept | None) -> str | None:
    """Return what became of a page, by the rules of `changes.site`; None if it was never there to begin with."""
    if (before is not None and before.held is None) or (now is not None and now.held is None):
        return WITHDRAWN
    was = before.held if before is not None else None
    is_now = now.held if now is not None else None
    was_there = was is not None and was.is_ok
    if is_now is None or not is_now.is_ok:
        if not was_there:
            return None
        return SiteKind.ERROR if is_now is not None and is_now.has_failed else SiteKind.GONE
    if was is None or not was_there:
        return SiteKind.NEW
    return SiteKind.UNCHANGED if was.body_hash is not None and was.body_hash == is_now.body_hash else SiteKind.CHANGED


def _loose_body(kind: str, before: Kept | None, now: Kept | None) -> bytes | None:
    """Return the body of a page that came or went, by which its other half is found; None for all others."""
    side = before if kind == SiteKind.GONE else now if kind == SiteKind.NEW else None
    held = side.held if side is not None else None
    return held.body_hash.hex().encode() if held is not None and held.body_hash is not None else None


def _line(kind: str, before: Kept | None, now: Kept | None) -> bytes:
    shown = now if now is not None and now.held is not None and now.held.is_ok else before or now
    assert shown is not None
    url = None if kind == WITHDRAWN or shown.held is None else shown.held.url
    told = Difference(str(kind), url, None, before.id if before else None, now.id if now else None)
    # What is withdrawn stands at the end: its place must not tell its address.
    key, page = (b"~", b"") if kind == WITHDRAWN else shown.place
    return b"%d\x00%b\x00%b\x00%b\n" % (kind == WITHDRAWN, key, page, json.dumps(told).encode())


def counted(differences: Iterable[Difference], counts: Counter[str]) -> Iterator[Difference]:
    """Pass differences on, and count them by kind."""
    for difference in differences:
        counts[difference.kind] += 1
        yield difference
