"""Sitemaps: whole, packed, nested, endless, hostile and cut."""

from __future__ import annotations

import asyncio
import functools
import gzip

from tests.site.book import Group, html
from tests.site.pages.encoding import bomb
from tests.site.wire import Exchange

sitemap = Group("sitemap", "sitemaps: whole, packed, nested, endless, hostile and cut")

_NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
_XML = '<?xml version="1.0" encoding="UTF-8"?>\n'
_PATHS = ["/meta/title", "/meta/description", "/assets/page"]


def _urlset(addresses: list[str], *, opening: str = f"<urlset {_NS}>") -> str:
    entries = "\n".join(f"<url><loc>{a}</loc><lastmod>2026-09-01</lastmod></url>" for a in addresses)
    return f"{_XML}{opening}\n{entries}\n</urlset>\n"


def _index(addresses: list[str]) -> str:
    entries = "\n".join(f"<sitemap><loc>{address}</loc></sitemap>" for address in addresses)
    return f"{_XML}<sitemapindex {_NS}>\n{entries}\n</sitemapindex>\n"


def _here(exchange: Exchange) -> list[str]:
    return [exchange.url(path) for path in _PATHS]


async def _xml(exchange: Exchange, text: str | bytes) -> None:
    await exchange.reply(text, media="application/xml")


@sitemap.page("plain.xml", "three addresses")
async def plain(exchange: Exchange) -> None:
    await _xml(exchange, _urlset(_here(exchange)))


@sitemap.page("gzip.xml.gz", "three addresses, packed, no Content-Encoding")
async def packed(exchange: Exchange) -> None:
    await exchange.reply(gzip.compress(_urlset(_here(exchange)).encode(), mtime=0), media="application/gzip")


@sitemap.page("gzip-twice.xml.gz", "packed twice")
async def packed_twice(exchange: Exchange) -> None:
    inner = gzip.compress(_urlset(_here(exchange)).encode(), mtime=0)
    await exchange.reply(gzip.compress(inner, mtime=0), media="application/gzip")


@sitemap.page("bomb.xml.gz", "packed zeros, 128 MiB", sample="mb=1")
async def packed_bomb(exchange: Exchange) -> None:
    body = await asyncio.to_thread(bomb, "gzip", int(exchange.number("mb", 128)))
    await exchange.reply(body, media="application/gzip")


@sitemap.page("text.txt", "one address a line")
async def text(exchange: Exchange) -> None:
    await exchange.reply("\n".join(_here(exchange)), media="text/plain")


@sitemap.page("text-bom.txt", "one address a line, with a byte order mark and CRLF")
async def text_bom(exchange: Exchange) -> None:
    await exchange.reply("\ufeff" + "\r\n".join(_here(exchange)), media="text/plain")


@sitemap.page("index.xml", "an index of the plain, the packed and the text one")
async def index(exchange: Exchange) -> None:
    names = ("plain.xml", "gzip.xml.gz", "text.txt")
    await _xml(exchange, _index([exchange.url(f"/sitemap/{name}") for name in names]))


@sitemap.page("recursive.xml", "an index that names itself")
async def recursive(exchange: Exchange) -> None:
    await _xml(exchange, _index([exchange.url("/sitemap/recursive.xml")]))


@sitemap.page("deep", "an index that names a deeper index, without end")
async def deep(exchange: Exchange) -> None:
    level = int(exchange.rest) + 1 if exchange.rest.isdigit() else 1
    await _xml(exchange, _index([exchange.url(f"/sitemap/deep/{level}")]))


@functools.lru_cache(maxsize=4)
def _many(base: str, count: int) -> bytes:
    return _urlset([f"{base}?n={n}" for n in range(count)]).encode()


@sitemap.page("many.xml", "`n` addresses (50,001: one too many)", sample="n=10")
async def many(exchange: Exchange) -> None:
    await _xml(exchange, _many(exchange.url("/meta/title"), int(exchange.number("n", 50_001))))


@sitemap.page("cut.xml", "cut in the middle of the third address")
async def cut(exchange: Exchange) -> None:
    whole = _urlset(_here(exchange))
    await _xml(exchange, whole[: whole.rindex("</loc>") - 4])


@sitemap.page("utf-16.xml", "UTF-16")
async def utf_16(exchange: Exchange) -> None:
    await _xml(exchange, _urlset(_here(exchange)).replace("UTF-8", "UTF-16").encode("utf-16"))


@sitemap.page("no-namespace.xml", "no namespace")
async def no_namespace(exchange: Exchange) -> None:
    await _xml(exchange, _urlset(_here(exchange), opening="<urlset>"))


@sitemap.page("wrong-namespace.xml", "another namespace")
async def wrong_namespace(exchange: Exchange) -> None:
    await _xml(
        exchange, _urlset(_here(exchange), opening='<urlset xmlns="http://www.google.com/schemas/sitemap/0.84">')
    )


@sitemap.page("foreign.xml", "addresses on the next host, on inner addresses and of other schemes")
async def foreign(exchange: Exchange) -> None:
    others = ["http://169.254.169.254/", "http://127.0.0.1:5432/", "file:///etc/passwd", "javascript:alert(1)", ""]
    await _xml(exchange, _urlset([exchange.url("/meta/title", hosts_on=1), *others]))


@sitemap.page("remote-dtd.xml", "a document type on this very host: asking for /sitemap/dtd is the mistake")
async def remote_dtd(exchange: Exchange) -> None:
    doctype = f'<!DOCTYPE urlset SYSTEM "{exchange.url("/sitemap/dtd")}">'
    await _xml(exchange, _urlset(_here(exchange), opening=f"{doctype}<urlset {_NS}>"))


sitemap.fixed("dtd", "what nobody may ask for", '<!ENTITY a "a">', media="application/xml-dtd")


def _laughs() -> str:
    levels = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    return f'{_XML}<!DOCTYPE u [<!ENTITY l0 "lol">{levels}]><urlset {_NS}><url><loc>&l9;</loc></url></urlset>'


for _name, _story, _body in (
    ("laughs.xml", "a billion laughs", _laughs()),
    (
        "quadratic.xml",
        "one long entity, used many times",
        f'{_XML}<!DOCTYPE u [<!ENTITY a "{"a" * 50_000}">]>'
        f"<urlset {_NS}><url><loc>{'&a;' * 5_000}</loc></url></urlset>",
    ),
    (
        "entity-file.xml",
        "an entity that is a local file",
        f'{_XML}<!DOCTYPE u [<!ENTITY f SYSTEM "file:///etc/hostname">]><urlset {_NS}><url><loc>http://127.0.0.2/&f;</loc></url></urlset>',
    ),
    (
        "entity-parameter.xml",
        "a parameter entity that is a local file",
        f'{_XML}<!DOCTYPE u [<!ENTITY % p SYSTEM "file:///etc/hostname"> %p;]><urlset {_NS}></urlset>',
    ),
    ("html.xml", "HTML instead", html("Not found", "<p>no sitemap here</p>")),
    ("empty.xml", "nothing", ""),
    ("nested-deep.xml", "100,000 nested elements", f"{_XML}<urlset {_NS}>" + "<url>" * 100_000),
):
    sitemap.fixed(_name, _story, _body, media="application/xml")
