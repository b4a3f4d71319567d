"""The words of a page as a reader sees them: none that is hidden, none missing, none joined to its neighbour."""

from __future__ import annotations

import re
from typing import Any

import pytest

from holdfast.parse.document import DocumentKind, ParsedDocument, parse_document

PROSE = "Enough words to be taken for the content of a page by anybody who reads it, and then a few more of them. " * 2


def _read(html: str, media_type: str = "text/html", **more: Any) -> ParsedDocument:
    return parse_document(html.encode(), kind=DocumentKind.HTML, media_type=media_type, charset=None, **more)


def _words(page: ParsedDocument) -> list[str]:
    return re.findall(r"\w+", f"{page.text} {page.rest}")


_HIDDEN = (
    "<p hidden>zz</p>",
    '<p class="a"hidden>zz</p>',
    "<p/hidden>zz</p>",
    "<div hidden><img alt=zz><input placeholder=zz><a title=zz href=/>x</a></div>",
    '<p style="display :none">zz</p>',
    '<p style="color:red; display:  none">zz</p>',
    '<p style="visibility:hidden">zz</p>',
    '<div style="visibility:hidden">zz<div>zz<p style="visibility:visible">a</p>zz</div></div>',
    '<div style="visibility:hidden"><p style="visibility:visible">a<i style="visibility:hidden">zz</i></p></div>',
    '<div style="display:none"><p style="visibility:visible">zz</p></div>',
    '<div hidden><p style="visibility:visible;display:block">zz</p></div>',
    "<dialog>zz</dialog>",
    "<input type=HIDDEN title=zz>",
    "<ruby>a<rp>zz</rp></ruby>",
    "<p title='>' HIDDEN=''>zz</p>",
    "<p style='display:block;Display : None !important'>zz</p>",
    "<div popover>zz</div>",
    "<template>zz</template><datalist><option>zz</datalist><noembed>zz</noembed><meter>zz</meter>",
    "<math><mi>a</mi><annotation>zz</annotation></math><svg><metadata>zz</metadata><desc>zz</desc></svg>",
)


@pytest.mark.parametrize("markup", _HIDDEN)
@pytest.mark.parametrize("template", [None, {"main": "main"}])
def test_hidden_text_is_not_read(markup: str, template: Any) -> None:
    page = _read(f"<main><p>{PROSE}</p>{markup}</main>{markup}", **({"template": template} if template else {}))

    assert "zz" not in _words(page)
    assert "Enough" in page.text


@pytest.mark.parametrize(
    "markup",
    [
        "<input type=SUBMIT value=zz>",
        "<select><optgroup label=zz><option>x</select>",
        "<select><option label=zz></select>",
        "<p style='--display:none'>zz</p>",
        "<dialog open>zz</dialog>",
        "<p style='display:none;display:block'>zz</p>",
        "<p hidden style='display:block'>zz</p>",
        "<p style='backface-visibility:hidden'>zz</p>",
        "<p class=hidden>zz</p>",
        "<div style='visibility:hidden'>a<div>b<p style='visibility:visible'>zz</p>c</div></div>",
        "<div style='visibility:hidden'><div style='visibility:hidden'><p style='visibility:visible'>zz</div></div>",
        "<object>zz</object>",
        "<object data=/film.swf><p>zz</p></object>",
        "<aside><nav><footer>zz</footer></nav></aside>",
    ],
)
@pytest.mark.parametrize("place", ["<main><p>{}</p>{}</main>", "<main><p>{}</p></main><form>{}</form>"])
def test_visible_text_is_read(markup: str, place: str) -> None:
    assert "zz" in _words(_read(place.format(PROSE, markup)))


@pytest.mark.parametrize("main", ["main", "#missing"])
def test_what_a_template_removes_is_in_the_rest(main: str) -> None:
    page = _read(f"<main><p>{PROSE}</p><p class=ad>zz</p></main>", template={"main": main, "remove": [".ad"]})

    assert "zz" in page.rest
    assert "zz" not in page.text


