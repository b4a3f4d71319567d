"""Chooses the parser and the encoding of a body and decodes it; defines the problems that reading may report.

Decodes the web's encodings only: no label reaches the codec registry. The order is that of browsers: byte-order
mark, HTTP header, `<meta>` in the head, then detection from the bytes. Only the bytes decide, never the URL, so
that crawl, index, replay and comparison read the same text.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from enum import StrEnum
from functools import cache
from operator import itemgetter
from typing import Final, NamedTuple

_SNIFF_BYTES = 512


class BodyForm(StrEnum):
    HTML = "html"
    XML = "xml"
    CSS = "css"
    TEXT = "text"
    OTHER = "other"


class Sniffed(NamedTuple):
    form: BodyForm
    mismatch: bool = False


_BY_TYPE = {
    "text/html": BodyForm.HTML,
    "application/xhtml+xml": BodyForm.HTML,
    "application/vnd.wap.xhtml+xml": BodyForm.HTML,
    "image/svg+xml": BodyForm.HTML,
    "text/xml": BodyForm.XML,
    "application/xml": BodyForm.XML,
    "text/css": BodyForm.CSS,
    "text/plain": BodyForm.TEXT,
    "text/markdown": BodyForm.TEXT,
    "text/csv": BodyForm.TEXT,
}
# Types that mean "unknown"; the bytes decide.
_SILENT = frozenset({"", "application/octet-stream", "application/unknown", "unknown/unknown", "*/*", "text/*", "text"})

_MAGIC = (
    b"%PDF-",
    b"%!PS-Adobe-",
    b"PK\x03\x04",
    b"PK\x05\x06",
    b"MZ\x90",
    b"\x7fELF",
    b"GIF87a",
    b"GIF89a",
    b"\x89PNG\r\n\x1a\n",
    b"\xff\xd8\xff",
    b"RIFF",
    b"\x1f\x8b",
    b"BZh",
    b"\xfd7zXZ\0",
    b"\x28\xb5\x2f\xfd",
    b"7z\xbc\xaf\x27\x1c",
    b"Rar!\x1a\x07",
    b"OggS\0",
    b"ID3",
    b"fLaC",
    b"\x1aE\xdf\xa3",
    b"wOFF",
    b"wOF2",
    b"\0\x01\0\0",
    b"OTTO",
    b"\0\0\x01\0",
    b"II*\0",
    b"MM\0*",
    b"\xca\xfe\xba\xbe",
    b"SQLite format 3\0",
    b"{\\rtf",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
)
_LOOKS_LIKE_HTML = re.compile(
    rb"(?:<!doctype\s+html|<html|<head|<body|<script|<title|<meta|<iframe|<table|<div|<h1|<style|<p|<a|<br|<b|<font)[\s>/]",
    re.I,
)
_LOOKS_LIKE_A_PAGE = re.compile(rb"(?:<!doctype\s+html|<html)[\s>]", re.I)
_LEADING_COMMENT = re.compile(rb"\s*(?:<\?xml[^>]{0,200}\?>\s*)?(?:<!--[^>]{0,400}-->\s*)?")
_XML_START = (b"<?xml", b"<rss", b"<feed", b"<urlset", b"<sitemapindex", b"<rdf:RDF")
_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")


def media_type_of(value: str | None) -> str:
    return (value or "")[:1024].partition(";")[0].strip().lower()


def sniff(body: bytes, media_type: str | None) -> Sniffed:
    declared = media_type_of(media_type)
    head = body[:_SNIFF_BYTES]
    form = _BY_TYPE.get(declared)
    if form is None and declared.endswith("+xml"):
        form = BodyForm.XML
    # Trust a specific type that we do not parse.
    if form is None and declared not in _SILENT:
        return Sniffed(BodyForm.OTHER)
    if _is_other(head):
        return Sniffed(BodyForm.OTHER, mismatch=form is not None)
    # Servers send text/plain for unknown types; treat it as HTML only if it is a whole page.
    if form is BodyForm.TEXT:
        return Sniffed(BodyForm.HTML, mismatch=True) if _starts(head, _LOOKS_LIKE_A_PAGE) else Sniffed(BodyForm.TEXT)
    if form is BodyForm.XML and _starts(head, _LOOKS_LIKE_A_PAGE):
        return Sniffed(BodyForm.HTML, mismatch=True)
    if form is not None:
        return Sniffed(form)
    if _starts(head, _LOOKS_LIKE_HTML):
        return Sniffed(BodyForm.HTML, mismatch=True)
    if head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(_XML_START):
        return Sniffed(BodyForm.XML)
    return Sniffed(BodyForm.TEXT if head else BodyForm.OTHER)


def looks_like_html(body: bytes) -> bool:
    """Return True if a body starts like a web page, whatever its declared type."""
    return _starts(body[:_SNIFF_BYTES], _LOOKS_LIKE_A_PAGE)


def _starts(head: bytes, pattern: re.Pattern[bytes]) -> bool:
    head = head.removeprefix(b"\xef\xbb\xbf")
    before = _LEADING_COMMENT.match(head)
    return pattern.match(head, before.end() if before else 0) is not None


def _is_other(head: bytes) -> bool:
    if head.startswith(_MAGIC) or head[4:8] == b"ftyp" or head[257:262] == b"ustar":
        return True
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or _BINARY.search(head) is None:
        return False
    # Zeros in every other byte mean UTF-16 without a byte order mark; a few stray controls mean a careless author.
    strange = len(_BINARY.findall(head))
    even, odd = head[::2].count(0), head[1::2].count(0)
    if (even + odd) * 3 >= len(head) and min(even, odd) * 4 <= max(even, odd):
        return False
    return strange * 8 > len(head)


class ParseProblem(StrEnum):
    PARSE_FAILED = "parse_failed"
    """The parser failed; its results until then are lost."""
    PARSE_TIMEOUT = "parse_timeout"
    """The child process that parsed it exceeded its deadline and was killed."""
    PARSE_CRASHED = "parse_crashed"
    """The child process that parsed it died."""
    LINKS_SCANNED = "links_scanned"
    """Links come from a plain scan of the bytes, not from a tree."""
    BODY_CUT = "body_cut"
    """Only the first bytes were parsed."""
    LINKS_CUT = "links_cut"
    """The page has more distinct links than the limit."""
    RESOURCES_CUT = "resources_cut"
    """The page has more distinct resources than the limit."""
    TYPE_MISMATCH = "type_mismatch"
    """Declared as text, but the first bytes are those of another format."""
    SNIFFED_HTML = "sniffed_html"
    """Declared as another type or none, parsed as HTML."""
    CHARSET_UNKNOWN = "charset_unknown"
    """The declared charset is unknown on the web."""
    CHARSET_REFUSED = "charset_refused"
    """The declared charset is one that must not be decoded (UTF-7, ISO-2022-KR…); read as ASCII."""
    NOARCHIVE = "noarchive"
    """The page requests, by header or meta, not to be archived; the source's policy decides the effect."""
    XML_BROKEN = "xml_broken"
    """The XML ends early or is not well-formed; the part before that counts."""
    XML_REFERENCE = "xml_reference"
    """A bare ampersand or an entity unknown to XML; read literally."""
    XML_ENTITIES = "xml_entities"
    """The document declares entities; rejected without reading."""
    HTML_INSTEAD = "html_instead"
    """An HTML page instead of the expected sitemap."""
    NOT_A_SITEMAP = "not_a_sitemap"
    """Neither a sitemap, an index, a feed nor a list of URLs."""
    URLS_CUT = "urls_cut"
    """More URLs than the protocol allows (50,000), or longer than 2,048 characters; the rest is dropped."""
    JSON_BROKEN = "json_broken"
    """The body starts like a JSON Feed but is invalid JSON, too deep, or too long."""
    GZIP_BROKEN = "gzip_broken"
    GZIP_NESTED = "gzip_nested"
    """Gzip inside gzip; rejected."""
    TEMPLATE_MISSED = "template_missed"
    """The source's template finds no main text on this page; it was parsed without the template."""
    PDF_BROKEN = "pdf_broken"
    """The PDF, or some of its pages, cannot be opened: damaged, or encrypted."""


