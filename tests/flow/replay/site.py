"""A small website with what pages lean on: styles, images, a font, frames, redirects, relative links."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.flow.replay.font import make_font

_SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{0}"><rect width="{0}" height="{0}" fill="{1}"/></svg>'
)
_HTML = "text/html; charset=utf-8"
_CSS = "text/css"
_IMAGE = "image/svg+xml"

_HOME = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Tide tables</title>
<link rel="stylesheet" href="styles/main.css"><link rel="icon" href="/img/mark.svg">
<link rel="preconnect" href="https://tracker.example/"><link rel="dns-prefetch" href="//tracker.example">
<meta http-equiv="Content-Security-Policy" content="img-src 'none'">
<style>#inline { background-image: url('img/square.svg') }</style></head>
<body><h1 id="title">Tide tables</h1><p class="box">AAA</p>
<img id="plain" src="img/square.svg" alt=""><img id="set" srcset="/img/mark.svg 1x, img/square.svg 2x" alt="">
<img src="//tracker.example/pixel.gif" alt=""><div id="inline" style="width:20px;height:20px">x</div>
<div id="attribute" style="width:9px;background:url(&quot;img/square.svg&quot;)">x</div>
<a id="deep" href="notes/deep/?a=1&amp;copy=2" target="_blank">deeper</a> <a id="old" href="/old">moved</a>
<a id="away" href="https://elsewhere.example/">elsewhere</a> <a id="jump" href="#title">up</a>
<iframe id="frame" src="frame.html"></iframe>
<script src="app.js"></script></body></html>"""

_DEEP = """<!doctype html><html><head><meta charset="utf-8"><base href="/notes/"><title>Deep</title>
<link rel="stylesheet" href="../styles/main.css"></head><body><h1>Deep notes</h1>
<a id="up" href="../">home</a> <a id="soon" href="soon.html">soon</a><img id="based" src="deep/here.svg" alt="">
</body></html>"""


def pages() -> dict[str, tuple[str, bytes]]:
    """Return the site: media type and body by path."""
    texts = {
        "/": (_HTML, _HOME),
        "/notes/deep/?a=1&copy=2": (_HTML, _DEEP),
        "/notes/soon.html": (_HTML, '<meta http-equiv="refresh" content="0; url=later.html"><title>Soon</title>soon'),
        "/notes/later.html": (_HTML, "<!doctype html><title>Later</title><h1>Later</h1>"),
        "/new": (_HTML, '<!doctype html><title>New</title><h1>The new place</h1><a id="home" href=".">home</a>'),
        "/frame.html": (_HTML, '<!doctype html><title>F</title><p id="inside">framed</p><img src="img/mark.svg">'),
        "/app.js": ("text/javascript", "document.documentElement.dataset.ran = 'yes';"),
        "/styles/main.css": (
            _CSS,
            "@import 'more.css';\n@font-face { font-family: Box; src: url(../fonts/box.ttf) }\n"
            ".box { font-family: Box; color: rgb(10, 20, 30) } h1 { background: url('/img/mark.svg') no-repeat }",
        ),
        "/styles/more.css": (_CSS, "h1 { letter-spacing: 3px }"),
        "/img/square.svg": (_IMAGE, _SVG.format(20, "teal")),
        "/img/mark.svg": (_IMAGE, _SVG.format(10, "crimson")),
        "/notes/deep/here.svg": (_IMAGE, _SVG.format(30, "navy")),
    }
    found = {path: (kind, text.encode()) for path, (kind, text) in texts.items()}
    found["/fonts/box.ttf"] = ("font/ttf", make_font())
    return found


@contextmanager
def live_site() -> Iterator[str]:
    """Serve the site; afterwards its port is closed and nothing answers there."""
    known = pages()

    class Visit(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if self.path == "/old":
                self.send_response(301)
                self.send_header("Location", "/new")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            kind, body = known.get(self.path, ("text/plain", b"nothing"))
            self.send_response(200 if self.path in known else 404)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Set-Cookie", "visitor=1")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Visit)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
