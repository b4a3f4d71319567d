"""A crawl from a seed to sealed files, as its user types it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from fastwarc.warc import ArchiveIterator
from warcio.archiveiterator import ArchiveIterator as WarcioIterator

from holdfast.warc.reader import read_records
from tests import needs
from tests.flow.crawler import Crawler, fetched
from tests.site import Site, judge

ROOT = Path(__file__).resolve().parents[2]


def test_every_page_is_captured_once_and_accounted_for(any_crawler: Crawler) -> None:
    with Site.plain(hosts=4, pages=12) as site:
        result = any_crawler.crawl(*(site.url(host) for host in range(4)), "--delay", "0", "--workers", "2")
        log = site.settled()

    outcomes = any_crawler.outcomes()
    captured = {url for url, (outcome, _) in outcomes.items() if outcome == "success"}
    assert captured >= set(site.urls())
    assert set(fetched(log).values()) == {1}
    assert judge(log, delay_s=0.0) == []
    assert result["state"] == "completed"
    assert result["queue"] == 0
    assert any_crawler.faults() == []


def test_a_second_crawl_of_an_unchanged_site_writes_revisits_and_finds_every_page_again(crawler: Crawler) -> None:
    with Site.plain(hosts=1, pages=12) as site:
        first = crawler.crawl(site.url(0), "--delay", "0")
        second = crawler.crawl(site.url(0), "--delay", "0")

    assert second["pages"] == first["pages"]
    assert "revisit" in {kind for path in second["warc_files"] for kind in _kinds(Path(path))}
    assert set(crawler.outcomes(2)) == set(crawler.outcomes(1))
    assert crawler.faults(2) == []


def test_other_tools_read_what_we_write_and_agree(crawler: Crawler) -> None:
    with Site.plain(hosts=2, pages=10) as site:
        crawler.crawl(site.url(0), site.url(1), "--delay", "0")

    for path in crawler.warcs():
        with path.open("rb") as stream:
            ours = [record.rec_type for record in WarcioIterator(stream)]
        assert ours == _kinds(path)
        with path.open("rb") as stream:
            assert all(record.verify_block_digest() for record in ArchiveIterator(stream, parse_http=False))
        with path.open("rb") as stream:
            for record in WarcioIterator(stream, check_digests="raise"):
                record.content_stream().read()


def test_pywb_indexes_what_we_write_and_agrees_on_counts_and_digests(crawler: Crawler) -> None:
    indexer = needs.peer(ROOT / ".venv-peers" / "bin" / "cdxj-indexer")
    with Site.plain(hosts=1, pages=10) as site:
        crawler.crawl(site.url(0), "--delay", "0")

    (path,) = crawler.warcs()
    lines = subprocess.run([indexer, path], capture_output=True, text=True, check=True).stdout.splitlines()

    theirs = {(row["url"], row["digest"], int(row["offset"]), int(row["length"])) for row in map(_entry, lines)}
    ours = {
        (record.head.get("WARC-Target-URI"), record.head.get("WARC-Payload-Digest"), record.offset, record.length)
        for record in read_records(path)
        if record.head.get("WARC-Type") == "response"
    }
    assert theirs == ours
    assert len(ours) > 10


def _entry(line: str) -> dict[str, str]:
    fields: dict[str, str] = json.loads(line.split(" ", 2)[2])
    return fields


def test_a_crawl_without_a_contact_refuses_to_start(crawler: Crawler) -> None:
    crawler.environment["HOLDFAST_CONTACT"] = ""

    ended = crawler.run("crawl", "https://example.org/")

    assert ended.returncode == 1
    assert "--contact" in ended.stderr
    assert not (crawler.home / "holdfast.db").exists()


def _kinds(path: Path) -> list[str]:
    with path.open("rb") as stream:
        return [record.headers["WARC-Type"] for record in ArchiveIterator(stream, parse_http=False)]
