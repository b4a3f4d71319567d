"""Comparisons as escaped HTML, as plain text, and in their stored form.

Everything from a page is escaped or plain data here; nothing is ever trusted as markup.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape

import zstandard

from holdfast.changes.alignment import Part, PartKind
from holdfast.changes.compare import DiffLine, Hunk, LineKind

MAX_STORED_BYTES = 32 << 20
"""Limit of a stored diff; 400 lines of 4,000 characters need less than a fifth of it."""

_MARKS = {LineKind.CONTEXT: " ", LineKind.REMOVED: "-", LineKind.ADDED: "+"}
_CLASSES = {LineKind.CONTEXT: "context", LineKind.REMOVED: "del", LineKind.ADDED: "add"}
_WORDS = {PartKind.REMOVED: "del", PartKind.ADDED: "ins"}
_PARTS = {kind[0]: kind for kind in PartKind}
_LEVEL = 6


def pack(hunks: Sequence[Hunk], touched: Sequence[str]) -> bytes | None:
    """Return hunks and section titles in their stored form; None if there is nothing to show."""
    if not hunks:
        return None
    content = {
        "touched": list(touched),
        "hunks": [
            [
                *hunk[:4],
                [[_MARKS[line.kind], [[part.kind[0], part.text] for part in line.parts]] for line in hunk.lines],
            ]
            for hunk in hunks
        ],
    }
    # Half a character, which a page may hold, is no UTF-8: it is replaced below.
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return zstandard.compress(text.encode("utf-8", "replace"), _LEVEL)


def unpack(body: bytes | None) -> tuple[tuple[Hunk, ...], tuple[str, ...]]:
    if body is None:
        return (), ()
    # The size is bounded although the row is ours: a database may come from elsewhere. Asked first, because zstandard
    # applies `max_output_size` only where a frame does not say how large it is.
    if zstandard.frame_content_size(body) > MAX_STORED_BYTES:
        raise zstandard.ZstdError("a stored diff is larger than any that is written")
    content = json.loads(zstandard.decompress(body, max_output_size=MAX_STORED_BYTES))
    kinds = {mark: kind for kind, mark in _MARKS.items()}
    hunks = tuple(
        Hunk(a, a_count, b, b_count, tuple(_line(kinds[mark], pieces) for mark, pieces in rows))
        for a, a_count, b, b_count, rows in content["hunks"]
    )
    return hunks, tuple(content["touched"])


def _line(kind: LineKind, pieces: list[list[str]]) -> DiffLine:
    return DiffLine(kind, tuple(Part(_PARTS[word], text) for word, text in pieces))


def diff_html(hunks: Iterable[Hunk]) -> str:
    """Return the diff as a unified view in HTML, empty without hunks; changed words are in `del` and `ins`."""
    rows: list[str] = []
    for hunk in hunks:
        # Escaped here, line by line: this string is put into a page as it is.
        rows.append(_row("hunk", escape(hunk_head(hunk))))
        rows += [_row(_CLASSES[line.kind], _MARKS[line.kind] + _html_parts(line)) for line in hunk.lines]
    return "\n".join(rows)


def _row(kind: str, code: str) -> str:
    return f'<div class="ha-diff-line ha-diff-{kind}"><code>{code}</code></div>'


def _html_parts(line: DiffLine) -> str:
    if len(line.parts) == 1:
        return escape(line.text)
    return "".join(
        f"<{tag}>{escape(part.text)}</{tag}>" if (tag := _WORDS.get(part.kind)) else escape(part.text)
        for part in line.parts
    )


def diff_text(hunks: Iterable[Hunk]) -> str:
    rows: list[str] = []
    for hunk in hunks:
        rows += [hunk_head(hunk), *(_MARKS[line.kind] + line.text for line in hunk.lines)]
    return "\n".join(rows)


def hunk_head(hunk: Hunk) -> str:
    """Return the `@@` line of a hunk; an empty side names the line before it, as in unified diffs."""
    return f"@@ -{_place(hunk.a_start, hunk.a_count)} +{_place(hunk.b_start, hunk.b_count)} @@"


def _place(start: int, count: int) -> str:
    first = start + 1 if count else start
    return f"{first}" if count == 1 else f"{first},{count}"
