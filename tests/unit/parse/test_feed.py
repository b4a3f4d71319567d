"""Feeds and sitemaps of every form give addresses and dates; hostile ones cost little and give nothing away."""

from __future__ import annotations

import gzip
import json
import time
from datetime import UTC, datetime

import pytest

from holdfast.parse import FeedForm, ParseProblem, parse_feed
from holdfast.parse.feed import MAX_ENTRIES
from tests import patience

_AT = datetime(2026, 9, 1, 10, 0, tzinfo=UTC)
_RSS = '<?xml version="1.0"?><rss version="2.0"><channel><link>http://a.test/</link>{}</channel></rss>'
_URLSET = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{}</urlset>'


def rss(items: str) -> bytes:
    """Return an RSS document around items."""
    return _RSS.format(items).encode()


def read(body: bytes) -> dict[str, datetime | None]:
    """Return the entries of a document."""
    return {entry.url: entry.told_at for entry in parse_feed(body).entries}


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("<item><link>http://a.test/1</link><guid>x</guid></item>", {"http://a.test/1": None}),
        ("<item><link> /rel </link></item>", {"/rel": None}),
        ("<item><guid>http://a.test/g</guid></item>", {"http://a.test/g": None}),
        ('<item><guid isPermaLink="false">https://a.test/g</guid></item>', {"https://a.test/g": None}),
        ("<item><link></link><guid>http://a.test/g</guid></item>", {"http://a.test/g": None}),
        ("<item><link>javascript:alert(1)</link><guid>http://a.test/g</guid></item>", {"http://a.test/g": None}),
        ("<item><link>javascript:alert(1)</link></item>", {}),
        ("<item><link>feed://a.test/x</link></item>", {}),
        ("<item><link>file:///etc/passwd</link></item>", {}),
        ("<item><guid>tag:a.test,2026:1</guid></item>", {}),
        ("<item><title>nothing else</title></item>", {}),
        ("<item><link>/x</link><pubDate>Tue, 01 Sep 2026 10:00:00 GMT</pubDate></item>", {"/x": _AT}),
        ("<item><link>/x</link><pubDate>Tue, 01 Sep 2026 12:00:00 +0200</pubDate></item>", {"/x": _AT}),
        ("<item><link>/x</link><pubDate>yesterday</pubDate></item>", {"/x": None}),
        ('<item><a:link xmlns:a="http://www.w3.org/2005/Atom" href="/self" rel="self"/><link>/x</link></item>',
         {"/x": None}),
        ("<image><url>/logo.png</url><link>/</link></image><item><link>/x</link></item>", {"/x": None}),
    ],
)  # fmt: skip
def test_an_item_of_rss_is_its_link_or_else_an_id_that_is_an_address(
    item: str, expected: dict[str, datetime | None]
) -> None:
    found = parse_feed(rss(item))

    assert {entry.url: entry.told_at for entry in found.entries} == expected
    assert found.failure is None


def test_rss_of_every_version_is_read() -> None:
    old = b"<rss version='0.91'><channel><item><title>t</title><link>/a</link></item></channel></rss>"
    rdf = (
        b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"'
        b' xmlns:dc="http://purl.org/dc/elements/1.1/"><channel rdf:about="/"><link>/</link></channel>'
        b'<item rdf:about="http://a.test/1"><link>http://a.test/1</link><dc:date>2026-09-01T10:00:00Z</dc:date></item>'
        b'<item rdf:about="http://a.test/2"><title>only about</title></item></rdf:RDF>'
    )

    assert read(old) == {"/a": None}
    assert read(rdf) == {"http://a.test/1": _AT, "http://a.test/2": None}
    assert {parse_feed(old).form, parse_feed(rdf).form} == {FeedForm.RSS}


def test_atom_gives_the_alternate_link_and_the_newest_date() -> None:
    body = b"""<feed xmlns="http://www.w3.org/2005/Atom"><id>http://a.test/</id><link href="http://a.test/"/>
        <entry><id>urn:1</id><link rel="edit" href="/edit"/><link rel="alternate" href="/one"/>
          <published>2026-08-01T00:00:00Z</published><updated>2026-09-01T12:00:00+02:00</updated></entry>
        <entry><id>http://a.test/two</id><source><link href="/other"/><updated>2030-01-01</updated></source></entry>
        <entry><id>urn:3</id></entry></feed>"""

    assert parse_feed(body).form is FeedForm.ATOM
    assert read(body) == {"/one": _AT, "http://a.test/two": None}


