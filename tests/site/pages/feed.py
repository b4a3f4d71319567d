"""Feeds: RSS, Atom and JSON as they should be, and as they should not."""

from __future__ import annotations

from tests.site.book import Group
from tests.site.wire import Exchange

feed = Group("feed", "feeds as they should be, and as they should not (`n`: items)")


def _rss(items: str, *, doctype: str = "") -> str:
    head = "<title>News</title><link>/</link><description>d</description>"
    return f'<?xml version="1.0"?>{doctype}<rss version="2.0"><channel>{head}{items}</channel></rss>'


def _item(link: str, *, guid: str = "1", title: str = "An item") -> str:
    date = "Tue, 01 Sep 2026 10:00:00 GMT"
    return f"<item><title>{title}</title><link>{link}</link><guid>{guid}</guid><pubDate>{date}</pubDate></item>"


@feed.page("rss", "RSS with three items")
async def rss(exchange: Exchange) -> None:
    items = "".join(_item(exchange.url(f"/meta/title?item={n}"), guid=str(n)) for n in range(3))
    await exchange.reply(_rss(items), media="application/rss+xml")


@feed.page("atom", "Atom with one entry")
async def atom(exchange: Exchange) -> None:
    entry = f'<entry><title>One</title><id>urn:1</id><link href="{exchange.url("/meta/title?atom=1")}"/></entry>'
    body = f'<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><title>News</title>{entry}</feed>'
    await exchange.reply(body, media="application/atom+xml")


@feed.page("json", "JSON Feed with one item")
async def json_feed(exchange: Exchange) -> None:
    item = f'{{"id": "1", "url": "{exchange.url("/meta/title?json=1")}"}}'
    body = f'{{"version": "https://jsonfeed.org/version/1.1", "title": "News", "items": [{item}]}}'
    await exchange.reply(body, media="application/feed+json")


@feed.page("growing", "RSS with one more item at every request")
async def growing(exchange: Exchange) -> None:
    items = "".join(_item(exchange.url(f"/meta/title?item={n}"), guid=str(n)) for n in range(exchange.visits))
    await exchange.reply(_rss(items), media="application/rss+xml")


@feed.page("etag", "RSS with two items and an ETag, and 304 to who knows it")
async def etag(exchange: Exchange) -> None:
    tag = [("ETag", '"f1"')]
    if exchange.request.headers.get("if-none-match") == '"f1"':
        await exchange.reply(status=304, headers=tag)
        return
    items = "".join(_item(exchange.url(f"/meta/title?etag={n}"), guid=str(n)) for n in range(2))
    await exchange.reply(_rss(items), headers=tag, media="application/rss+xml")


@feed.page("gone", "410: the feed is gone for good")
async def gone(exchange: Exchange) -> None:
    await exchange.reply("gone", status=410, media="text/plain")


@feed.page("limited", "429 with a Retry-After of `s` seconds (7200)", sample="s=1")
async def limited(exchange: Exchange) -> None:
    wait = str(int(exchange.number("s", 7200)))
    await exchange.reply("slow down", status=429, headers=[("Retry-After", wait)], media="text/plain")


@feed.page("moved", "301 to an RSS feed of the same host")
async def moved(exchange: Exchange) -> None:
    await exchange.reply(status=301, headers=[("Location", "/feed/rss")])


@feed.page("many", "RSS with `n` items (100,000)", sample="n=10")
async def many(exchange: Exchange) -> None:
    count = int(exchange.number("n", 100_000))
    await exchange.reply(_rss("".join(_item(f"/meta/title?n={n}") for n in range(count))), media="application/rss+xml")


for _name, _story, _body in (
    (
        "schemes",
        "items that lead to javascript:, feed: and file:",
        _rss("".join(_item(a) for a in ("javascript:alert(1)", "feed://127.0.0.2/x", "file:///etc/passwd"))),
    ),
    ("guid-big", "a guid of 1 MB", _rss(_item("/meta/title", guid="g" * 1_000_000))),
    ("title-html", "markup in titles", _rss(_item("/meta/title", title="&lt;img src=x onerror=alert(1)&gt;"))),
    ("future", "an item of the year 9999", _rss(_item("/meta/title")).replace("2026", "9999")),
    (
        "entity",
        "an entity that is a local file",
        _rss(_item("/meta/&f;"), doctype='<!DOCTYPE r [<!ENTITY f SYSTEM "file:///etc/hostname">]>'),
    ),
    ("cut", "cut in the middle of an item", _rss(_item("/meta/title") * 3)[:-90]),
    ("empty", "RSS without any item", _rss("")),
    ("garbage", "neither a feed nor anything else", "\x00\x01 this is no feed <<<"),
    (
        "rdf",
        "RSS 1.0",
        '<?xml version="1.0"?><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
        ' xmlns="http://purl.org/rss/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel rdf:about="/"/>'
        '<item rdf:about="/meta/title?rdf=1"><link>/meta/title?rdf=1</link><dc:date>2026-09-01</dc:date></item>'
        "</rdf:RDF>",
    ),
):
    feed.fixed(_name, _story, _body, media="application/rss+xml")
