"""Charsets: who decides, what is decoded, and what is refused."""

from __future__ import annotations

import time

import pytest

from holdfast.parse.charset import ParseProblem, decode, decode_text, known_charset
from tests import patience
from tests.legacy_text import LEGACY_TEXT, undeclared_page


@pytest.mark.parametrize(
    ("body", "header", "text", "charset"),
    [
        ("é".encode(), None, "é", "utf-8"),
        ("é".encode("latin-1"), None, "é", "windows-1252"),
        ("é".encode("latin-1"), "iso-8859-1", "é", "windows-1252"),
        (b"\x93quoted\x94", "ISO-8859-1", "“quoted”", "windows-1252"),
        ("\ufeffé".encode(), "windows-1252", "é", "utf-8"),
        ("\ufeffabc".encode("utf-16-le"), "utf-8", "abc", "utf-16le"),
        ("\ufeffabc".encode("utf-16-be"), None, "abc", "utf-16be"),
        ("<p>привет".encode("utf-16-le"), None, "<p>привет", "utf-16le"),
        ("<html><body>plain".encode("utf-16-be"), None, "<html><body>plain", "utf-16be"),
        ("привет".encode("koi8-r"), "KOI8-R", "привет", "koi8-r"),
        ("привет".encode("cp1251"), ' "cp1251" ', "привет", "windows-1251"),
        ("日本語".encode("cp932"), "Shift-JIS", "日本語", "shift_jis"),
        ("日本語".encode("euc_jp"), "x-euc-jp", "日本語", "euc-jp"),
        ("日本語".encode("iso2022_jp"), "iso-2022-jp", "日本語", "iso-2022-jp"),
        ("中文".encode("gbk"), "gb2312", "中文", "gb18030"),
        ("中文".encode("big5"), "big5", "中文", "big5"),
        ("한국어".encode("cp949"), "ks_c_5601-1987", "한국어", "euc-kr"),
        ("ไทย".encode("cp874"), "tis-620", "ไทย", "windows-874"),
        (b'<meta charset="windows-1251">\xef\xf0', None, '<meta charset="windows-1251">пр', "windows-1251"),
        (
            b'<?xml version="1.0" encoding="iso-8859-2"?>\xb1',
            None,
            '<?xml version="1.0" encoding="iso-8859-2"?>ą',
            "iso-8859-2",
        ),
        (
            b"<META HTTP-EQUIV=content-type CONTENT='text/html;charset=koi8-r'>\xd0",
            None,
            "<META HTTP-EQUIV=content-type CONTENT='text/html;charset=koi8-r'>п",
            "koi8-r",
        ),
        (b"<meta charset=utf-16>\xc3\xa9", None, "<meta charset=utf-16>é", "utf-8"),
        (b"<!-- <meta charset=koi8-r> --><p>\xe9", None, "<!-- <meta charset=koi8-r> --><p>é", "windows-1252"),
        (b"<meta charset=koi8-r>\xc3\xa9", "utf-8", "<meta charset=koi8-r>é", "utf-8"),
        ("é cut ".encode() + b"\xe2\x82", None, "é cut �", "utf-8"),
        (b"bad \xff\xfe utf-8", "utf-8", "bad �� utf-8", "utf-8"),
        (b"", None, "", "utf-8"),
    ],
)
def test_the_right_voice_decides(body: bytes, header: str | None, text: str, charset: str) -> None:
    assert decode_text(body, header) == (text, charset)


def test_utf_8_stays_the_very_bytes() -> None:
    body = "<p>é".encode()

    assert decode(body).content is body


@pytest.mark.parametrize("encoding", LEGACY_TEXT)
@pytest.mark.parametrize("with_language", [True, False])
def test_undeclared_legacy_encoding_is_recognised(encoding: str, with_language: bool) -> None:
    text, charset = decode_text(undeclared_page(encoding, with_language=with_language))

    assert charset == encoding
    assert LEGACY_TEXT[encoding][1] in text


def test_declared_charset_wins_over_what_the_bytes_look_like() -> None:
    page = undeclared_page("shift_jis", with_language=True)

    assert decode(page, "windows-1252").charset == "windows-1252"
    assert decode(b"<meta charset=windows-1251>" + page).charset == "windows-1251"


def test_undeclared_bytes_of_any_kind_are_decoded_in_linear_time() -> None:
    started = time.process_time()
    for body in (bytes(range(256)) * 20_000, b"\xff" * 5_000_000, b"a\x81" * 2_000_000):
        assert decode_text(body)[0]

    assert time.process_time() - started < patience.allowed(2)


@pytest.mark.parametrize("label", ["utf-7", "UTF-7", "iso-2022-kr", "hz-gb-2312", "replacement"])
def test_an_encoding_that_hides_markup_is_refused(label: str) -> None:
    decoded = decode(b"+ADw-script+AD4- \xff", label)

    assert decoded.content == "+ADw-script+AD4- �"
    assert decoded.problems == (ParseProblem.CHARSET_REFUSED,)


def test_a_refused_encoding_in_a_meta_is_refused_too() -> None:
    assert decode(b"<meta charset=utf-7>").problems == (ParseProblem.CHARSET_REFUSED,)


@pytest.mark.parametrize(
    "label", ["zip", "bz2", "idna", "rot13", "base64", "hex", "punycode", "unicode_escape", "\0", "x" * 5000]
)
def test_no_label_reaches_the_codec_registry(label: str) -> None:
    decoded = decode(b"plain", label)

    assert decoded.content == b"plain"
    assert decoded.problems == (ParseProblem.CHARSET_UNKNOWN,)


def test_after_an_unknown_header_the_meta_decides() -> None:
    assert decode_text(b"<meta charset=koi8-r>\xd0", "no-such")[1] == "koi8-r"


@pytest.mark.parametrize("label", ["iso-8859-8", "windows-874", "windows-1253", "utf-8", "euc-jp", "gb18030", "koi8-r"])
def test_wrong_bytes_are_decoded_in_linear_time(label: str) -> None:
    body = b"\xff" * 2_000_000

    started = time.process_time()
    text, _ = decode_text(body, label)

    assert text
    assert time.process_time() - started < patience.allowed(0.5)


def test_labels_are_known_by_the_names_of_the_web() -> None:
    assert known_charset(" Latin1 ") == "windows-1252"
    assert known_charset("utf-7") is None
