"""Parses strings to Url; nothing else does. Rejects, with a message, anything but an http(s) URL to request.

Also computes the SURT, the key by which archives sort and look up captures: `org,example)/path?query`. It
merges more than the normalised URL does (case, session ids, `www`), so it finds captures and never identifies
one. It rejects nothing: an archive contains URLs that no crawl would request.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from struct import Struct
from typing import Final
from urllib.parse import unquote_to_bytes

import url as whatwg
from url import URL, URLError

from holdfast.errors import UrlRefused
from holdfast.urls.sites import DEFAULT, Normalisation, sites_of
from holdfast.values import dataclass

MAX_URL_CHARS: Final = 8192
# A crawl parses each page's URL twice, for the request and the response: 11 us each time.
_REMEMBERED_ADDRESSES: Final = 1024

# What the WHATWG parser ignores at both ends, and anywhere.
EDGES = "".join(map(chr, range(0x21)))
IGNORED = {ord("\t"): None, ord("\n"): None, ord("\r"): None}

# Everything up to the end of the authority of an absolute or scheme-relative reference, in any spelling that the
# parser would take for one. The authority ends at `/`, `?` or `#`; a backslash would end it too, and is refused.
_AUTHORITY = re.compile(r"(?:https?:[/\\]*|[/\\]{2,})([^/?#]*)", re.IGNORECASE)
_PARTS = re.compile(r"[^/\\?#]+")
_NO_HOST = re.compile(r"(?:https?:)?[/\\]{3,}", re.IGNORECASE)
_HEAD = re.compile(r"[^/?#]*")

_FIRST_64_BITS: Final = Struct(">q24x")


def hash64(normalised: str) -> int:
    """Return the first 64 bits of the SHA-256 of a normalised URL, as the signed integer that databases store."""
    bits: int = _FIRST_64_BITS.unpack(sha256(normalised.encode()).digest())[0]
    return bits


def hash64_all(normalised: Iterable[str]) -> list[int]:
    """Return `hash64` of each, in order; a third less time per URL for many URLs."""
    digests = b"".join([sha256(text.encode()).digest() for text in normalised])
    return [bits for (bits,) in _FIRST_64_BITS.iter_unpack(digests)]


def url_hash(normalised: str) -> str:
    return sha256(normalised.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Url:
    """A URL to request, and everything derived from its text."""

    fetch: str
    """The URL as found, serialised by the WHATWG parser without the fragment: the one to request."""
    normalised: str
    """The normal form: identity of the page."""
    scheme: str
    host: str
    """In lower case and ASCII; IPv6 in brackets."""
    port: int
    """The port to connect to, whether it was written or not."""
    domain: str
    """The politeness key: the host, plus the port when it is neither 80 nor 443."""
    origin: str
    """`scheme://host`, plus the port if it is not the scheme's default: the area covered by one robots.txt."""
    hash64: int

    @property
    def url_hash(self) -> str:
        return url_hash(self.normalised)

    @property
    def key(self) -> str:
        """The SURT key of the URL as found, as written in other archives' indexes."""
        return surt(self.fetch)

    @property
    def group(self) -> str:
        """Scheme, host and path without the query: one entry in a list of pages."""
        return self.normalised.partition("?")[0]


def host_problem(reference: str) -> str | None:
    """Return why the host of a reference is misleading, or None: credentials and backslashes before the path.

    With a backslash before its `@`, `http://127.0.0.1@example.com/` is 127.0.0.1 to one parser and example.com to
    another; neither is requested.
    """
    if "\\" not in reference and "@" not in reference:
        return None
    match = _AUTHORITY.match(reference.strip(EDGES).translate(IGNORED))
    if match is None:
        return None
    if "\\" in match[0]:
        return "it has a backslash before its path, which hides the host"
    return (
        "it carries a user name or password; credentials belong in the source's settings" if "@" in match[1] else None
    )


_PROBLEMS: Final[dict[type[Exception], str]] = {
    whatwg.RelativeURLWithoutBase: "it has no scheme; write https:// in front",
    whatwg.EmptyHost: "it names no host",
    whatwg.InvalidPort: "its port is no number from 1 to 65535",
    whatwg.InvalidIPv4Address: "its host looks like an IPv4 address but is invalid",
    whatwg.InvalidIPv6Address: "the text in brackets is no IPv6 address (zone ids are not accepted)",
    whatwg.InvalidDomainCharacter: "its host has a character that no host name has",
    whatwg.IdnaError: "its host is no valid (international) name",
    UnicodeEncodeError: "it holds half a character (a lone surrogate)",
}


