"""Complete HTML documents of our own, in the replay space and elsewhere."""

from __future__ import annotations

from holdfast.replay.links import escape


def html_document(title: str, body: str, head: str = "") -> str:
    """Return a complete document; all arguments must be markup already.

    It declares no charset: a frame around an archived page is sent in that page's charset.
    """
    return f'<!doctype html>\n<html lang="en"><head>{head}<title>{title}</title></head>\n<body>{body}</body></html>\n'


def html_page(title: str, body: str, *, style: str) -> str:
    """Return a UTF-8 page; the title is escaped here, the body and the style element are markup."""
    # The charset comes first: browsers look for it in the first kilobyte, and a style sheet is longer.
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">{style}'
    return html_document(escape(title), f"<main>\n{body}\n</main>", head)
