"""What is news among the addresses that a document names."""

from __future__ import annotations

from datetime import datetime, timedelta

from holdfast.clock import to_micros
from holdfast.feeds.polling import SortedItems, sort_items
from holdfast.types import FoundUrl, ListedUrl, UrlKind
from tests.clock import FakeClock

_DAY = timedelta(days=1)


def listed(number: int, told_at: datetime | None = None) -> ListedUrl:
    """Return an address with its date."""
    return ListedUrl(FoundUrl(f"http://a.test/{number}", number, "a.test", UrlKind.PAGE, 0, 0), told_at)


def sort(clock: FakeClock, items: list[ListedUrl], known: dict[int, datetime | None]) -> SortedItems:
    """Sort with a month as the limit."""
    dates = {number: None if at is None else to_micros(at) for number, at in known.items()}
    return sort_items(items, dates, now=clock.now(), max_age=30 * _DAY)


def test_unseen_items_are_news_and_seen_ones_are_not(clock: FakeClock) -> None:
    news = sort(clock, [listed(1), listed(2, clock.now())], {1: None})

    assert [row.url_hash for row in news.fresh] == [2]
    assert (news.moved, news.dated) == ([], [])


def test_an_item_with_a_newer_date_is_news_again(clock: FakeClock) -> None:
    now = clock.now()
    news = sort(clock, [listed(1, now), listed(2, now - _DAY), listed(3, now)], {1: now - _DAY, 2: now, 3: now})

    assert [row.url_hash for row in news.moved] == [1]


def test_a_date_for_an_item_that_had_none_is_only_noted(clock: FakeClock) -> None:
    news = sort(clock, [listed(1, clock.now())], {1: None})

    assert (news.moved, [row.url_hash for row in news.dated]) == ([], [1])


def test_old_items_are_left_out_and_those_without_a_date_are_kept(clock: FakeClock) -> None:
    now = clock.now()
    news = sort(clock, [listed(1, now - 31 * _DAY), listed(2, now - 29 * _DAY), listed(3)], {})

    assert [row.url_hash for row in news.fresh] == [2, 3]


def test_a_date_far_in_the_future_is_no_date(clock: FakeClock) -> None:
    far = datetime(9999, 1, 1, tzinfo=clock.now().tzinfo)
    news = sort(clock, [listed(1, far), listed(2, far)], {2: clock.now()})

    assert [(row.url_hash, row.told_at) for row in news.fresh] == [(1, None)]
    assert news.moved == []


def test_dates_that_all_move_at_once_are_not_believed(clock: FakeClock) -> None:
    before, now = clock.now() - _DAY, clock.now()
    known: dict[int, datetime | None] = dict.fromkeys(range(10), before)

    all_moved = sort(clock, [listed(n, now) for n in range(11)], known)
    some_moved = sort(clock, [listed(n, now if n < 8 else before) for n in range(10)], known)
    few_known = sort(clock, [listed(n, now) for n in range(5)], {n: before for n in range(5)})

    assert (all_moved.trusted, all_moved.moved, len(all_moved.dated)) == (False, [], 10)
    assert [row.url_hash for row in all_moved.fresh] == [10]
    assert (some_moved.trusted, len(some_moved.moved)) == (True, 8)
    assert (few_known.trusted, len(few_known.moved)) == (True, 5)
