"""Addresses in style sheets."""

from __future__ import annotations

import time

import pytest

from holdfast.parse import css_links
from holdfast.parse.addresses import MAX_NAMED
from tests import patience


def _urls(sheet: str) -> list[str]:
    return list(css_links(sheet))


@pytest.mark.parametrize(
    ("sheet", "urls"),
    [
        ("a{b:url(x.png)}", ["x.png"]),
        ("a{b:URL( 'x.png' )}", ["x.png"]),
        ('a{b:url("x y.png")}', ["x y.png"]),
        ("a{b:url(x.png),url(y.png) no-repeat}", ["x.png", "y.png"]),
        ("@import 'a.css';", ["a.css"]),
        ('@IMPORT "a.css" screen;', ["a.css"]),
        ("@import url(a.css) layer(x);", ["a.css"]),
        ("@import/**/ 'a.css';", ["a.css"]),
        ("@import;a{b:'not.css'}", []),
        ("/* url(no.png) */ a{b:url(yes.png)}", ["yes.png"]),
        ("/* @import 'no.css'; ", []),
        ("a{content:'url(no.png)'} b{c:url(yes.png)}", ["yes.png"]),
        ('a{content:"it\'s \\"url(no)\\""} b{c:url(yes.png)}', ["yes.png"]),
        ("a{b:url(data:image/png;base64,AAAA)}", []),
        ("a{b:url(#local)}", []),
        ("a{b:url()}", []),
        ("a{b:url(a\\)b.png)}", ["a)b.png"]),
        ("a{b:url(a\\29 b.png)}", ["a)b.png"]),
        ("a{b:url('a\\\nb.png')}", ["ab.png"]),
        ("a{b:url(\\110000 x)}", ["\ufffdx"]),
        ("a{b:url('broken\nstring') url(next.png)}", ["next.png"]),
        ("a{b:url(open.png", ["open.png"]),
        ("a{b:url(x.png)} c{d:url(x.png)}", ["x.png"]),
        ("@namespace svg url(http://www.w3.org/2000/svg); a{b:url(x.png)}", ["x.png"]),
        ("a{b:curl(x.png)}", []),
        ("a{b:image-set(url(1x.png) 1x, url(2x.png) 2x)}", ["1x.png", "2x.png"]),
        ("a{b:url(x.png#frag)}", ["x.png"]),
    ],
)
def test_addresses_are_found_where_they_count(sheet: str, urls: list[str]) -> None:
    assert _urls(sheet) == urls


def test_each_address_says_what_it_is_for() -> None:
    sheet = "@import 'a.css'; @font-face{src:url(f.woff2?v=1) format('woff2')} b{c:url(i.png)}"

    assert list(css_links(sheet).values()) == ["css", "font", "img"]


def test_bytes_are_decoded_first() -> None:
    assert list(css_links("a{b:url(é.png)}".encode("latin-1"), "iso-8859-1")) == ["é.png"]


@pytest.mark.parametrize(
    "unit",
    [
        "url(",
        "url('",
        "/*",
        "@import ",
        "@import/*",
        "@namespace",
        "'",
        '"\\',
        "\\",
        "url(\\",
        "@import url(",
        "url('\n",
    ],
)
def test_a_flood_is_read_in_linear_time(unit: str) -> None:
    sheet = unit * 80_000

    started = time.process_time()
    css_links(sheet)

    assert time.process_time() - started < patience.allowed(2.0)


@pytest.mark.parametrize(
    ("sheet", "over"),
    [("a{}" * 10, 0), ("a{}" * 3_000_000, 1), ("/**/" * 200_000, 0), ("/**/" * 200_001, 1)],
    ids=["short", "long", "few tokens", "many tokens"],
)
def test_style_sheet_that_is_not_read_to_its_end_is_counted(sheet: str, over: int) -> None:
    assert css_links(sheet).over == over


def test_style_sheet_urls_beyond_the_limit_are_counted() -> None:
    found = css_links("".join(f"a{{b:url({i}.png)}}" for i in range(100_300)) + "a{b:url(100299.png)}")

    assert (len(found), found.over) == (MAX_NAMED, 75_300)
