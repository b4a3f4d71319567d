"""Exclude rules that are added to a crawl that runs: what is queued and matches is asked for no more."""

from __future__ import annotations

import re
from contextlib import closing

from holdfast import config
from holdfast.clock import SystemClock
from holdfast.db.engine import Database
from holdfast.wiring import prepare
from holdfast.wiring.archive import Archive
from tests.client import asking
from tests.flow.crawler import Crawler
from tests.flow.faults.bed import settled, until
from tests.site import Site

_RULE = r"[02468]\.html$"


def test_a_crawl_that_runs_leaves_out_what_a_new_rule_matches(crawler: Crawler) -> None:
    settings = config.load(home=crawler.home)
    prepare(settings)
    with (
        closing(Database(settings.database)) as database,
        asking(Archive(settings=settings, database=database, clock=SystemClock())) as api,
        Site.plain(hosts=1, pages=80) as site,
    ):
        process = crawler.start(site.url(0), "--delay", "0.15")
        until(lambda: settled(crawler) >= 5, within_s=30, what="five pages")
        execution = api.get("/api/frontier/stats").json()["executionId"]
        path = f"/api/v1/executions/{execution}/exclusions"
        foreseen = api.post(f"{path}/preview", json={"rules": [_RULE]}).json()
        changed = api.request("PUT", path, json={"rules": [_RULE]})
        assert changed.status_code == 200, changed.text
        ended = crawler.finish(process, timeout_s=90)

    outcomes = crawler.outcomes()
    left_out = {url for url, ending in outcomes.items() if ending == ("excluded", f"exclude:{_RULE}")}
    captured = [url for url, ending in outcomes.items() if ending[0] == "success"]
    assert foreseen["matching"] >= len(foreseen["samples"]) >= 3
    # It is heard of within a second: few of them were asked for meanwhile, and links to more were not followed.
    assert len(left_out) >= 3
    assert sum(bool(re.search(_RULE, url)) for url in captured) < 20
    assert all(re.search(_RULE, url) for url in left_out)
    assert ended["state"] == "completed"
    assert sum(not re.search(_RULE, url) for url in captured) > 20
    assert crawler.faults() == []
