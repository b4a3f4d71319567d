"""Rewriting never raises, is linear, keeps what it does not understand, and loses no character on the way."""

from __future__ import annotations

import time
from contextlib import suppress

import ada_url
import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from holdfast.clock import SystemClock
from holdfast.replay.body import Additions, rewrite_page, rewrite_sheet, unrewritten_page
from holdfast.replay.css import rewrite_css, rewrite_srcset
from holdfast.replay.links import Deadline, Links, TooSlow, escape, unescape
from holdfast.replay.markup import refresh_into
from holdfast.replay.origins import origins_of
from holdfast.replay.pages import shim_for
from tests import patience
from tests.clock import FakeClock

PREFIX = "/web/20240301120000"
PIECES = st.lists(
    st.sampled_from(
        ["<", ">", "/", "=", '"', "'", " ", "\n", "<!--", "-->", "<script>", "</script>", "<style>", "</style>", ", 2x",
         "<img src=", "<a href='", "url(", ")", "@import ", "a.png", "//x.example/", "&amp;", "&#", "<svg>", "</svg>",
         "srcset=",
         "<body>", "<base href=/b/>", "<![CDATA[", "]]>", "\\", "é", "\0", "<iframe srcdoc=\"&lt;img src=x&gt;\">", ";"]
    )
)  # fmt: skip


def links(url: str = "http://example.org/a/page.html") -> Links:
    return Links(url, digits="20240301120000")


def deadline() -> Deadline:
    return Deadline(SystemClock(), 60)


def page(body: str | bytes, charset: str | None = None, bar: str = "") -> str:
    raw = body.encode() if isinstance(body, str) else body
    return rewrite_page(raw, charset, links(), deadline(), Additions(bar=bar))[0].decode("utf-8", "replace")


@given(PIECES.map("".join))
def test_any_markup_is_rewritten_without_an_error(markup: str) -> None:
    page(markup, bar="<!--bar-->")
    rewrite_sheet(markup.encode(), None, links(), deadline())
    rewrite_srcset(markup, "im_", links().to, deadline())
    refresh_into(markup, links())


@given(st.binary(max_size=200))
def test_any_bytes_are_rewritten_without_an_error(body: bytes) -> None:
    rewrite_page(body, None, links(), deadline())
    rewrite_sheet(body, "shift_jis", links(), deadline())


@given(st.text())
def test_escaping_is_undone_exactly_and_once(text: str) -> None:
    plain = text.encode("utf-8", "replace").decode().replace("\0", "")
    hole = {chr(code) for code in range(0x80, 0xA0)}
    if not hole & set(plain):
        assert unescape(escape(plain)) == plain
    assert escape(plain).isascii()
    assert not {"<", ">", '"'} & set(escape(plain))


@given(st.text(alphabet="abc <>/&;éñ\n", max_size=80))
def test_what_holds_no_address_keeps_every_byte(text: str) -> None:
    assert page(text) == text


@given(st.text(alphabet="abcé/.:?&=#% '\"<>", max_size=40))
def test_a_browser_reads_an_archive_address_wherever_one_stood(reference: str) -> None:
    written = f'<img src="{escape(reference)}"><a href="{escape(reference)}">x</a>'

    tree = LexborHTMLParser(page(written))

    for node, name in ((tree.css_first("img"), "src"), (tree.css_first("a"), "href")):
        assert node is not None
        value = node.attributes[name] or ""
        assert value.startswith(PREFIX) or (value == reference and not _is_web(reference))


def _is_web(reference: str) -> bool:
    """Whether a browser would ask the web for this, as another parser sees it."""
    bare = reference.strip(" \t\n\f\r")
    try:
        return ada_url.join_url("http://example.org/a/page.html", bare).startswith("http") and bare[:1] not in ("", "#")
    except ValueError:
        return False


