"""Hrefs, srcsets and refreshes as markup writes them."""

from __future__ import annotations

import time

import pytest

from holdfast.parse.addresses import address, refresh, srcset
from tests import patience


@pytest.mark.parametrize(
    ("raw", "url"),
    [
        ("/a", "/a"),
        (" \t/a\n", "/a"),
        ("/a#b", "/a"),
        ("#b", ""),
        (" #b", ""),
        ("", ""),
        (" ", ""),
        ("?q=1", "?q=1"),
        ("//host/x", "//host/x"),
        ("a:b", "a:b"),
        ("mailto:x@y", ""),
        ("MailTo:x@y", ""),
        (" JavaScript:alert(1)", ""),
        ("tel:1", ""),
        ("data:text/html,x", ""),
        ("view-source:http://x/", ""),
        ("http://x/mailto:y", "http://x/mailto:y"),
        ("page:1", "page:1"),
        ("/" + "a" * 8191, "/" + "a" * 8191),
        ("/" + "a" * 8192, ""),
        ("b" * 9000, ""),
    ],
)
def test_only_what_can_be_asked_for_remains(raw: str, url: str) -> None:
    assert address(raw) == url


@pytest.mark.parametrize(
    ("value", "urls"),
    [
        ("a.png", ["a.png"]),
        ("a.png 1x, b.png 2x", ["a.png", "b.png"]),
        ("a.png 480w,b.png 960w", ["a.png", "b.png"]),
        ("a.png,b.png 2x", ["a.png,b.png"]),
        ("a.png, b.png", ["a.png", "b.png"]),
        (" , ,a.png 1x,, b.png", ["a.png", "b.png"]),
        ("http://h/w_300,h_200/x.png 1x, y.png 2x", ["http://h/w_300,h_200/x.png", "y.png"]),
        ("data:image/png;base64,AA== 1x, b.png 2x", ["b.png"]),
        ("a.png calc(1x, 2x), b.png", ["a.png", "b.png"]),
        ("a.png (1,(2), b.png", ["a.png"]),
        ("", []),
        (",", []),
        ("\n a.png\n\t1x ,\n b.png\n", ["a.png", "b.png"]),
    ],
)
def test_a_srcset_is_split_as_browsers_split_it(value: str, urls: list[str]) -> None:
    assert srcset(value) == urls


@pytest.mark.parametrize("unit", [",", "a,", "a (", "a ),", " ", "a 1x,", "("])
def test_a_srcset_bomb_is_split_in_linear_time(unit: str) -> None:
    started = time.process_time()
    srcset(unit * 30_000)

    assert time.process_time() - started < patience.allowed(2.0)


@pytest.mark.parametrize(
    ("content", "url"),
    [
        ("0; url=/next", "/next"),
        ("5;URL='/next'", "/next"),
        ('5 ; Url = "/next" trailing', "/next"),
        ("0;/next", "/next"),
        ("0,url=/next", "/next"),
        ("5", ""),
        ("5;", ""),
        ("", ""),
        ("0;url=javascript:alert(1)", ""),
        ("0;url='/open", "/open"),
    ],
)
def test_a_refresh_names_its_target(content: str, url: str) -> None:
    assert refresh(content) == url