# Browsers look at 1,024 bytes; old pages often have a long comment above the meta, so look further.
_PRESCAN_BYTES = 4096
_LABEL = rb"""\s{0,8}=\s{0,8}["']?\s{0,8}([A-Za-z0-9_:.()+-]{1,40})"""
_META_CHARSET = re.compile(rb"<meta\s[^<>]{0,400}?charset" + _LABEL, re.I)
_XML_ENCODING = re.compile(rb"^\s{0,64}<\?xml\s[^<>]{0,200}?encoding" + _LABEL)

_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16le"), (b"\xfe\xff", "utf-16be"))

# name on the web -> (Python codec, other labels). After https://encoding.spec.whatwg.org/#names-and-labels
_ENCODINGS: dict[str, tuple[str, str]] = {
    "utf-8": ("utf-8", "unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf8 x-unicode20utf8"),
    "ibm866": ("cp866", "866 cp866 csibm866"),
    "iso-8859-2": ("iso8859-2", "csisolatin2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 l2 latin2"),
    "iso-8859-3": ("iso8859-3", "csisolatin3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 l3 latin3"),
    "iso-8859-4": ("iso8859-4", "csisolatin4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 l4 latin4"),
    "iso-8859-5": ("iso8859-5", "csisolatincyrillic cyrillic iso-ir-144 iso8859-5 iso88595 iso_8859-5 iso_8859-5:1988"),
    "iso-8859-6": (
        "iso8859-6",
        "arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6-e iso-8859-6-i "
        "iso-ir-127 iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987",
    ),
    "iso-8859-7": (
        "iso8859-7",
        "csisolatingreek ecma-118 elot_928 greek greek8 iso-ir-126 iso8859-7 iso88597 iso_8859-7 "
        "iso_8859-7:1987 sun_eu_greek",
    ),
    "iso-8859-8": (
        "iso8859-8",
        "csiso88598e csisolatinhebrew hebrew iso-8859-8-e iso-ir-138 iso8859-8 iso88598 iso_8859-8 "
        "iso_8859-8:1988 visual iso-8859-8-i csiso88598i logical",
    ),
    "iso-8859-10": ("iso8859-10", "csisolatin6 iso-ir-157 iso8859-10 iso885910 l6 latin6"),
    "iso-8859-13": ("iso8859-13", "iso8859-13 iso885913"),
    "iso-8859-14": ("iso8859-14", "iso8859-14 iso885914"),
    "iso-8859-15": ("iso8859-15", "csisolatin9 iso8859-15 iso885915 iso_8859-15 l9"),
    "iso-8859-16": ("iso8859-16", ""),
    "koi8-r": ("koi8-r", "cskoi8r koi koi8 koi8_r"),
    "koi8-u": ("koi8-u", "koi8-ru"),
    "macintosh": ("mac-roman", "csmacintosh mac x-mac-roman"),
    "windows-874": ("cp874", "dos-874 iso-8859-11 iso8859-11 iso885911 tis-620"),
    "windows-1250": ("cp1250", "cp1250 x-cp1250"),
    "windows-1251": ("cp1251", "cp1251 x-cp1251"),
    "windows-1252": (
        "cp1252",
        "ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1 iso88591 "
        "iso_8859-1 iso_8859-1:1987 l1 latin1 us-ascii x-cp1252 x-user-defined",
    ),
    "windows-1253": ("cp1253", "cp1253 x-cp1253"),
    "windows-1254": (
        "cp1254",
        "cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9 iso_8859-9:1989 l5 latin5 x-cp1254",
    ),
    "windows-1255": ("cp1255", "cp1255 x-cp1255"),
    "windows-1256": ("cp1256", "cp1256 x-cp1256"),
    "windows-1257": ("cp1257", "cp1257 x-cp1257"),
    "windows-1258": ("cp1258", "cp1258 x-cp1258"),
    "x-mac-cyrillic": ("mac-cyrillic", "x-mac-ukrainian"),
    "gb18030": ("gb18030", "gbk chinese csgb2312 csiso58gb231280 gb2312 gb_2312 gb_2312-80 iso-ir-58 x-gbk cp936"),
    "big5": ("big5hkscs", "big5-hkscs cn-big5 csbig5 x-x-big5"),
    "euc-jp": ("euc_jp", "cseucpkdfmtjapanese x-euc-jp"),
    "iso-2022-jp": ("iso2022_jp", "csiso2022jp"),
    "shift_jis": ("cp932", "csshiftjis ms932 ms_kanji shift-jis sjis windows-31j x-sjis"),
    "euc-kr": (
        "cp949",
        "cseuckr csksc56011987 iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 windows-949",
    ),
    "utf-16be": ("utf-16-be", "unicodefffe"),
    "utf-16le": ("utf-16-le", "csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16"),
}
_NAMES = {label: name for name, (_, labels) in _ENCODINGS.items() for label in (name, *labels.split())}
# Encodings that can hide markup: the standard replaces some of them and does not have the others.
_REFUSED = frozenset(
    {
        "csiso2022kr",
        "hz-gb-2312",
        "iso-2022-cn",
        "iso-2022-cn-ext",
        "iso-2022-kr",
        "replacement",
        "utf-7",
        "x-utf-7",
        "unicode-1-1-utf-7",
    }
)
_MULTIBYTE = frozenset(
    {"utf-8", "utf-16le", "utf-16be", "gb18030", "big5", "euc-jp", "iso-2022-jp", "shift_jis", "euc-kr"}
)


