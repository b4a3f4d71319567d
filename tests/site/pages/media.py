"""Things that are not what their label says, and things too large to keep whole."""

from __future__ import annotations

from tests.site.book import Group, html
from tests.site.wire import Exchange

media = Group("media", "media types that lie, and bodies too large to keep whole (`mb`)")

_PDF = (
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
    b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"
)
_ZIP = b"PK\x05\x06" + bytes(18)
_HTML = html("mislabelled", '<a href="/meta/title">x</a>')

for _name, _story, _type, _body in (
    ("pdf", "a PDF", "application/pdf", _PDF),
    ("pdf-as-html", "a PDF that says it is HTML", "text/html", _PDF),
    ("zip-as-html", "a ZIP that says it is HTML", "text/html", _ZIP),
    ("exe-as-html", "a program that says it is HTML", "text/html", b"MZ" + bytes(range(256)) * 8),
    ("html-as-text", "HTML that says it is plain text", "text/plain", _HTML),
    ("html-as-octets", "HTML that says it is nothing in particular", "application/octet-stream", _HTML),
    ("html-as-image", "HTML that says it is a picture", "image/png", _HTML),
    ("none", "HTML without a media type", None, _HTML),
    ("nonsense", "a media type that is none", ";;;/,text", _HTML),
    ("params", "a media type with 1 kB of parameters", "text/html; " + "; ".join(f"p{n}=v" for n in range(170)), _HTML),
    ("xhtml", "application/xhtml+xml", "application/xhtml+xml", _HTML),
    ("json", "JSON", "application/json", '{"a": [1, 2, {"b": "/meta/title"}]}'),
    ("text", "plain text", "text/plain; charset=utf-8", "Plain words.\nhttp://127.0.0.2/not-a-link\n"),
):
    media.fixed(_name, _story, _body, media=_type)

for _name, _filename in (
    ("name-dots", "../../x"),
    ("name-device", "CON"),
    ("name-nul", "a%00b"),
    ("name-long", "n" * 4_096),
    ("name-absolute", "/etc/cron.d/x"),
):
    _header = ("Content-Disposition", f'attachment; filename="{_filename}"')
    media.fixed(
        _name, f"a download called `{_filename[:20]}`", b"data", headers=[_header], media="application/octet-stream"
    )


@media.page("large", "`mb` (200) mebibytes with an honest length", sample="mb=1")
async def large(exchange: Exchange) -> None:
    mib = int(exchange.number("mb", 200))
    head = f"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nContent-Length: {mib * 1024 * 1024}\r\n\r\n"
    await exchange.send(head.encode())
    for _ in range(mib):
        await exchange.send(bytes(1024 * 1024))


@media.page("large-html", "`mb` (200) mebibytes of HTML with an honest length", sample="mb=1")
async def large_html(exchange: Exchange) -> None:
    mib = int(exchange.number("mb", 200))
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {mib * 1024 * 1024}\r\n\r\n"
    await exchange.send(head.encode())
    for _ in range(mib):
        await exchange.send(b"<p>a paragraph of words</p>\n    " * (1024 * 1024 // 32))


@media.page("only-for-robots", "small to a browser, `mb` (50) mebibytes to everybody else", sample="mb=1")
async def only_for_robots(exchange: Exchange) -> None:
    if exchange.request.headers.get("user-agent", "").startswith("Mozilla/"):
        await exchange.reply(_HTML)
    else:
        await large_html(exchange)
