"""The public form of an edition: the report without internals of its shards, the tables, the frozen list.

Files are static, so every line is filtered when it is read: a takedown applies immediately and for every
reader. Rows stay, so the counts still add up; those of a comparison that concern takedowns are at its end, all
alike. No server path is ever shown.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from sqlalchemy.orm import Session

from holdfast import cancellation
from holdfast.changes.site_comparison import SiteKind
from holdfast.db.engine import Database
from holdfast.db.models import Edition, Source
from holdfast.editions import edition_files
from holdfast.editions.comparison import comparison_stem
from holdfast.editions.edition_files import ArtefactNotFound, edition_folder, open_copy, stored_file, table_line
from holdfast.editions.freezing import entries
from holdfast.urls import page_key
from holdfast.withdrawals.hidden_captures import touched_addresses
from holdfast.withdrawals.visibility import is_any_withdrawn, withdrawals_fingerprint, withdrawn_among

WITHDRAWN: Final = "(withdrawn)"
_ADDRESSES: Final = ("url", "via", "redirected_to", "from_url")
# Columns that lead to a withdrawn page: where it is linked, its target, when it was captured.
_TRACES: Final = ("detail", "at", "via", "redirected_to")
_SNAPSHOTS: Final = ("snapshot_id", "from_snapshot_id", "to_snapshot_id")
# The comparison's column with a page's outcome; no other table has it.
_VERDICT: Final = "kind"
_CHUNK = 1 << 16
_AT_ONCE = 500
# A number with this many digits may not fit into a BIGINT; no capture has such an id.
_DIGITS = 19
_SEEDS_SHOWN = 100
_ROWS_READ = 500_000


class FileForm(StrEnum):
    JSON = "application/json"
    CSV = "text/csv; charset=utf-8"
    LINES = "application/x-ndjson"


def open_public(
    database: Database, home: Path, edition: Edition, source: Source, name: str, *, cache_bytes: int
) -> tuple[str, FileForm, Iterator[bytes]]:
    """Return the name, the type and the content of an edition's public file; raise ArtefactNotFound.

    Names: coverage-report.json, coverage.csv, frozen.jsonl, comparison-<year>.json, comparison-<year>.csv. A long
    file is read directly, or from a copy without captures under takedown; the first request after a takedown
    creates it, and others get CopyBusy meanwhile. Copies of all editions use at most `cache_bytes` together. Raise
    NoSpace.
    """
    folder, shown = edition_folder(home, source.code, edition.year), f"{source.code}-{edition.year}-{name}"
    # Match whole names; never join a given name to a path.
    compared = re.fullmatch(r"comparison-([0-9]{4})\.(json|csv)", name)
    if name == edition_files.REPORT_JSON:
        return shown, FileForm.JSON, iter([_report(database, _read(folder / name, name))])
    if compared and compared[2] == "json":
        path = folder / f"{comparison_stem(int(compared[1]))}.json"
        return shown, FileForm.JSON, iter([_comparison(database, _read(path, name))])
    copies = home.resolve() / "cache" / "editions" / f"{source.code}-{edition.year}"
    if name == edition_files.CSV or compared:
        path = _there(folder / name, name)
        return shown, FileForm.CSV, _long(database, copies, path, _table, most_bytes=cache_bytes)
    if name == edition_files.FROZEN and edition.frozen_path is not None:
        path = _there(stored_file(home, edition.frozen_path), name)
        return shown, FileForm.LINES, _long(database, copies, path, _lines, most_bytes=cache_bytes)
    raise ArtefactNotFound(f"there is no {name[:60]!r} of {source.code} {edition.year} for the public")


def table_rows(
    table: Iterable[bytes], wanted: Mapping[str, Collection[str]], *, start: int, limit: int
) -> tuple[list[dict[str, str]], int | None]:
    """Return the next rows of a table that have one of the wanted values in each of these columns, at most `limit`.

    Return also the row to continue with, None at the end. Rows before `start` are only counted; a request ends
    after half a million other rows.
    """
    rows = csv.reader(_text_lines(table, start))
    head = next(rows, [])
    # Use column numbers: half a million rows may be checked for a reason that none of them has.
    places = [(at, frozenset(wanted[name])) for at, name in enumerate(head) if name in wanted]
    found: list[dict[str, str]] = []
    for number, cells in enumerate(rows, start):
        if len(found) == limit or number >= start + _ROWS_READ:
            return found, number
        # A row of another length is damaged: its columns are unknown.
        if len(cells) == len(head) and all(cells[at] in values for at, values in places):
            found.append(dict(zip(head, cells, strict=True)))
    return found, None


def compared_years(home: Path, source: Source, year: int) -> list[int]:
    """Return the earlier years that an edition was compared with, the latest first."""
    names = (path.name for path in edition_folder(home, source.code, year).glob("comparison-*.json"))
    years = (re.fullmatch(r"comparison-([0-9]{4})\.json", name) for name in names)
    return sorted((int(match[1]) for match in years if match), reverse=True)


def _text_lines(chunks: Iterable[bytes], start: int) -> Iterator[str]:
    """Yield the header of a table and its rows from `start` on; a row is a line, and earlier ones are only counted."""
    rest, left, is_headed = b"", start, False
    for chunk in chunks:
        cancellation.check()
        *lines, rest = (rest + chunk).split(b"\n")
        if lines and not is_headed:
            yield lines.pop(0).decode("utf-8", "replace")
            is_headed = True
        passed = min(left, len(lines))
        left -= passed
        yield from (line.decode("utf-8", "replace") for line in lines[passed:])
    if rest and not (is_headed and left):
        yield rest.decode("utf-8", "replace")


def _there(path: Path | None, name: str) -> Path:
    if path is None or not path.is_file():
        raise ArtefactNotFound(f"{name} has not been written yet")
    return path


def _read(path: Path, name: str) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(_there(path, name).read_bytes())
    except ValueError as exc:
        raise ArtefactNotFound(f"{name} is damaged; the operator of this archive can write it again") from exc
    return content


_INNER = ("seeds", "gaps", "missing_seeds", "artifacts", "decisions")


def public_summary(session: Session, edition: Edition) -> dict[str, Any]:
    """Return an edition's public summary: seeds under takedown are not named."""
    summary = edition.coverage_summary
    seeds, missing = summary.get("seeds", [])[:_SEEDS_SHOWN], summary.get("missing_seeds", [])
    gone = _among(session, [*seeds, *(one["url"] for one in missing)])
    shown = {key: value for key, value in summary.items() if key not in _INNER}
    if seeds:
        shown["seeds"] = [_shown(url, gone) for url in seeds]
    if "missing_seeds" in summary:
        shown["missing_seeds"] = [_seed(seed, gone) for seed in missing]
    if "artifacts" in summary:
        shown["artifacts"] = {name: value for name, value in summary["artifacts"].items() if name == edition_files.CSV}
    if edition.frozen_at is not None:
        shown["frozen"] = {
            "at": edition.frozen_at.isoformat(),
            "digest": edition.frozen_digest,
            "captures": edition.frozen_count,
        }
    return shown


