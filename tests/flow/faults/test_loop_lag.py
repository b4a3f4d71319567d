"""F26: pages that no parser can finish, twenty at once. The loop goes on beating and no lease is lost."""

from __future__ import annotations

import json
from itertools import cycle, islice

from tests import patience
from tests.flow.crawler import Crawler
from tests.flow.faults.bed import rows, total
from tests.site import Site, judge

_NIGHTMARES = [
    "/markup/div", "/markup/attributes", "/markup/formatting", "/markup/tables", "/markup/adoption", "/markup/comment",
    "/markup/a", "/markup/svg", "/markup/select", "/markup/template",
]  # fmt: skip
_POLITE = 4


def test_twenty_nightmares_at_once_do_not_hold_up_the_loop(crawler: Crawler) -> None:
    """Every one of them is on a host of its own, beside four ordinary hosts whose pages are asked all the while."""
    crawler.environment["HOLDFAST_TIMINGS_CRAWL_PARSE_S"] = str(patience.allowed(0.5))
    paths = list(islice(cycle(_NIGHTMARES), 20))
    with Site.start(hosts=_POLITE + len(paths), pages=25, process=True) as site:
        seeds = [site.url(host) for host in range(_POLITE)]
        seeds += [site.url(_POLITE + number, path) for number, path in enumerate(paths)]
        result = crawler.crawl(*seeds, "--delay", "0.1", "--no-sitemaps", "--max-time", f"{patience.allowed(6):.0f}s")
        log = site.settled()

    counts = json.loads(rows(crawler, "SELECT counts FROM execution_counts")[0][0])
    median, p99, worst = counts["loop_lag_ms"]
    print(f"loop lag: median {median} ms, p99 {p99} ms, worst {worst} ms; {result['pages']} pages")
    assert p99 <= patience.allowed(100.0)
    assert total(crawler, "refused") == 0
    assert "lease" not in crawler.log(), "none was lost, none ran out"
    assert result["pages"] >= _POLITE * 25, "the ordinary hosts were crawled to their end"
    assert '"parse.child_replaced"' in crawler.log(), "the nightmares are nightmares"
    assert judge(log, delay_s=0.1) == []
    assert crawler.faults() == []
