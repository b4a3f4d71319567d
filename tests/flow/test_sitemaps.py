"""Sitemaps of every form lead to pages; hostile ones cost little, touch nothing, and are named in the report."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.flow.crawler import Crawler
from tests.flow.records import stored
from tests.site import Site, judge
from tests.site.log import Entry
from tests.site.wire import Exchange

_NAMES = [
    "index.xml", "gzip.xml.gz", "text.txt", "text-bom.txt", "utf-16.xml", "no-namespace.xml", "wrong-namespace.xml",
    "cut.xml", "recursive.xml", "deep", "many.xml?n=3000", "foreign.xml", "remote-dtd.xml", "laughs.xml",
    "quadratic.xml", "entity-file.xml", "entity-parameter.xml", "html.xml", "empty.xml", "nested-deep.xml",
    "gzip-twice.xml.gz", "bomb.xml.gz?mb=64",
]  # fmt: skip
"""One host for each; its robots.txt names that sitemap and no other."""


@dataclass
class World:
    """A crawl of all of them."""

    rows: dict[str, dict[str, Any]]
    log: list[Entry]
    hosts: list[str]
    port: int
    faults: list[str]
    left_out: dict[tuple[str, str], int]
    warcs: list[Path]

    def url(self, name: str, path: str) -> str:
        return f"http://{self.host(name)}:{self.port}{path}"

    def host(self, name: str) -> str:
        return self.hosts[[known.partition("?")[0] for known in _NAMES].index(name)]

    def found(self, name: str) -> set[str]:
        """Return the pages of a host that were captured besides its front page."""
        start = self.url(name, "/")
        return {
            url.removeprefix(start)
            for url, row in self.rows.items()
            if url.startswith(start) and url != start and row["kind"] == "page" and row["outcome"] == "success"
        }

    def note(self, name: str) -> str:
        return self.rows[self.url(name, f"/sitemap/{name}")]["message"] or ""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    crawler = Crawler(tmp_path_factory.mktemp("sitemaps") / "home")
    with Site.start(hosts=len(_NAMES), pages=1) as site:
        for number, name in enumerate(_NAMES):
            site.on("/robots.txt", _naming(site.url(number, f"/sitemap/{name}")), host=number)
        seeds = [site.url(number) for number in range(len(_NAMES))]
        result = crawler.crawl(
            *seeds, "--delay", "0", "--depth", "1", "--no-requisites", "--exclude", r"\?n=\d*[1-9]$", timeout_s=90
        )
        log = site.settled()
    rows = [json.loads(line) for line in crawler.run("report", "--urls").stdout.splitlines()]
    report = json.loads(crawler.run("report", "--json").stdout)
    assert result["state"] == "completed"
    return World({row["url"]: row for row in rows}, log, site.hosts, site.port, crawler.faults(),
                {(row["rule"], row["host"]): row["count"] for row in report["excluded"]}, crawler.warcs())  # fmt: skip


def _naming(sitemap: str) -> Any:
    async def robots(exchange: Exchange) -> None:
        await exchange.reply(f"User-agent: *\nDisallow:\nSitemap: {sitemap}\n", media="text/plain")

    return robots


@pytest.mark.parametrize(
    "name",
    ["index.xml", "gzip.xml.gz", "text.txt", "text-bom.txt", "utf-16.xml", "no-namespace.xml", "wrong-namespace.xml"],
)
def test_pages_are_found_in_every_form_of_sitemap(world: World, name: str) -> None:
    assert world.found(name) >= {"meta/title", "meta/description", "assets/page"}


def test_an_index_leads_to_its_parts(world: World) -> None:
    kinds = {url: row["kind"] for url, row in world.rows.items() if world.host("index.xml") in url}

    assert kinds[world.url("index.xml", "/sitemap/gzip.xml.gz")] == "sitemap"
    assert kinds[world.url("index.xml", "/sitemap/text.txt")] == "sitemap"


def test_what_can_be_read_of_a_cut_one_is_used_and_the_rest_is_told(world: World) -> None:
    assert world.found("cut.xml") == {"meta/title", "meta/description"}
    assert world.note("cut.xml") == "xml_broken"


def test_an_index_that_names_itself_or_goes_ever_deeper_ends(world: World) -> None:
    asked = [entry.path for entry in world.log if entry.host == world.host("deep")]

    assert [path for path in asked if path.startswith("/sitemap/")] == [
        "/sitemap/deep", "/sitemap/deep/1", "/sitemap/deep/2",
    ]  # fmt: skip
    assert world.left_out["over_limit:sitemap_depth", world.host("deep")] == 1
    assert [entry.path for entry in world.log if "recursive" in entry.path] == ["/sitemap/recursive.xml"]


def test_a_long_one_is_read_to_its_end(world: World) -> None:
    assert len(world.found("many.xml")) == 300
    assert world.left_out[r"exclude:\?n=\d*[1-9]$", world.host("many.xml")] == 2700


@pytest.mark.parametrize("name", ["laughs.xml", "quadratic.xml", "entity-file.xml", "entity-parameter.xml"])
def test_documents_that_declare_entities_are_refused_unread(world: World, name: str) -> None:
    assert world.found(name) == set()
    assert world.note(name) == "xml_entities"


@pytest.mark.parametrize(
    ("name", "note"),
    [("html.xml", "html_instead"), ("empty.xml", "not_a_sitemap"), ("gzip-twice.xml.gz", "gzip_nested"),
     ("nested-deep.xml", "xml_broken"), ("bomb.xml.gz", "not_a_sitemap")],
)  # fmt: skip
def test_what_is_no_sitemap_is_kept_and_named(world: World, name: str, note: str) -> None:
    path = f"/sitemap/{name}" + ("?mb=64" if "bomb" in name else "")

    assert world.found(name) == set()
    assert note in (world.rows[world.url(name, path)]["message"] or "")
    assert world.rows[world.url(name, path)]["outcome"] == "success"


def test_no_sitemap_leads_out_of_the_crawl_or_to_a_file_or_a_document_type(world: World) -> None:
    assert {entry.host for entry in world.log} == set(world.hosts)
    assert not [entry for entry in world.log if entry.path == "/sitemap/dtd"]
    assert world.found("remote-dtd.xml") == {"meta/title", "meta/description", "assets/page"}
    assert world.left_out["scope:host", "169.254.169.254"] == 1


def test_sitemaps_take_their_turns_like_pages_and_the_archive_is_whole(world: World) -> None:
    assert judge(world.log, delay_s=0.0) == []
    assert world.faults == []


def test_what_the_crawler_asks_for_itself_is_marked_in_the_archive_and_content_is_not(world: World) -> None:
    purposes = {record.url: record.headers.get("Holdfast-Purpose") for record in stored(world.warcs)
                if record.type == "response"}  # fmt: skip

    assert {purpose for url, purpose in purposes.items() if url.endswith("/robots.txt")} == {"robots"}
    assert "sitemap" in purposes.values()
    assert {purpose for url, purpose in purposes.items() if url.endswith("/")} == {None}


def test_exclude_rule_applies_to_sitemaps_of_robots_txt(crawler: Crawler) -> None:
    with Site.start(hosts=3, pages=1) as site:
        named = "".join(f"Sitemap: {site.url(host, '/map.xml')}\n" for host in range(3))
        site.serve("/robots.txt", named, media="text/plain", host=0)
        children = "".join(f"<sitemap><loc>{site.url(host, '/child.xml')}</loc></sitemap>" for host in range(3))
        site.serve("/map.xml", f"<sitemapindex>{children}</sitemapindex>", media="application/xml")
        site.serve("/child.xml", "<urlset></urlset>", media="application/xml")
        site.serve("/start", "start")
        crawler.crawl(site.url(0, "/start"), "--delay", "0", "--exclude", f"^http://{site.hosts[2]}")
        asked = {(entry.host, entry.path) for entry in site.settled()}

    assert {path for host, path in asked if host == site.hosts[1]} >= {"/map.xml", "/child.xml"}
    assert [path for host, path in asked if host == site.hosts[2]] == []