@pytest.mark.parametrize(
    "piece",
    ["<", "<a ", "<a b=", "<!--", "<script>", "<style>", "<img src=x srcset='a,", "<a href='", '"', "&#38", "<svg>",
     "<![CDATA[", "</", "<a href=x>", "url(", "@import '", "\\", "(", "image-set(", '<a class="', '<a class="x" ',
     "<iframe srcdoc='&lt;a href=x&gt;'>"],
)  # fmt: skip
def test_twice_the_input_takes_about_twice_the_time(piece: str) -> None:
    def cost(size: int) -> float:
        body = (piece * (size // len(piece))).encode()
        best = 9.0
        for _ in range(2):
            start = time.process_time()
            rewrite_page(body, "utf-8", links(), deadline())
            rewrite_sheet(body, "utf-8", links(), deadline())
            best = min(best, time.process_time() - start)
        return best

    assert cost(64_000) < 16 * cost(16_000) / 2 + patience.allowed(0.02)


def test_a_large_script_on_one_line_costs_next_to_nothing() -> None:
    body = b"<script>" + b"var a='<img src=x>';" * 250_000 + b"</script><img src=y>"

    start = time.process_time()
    done = rewrite_page(body, "utf-8", links(), deadline())

    assert time.process_time() - start < patience.allowed(1.0)
    assert done[0].startswith(body[:-12])
    assert done[0].endswith(f'<img src="{PREFIX}im_/http://example.org/a/y">'.encode())


def test_time_that_is_up_ends_the_work() -> None:
    clock = FakeClock()
    over = Deadline(clock, 1.0)
    clock.advance(2.0)

    with pytest.raises(TooSlow):
        rewrite_page(b"<a href=x>" * 1000, None, links(), over)
    with pytest.raises(TooSlow):
        rewrite_css("a{b:url(x)}" * 1000, links().to, over)


def test_a_charset_is_kept_where_markup_is_safe_in_it() -> None:
    body = '<a href="/ä?q=ü" title="ß">ä</a>'.encode("windows-1252")

    done = rewrite_page(body, "windows-1252", links(), deadline())

    assert done[1] == "windows-1252"
    assert done[0] == (f'<a href="{PREFIX}/http://example.org/%C3%A4?q=%C3%BC" title="ß">ä</a>'.encode("windows-1252"))


@pytest.mark.parametrize("charset", ["utf-16le", "utf-16be", "iso-2022-jp"])
def test_a_charset_in_which_markup_hides_is_served_as_utf_8(charset: str) -> None:
    body = '<p>漢字</p><img src="絵.png">'.encode(charset)

    done = rewrite_page(body, charset, links(), deadline())

    assert done[1] == "utf-8"
    assert done[0].decode() == (f'<p>漢字</p><img src="{PREFIX}im_/http://example.org/a/%E7%B5%B5.png">')


def test_shift_jis_keeps_its_bytes() -> None:
    body = '<img src="a.png" alt="ソ表">ソ'.encode("cp932")  # both end in a backslash byte

    done = rewrite_page(body, "shift_jis", links(), deadline())

    assert done[0] == body.replace(b'"a.png"', f'"{PREFIX}im_/http://example.org/a/a.png"'.encode())


def test_the_bar_stands_first_in_the_body_and_the_doctype_first_in_the_page() -> None:
    told = page("<!DOCTYPE html><html><body class=x><h1>t</h1>", bar="<!--bar-->")

    assert told == "<!DOCTYPE html><html><body class=x><!--bar--><h1>t</h1>"


BAR = "<!--bar-->"
SHIM = "<!--shim-->"


@pytest.mark.parametrize(
    ("written", "served"),
    [
        ("<!doctype html><p>x", f"<!doctype html>{SHIM}{BAR}<p>x"),
        ("text <b>x", f"{SHIM}{BAR}text <b>x"),
        ("\ufeff<!doctype html> <title>t</title> words", f"\ufeff<!doctype html> {SHIM}<title>t</title> {BAR}words"),
        ("<html><head><title>t</title></head>< x", f"<html><head>{SHIM}<title>t</title></head>{BAR}< x"),
        ("<!-- <body> --><html lang=x>\n<head>\n</head>\n<body>y",
         f"<!-- <body> --><html lang=x>\n<head>{SHIM}\n</head>\n<body>{BAR}y"),
        ("<title>t</title><noscript><p>a</p></noscript><script>b</script><p>c",
         f"{SHIM}<title>t</title><noscript><p>a</p></noscript><script>b</script>{BAR}<p>c"),
        ("<template><div>a</div></template>text", f"{SHIM}<template><div>a</div></template>{BAR}text"),
        ("<title>only</title>", f"{SHIM}<title>only</title>{BAR}"),
        ("", BAR),
    ],
)  # fmt: skip
def test_the_script_stands_before_the_head_and_the_bar_before_what_begins_the_body(written: str, served: str) -> None:
    add = Additions(bar=BAR, shim=SHIM)

    assert rewrite_page(written.encode(), "utf-8", links(), deadline(), add)[0].decode() == served


def test_xml_gets_both_only_where_tags_are_written() -> None:
    add = Additions(bar=BAR, shim=SHIM, is_xml=True)
    written = b'<?xml version="1.0"?><html xmlns="x"><head/><p>a</p></html>'
    whole = b"<html><head><title/></head><body><script/><a href='/b'/></body></html>"

    assert rewrite_page(written, "utf-8", links(), deadline(), add)[0] == written
    assert rewrite_page(whole, "utf-8", links(), deadline(), add)[0].decode() == (
        f'<html><head>{SHIM}<title/></head><body>{BAR}<script/><a href="{PREFIX}/http://example.org/b"/></body></html>'
    )


def test_a_frameset_is_framed_below_the_bar() -> None:
    add = Additions(bar=BAR, framed_at="/web/2fw_/http://example.org/?a&b")
    told = rewrite_page(b"<title>T</title><frameset><frame src=a></frameset>", None, links(), deadline(), add)[0]

    assert b"<title>T</title>" in told
    assert b'<!--bar--><iframe src="/web/2fw_/http://example.org/?a&amp;b">' in told


def test_the_base_of_a_page_counts_for_what_follows() -> None:
    assert page('<base href="http://other.example/d/"><img src=x>').endswith(f'{PREFIX}im_/http://other.example/d/x">')


@pytest.mark.parametrize(
    ("written", "meant"),
    [("5; url=next", f"5; url={PREFIX}/http://example.org/a/next"), ("0;URL='q'", f"0;URL={PREFIX}/http://example.org/a/q"),
     ("3", "3"), ("0; url=javascript:alert(1)", "0; url=javascript:alert(1)"), ("", "")],
)  # fmt: skip
def test_a_refresh_leads_into_the_archive(written: str, meant: str) -> None:
    assert refresh_into(written, links()) == meant


def test_an_address_that_is_no_page_resolves_nothing() -> None:
    assert Links("urn:x", digits="2").to("a.png", "im_") is None
    assert Links("screenshot:http://example.org/", digits="2").to("http://example.org/", "im_") is None


REFRESH = "<meta http-equiv=refresh content='0; url=http://evil.example/'>"


@pytest.mark.parametrize(
    "hidden",
    ["<svg><style>{0}", "<math><style>{0}", "<svg><script>{0}", "<svg><title>{0}", "<svg><textarea>{0}",
     "<svg><xmp>{0}", "<svg><![CDATA[ > <a title=']]>{0}", "<svg><foreignObject><style><a title='</style>{0}",
     "<math><mi><style><a title='</style>{0}", "<svg></p><style><a title='</style>{0}", "<svg><desc></svg><style>{0}",
     "<math><annotation-xml encoding=text/html><style><a title='</style>{0}", "<table><svg><b><style>{0}",
     "<svg><font color=x><style><a title='</style>{0}"],
)  # fmt: skip
def test_no_refresh_that_hides_in_a_drawing_leads_out(hidden: str) -> None:
    told = page(f"<!doctype html>{hidden.format(REFRESH)}")

    for meta in LexborHTMLParser(told).css("meta[http-equiv=refresh]"):
        assert (meta.attributes["content"] or "").startswith("0; url=/web/")


def test_a_drawing_inside_a_page_is_rewritten_like_the_page() -> None:
    told = page(
        "<svg><style>a{b:url(x.png?a&amp;b)}</style><image href=i.png /><style><![CDATA[c{d:url(y.png?a&b)}]]></style>"
        "<foreignObject><style>p::after{content:'<img src=no.png>'}</style><img src=in.png></foreignObject></svg>"
        "<style>e{f:'<img src=no.png>'}</style><img src=out.png>"
    )

    assert f'a{{b:url("{PREFIX}im_/http://example.org/a/x.png?a&amp;b")}}' in told
    assert f'<![CDATA[c{{d:url("{PREFIX}im_/http://example.org/a/y.png?a&b")}}]]>' in told
    assert told.count("<img src=no.png>") == 2
    assert f'<img src="{PREFIX}im_/http://example.org/a/in.png">' in told
    assert f'<img src="{PREFIX}im_/http://example.org/a/out.png">' in told


def test_what_is_too_long_to_be_looked_up_leads_nowhere() -> None:
    long = "http://evil.example/" + "x" * 9000
    data = "data:image/png;base64," + "A" * 900_000
    told = page(f"<a href='{long}'>x</a><img src='{data}'><meta http-equiv=refresh content='0;url={long}'>")

    assert "evil" not in told
    assert data in told
    assert refresh_into(f"0;url={long}", links()) == f"0;url={PREFIX}/http://too-long.invalid/"
    assert refresh_into("0;url=http://[bad/", links()) == ""


def test_a_page_that_cannot_be_rewritten_refreshes_nothing() -> None:
    for charset in ("utf-8", "utf-16le", "iso-2022-jp"):
        body = "<META HTTP-Equiv=refresh content='0;url=http://evil.example/'>x".encode(charset)
        told = unrewritten_page(body, charset)[0].decode("utf-8")
        assert "data-archive-orig-http-equiv=refresh" in told


def test_what_scripts_may_read_is_asked_for_with_the_pass_of_the_site() -> None:
    own = Links("http://www.example.org/a", digits="2", site_pass="PASS")
    body = (
        b"<img crossorigin src=/i.png><img crossorigin src=//cdn.example/i.png><img src=/j.png>"
        b"<video crossorigin><source src=v.mp4><track src=http://other.example/t.vtt></video>"
    )
    told = rewrite_page(body, None, own, deadline())[0].decode()

    assert '<img crossorigin src="/web/~PASS/2im_/http://www.example.org/i.png">' in told
    assert '<img data-archive-orig-crossorigin src="/web/2im_/http://cdn.example/i.png">' in told
    assert '<img src="/web/2im_/http://www.example.org/j.png">' in told
    assert '<source src="/web/~PASS/2oe_/http://www.example.org/v.mp4">' in told
    assert '<track src="/web/2oe_/http://other.example/t.vtt">' in told


@pytest.mark.parametrize("kind", ["href", "style", "srcdoc", "srcset", "title"])
@pytest.mark.parametrize("filling", ["&amp;", "&#233;", "\u00e9", "\\65 "])
def test_one_attribute_cannot_outlast_the_deadline(kind: str, filling: str) -> None:
    """Every step looks at a clock that moves by a second whenever it is asked: the work ends after a few looks."""

    class Hurrying(FakeClock):
        looks = 0

        def monotonic(self) -> float:
            self.looks += 1
            self.advance(1.0)
            return super().monotonic()

    clock = Hurrying()
    body = f'<a {kind}="url({filling * 1_000_000})">'.encode()
    with suppress(TooSlow):
        rewrite_page(body, "utf-8", links(), Deadline(clock, 3.0))

    assert clock.looks < 10


def test_the_script_of_a_page_is_ascii_and_ends_only_at_its_end() -> None:
    origins = origins_of("http", "replay.localhost:8060", replay_origin=None)
    told = shim_for("http://example.org/</script>\u2028\u00e9", links(), origins, "example.org")

    assert told.isascii()
    assert told.count("</script>") == 1
    assert told.endswith("//]]></script>")
    assert told.count("]]>") == 1
    assert "<!--" not in told
    assert '"apps": ["http://localhost:8060", "http://127.0.0.1:8060"]' in told


def test_a_page_tells_what_is_shown_to_the_named_application_alone() -> None:
    named = origins_of(
        "https",
        "replay.example.org",
        replay_origin="https://replay.example.org",
        site_url="https://archive.example.org/",
    )
    unnamed = origins_of("https", "replay.example.org", replay_origin="https://replay.example.org")

    assert named.viewers == ["https://archive.example.org"]
    assert unnamed.viewers == []


def test_the_base_of_a_document_in_an_attribute_is_not_the_base_of_its_page() -> None:
    frame = '<iframe srcdoc="&lt;base href=//other.example/&gt;&lt;img src=in.png&gt;"></iframe>'
    text = page(f"<body>{frame}<img src=out.png><base href=/own/><img src=late.png>")

    assert f"{PREFIX}im_/http://other.example/in.png" in text
    assert f"{PREFIX}im_/http://example.org/a/out.png" in text
    assert f"{PREFIX}im_/http://example.org/own/late.png" in text


def test_a_page_of_options_is_looked_through_for_refreshes_in_linear_time() -> None:
    started = time.process_time()
    page('<meta http-equiv="refresh" content="5; url=/x"><select>' + "<option>x" * 90_000)

    assert time.process_time() - started < patience.allowed(20.0)
