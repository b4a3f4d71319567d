"""The only writer of the search index: pages and documents from SQL become entries, columns and strings on disk.

The order makes a crash harmless: the index commits, then the segment and the manifest, and only then does the
drain delete its outbox rows; entries written twice replace themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote_plus

import numpy as np

from holdfast.clock import to_micros
from holdfast.db.engine import Database
from holdfast.failpoints import reach
from holdfast.index.queries import link_words, unpack_visible
from holdfast.parse.text import fold, without_marks
from holdfast.search import queries
from holdfast.search import segments as disk
from holdfast.search.addresses import host_of, searched_address
from holdfast.search.columns import SIGNAL
from holdfast.search.engine import IndexBroken, IndexEntry, Writer
from holdfast.search.fingerprints import fingerprint
from holdfast.search.operators import PAGE_TYPES
from holdfast.search.queries import DocumentRow, SearchPageRow
from holdfast.search.segments import Segment, SegmentManifest
from holdfast.storage.disk import sync_directory, synced
from holdfast.urls import DEFAULT, hash64

_DOCUMENTS_AT_ONCE: Final = 500
# Of packed texts that are in memory at once; a page of random letters packs to 3 MB.
_PACKED_BYTES: Final = 16 << 20
_MAX_TITLE_CHARS: Final = 2_000
_MAX_SNIPPET_CHARS: Final = 1_000
_MAX_AUTHOR_CHARS: Final = 200
_DAY_MICROS: Final = 86_400_000_000


class _Pool:
    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.size = 0

    def put(self, piece: bytes) -> int:
        at = self.size
        self.pieces.append(piece)
        self.size += len(piece)
        return at


def _go_on() -> None:
    pass


class SearchWriter:
    """Writes one generation. `pages` and `documents` collect entries; `commit` makes them visible together."""

    def __init__(self, folder: Path, database: Database, *, check: Callable[[], None] = _go_on) -> None:
        """`check` is called every few hundred documents; an exception from it ends the work, and nothing takes
        effect.
        """
        self.folder, self.check = folder, check
        self._database = database
        self.manifest = disk.read_manifest(folder)
        self._stored = {name: disk.load(folder, name) for name in self.manifest.segments}
        # Left behind by a writer that died between the index's commit and the manifest: what it added is there
        # already and must be replaced, not added beside itself.
        self._mark = folder / "unfinished"
        self._replay = self._mark.exists()
        self._writer = Writer(folder / "entries")
        self._clear()

    def _clear(self) -> None:
        self._rows: list[tuple[Any, ...]] = []
        self._addresses: list[tuple[Any, ...]] = []
        self._documents: list[tuple[Any, ...]] = []
        self._cleared: list[tuple[int, int]] = []
        self._pool = _Pool()
        # Entries gathered for the next segment; stored segments know their own.
        self._new_urls: set[int] = set()
        self._new_documents: set[int] = set()

    @property
    def gathered(self) -> int:
        return len(self._rows) + len(self._documents)

    def pages(self, first: int, last: int, rows: Sequence[SearchPageRow]) -> None:
        """Add the pages of an id range, replacing earlier ones in it, and their documents not seen before."""
        self._begin()
        # Entries gathered earlier for this range are outdated: both an index run and a noise verdict may have queued
        # it since the last commit.
        if any(begin <= last and first <= end for begin, end in self._cleared):
            self._rows = [row for row in self._rows if not first <= row[0] <= last]
        self._cleared.append((first, last))
        urls = [hash64(row.url) for row in rows]
        known = self._known(urls, Segment.has_urls) | self._new_urls
        new: dict[int, SearchPageRow] = {}
        for url, row in zip(urls, rows, strict=True):
            if url not in known:
                new.setdefault(url, row)
        texts = self._link_texts({row.group_hash for row in new.values() if row.group_hash and "?" not in row.url})
        for url, row in new.items():
            self._new_urls.add(url)
            self._address(url, row, texts.get(row.group_hash or 0, ()) if "?" not in row.url else ())
        self._rows += [_as_row(row, url) for url, row in zip(urls, rows, strict=True)]
        wanted = {row.document_id for row in rows if row.document_id is not None} - self._new_documents
        self.documents(wanted - self._known(sorted(wanted), Segment.has_documents))

    def _known(self, keys: Sequence[int], among: Callable[[Segment, disk.Ids], disk.FoundKeys]) -> set[int]:
        wanted = np.array(keys, np.int64)
        found = np.zeros(len(wanted), np.bool_)
        for stored in self._stored.values():
            found |= among(stored, wanted)
        return set(wanted[found].tolist())

    def documents(self, ids: Iterable[int]) -> None:
        """Add new or changed documents; unknown ids are skipped."""
        self._begin()
        for chunk in _chunks(sorted(set(ids)), _DOCUMENTS_AT_ONCE):
            self.check()
            known = self._known(chunk, Segment.has_documents)
            with self._database.read() as session:
                portions = queries.portions(session, chunk, most_bytes=_PACKED_BYTES)
            for portion in portions:
                with self._database.read() as session:
                    found = queries.documents_with_text(session, portion)
                for row in found:
                    self._document(row, is_known=row.id in known or row.id in self._new_documents)

    def _begin(self) -> None:
        # Before the first entry is added: a writer that dies later leaves it behind.
        if not self._mark.exists():
            self._mark.touch()
            # On the disk before the entries are: after a power loss they must not stand there without it.
            sync_directory(self._mark.parent)

    def _link_texts(self, groups: Iterable[int]) -> dict[int, list[str]]:
        """Return the link texts of these pages. They are not used for pages with a query: a group covers many of
        those.
        """
        found: dict[int, list[str]] = {}
        if wanted := sorted(groups):
            with self._database.read() as session:
                for to_hash, _, text in link_words(session, wanted):
                    found.setdefault(to_hash, []).append(text)
        return found

    def link_texts(self, groups: Iterable[int]) -> None:
        self._begin()
        wanted = sorted(set(groups))
        known = self._addresses_of(wanted)
        for chunk in _chunks([group for group in wanted if group in known], _DOCUMENTS_AT_ONCE):
            self.check()
            texts = self._link_texts(chunk)
            with self._database.read() as session:
                found = queries.named_pages(session, chunk)
                for group, pages in found.items():
                    spelled = {hash64(url): url for url, _ in pages}
                    if not known[group] <= spelled.keys():
                        spelled = {hash64(url): url for url in queries.spellings_of(session, group)}
                    for url in sorted(known[group] & spelled.keys()):
                        # An empty query is one, too.
                        anchors = texts.get(group, ()) if "?" not in spelled[url] else ()
                        searched = searched_address(spelled[url])
                        self._writer.add_address(url, searched, anchors=anchors, language=pages[0][1])

    def _addresses_of(self, groups: Sequence[int]) -> dict[int, set[int]]:
        found: dict[int, set[int]] = {}
        tables = [stored.addresses for stored in self._stored.values()]
        for table in (*tables, disk.as_table(self._addresses, disk.ADDRESS)):
            for group, url in disk.addresses_of(table, np.array(groups, np.int64)):
                found.setdefault(group, set()).add(url)
        return found

    def _address(self, url: int, row: SearchPageRow, anchors: Sequence[str]) -> None:
        searched = searched_address(row.url)
        self._writer.add_address(url, searched, anchors=anchors, language=row.language, replace=self._replay)
        text = fold(searched)
        packed = text.encode()
        before_query, _, query = row.url.partition("?")
        group = row.group_hash if row.group_hash is not None else hash64(before_query)
        flags = (disk.HAS_QUERY if query else 0) | (disk.TRACKED if _tracked(query) else 0)
        self._addresses.append(
            (
                url,
                group,
                hash64(host_of(text)),
                self._pool.put(packed),
                len(packed),
                flags,
            )
        )

    def _document(self, row: DocumentRow, *, is_known: bool) -> None:
        title, snippet = (row.title or "")[:_MAX_TITLE_CHARS], (row.snippet or "")[:_MAX_SNIPPET_CHARS]
        text, rest = (snippet, "") if row.packed is None else unpack_visible(row.packed)
        name = " ".join((row.author or "").split())[:_MAX_AUTHOR_CHARS]
        entry = IndexEntry(
            key=row.id,
            language=row.language,
            title=title,
            snippet=snippet,
            text=f"{text}\n{row.description or ''}",
            rest=rest,
            heads=[*(row.headings or "").splitlines(), *(row.terms or "").splitlines()],
            author=fold(name),
        )
        # Deleting entries that are known to be new would only cost time.
        self._writer.add(entry, replace=self._replay or is_known)
        self._new_documents.add(row.id)
        folded_title, folded_snippet = fold(title).encode(), fold(snippet).encode()
        self._documents.append(
            (
                row.id,
                self._pool.put(folded_title + folded_snippet + name.encode()),
                len(folded_title),
                len(folded_snippet),
                _language(row.language),
                _document_flags(row),
                hash64(fold(name)) if name else 0,
                len(name.encode()),
                disk.NO_DAY if row.published_at is None else to_micros(row.published_at) // _DAY_MICROS,
                fingerprint(without_marks(text), title),
            )
        )

    def signals(self) -> None:
        self._begin()
        found: list[tuple[int, int]] = []
        after = -(1 << 63)
        while True:
            with self._database.read() as session:
                rows = queries.signals(session, after=after, limit=50_000)
            if not rows:
                break
            found += [(row.url_hash, row.inlinks) for row in rows]
            after = rows[-1].url_hash
        name = f"signals-{self.manifest.sequence + 1}.npz"
        with synced(self.folder / name) as out:
            np.savez(out, signals=disk.as_table(found, SIGNAL))
        self.manifest = replace(self.manifest, signals=name)

    def commit(self) -> None:
        """Make all collected entries visible; merge segments if it pays off."""
        # The order makes a crash harmless: the index, then the segment and the manifest, then the outbox.
        self._writer.commit()
        reach("search.committed")
        segment = Segment(
            name=str(self.manifest.sequence + 1),
            rows=disk.sorted_rows(disk.as_table(self._rows, disk.ROW)),
            addresses=disk.as_table(self._addresses, disk.ADDRESS),
            documents=disk.as_table(self._documents, disk.DOCUMENT),
            cleared=np.array(self._cleared, np.int64).reshape(-1, 2),
            strings=b"".join(self._pool.pieces),
        )
        names = [*self.manifest.segments, segment.name]
        weights = [self._stored[name].weight for name in self.manifest.segments]
        # Merged at once, in the same commit: readers pay for every segment that they have to open.
        count = disk.merge_plan([*weights, segment.weight])
        if count:
            older = [self._stored[name] for name in names[-count:-1]]
            segment = disk.merge([*older, segment], segment.name, oldest=count == len(names))
            names = [*names[:-count], segment.name]
        disk.store(self.folder, segment)
        self.manifest = disk.with_segment(self.manifest, names)
        disk.write_manifest(self.folder, self.manifest)
        reach("search.in_force")
        self._stored = {name: self._stored.get(name) or disk.load(self.folder, name) for name in names}
        if not self._replay:
            self._mark.unlink(missing_ok=True)
        self._clear()

    def caught_up(self) -> None:
        """Record that nothing is pending: all additions of a writer that died have been replayed by now."""
        # Not at the first commit: a drain of many pages has several, and additions may belong to a later one.
        if self._replay and not self.gathered:
            self._replay = False
            self._mark.unlink(missing_ok=True)

    def close(self) -> None:
        """Wait for the index's own merges and release it; the next drain repeats uncommitted work."""
        self._writer.close()


