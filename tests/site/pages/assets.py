"""Styles, scripts, pictures and fonts, and a page that needs them all."""

from __future__ import annotations

import base64

from tests.site.book import Group, html
from tests.site.wire import Exchange

assets = Group("assets", "styles, scripts, pictures and fonts, and a page that needs them all")

_PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
_LOGO = '<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"><circle cx="4" cy="4" r="3"/></svg>'
_RUDE_SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script><foreignObject><a href="/meta/title">x</a>'
    '</foreignObject><g id="a"><use href="#a"/><use href="#a"/></g></svg>'
)
_STYLE = """@charset "utf-8";
@import "theme.css";
@import url('/assets/print.css') print;
/* url(/assets/commented-out.png) */
body { background: url(pixel.png); font-family: Own }
.logo { background-image: url( "/assets/logo.svg" ) }
@font-face { font-family: Own; src: url(font.woff2) format("woff2"), url(data:font/woff2;base64,AAAA) }
"""

assets.fixed(
    "page",
    "a page with a style sheet, a script, pictures, a font and an icon",
    html(
        "assets",
        '<img src="/assets/pixel.png" alt=""><img src="/assets/logo.svg">'
        '<p style="background:url(/assets/pixel.png?i)">x</p>'
        '<script src="/assets/script.js"></script>'
        '<video poster="/assets/pixel.png?p"><source src="/assets/film.mp4"></video>',
        head='<link rel="stylesheet" href="/assets/style.css"><link rel="icon" href="/assets/icon.png">'
        '<link rel="preload" as="font" href="/assets/font.woff2" crossorigin>',
    ),
)

for _name, _story, _media, _body in (
    ("style.css", "imports two sheets, names a picture, a logo and a font", "text/css", _STYLE),
    ("theme.css", "imports the sheet that imports it", "text/css", '@import "style.css"; a { color: teal }'),
    ("print.css", "an ordinary sheet", "text/css", "body { color: black }"),
    (
        "broken.css",
        "a sheet that never ends what it begins",
        "text/css",
        "a { background: url('x.png ; } /* @import 'y.css",
    ),
    ("script.js", "an ordinary script", "text/javascript", "document.title = 'changed';"),
    ("pixel.png", "a picture of one pixel", "image/png", _PIXEL),
    ("icon.png", "an icon", "image/png", _PIXEL),
    ("logo.svg", "a drawing", "image/svg+xml", _LOGO),
    ("rude.svg", "a drawing with a script, a link and a loop", "image/svg+xml", _RUDE_SVG),
    ("font.woff2", "a font, or its first bytes", "font/woff2", b"wOF2" + bytes(60)),
    ("film.mp4", "a film, or its first bytes", "video/mp4", b"\0\0\0\x18ftypmp42" + bytes(1_000)),
):
    assets.fixed(_name, _story, _body, media=_media)


@assets.page("import", "sheet n imports sheet n+1, without end")
async def import_chain(exchange: Exchange) -> None:
    digits = exchange.rest.removesuffix(".css")
    following = int(digits) + 1 if digits.isdigit() else 1
    await exchange.reply(f'@import "/assets/import/{following}.css";', media="text/css")
