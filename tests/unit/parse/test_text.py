"""Visible text: what counts as shown, where lines end, which characters go."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.parse.page import parse_page
from holdfast.parse.text import clean_line, clean_text, nfc
from tests import patience


def _text(markup: str) -> str:
    return parse_page(markup.encode(), url="u", media_type="text/html", charset="utf-8", want_text=True).text or ""


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<p>one</p><p>two</p>", "one\ntwo"),
        ("<p>one</p>two", "one\ntwo"),
        ("one<div>two</div>three", "one\ntwo\nthree"),
        ("<b>b</b>old <i>i</i>talic", "bold italic"),
        ("a<br>b<hr>c", "a\nb\nc"),
        ("<ul><li>a<li>b</ul>", "a\nb"),
        ("  lots \n\t of&nbsp;&emsp;space  ", "lots of space"),
        ("<pre>line 1\n  line 2</pre>after", "line 1\nline 2\nafter"),
        ("a<script>no</script><style>no</style><noscript>no</noscript><template>no</template>b", "ab"),
        ("<p hidden>no</p><p style='DISPLAY: none'>no</p>yes", "yes"),
        ("<select><option>a<option>b</select>c", "a\nb\nc"),
        ("<svg><metadata>no</metadata><desc>no</desc><text>a</text><text>b</text></svg>", "a b"),
        ("<math><mi>a</mi><annotation>no</annotation></math>", "a"),
        ("<noframes>no</noframes><noembed>no</noembed>yes<meter>no</meter><progress>no</progress>", "yes"),
        ("<!-- no -->yes<textarea>typed</textarea>", "yes\ntyped"),
        ("", ""),
        ("<frameset><frame></frameset>", ""),
        ("{{7*7}} ${7*7} %s%n =cmd|' /C calc'!A0", "{{7*7}} ${7*7} %s%n =cmd|' /C calc'!A0"),
    ],
)
def test_text_is_what_a_reader_sees(markup: str, text: str) -> None:
    assert _text(markup) == text


_LONG = "This sentence is long enough to be taken for the content of the page and not for its frame. " * 4


def test_the_frame_of_a_page_is_left_out() -> None:
    markup = f"<header>H</header><nav>N</nav><main><p>{_LONG}</p></main><aside>A</aside><footer>F</footer>"

    assert _text(markup) == _LONG.strip()


def test_an_article_keeps_its_own_header_and_footer() -> None:
    markup = f"<header>H</header><article><header>Title</header><p>{_LONG}</p><footer>Author</footer></article>"

    assert _text(markup) == f"Title\n{_LONG.strip()}\nAuthor"


def test_a_page_that_is_all_frame_gives_everything() -> None:
    assert _text(f"<header><p>{_LONG}</p></header><p>x</p>") == f"{_LONG.strip()}\nx"


@pytest.mark.parametrize("extra", ["", "–", "日本"])
def test_unseen_characters_go_in_every_alphabet(extra: str) -> None:
    dirty = f"a\u00adb\x07c\x85d {extra} \u202eevil\u202c \u200bzero\ufeff \x7f\x9fend"

    assert clean_text(dirty) == " ".join(f"abc d {extra} evil zero end".split())


def test_lone_surrogates_and_joiners() -> None:
    assert clean_text("a\ud800b می\u200cروم") == "ab می\u200cروم"


def test_text_is_in_normalisation_form_c() -> None:
    assert _text("<p>e\u0301 – a\u030a") == "é – å"


def test_a_million_combining_marks_take_little_time() -> None:
    markup = "<p>a" + "\u0301\u0327" * 500_000

    started = time.process_time()
    text = _text(markup)

    assert time.process_time() - started < patience.allowed(3.0)
    assert text


def test_a_line_is_cut_and_clean() -> None:
    assert clean_line("  a \n b\u202e  " + "c" * 100, 10) == "a b cccccc"


def test_cutting_never_leaves_a_trailing_space() -> None:
    assert clean_line("abc def", 4) == "abc"


@settings(max_examples=60, deadline=None)
@given(
    st.text(alphabet=st.sampled_from("ab é\u0301\u0327\u1100\u1161\u11a8가日本ñ\u0303"), min_size=400, max_size=1500)
)
def test_normalising_in_pieces_equals_normalising_at_once(text: str) -> None:
    assert nfc(text) == unicodedata.normalize("NFC", text)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=200))
def test_clean_text_has_nothing_unseen(text: str) -> None:
    for line in clean_text(text).split("\n"):
        assert line == line.strip()
        assert "\0" not in line
        assert "  " not in line
        assert not any(unicodedata.category(char) in {"Cc", "Cs", "Zl", "Zp"} for char in line)
