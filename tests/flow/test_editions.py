"""An annual campaign over the misbehaving site, by its commands: three sources, a shard that fails, the account."""

from __future__ import annotations

import json
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from holdfast.db.engine import Database
from holdfast.db.models import Job
from tests.flow.commands import Terminal
from tests.flow.crawler import Crawler
from tests.site import Site

_YEAR = ("--year", "2026")
_SITEMAP = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>{}</loc></url></urlset>'


def _build(site: Site) -> None:
    """Give host 0 pages of every fate, and hosts 1 and 2 two languages; French is not there on host 1."""
    paths = ("/a", "/missing", "/private/x", "/framing/reset-first", "/status/500", "/off")
    links = "".join(f"<a href='{path}'>{path}</a>" for path in paths)
    site.robots(0, "private")
    site.serve("/", f"<title>Home</title><img src='/pixel.png'>{links}<a href='http://192.0.2.9/'>out</a>", host=0)
    site.serve("/a", "<title>A</title><p>some words<a href='/b'>b</a><a href='/'>home</a>", host=0)
    site.serve("/b", "<title>B</title><p>other words", host=0)
    site.serve("/told", "<title>Told</title><p>by the sitemap", host=0)
    site.serve("/off", "", status=302, headers=[("Location", site.url(3, "/"))], host=0)
    site.serve("/missing", "nothing", status=404, host=0)
    site.serve("/pixel.png", b"\x89PNG", media="image/png", host=0)
    site.serve("/sitemap.xml", _SITEMAP.format(site.url(0, "/told")), media="application/xml", host=0)
    for host in (1, 2):
        site.serve("/en/", "<title>English</title><a href='/en/1'>1</a>", host=host)
        site.serve("/en/1", "<title>One</title><p>words", host=host)
        site.serve("/sitemap.xml", "none", status=404, host=host)
    site.serve("/fr/", "nothing", status=404, host=1)


class Office:
    """The commands of a campaign in this process, and its workers in processes of their own."""

    def __init__(self, crawler: Crawler, terminal: Terminal) -> None:
        self.crawler, self.terminal = crawler, terminal

    def json(self, name: str, *arguments: str) -> dict[str, Any]:
        """Type a command and return what it printed; the test fails if the command does."""
        said = self.terminal.type(name, *arguments, "--json")
        assert said.code == 0, f"{name}: {said.out}\n{said.err}"
        return said.object

    def work(self) -> dict[str, Any]:
        """Let workers run until nothing of the campaign waits; return its status."""
        for _ in range(8):
            done = self.crawler.run("start-worker", "--once", "--json", timeout_s=120)
            assert done.returncode == 0, f"{done.stderr}\n{self.crawler.log()[-3000:]}"
            status = self.json("annual-status", *_YEAR, "--sources", "hc,phac,cihr")
            if not status["summary"]["inProgress"]:
                return status
        raise AssertionError(f"the campaign did not end: {status}\n{self.crawler.log()[-3000:]}")

    def ledger(self, code: str) -> list[dict[str, Any]]:
        """Return the rows of a ledger."""
        path = self.crawler.home / "editions" / code / "2026" / "target-ledger.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()]


def _campaign(office: Office, site: Site, broken: Path) -> None:
    """Make the sources and their jobs; one shard is given to a program that does not know its own flags."""
    broken.write_text(
        "import sys\nprint('archive-tool: error: unrecognized arguments: --odd', file=sys.stderr)\nsys.exit(2)"
    )
    office.crawler.environment |= {
        "HOLDFAST_ALLOW_NETWORKS": "127.0.0.0/8", "HOLDFAST_ZIMIT_COMMAND": f"{sys.executable} {broken}",
        "HOLDFAST_POLITENESS_RETRIES": "1", "HOLDFAST_LOG_LEVEL": "WARNING",
    }  # fmt: skip
    for host, code in enumerate(("hc", "phac", "cihr")):
        seeds = [site.url(host, "/")] if code == "hc" else [site.url(host, "/en/"), site.url(host, "/fr/")]
        named = [word for seed in seeds for word in ("--seed", seed)]
        office.json("source", "create", code, *named, "--set", "delay_s=0", "--set", "max_depth=2")
    planned = office.json("schedule-annual", *_YEAR, "--sources", "phac,hc")
    made = office.json("schedule-annual", *_YEAR, "--sources", "phac,hc", "--apply")
    sharded = office.json("plan-annual-shards", *_YEAR, "--sources", "cihr", "--apply")
    assert [entry["source"] for entry in planned["entries"]] == [entry["source"] for entry in made["entries"]]
    assert [entry["shardKey"] for entry in sharded["entries"]] == ["lang-en", "lang-fr"]
    with (
        closing(Database(f"sqlite:///{(office.crawler.home / 'holdfast.db').resolve()}")) as database,
        database.write() as session,
    ):
        job = session.scalars(select(Job).where(Job.name == "cihr-20260101-lang-fr")).one()
        job.config = {**job.config, "backend": "zimit"}


