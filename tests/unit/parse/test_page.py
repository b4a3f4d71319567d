"""The border: one body in, one page out, whatever it is."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.parse import ParseProblem, parse_page
from holdfast.parse.page import MAX_PARSED_BYTES
from holdfast.types import Link, ParsedPage


def _parse(body: bytes, media_type: str | None = "text/html", charset: str | None = None) -> ParsedPage:
    return parse_page(body, url="http://x.example/", media_type=media_type, charset=charset, want_text=True)


@pytest.mark.parametrize("body", [b"%PDF-1.4\n<a href=/no>", b"PK\x03\x04<a href=/no>", gzip.compress(b"<a href=/no>")])
def test_a_file_called_a_page_is_not_parsed(body: bytes) -> None:
    assert _parse(body) == ParsedPage(problems=(ParseProblem.TYPE_MISMATCH,))


def test_a_page_called_plain_text_is_parsed_and_noted() -> None:
    page = _parse(b"<!doctype html><a href=/x>x</a>", "text/plain")

    assert page.links == (Link("/x", "a"),)
    assert page.problems == (ParseProblem.SNIFFED_HTML,)


def test_plain_text_keeps_its_lines() -> None:
    page = _parse(b"one\r\ntwo\t \x00three\rfour", "text/plain; charset=us-ascii", "us-ascii")

    assert page.text == "one\ntwo three\nfour"
    assert page.links == ()


def test_a_style_sheet_gives_resources() -> None:
    assert _parse(b"@import 'a.css'; b{c:url(d.png)}", "text/css").resources == (
        Link("a.css", "css"),
        Link("d.png", "img"),
    )


def test_a_feed_gives_links() -> None:
    feed = b"<rss><channel><item><link>http://x.example/1</link></item></channel></rss>"

    assert _parse(feed, "application/rss+xml").links == (Link("http://x.example/1", "item"),)


def test_any_other_xml_gives_nothing() -> None:
    assert _parse(b"<config><link>/x</link></config>", "application/xml") == ParsedPage()


def test_headers_speak_for_what_is_no_page() -> None:
    page = parse_page(b"x", url="u", media_type="application/pdf", charset=None, x_robots=["none, noarchive"])

    assert (page.nofollow, page.noindex, page.problems) == (True, True, (ParseProblem.NOARCHIVE,))


def test_scripts_of_xhtml_may_close_themselves() -> None:
    body = b"<html xmlns='x'><head><script src='a.js' /><title>T</title></head><body><a href='/x'>x</a></body></html>"

    page = _parse(body, "application/xhtml+xml")

    assert (page.title, page.links) == ("T", (Link("/x", "a"),))


def test_text_wanted_or_not() -> None:
    body = b"<p>seen"

    assert parse_page(body, url="u", media_type="text/html", charset=None).text is None
    assert _parse(body).text == "seen"


def test_a_very_long_page_is_cut_and_noted() -> None:
    page = _parse(b"<a href=/first></a>" + b"x" * MAX_PARSED_BYTES + b"<a href=/last></a>")

    assert page.links == (Link("/first", "a"),)
    assert page.problems == (ParseProblem.BODY_CUT,)


def test_nul_never_leaves() -> None:
    page = _parse(b"<title>a\0b</title><p>c\0d<svg>\0</svg><a href='/e\0f'>g\0</a>", charset="utf-8")

    assert "\0" not in f"{page}"


_MARKUP = st.lists(
    st.sampled_from(
        [
            b"<a href=",
            b"<a href='/x'>",
            b">",
            b"<",
            b"</a>",
            b"<p>",
            b"<table>",
            b"<svg>",
            b"</svg>",
            b"<title>",
            b"<style>",
            b"url(",
            b"@import '",
            b"<pre>",
            b"<template>",
            b"<select>",
            b"<!--",
            b"-->",
            b"<![CDATA[",
            b"&amp;",
            b"&#0;",
            b"\0",
            b"\xff",
            b"<base href=",
            b"<meta name=robots content=",
            b"<meta http-equiv=refresh content='0;url=",
            b"'",
            b'"',
            b"<img srcset='a,b 1x, ",
            b"<math>",
            b"<frameset>",
            b"<html lang=",
            b"<link rel=canonical href=x>",
            b"<div hidden>",
            b"<div style='display:none'>",
            b"<header>",
            b"<nav>",
            b"<b>",
            b"<use href=a>",
            b" ",
            b"text",
            "é\u0301".encode(),
        ]
    ),
    max_size=60,
).map(b"".join)


@settings(max_examples=250, deadline=None)
@given(
    body=st.one_of(_MARKUP, st.binary(max_size=300)),
    media_type=st.sampled_from([None, "text/html", "application/xhtml+xml", "text/plain", "text/css", "text/xml", "x"]),
    charset=st.sampled_from(
        [None, "utf-8", "utf-16", "shift_jis", "iso-2022-jp", "gb18030", "utf-7", "zip", "windows-1255"]
    ),
)
@example(body=b"<svg><title><div hidden><p hidden>", media_type="text/html", charset=None)
def test_no_bytes_make_it_fail(body: bytes, media_type: str | None, charset: str | None) -> None:
    page = _parse(body, media_type, charset)

    assert ParseProblem.PARSE_FAILED not in page.problems
    assert "\0" not in (page.text or "") + (page.title or "") + (page.description or "")
