"""What polls leave behind, on both databases: news enqueued once, feeds judged, found, followed and moved."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

import pytest

from holdfast.feeds import polling_queries
from holdfast.types import PolledListing, UrlKind
from tests.clock import FakeClock
from tests.contract.feeds_bed import INTERVAL, Bed, children, listed, open_bed


@pytest.fixture
def feeds(migrated_url: str, clock: FakeClock) -> Iterator[Bed]:
    with open_bed(migrated_url, clock) as opened:
        yield opened


def test_new_items_are_enqueued_once_and_old_ones_never_again(feeds: Bed) -> None:
    feeds.add()
    worker = feeds.worker()

    first = feeds.document("/1", "/2")
    worker.book.read_settled([first])
    worker.book.read_settled([first])
    worker.book.read_settled([feeds.document("/3", "/2")])

    assert feeds.queued() == [(1, "page", "/1"), (1, "page", "/2"), (1, "page", "/3")]
    assert feeds.items() == {"/1": 1, "/2": 1, "/3": 1}


def test_items_name_the_feed_as_where_they_were_found(feeds: Bed) -> None:
    feeds.add()
    worker = feeds.worker()

    worker.book.read_settled([feeds.document("/1")])

    with worker.raw_db.read() as tx:
        assert tx.execute("SELECT via_page_id, depth, priority FROM page_crawls") == [(77, 0, 3)]


def test_an_item_with_a_newer_date_is_enqueued_again_in_the_next_execution(feeds: Bed, clock: FakeClock) -> None:
    feeds.add()
    before = clock.now() - timedelta(days=1)
    feeds.worker(1).book.read_settled([feeds.document(("/1", before), ("/2", before))])

    feeds.worker(2).book.read_settled([feeds.document(("/1", clock.now()), ("/2", before))])

    assert feeds.queued() == [(1, "page", "/1"), (1, "page", "/2"), (2, "page", "/1")]
    assert feeds.items() == {"/1": 2, "/2": 1}


def test_two_workers_that_poll_at_once_enqueue_each_item_once(feeds: Bed) -> None:
    feeds.add()
    workers = [feeds.worker(number) for number in (1, 2)]
    visit = feeds.document(*(f"/{n}" for n in range(300)))
    together = threading.Barrier(2)

    def work(number: int) -> None:
        together.wait()
        workers[number].book.read_settled([visit])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    queued = feeds.queued()
    assert Counter(path for _, _, path in queued) == {f"/{n}": 1 for n in range(300)}
    assert {path: execution for execution, _, path in queued} == feeds.items()


def test_a_poll_takes_so_many_items_and_the_rest_waits(feeds: Bed) -> None:
    feeds.add()
    feeds.worker(1, items=3).book.read_settled([feeds.document(*(f"/{n}" for n in range(5)))])
    assert list(feeds.items().values()) == [1, 1, 1, None, None]

    assert feeds.worker(2, items=3).book.take() == 2

    assert [(execution, path) for execution, _, path in feeds.queued()][3:] == [(2, "/3"), (2, "/4")]
    assert feeds.worker(2, items=3).book.take() == 0


def test_the_news_of_a_feed_comes_before_what_a_sitemap_lists_and_the_newest_first(
    feeds: Bed, clock: FakeClock
) -> None:
    feeds.add()
    feeds.add("http://a.test/map", kind="sitemap")
    days = [clock.now() - timedelta(days=number) for number in range(5)]
    worker = feeds.worker(1, items=1)
    listing = PolledListing(
        items=tuple(listed(path) for path in ("/undated", ("/old", days[4]), ("/new", days[1]))), named=3
    )
    worker.book.read_settled([feeds.visit("http://a.test/map", listing=listing)])
    worker.book.read_settled([feeds.document("/plain", ("/news", days[3]))])

    taken: list[str] = []
    for _ in range(4):
        feeds.worker(2, items=1).book.take()
        taken += [path for path, execution in feeds.items().items() if execution == 2 and path not in taken]

    assert taken == ["/news", "/plain", "/old", "/undated"]


def test_an_execution_that_is_over_gets_nothing_and_nothing_is_lost(feeds: Bed) -> None:
    feeds.add()
    late = feeds.worker(1)
    feeds.end(1)

    late.book.read_settled([feeds.document("/1")])

    assert (feeds.queued(), feeds.items()) == ([], {"/1": None})
    assert feeds.worker(2).book.take() == 1


def test_the_same_bytes_and_a_304_name_nothing_new_but_count_as_polled(feeds: Bed, clock: FakeClock) -> None:
    feeds.add()
    book = feeds.worker().book
    book.read_settled([feeds.document("/1", etag='"a"', last_modified="Tue, 01 Sep 2026 10:00:00 GMT")])
    before = feeds.known()

    clock.advance(900)
    book.read_settled([feeds.visit(status=304, reason="not_modified", listing=PolledListing())])
    after = feeds.known()

    assert (after.etag, after.last_modified) == ('"a"', "Tue, 01 Sep 2026 10:00:00 GMT")
    assert after.last_polled_at == clock.now()
    assert before.last_polled_at is not None
    assert after.last_polled_at > before.last_polled_at
    assert after.next_poll_at == clock.now() + INTERVAL
    assert (after.last_item_count, after.content_hash) == (1, before.content_hash)
    assert len(feeds.queued()) == 1


def test_an_answer_without_validators_is_asked_for_in_full_the_next_time(feeds: Bed) -> None:
    feeds.add()
    book = feeds.worker().book
    book.read_settled([feeds.document("/1", etag='"a"')])
    book.read_settled([feeds.document("/2")])

    assert feeds.known().etag is None


def test_a_feed_is_disabled_by_its_errors_and_enabled_by_success(feeds: Bed) -> None:
    feeds.add()
    book = feeds.worker().book
    for _ in range(3):
        book.read_settled([feeds.failure(404)])
    disabled = feeds.known()
    book.read_settled([feeds.document("/1")])
    healed = feeds.known()

    assert (disabled.last_error_type, disabled.consecutive_errors, disabled.next_poll_at) == ("not_found", 3, None)
    assert disabled.disabled_at is not None
    assert (healed.disabled_at, healed.last_error_type, healed.consecutive_errors) == (None, None, 0)
    assert healed.last_error is None
    assert healed.next_poll_at is not None


def test_a_failure_that_is_told_twice_counts_once(feeds: Bed) -> None:
    feeds.add()
    book = feeds.worker().book
    visit = feeds.failure(404)
    book.read_settled([visit])
    book.read_settled([visit])

    assert feeds.known().consecutive_errors == 1


def test_a_limited_feed_is_left_alone_for_as_long_as_it_asks(feeds: Bed, clock: FakeClock) -> None:
    feeds.add()
    book = feeds.worker().book
    book.read_settled([feeds.failure(429)])
    first = feeds.known().next_poll_at
    book.read_settled([feeds.failure(429, retry_after_s=7200.0)])
    feed = feeds.known()

    assert first == clock.now() - timedelta(seconds=1) + timedelta(minutes=10)
    assert feed.next_poll_at == clock.now() + timedelta(hours=2)
    assert (feed.disabled_at, feed.consecutive_errors) == (None, 2)


def test_what_cannot_be_read_and_what_does_not_answer_have_their_words(feeds: Bed) -> None:
    feeds.add()
    book = feeds.worker().book
    book.read_settled([feeds.visit(listing=PolledListing(problem="xml_broken"))])
    broken = feeds.known()
    book.read_settled([feeds.failure(None)])
    silent = feeds.known()

    assert (broken.last_error_type, broken.last_error) == ("parse_error", "xml_broken")
    assert (silent.last_error_type, silent.consecutive_errors) == ("network", 1)


def test_a_candidate_becomes_a_feed_only_if_it_names_something(feeds: Bed) -> None:
    book = feeds.worker(start="http://a.test/").book
    front = feeds.visit("http://a.test/", kind=UrlKind.PAGE,
                        feeds=tuple(listed(path, UrlKind.SITEMAP).found for path in ("/good", "/empty")))  # fmt: skip
    book.read_settled([front])
    assert feeds.queued() == [(1, "sitemap", "/empty"), (1, "sitemap", "/good")]

    book.read_settled([feeds.document("/1", url="http://a.test/good"), feeds.document(url="http://a.test/empty")])

    assert feeds.known("http://a.test/good").origin == "discovered"
    assert feeds.known("http://a.test/good").kind == "feed"
    assert feeds.feed("http://a.test/empty") is None
    assert feeds.items() == {"/1": 1}


def test_the_usual_places_are_asked_for_when_the_start_page_names_no_feed(feeds: Bed) -> None:
    feeds.worker(start="http://a.test/").book.read_settled([feeds.visit("http://a.test/", kind=UrlKind.PAGE)])

    paths = [path for _, kind, path in feeds.queued() if kind == "sitemap"]
    assert paths == ["/atom.xml", "/feed", "/feed.xml", "/index.xml", "/rss", "/rss.xml"]


def test_sitemaps_of_robots_txt_are_tried_in_a_search_and_crawled_otherwise(feeds: Bed) -> None:
    named = [listed("/sitemap.xml", UrlKind.SITEMAP).found]
    feeds.worker(1, start="http://a.test/").book.offer(named)
    assert feeds.queued() == [(1, "sitemap", "/sitemap.xml")]
    feeds.worker(2).book.offer(named)
    assert len(feeds.queued()) == 1

    feeds.worker(2, polls=False).book.offer(named)

    assert feeds.queued()[1:] == [(2, "sitemap", "/sitemap.xml")]


def test_an_index_leads_to_the_sitemaps_that_are_new_or_changed(feeds: Bed, clock: FakeClock) -> None:
    feeds.add("http://a.test/index", kind="sitemap")
    now, day = clock.now(), timedelta(days=1)
    one = feeds.worker(1).book
    one.read_settled([feeds.visit("http://a.test/index", listing=children([
        ("/new.xml", now), ("/plain.xml"), ("/old.xml", now - 90 * day), "/index",
    ]), content_hash="1")])  # fmt: skip
    assert [path for _, _, path in feeds.queued()] == ["/new.xml", "/plain.xml"]
    one.read_settled(
        [feeds.document("/1", url="http://a.test/new.xml"), feeds.document("/2", url="http://a.test/plain.xml")]
    )

    clock.advance(60)
    two = feeds.worker(2).book
    two.read_settled([feeds.visit("http://a.test/index", listing=children([
        ("/new.xml", clock.now()), ("/plain.xml"),
    ]), content_hash="2")])  # fmt: skip

    assert [path for execution, _, path in feeds.queued() if execution == 2] == ["/new.xml"]
    child = feeds.known("http://a.test/plain.xml")
    assert (child.origin, child.kind) == ("index", "feed")
    assert child.next_poll_at is not None
    assert child.last_polled_at is not None
    assert child.next_poll_at - child.last_polled_at == day


def test_indexes_of_indexes_are_followed_three_deep(feeds: Bed) -> None:
    feeds.add("http://a.test/index", kind="sitemap")
    book = feeds.worker().book

    book.read_settled([feeds.visit("http://a.test/index", depth=3, listing=children(["/deeper.xml"]))])

    assert feeds.queued() == []


def test_a_source_has_so_many_feeds_and_no_more(feeds: Bed) -> None:
    feeds.add("http://a.test/index", kind="sitemap")
    book = feeds.worker(per_source=3).book

    book.read_settled([feeds.visit("http://a.test/index", listing=children([f"/{n}.xml" for n in range(9)]))])

    assert len(feeds.queued()) == 2


def test_feeds_that_their_answers_disabled_count_until_they_are_forgotten(feeds: Bed, clock: FakeClock) -> None:
    feeds.add("http://a.test/index", kind="sitemap")
    book = feeds.worker(per_source=3).book

    for poll in range(4):
        book.read_settled(
            [feeds.visit("http://a.test/index", listing=children([f"/{poll}-{n}.xml" for n in range(3)]))]
        )
        book.read_settled([feeds.failure(410, f"http://a.test/{poll}-{n}.xml") for n in range(3)])

    assert len(feeds.queued()) == 2, "a site that names new sitemaps for ever makes no more rows"
    clock.advance(timedelta(days=31).total_seconds())
    book.read_settled([feeds.visit("http://a.test/index", listing=children(["/later-1.xml", "/later-2.xml"]))])
    assert [path for _, _, path in feeds.queued()] == ["/0-0.xml", "/0-1.xml", "/later-1.xml", "/later-2.xml"]
    assert feeds.feed("http://a.test/0-0.xml") is None


def test_no_more_items_wait_than_may_and_what_is_left_is_read_again(feeds: Bed) -> None:
    feeds.add(kind="sitemap")
    everything = [f"/{n}" for n in range(250)]

    def poll(execution_id: int) -> None:
        listing = PolledListing(items=tuple(map(listed, everything)), named=250)
        visit = feeds.visit(listing=listing, content_hash="the same", etag='"1"')
        feeds.worker(execution_id, waiting=100, items=30).book.read_settled([visit])

    poll(1)

    assert len(feeds.items()) == 80, "a sitemap leaves a fifth of the room to feeds"
    known = feeds.known()
    assert (known.last_error_type, known.consecutive_errors, known.disabled_at) == ("backlog", 0, None)
    assert "170 of its items are left" in (known.last_error or "")
    assert (known.content_hash, known.etag) == (None, None), "the next answer must be the whole document"

    poll(2)
    assert len(feeds.items()) == 110, "thirty were taken, and thirty more are written down"


def test_a_sitemap_that_filled_its_room_does_not_keep_the_news_of_a_feed_out(feeds: Bed) -> None:
    feeds.add("http://a.test/map.xml", kind="sitemap")
    feeds.add()
    book = feeds.worker(waiting=100, items=1).book
    many = PolledListing(items=tuple(listed(f"/{n}") for n in range(300)), named=300)
    book.read_settled([feeds.visit("http://a.test/map.xml", listing=many, content_hash="map")])

    book.read_settled([feeds.document("/news")])

    assert "/news" in feeds.items()
    assert feeds.known().last_error_type is None


def test_a_feed_that_moved_for_good_is_asked_for_at_its_new_place(feeds: Bed) -> None:
    feed = feeds.add()
    book = feeds.worker().book
    inside = PolledListing(is_feed=True, items=(listed("/1"),), named=1, moved_to="http://a.test/new")
    book.read_settled([feeds.visit(listing=inside, content_hash="1", redirected_to="http://a.test/new")])
    assert feeds.known("http://a.test/new").id == feed.id

    book.read_settled(
        [feeds.visit("http://a.test/new", status=301, reason="redirected", redirected_to="http://b.test/f")]
    )

    assert feeds.known("http://b.test/f").id == feed.id
    assert feeds.feed("http://a.test/new") is None


def test_a_temporary_redirect_moves_nothing(feeds: Bed) -> None:
    feeds.add()
    feeds.worker().book.read_settled([feeds.document("/1")])
    feeds.worker().book.read_settled([feeds.visit(status=302, reason="redirected", redirected_to="http://b.test/f")])

    assert feeds.known().last_error_type is None
    assert feeds.feed("http://b.test/f") is None


@pytest.mark.parametrize(("status", "word"), [(200, None), (404, "not_found"), (None, "network")])
def test_the_answer_of_another_site_that_a_feed_sends_us_to_is_its_own(
    feeds: Bed, status: int | None, word: str | None
) -> None:
    near, far = ("http://a.test/feed", "http://a.test/rss"), "http://b.test/f"
    for url in near:
        feeds.add(url)
    for number in (1, 2):
        book = feeds.worker(number).book
        book.read_settled([feeds.visit(url, status=302, reason="redirected", redirected_to=far) for url in near])
        answer = feeds.document("/1", url=far) if status == 200 else feeds.failure(status, far)
        book.read_settled([answer])
        book.read_settled([answer])

    assert feeds.feed(far) is None
    found = [(feeds.known(url).last_error_type, feeds.known(url).consecutive_errors) for url in near]
    assert found == [(word, 2 if word else 0)] * 2
    assert feeds.items() == ({"/1": 1} if status == 200 else {})


def test_two_feeds_that_send_us_to_a_list_which_has_answered_are_well(feeds: Bed) -> None:
    feeds.add()
    feeds.add("http://b.test/f")
    book = feeds.worker().book
    book.read_settled([feeds.document("/1", url="http://b.test/f")])

    book.read_settled([feeds.visit(status=302, reason="redirected", redirected_to="http://b.test/f")])

    assert (feeds.known().last_error_type, feeds.known().last_polled_at is not None) == (None, True)


def test_a_crawl_notes_the_feeds_of_its_first_pages_and_a_poll_finds_out_what_they_are(feeds: Bed) -> None:
    crawl = feeds.worker(1, polls=False).book
    for depth, path in ((0, "/real"), (1, "/false"), (2, "/comments")):
        named = (listed(path, UrlKind.SITEMAP).found,)
        crawl.read_settled([feeds.visit(f"http://a.test/page{depth}", kind=UrlKind.PAGE, depth=depth, feeds=named)])
    assert feeds.queued() == []
    assert feeds.feed("http://a.test/comments") is None

    poll = feeds.worker(2).book
    poll.read_settled([feeds.document("/1", url="http://a.test/real"), feeds.document(url="http://a.test/false")])

    assert feeds.known("http://a.test/real").last_item_count == 1
    assert feeds.feed("http://a.test/false") is None


def test_a_configured_feed_that_is_empty_stays(feeds: Bed) -> None:
    feeds.add()
    feeds.worker().book.read_settled([feeds.document()])

    assert (feeds.known().last_item_count, feeds.known().last_error_type) == (0, None)


def test_no_question_of_a_poll_walks_all_items(feeds: Bed) -> None:
    feeds.add()
    worker = feeds.worker(items=2990)
    worker.book.read_settled([feeds.document(*(f"/{n}" for n in range(3000)))])
    explain = "EXPLAIN QUERY PLAN " if worker.raw_db.dialect == "sqlite" else "EXPLAIN "
    questions = (
        (polling_queries.WAITING, (feeds.source_id, 10)),
        (polling_queries.KNOWN % "?,?", (feeds.source_id, 1, 2)),
        (polling_queries.WAITING_COUNT, (feeds.source_id, 10)),
        ("SELECT id FROM feeds WHERE source_id = ? AND url_hash = ?", (feeds.source_id, 1)),
    )
    with worker.raw_db.write() as tx:
        tx.execute("ANALYZE")
        plans = [" ".join(str(row[-1]) for row in tx.execute(explain + text, values)) for text, values in questions]

    assert "ix_feed_items_waiting" in plans[0], plans
    assert "uq_feed_items_source_id_url_hash" in plans[1] or "sqlite_autoindex_feed_items" in plans[1], plans
    assert "ix_feed_items_waiting" in plans[2], plans
    if worker.raw_db.dialect == "sqlite":  # one row: PostgreSQL rightly reads the table
        assert "uq_feeds_source_id_url_hash" in plans[3] or "sqlite_autoindex_feeds" in plans[3], plans