def test_a_campaign_ends_in_the_right_statuses_and_a_report_that_adds_up(
    crawler: Crawler, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    office = Office(crawler, Terminal(crawler.home, capsys))
    with Site.start(hosts=4) as site:
        _build(site)
        _campaign(office, site, tmp_path / "broken.py")
        status = office.work()
        expected = {site.url(0, path): said for path, said in _HC.items()}

    assert {row["sourceCode"]: row["state"] for row in status["sources"]} == {
        "hc": "indexed", "phac": "indexed", "cihr": "failed",
    }  # fmt: skip
    by_itself = {code: office.json("edition", "show", code, "2026")["status"] for code in ("hc", "phac", "cihr")}
    reports = {one["source"]: one for one in office.json("annual-edition-report", *_YEAR, "--apply")["reports"]}
    assert {code: one["status"] for code, one in reports.items()} == by_itself == {
        "hc": "research_ready", "phac": "search_ready", "cihr": "needs_review",
    }  # fmt: skip
    ledgers = {code: office.ledger(code) for code in reports}
    for code, one in reports.items():
        _adds_up(one, ledgers[code])
    said = {row["url"]: (row["intent_source"], row["outcome"], row["reason"]) for row in ledgers["hc"]}
    assert said == expected
    assert [seed["reason"] for seed in reports["phac"]["missing_seeds"]] == ["http_404"]
    failed = next(shard for shard in reports["cihr"]["shards"] if shard["shardKey"] == "lang-fr")
    assert (failed["status"], failed["acceptanceState"]) == ("failed", "needs_review")
    _settle(office, failed["jobId"])


def _settle(office: Office, job_id: int) -> None:
    """Accept the gap, freeze the editions, and hold the lists against the archive."""
    refused = office.terminal.type("edition", "freeze", "cihr", "2026")
    gap = ("accept-annual-shard-gap", "--job-id", str(job_id), "--reason", "the tool was wrong")
    thought = office.json(*gap)
    still = office.json("edition", "show", "cihr", "2026")
    accepted = office.json(*gap, "--apply")
    frozen = office.json("edition", "freeze", "cihr", "2026")
    held = office.json("edition", "verify", "cihr", "2026")

    assert refused.code == 1
    assert "neither indexed nor accepted" in refused.err
    assert (thought["status"], thought["applied"], still["status"]) == ("research_ready", False, "needs_review")
    assert [shard["acceptanceState"] for shard in still["shard_list"]].count("accepted_gap") == 0
    assert (accepted["status"], accepted["applied"]) == ("research_ready", True)
    assert frozen["captures"] >= 2
    assert (held["holds"], held["listed"]) == (True, frozen["captures"])
    again = office.json("schedule-annual", *_YEAR, "--sources", "hc,phac", "--apply")
    assert [entry["reason"] for entry in again["entries"]] == ["already_scheduled"] * 2


_HC = {
    "/": ("seed", "captured", "ok"),
    "/a": ("link", "captured", "ok"),
    "/b": ("link", "captured", "ok"),
    "/told": ("sitemap", "captured", "ok"),
    "/missing": ("link", "failed", "http_404"),
    "/private/x": ("link", "robots", "robots:line 2"),
    "/status/500": ("link", "robots", "robots:line 3"),
    "/framing/reset-first": ("link", "failed", "disconnected"),
    "/off": ("link", "excluded", "redirect_out_of_scope:scope:host"),
}


def _adds_up(report: dict[str, Any], ledger: list[dict[str, Any]]) -> None:
    """Hold every figure of a report against the ledger."""
    counts, outcomes = report["counts"], Counter(row["outcome"] for row in ledger)
    ruled_out = outcomes["robots"] + outcomes["excluded"] + outcomes["over_limit"]
    assert len({row["url"] for row in ledger}) == len(ledger) == counts["intended_urls"]
    assert (counts["captured_urls"], counts["failed_urls"]) == (outcomes["captured"], outcomes["failed"])
    assert (counts["missing_urls"], counts["excluded_urls"]) == (outcomes["not_reached"], ruled_out)
    assert report["outcomes"] == outcomes
    assert report["origins"] == Counter(row["intent_source"] for row in ledger)
    assert sum(report["backend_counts"].values()) == counts["captured_urls"]
    assert Counter((row["outcome"], row["reason"]) for row in ledger) == {
        (one["outcome"], one["reason"]): one["count"] for one in report["reasons"]
    }
