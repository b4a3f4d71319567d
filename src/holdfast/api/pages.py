"""The few pages of the application's own host: plain HTML, no script, one style sheet, everything escaped."""

from __future__ import annotations

from html import escape

STYLE = """:root{color-scheme:light dark;--ink:#1b2a2f;--paper:#fff;--soft:#eef3f4;--line:#c9d6d9;--link:#0b4f9e}
@media(prefers-color-scheme:dark){:root{--ink:#e8eef0;--paper:#14191b;--soft:#243035;--line:#3d4c52;--link:#8ec5ff}}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:var(--ink);
background:var(--paper)}a{color:var(--link)}code{background:var(--soft);padding:.1em .3em;border-radius:.2em;
overflow-wrap:anywhere}h2{margin-top:2.5rem;border-bottom:1px solid var(--line)}.url{overflow-wrap:anywhere}
table{border-collapse:collapse;width:100%}td,th{text-align:left;vertical-align:top;padding:.25rem .75rem .25rem 0}
.verb{font-weight:700}label{display:block;margin:1rem 0 .25rem}input,select,textarea,button{font:inherit;color:inherit;
background:var(--soft);border:1px solid var(--line);border-radius:.3em;padding:.4em .6em;max-width:100%;
box-sizing:border-box}textarea{width:100%;min-height:9rem}.trap{position:absolute;left:-999rem}main{overflow-wrap:anywhere}
@media(max-width:40rem){td{display:block;padding:.1rem 0}td:first-child{padding-top:.75rem}}"""


def page(title: str, body: str) -> str:
    """Return a whole page; the title is escaped here, the body is markup already."""
    return (
        f"<!DOCTYPE html><html lang=en><meta charset=utf-8><title>{escape(title)}</title>"
        '<meta name=viewport content="width=device-width,initial-scale=1"><link rel=stylesheet href=/style.css>'
        f"<main>{body}</main></html>\n"
    )
