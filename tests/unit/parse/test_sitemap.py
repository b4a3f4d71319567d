"""Sitemaps: every form, every way to be broken, every way to attack."""

from __future__ import annotations

import gzip
import re
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.parse import ParseProblem, SitemapParse, parse_sitemap
from tests import patience

_URL = "https://x.example/sitemap.xml"
_NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def _parse(body: bytes | str) -> SitemapParse:
    return parse_sitemap(body.encode() if isinstance(body, str) else body, _URL)


def _urlset(*locs: str, attributes: str = _NS) -> str:
    return f"<urlset {attributes}>" + "".join(f"<url><loc>{loc}</loc></url>" for loc in locs) + "</urlset>"


@pytest.mark.parametrize(
    ("body", "urls"),
    [
        (_urlset("https://x.example/1", " https://x.example/2\n"), ["https://x.example/1", "https://x.example/2"]),
        ('<?xml version="1.0"?>\n' + _urlset("https://x.example/?a=1&amp;b=2"), ["https://x.example/?a=1&b=2"]),
        (_urlset("<![CDATA[https://x.example/?a=1&b=2]]>"), ["https://x.example/?a=1&b=2"]),
        ("\n  " + '<?xml version="1.0"?>' + _urlset("/relative"), ["/relative"]),
        ("\ufeff" + _urlset("/marked"), ["/marked"]),
        (_urlset("/wrong-namespace", attributes='xmlns="http://example.org/other"'), ["/wrong-namespace"]),
        (_urlset("/no-namespace", attributes=""), ["/no-namespace"]),
        (_urlset("/a", "/a", "/b"), ["/a", "/b"]),
        (
            _urlset("javascript:alert(1)", "file:///etc/passwd", "ftp://x/", "HTTP://x.example/ok"),
            ["HTTP://x.example/ok"],
        ),
        (_urlset(""), []),
    ],
)
def test_a_sitemap_lists_its_pages(body: str, urls: list[str]) -> None:
    assert _parse(body) == SitemapParse(urls=tuple(urls))


def test_images_are_not_pages_but_language_variants_are() -> None:
    body = (
        f'<urlset {_NS} xmlns:image="i" xmlns:xhtml="http://www.w3.org/1999/xhtml"><url><loc>/en</loc>'
        '<xhtml:link rel="alternate" hreflang="fr" href="/fr"/><image:image><image:loc>/i.png</image:loc></image:image>'
        "</url></urlset>"
    )

    assert _parse(body).urls == ("/en", "/fr")


def test_an_index_lists_its_children_but_never_itself() -> None:
    entries = "".join(f"<sitemap><loc>{loc}</loc></sitemap>" for loc in (_URL, "/b.xml.gz"))
    body = f"<sitemapindex {_NS}>{entries}</sitemapindex>"

    assert _parse(body) == SitemapParse(children=("/b.xml.gz",))


def test_rss_is_a_sitemap() -> None:
    body = """<?xml version="1.0"?><rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel>
        <link>https://x.example/</link><atom:link href="https://x.example/feed" rel="self"/>
        <item><link>https://x.example/1</link><guid isPermaLink="false">https://x.example/no</guid></item>
        <item><guid>https://x.example/2</guid></item><item><guid>tag:3</guid></item>
        <item><link>javascript:alert(1)</link></item><item><link>feed://x.example/4</link></item></channel></rss>"""

    assert _parse(body) == SitemapParse(urls=("https://x.example/1", "https://x.example/2"))


def test_atom_and_rdf_are_sitemaps() -> None:
    atom = """<feed xmlns="http://www.w3.org/2005/Atom"><link href="https://x.example/"/><entry>
        <link href="/1"/><link rel="alternate" href="/2"/><link rel="edit" href="/no"/></entry></feed>"""
    rdf = """<rdf:RDF xmlns:rdf="r" xmlns="http://purl.org/rss/1.0/"><channel><link>/</link></channel>
        <item><link>/1</link></item></rdf:RDF>"""

    assert _parse(atom).urls == ("/1", "/2")
    assert _parse(rdf).urls == ("/1",)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