def read_signals(folder: Path, manifest: SegmentManifest) -> disk.Table:
    """Return the current signals; an empty table if there are none."""
    if manifest.signals is None:
        return np.empty(0, SIGNAL)
    try:
        with (folder / manifest.signals).open("rb") as stored, np.load(stored, allow_pickle=False) as arrays:
            table: disk.Table = arrays["signals"]
    except disk.UNREADABLE as exc:
        raise IndexBroken(f"the signals of the search index cannot be read: {exc}") from exc
    return table


def _chunks(ids: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    for start in range(0, len(ids), size):
        yield ids[start : start + size]


def _as_row(row: SearchPageRow, url: int) -> tuple[Any, ...]:
    # A revisit answered with 304 stands for the page that it did not repeat.
    status = 200 if row.status == 304 and row.record_type == "revisit" else row.status or 0
    flags = (disk.DUPLICATE if row.canonical_id is not None else 0) | (disk.NOINDEX if row.noindex else 0)
    flags |= disk.NOISE if row.noise is not None else 0
    return (
        row.id,
        to_micros(row.captured_at),
        url,
        row.document_id or 0,
        row.source_id,
        status,
        flags,
        type_of(row.media_type),
    )


def type_of(media_type: str | None) -> int:
    kind = (media_type or "").partition(";")[0].strip().lower()
    if "html" in kind:
        return disk.HTML
    if kind == "application/pdf":
        return disk.PDF
    return disk.TEXT if kind.startswith("text/") else disk.OTHER


def _language(language: str | None) -> bytes:
    primary = (language or "").partition("-")[0].lower()
    return primary.encode("ascii", "ignore")[:3] if primary not in ("", "und") else b""


def _document_flags(row: DocumentRow) -> int:
    place = PAGE_TYPES.index(row.page_type) if row.page_type in PAGE_TYPES else 0
    return (disk.SAYS_ARCHIVED if row.says_archived else 0) | place << disk.PAGE_TYPE_SHIFT


def _tracked(query: str) -> bool:
    names = (unquote_plus(pair.partition("=")[0]).lower() for pair in query.split("&"))
    return (
        any(name in DEFAULT.tracking or name.startswith(DEFAULT.tracking_prefixes) for name in names)
        if query
        else False
    )