@pytest.mark.parametrize(
    "markup",
    [
        "<pre>aa<br>bb</pre>",
        "<pre><div>aa</div><div>bb</div></pre>",
        "<pre><table><tr><td>aa</td><td>bb</td></tr></table></pre>",
        "<pre><span>aa\nbb</span></pre>",
        "<nav><a href=/a>aa</a><a href=/b>bb</a></nav>",
        "<p><a href=/a>aa</a><a href=/b>bb</a></p>",
        "<svg><text>aa</text><text>bb</text></svg>",
        "<label>aa</label><input><label>bb</label>",
        "<p>aa<select><option>x</select>bb</p>",
        "<p>aa<math><mi>x</mi></math>bb</p>",
        "<p><math><mi>aa</mi><mi>bb</mi></math></p>",
        "<p><math><mfrac><mi>aa</mi><mi>bb</mi></mfrac></math></p>",
        "<p>aa<object>x</object>bb</p>",
        "<p>aa<a href=#x>¶</a>bb</p>",
        "aa<aside>x</aside>bb",
    ],
)
@pytest.mark.parametrize("frame", ["<main>{}</main>", "<footer>{}</footer>"])
def test_words_that_are_drawn_apart_are_not_joined(markup: str, frame: str) -> None:
    words = _words(_read(f"<main><p>{PROSE}</p></main>{frame.format(markup)}" if "footer" in frame else
                         f"<main><p>{PROSE}</p>{markup}</main>"))  # fmt: skip

    assert {"aa", "bb"} <= set(words)
    assert "aabb" not in words


@pytest.mark.parametrize("markup", ["<p>a<b>a</b>bb</p>", "<p>aa<script>x</script>bb</p>", "<pre><b>aa</b>bb</pre>"])
def test_words_that_are_drawn_as_one_stay_one(markup: str) -> None:
    assert "aabb" in _words(_read(f"<main><p>{PROSE}</p>{markup}</main>"))


def test_readings_do_not_part_the_word_that_they_stand_over() -> None:
    page = _read(f"<main><p>{PROSE}</p><p><ruby>漢<rt>かん</rt>字<rt>じ</rt></ruby></p></main>")

    assert "漢字" in page.text
    assert "かん" in page.rest


def test_preformatted_text_has_lines_headings_links_and_terms() -> None:
    pre = "<pre><h2>Files</h2><a href=/one>one</a>  1 KB\n<dfn>ebb\ntide</dfn></pre>"
    page = _read(f"<main><p>{PROSE}</p>{pre}</main>")

    assert (page.headings, page.hrefs, page.terms) == (("Files",), (("/one", "one", ""),), ("ebb tide",))
    assert page.text.endswith("Files\none 1 KB\nebb\ntide")


def test_xhtml_page_with_a_closed_script_has_its_text() -> None:
    markup = "<html><head><title>T</title><script src='a.js'/></head><body><p>zz</p><a href='/n'>n</a></body></html>"

    page = _read(markup, "application/xhtml+xml")

    assert (page.title, page.hrefs) == ("T", (("/n", "n", ""),))
    assert "zz" in page.text
    assert "zz" not in _words(_read(markup)), "in HTML the script goes on"


_NOTICES = "Notices of the house stand below every page. " * 6


@pytest.mark.parametrize("frame", ["{}", "<main>{}</main>"])
def test_form_around_a_page_is_its_content(frame: str) -> None:
    page = _read(frame.format(f"<form id=aspnetForm><nav>menu</nav><p>{PROSE * 6}</p></form><div>{_NOTICES}</div>"))

    assert "Enough words" in page.text
    assert "menu" not in page.text
    assert "menu" in page.rest


def test_form_with_less_prose_than_its_page_is_in_the_rest() -> None:
    options = "".join(f"<option>Country {number}" for number in range(300))
    page = _read(f"<p>{PROSE}{_NOTICES}</p><form><label>Leave your name</label><select>{options}</select></form>")

    assert "Leave your name" not in page.text
    assert "Leave your name" in page.rest


@pytest.mark.parametrize("box", ["<div class=sidebar>{0}</div>", "<aside>{0}</aside>", "<footer>{0}</footer>"])
def test_heading_outside_the_content_is_a_heading(box: str) -> None:
    page = _read(f"<main><h1>Tides</h1><p>{PROSE}</p></main>{box.format('<h2>Ferry fares</h2><p>From noon.</p>')}")

    assert page.headings == ("Tides", "Ferry fares")
    assert "Ferry fares" not in page.text