@pytest.mark.parametrize(
    ("feed", "entry", "link", "expected"),
    [
        ("https://a.example/blog/", "", "", "https://a.example/blog/1"),
        ("https://a.example/blog/", "../news/", "", "https://a.example/news/1"),
        ("/blog/", "", "", "/blog/1"),
        ("https://a.example/", "https://b.example/", "sub/", "https://b.example/sub/1"),
        ("http://[", "", "", "1"),
        ("x" * 3000, "", "", "1"),
    ],
)
def test_addresses_are_relative_to_the_base_that_is_declared_around_them(
    feed: str, entry: str, link: str, expected: str
) -> None:
    def base(written: str) -> str:
        return f' xml:base="{written}"' if written else ""

    body = f"""<feed xmlns="http://www.w3.org/2005/Atom"{base(feed)}><entry{base("https://c.example/")}><id>x</id></entry>
        <entry{base(entry)}><link href="1"{base(link)}/></entry></feed>"""

    assert [found.url for found in parse_feed(body.encode()).entries] == [expected]


def test_a_flood_of_bases_is_left_out_in_no_time() -> None:
    body = (
        b'<feed xml:base="https://a.example/">' + b'<entry xml:base="b/"><link href="1"/></entry>' * 20_000 + b"</feed>"
    )

    assert {found.url for found in parse_feed(body).entries} == {"https://a.example/b/1", "https://a.example/1"}


def test_a_json_feed_gives_urls_and_dates() -> None:
    items = [
        {"id": "1", "url": "/one", "date_published": "2026-08-01", "date_modified": "2026-09-01T10:00:00Z"},
        {"id": "https://a.test/2"}, {"id": "3"}, {"url": 7}, "junk", {"url": "javascript:x", "external_url": "/ext"},
    ]  # fmt: skip
    body = json.dumps({"version": "https://jsonfeed.org/version/1.1", "items": items}).encode()

    assert parse_feed(body).form is FeedForm.JSON
    assert read(body) == {"/one": _AT, "https://a.test/2": None, "/ext": None}


@pytest.mark.parametrize(
    ("lastmod", "expected"),
    [
        ("2026-09-01T10:00:00Z", _AT),
        ("2026-09-01T10:00:00.123456789+00:00", _AT.replace(microsecond=123456)),
        ("2026-09-01T10:00Z", _AT),
        ("2026-09-01 10:00:00", _AT),
        ("2026-09-01", datetime(2026, 9, 1, tzinfo=UTC)),
        ("2026-09", datetime(2026, 9, 1, tzinfo=UTC)),
        ("2026", datetime(2026, 1, 1, tzinfo=UTC)),
        ("2016-12-31T23:59:60Z", datetime(2016, 12, 31, 23, 59, 59, tzinfo=UTC)),
        ("2026-13-01", None),
        ("2026-02-30", None),
        ("0000-01-01", None),
        ("9999-12-31T23:59:59-14:00", None),
        ("", None),
        ("1" * 4000, None),
    ],
)
def test_lastmod_is_rfc_3339_or_a_date_and_nonsense_is_none(lastmod: str, expected: datetime | None) -> None:
    body = _URLSET.format(f"<url><loc>http://a.test/</loc><lastmod>{lastmod}</lastmod></url>").encode()

    assert read(body) == {"http://a.test/": expected}


def test_a_news_sitemap_gives_the_date_of_publication() -> None:
    body = _URLSET.format(
        '<url><loc>/n</loc><n:news xmlns:n="http://www.google.com/schemas/sitemap-news/0.9">'
        "<n:publication_date>2026-09-01T10:00:00Z</n:publication_date></n:news></url>"
    ).encode()

    assert read(body) == {"/n": _AT}


def test_an_index_names_children_with_their_dates() -> None:
    body = b"<sitemapindex><sitemap><loc>/a.xml</loc><lastmod>2026-09-01T10:00:00Z</lastmod></sitemap></sitemapindex>"
    found = parse_feed(body)

    assert (found.form, found.entries) == (FeedForm.INDEX, ())
    assert [(child.url, child.told_at) for child in found.children] == [("/a.xml", _AT)]


def test_text_sitemaps_and_gzip_files_are_read() -> None:
    text = b"\xef\xbb\xbfhttp://a.test/1\r\nhttp://a.test/2\r\nnot an address\r\n"

    assert list(read(text)) == ["http://a.test/1", "http://a.test/2"]
    assert list(read(gzip.compress(text, mtime=0))) == ["http://a.test/1", "http://a.test/2"]
    assert parse_feed(text).form is FeedForm.TEXT