def test_a_list_of_addresses_is_a_sitemap(encoding: str) -> None:
    body = "https://x.example/é\r\n\r\n  http://x.example/2  \nnot an address\nftp://x.example/3".encode(encoding)

    assert _parse(body) == SitemapParse(urls=("https://x.example/é", "http://x.example/2"))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_read(encoding: str) -> None:
    body = ('<?xml version="1.0" encoding="UTF-16"?>' + _urlset("/é")).encode(encoding)

    assert _parse(body).urls == ("/é",)


def test_a_cut_sitemap_gives_what_came_before() -> None:
    whole = _urlset(*(f"/{i}" for i in range(1000)))

    cut = _parse(whole[: len(whole) // 2])

    assert cut.urls == tuple(f"/{i}" for i in range(len(cut.urls)))
    assert len(cut.urls) > 400
    assert cut.problems == (ParseProblem.XML_BROKEN,)


def test_bare_ampersands_are_taken_as_meant() -> None:
    found = _parse(_urlset("/1", "/?a=1&b=2", "/?a=1&amp;c=3", "/&nbsp;", "/last"))

    assert found.urls == ("/1", "/?a=1&b=2", "/?a=1&c=3", "/&nbsp;", "/last")
    assert found.problems == (ParseProblem.XML_REFERENCE,)


def test_a_reference_on_the_edge_of_a_chunk_survives_the_repair() -> None:
    for shift in range(12):
        body = _urlset("/?a&b", "/" + "x" * (64 * 1024 - 160 + shift) + "", "/?c&amp;d", "/end")
        assert _parse(body).urls[-2:] == ("/?c&d", "/end")


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"<!DOCTYPE html><html><a href=/x>", ParseProblem.HTML_INSTEAD),
        (b"\xef\xbb\xbf <html><body>not found", ParseProblem.HTML_INSTEAD),
        (b"<config><loc>/x</loc></config>", ParseProblem.NOT_A_SITEMAP),
        (b"", ParseProblem.NOT_A_SITEMAP),
        (b"hello", ParseProblem.NOT_A_SITEMAP),
        (b"\x1f\x8b\x08junk", ParseProblem.GZIP_BROKEN),
        (gzip.compress(gzip.compress(b"<urlset/>", mtime=0), mtime=0), ParseProblem.GZIP_NESTED),
        (b"<urlset><url>", ParseProblem.XML_BROKEN),
    ],
)
def test_what_is_no_sitemap_says_so(body: bytes, problem: ParseProblem) -> None:
    found = _parse(body)

    assert problem in found.problems
    assert found.urls == ()


def test_gzip_is_inflated_member_by_member() -> None:
    first, second = _urlset("/1", "/2")[:60], _urlset("/1", "/2")[60:]

    assert _parse(gzip.compress(first.encode()) + gzip.compress(second.encode())).urls == ("/1", "/2")


