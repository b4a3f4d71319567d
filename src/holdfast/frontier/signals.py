"""Signals of pages whose body is not kept: written with the visit that brought them, replaced when the page changes.

Words and links are replaced in bulk, under the lock of the page's domain, so that nobody meets half of either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

from holdfast.clock import from_micros, to_micros
from holdfast.db.text import clean
from holdfast.frontier import sql
from holdfast.frontier.connection import Spoken
from holdfast.frontier.values import KnownSignals
from holdfast.types import Visit
from holdfast.urls import page_key
from holdfast.values import dataclass

ROWS_A_LINK = 2
"""Rows of words and links that weigh as much in a transaction as one found address: 5 to 8 us each on SQLite, with
250,000 and with a million of them, where an address takes 13."""


@dataclass(slots=True)
class SignalRows:
    """What a set of visits writes, computed before the transaction."""

    pages: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    words: list[tuple[str, int, int]] = field(default_factory=list)
    links: list[tuple[int, int, int, str]] = field(default_factory=list)

    @classmethod
    def of(cls, visits: Sequence[Visit]) -> SignalRows:
        """Return the rows of these visits, sorted by their keys; the last visit of a page counts."""
        rows = cls()
        latest = {visit.attempt.page_id: visit for visit in visits if visit.signals is not None}
        for page_id, visit in latest.items():
            signals = visit.signals
            assert signals is not None
            rows.pages[page_id] = _page(visit)
            rows.words += [(word, page_id, count) for word, count in signals.words]
            origin = signals.from_hash
            rows.links += [(page_id, to_hash, origin, clean(url, 16_384) or "") for to_hash, url in signals.links]
        rows.words.sort()
        rows.links.sort()
        return rows

    def write(self, tx: Spoken, execution_id: int) -> None:
        """Replace the signals of these pages."""
        if not self.pages:
            return
        ids = sorted(self.pages)
        tx.execute(sql.DROP_WORDS, (tx.list(ids),))
        tx.execute(sql.DROP_LINKS, (tx.list(ids),))
        tx.append("signal_words", sql.WORD_COLUMNS, self.words)
        tx.append("signal_links", sql.LINK_COLUMNS, self.links)
        source = tx.execute(sql.SOURCE_OF, (execution_id,))
        source_id = source[0][0] if source else 0
        tx.many(sql.UPSERT_SIGNALS, [(page_id, source_id, execution_id, *self.pages[page_id]) for page_id in ids])


def weight(visit: Visit) -> int:
    """Return how much a visit's signals weigh in a transaction, in found addresses."""
    signals = visit.signals
    return 0 if signals is None else (len(signals.words) + len(signals.links)) // ROWS_A_LINK


def _page(visit: Visit) -> tuple[Any, ...]:
    signals = visit.signals
    assert signals is not None
    content_hash = None if visit.content_hash is None else f"sha256:{visit.content_hash}"
    language = visit.language if visit.language is not None and len(visit.language) <= 35 else None
    return (
        to_micros(visit.finished_at), visit.status, clean(visit.media_type, 255), content_hash, clean(language, 35),
        clean(visit.title, 1000), clean(signals.description, 2000), len(signals.words), signals.links_count,
        page_key(visit.attempt.url),
    )  # fmt: skip


def known_signals(tx: Spoken, page_ids: Sequence[int]) -> dict[int, KnownSignals]:
    """Return what is known of these pages, by page."""
    return {
        page_id: KnownSignals(
            fetched_at=from_micros(fetched_at), content_hash=(content_hash or "").removeprefix("sha256:") or None,
            has_all_links=stored == links_count,
        )
        for page_id, fetched_at, content_hash, links_count, stored in tx.execute(
            sql.KNOWN_SIGNALS, (tx.list(page_ids),)
        )
    }  # fmt: skip


def forget_signals(tx: Spoken, execution_id: int, *, after: int, limit: int = 200) -> int | None:
    """Forget some of what an execution wrote; return the last page that was looked at, None if there are no more.

    It looks at all pages of the execution's source, by index: few executions are discarded.
    """
    source = tx.execute(sql.SOURCE_OF, (execution_id,))
    rows = tx.execute(sql.SIGNALS_OF, (source[0][0] if source else 0, after, limit))
    ours = [page_id for page_id, writer in rows if writer == execution_id]
    if ours:
        for statement in (sql.DROP_WORDS, sql.DROP_LINKS, sql.DROP_SIGNALS):
            tx.execute(statement, (tx.list(ours),))
    return rows[-1][0] if rows else None


def signal_links(tx: Spoken, page_id: int) -> tuple[str, ...]:
    """Return where a page leads, as far as that is kept."""
    return tuple(row[0] for row in tx.execute(sql.LINKS_OF, (page_id,)))
