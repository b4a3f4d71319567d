"""Bodies that end before their server has sent all of them: asked for again, stored as they came, never a success."""

from __future__ import annotations

import json

from tests.flow.crawler import Crawler
from tests.flow.records import captures
from tests.site import Site
from tests.site.wire import Exchange

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5000\r\n\r\n"
_PAGE = b"<title>whole</title><p>" + b"x" * 200


class _BreaksOnce:
    """A page whose first answer breaks off."""

    def __init__(self) -> None:
        self._asked = 0

    async def __call__(self, exchange: Exchange) -> None:
        self._asked += 1
        if self._asked == 1:
            await exchange.send(_HEAD + b"<p>46 of 5,000 bytes, then a closed line</p>")
        else:
            await exchange.reply(_PAGE)


async def _always_breaks(exchange: Exchange) -> None:
    await exchange.send(_HEAD + b'<a href="/below">below</a>')


async def _stalls(exchange: Exchange) -> None:
    await exchange.send(_HEAD + b"<p>half")
    await exchange.silence()


def test_a_body_that_breaks_off_is_asked_for_again_and_what_stays_broken_is_kept_and_named(
    any_crawler: Crawler,
) -> None:
    any_crawler.environment |= {"HOLDFAST_POLITENESS_RETRIES": "1", "HOLDFAST_FETCH_DEADLINE_S": "1"}
    with Site.start(hosts=1, pages=1) as site:
        site.on("/once", _BreaksOnce())
        site.on("/always", _always_breaks)
        site.on("/stalls", _stalls)
        site.serve("/below", "<p>below</p>")
        once, always, stalls = (site.url(0, path) for path in ("/once", "/always", "/stalls"))
        result = any_crawler.crawl(once, always, stalls, "--delay", "0", "--no-sitemaps")

    outcomes = any_crawler.outcomes()
    assert outcomes[once] == ("success", "ok")
    assert outcomes[always] == outcomes[stalls] == ("failed", "truncated")
    assert outcomes[site.url(0, "/below")] == ("success", "ok"), "what came of it leads on"
    kept = captures(any_crawler.warcs())
    assert [record.truncated for record in kept[once]] == ["disconnect", None]
    assert {record.truncated for record in kept[always]} == {"disconnect"}
    assert {record.truncated for record in kept[stalls]} == {"time"}
    assert result["outcomes"]["failed"] == 2
    report = json.loads(any_crawler.run("report", "--json").stdout)
    assert [(one["count"], one["word"]) for one in report["reasons"] if one["reason"] == "truncated"] == [
        (2, "cut off")
    ]
    rows = [json.loads(line) for line in any_crawler.run("report", "--urls").stdout.splitlines()]
    [row] = [row for row in rows if row["url"] == always]
    assert row["warc_file_id"] is not None, "its last record can be reached"
    assert "26 bytes came" in row["message"]
    assert any_crawler.faults() == []
