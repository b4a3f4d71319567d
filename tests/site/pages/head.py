"""Heads that break the rules of HTTP, or follow them to the letter and still hurt."""

from __future__ import annotations

from tests.site.book import Group, html

head = Group("head", "status lines and headers that break the rules")

_BODY = html("heads", "<p>a body behind a strange head</p>").encode()
_TAIL = b"Content-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(_BODY) + _BODY


def _with(header: bytes, status: bytes = b"HTTP/1.1 200 OK") -> bytes:
    return status + b"\r\n" + header + _TAIL


_MANY = b"".join(b"X-Header-%d: %d\r\n" % (n, n) for n in range(10_000))

for _name, _story, _data in (
    ("many", "10,000 headers", _with(_MANY)),
    ("big", "one header of 1 MB", _with(b"X-Big: " + b"x" * 1_000_000 + b"\r\n")),
    ("big-name", "a header name of 100 kB", _with(b"X-" + b"n" * 100_000 + b": 1\r\n")),
    ("nul", "a NUL inside a header value", _with(b"X-Nul: a\0b\r\n")),
    ("fold", "a header folded over two lines (obsolete)", _with(b"X-Fold: one\r\n  two\r\n")),
    ("fold-first", "the first header line starts with a space", _with(b" X-Fold: one\r\n")),
    ("latin-1", "Latin-1 in a header value", _with("X-Name: Café\r\n".encode("latin-1"))),
    ("utf-8", "UTF-8 in a header value", _with("X-Name: Café ☕\r\n".encode())),
    ("bare-cr", "a bare CR inside a header value", _with(b"X-Cr: a\rb\r\n")),
    ("bare-lf", "lines that end in LF alone", _with(b"X-Lf: 1\r\n").replace(b"\r\n", b"\n", 3)),
    ("no-colon", "a header line without a colon", _with(b"this is no header\r\n")),
    ("space-colon", "a space before the colon", _with(b"X-Space : 1\r\n")),
    ("no-name", "a header without a name", _with(b": nameless\r\n")),
    ("no-status", "headers, but no status line", b"Content-Type: text/html\r\n\r\n" + _BODY),
    ("http-0.9", "HTTP/0.9: only a body", _BODY),
    ("http-2", "a status line that says HTTP/2", _with(b"", b"HTTP/2 200 OK")),
    ("http-1.0", "HTTP/1.0 without a length", b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n" + _BODY),
    ("icy", "a status line of another protocol", _with(b"", b"ICY 200 OK")),
    ("999", "status 999", _with(b"", b"HTTP/1.1 999 Request denied")),
    ("099", "status 099", _with(b"", b"HTTP/1.1 099 Early")),
    ("status-word", "a status that is no number", _with(b"", b"HTTP/1.1 two-hundred OK")),
    ("status-long", "a status of five digits", _with(b"", b"HTTP/1.1 20000 OK")),
    ("no-reason", "no reason behind the status", _with(b"", b"HTTP/1.1 200")),
    ("reason-big", "a reason of 1 MB", _with(b"", b"HTTP/1.1 200 " + b"y" * 1_000_000)),
    ("reason-latin-1", "Latin-1 in the reason", _with(b"", b"HTTP/1.1 200 D'accord, \xe9t\xe9")),
    ("garbage", "noise instead of an answer", bytes(range(256)) * 16),
    ("tls", "a TLS alert on a plain port", b"\x15\x03\x01\x00\x02\x02\x46"),
    (
        "upgrade",
        "101 Switching Protocols, unasked",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n" + _BODY,
    ),
    ("empty-head", "an empty line before the status line", b"\r\n\r\n" + _with(b"")),
    ("date-nonsense", "a Date that is none", _with(b"Date: yesterday, about noon\r\n")),
    ("modified-9999", "Last-Modified in the year 9999", _with(b"Last-Modified: Fri, 31 Dec 9999 23:59:59 GMT\r\n")),
    ("etag-big", "an ETag of 1 MB", _with(b'ETag: "' + b"e" * 1_000_000 + b'"\r\n')),
    ("alt-svc", "Alt-Svc to an inner address", _with(b'Alt-Svc: h3="127.0.0.1:5432"; ma=86400\r\n')),
    ("preload", "Link preload of an inner address", _with(b"Link: <http://169.254.169.254/>; rel=preload\r\n")),
    ("hsts", "Strict-Transport-Security over plain HTTP", _with(b"Strict-Transport-Security: max-age=31536000\r\n")),
    ("refresh", "a Refresh header", _with(b"Refresh: 0; url=/meta/title\r\n")),
):
    head.raw(_name, _story, _data)
