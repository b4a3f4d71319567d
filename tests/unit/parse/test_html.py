"""What one tree says, case by case; whole pages stand in test_golden."""

from __future__ import annotations

import time

import pytest

from holdfast.parse import ParseProblem, parse_page
from holdfast.parse.addresses import MAX_NAMED
from holdfast.types import ParsedPage
from tests import patience


def _parse(markup: str, **also: str) -> ParsedPage:
    return parse_page(markup.encode(), url="http://x.example/", media_type="text/html", charset=also.get("charset"))


def _links(markup: str) -> list[tuple[str, str]]:
    return [(link.rel, link.url) for link in _parse(markup).links]


def _resources(markup: str) -> list[tuple[str, str]]:
    return [(link.rel, link.url) for link in _parse(markup).resources]


def test_links_are_unique_and_in_order() -> None:
    assert _links("<a href=/b></a><a href=/a></a><a href=/b#x></a>") == [("a", "/b"), ("a", "/a")]


def test_a_plain_link_outranks_one_that_discourages() -> None:
    markup = (
        "<a rel='external NoFollow' href=/a></a><a rel=ugc href=/b></a><a rel=sponsored href=/c></a><a href=/a></a>"
    )

    assert _links(markup) == [("a", "/a"), ("nofollow", "/b"), ("nofollow", "/c")]


def test_a_discouraging_link_does_not_demote_a_plain_one() -> None:
    assert _links("<a href=/a></a><a rel=nofollow href=/a></a>") == [("a", "/a")]


def test_the_first_base_counts() -> None:
    assert _parse("<base target=_top><base href=' /dir/ '><base href=/other/>").base == "/dir/"


def test_the_first_canonical_counts() -> None:
    assert _parse("<link rel=canonical href=/one><link rel=Canonical href=/two>").canonical == "/one"


@pytest.mark.parametrize(
    ("markup", "links"),
    [
        ("<link rel='alternate' hreflang=fr href=/fr>", [("alternate", "/fr")]),
        ("<link rel='alternate' type='Application/RSS+XML' href=/rss>", [("feed", "/rss")]),
        ("<link rel=prev href=/1><link rel=next href=/3>", [("prev", "/1"), ("next", "/3")]),
        ("<link rel=sitemap href=/sitemap.xml>", [("sitemap", "/sitemap.xml")]),
        ("<link rel=author href=/who>", []),
        ("<link href=/nothing>", []),
        ("<meta http-equiv=Refresh content='0;url=/go'>", [("refresh", "/go")]),
        ("<meta name=refresh content='0;url=/no'>", []),
        ("<iframe src=/f></iframe>", [("frame", "/f")]),
        ("<area href=/n>", [("area", "/n")]),
        ("<a>no href</a><a href>empty</a><a href=''>empty</a>", []),
        ("<a href='  \n/x\t'>", [("a", "/x")]),
        ("<a href='&#47;x&quot;y'>", [("a", '/x"y')]),
        ("<A HREF=/upper>", [("a", "/upper")]),
        ("<textarea><a href=/no></textarea><title><a href=/no></title>", []),
        ("<!--[if IE]><a href=/no></a><![endif]--><a href=/yes>", [("a", "/yes")]),
        ("<![CDATA[<a href=/bogus>]]><a href=/yes>", [("a", "/yes")]),
        ("<script>var x = '<a href=/no>';", []),
        ("<scr<script>ipt><a href=/yes>", [("a", "/yes")]),
    ],
)
def test_links_are_where_a_browser_sees_them(markup: str, links: list[tuple[str, str]]) -> None:
    assert _links(markup) == links


@pytest.mark.parametrize(
    ("markup", "resources"),
    [
        ("<img src=a.png srcset='b.png 2x'>", [("img", "a.png"), ("img", "b.png")]),
        ("<img data-src=lazy.png data-srcset='lazy2.png 2x'>", [("img", "lazy.png"), ("img", "lazy2.png")]),
        ("<link rel='shortcut icon' href=f.ico>", [("icon", "f.ico")]),
        ("<link rel=preload as=script href=s.js>", [("script", "s.js")]),
        ("<link rel=preload as=fetch href=d.json>", [("preload", "d.json")]),
        ("<script src=s.js></script><script src=s.js></script>", [("script", "s.js")]),
        ("<frameset><frame src=f.html></frameset>", [("frame", "f.html")]),
        ("<input type=IMAGE src=i.png><input type=text src=no.png>", [("img", "i.png")]),
        ("<p style='background:URL(i.png)'>", [("img", "i.png")]),
        ("<style>@import 'a.css'</style>", [("css", "a.css")]),
        ("<svg><use xlink:href='s.svg#i'/><image href=m.png /></svg>", [("img", "s.svg"), ("img", "m.png")]),
        ("<svg><foreignObject><img src=in.png></foreignObject><script href=x></script></svg>", [("img", "in.png")]),
        ("<img src='data:image/png;base64,AA'><img src=#><img src=''>", []),
        ("<object data=o.pdf></object><embed src=e.swf>", [("object", "o.pdf"), ("object", "e.swf")]),
    ],
)
def test_resources_are_what_the_page_needs(markup: str, resources: list[tuple[str, str]]) -> None:
    assert _resources(markup) == resources


