"""The two searches: Holdfast's `SearchService` on an imported archive, and SQLite's FTS5 on the visible text."""

from __future__ import annotations

import hashlib
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

from bench.crawl import HOLDFAST
from bench.relevance.manuals import Manual, once, pages_of
from bench.relevance.questions import Question
from bench.relevance.visible import Page
from bench.web import ROOT
from holdfast.clock import SystemClock
from holdfast.db.engine import Database
from holdfast.errors import Invalid
from holdfast.fetch.body import MemoryBody
from holdfast.search.search import ResultKind, SearchRequest, SearchService
from holdfast.types import Fetched
from holdfast.warc.record import sha256_of
from holdfast.warc.writer import ExchangeDraft, WarcWriter

DEPTH: Final = 20
"""The results in which the right page must be."""
_CAPTURED = datetime(2024, 1, 1, tzinfo=UTC)
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"


class Answer(NamedTuple):
    """The place of the first right page, from 1; 0 if it is not among the results."""

    question: Question
    rank: int

    @property
    def reciprocal(self) -> float:
        """One over the rank, or 0."""
        return 1 / self.rank if self.rank else 0.0


def answered(question: Question, results: list[str]) -> Answer:
    """Return the rank of the first right page among the results."""
    return Answer(question, next((at for at, page in enumerate(results[:DEPTH], 1) if page in question.pages), 0))


def prefix_of(manual: Manual) -> str:
    """Return the address of the manual's folder in its archive."""
    return f"http://{manual.name}.example/"


def page_of(manual: Manual, url: str) -> str:
    """Return the page of an address in lower case: the index does not distinguish case."""
    return unquote(url.removeprefix(prefix_of(manual))).lower()


def archive_of(manual: Manual, tree: Path, work: Path, *, fresh: bool) -> Path:
    """Import the manual into an archive of this checkout and return its data directory.

    The WARC file is written once for a work folder. `fresh` builds the archive again from it with the present code.
    """
    files = once(work / "warcs" / manual.name, lambda folder: _write_warc(manual, tree, folder))
    home = work / "archives" / ROOT.name / manual.name
    note, code = home.with_name(f"{home.name}.code"), _code()
    if fresh or not note.exists():
        note.unlink(missing_ok=True)
        shutil.rmtree(home, ignore_errors=True)
        subprocess.run(
            [HOLDFAST, "import", files, "--source", "manual", "--in-place", "--json", "--home", home],
            check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        note.write_text(code)
    elif note.read_text() != code:
        print(f"{manual.name}: other code built this index; --fresh-index builds it again", file=sys.stderr)
    return home


def _code() -> str:
    """Return a digest of the package's source."""
    digest = hashlib.sha256()
    for path in sorted((ROOT / "src").rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _write_warc(manual: Manual, tree: Path, folder: Path) -> None:
    """Write the pages of a manual as one WARC file, as a static server sends them."""
    folder.mkdir()
    writer = WarcWriter.create(folder, manual.name, 1, {}, SystemClock(), max_bytes=1 << 40)
    for number, path in enumerate(pages_of(manual, tree).values()):
        body = MemoryBody((path.read_bytes(),))
        address = quote(path.relative_to(tree / manual.folder).as_posix())
        fetched = Fetched(
            url=prefix_of(manual) + address, status=200, started_at=_CAPTURED + timedelta(seconds=number), took_s=0.0,
            ip="192.0.2.1", request_head=b"GET /%b HTTP/1.1\r\n\r\n" % address.encode(), response_head=_HEAD, body=body,
        )  # fmt: skip
        writer.append_exchange(ExchangeDraft(fetched=fetched, payload_digest=sha256_of(body.chunks())))
    writer.seal()


class Holdfast:
    """Searches an archive as users do: pages by relevance."""

    def __init__(self, manual: Manual, home: Path) -> None:
        self.manual, self.home = manual, home
        self._database = Database(f"sqlite:///{home / 'holdfast.db'}")
        self._search = SearchService(self._database, home, SystemClock())

    def answer(self, question: Question) -> Answer:
        """Search for a question; a query that search rejects finds nothing."""
        request = SearchRequest(q=question.query, view=ResultKind.PAGES, page_size=DEPTH)
        try:
            hits = self._search.ask(request).hits
        except Invalid:
            return Answer(question, 0)
        return answered(question, [page_of(self.manual, hit.row.group_url or hit.row.url) for hit in hits])

    def close(self) -> None:
        """Close the archive's database."""
        self._database.close()


class Fts5:
    """Searches the visible text with BM25, titles weighted five times; all words first, then any of them."""

    def __init__(self, manual: Manual, pages: Mapping[str, Page]) -> None:
        self._is_spaced = manual.is_spaced
        self._index = sqlite3.connect(":memory:")
        tokenizer = "porter unicode61" if manual.is_spaced else "trigram"
        self._index.execute(
            f"CREATE VIRTUAL TABLE pages USING fts5(url UNINDEXED, title, body, tokenize='{tokenizer}')"
        )
        rows = [(address, page.title, page.text) for address, page in pages.items()]
        self._index.executemany("INSERT INTO pages VALUES (?, ?, ?)", rows)

    def answer(self, question: Question) -> Answer:
        """Search for a question. A trigram index has no words of two characters, so LIKE finds those."""
        words = re.findall(r"\w+", question.query)
        if not self._is_spaced and not (words := [word for word in words if len(word) > 2]):
            rows = self._index.execute(
                "SELECT url FROM pages WHERE body LIKE ?1 OR title LIKE ?1 ORDER BY title NOT LIKE ?1, rowid LIMIT ?2",
                (f"%{question.query}%", DEPTH),
            )
            return answered(question, [page for (page,) in rows])
        found: list[str] = []
        for operator in (" AND ", " OR "):
            if words and not found:
                rows = self._index.execute(
                    "SELECT url FROM pages WHERE pages MATCH ? ORDER BY bm25(pages, 0, 5, 1) LIMIT ?",
                    (operator.join(f'"{word}"' for word in words), DEPTH),
                )
                found = [page for (page,) in rows]
        return answered(question, found)

    def close(self) -> None:
        """Close the index."""
        self._index.close()


@contextmanager
def opened(manual: Manual, home: Path, pages: Mapping[str, Page]) -> Iterator[tuple[Holdfast, Fts5]]:
    """Open both searches of a manual while the block runs."""
    with closing(Holdfast(manual, home)) as ours, closing(Fts5(manual, pages)) as plain:
        yield ours, plain
