"""Links of pages that have none stored, read again from the WARC records; what is stored is left as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy.orm import Session

from holdfast.db.engine import Database
from holdfast.db.hot import Hot
from holdfast.errors import HoldfastError
from holdfast.index.keys import identify
from holdfast.index.outlinks import outlinks
from holdfast.index.queries import any_snapshot
from holdfast.index.records import open_stored
from holdfast.index.upkeep import queries
from holdfast.index.upkeep.turns import Seen, turn
from holdfast.index.writing.queries import put_links
from holdfast.parse.child import ParseChild
from holdfast.parse.document import Kind, parse_document
from holdfast.parse.pathology import looks_pathological

_BATCH = 50
_BODY_BYTES = 32 * 1024 * 1024


@dataclass(slots=True, kw_only=True)
class Linked:
    """What became of the pages without links."""

    pages: int = 0
    links: int = 0
    failed: dict[int, str] = field(default_factory=dict)
    """By snapshot: why its record could not be read."""


class LinkReader:
    """Reads links anew. Used by one thread; the child, for pathological pages, is the caller's."""

    def __init__(self, database: Database, hot: Hot, home: Path, child: ParseChild) -> None:
        self._database, self._hot, self._home, self._child = database, hot, home, child

    def backfill(self, *, execution_id: int | None, seen: Seen) -> Linked:
        """Store the links of every good HTML capture that has none, once for each address and text."""
        done = Linked()
        after = 0
        while True:
            with self._hot.read() as tx:
                page = queries.unlinked(tx, after=after, execution_id=execution_id, limit=_BATCH)
            if not page:
                return done
            after = page[-1].id
            first = {(one.url_hash, one.document_id): one for one in reversed(page)}
            self._store(list(first.values()), done)
            seen(done.pages)

    def _store(self, pages: Sequence[queries.Unlinked], done: Linked) -> None:
        rows: list[tuple[int, int, int, str]] = []
        read: list[int] = []
        for page in pages:
            own = identify(page.url).group_hash
            try:
                with self._database.read() as session:
                    found = self._links(session, page, own)
            except HoldfastError as exc:
                done.failed[page.id] = str(exc)
                continue
            read.append(page.id)
            rows += [(page.id, to_hash, own, to_url) for to_hash, to_url in found]
        with turn(self._hot) as tx:
            put_links(tx, read, rows)
        done.pages += len(read)
        done.links += len(rows)

    def _links(self, session: Session, page: queries.Unlinked, own: int) -> list[tuple[int, str]]:
        snapshot = any_snapshot(session, page.id)
        assert snapshot is not None
        with open_stored(session, self._home, snapshot) as stored:
            body = stored.content(_BODY_BYTES)
        parse = self._child.read if looks_pathological(body) else parse_document
        said = parse(body, kind=Kind.HTML.value, media_type=snapshot.media_type, charset=page.charset, url=page.url)
        return outlinks(page.url, said.base, said.hrefs, own_hash=own)
