"""The page list of a package: seeds in `pages.jsonl`, all others in `extraPages.jsonl`, each page once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from holdfast import cancellation
from holdfast.db.engine import Database
from holdfast.errors import UrlRefused
from holdfast.exports import queries
from holdfast.exports.queries import ExecutionRow, PageRow
from holdfast.urls import parse_seed

PAGES, EXTRA = "pages.jsonl", "extraPages.jsonl"
_AT_ONCE = 1000
_FEW = 1000
"""An execution whose seeds are not known, as an import, lists so many of its pages first."""


def write_pages(
    database: Database, executions: Iterable[ExecutionRow], folder: Path
) -> tuple[dict[str, str], list[str]]:
    """Write the page lists below `folder/pages`; return the main page's fields, and the names of the lists."""
    every = list(executions)
    seeds = {page for execution in every for page in _seed_hashes(execution)}
    below = folder / "pages"
    below.mkdir()
    main: PageRow | None = None
    first_count = count = 0
    with (below / PAGES).open("wb") as first, (below / EXTRA).open("wb") as extra:
        first.write(_header("pages", "Pages"))
        extra.write(_header("extra-pages", "More pages"))
        for row in _pages(database, [execution.id for execution in every]):
            is_first = row.url_hash in seeds if seeds else count < _FEW
            (first if is_first else extra).write(_line(row))
            if main is None or (is_first and not first_count):
                main = row
            first_count += is_first
            count += 1
    if first_count == count:
        (below / EXTRA).unlink()
    elif not first_count:
        # No seed was captured under its own address: a reader must still find a page to begin with.
        (below / EXTRA).replace(below / PAGES)
    names = [name for name in (PAGES, EXTRA) if (below / name).exists()]
    return ({} if main is None else {"mainPageUrl": main.url, "mainPageDate": _stamp(main.captured_at)}), names


def _seed_hashes(execution: ExecutionRow) -> set[int]:
    """Return the pages that the execution started with, where they were captured under that address."""
    hashes = set()
    for seed in (*execution.config.get("seeds", ()), *execution.job_config.get("seeds", ())):
        try:
            hashes.add(parse_seed(str(seed)).hash64)
        except UrlRefused:
            continue
    return hashes


def _pages(database: Database, executions: Iterable[int]) -> Iterator[PageRow]:
    """Yield each page once: the first capture of it, by execution and id."""
    seen: set[int] = set()
    for execution_id in executions:
        for row in _captured(database, execution_id):
            if row.url_hash not in seen:
                seen.add(row.url_hash)
                yield row


def _captured(database: Database, execution_id: int) -> Iterator[PageRow]:
    """Yield the captures of pages of an execution, by id, in short sessions."""
    after = -1
    while True:
        cancellation.check()
        with database.read() as session:
            rows = queries.page_rows(session, execution_id, after=after, limit=_AT_ONCE)
        yield from rows
        if len(rows) < _AT_ONCE:
            return
        after = rows[-1].id


def _header(name: str, title: str) -> bytes:
    return json.dumps({"format": "json-pages-1.0", "id": name, "title": title, "hasText": False}).encode() + b"\n"


def _line(row: PageRow) -> bytes:
    fields = {"id": row.record_id or str(row.id), "url": row.url, "ts": _stamp(row.captured_at)}
    if row.title:
        fields["title"] = row.title
    return json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def _stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
