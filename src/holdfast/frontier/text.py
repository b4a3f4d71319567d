"""Text from the web on its way into a column: what no database takes is replaced, what is too long is cut."""

from __future__ import annotations


def clean(text: str | None, limit: int) -> str | None:
    """Return text that both databases store: no NUL (PostgreSQL), no lone surrogate (either), at most `limit` long."""
    if text is None:
        return None
    if len(text) > limit:
        text = text[:limit]
    if "\x00" in text:
        text = text.replace("\x00", "\ufffd")
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
