"""Every page of the misbehaving web misbehaves as its name says, and by no other fault."""

from __future__ import annotations

import gzip
import zlib

import brotli
import pytest
import zstandard

from tests.site import Site
from tests.site.book import Page
from tests.site.pages import every_page
from tests.site.pages.charset import words
from tests.unit.site.client import ask

_MIB = 1024 * 1024
_MUTE = {"/slow/silent", "/robots/timeout", "/robots/reset", "/framing/reset-first", "/framing/close-first"}


@pytest.mark.parametrize("page", every_page(), ids=lambda page: page.path)
def test_every_page_says_something_unless_silence_is_its_point(web: Site, page: Page) -> None:
    mute = page.path in _MUTE

    answer = ask(web, f"{page.path}?{page.sample}", limit=20_000, first_s=0.1 if mute else 10.0, patience_s=0.1)

    assert bool(answer.data) != mute


@pytest.mark.parametrize("path", ["/slow/head", "/slow/body"])
def test_a_slow_page_sends_one_byte_at_a_time(web: Site, path: str) -> None:
    answer = ask(web, f"{path}?every=60", patience_s=0.5)

    assert answer.ending == "silent"
    assert len(answer.data) == 1 if path == "/slow/head" else len(answer.body) == 1


@pytest.mark.parametrize("path", ["/slow/silent", "/slow/stall", "/slow/stall-head", "/robots/timeout"])
def test_a_stalled_page_keeps_the_connection_open_and_says_no_more(web: Site, path: str) -> None:
    assert ask(web, path, first_s=0.1, patience_s=0.1).ending == "silent"


@pytest.mark.parametrize(
    "path", ["/framing/endless", "/framing/endless-close", "/slow/chunks?every=0", "/slow/continue?every=0"]
)
def test_an_endless_page_goes_on_as_long_as_anybody_listens(web: Site, path: str) -> None:
    assert ask(web, path, limit=20_000).ending == "enough"


@pytest.mark.parametrize("path", ["/framing/reset", "/framing/reset-first", "/robots/reset"])
def test_a_reset_page_breaks_the_connection(web: Site, path: str) -> None:
    answer = ask(web, path)

    assert answer.ending == "reset"
    assert bool(answer.data) == (path == "/framing/reset")


def test_lengths_lie(web: Site) -> None:
    short, long = ask(web, "/framing/short"), ask(web, "/framing/long")

    assert len(short.body) < int(short.header("content-length") or 0)
    assert len(long.body) > int(long.header("content-length") or 0)


def test_confetti_is_as_many_chunks_as_asked(web: Site) -> None:
    assert ask(web, "/framing/confetti?times=20500").body.count(b"1\r\nx\r\n") == 20_500


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("/framing/chunk-huge", b"FFFFFFFFFFFFFFFF"),
        ("/framing/chunk-negative", b"-1"),
        ("/framing/chunk-0x", b"0x44"),
        ("/framing/chunk-empty", b""),
    ],
)
def test_chunk_sizes_are_hostile(web: Site, path: str, line: bytes) -> None:
    assert ask(web, path).body.split(b"\r\n", 1)[0] == line


def test_garbage_follows_a_good_answer_on_the_kept_connection(web: Site) -> None:
    answer = ask(web, "/framing/garbage-after", patience_s=0.5)

    assert b"garbage that nobody asked for" in answer.body[int(answer.header("content-length") or 0) :]
    assert answer.ending == "silent"


def test_bombs_inflate_to_what_they_promise(web: Site) -> None:
    inflate = {
        "gzip": gzip.decompress,
        "deflate": zlib.decompress,
        "br": brotli.decompress,
        "zstd": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
    }
    for label, inflated in inflate.items():
        answer = ask(web, f"/encoding/{label}-bomb?mb=16")

        assert answer.header("content-encoding") == label
        assert len(answer.body) < 20_000
        assert inflated(answer.body) == bytes(16 * _MIB)
    twice = ask(web, "/encoding/gzip-gzip-bomb?mb=16").body
    assert len(gzip.decompress(gzip.decompress(twice))) == 16 * _MIB


def test_layers_and_labels_are_what_they_are_called(web: Site) -> None:
    page = gzip.decompress(ask(web, "/encoding/gzip").body)

    assert gzip.decompress(gzip.decompress(gzip.decompress(ask(web, "/encoding/gzip-thrice").body))) == page
    assert ask(web, "/encoding/gzip-lie").body == page
    assert ask(web, "/encoding/unnamed").header("content-encoding") is None
    assert zlib.decompress(ask(web, "/encoding/deflate-raw").body, wbits=-15) == page
    with pytest.raises(EOFError):
        gzip.decompress(ask(web, "/encoding/gzip-cut").body)


def test_heads_break_the_rules(web: Site) -> None:
    assert ask(web, "/head/many").head.count(b"\r\n") > 10_000
    assert len(ask(web, "/head/big").head) > 1_000_000
    assert b"a\0b" in ask(web, "/head/nul").head
    assert b"one\r\n  two" in ask(web, "/head/fold").head
    assert b"Caf\xe9" in ask(web, "/head/latin-1").head
    assert ask(web, "/head/http-0.9").data.startswith(b"<!DOCTYPE html>")
    assert ask(web, "/head/999").status == 999
    assert not ask(web, "/head/no-status").data.startswith(b"HTTP/")
    assert ask(web, "/slow/hints?times=50").data.count(b"HTTP/1.1 103") == 50