def test_a_title_is_one_clean_line() -> None:
    page = _parse("<title>\n  One\u202e\u200b &lt;img src=x onerror=alert(1)&gt; e\u0301 \x07 </title>")

    assert page.title == "One <img src=x onerror=alert(1)> é"


def test_title_and_description_are_cut() -> None:
    page = _parse(f"<title>{'t' * 9000}</title><meta name=description content='{'d' * 9000}'>")

    assert page.title == "t" * 500
    assert page.description == "d" * 1000


def test_open_graph_stands_in() -> None:
    page = _parse("<title> </title><meta property=og:title content=T><meta property=og:description content=D>")

    assert (page.title, page.description) == ("T", "D")


def test_a_drawing_gives_no_title() -> None:
    assert _parse("<body><svg><title>icon</title></svg>").title is None


@pytest.mark.parametrize(
    ("markup", "language"),
    [
        ("<html lang=pt-br>", "pt-BR"),
        ("<html xml:lang=fr>", "fr"),
        ("<meta http-equiv=content-language content=it>", "it"),
        ("<html lang=''><p>The page is in the language of the people that wrote it, and it is not declared.", "en"),
        ("<html lang='???'><p>x", None),
    ],
)
def test_a_declared_language_comes_first(markup: str, language: str | None) -> None:
    assert _parse(markup).language == language


@pytest.mark.parametrize(
    ("markup", "nofollow", "noindex"),
    [
        ("<meta name=robots content='noindex, nofollow'>", True, True),
        ("<meta name=ROBOTS content=NONE>", True, True),
        ("<meta name=holdfast content=nofollow>", True, False),
        ("<meta name=otherbot content=noindex>", False, False),
        ("<meta name=robots content=index><meta name=robots content=noindex>", False, True),
        ("<body><meta name=robots content=noindex>", False, True),
    ],
)
def test_robots_metas_are_heard(markup: str, nofollow: bool, noindex: bool) -> None:
    page = _parse(markup)

    assert (page.nofollow, page.noindex) == (nofollow, noindex)


def test_a_header_and_a_meta_add_up() -> None:
    page = parse_page(
        b"<meta name=robots content=nofollow>",
        url="http://x/",
        media_type="text/html",
        charset=None,
        x_robots=["otherbot: none", "noindex, noarchive"],
    )

    assert (page.nofollow, page.noindex, page.problems) == (True, True, (ParseProblem.NOARCHIVE,))


def test_every_link_of_a_long_page_is_listed() -> None:
    assert len(_parse("".join(f"<a href=/{i}></a>" for i in range(5000))).links) == 5000


def test_links_beyond_the_limit_are_counted_once_each() -> None:
    page = _parse("".join(f"<a href=/{i}></a><img src=/{i}.png>" for i in range(100_100)) + "<a href=/100050></a>")

    assert (len(page.links), len(page.resources)) == (MAX_NAMED, MAX_NAMED)
    assert (page.links_over, page.resources_over) == (75_100, 75_100)
    assert page.problems == (ParseProblem.LINKS_CUT, ParseProblem.RESOURCES_CUT)


@pytest.mark.parametrize(
    ("markup", "over"),
    [
        (f'<img src=/a.png srcset="{", ".join(f"/{number:06}.png 1x" for number in range(5000))}">', 903),
        (f'<img src=/a.png srcset="data:image/png;base64,{"A" * 70_000} 1x, /b.png 2x">', 1),
        (f'<img src=/a.png srcset="data:image/png;base64,{"A" * 70_000} 1x">', 0),
        (f"<style>{'a{}' * 400_000}@import 'x.css'</style>", 1),
        (f'<script type=importmap>{{"imports": {{"a": "/a{"a" * 262_144}.mjs"}}}}</script>', 1),
    ],
    ids=["srcset", "data and address", "data", "style", "import map"],
)
def test_requisites_behind_the_limit_of_their_text_are_counted(markup: str, over: int) -> None:
    assert _parse(markup).resources_over == over


def test_an_unclosed_script_of_five_megabytes_hides_the_rest() -> None:
    page = _parse("<a href=/before></a><script>" + "x</scrip" * 600_000 + "<a href=/after>")

    assert [link.url for link in page.links] == ["/before"]


def test_only_the_first_refresh_is_followed() -> None:
    many = "".join(f"<meta http-equiv=refresh content='0;url=/go{n}'>" for n in range(1_000))

    assert _links(f"<meta http-equiv=refresh content=5>{many}") == [("refresh", "/go0")]


def test_style_elements_that_nest_in_a_drawing_are_read_once_each() -> None:
    """Read with all that is below it, each of these takes as long as the page: a minute in all."""
    markup = "<svg>" + "<style>a{b:url(/x.png)}" * 10_000 + "<style>a{b:url(/last.png)}"
    started = time.process_time()

    assert _resources(markup) == [("img", "/x.png"), ("img", "/last.png")]
    assert time.process_time() - started < patience.allowed(10.0)
