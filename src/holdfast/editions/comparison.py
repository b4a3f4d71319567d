"""Compares one year's edition of a source with another's: figures, every page, and a text for people."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from pathlib import Path
from typing import Any, Final, NamedTuple

from holdfast.changes.site_comparison import PageDifference, SiteCapture, SiteKind, count_kinds
from holdfast.clock import Clock, from_micros, to_micros
from holdfast.db.engine import Database
from holdfast.editions import edition_files, queries
from holdfast.editions.composition import comparison_text
from holdfast.editions.edition_files import LEDGER, EditionDraft, WrittenFile, csv_line, edition_folder, utc_text
from holdfast.editions.edition_view import EditionNotReady, EditionView, captures_of, view_edition
from holdfast.editions.freezing import OnRow, cited_list, counted, entries, silent
from holdfast.editions.ledger import LedgerOutcome
from holdfast.editions.queries import CaptureRow
from holdfast.errors import Invalid
from holdfast.index.capture import identify
from holdfast.sorting import sorted_lines

# Limit of gone URLs per body kept in memory until the body appears again: some 3 MB.
_HELD_OF_A_BODY: Final = 10_000


class KeptPage(NamedTuple):
    """A page of an edition: its last visible capture, or only that it was intended or taken down."""

    place: tuple[bytes, bytes]
    held: SiteCapture | None = None
    id: int | None = None
    is_withdrawn: bool = False
    """Whether all its captures are taken down."""
    is_meant: bool = True
    """Whether the ledger has it, or redirects to it; false for robots.txt and embedded resources."""


def pages_of(
    database: Database, home: Path, view: EditionView, scratch: Path, on_row: OnRow = silent
) -> Iterator[KeptPage]:
    """Yield each page of an edition once, by address: as it was frozen, or from its executions.

    Raise EditionNotReady without a ledger, or without the frozen list of a frozen edition; FrozenListDamaged.
    """
    live = (row for _, row in captures_of(database, view))
    rows = _frozen(database, home, view) if view.edition.frozen_at else live
    # Sort on disk: an edition may have tens of millions of captures.
    lines = counted(chain(_meant(home, view), map(_pack, rows)), on_row)
    parts = (line.split(b"\x00") for line in sorted_lines(lines, scratch))
    for (key, page), group in groupby(parts, key=lambda parts: parts[:2]):
        yield _kept((key, page), [json.loads(parts[-1]) for parts in group])


def _meant(home: Path, view: EditionView) -> Iterator[bytes]:
    code, year = view.source.code, view.edition.year
    label, again = f"{code} {year}", f"write it with: holdfast edition report --year {year} --sources {code} --apply"
    path = edition_folder(home, view.source.code, view.edition.year) / LEDGER
    try:
        with path.open("rb") as file:
            for line in file:
                row = json.loads(line)
                # The ledger's URLs are marks without a capture: missing intended URLs must be known, too.
                yield _mark(row["url"])
                if row["redirected_to"] and row["outcome"] == LedgerOutcome.CAPTURED:
                    yield _mark(row["redirected_to"])
    except FileNotFoundError as exc:
        raise EditionNotReady(f"{label} has no report; {again}") from exc
    except (ValueError, KeyError, TypeError) as exc:
        raise EditionNotReady(f"the ledger of {label} is damaged; {again}") from exc


def _mark(url: str) -> bytes:
    found = identify(url)
    return b"%b\x00%b\x00null\n" % _place_of(found.url_key, found.url_hash)


def _frozen(database: Database, home: Path, view: EditionView) -> Iterator[CaptureRow]:
    for batch in entries(cited_list(home, view.edition)):
        # Lists of an earlier version have no "page": there only the rows tell which captures are pages.
        ids = [row["snapshot_id"] for row in batch if row is not None and row.get("page", True)]
        with database.read() as session:
            found = queries.captures_by_id(session, ids)
        yield from (found[number] for number in ids if number in found and found[number].is_page)


def _pack(row: CaptureRow) -> bytes:
    body = row.body_hash.hex() if row.body_hash is not None else None
    moment = to_micros(row.captured_at)
    fields = [row.id, row.execution_id, row.url, row.url_hash, moment, row.status, body, row.withdrawn, row.truncated]
    return b"%b\x00%b\x00%020d\x00%020d\x00%b\n" % (
        *_place_of(row.url_key, row.url_hash),
        moment,
        row.id,
        json.dumps(fields).encode(),
    )


def _place_of(url_key: str, url_hash: int) -> tuple[bytes, bytes]:
    key = url_key.replace("\x00", "%00").replace("\n", "%0A").encode("utf-8", "replace")
    return key, b"%016x" % (url_hash & 0xFFFF_FFFF_FFFF_FFFF)


def _kept(place: tuple[bytes, bytes], found: list[list[Any] | None]) -> KeptPage:
    """Return the last visible capture; lines of one page are in time order, None marks an intended page."""
    captures = [capture for capture in found if capture is not None]
    is_meant = len(captures) < len(found)
    seen = [capture for capture in captures if not capture[7]]
    if not seen:
        return KeptPage(place, None, captures[-1][0] if captures else None, bool(captures), is_meant)
    number, execution, url, page, micros, status, body, _, truncated = seen[-1]
    digest = bytes.fromhex(body) if body else None
    held = SiteCapture(number, execution, url, page, from_micros(micros), status, digest, None, truncated)
    return KeptPage(place, held, number, is_meant=is_meant)


def compare(before: Iterable[KeptPage], now: Iterable[KeptPage], scratch: Path) -> Iterator[PageDifference]:
    """Yield the difference of every page, in order of address; moved pages are listed at their present address."""
    yield from (
        PageDifference._make(json.loads(line.rsplit(b"\x00", 1)[1]))
        for line in sorted_lines(_differences(before, now, scratch), scratch)
    )


def _differences(before: Iterable[KeptPage], now: Iterable[KeptPage], scratch: Path) -> Iterator[bytes]:
    """Yield differences as sortable lines: the certain ones directly, gone and new pages after pairing."""
    pairing = _Pairing()

    def settled() -> Iterator[bytes]:
        for a, b in joined(before, now):
            kind = verdict(a, b)
            if kind is None:
                continue
            line = _line(kind, a, b)
            body = _loose_body(kind, a, b)
            if body is None:
                # One sort for both kinds: settled differences pass through; new and gone pages are sorted by body.
                yield b"0\x00" + line
            else:
                # Sort by body, gone pages before new ones, each in the order of its URL.
                yield b"1\x00%b\x00%d\x00%b" % (body, kind == SiteKind.NEW, line)

    for line in sorted_lines(settled(), scratch):
        if line.startswith(b"0\x00"):
            yield line[2:]
            continue
        _, body, is_new, rest = line.split(b"\x00", 3)
        yield from pairing.take(body, rest, is_new=is_new == b"1")
    yield from pairing.end()


class _Pairing:
    """Reports a gone and a new page with the same body as one moved page, pairing them in order.

    Gone pages come first and are held until a new one comes; if thousands of lost addresses shared a body (an error
    page, an empty one), the excess is listed as gone immediately.
    """

    def __init__(self) -> None:
        self._body = b""
        self.gone: deque[bytes] = deque()

    def take(self, body: bytes, line: bytes, *, is_new: bool) -> Iterator[bytes]:
        if body != self._body:
            yield from self.end()
            self._body = body
        if is_new:
            yield _moved(self.gone.popleft(), line) if self.gone else line
        elif len(self.gone) < _HELD_OF_A_BODY:
            self.gone.append(line)
        else:
            yield line

    def end(self) -> Iterator[bytes]:
        while self.gone:
            yield self.gone.popleft()


def _moved(there: bytes, here: bytes) -> bytes:
    left = PageDifference._make(json.loads(there.rsplit(b"\x00", 1)[1]))
    came = PageDifference._make(json.loads(here.rsplit(b"\x00", 1)[1]))
    moved = came._replace(kind=SiteKind.MOVED.value, from_url=left.url, from_snapshot_id=left.from_snapshot_id)
    return b"%b\x00%b\n" % (here.rsplit(b"\x00", 1)[0], json.dumps(moved).encode())


def joined(before: Iterable[KeptPage], now: Iterable[KeptPage]) -> Iterator[tuple[KeptPage | None, KeptPage | None]]:
    """Yield the pages of two sorted editions side by side, None if one of them lacks the page."""
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


def verdict(before: KeptPage | None, now: KeptPage | None) -> str | None:
    """Return the kind of change of a page, by the rules of `site_comparison`; None if it never existed.

    An intended page without a capture is an error.
    """
    # Check this first: not even whether a withdrawn page changed may be visible.
    if (before is not None and before.is_withdrawn) or (now is not None and now.is_withdrawn):
        return SiteKind.WITHDRAWN
    was = before.held if before is not None else None
    is_now = now.held if now is not None else None
    was_there = was is not None and was.is_ok
    if is_now is None or not is_now.is_ok:
        # A URL that neither ledger intended (an embedded image, robots.txt) is not missing if only one edition has it.
        if not was_there or (now is None and before is not None and not before.is_meant):
            return None
        # The page was requested again and failed: it may not be gone.
        in_vain = now is not None and (is_now is None or is_now.has_failed)
        return SiteKind.ERROR if in_vain else SiteKind.GONE
    if was is None or not was_there:
        return SiteKind.NEW if before is not None or (now is not None and now.is_meant) else None
    return SiteKind.UNCHANGED if was.body_hash is not None and was.body_hash == is_now.body_hash else SiteKind.CHANGED


def _loose_body(kind: str, before: KeptPage | None, now: KeptPage | None) -> bytes | None:
    side = before if kind == SiteKind.GONE else now if kind == SiteKind.NEW else None
    held = side.held if side is not None else None
    return held.body_hash.hex().encode() if held is not None and held.body_hash is not None else None


def _line(kind: str, before: KeptPage | None, now: KeptPage | None) -> bytes:
    shown = now if now is not None and now.held is not None and now.held.is_ok else before or now
    assert shown is not None
    url = None if kind == SiteKind.WITHDRAWN or shown.held is None else shown.held.url
    difference = PageDifference(str(kind), url, None, before.id if before else None, now.id if now else None)
    # Withdrawn pages come last: their place must not reveal their address.
    key, page = (b"~", b"") if kind == SiteKind.WITHDRAWN else shown.place
    return b"%d\x00%b\x00%b\x00%b\n" % (kind == SiteKind.WITHDRAWN, key, page, json.dumps(difference).encode())


_EXAMPLES = 20


def comparison_stem(earlier_year: int) -> str:
    return f"comparison-{earlier_year}"


def write_comparison(
    database: Database, home: Path, clock: Clock, earlier_id: int, later_id: int, *, on_row: OnRow = silent
) -> tuple[dict[str, Any], Path]:
    """Compare two editions of one source, write the result beside the later one, and return it with its JSON file.

    Raise Invalid if they are not two of one source, the earlier year first; EditionNotFound; EditionNotReady if a
    report or a frozen list is gone, FrozenListDamaged; EditionBusy, NoSpace.
    """
    with database.read() as session:
        earlier, later = view_edition(session, earlier_id), view_edition(session, later_id)
    if earlier.source.id != later.source.id or earlier.edition.year >= later.edition.year:
        raise Invalid("name two editions of one source, the earlier year first")
    folder = edition_files.edition_folder(home, later.source.code, later.edition.year)
    stem = comparison_stem(earlier.edition.year)
    with edition_files.draft(folder) as made:
        # Use the draft's scratch folder: it is on the archive's disk and always removed.
        before = pages_of(database, home, earlier, made.scratch, on_row)
        now = pages_of(database, home, later, made.scratch, on_row)
        counts: Counter[str] = Counter()
        examples: dict[str, list[str]] = {}
        found = _sampled(count_kinds(compare(before, now, made.scratch), counts), examples)
        lines, table = _write_pages(made, stem, found)
        content = {
            "source": later.source.code,
            "source_name": later.source.name,
            "earlier": _edition(earlier),
            "later": _edition(later),
            "counts": {kind.value: counts[kind] for kind in SiteKind},
            "pages": counts.total(),
            "artifacts": {file.name: file.described() for file in (lines, table)},
            "generated_at": utc_text(clock.now()),
            "examples": examples,
        }
        text = made.whole(f"{stem}.md", comparison_text(content).encode())
        whole = made.whole(f"{stem}.json", json.dumps(content, indent=2, ensure_ascii=False).encode() + b"\n")
        # Publish the JSON last: readers start from it, and the files that it names must exist by then.
        made.publish(lines, table, text, whole)
    return content, folder / f"{stem}.json"


def _sampled(differences: Iterable[PageDifference], examples: dict[str, list[str]]) -> Iterable[PageDifference]:
    for difference in differences:
        if difference.url is not None and difference.kind != "unchanged":
            some = examples.setdefault(difference.kind, [])
            if len(some) < _EXAMPLES:
                some.append(difference.url)
        yield difference


def _write_pages(
    made: EditionDraft, stem: str, differences: Iterable[PageDifference]
) -> tuple[WrittenFile, WrittenFile]:
    with made.sheet(f"{stem}.jsonl") as lines, made.sheet(f"{stem}.csv") as table:
        table.write(csv_line(PageDifference._fields))
        for difference in differences:
            fields = {name: value for name, value in difference._asdict().items() if value is not None}
            lines.line(json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
            table.line(csv_line(difference))
        return lines.close(), table.close()


def _edition(view: EditionView) -> dict[str, Any]:
    row = view.edition
    return {
        "edition_id": row.id,
        "year": row.year,
        "status": row.status,
        "frozen_digest": row.frozen_digest,
        "frozen_at": row.frozen_at.isoformat() if row.frozen_at else None,
    }