def test_redirects_lead_where_they_say(web: Site) -> None:
    assert ask(web, "/redirect/loop").header("location") == "/redirect/loop"
    assert ask(web, "/redirect/hops?n=6").header("location") == "/redirect/hops?n=5"
    assert ask(web, "/redirect/hops?n=0").status == 200
    assert ask(web, "/redirect/other-host", host=3).header("location") == web.url(0, "/")
    assert ask(web, "/redirect/file").header("location") == "file:///etc/passwd"
    assert ask(web, "/redirect/nowhere").header("location") is None


def test_robots_redirects_are_counted_exactly(web: Site) -> None:
    for name, hops in (("redirect-5", 5), ("redirect-6", 6)):
        web.robots(1, name)
        path, seen = "/robots.txt", 0
        while (answer := ask(web, path, host=1)).status == 302:
            path, seen = str(answer.header("location")), seen + 1

        assert seen == hops
        assert b"Disallow: /private/" in answer.body


def test_robots_that_are_long_hide_their_rule_behind_the_limit(web: Site) -> None:
    body = ask(web, "/robots/long").body

    assert body.index(b"Disallow: /meta/") > 512 * 1024
    assert len(body) > 600 * 1024


def test_a_host_has_no_robots_until_a_test_names_one(web: Site) -> None:
    before = ask(web, "/robots.txt", host=2)
    web.robots(2, "disallow")

    assert before.status == 404
    assert ask(web, "/robots.txt", host=2).body == b"User-agent: *\nDisallow: /\n"


def test_a_failing_page_recovers_after_so_many_times_on_each_host(web: Site) -> None:
    path = "/status/503?times=2&after=7"

    first, second, third = (ask(web, path) for _ in range(3))

    assert (first.status, first.header("retry-after"), second.status, third.status) == (503, "7", 503, 200)
    assert ask(web, path, host=1).status == 503


def test_a_soft_404_looks_found_and_never_links_twice_to_one_page(web: Site) -> None:
    first, second = ask(web, "/status/soft-404"), ask(web, "/status/soft-404")

    assert (first.status, second.status) == (200, 200)
    assert first.body != second.body


def test_validators_are_honoured_or_not_as_named(web: Site) -> None:
    assert ask(web, "/cache/etag", headers='If-None-Match: "v1"\r\n').status == 304
    assert ask(web, "/cache/etag", headers='If-None-Match: "v0"\r\n').status == 200
    assert ask(web, "/cache/deaf", headers='If-None-Match: "v1"\r\n').status == 200
    assert ask(web, "/cache/modified", headers="If-Modified-Since: Tue, 01 Sep 2026 10:00:00 GMT\r\n").status == 304
    assert ask(web, "/cache/changing").body != ask(web, "/cache/changing").body
    assert ask(web, "/cache/etag-lie").header("etag") == ask(web, "/cache/etag-lie").header("etag")


def test_markup_grows_as_asked(web: Site) -> None:
    assert ask(web, "/markup/div?n=1000").body.count(b"<div>") == 1_000
    assert ask(web, "/markup/attributes?n=1000").body.count(b"=") > 1_000
    assert ask(web, "/markup/links").body.count(b"<a href") == 5_000


@pytest.mark.parametrize("name", ["utf-8", "utf-16", "shift_jis", "windows-1251", "gb18030", "euc-kr", "iso-2022-jp"])
def test_a_charset_page_decodes_by_its_label(web: Site, name: str) -> None:
    answer = ask(web, f"/charset/{name}")

    assert words(name) in answer.body.decode(name)
    assert answer.header("content-type") == f"text/html; charset={name}"


def test_charsets_that_lie(web: Site) -> None:
    assert "Grüße" in ask(web, "/charset/header-lie").body.decode()
    assert "charset" not in str(ask(web, "/charset/meta-only").header("content-type"))


def test_cookies_come_in_floods_and_are_echoed(web: Site) -> None:
    assert ask(web, "/cookie/flood").head.count(b"Set-Cookie:") == 1_000
    echo = ask(web, "/cookie/echo", headers="Cookie: a=1\r\nAuthorization: Bearer x\r\n").body
    assert echo == b"cookie=a=1\nauthorization=Bearer x\n"


def test_traps_always_lead_to_something_new(web: Site) -> None:
    assert b"/trap/calendar/2027/1" in ask(web, "/trap/calendar/2026/12").body
    assert b"/trap/repeat-two/about/about" in ask(web, "/trap/repeat-two/about").body
    assert ask(web, "/trap/session").body != ask(web, "/trap/session").body


def test_sitemaps_are_packed_nested_cut_and_hostile(web: Site) -> None:
    plain = ask(web, "/sitemap/plain.xml").body

    assert plain.count(b"<loc>") == 3
    assert gzip.decompress(ask(web, "/sitemap/gzip.xml.gz").body) == plain
    assert plain.startswith(ask(web, "/sitemap/cut.xml").body)
    assert web.url(0, "/sitemap/recursive.xml").encode() in ask(web, "/sitemap/recursive.xml").body
    assert b"&l8;" * 10 in ask(web, "/sitemap/laughs.xml").body
    assert ask(web, "/sitemap/many.xml", limit=20_000_000).body.count(b"<loc>") == 50_001
