"""What the index keeps of a body: text, headings, links and metadata from one tree; PDF text from a child."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from types import FrameType
from typing import Any

import pytest

from holdfast.parse.charset import ParseProblem
from holdfast.parse.child import ParseChild
from holdfast.parse.content import SiteTemplate
from holdfast.parse.document import DocumentKind, ParsedDocument, parse_document
from holdfast.parse.page import looks_pathological
from holdfast.parse.text import MAX_TEXT_CHARS, tree_of
from holdfast.parse.walking import walk
from tests import patience
from tests.archive import pdf

PROSE = "Enough words to be taken for the content of a page by anybody who reads it, and then a few more of them. " * 2


def _read(html: str | bytes, charset: str | None = None, **more: Any) -> ParsedDocument:
    body = html.encode() if isinstance(html, str) else html
    return parse_document(body, kind=DocumentKind.HTML, media_type="text/html", charset=charset, **more)


def test_the_head_says_title_description_language_and_canonical() -> None:
    page = _read(
        "<html lang=fr-ca><head><title> A  title </title><meta name=Description content='Told'>"
        "<link rel='CANONICAL' href=' /here '><base href=/b/><meta property=og:type content=article>"
        "<meta name=robots content='noindex, noarchive'></head><body><p>x</body>"
    )

    assert (page.title, page.description, page.language) == ("A title", "Told", "fr-CA")
    assert (page.canonical, page.base, page.noindex) == ("/here", "/b/", True)
    assert page.details == {"og:type": "article"}
    assert ParseProblem.NOARCHIVE in page.problems


def test_open_graph_stands_in_for_what_is_missing() -> None:
    page = _read("<meta property=og:title content='From the graph'><meta property=og:description content=Too>")

    assert (page.title, page.description) == ("From the graph", "Too")


@pytest.mark.parametrize(
    ("script", "details"),
    [
        ('{"@type": "NewsArticle", "headline": "H", "datePublished": "2024-01-02", "author": {"name": "Ann"}}',
         {"ld:type": "NewsArticle", "ld:headline": "H", "ld:datePublished": "2024-01-02", "ld:author": "Ann"}),
        ('{"@graph": [{"@type": ["WebPage", "FAQPage"], "name": "N"}]}', {"ld:type": "WebPage", "ld:name": "N"}),
        ("{broken", {}), ("[" * 5000, {}), ("null", {}), ('"text"', {}), ('{"author": [[[[[["deep"]]]]]]}', {}),
        ('{"name": 12, "headline": {"name": {"name": {}}}}', {}),
    ],
)  # fmt: skip
def test_the_basics_of_json_ld_are_taken_and_nonsense_is_not(script: str, details: dict[str, str]) -> None:
    assert _read(f"<script type='Application/LD+JSON'>{script}</script><p>x").details == details


@pytest.mark.parametrize("name", ["site-banner", "notification-bar", "cookie-box"])
def test_named_box_is_not_content(name: str) -> None:
    page = f"<main><p>{'Words of the page. ' * 20}</p><div class={name}>Closed on Monday</div></main>"
    parsed = _read(page)

    assert "Words of the page" in parsed.text
    assert "Closed on Monday" not in parsed.text


def test_rest_holds_all_other_visible_text() -> None:
    page = _read(
        f"<header>Harbour site</header><nav><a href=/>Timetable</a></nav><main><h1>Tides</h1><p>{PROSE}</p>"
        "<aside><h3>Spring tides</h3>boxed</aside><div class=sidebar>Related ferries</div>"
        "<form><label>Port<select><option>Kelpsound<option>Wrackhaven</select></label><input placeholder='Find a pier'>"
        "<input type=submit value=Search><input type=text value=typed></form><p hidden>secret</p>"
        "<img alt='The old lighthouse'><details><summary>More</summary>folded away</details>"
        "<svg><text>drawn</text></svg><math><mi>formula</mi></math></main><script>code</script>"
        "<div role=complementary>Advice</div><div class=cookie>We bake</div><footer title='About us'>Imprint</footer>"
    )

    for word in (
        *("Harbour site", "Timetable", "Spring tides", "boxed", "Related ferries", "Port", "Kelpsound", "Wrackhaven"),
        *(
            "Find a pier",
            "Search",
            "The old lighthouse",
            "drawn",
            "formula",
            "Advice",
            "We bake",
            "About us",
            "Imprint",
        ),
    ):
        assert word in page.rest, word
        assert word not in page.text, word
    assert "folded away" in page.text
    for word in ("secret", "code", "typed", PROSE):
        assert word not in page.rest, word
    assert page.headings == ("Tides", "Spring tides")


def test_box_inside_a_box_of_its_name_counts_once() -> None:
    box = "<div class=sidebar>" * 3 + f"<p>Ferries {PROSE}</p>" + "</div>" * 3
    page = _read(f"<main><p>{PROSE * 2}</p>{box}</main>")

    assert "Ferries" not in page.text
    assert "Ferries" in page.rest


def test_rest_has_the_menus_around_a_page_without_main() -> None:
    menu = "".join(f"<li><a href=/{n}>Menu entry {n}</a></li>" for n in range(9))
    page = _read(f"<ul>{menu}</ul><h1>Tides</h1><p>{PROSE * 4}</p><ul>{menu.replace('Menu', 'Last')}</ul>")

    assert ("Menu entry 3" in page.text, "Menu entry 3" in page.rest, "Last entry 3" in page.rest) == (
        False,
        True,
        True,
    )


def test_rest_of_a_template_is_all_outside_its_main() -> None:
    page = _read("<div id=a><p>Inside</p></div><div id=b>Outside</div>", template={"main": "#a"})

    assert (page.text, page.rest) == ("Inside", "Outside")


def test_the_content_is_main_without_what_surrounds_it() -> None:
    page = _read(
        f"<header><h1>Site</h1></header><nav><a href=/nav>n</a></nav><main><h1>Head <i>ing</i></h1><p>{PROSE}</p>"
        "<a href='/in#part'>in</a><a href='/in'>again</a><a href=#top>t</a><form><a href=/form>f</a>Search</form>"
        "<p hidden>secret</p><div role=navigation><a href=/role>r</a></div></main><footer><a href=/foot>f</a></footer>"
    )

    assert page.headings == ("Head ing", "Site"), "headings outside the content come last"
    assert page.hrefs == (("/in", "again", ""),)
    assert page.text.startswith("Head ing\nEnough words")
    for word in ("Site", "Search", "secret"):
        assert word not in page.text


def test_boxes_about_cookies_are_no_content_but_a_page_named_after_them_is() -> None:
    box = '<div class="Cookie-Consent"><p>We use cookies.</p></div><div id="newsletter-box">Subscribe!</div>'
    policy = f'<div class="cookie-policy"><h1>Cookies</h1><p>{"What they do. " * 30}</p></div>'
    text = _read(f'<body class="no-cookies">{policy}<div class="consent">{box}</div>').text

    assert "What they do." in text
    assert "We use cookies" not in text
    assert "Subscribe" not in text


def test_a_main_that_says_nothing_is_not_the_content() -> None:
    page = _read(f"<main></main><article><h2>Article</h2><p>{PROSE}</p></article><p>Beside it</p>")
    assert page.headings == ("Article",)
    assert "Beside it" not in page.text

    page = _read(f"<main>short</main><article>one</article><article>two</article><div><p>{PROSE}</p></div>")
    assert PROSE.strip() in page.text


def test_a_page_that_is_all_frame_gives_all_it_shows() -> None:
    assert _read("<header>Only this header</header><form>and a form</form>").text == "Only this header\nand a form"


def test_text_in_any_charset_is_text(tmp_path: object) -> None:
    assert _read("<p>Où ça".encode("cp1252"), "iso-8859-1").text == "Où ça"
    assert _read("<meta charset=windows-1251><p>Привет".encode("cp1251")).text == "Привет"
    plain = parse_document(b"Zeile eins\r\nZwei", kind=DocumentKind.TEXT, media_type="text/plain", charset=None)
    assert plain.text == "Zeile eins\nZwei"


def test_no_bytes_make_it_raise() -> None:
    for body in (b"", b"\0" * 5000, b"<" * 5000, bytes(range(256)) * 40, b"<title>" * 3000, b"<h1>" * 400):
        for kind in (DocumentKind.HTML, DocumentKind.TEXT):
            page = parse_document(body, kind=kind, media_type=None, charset="utf-7")
            assert "\0" not in page.text


@pytest.fixture(scope="module")
def child() -> Iterator[ParseChild]:
    """One child for all tests of this module."""
    with ParseChild(deadline_s=20.0) as started:
        yield started


def _from_child(child: ParseChild, body: bytes, kind: DocumentKind) -> ParsedDocument:
    return child.read(body, kind=kind.value, media_type=None, charset=None, url="http://example.org/")


def test_the_text_of_a_pdf_comes_from_a_child(child: ParseChild) -> None:
    page = _from_child(child, pdf("Vaccination figures of the week"), DocumentKind.PDF)

    assert (page.title, page.text, page.problems) == ("A report", "Vaccination figures of the week", ())


@pytest.mark.parametrize("body", [b"%PDF-1.4", b"%PDF-1.7\n" + bytes(1000), pdf("x")[:200], b"%PDF-" + b"<<" * 9000])
def test_a_broken_pdf_is_noted_and_the_child_lives(child: ParseChild, body: bytes) -> None:
    page = _from_child(child, body, DocumentKind.PDF)

    assert page.text == ""
    assert set(page.problems) <= {ParseProblem.PDF_BROKEN, ParseProblem.PARSE_CRASHED}
    assert page.problems
    assert _from_child(child, pdf("after"), DocumentKind.PDF).text == "after"


def test_a_page_reads_the_same_in_a_child(child: ParseChild) -> None:
    body = f"<title>T</title><main><h1>H</h1><p>{PROSE}</p><a href=/x>x</a></main>".encode()

    read = _from_child(child, body, DocumentKind.HTML)

    assert read == parse_document(body, kind="html", media_type=None, charset=None, url="http://example.org/")


def test_a_page_that_never_ends_is_given_up_with_a_note() -> None:
    body = b"<div>" * 200_000
    assert looks_pathological(body)
    with ParseChild(deadline_s=0.3) as hasty:
        page = _from_child(hasty, body, DocumentKind.HTML)

        assert page.problems == (ParseProblem.PARSE_TIMEOUT,)


def test_a_page_without_a_title_is_called_by_its_first_heading() -> None:
    assert _read(f"<body><h1> The  first </h1><p>{PROSE}</p><h2>Second</h2>").title == "The first"
    assert _read(f"<title>Own</title><h1>Heading</h1><p>{PROSE}</p>").title == "Own"
    assert _read(f"<p>{PROSE}</p>").title is None


def test_headings_that_hold_each_other_are_read_from_their_start() -> None:
    page = _read("<h1><div>" * 1_000 + "Tides" + "<br> and more" * 5_000)

    assert len(page.headings) == 200
    assert all(heading.startswith("Tides and more") for heading in page.headings)


def test_a_page_of_options_is_parsed_in_linear_time() -> None:
    """With mutation events, which scripts would need, lexbor looks at all options for each: over a minute here."""
    started = time.process_time()
    _read("<select>" + "<option>x" * 90_000)

    assert time.process_time() - started < patience.allowed(10.0)


def test_terms_are_what_a_page_defines_in_order_and_once() -> None:
    page = _read(
        "<title>T</title><main><dl><dt><code>os.path.</code><code>join</code>(<em>a</em>)<a href='#j'>¶</a></dt>"
        f"<dd><p>Joins <code>parts</code>.</p></dd></dl><p>{PROSE}</p><p>A <dfn>tide</dfn> is water.</p>"
        "<table><caption>Figures <a href='#c'>#</a></caption><tr><td class=entry><p class=signature> <a id=x></a>\n"
        "<code>octet_length</code> ( <b>text</b> )</p></td><th><span><b>Name:</b></span></th></tr></table>"
        "<ul><li><a href='#deque'><code>deque</code></a> a list</li><li>then <code>late</code></li>"
        "<li><kbd>tide</kbd></li></ul><details><summary>More of it</summary>x</details></main>"
    )

    assert page.terms == ("os.path.join(a)", "tide", "Figures", "octet_length", "Name", "deque", "More of it")


@pytest.mark.parametrize(
    "markup",
    [
        "<dl><dt><a href='/other'>9.1. Operators</a></dt></dl>",
        "<dl><dt>abs, <a href='/other#abs'>Functions</a></dt></dl>",
        "<ul><li><a href='/other'><code>name</code></a></li></ul>",
        "<p><code>lower('TOM')</code> gives tom</p>",
        "<p><b>A sentence that was set in bold from its first to its last word</b></p>",
        "<dl><dt>¶</dt><dt> </dt><dt>--</dt></dl>",
    ],
)
def test_what_leads_elsewhere_or_names_nothing_is_no_term(markup: str) -> None:
    assert _read(f"<main><p>{PROSE}</p>{markup}</main>").terms == ()


def test_terms_are_bounded_in_number_and_length() -> None:
    many = _read("<dl>" + "".join(f"<dt>term {n}</dt>" for n in range(5_000)))
    assert (len(many.terms), many.terms[-1]) == (2_000, "term 1999")

    long = _read("<dl>" + "".join(f"<dt>{n} {'é' * 400}</dt>" for n in range(1_000)))
    assert max(map(len, long.terms)) <= 120
    assert len("\n".join(long.terms).encode()) < 66 * 1024


def _characters_looked_at(html: str) -> int:
    """Return how many characters the methods of texts that the walk calls were called on, all together."""
    tree, count = tree_of(html), 0

    def called(frame: FrameType, event: str, arg: Any) -> None:
        nonlocal count
        if event == "c_call" and isinstance(text := getattr(arg, "__self__", None), str):
            count += len(text)

    assert tree.body is not None
    before = sys.getprofile()
    sys.setprofile(called)
    try:
        walk(tree.body)
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize(
    "page",
    [
        pytest.param("<p>" + " " * 60_000 + "<b></b>" * 500, id="behind-blanks"),
        pytest.param("<p>" + "<i> </i>" * 4 + " " * 60_000 + "<code></code>" * 500, id="behind-parts"),
        pytest.param("<dfn>" * 400 + " tide" * 20_000, id="terms"),
        pytest.param("<dfn>" * 400 + "<a href=/x>Away</a>" + " " * 100_000, id="terms-before-a-link"),
        pytest.param("<h1><div>" * 300 + " " * 100_000, id="headings"),
        pytest.param("<pre>" * 400 + "tide\n" * 20_000, id="preformatted"),
        pytest.param("<a href=/x title=T><marquee>" * 400 + " " * 100_000, id="links"),
        pytest.param("<a href=/x title=T><marquee><i> </i>" * 400 + " " * 100_000, id="links-of-parts"),
    ],
)
def test_each_character_is_looked_at_a_few_times_however_many_elements_stand_around_it(page: str) -> None:
    # A kilobyte an element and ten times the page; without a bound it is the page for each element, 30 million.
    assert _characters_looked_at(page) < 4_000_000


def test_a_name_begins_a_paragraph_behind_the_blanks_of_a_layout() -> None:
    page = _read(f"<main><p>{PROSE}</p><p>\n{' ' * 200}<b>near</b> it</p><p>{' ' * 2_000}<b>far</b> away</p></main>")

    assert page.terms == ("near",)


def test_permalinks_are_part_of_neither_headings_nor_text() -> None:
    page = _read(
        "<main><h1>Tides<a href='#tides'>¶</a></h1><h2>Ebb <a href='page.html#ebb'><span>#</span></a></h2>"
        f"<p>{PROSE}</p><p>Number <a href='#n'>#4</a></p></main>"
    )

    assert (page.title, page.headings) == ("Tides", ("Tides", "Ebb"))
    assert "¶" not in page.text
    assert page.text.endswith("Number #4")


def test_a_link_has_the_longest_of_its_words_or_what_stands_for_a_picture() -> None:
    page = _read(
        f"<main><p>{PROSE}</p><a href=/a>In short</a><a href=/a> At\n some  length</a>"
        "<a href=/b><img src=x alt='A map'></a>"
        "<a href=/c title='What it is called'><img src=y></a><a href=/d aria-label=Told></a><a href=/e></a>"
        "<a href=/f title='9.4. String Functions'>Section 9.4</a><a href=/g title=Tip>Long enough words</a>"
        f"<a href=/h>{'x' * 300}</a></main>"
    )

    assert tuple((href, words) for href, words, _ in page.hrefs[:-1]) == (
        ("/a", "At some length"), ("/b", "A map"), ("/c", "What it is called"), ("/d", "Told"), ("/e", ""),
        ("/f", "9.4. String Functions"), ("/g", "Long enough words"),
    )  # fmt: skip
    assert page.hrefs[-1] == ("/h", "x" * 80, "")


@pytest.mark.parametrize(
    ("item", "beside"),
    [
        ("<li><a href=/t>tides</a> — when the water rises", "when the water rises"),
        ("<dl><dt><a href=/t>tides</a><dd><p>When the water rises.</dl>", "When the water rises."),
        ("<dl><dt><span><a href=/t>tides</a></span><span> – the water rises</span></dl>", "the water rises"),
        ("<table><tr><td><td><a href=/t>tides</a><td><em>When water rises</em></table>", "When water rises"),
        (f"<li><a href=/t>tides</a>: {'word ' * 40}", " ".join(["word"] * 16)),
        ("<li>See the <a href=/t>tides</a> for when the water rises", ""),
        ("<li><a href=/t>tides</a> and <a href=/u>boats</a> in the harbour", ""),
        ("<li><a href=/t>tides</a> 12 November", ""),
        ("<li><a href=/t>tides</a> new", ""),
        ("<p><a href=/t>tides</a> rise twice a day, and fall as often.", ""),
    ],
)
def test_link_has_what_its_list_item_or_row_says_of_it(item: str, beside: str) -> None:
    page = _read(f"<main><p>{PROSE}</p>{item}</main>")

    assert page.hrefs[0] == ("/t", "tides", beside)


def test_the_title_is_the_first_heading_of_the_first_rank_before_the_graphs() -> None:
    graph = "<meta property=og:title content=Graph>"
    assert _read(f"{graph}<title> </title><body><h2>Second</h2><h1>First</h1><p>{PROSE}</p>").title == "First"
    assert _read(f"{graph}<body><h3>Third</h3><h2>Second</h2><p>{PROSE}</p>").title == "Second"
    assert _read(f"{graph}<header><h1>In the header</h1></header><main><p>{PROSE}</p></main>").title == "In the header"
    assert _read(f"{graph}<p>{PROSE}</p>").title == "Graph"


def test_menus_at_both_ends_are_no_content_and_a_list_in_the_middle_is() -> None:
    menu = "<ul>" + "".join(f"<li><a href=/{n}>Part {n}</a></li>" for n in range(5)) + "</ul>"
    inner = "<ul>" + "".join(f"<li><a href=/i{n}>Inner {n}</a></li>" for n in range(5)) + "</ul>"
    text = _read(f"<body>{menu}<h1>Head</h1><p>{PROSE}{PROSE}</p>{inner}<p>{PROSE}{PROSE}</p>{menu}").text

    assert text.startswith("Head\n")
    assert "Part 1" not in text
    assert "Inner 3" in text
    assert "Part 1" in _read(f"<body>{menu}<p>Few words</p>").text


def test_the_body_that_microdata_or_json_ld_names_is_the_content() -> None:
    body = _read(f"<body><p>{PROSE} around it</p><div itemprop=articleBody><p>{PROSE}</p></div>").text
    assert body == PROSE.strip()

    script = '<script type="application/ld+json">{"@type": "Article", "articleBody": "%s"}</script>' % (PROSE * 2)
    assert _read(f"{script}<div id=app>Loading</div>").text == (PROSE * 2).strip()
    marked = script.replace(PROSE, f"<p>{PROSE}&amp; more</p>".replace('"', ""), 1)
    assert _read(f"{marked}<div id=app>Loading</div>").text.startswith(f"{PROSE}& more\nEnough")
    # A page that shows its text is read as it is shown.
    assert _read(f"{script}<main><h1>Shown</h1><p>{PROSE * 3}</p></main>").text.startswith("Shown")


def test_a_template_tells_what_the_content_is() -> None:
    html = (
        f"<title>Site</title><body><div class=x1><p>{PROSE}</p><div class=ad>Buy</div></div><b id=by>By Ann</b>"
        f"<h2 class=t>Own title</h2><time class=d datetime=2024-05-06>May</time><div class=x2>{PROSE}</div>"
    )
    template: SiteTemplate = {
        "main": "div.x1", "title": ".t", "author": "#by", "published": "time.d", "remove": [".ad"],
    }  # fmt: skip
    page = parse_document(html.encode(), kind="html", media_type=None, charset=None, template=template)

    assert (page.text, page.title, page.author) == (PROSE.strip(), "Own title", "By Ann")
    assert page.published_at == datetime(2024, 5, 6, tzinfo=UTC)
    missed = parse_document(html.encode(), kind="html", media_type=None, charset=None, template={"main": ".gone"})
    assert ParseProblem.TEMPLATE_MISSED in missed.problems
    assert "Buy" in missed.text


@pytest.mark.parametrize("before", ["<img src=p.gif>", "<meta name=x content=y>" * 401])
def test_head_elements_count_wherever_the_parser_puts_them(before: str) -> None:
    page = _read(
        f"<head><meta charset=utf-8>{before}<meta name=robots content=noindex><base href=/b/>"
        "<link rel=canonical href=/c></head><body><p>x</body>"
    )

    assert (page.noindex, page.base, page.canonical) == (True, "/b/", "/c")


@pytest.mark.parametrize("kind", [DocumentKind.HTML, DocumentKind.TEXT])
def test_text_beyond_the_limit_is_noted_as_cut(kind: DocumentKind) -> None:
    words = b"tide " * (MAX_TEXT_CHARS // 5)

    def problems(body: bytes) -> tuple[str, ...]:
        return parse_document(body, kind=kind, media_type=None, charset="utf-8").problems

    assert ParseProblem.BODY_CUT not in problems(words[:-5])
    assert ParseProblem.BODY_CUT in problems(words + b"zymurgy")
