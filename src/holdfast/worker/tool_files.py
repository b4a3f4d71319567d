"""WARC files that zimit left become files of the archive: named for good, linked below `archive/`, registered.

Indexing follows by itself. The tool's own directory stays as it is, so that it can be resumed, verified or cleaned up.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urljoin

from holdfast.archive_tool.consolidation import consolidate
from holdfast.archive_tool.discovery import all_temp_dirs, discover_warcs, warcs_in
from holdfast.archive_tool.hold import hold_output
from holdfast.db.engine import Database
from holdfast.errors import HoldfastError, UrlRefused
from holdfast.index.execution import KEPT
from holdfast.index.indexer import Indexer
from holdfast.index.intake.importer import Imported, Importer, Step
from holdfast.index.intake.placing import Keeping
from holdfast.jobs.adaptive import StartPage
from holdfast.jobs.imports import ImportBegun, ImportWish
from holdfast.urls import parse
from holdfast.warc.reader import Record, read_records
from holdfast.wiring import Ground
from holdfast.worker.running import LEAVING, Holding


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptFiles:
    """What became of the WARC files of one execution."""

    registered: int
    errors: tuple[str, ...]
    """One for each file that holds no whole record; it stays where it is."""

    @property
    def index_state(self) -> str:
        """What the execution's index waits for: `index_failed` says that there is nothing to read (HA-044)."""
        return "pending" if self.registered else "index_failed"


def keep_files(ground: Ground, database: Database, execution_id: int, output_dir: Path, holding: Holding) -> KeptFiles:
    """Register every WARC file of a directory with an execution; the same again changes nothing.

    OutputBusy if a tool works there; Interrupted if the worker ends; NoSpace, Unavailable if the disk refuses.
    """
    with hold_output(output_dir):
        consolidate(output_dir, warcs_in(all_temp_dirs(output_dir)), ground.clock, allow_copy=True)
        paths = discover_warcs(output_dir).paths
        if not paths:
            return KeptFiles(registered=0, errors=())
        folder = output_dir / KEPT
        folder.mkdir(exist_ok=True)
        with closing(Indexer(ground.hot, ground.clock, ground.settings.home)) as indexer:
            wish = ImportWish(source="", name=None, home=ground.settings.home, config={})
            importer = Importer(database, ground.hot, ground.clock, indexer, wish)
            importer.begun, importer.only_register = ImportBegun(execution_id=execution_id, folder=folder), True
            importer.keeping = Keeping.LINK  # the folder is the tool's own, and what it sealed it never writes again

            def on_step(_step: Step) -> None:
                indexer.stopping = holding.stop in LEAVING

            importer.on_step = on_step
            done = [_told(one, holding) for one in importer.run(paths)]
    errors = tuple(one.error for one in done if one.error is not None)
    return KeptFiles(registered=len(done) - len(errors), errors=errors)


_LOOKED_AT = 5_000
"""Records in which a start page is looked for: a crawler captures its seeds first."""
_REDIRECTS = (301, 302, 303, 307, 308)
_MOST_REDIRECTS = 5


def start_page_in(paths: Sequence[Path], url: str) -> StartPage:
    """Return what a crawl of another program captured at its start address, redirects followed inside its own captures.

    Nothing to judge by if it is not among the first records of the first files.
    """
    seen = dict(_first_answers(paths))
    for _ in range(_MOST_REDIRECTS + 1):
        found = seen.get(_page(url))
        if found is None or found.target is None:
            return StartPage(content_hash=found.content_hash if found else None)
        url = found.target
    return StartPage()


class _Answer(NamedTuple):
    content_hash: str | None
    target: str | None
    """Where it led, if it was a redirect."""


def _first_answers(paths: Sequence[Path]) -> Iterator[tuple[int | None, _Answer]]:
    left = _LOOKED_AT
    for path in paths:
        try:
            for record in read_records(path, on_damage=lambda damage: None):
                left -= 1
                if left < 0:
                    return
                address = record.head.get("WARC-Target-URI") or ""
                if record.head.type == "response" and (page := _page(address)) is not None:
                    yield page, _answer(record, address)
                record.drain()
        except (HoldfastError, OSError):
            continue  # a file that cannot be read is told elsewhere


def _answer(record: Record, address: str) -> _Answer:
    head, body = record.http()
    location = head.get("location") if head.status in _REDIRECTS else None
    hasher = hashlib.sha256()
    for chunk in body if head.status < 300 else ():
        hasher.update(chunk)
    content_hash = f"sha256:{hasher.hexdigest()}" if 200 <= head.status < 300 else None
    return _Answer(content_hash, urljoin(address, location) if location else None)


def _page(url: str) -> int | None:
    try:
        return parse(url.strip("<>")).hash64
    except UrlRefused:
        return None


def _told(one: Imported, holding: Holding) -> Imported:
    name = Path(one.origin).name
    if one.error is not None:
        holding.note("warning", "error", "a WARC file cannot be used", file=name, error=one.error)
    else:
        holding.note("info", "lifecycle", "a WARC file is registered", file=name, id=one.warc_file_id, how=one.how,
                     records=one.records, damaged=one.damaged)  # fmt: skip
    return one
