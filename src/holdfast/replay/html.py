"""Whole HTML documents of ours, in the replay space and beside it."""

from __future__ import annotations

from holdfast.replay.links import escape


def html_document(title: str, body: str, head: str = "") -> str:
    """Return a whole document of ours; all three are markup already.

    It names no charset by itself: a frame around an archived page is sent in that page's own.
    """
    return f'<!doctype html>\n<html lang="en"><head>{head}<title>{title}</title></head>\n<body>{body}</body></html>\n'


def html_page(title: str, body: str, *, style: str) -> str:
    """Return a page of ours in UTF-8; the title is escaped here, the body and the element with its style are markup."""
    # The charset comes first: browsers look for it in the first kilobyte, and a style sheet is longer.
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">{style}'
    return html_document(escape(title), f"<main>\n{body}\n</main>", head)
