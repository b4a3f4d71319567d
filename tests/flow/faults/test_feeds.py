"""Death between settling a feed, writing down what it names, and enqueueing that: each item is captured once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.flow.crawler import Crawler
from tests.flow.faults.bed import arm, disarmed, rows
from tests.flow.feeds_bed import FeedBed, Press, article
from tests.site import Site

_STEPS = ("feed_settled", "feed_recorded", "feed_enqueued", "feed_taken")


def test_a_poll_that_dies_at_every_step_enqueues_each_item_once(any_crawler: Crawler, tmp_path: Path) -> None:
    crawler, tokens, press = any_crawler, tmp_path / "tokens", Press()
    arm(tokens, *_STEPS)
    with Site.start(hosts=1, pages=1) as site:
        site.on("/feed", press.serve)
        for number in range(6):
            press.publish(f"/news/{number}")
            site.on(f"/news/{number}", article)
        bed = FeedBed(crawler, site, requisites=False)
        asked = bed.poll(HOLDFAST_FAILPOINT=",".join(f"{place}:kill:0:{tokens}" for place in _STEPS))
    items = {path: count for path, count in asked.items() if path.startswith("/news/")}
    taken = rows(crawler, "SELECT execution_id, count(*) FROM feed_items GROUP BY execution_id")
    enqueued = Counter(
        row[0]
        for row in rows(
            crawler,
            "SELECT c.page_id FROM page_crawls c JOIN pages p ON p.id = c.page_id WHERE p.url LIKE '%/news/%'",
        )
    )

    assert disarmed(tokens), sorted(tokens.iterdir())
    assert items == {f"/news/{number}": 1 for number in range(6)}
    assert asked["/feed"] > 1
    assert taken == [(1, 6)]
    # A process that died before it enqueued what it had written down leaves that to one that has not asked the feed.
    assert list(enqueued.values()) == [1] * 6
    assert crawler.faults() == []