class DecodedText(NamedTuple):
    """A body for a UTF-8 parser: the original bytes if they are UTF-8 already, otherwise text."""

    content: bytes | str
    charset: str
    problems: tuple[ParseProblem, ...] = ()


def decode(body: bytes, declared: str | None = None) -> DecodedText:
    """Return the body without its byte-order mark, as UTF-8 bytes or as text, and the encoding used.

    `declared` is the HTTP header's charset. Bytes that are invalid in the encoding become U+FFFD, here or, for
    UTF-8 that stays bytes, wherever they are read. Never raises.
    """
    # A byte-order mark wins over the header, as in browsers.
    for mark, name in _BOMS:
        if body.startswith(mark):
            return DecodedText(_text(body[len(mark) :], name), name)
    label = (declared or "").strip(" \t\n\f\r\"'").lower()
    if label in _REFUSED:
        return DecodedText(_text(body, "refused"), "us-ascii", (ParseProblem.CHARSET_REFUSED,))
    name = _NAMES.get(label, "")
    problems = (ParseProblem.CHARSET_UNKNOWN,) if label and not name else ()
    if not name:
        name = _announced(body) or _guess(body)
        if name == "refused":
            return DecodedText(_text(body, name), "us-ascii", (*problems, ParseProblem.CHARSET_REFUSED))
    return DecodedText(_text(body, name), name, problems)


