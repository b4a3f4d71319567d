"""What belongs to a crawl, end to end: prefix, include, exclude, depth, and the account of what was left out."""

from __future__ import annotations

import csv
import io
import json

from tests.flow.crawler import Crawler, fetched
from tests.site import Site
from tests.site.book import html, links


def test_prefix_include_exclude_and_depth_decide_and_every_omission_is_counted_by_its_rule(crawler: Crawler) -> None:
    with Site.start(hosts=2, pages=1) as site:
        inside, far = ["/docs/b.html", "/docs/secret/x.html"], site.url(1, "/docs/elsewhere.html")
        outside = ["/other.html", "/extra/one.html", far, "http://127.0.0.2:22/", "http://u:p@127.0.0.2/"]
        picture = f'<img src="{site.url(1, "/assets/pixel.png")}"><img src="/docs/secret/p.png">'
        site.serve("/docs/a.html", html("a", links([*inside, *outside]) + picture))
        site.serve("/docs/b.html", html("b", links(["/docs/c.html", site.url(1, "/assets/pixel.png")])))
        site.serve("/docs/c.html", html("c", links(["/docs/too-deep.html"])))
        site.serve("/extra/one.html", html("extra", links(["/other.html?again"])))
        result = crawler.crawl(
            site.url(0, "/docs/a.html"), "--scope", "prefix", "--include", r"/extra/", "--exclude", r"/docs/secret/",
            "--depth", "2", "--delay", "0", "--no-sitemaps",
        )  # fmt: skip
        log = site.settled()

    assert crawler.outcomes() == {
        site.url(0, "/docs/a.html"): ("success", "ok"),
        site.url(0, "/docs/b.html"): ("success", "ok"),
        site.url(0, "/docs/c.html"): ("success", "ok"),
        site.url(0, "/extra/one.html"): ("success", "ok"),
        site.url(1, "/assets/pixel.png"): ("success", "ok"),
    }
    assert result["pages"] == 4, "a requisite is no page"
    assert set(fetched(log).values()) == {1}
    report = json.loads(crawler.run("report", "--json").stdout)
    left_out = {(row["rule"], row["host"]): row["count"] for row in report["excluded"]}
    here, there = site.hosts
    assert left_out == {
        ("exclude:/docs/secret/", here): 2, ("scope:prefix", here): 2, ("scope:prefix", there): 2,
        ("max_depth", here): 1, ("not_an_address", here): 2,
    }  # fmt: skip
    assert report["depths"] == {"0": 1, "1": 2, "2": 1}
    assert (report["total"], report["open"]) == (5, 0)
    _each_url_stands_once_in_every_form_of_the_report(crawler)


def _each_url_stands_once_in_every_form_of_the_report(crawler: Crawler) -> None:
    lines = [json.loads(line) for line in crawler.run("report", "--urls").stdout.splitlines()]
    table = list(csv.DictReader(io.StringIO(crawler.run("report", "--csv").stdout)))

    assert sorted(line["url"] for line in lines) == sorted(crawler.outcomes())
    assert [row["url"] for row in table] == [line["url"] for line in lines]
    assert all(row["outcome"] and row["reason"] for row in table)
    by_name = {line["url"].rpartition("/")[2]: line for line in lines}
    assert by_name["c.html"]["via"].endswith("/docs/b.html")
    assert by_name["pixel.png"]["kind"] == "requisite"