_Gone = frozenset[str | int]
"""Addresses and numbers of captures that are under a takedown."""


def _among(session: Session, addresses: Iterable[str], snapshots: Iterable[int] = ()) -> _Gone:
    pages = {address: page_key(address) for address in set(addresses)}
    hidden = withdrawn_among(session, keys=set(pages.values()), snapshots=set(snapshots))
    numbers = (one for one in hidden if isinstance(one, int))
    return frozenset([*(address for address, key in pages.items() if key in hidden), *numbers])


def _shown(url: str, gone: _Gone) -> str:
    return WITHDRAWN if url in gone else url


def _seed(seed: dict[str, Any], gone: _Gone) -> dict[str, Any]:
    fields = {key: value for key, value in seed.items() if key not in ("shard_key", "job_id")}
    return {**fields, "url": _shown(seed["url"], gone)}


def _report(database: Database, content: dict[str, Any]) -> bytes:
    with database.read() as session:
        gone = _among(session, [seed["url"] for seed in (*content["seeds"], *content["missing_seeds"])])
    shown = {key: value for key, value in content.items() if key != "shards"}
    shown["seeds"] = [{**seed, "url": _shown(seed["url"], gone)} for seed in content["seeds"]]
    shown["missing_seeds"] = [_seed(seed, gone) for seed in content["missing_seeds"]]
    files = {name: value for name, value in content["artifacts"].items() if name == edition_files.CSV}
    return json.dumps({**shown, "artifacts": files}, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def _comparison(database: Database, content: dict[str, Any]) -> bytes:
    with database.read() as session:
        shown_urls = [url for urls in content["examples"].values() for url in urls]
        gone = _among(session, shown_urls) | touched_addresses(session, shown_urls)
    # Omit them without a mark: they are only examples, and the counts are elsewhere.
    examples = {kind: [url for url in urls if url not in gone] for kind, urls in content["examples"].items()}
    files = {name: value for name, value in content["artifacts"].items() if name.endswith(".csv")}
    shown = {**content, "examples": examples, "artifacts": files}
    return json.dumps(shown, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def _long(
    database: Database, copies: Path, path: Path, clear: Callable[[Database, Path], Iterator[bytes]], *, most_bytes: int
) -> Iterator[bytes]:
    """Yield the chunks of a file, directly if there are no takedowns at all, else from a filtered copy."""
    with database.read() as session:
        # Usually nothing is withdrawn, and the file is sent unchanged.
        version = withdrawals_fingerprint(session) if is_any_withdrawn(session) else None
    try:
        if version is None:
            file: BinaryIO = path.open("rb")
        else:
            file = open_copy(copies, path, version, lambda found: clear(database, found), most_bytes=most_bytes)
    except FileNotFoundError as exc:
        raise ArtefactNotFound(f"{path.name} is gone; the operator of this archive can write it again") from exc
    return _whole(file)


def _table(database: Database, path: Path) -> Iterator[bytes]:
    with path.open(encoding="utf-8", newline="") as text:
        rows = csv.reader(text)
        head = next(rows, [])
        yield table_line(head)
        places = _Places(
            [at for at, name in enumerate(head) if name in _ADDRESSES],
            [at for at, name in enumerate(head) if name in _SNAPSHOTS],
            [at for at, name in enumerate(head) if name in ("url", "from_url")],
            [at for at, name in enumerate(head) if name in _TRACES],
        )
        verdict, withdrawn = head.index(_VERDICT) if _VERDICT in head else None, 0
        while some := list(islice(rows, _AT_ONCE)):
            # A row of another length is damaged: the column of its URL is unknown, so omit it.
            batch = [row for row in some if len(row) == len(head)]
            with database.read() as session:
                gone = _among(session, places.addresses_of(batch), places.snapshots_of(batch))
            if verdict is not None:
                # Neither its outcome nor its position may reveal the page.
                kept = [row for row in batch if row[verdict] != SiteKind.WITHDRAWN and not places.tells(row, gone)]
                withdrawn, batch = withdrawn + len(batch) - len(kept), kept
            yield b"".join(table_line(places.cleared(row, gone)) for row in batch)
        bare = table_line([str(SiteKind.WITHDRAWN) if at == verdict else "" for at in range(len(head))])
        for done in range(0, withdrawn, _AT_ONCE):
            yield bare * min(_AT_ONCE, withdrawn - done)


class _Places(NamedTuple):
    addresses: list[int]
    snapshots: list[int]
    own: list[int]
    """Addresses of the page that the row is about; if one is taken down, the whole row is cleared."""
    traces: list[int]
    """Other columns that would reveal the page."""

    def addresses_of(self, rows: Iterable[list[str]]) -> list[str]:
        return [row[at] for row in rows for at in self.addresses if row[at]]

    def snapshots_of(self, rows: Iterable[list[str]]) -> list[int]:
        return [number for row in rows for at in self.snapshots if (number := _number(row[at])) is not None]

    def tells(self, row: list[str], gone: _Gone) -> bool:
        own = any(row[at] in gone for at in self.own)
        return own or any(_number(row[at]) in gone for at in self.snapshots)

    def cleared(self, row: list[str], gone: _Gone) -> list[str]:
        for at in self.addresses:
            row[at] = _shown(row[at], gone)
        is_gone = any(row[at] == WITHDRAWN for at in self.own)
        for at in self.traces if is_gone else ():
            row[at] = ""
        for at in self.snapshots:
            # A capture's id leads to its URL.
            if is_gone or _number(row[at]) in gone:
                row[at] = ""
        return row


def _number(cell: str) -> int | None:
    return int(cell) if cell.isdecimal() and len(cell) < _DIGITS else None


def _lines(database: Database, path: Path) -> Iterator[bytes]:
    """Yield the frozen list; captures taken down since are listed only by number."""
    for batch in entries(path):
        rows = [row for row in batch if row is not None]
        with database.read() as session:
            gone = _among(session, [str(row.get("url") or "") for row in rows], [row["snapshot_id"] for row in rows])
        for row in rows:
            hidden = row["snapshot_id"] in gone or row.get("url") in gone
            shown = {"snapshot_id": row["snapshot_id"], "withdrawn": True} if hidden else row
            yield json.dumps(shown, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def _whole(file: BinaryIO) -> Iterator[bytes]:
    with file:
        yield from iter(lambda: file.read(_CHUNK), b"")