def decode_text(body: bytes, declared: str | None = None) -> tuple[str, str]:
    """Return the body as text, and the encoding used. Never raises."""
    content, charset, _ = decode(body, declared)
    return (content if isinstance(content, str) else content.decode("utf-8", "replace")), charset


def known_charset(label: str) -> str | None:
    """Return the web's name of the encoding with this label, None if it is unknown."""
    return _NAMES.get(label.strip(" \t\n\f\r").lower())


def _announced(body: bytes) -> str:
    head = _without_comments(body[:_PRESCAN_BYTES])
    found = _META_CHARSET.search(head) or _XML_ENCODING.search(head)
    if found is None:
        return ""
    label = found[1].decode("ascii").lower()
    if label in _REFUSED:
        return "refused"
    name = _NAMES.get(label, "")
    # A meta that could be read as ASCII cannot stand in UTF-16 (HTML standard, "prescan a byte stream").
    return "utf-8" if name.startswith("utf-16") else name


def _without_comments(head: bytes) -> bytes:
    """Return the bytes without HTML comments, the last of which may be open. Linear in their length."""
    if b"<!--" not in head:
        return head
    kept, at = [], 0
    while (start := head.find(b"<!--", at)) >= 0:
        kept.append(head[at:start])
        end = head.find(b"-->", start + 2)
        at = end + 3 if end >= 0 else len(head)
    kept.append(head[at:])
    return b" ".join(kept)


