"""Which of the addresses that a feed names are news: unseen ones, and those whose date has moved. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from datetime import datetime, timedelta

from holdfast.clock import to_micros
from holdfast.feeds.polling.queries import ItemRow
from holdfast.types import Listed
from holdfast.values import dataclass

_AHEAD = timedelta(days=1)
"""A date further in the future is no date: nothing could ever be newer."""
_MANY, _NEARLY_ALL = 5, 0.8
"""If more than five known addresses, and four of five, say at once that they changed, their dates tell nothing."""


@dataclass(slots=True)
class News:
    """The addresses of one document, sorted."""

    fresh: list[ItemRow] = field(default_factory=list)
    """Never named before."""
    moved: list[ItemRow] = field(default_factory=list)
    """Named before, with an older date."""
    dated: list[ItemRow] = field(default_factory=list)
    """Known, and no news: only the date is noted."""
    trusted: bool = True
    """False if so many dates moved at once that none of them was believed."""


def sort_out(items: Iterable[Listed], known: Mapping[int, int | None], *, now: datetime, max_age: timedelta) -> News:
    """Return what is news among a document's items. `known` are the dates that were told before, by address.

    What is told to be older than `max_age` is left out; what has no date is kept.
    """
    news, seen = News(), 0
    oldest, latest = to_micros(now - max_age), to_micros(now + _AHEAD)
    for found, told_at in items:
        told = None if told_at is None else to_micros(told_at)
        if told is not None and told > latest:
            told = None
        row = ItemRow(found.url_hash, found.url, told)
        too_old = told is not None and told < oldest
        if found.url_hash not in known:
            if not too_old:
                news.fresh.append(row)
            continue
        seen += 1
        before = known[found.url_hash]
        if told is not None and (before is None or told > before):
            (news.dated if before is None or too_old else news.moved).append(row)
    if len(news.moved) > _MANY and len(news.moved) > seen * _NEARLY_ALL:
        news.dated, news.moved, news.trusted = news.dated + news.moved, [], False
    return news