def _written_out(text: str) -> str:
    """Return the WHATWG parser's serialisation, or raise `UrlRefused`."""
    if len(text) > MAX_URL_CHARS:
        raise _refusal(text, f"it is longer than {MAX_URL_CHARS} characters")
    try:
        parsed = whatwg.URL.parse(text)
    except (whatwg.URLError, ValueError) as exc:
        raise _refusal(text, _PROBLEMS.get(type(exc), str(exc))) from None
    if parsed.scheme not in ("http", "https"):
        raise _refusal(text, f"only http and https are fetched, not {parsed.scheme}")
    if problem := host_problem(text):
        raise _refusal(text, problem)
    written = str(parsed).partition("#")[0]
    if len(written) > MAX_URL_CHARS:
        raise _refusal(text, f"written out it is longer than {MAX_URL_CHARS} characters")
    return written


def _refusal(text: str, reason: str) -> UrlRefused:
    return UrlRefused(without_userinfo(text), reason)


def without_userinfo(text: str) -> str:
    """Return a text without anything that could be credentials before its first `@`; one pass, whatever it
    contains.
    """
    # Truncate first: a message never shows more, and a hostile page's text may be megabytes.
    text = text[:MAX_URL_CHARS]
    for found in _PARTS.finditer(text):
        part, start = found[0], found.start()
        last = part.rfind("@")
        # After a slash everything may be credentials; otherwise only the part after a scheme and its colon.
        first = 0 if start and text[start - 1] in "/\\" else part.find(":", 0, max(last, 0)) + 1 or None
        if last >= 0 and first is not None:
            return text[: start + first] + text[start + last + 1 :]
    return text


@lru_cache(maxsize=_REMEMBERED_ADDRESSES)
def parse(text: str, policy: Normalisation = DEFAULT) -> Url:
    """Parse a URL; raise `UrlRefused`, whose message names the problem and repeats no password.

    Surrounding white space and inner TAB, CR and LF are dropped, once, as the WHATWG standard requires.
    """
    fetch = _written_out(text.strip(EDGES))
    end = fetch.index("/", 8)
    sites = sites_of(policy)
    site = sites.get(fetch[:end])
    if isinstance(site, str):
        raise _refusal(text, site)
    normalised = site.prefix + sites.spelling.normalise(fetch[end:])
    return Url(
        fetch=fetch,
        normalised=normalised,
        scheme=site.scheme,
        host=site.host,
        port=site.port,
        domain=site.domain,
        origin=site.origin,
        hash64=hash64(normalised),
    )


def _starts_with_host(typed: str) -> bool:
    match = _HEAD.match(typed)
    head = match[0] if match else ""
    host, colon, port = head.partition(":")
    # An IPv6 address contains colons.
    if head.startswith("["):
        return "]" in head
    if "@" in head or "\\" in head or (colon and not port.isdecimal()):
        return False
    return host.lower() == "localhost" or ("." in host and not host.startswith("."))


def parse_seed(text: str, policy: Normalisation = DEFAULT) -> Url:
    """Parse a URL typed by a person: `example.org/path` and `localhost:8000` mean https; raise `UrlRefused`.

    A word without a dot does not count as a host.
    """
    typed = text.strip(EDGES)
    if _NO_HOST.match(typed):
        raise _refusal(text, "it names no host between its slashes")
    if _starts_with_host(typed):
        return parse(f"https://{typed}", policy)
    if typed.startswith("//"):
        return parse(f"https:{typed}", policy)
    return parse(typed, policy)


def typed_host(text: str) -> str:
    """Return a typed host in its stored form: lower case, ASCII, no trailing dot, only a non-default port.

    An invalid host is returned in lower case: a lookup will not find it.
    """
    try:
        return parse_seed(text).domain
    except UrlRefused:
        return text.strip().lower()


MAX_KEY_BYTES = 2000
"""Longer keys end in a hash of the rest: a PostgreSQL index accepts no entry above 2,704 bytes."""


def shortened(key: str) -> str:
    raw = key.encode("utf-8", "replace")
    if len(raw) <= MAX_KEY_BYTES:
        return key
    # Truncate by bytes, which may split a character: drop that one. The hash keeps two long keys distinct.
    return raw[: MAX_KEY_BYTES - 34].decode("utf-8", "ignore") + "~" + sha256(raw).hexdigest()[:32]


def url_key(url: str) -> str:
    """Return the key under which snapshots of this URL are stored: its SURT, shortened if very long."""
    return shortened(surt(url))


def normalised_or_plain(url: str) -> str:
    """Return the normalised URL; for anything but an http(s) URL, the text before its fragment."""
    try:
        return parse(url).normalised
    except UrlRefused:
        return url.partition("#")[0]


def page_key(url: str) -> str:
    """Return the key for takedowns of a URL: that of its normalised form.

    It merges what either identity merges: scheme, `www.`, case, session ids and a trailing slash as the SURT does,
    tracking parameters and the order of the query as the normaliser does.
    """
    return url_key(normalised_or_plain(url))