def _guess(body: bytes) -> str:
    """Return the likely encoding of undeclared bytes: UTF-16 by its zeros, valid UTF-8, else a legacy encoding."""
    head = body[:512]
    if head.startswith((b"<\0", b"\0<")):
        return "utf-16le" if head[0] else "utf-16be"
    if zeros := head.count(0):
        odd = head[1::2].count(0)
        if zeros * 3 >= len(head):
            if odd * 4 >= zeros * 3:
                return "utf-16le"
            if (zeros - odd) * 4 >= zeros * 3:
                return "utf-16be"
    if body.isascii():
        return "utf-8"
    try:
        # A body cut at a limit may end inside a character, if there were whole ones before.
        _, used = codecs.utf_8_decode(body, "strict", False)
    except UnicodeDecodeError:
        return _guess_legacy(body)
    return "windows-1252" if used < len(body) and body[:used].isascii() else "utf-8"


class _Legacy(NamedTuple):
    name: str
    languages: str
    letters: str
    share: float


_KANA: Final = "".join(map(chr, range(0x3041, 0x3094))) + "ー、。"
_HAN: Final = (
    "的一是不了在人有我他中大上到和也地出道得就要下以生自之可小多天而能好都然日于起成事只作想看文用主行方如前所本"
)
_CYRILLIC: Final = "оеаинтсрвлдкія"
_GREEK: Final = "αοιετσνηυρπκλμάόίςΆ"
_ARABIC: Final = "الينمرتوبهدعكس"
_CZECH: Final = "ěščřžýáíéůúťďňľôŠČŘŽÚ"
_POLISH: Final = "ąęłńóśźżćŚŻŁ"
_WIDE: Final = (
    _Legacy("shift_jis", "ja", _KANA, 0.5),
    _Legacy("euc-jp", "ja", _KANA, 0.5),
    _Legacy("euc-kr", "ko", "이는다을의가에고하지로기도한사은를리자있인스어대해들일시아서수그나", 0.35),
    _Legacy("gb18030", "zh", _HAN + "这来国个说们为时会过对里后么没还发当无开经动两与系统，。", 0.35),
    _Legacy("big5", "zh", _HAN + "這來國個說們為時會過對裡後麼沒還發當無開經動兩與系統，。", 0.35),
)
_OTHER_SCRIPTS: Final = (
    _Legacy("windows-1251", "ru uk be bg sr mk", _CYRILLIC, 0.75),
    _Legacy("koi8-r", "ru", _CYRILLIC, 0.75),
    _Legacy("koi8-u", "uk", _CYRILLIC + "їє", 0.75),
    _Legacy("iso-8859-5", "ru bg sr mk", _CYRILLIC, 0.75),
    _Legacy("ibm866", "ru", _CYRILLIC, 0.75),
    _Legacy("windows-1253", "el", _GREEK, 0.85),
    _Legacy("iso-8859-7", "el", _GREEK, 0.85),
    _Legacy("windows-1255", "he yi", "יוהלארתבמשנד", 0.75),
    _Legacy("windows-1256", "ar fa ur", _ARABIC, 0.75),
    _Legacy("iso-8859-6", "ar", _ARABIC, 0.75),
    _Legacy("windows-874", "th", "าเนรอกงมยลวดท่ตสะีป้ั", 0.75),
)
_LATIN: Final = (
    _Legacy(
        "windows-1252",
        "en fr de es it pt nl sv da nb no fi is ca gl",
        "àáâãäåæçèéêëìíîïñòóôõöøùúûüÿœßÉÈÀÇÊÄÖÜÅØÆÑÓÍ¿¡",
        0.9,
    ),
    _Legacy("windows-1250", "cs sk", _CZECH, 1.0),
    _Legacy("iso-8859-2", "cs sk", _CZECH, 1.0),
    _Legacy("windows-1250", "pl", _POLISH, 1.0),
    _Legacy("iso-8859-2", "pl", _POLISH, 1.0),
    _Legacy("windows-1250", "hr sl bs hu ro", "šđčćžáéíóöőúüűăâîşţŠČŽ", 1.0),
    _Legacy("windows-1254", "tr az", "ışğçöüİŞÇÖÜâî", 1.0),
    _Legacy("windows-1257", "lt lv et", "ąčęėįšųūžāēģīķļņäöüõ", 1.0),
)
_IN_ALL: Final = frozenset("\xa0’‘“”„«»–—…·•©®™°§")
"""Characters of all windows encodings, which therefore do not distinguish one from another."""
_SAMPLE_BYTES: Final = 16_384
# In a Latin script a non-ASCII byte is next to an ASCII letter; in other scripts, next to another one.
_BESIDE_ASCII: Final = re.compile(rb"(?<=[A-Za-z])[\x80-\xff]|(?<![\x80-\xff])[\x80-\xff](?=[A-Za-z])")
_BEYOND_ASCII: Final = re.compile(rb"[\x80-\xff]")
_LANGUAGE: Final = re.compile(rb"""<html\s[^<>]{0,400}?\blang\s{0,8}=\s{0,8}["']?([A-Za-z]{2,3})\b""", re.I)
_LEAST_WIDE, _LEAST_OTHER, _OF_LANGUAGE, _MOST_LATIN = 0.4, 0.6, 0.2, 0.15


