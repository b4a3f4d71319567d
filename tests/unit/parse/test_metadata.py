"""What a page says about itself: author, dates, keywords, and which kind of page it is. Never a guess by the clock."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from holdfast.parse.document import ParsedDocument, parse_document
from holdfast.parse.metadata import read_microdata
from holdfast.parse.moments import read_moment
from holdfast.parse.text import count_words, tree_of

PROSE = "Enough words to be taken for the content of a page by all who read it, and then a few more of them. " * 8


def _read(html: str, url: str = "https://example.org/a/page") -> ParsedDocument:
    return parse_document(html.encode(), kind="html", media_type="text/html", charset="utf-8", url=url)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2024-03-01", "2024-03-01T00:00:00+00:00"),
        ("2024-03-01T10:20", "2024-03-01T10:20:00+00:00"),
        ("2024-03-01 10:20:30", "2024-03-01T10:20:30+00:00"),
        ("2024-03-01T10:20:30.5Z", "2024-03-01T10:20:30.500000+00:00"),
        ("2024-03-01T10:20:30+0200", "2024-03-01T08:20:30+00:00"),
        ("2024-03-01T23:59:60Z", "2024-03-01T23:59:59+00:00"),
        ("2024/3/1", "2024-03-01T00:00:00+00:00"),
        ("Fri, 01 Mar 2024 10:20:30 +0100", "2024-03-01T09:20:30+00:00"),
        ("2100-12-31", "2100-12-31T00:00:00+00:00"),
    ],
)
def test_a_date_is_read_as_standards_write_it(text: str, moment: str) -> None:
    assert read_moment(text) == datetime.fromisoformat(moment)


@pytest.mark.parametrize(
    "text",
    ["", None, "1989-12-31", "2101-01-01", "2024-13-01", "2024-02-30", "01.03.2024", "3/1/2024", "March 2024",
     "2024", "20240301", "2024-03-01T25:00", "２０２４-03-01", "2024-03-01T10:20+99:99", "9" * 500, "\0",
     "Fri, 99 Mar 2024", "yesterday", "2024-03-01; DROP", "0000-00-00", "2024-03-01T10:20:30 Z Z"],
)  # fmt: skip
def test_what_is_no_date_is_none(text: str | None) -> None:
    assert read_moment(text) is None


def test_json_ld_tells_before_metas_and_metas_before_microdata() -> None:
    script = (
        '<script type="application/ld+json">{"@type": "NewsArticle", "author": [{"name": "Ann"}, {"name": "Bo"}],'
        '"datePublished": "2024-01-02T03:04:05Z", "keywords": "tides, Boats"}</script>'
    )
    metas = (
        "<meta name=author content=Meta><meta property=article:published_time content=2023-01-01>"
        "<meta property=article:modified_time content=2024-02-03><meta name=keywords content='boats; harbour, ,'>"
    )
    items = "<b itemprop=author><i itemprop=name>Item</i></b><time itemprop=datePublished datetime=2020-01-01>x</time>"

    page = _read(f"{script}{metas}<body>{items}<p>{PROSE}")
    assert (page.author, page.keywords) == ("Ann, Bo", ("tides", "Boats", "harbour"))
    assert (page.published_at, page.modified_at) == (
        datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC), datetime(2024, 2, 3, tzinfo=UTC),
    )  # fmt: skip
    page = _read(f"{metas}<body>{items}<p>{PROSE}")
    assert (page.author, page.published_at) == ("Meta", datetime(2023, 1, 1, tzinfo=UTC))
    page = _read(f"<body>{items}<p>{PROSE}")
    assert (page.author, page.published_at) == ("Item", datetime(2020, 1, 1, tzinfo=UTC))


def test_a_date_that_cannot_be_is_passed_over_for_the_next() -> None:
    page = _read("<meta name=date content=2022-05-06><meta property=article:published_time content='5 May'><p>x")
    assert page.published_at == datetime(2022, 5, 6, tzinfo=UTC)


def test_only_the_time_of_the_one_article_is_its_date() -> None:
    shown = "<time datetime=2021-04-05>then</time>"
    assert _read(f"<article>{shown}<p>{PROSE}</article>").published_at == datetime(2021, 4, 5, tzinfo=UTC)
    assert _read(f"<article>{shown}</article><article>{shown}<p>{PROSE}</article>").published_at is None
    assert _read(f"<aside>{shown}</aside><p>{PROSE}").published_at is None


def test_a_profile_address_is_no_author_and_lists_are_bounded() -> None:
    page = _read("<meta property=article:author content=https://social.example/ann><p>x")
    assert page.author is None
    many = _read(f"<meta name=keywords content='{','.join(f'word{n}' for n in range(500))}'><p>x")
    assert len(many.keywords) == 32
    assert max(map(len, _read(f"<meta name=keywords content={'k' * 900}><p>x").keywords)) == 60


LINKS = "".join(f"<li><a href=/{n}>Item {n}</a></li>" for n in range(30))
TERMS = "".join(f"<dt>name{n}</dt><dd>What it is for.</dd>" for n in range(9))
FIELDS = "<input name=a><input name=b><textarea></textarea><select></select>"


@pytest.mark.parametrize(
    ("html", "kind"),
    [
        (f"<meta property=og:type content=article><p>{PROSE}", "article"),
        (f"<article><p>{PROSE}</article>", "article"),
        (f"<meta name=author content=Ann><p>{PROSE}", "article"),
        (f'<script type="application/ld+json">{{"@type": ["Product"]}}</script><p>{PROSE}', "product"),
        (f"<div itemscope itemtype=https://schema.org/Product><b itemprop=name>A</b></div><p>{PROSE}", "product"),
        (f"<ul>{LINKS}</ul>", "listing"),
        (f"<dl>{TERMS}</dl>", "reference"),
        (f"<p>Sign in</p><form>{FIELDS}</form>", "form"),
        ("<p>Sign in</p><form><input type=password></form>", "form"),
        (f"<form><input name=q></form><p>{PROSE}", "other"),
        ("<meta property=og:type content=video.other><p>Watch", "media"),
        (f"<p>{PROSE}", "other"),
        (f"<title>A text</title><p>{'word ' * 350}", "article"),
        (f"<title>A text</title><p>{'word ' * 16}", "other"),
        (f"<p>{'word ' * 350}", "other"),
        ("", "other"),
    ],
)
def test_the_kind_of_a_page_is_what_it_says_or_looks_like(html: str, kind: str) -> None:
    assert _read(html).page_type == kind


@pytest.mark.parametrize("path", ["", "/", "/index.html", "/en/", "/fr", "/home"])
def test_the_first_page_of_a_site_is_its_home(path: str) -> None:
    assert _read(f"<ul>{LINKS}</ul>", f"https://example.org{path}").page_type == "home"
    assert _read(f"<ul>{LINKS}</ul>", f"https://example.org{path}?q=1").page_type != "home"


def test_words_are_counted_in_any_script() -> None:
    assert [count_words(text) for text in ("", "one", "one two\nthree", "港の議会", "Où ça 港")] == [0, 1, 3, 4, 3]


def test_hostile_data_never_raises() -> None:
    for script in ('{"@type": {"a": 1}, "author": [[[]]], "keywords": {"x": []}, "articleBody": [1]}', "[" * 900, "1"):
        page = _read(f'<script type="application/ld+json">{script}</script><meta name=date content="{"9" * 99}"><p>x')
        assert (page.author, page.published_at) == (None, None)
    assert _read("<b itemprop='author datePublished keywords'>x</b>" * 2000).problems == ()


def test_nested_microdata_is_read_up_to_a_bound() -> None:
    said = read_microdata(tree_of("<div itemprop=keywords>" * 400 + "tide" * 50_000)).keywords

    assert 0 < sum(map(bool, said)) < 10
