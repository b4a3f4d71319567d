"""What belongs to a crawl, end to end: prefix, include, exclude, depth, and the account of what was left out."""

from __future__ import annotations

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
    assert report["depths"] == {"0": 1, "1": 2, "2": 1, "requisite": 1}
    assert (report["total"], report["open"]) == (5, 0)
    assert report["kinds"] == [
        {"kind": "page", "outcome": "success", "count": 4}, {"kind": "requisite", "outcome": "success", "count": 1},
    ]  # fmt: skip