def _guess_legacy(body: bytes) -> str:
    """Return the legacy encoding that fits the text best; the page's language is a hint."""
    found = _BEYOND_ASCII.search(body)
    start = found.start() if found else 0
    sample, named = body[start : start + _SAMPLE_BYTES], _LANGUAGE.search(body[:_PRESCAN_BYTES])
    language = named[1].decode().lower() if named else ""
    is_latin = len(_BESIDE_ASCII.findall(sample)) >= _MOST_LATIN * len(_BEYOND_ASCII.findall(sample))
    for encodings, least in ((_WIDE, _LEAST_WIDE), (() if is_latin else _OTHER_SCRIPTS, _LEAST_OTHER), (_LATIN, -9.0)):
        scored = [(_likeness(sample, one, language), one.name) for one in encodings]
        likeness, name = max(scored, key=itemgetter(0), default=(0.0, ""))
        if name and likeness >= least:
            return name
    return "windows-1252"


def _likeness(sample: bytes, encoding: _Legacy, language: str) -> float:
    text = _text(sample, encoding.name)
    counts = Counter(text if isinstance(text, str) else "")
    beyond = {char: count for char, count in counts.items() if char > "\x7f" and char not in _IN_ALL}
    # A decoder returns U+FFFD or a control character for bytes that the encoding does not use in text.
    wrong = sum(count for char, count in beyond.items() if char == "\ufffd" or char < "\xa0")
    right = sum(beyond.get(char, 0) for char in encoding.letters)
    of_language = _OF_LANGUAGE if language and language in encoding.languages.split() else 0.0
    return (right - 2 * wrong) / (sum(beyond.values()) or 1) / encoding.share + of_language


def _text(body: bytes, name: str) -> bytes | str:
    if name == "utf-8":
        return body
    if name in _MULTIBYTE:
        return body.decode(_ENCODINGS[name][0], "replace")
    return codecs.charmap_decode(body, "strict", _table(name))[0]


@cache
def _table(name: str) -> str:
    # Python's own decoders take 0.4 us for every unknown byte (3.7 s for 10 MB); a full table has none.
    codec = "ascii" if name == "refused" else _ENCODINGS[name][0]
    return "".join(bytes((byte,)).decode(codec, "replace") for byte in range(256))
