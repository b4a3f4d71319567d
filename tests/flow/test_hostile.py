"""The zoo: every page of every group in one crawl. Each ends with a name, its bytes are kept, nobody falls over."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests import patience
from tests.flow.crawler import Crawler
from tests.flow.faults.bed import rows
from tests.flow.records import Stored, captures, stored
from tests.site import Site, judge
from tests.site.log import Entry
from tests.site.pages import GROUPS

_GROUPS = ["framing", "encoding", "head", "cookie", "status", "cache", "markup", "charset", "meta", "media", "feed"]
"""A host for each. Redirects, robots files, sitemaps and slow servers have tests of their own."""
_LEFT_OUT = r"/status/(408|425|429|5\d\d|after-.*|busy-date|flapping)$|/feed/limited"
"""Pages that ask for time: on one host they would hold up all others, as they should."""

_BROKEN = {
    "framing": "length-negative length-plus length-word length-twice",
    "head": (
        "099 bare-cr big empty-head etag-big garbage http-0.9 http-2 icy many no-colon no-status nul reason-big "
        "status-long status-word tls upgrade"
    ),
}
_EVIDENT = {
    "framing": "length-negative length-plus length-word length-twice",
    "head": "099 bare-cr many no-colon nul status-long upgrade",
}
"""Of these something was handed over before it was noticed that they are no answers."""
_CUT_OFF = {
    "framing": (
        "chunk-0x chunk-cut chunk-empty chunk-huge chunk-negative chunk-no-crlf chunk-overflow chunk-unfinished "
        "chunk-word reset short"
    )
}
_TOO_LONG = {"framing": "endless endless-close", "media": "large large-html only-for-robots"}
_NOTED = {
    "encoding": {
        "gzip-bomb": "ratio_exceeded", "deflate-bomb": "ratio_exceeded", "br-bomb": "ratio_exceeded",
        "zstd-bomb": "ratio_exceeded", "gzip-gzip-bomb": "ratio_exceeded", "gzip-thrice": "too_many_encodings",
        "twenty": "too_many_encodings", "gzip-lie": "bad_encoding", "br-lie": "bad_encoding", "gzip-cut": "cut_short",
        "gzip-junk": "trailing_bytes", "unknown": "unknown_encoding",
    },
    "charset": {"utf-7": "charset_refused", "unknown": "charset_unknown", "codec-zip": "charset_unknown"},
    "media": {"html-as-text": "sniffed_html", "none": "sniffed_html"},
    "meta": {"noarchive": "noarchive"},
    "feed": {"entity": "xml_entities", "cut": "xml_broken"},
}  # fmt: skip


_HANG_UP_S = 0.05
"""A client that has had enough hangs up while a rude page is still being written: the site learns of it later."""


@dataclass
class World:
    """What became of the zoo."""

    rows: dict[str, dict[str, Any]]
    tries: dict[str, list[str]]
    """Why each attempt on an address ended, in order."""
    kept: dict[str, list[Stored]]
    stored: list[Stored]
    log: list[Entry]
    hosts: list[str]
    port: int
    crawler: Crawler

    def url(self, group: str, name: str) -> str:
        return f"http://{self.hosts[_GROUPS.index(group)]}:{self.port}/{group}/{name}"

    def ended(self, group: str, name: str) -> str:
        """Return how a page ended, in two words."""
        row = self.rows[self.url(group, name)]
        return f"{row['outcome']} {row['reason']}"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    crawler = Crawler(tmp_path_factory.mktemp("zoo") / "home")
    # A host of nothing but rude pages must not be given up before all of them were met.
    crawler.environment |= {
        "HOLDFAST_FETCH_BODY_BYTES": "3000000",
        # The site is slow where the machine is: no page may be cut by the clock that is cut by its size elsewhere.
        "HOLDFAST_FETCH_DEADLINE_S": str(patience.allowed(5.0)),
        "HOLDFAST_TIMINGS_CRAWL_PARSE_S": str(patience.allowed(0.5)),
        "HOLDFAST_TIMINGS_CRAWL_UNREACHABLE_S": "60",
    }
    with Site.start(hosts=len(_GROUPS), pages=1, process=True) as site:
        seeds = [site.url(number, f"/zoo/group/{name}") for number, name in enumerate(_GROUPS)]
        crawler.crawl(
            *seeds, "--workers", "1", "--delay", "0", "--depth", "1", "--no-sitemaps",
            "--exclude", r"\.invalid/", "--exclude", _LEFT_OUT,
            timeout_s=90,
        )  # fmt: skip
        log = site.settled()
    found = [json.loads(line) for line in crawler.run("report", "--urls").stdout.splitlines()]
    records = stored(crawler.warcs())
    kept = captures(crawler.warcs())
    tries: dict[str, list[str]] = {}
    for url, reason in rows(
        crawler, "SELECT p.url, c.reason FROM page_crawls c JOIN pages p ON p.id = c.page_id ORDER BY c.attempt"
    ):
        tries.setdefault(url, []).append(reason)
    return World({row["url"]: row for row in found}, tries, kept, records, log, site.hosts, site.port, crawler)


def _pairs(table: dict[str, str]) -> list[tuple[str, str]]:
    return [(group, name) for group, names in table.items() for name in names.split()]


def test_every_page_of_the_zoo_was_met_and_closed_with_a_name(world: World) -> None:
    for number, group in enumerate(_GROUPS):
        for name in GROUPS[group].pages:
            url = f"http://{world.hosts[number]}:{world.port}/{group}/{name}"
            if re.search(_LEFT_OUT, url):
                assert url not in world.rows
                continue
            assert world.rows[url]["outcome"] != "open", url
            assert world.rows[url]["reason"] not in (None, "", "internal_error", "domain_unreachable"), url


@pytest.mark.parametrize(("group", "name"), _pairs(_BROKEN))
def test_an_answer_that_is_none_is_a_bad_response(world: World, group: str, name: str) -> None:
    assert world.ended(group, name) == "failed bad_response"


def test_response_with_two_lengths_is_marked_and_kept_whole(world: World) -> None:
    [record] = world.kept[world.url("framing", "length-and-chunks")]

    assert world.ended("framing", "length-and-chunks") == "success ambiguous_length"
    assert b"0\r\n\r\n" in record.block, "the whole chunked body is stored"


def test_status_outside_the_known_range_is_no_server_error(world: World) -> None:
    assert world.ended("head", "999") == "failed http_999"


@pytest.mark.parametrize(("group", "name"), _pairs(_EVIDENT))
def test_what_came_of_an_answer_that_cannot_be_read_is_kept_as_evidence(world: World, group: str, name: str) -> None:
    url = world.url(group, name)
    [record] = [one for one in world.stored if one.url == url and one.type == "metadata"]

    assert record.block.startswith(b"HTTP/1.1 ")
    assert url not in world.kept, "and never as a capture"


@pytest.mark.parametrize(("group", "name"), _pairs(_CUT_OFF))
def test_what_came_before_the_break_is_kept_and_marked(world: World, group: str, name: str) -> None:
    url = world.url(group, name)
    tries = world.tries[url]
    assert len(tries) == 4, "asked again three times, like a timeout"
    if name == "reset":  # what a client has not read when the reset comes is lost to it: then there is nothing to keep
        assert set(tries) <= {"truncated", "disconnected"}
    else:
        assert tries == ["truncated"] * 4
    assert [record.truncated for record in world.kept.get(url, [])] == ["disconnect"] * tries.count("truncated")
    assert world.ended(group, name) == f"failed {tries[-1]}"


@pytest.mark.parametrize(("group", "name"), _pairs(_TOO_LONG))
def test_what_has_no_end_is_cut_at_our_limit_and_marked(world: World, group: str, name: str) -> None:
    record = world.kept[world.url(group, name)][0]

    assert world.ended(group, name) == "success truncated_length"
    assert record.truncated == "length"
    assert 3_000_000 - 70_000 <= len(record.body) <= 3_000_000


@pytest.mark.parametrize(
    ("group", "name", "note"), [(group, name, note) for group, names in _NOTED.items() for name, note in names.items()]
)
def test_what_went_less_than_well_is_noted_and_the_page_is_captured(
    world: World, group: str, name: str, note: str
) -> None:
    assert world.ended(group, name) == "success ok"
    assert note in world.rows[world.url(group, name)]["message"]


def test_pages_that_no_parser_finishes_are_kept_and_their_links_scanned(world: World) -> None:
    endings = {name: world.ended("markup", name) for name in GROUPS["markup"].pages}

    assert set(endings.values()) <= {"success ok", "success parse_timeout", "success truncated_length"}
    assert "success parse_timeout" in endings.values(), "the nightmares are nightmares"


def test_the_bytes_of_the_wire_are_the_bytes_of_the_record(world: World) -> None:
    """What the server says that it sent is what stands in the record, head and body, coded as it was."""
    compared = 0
    for entry in world.log:
        if entry.aborted:  # the site was too slow on a busy machine: the answer that is kept is a later one
            continue
        group = entry.path.split("/")[1]
        records = world.kept.get(f"http://{entry.host}:{entry.port}{entry.path}", [])
        if group in ("encoding", "charset", "meta", "media", "markup", "feed") and records and not records[0].truncated:
            assert len(records[0].block) == entry.sent_bytes, entry.path
            compared += 1
    assert compared > 120


def test_what_was_asked_of_others_stays_within_the_crawl(world: World) -> None:
    """Alt-Svc, preload, HSTS and Refresh to inner addresses: nobody acted on them (R20)."""
    assert {entry.host for entry in world.log} == set(world.hosts)
    polite = [entry for entry in world.log if not entry.aborted]
    assert judge(polite, delay_s=0.0, tolerance_s=_HANG_UP_S) == []


def test_no_file_is_called_what_a_server_called_its_download(world: World) -> None:
    """`../../x`, `/etc/cron.d/x`, `CON`, `a%00b` and 4 kB of a name: all files are of our own naming."""
    assert {world.ended("media", name) for name in GROUPS["media"].pages if name.startswith("name-")} == {"success ok"}
    folder = world.crawler.home.parent
    made = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    ours = re.compile(r"home/(holdfast\.db(-wal|-shm)?|(run|warcs)/.*)")
    assert [path for path in made if not ours.fullmatch(path)] == []
    assert all(re.fullmatch(r"[A-Za-z0-9._-]{1,120}", Path(path).name) for path in made)


def test_refusals_have_their_class_and_no_password_was_offered(world: World) -> None:
    for code in (400, 401, 402, 403, 404, 405, 407, 410, 418, 451):
        assert world.ended("status", str(code)) == f"blocked_4xx http_{code}"
    assert {entry.authorization for entry in world.log} == {None}


def test_nothing_fell_over_and_the_archive_is_whole(world: World) -> None:
    processes = rows(world.crawler, "SELECT count(*) FROM owners WHERE kind = 'process'")

    assert processes == [(1,)], "no process was replaced"
    assert "crawl.parse_hangs" not in world.crawler.log()
    assert world.crawler.faults() == []


@pytest.mark.soak
def test_places_without_an_end_are_left_and_named(crawler: Crawler) -> None:
    with Site.start(hosts=3, pages=1) as site:
        seeds = [site.url(number, f"/trap/{name}/") for number, name in enumerate(("repeat", "repeat-two", "grow"))]
        result = crawler.crawl(*seeds, "--depth", "-1", "--delay", "0", "--no-sitemaps")

    left_out = {row["rule"] for row in json.loads(crawler.run("report", "--json").stdout)["excluded"]}
    assert result["state"] == "completed"
    assert result["pages"] < 300
    assert {"trap:repeated_segments", "trap:path_depth"} <= left_out
