"""The few pages that we write ourselves beside archived ones: plain HTML, no script, nothing loaded, all escaped."""

from __future__ import annotations

from holdfast.replay.entities import escape

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#1b1b1b;"
    "background:#fff}a{color:#0b4f9e}h1{font-size:1.5rem;overflow-wrap:anywhere}h2{font-size:1.2rem}"
    "table{border-collapse:collapse}td,th{padding:.2rem .4rem;text-align:left;vertical-align:top}"
    ".months td,.months th{text-align:right}caption{font-weight:600;text-align:left}.day{white-space:nowrap}"
    ".months{display:flex;flex-wrap:wrap;gap:1.5rem;align-items:flex-start}"
    ".months td a{background:#cfe6ff;color:#0b2f5e;border-radius:.3rem;padding:0 .2rem}"
    ".url{overflow-wrap:anywhere}small{color:#555}nav a,nav strong{margin-right:1rem}"
    "@media(prefers-color-scheme:dark){body{background:#161616;color:#eee}a{color:#8ec5ff}small{color:#aaa}}"
)


def page(title: str, body: str) -> bytes:
    """Return a whole page; the title is escaped here, the body is markup already."""
    return (
        "<!doctype html>\n"
        f'<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<style>{_STYLE}</style></head>\n<body><main>\n{body}\n</main></body></html>\n"
    ).encode()


def refusal(title: str, message: str, *links: tuple[str, str]) -> bytes:
    """Return a page that says why there is nothing to show, and where to look instead."""
    listed = "".join(f'<li><a href="{escape(href)}">{escape(text)}</a></li>' for text, href in links)
    more = f"<ul>{listed}</ul>" if listed else ""
    return page(title, f'<h1>{escape(title)}</h1>\n<p class="url">{escape(message)}</p>{more}')