def test_a_cut_gzip_gives_what_came_before() -> None:
    body = gzip.compress(_urlset(*(f"/{i * 7919 % 100_003}" for i in range(5000))).encode())

    found = _parse(body[: len(body) // 2])

    assert len(found.urls) > 1000
    assert ParseProblem.GZIP_BROKEN in found.problems


def test_a_gzip_bomb_is_left_unexploded() -> None:
    body = gzip.compress(b"<urlset>" + b" " * 55_000_000, 1)

    assert ParseProblem.BODY_CUT in _parse(body).problems


def test_sitemap_urls_beyond_the_limit_are_counted() -> None:
    body = _urlset(*(f"/{i}" for i in range(50_300)), "/50299", "/0")

    found = _parse(body)

    assert (len(found.urls), found.over) == (50_000, 300)
    assert found.problems == (ParseProblem.URLS_CUT,)


def test_a_text_list_has_the_same_limit() -> None:
    found = _parse("\n".join(f"http://x/{i}" for i in range(50_001)))

    assert (len(found.urls), found.over) == (50_000, 1)
    assert found.problems == (ParseProblem.URLS_CUT,)


def test_an_address_over_2048_characters_is_dropped() -> None:
    found = _parse(_urlset("/" + "a" * 2048, "/ok"))

    assert (found.urls, found.over, found.problems) == (("/ok",), 1, (ParseProblem.URLS_CUT,))


_LAUGHS = (
    '<!DOCTYPE x [<!ENTITY l "lol">'
    + "".join(f'<!ENTITY l{i} "{("&l" + (str(i - 1) if i > 1 else "") + ";") * 10}">' for i in range(1, 10))
    + "]>"
)
_PADDING = "<!--" + "x" * 70_000 + "-->"


@pytest.mark.parametrize(
    "doctype",
    [
        _LAUGHS,
        '<!DOCTYPE x [<!ENTITY f SYSTEM "file://{secret}">]>',
        '<!DOCTYPE x [<!ENTITY % p SYSTEM "file://{secret}"> %p;]>',
        '<!DOCTYPE x [<!eNtItY f SYSTEM "http://127.0.0.1:9/">]>',
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_entities_are_refused_unread(doctype: str, encoding: str) -> None:
    body = f'<?xml version="1.0"?>{doctype}<urlset><url><loc>/&l9;&f;</loc></url></urlset>'.encode(encoding)

    assert _parse(body) == SitemapParse(problems=(ParseProblem.XML_ENTITIES,))


@pytest.mark.parametrize("place", ["<url><loc>/x&l9;&f;</loc></url>", "<url><link href='/x&l9;&f;'/></url>"])
def test_entities_hidden_behind_a_long_prolog_do_nothing(place: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("do-not-read")
    entity = f'<!ENTITY f SYSTEM "file://{secret}">]>'
    body = f'<?xml version="1.0"?>{_PADDING}{_LAUGHS.removesuffix("]>")}{entity}<urlset>{place}</urlset>'

    started = time.process_time()
    found = _parse(body)

    assert time.process_time() - started < patience.allowed(2.0)
    assert "do-not-read" not in repr(found)
    assert "lollol" not in repr(found)


def test_a_doctype_without_entities_is_harmless() -> None:
    body = f'<!DOCTYPE rss PUBLIC "-//N//DTD RSS 0.91//EN" "http://127.0.0.1:9/rss.dtd">{_urlset("/x")}'

    assert _parse(body).urls == ("/x",)


@pytest.mark.parametrize("flood", ["<x/>" * 300_000, "<x>" * 100_000, "<loc>" * 200, "&" * 100_000])
def test_a_flood_of_anything_ends_soon(flood: str) -> None:
    started = time.process_time()
    found = _parse(f"<urlset>{flood}")

    assert time.process_time() - started < patience.allowed(8.0)
    assert found.problems


def test_there_is_one_call_site_of_lxml() -> None:
    room = Path(__file__).parents[3] / "src" / "holdfast" / "parse"

    users = [path.name for path in room.glob("*.py") if re.search(r"^(from|import) lxml", path.read_text(), re.M)]

    assert users == ["xml.py"]


@settings(max_examples=150, deadline=None)
@given(
    st.one_of(
        st.binary(max_size=200),
        st.lists(
            st.sampled_from(
                [
                    b"<urlset>",
                    b"<url>",
                    b"<loc>",
                    b"</loc>",
                    b"</url>",
                    b"</urlset>",
                    b"&",
                    b"&amp;",
                    b"<![CDATA[",
                    b"]]>",
                    b"http://x/",
                    b"<!DOCTYPE",
                    b"<?xml version='1.0' encoding='",
                    b"utf-7'?>",
                    b"ucs-4'?>",
                    b"\0",
                    b"\xff\xfe",
                    b"<rss>",
                    b"<item>",
                    b"<link>",
                    b"<link href=''/>",
                    b"xmlns:a='b'",
                    b" ",
                ]
            ),
            max_size=30,
        ).map(b"".join),
    )
)
def test_no_bytes_make_it_raise(body: bytes) -> None:
    for variant in (body, gzip.compress(body), b"\x1f\x8b" + body):
        assert isinstance(_parse(variant), SitemapParse)


def test_a_file_of_nothing_but_empty_gzip_members_is_read_in_bounded_time() -> None:
    """Ten megabytes of them took minutes: the rest of the file was copied for every member."""
    assert _parse(gzip.compress(b"", mtime=0) * 1_000_000).problems == (
        ParseProblem.BODY_CUT,
        ParseProblem.NOT_A_SITEMAP,
    )


def test_a_gzip_file_in_many_small_members_is_read_whole() -> None:
    body = _urlset(*(f"/{number}" for number in range(2000))).encode()
    members = b"".join(gzip.compress(body[at : at + 64]) for at in range(0, len(body), 64))

    assert _parse(members).urls == tuple(f"/{number}" for number in range(2000))
    assert _parse(members).problems == ()
