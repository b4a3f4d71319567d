"""Text in many encodings, labelled well, badly or not at all."""

from __future__ import annotations

import codecs

from tests.site.book import Group

charset = Group("charset", "text in many encodings, labelled well, badly or not at all")

_WORDS = {
    "utf-8": "Grüße, été, привет, 日本語",
    "utf-16": "Grüße, été, привет, 日本語",
    "utf-16-le": "Grüße, été, привет, 日本語",
    "utf-16-be": "Grüße, été, привет, 日本語",
    "shift_jis": "日本語のページです",
    "euc-jp": "日本語のページです",
    "iso-2022-jp": "日本語のページです",
    "windows-1251": "Привет, это русская страница",
    "koi8-r": "Привет, это русская страница",
    "windows-1252": "“Straße” – café",
    "iso-8859-1": "Straße, café",
    "iso-8859-2": "Příliš žluťoučký kůň",
    "gb18030": "中文网页",
    "big5": "中文網頁",
    "euc-kr": "한국어 페이지",
    "utf-7": "Grüße",
}


def words(name: str) -> str:
    """Return the text that the page of this encoding carries: what a good decoder finds."""
    return _WORDS[name]


def _page(text: str, meta: str = "") -> str:
    return f"<!DOCTYPE html><html><head>{meta}<title>{text}</title></head><body><p>{text}</p></body></html>"


for _name, _text in _WORDS.items():
    charset.fixed(
        _name, f"{_name}, as the header says", _page(_text).encode(_name), media=f"text/html; charset={_name}"
    )

_RUSSIAN, _JAPANESE, _GERMAN = _WORDS["windows-1251"], _WORDS["shift_jis"], "Grüße aus Köln"

for _name, _story, _media, _body in (
    (
        "meta-only",
        "windows-1251, said only by a meta element",
        "text/html",
        _page(_RUSSIAN, '<meta charset="windows-1251">').encode("windows-1251"),
    ),
    (
        "meta-old",
        "shift_jis, said only by the old meta element",
        "text/html",
        _page(_JAPANESE, '<meta http-equiv="Content-Type" content="text/html; charset=shift_jis">').encode("shift_jis"),
    ),
    (
        "meta-late",
        "UTF-8, said by a meta element behind 2 kB of head",
        "text/html",
        _page(_GERMAN, "<!--" + "x" * 2_000 + '--><meta charset="utf-8">').encode(),
    ),
    (
        "meta-lie",
        "UTF-8, although the meta element says windows-1251",
        "text/html; charset=utf-8",
        _page(_GERMAN, '<meta charset="windows-1251">').encode(),
    ),
    (
        "meta-utf-16",
        "UTF-8, although the meta element says UTF-16, which it cannot be",
        "text/html",
        _page(_GERMAN, '<meta charset="utf-16">').encode(),
    ),
    ("header-lie", "UTF-8, although the header says Latin-1", "text/html; charset=iso-8859-1", _page(_GERMAN).encode()),
    ("none", "UTF-8, said by nobody", "text/html", _page(_GERMAN).encode()),
    ("none-latin", "Latin-1, said by nobody", "text/html", _page(_GERMAN).encode("latin-1")),
    ("bom", "UTF-8 with a byte order mark, said by nobody", "text/html", codecs.BOM_UTF8 + _page(_GERMAN).encode()),
    (
        "bom-wins",
        "a UTF-8 mark against a header that says windows-1251",
        "text/html; charset=windows-1251",
        codecs.BOM_UTF8 + _page(_GERMAN).encode(),
    ),
    ("utf-16-bare", "UTF-16 without a mark or a label", "text/html", _page(_GERMAN).encode("utf-16-le")),
    ("unknown", "a charset that does not exist", "text/html; charset=x-martian", _page(_GERMAN).encode()),
    ("quoted", "a charset in quotes and odd case", "Text/HTML; Charset='UTF-8'", _page(_GERMAN).encode()),
    ("codec-zip", "a charset that names a Python codec", "text/html; charset=zip", _page(_GERMAN).encode()),
    ("codec-idna", "a charset that names another Python codec", "text/html; charset=idna", _page(_GERMAN).encode()),
    (
        "mixed",
        "UTF-8 and Latin-1 in one page",
        "text/html; charset=utf-8",
        _page(_GERMAN).encode() + "Köln".encode("latin-1"),
    ),
    ("broken", "UTF-8 cut inside a character", "text/html; charset=utf-8", _page(_GERMAN).encode() + b"\xe2\x82"),
    ("surrogates", "lone surrogates, spelled in UTF-8", "text/html; charset=utf-8", b"<p>a\xed\xa0\x80b</p>"),
    ("long", "a charset of 1 kB", "text/html; charset=" + "x" * 1_000, _page(_GERMAN).encode()),
):
    charset.fixed(_name, _story, _body, media=_media)
