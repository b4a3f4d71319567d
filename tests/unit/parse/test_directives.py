"""X-Robots-Tag and robots metas."""

from __future__ import annotations

import pytest

from holdfast.parse.document import DocumentKind, parse_document
from holdfast.parse.html import Directives, read_directives
from holdfast.parse.page import parse_page


@pytest.mark.parametrize(
    ("headers", "asked"),
    [
        ([], ""),
        (["all"], ""),
        (["noindex"], "i"),
        (["NoFollow"], "f"),
        (["noindex, nofollow"], "if"),
        (["none"], "if"),
        (["noindex", "nofollow"], "if"),
        (["noarchive"], "a"),
        (["nocache,noindex"], "ia"),
        (["holdfast: noindex"], "i"),
        (["HoldFast: none"], "if"),
        (["otherbot: noindex, nofollow"], ""),
        (["otherbot: noindex, holdfast: nofollow"], "f"),
        (["nofollow, otherbot: noindex"], "f"),
        (["otherbot: none", "noindex"], "i"),
        (["*: nofollow"], "f"),
        (["unavailable_after: 25 Jun 2010 15:00:00 PST, noindex"], "i"),
        (["unavailable_after: Friday, 25-Jun-10 15:00:00 GMT"], ""),
        (["max-snippet:-1, nofollow"], "f"),
        (["max-image-preview: large"], ""),
        (["noindexed"], ""),
        ([":"], ""),
        ([""], ""),
        (["index, follow", "nofollow"], "f"),
    ],
)
def test_the_most_restrictive_header_for_us_wins(headers: list[str], asked: str) -> None:
    expected = Directives(nofollow="f" in asked, noindex="i" in asked, noarchive="a" in asked)

    assert read_directives(headers, []) == expected


@pytest.mark.parametrize(
    ("metas", "asked"),
    [
        (["noindex"], "i"),
        (["NOINDEX,NOFOLLOW"], "if"),
        (["noindex; nofollow"], "if"),
        (["none"], "if"),
        (["index,follow", "nofollow"], "f"),
        (["noarchive"], "a"),
    ],
)
def test_metas_add_up(metas: list[str], asked: str) -> None:
    expected = Directives(nofollow="f" in asked, noindex="i" in asked, noarchive="a" in asked)

    assert read_directives([], metas) == expected


def test_headers_and_metas_add_up() -> None:
    assert read_directives(["noindex"], ["nofollow"]) == Directives(nofollow=True, noindex=True)


@pytest.mark.parametrize(
    ("head", "noindex"),
    [
        ("<meta name=robots content=noindex>", True),
        ("<meta property=HoldFast content=none>", True),
        ("<meta name=otherbot content=noindex>", False),
        ("<img src=pixel.gif><meta name=robots content=noindex>", True),
        ("<meta name=robots content=all>" * 60 + "<meta name=robots content=noindex>", True),
        ("<meta name=robots content=>", False),
    ],
)
def test_crawl_and_index_read_the_same_noindex(head: str, noindex: bool) -> None:
    body = f"<head>{head}</head><p>words".encode()

    crawled = parse_page(body, url="https://a.test/", media_type="text/html", charset=None)
    indexed = parse_document(body, kind=DocumentKind.HTML, media_type="text/html", charset=None)

    assert (crawled.noindex, indexed.noindex) == (noindex, noindex)
