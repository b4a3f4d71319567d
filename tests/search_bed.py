"""An archive for search tests, written straight into the tables: captures as a list, everything else made to fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import zstandard
from sqlalchemy.orm import Session

from holdfast.clock import Clock
from holdfast.db.engine import Database
from holdfast.db.models import (
    Document,
    DocumentText,
    Execution,
    Job,
    PageGroup,
    PageLink,
    SearchOutbox,
    Snapshot,
    Source,
    WarcFile,
    Withdrawal,
)
from holdfast.parse.text import REST_MARK
from holdfast.search.outbox import drain
from holdfast.search.search import SearchAnswer, SearchRequest, SearchService
from holdfast.urls import hash64, page_key, parse
from tests.clock import FakeClock

DAY = datetime(2025, 3, 10, 12, 0, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """One page as a test states it."""

    url: str
    text: str = ""
    rest: str = ""
    title: str | None = None
    at: datetime = DAY
    status: int | None = 200
    language: str | None = "en"
    media_type: str = "text/html"
    source: str = "demo"
    noindex: bool = False
    says_archived: bool = False
    links: tuple[str, ...] = ()
    author: str | None = None
    published: datetime | None = None
    page_type: str | None = None


@dataclass(slots=True)
class Bed:
    """Tables, an index beside them, and a search that reads both."""

    database: Database
    home: Path
    clock: Clock
    search: SearchService
    _sources: dict[str, int] = field(default_factory=dict)
    _executions: dict[str, tuple[int, int]] = field(default_factory=dict)
    _groups: dict[tuple[int, int], int] = field(default_factory=dict)
    _documents: dict[str, int] = field(default_factory=dict)
    _days: dict[tuple[str, str, str, str], int] = field(default_factory=dict)
    _ordinal: int = 0

    def add(self, captures: Iterable[Capture], *, outbox: bool = True) -> list[int]:
        """Write captures and the outbox row that says so; return their ids."""
        wanted = list(captures)
        with self.database.write() as session:
            for capture in wanted:
                self._source(session, capture.source)
            # Kind by kind: a statement for each row was half of what a test of search costs.
            self._add_documents(session, wanted)
            ids = [self._next_id(capture) for capture in wanted]
            self._add_groups(session, wanted, ids)
            for capture, snapshot_id in zip(wanted, ids, strict=True):
                self._add(session, capture, snapshot_id)
            if outbox and ids:
                session.add(SearchOutbox(kind="snapshots", first_id=min(ids), last_id=max(ids), refs={},
                                         created_at=self.clock.now()))  # fmt: skip
        return ids

    def drain(self) -> int:
        """Take in what waits; return how many outbox rows that were."""
        return drain(self.database, self.home, self.clock).changes

    def fill(self, captures: Iterable[Capture]) -> list[int]:
        """Add captures and take them in."""
        ids = self.add(captures)
        self.drain()
        return ids

    def ask(self, q: str | None = None, **more: Any) -> SearchAnswer:
        """Search the newest index."""
        return self.search.ask(SearchRequest(q=q, **more), wait=True)

    def urls(self, q: str | None = None, **more: Any) -> list[str]:
        """Search, and return the addresses found."""
        return [hit.row.url for hit in self.ask(q, **more).hits]

    def withdraw(self, *, snapshot_id: int | None = None, url: str | None = None) -> int:
        """Hide a snapshot or an address; return the withdrawal's id."""
        row = Withdrawal(
            snapshot_id=snapshot_id, url_key=None if url is None else page_key(url), subject=url or "",
            reason="test", actor="test", created_at=self.clock.now(),
        )  # fmt: skip
        with self.database.write() as session:
            session.add(row)
            session.flush()
            return row.id

    def _source(self, session: Session, code: str) -> int:
        if code not in self._sources:
            now = self.clock.now()
            source = Source(code=code, name=code.title(), config={}, created_at=now, updated_at=now)
            session.add(source)
            session.flush()
            job = Job(source_id=source.id, kind="adhoc", fingerprint=code, config={}, created_at=now)
            session.add(job)
            session.flush()
            execution = Execution(
                job_id=job.id, number=1, state="completed", config={}, output_dir=code, created_at=now
            )
            session.add(execution)
            session.flush()
            file = WarcFile(execution_id=execution.id, key=f"{code}.warc.gz", state="sealed", created_at=now)
            session.add(file)
            session.flush()
            self._sources[code], self._executions[code] = source.id, (execution.id, file.id)
        return self._sources[code]

    def _next_id(self, capture: Capture) -> int:
        self._ordinal += 1
        return self._executions[capture.source][1] * 2**22 + self._ordinal

    def _add_documents(self, session: Session, captures: Sequence[Capture]) -> None:
        new = {_document_key(one): one for one in reversed(captures) if _document_key(one) not in self._documents}
        rows = {key: self._document(key, new[key]) for key in dict.fromkeys(map(_document_key, captures)) if key in new}
        session.add_all(rows.values())
        session.flush()
        self._documents |= {key: row.id for key, row in rows.items()}
        for key, row in rows.items():
            packed = zstandard.ZstdCompressor().compress(f"{new[key].text}{REST_MARK}{new[key].rest}".encode())
            session.add(DocumentText(document_id=row.id, text=packed))

    def _document(self, key: str, capture: Capture) -> Document:
        return Document(
            body_hash=sha256(key.encode()).digest(), charset="utf-8", media_type=capture.media_type, version=1,
            body_bytes=len(key), title=capture.title, snippet=capture.text[:280], language=capture.language,
            details={}, noindex=capture.noindex, says_archived=capture.says_archived, text_chars=len(capture.text),
            author=capture.author, published_at=capture.published, page_type=capture.page_type,
            created_at=self.clock.now(),
        )  # fmt: skip

    def _add_groups(self, session: Session, captures: Sequence[Capture], ids: Sequence[int]) -> None:
        rows: dict[tuple[int, int], PageGroup] = {}
        for capture, snapshot_id in zip(captures, ids, strict=True):
            key, address = self._group_key(capture), parse(capture.url).group
            if key in self._groups and key not in rows:
                rows[key] = session.get_one(PageGroup, self._groups[key])
            elif key not in rows:
                rows[key] = PageGroup(
                    source_id=key[0], url=address, url_hash=key[1], first_captured_at=capture.at,
                    last_captured_at=capture.at, snapshot_count=0, latest_id=snapshot_id,
                )  # fmt: skip
            rows[key].snapshot_count += 1
        session.add_all(rows.values())
        session.flush()
        self._groups |= {key: row.id for key, row in rows.items()}

    def _group_key(self, capture: Capture) -> tuple[int, int]:
        return self._sources[capture.source], hash64(parse(capture.url).group)

    def _add(self, session: Session, capture: Capture, snapshot_id: int) -> None:
        execution_id, file_id = self._executions[capture.source]
        address = parse(capture.url)
        day = (capture.source, capture.url, capture.at.date().isoformat(), f"{capture.title}\0{capture.text}")
        session.add(
            Snapshot(
                id=snapshot_id, warc_file_id=file_id, execution_id=execution_id,
                source_id=self._sources[capture.source], warc_offset=0, warc_length=1, record_type="response",
                url=capture.url, url_key=address.key, url_hash=address.hash64,
                group_id=self._groups[self._group_key(capture)], captured_at=capture.at, status=capture.status,
                media_type=capture.media_type, document_id=self._documents[_document_key(capture)], is_page=True,
                noindex=capture.noindex, canonical_id=self._days.get(day),
            )
        )  # fmt: skip
        self._days.setdefault(day, snapshot_id)
        for target in dict.fromkeys(capture.links):
            session.add(
                PageLink(snapshot_id=snapshot_id, to_hash=hash64(parse(target).group), to_url=target,
                         from_hash=hash64(address.group))
            )  # fmt: skip


def _document_key(capture: Capture) -> str:
    return f"{capture.title}\0{capture.text}\0{capture.rest}\0{capture.media_type}"


@contextmanager
def open_bed(database_url: str, home: Path, clock: Clock | None = None) -> Iterator[Bed]:
    """Open a bed on a database that has the schema."""
    database = Database(database_url)
    used = clock or FakeClock()
    try:
        yield Bed(database, home, used, SearchService(database, home, used))
    finally:
        database.close()


def pages(texts: Sequence[str], *, host: str = "example.org") -> list[Capture]:
    """Return a page for each text, on one host."""
    return [Capture(url=f"https://{host}/{n}", title=f"Page {n}", text=text) for n, text in enumerate(texts, 1)]