@pytest.mark.parametrize("body", [rss(""), b"<feed></feed>", b'{"items": []}', b"<urlset></urlset>"])
def test_an_empty_feed_is_an_empty_list_and_no_failure(body: bytes) -> None:
    found = parse_feed(body)

    assert (found.entries, found.failure, found.problems) == ((), None, ())


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"", ParseProblem.NOT_A_SITEMAP),
        (b"hello", ParseProblem.NOT_A_SITEMAP),
        (b"<config/>", ParseProblem.NOT_A_SITEMAP),
        (b"<rss><channel><item>", ParseProblem.XML_BROKEN),
        (b"<?xml version='1.0'?>", ParseProblem.XML_BROKEN),
        (b"<!doctype html><html><body>404</body></html>", ParseProblem.HTML_INSTEAD),
        (b"{", ParseProblem.JSON_BROKEN),
        (b'{"items": ' + b"[" * 100_000, ParseProblem.JSON_BROKEN),
        (b'{"items": {}}', ParseProblem.NOT_A_SITEMAP),
        (gzip.compress(gzip.compress(b"<rss/>", mtime=0), mtime=0), ParseProblem.GZIP_NESTED),
        (gzip.compress(b"<rss></rss>" * 100, mtime=0)[:12], ParseProblem.GZIP_BROKEN),
    ],
)
def test_what_cannot_be_read_at_all_is_a_failure_with_its_reason(body: bytes, problem: ParseProblem) -> None:
    found = parse_feed(body)

    assert found.failure == problem
    assert found.entries == ()


def test_what_was_read_before_a_break_is_used_and_noted() -> None:
    found = parse_feed(rss("<item><link>/1</link></item><item><link>/2</link></item>")[:-30])

    assert [entry.url for entry in found.entries] == ["/1", "/2"][: len(found.entries)]
    assert found.entries
    assert found.failure is None
    assert ParseProblem.XML_BROKEN in found.problems


def test_a_bare_ampersand_costs_nothing_behind_it() -> None:
    found = parse_feed(rss("<item><link>/a?x=1&y=2</link></item><item><link>/b</link></item>"))

    assert [entry.url for entry in found.entries] == ["/a?x=1&y=2", "/b"]
    assert ParseProblem.XML_REFERENCE in found.problems


def test_a_feed_that_lies_about_its_charset_is_read_all_the_same() -> None:
    item = "<item><title>caf\xe9</title><link>/a</link></item>"
    body = "<?xml version='1.0' encoding='utf-8'?>" + _RSS.format(item)[21:]

    assert list(read(body.encode("latin-1"))) == ["/a"]
    assert list(read(body.replace("utf-8", "no-such-charset").encode())) == ["/a"]
    assert list(read(body.replace("utf-8", "utf-16").encode("utf-16"))) == ["/a"]


def _laughs() -> bytes:
    levels = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    item = "<rss><channel><item><link>&l9;</link></item></channel></rss>"
    return f'<!DOCTYPE r [<!ENTITY l0 "lol">{levels}]>{item}'.encode()


@pytest.mark.parametrize(
    "body",
    [
        _laughs(),
        b'<!DOCTYPE r [<!ENTITY f SYSTEM "file:///etc/hostname">]><rss><channel><item><link>http://a/&f;</link></item></channel></rss>',
        b'<!DOCTYPE r [<!ENTITY % p SYSTEM "http://127.0.0.1:9/x"> %p;]><rss><channel/></rss>',
    ],
)
def test_declared_entities_are_refused_unread(body: bytes) -> None:
    started = time.process_time()
    found = parse_feed(body)

    assert (found.entries, found.failure) == ((), ParseProblem.XML_ENTITIES)
    assert time.process_time() - started < patience.allowed(1.0)


def test_a_huge_feed_is_cut_where_the_limit_is() -> None:
    item = "<item><link>/{}</link><description>" + "x" * 40 + "</description></item>"
    found = parse_feed(rss("".join(item.format(n) for n in range(MAX_ENTRIES + 10))))

    assert len(found.entries) == MAX_ENTRIES
    assert ParseProblem.URLS_CUT in found.problems


def test_fifty_megabytes_of_noise_take_bounded_time_and_memory() -> None:
    body = rss("<item><link>/1</link></item>" + "<noise/>" * 200_000 + "x" * 45_000_000)

    started = time.process_time()
    found = parse_feed(body)

    assert [entry.url for entry in found.entries] == ["/1"]
    assert time.process_time() - started < patience.allowed(6.0)


def test_addresses_that_are_too_long_are_left_out() -> None:
    found = parse_feed(rss(f"<item><link>/{'x' * 5000}</link></item><item><link>/ok</link></item>"))

    assert [entry.url for entry in found.entries] == ["/ok"]
    assert ParseProblem.URLS_CUT in found.problems


def test_an_address_that_is_named_twice_keeps_its_newest_date() -> None:
    body = _URLSET.format(
        "<url><loc>/a</loc><lastmod>2026-09-01T10:00:00Z</lastmod></url><url><loc>/a</loc><lastmod>2026</lastmod></url>"
    ).encode()

    assert read(body) == {"/a": _AT}