SURT_VERSION: Final = 1
"""Increased with any change that gives a URL another key: older indexes must then be rebuilt."""

_HAS_HOST = re.compile(r"[a-z][a-z0-9+.\-]*://", re.IGNORECASE)
_OPAQUE = re.compile(r"[a-z][a-z0-9+.\-]*:(?!\d)", re.IGNORECASE)
_SURT_PARTS = re.compile(r"[^:]*://(?:[^/?#]*@)?([^/?#]*)([^?#]*)(?:\?([^#]*))?", re.DOTALL)
_WWW = re.compile(r"^www\d*\.(?=.)")
_BLANKS = re.compile(r"\s")
_HEX = frozenset("0123456789abcdefABCDEF")
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_DOUBLED = re.compile(r"%(?:25)+")

_MUST_ESCAPE = {code: f"%{code:02x}" for code in (*range(0x21), *range(0x7F, 0x100), ord("#"), ord("%"))}

_PATH_SESSION = re.compile(r";jsessionid=[0-9a-z]{32}(?![0-9a-z])")
_ASPX_SESSION = re.compile(r"/\((?:[0-9a-z]{24}|(?:[a-z]\([0-9a-z]{24}\))+)\)(?=/)")
_QUERY_SESSION = re.compile(r"(?:jsessionid|phpsessid|sid)=[0-9a-z]{32}|aspsessionid[a-z]{8}=[a-z]{24}")


def surt(url: str) -> str:
    """Return the SURT of a URL, without blanks; never raises: a text without a host is its own key."""
    text = url.strip()
    if not text:
        return "-"
    if not _HAS_HOST.match(text):
        if _OPAQUE.match(text):
            return _BLANKS.sub("%20", text)
        # Another archive's index may have URLs without a scheme.
        text = f"http://{text}"
    host, port, path, query = _parts(text)
    labels = ",".join(reversed(_WWW.sub("", host).split(".")))
    key = f"{labels}{port}){_path(path)}"
    return f"{key}?{arguments}" if query and (arguments := _query(query)) else key


def _parts(text: str) -> tuple[str, str, str, str]:
    """Return host, `:port` if not the scheme's default, path and query: as parsed, or else by appearance."""
    try:
        parsed = URL.parse(text)
    except (URLError, ValueError):
        parsed = None
    if parsed is None or not parsed.host_str:
        match = _SURT_PARTS.match(text)
        assert match is not None  # every text that reaches this has a scheme and `://`
        return _escaped(match[1]), "", match[2], match[3] or ""
    port = "" if parsed.port is None else f":{parsed.port}"
    return parsed.host_str.lower().strip("."), port, parsed.path, parsed.query or ""


def _path(path: str) -> str:
    text = _escaped(path)
    if ";jsessionid=" in text:
        text = _PATH_SESSION.sub("", text)
    if ".aspx" in text and "(" in text:
        text = _ASPX_SESSION.sub("", text)
    segments: list[str] = []
    for segment in text.split("/"):
        if segment == "..":
            del segments[-1:]
        elif segment not in ("", "."):
            segments.append(segment)
    return "/" + "/".join(segments)


def _query(query: str) -> str:
    text = _escaped(query)
    # Sort by name, then value, like other archive tools: a key must be the same in every index.
    arguments = sorted(map(_split, text.split("&")))
    if "cftoken=" in text:
        arguments = [argument for argument in arguments if argument[0] not in ("cfid", "cftoken")]
    if "sid=" in text or "sessionid" in text:
        arguments = [argument for argument in arguments if not _QUERY_SESSION.fullmatch("".join(argument))]
    return "&".join(map("".join, arguments))


def _split(argument: str) -> tuple[str, str, str]:
    return argument.partition("=")


def _escaped(text: str) -> str:
    """Return the text in lower case, unescaped until nothing is left to unescape, then escaped once."""
    if "%" in text or not text.isascii():
        # Latin-1 maps each byte to one character, whatever encoding the URL was escaped in.
        text = unquote_to_bytes(text.encode("utf-8", "surrogatepass")).decode("latin-1")
        if _ESCAPE.search(text):
            text = _unescaped(text)
    return text.translate(_MUST_ESCAPE).lower()


def _unescaped(text: str) -> str:
    """Return the text with nested escapes resolved too: from the left, in one pass, however deeply nested."""
    done: list[str] = []
    pending = 0  # how many `%` or `%h` stand at the end of `done`, each waiting for what the next one turns into
    for char in _DOUBLED.sub("%", text):
        while pending and char in _HEX:
            last = done[-1]
            if last == "%":
                done.append(char)
                break
            del done[-2:]
            pending -= 1
            char = chr(int(last + char, 16))
        else:
            done.append(char)
            pending = pending + 1 if char == "%" else 0
    return "".join(done)
