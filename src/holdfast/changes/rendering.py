"""Comparisons as escaped HTML, as plain text, and in their stored form.

Everything from a page is escaped or plain data here; nothing is ever trusted as markup.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape

import zstandard

from holdfast.changes.alignment import DiffPart, PartKind
from holdfast.changes.compare import DiffHunk, DiffRow, LineKind

MAX_STORED_BYTES = 32 << 20
"""Limit of a stored diff; 400 lines of 4,000 characters need less than a fifth of it."""

_MARKS: dict[str, str] = {LineKind.CONTEXT: " ", LineKind.REMOVED: "-", LineKind.ADDED: "+"}
_CLASSES: dict[str, str] = {LineKind.CONTEXT: "context", LineKind.REMOVED: "del", LineKind.ADDED: "add"}
_WORDS: dict[str, str] = {PartKind.REMOVED: "del", PartKind.ADDED: "ins"}
_PARTS = {kind[0]: kind for kind in PartKind}
_LEVEL = 6


def pack(hunks: Sequence[DiffHunk], touched: Sequence[str]) -> bytes | None:
    """Return hunks and section titles in their stored form; None if there is nothing to show."""
    if not hunks:
        return None
    content = {
        "touched": list(touched),
        "hunks": [
            [
                *(hunk.from_line - 1, hunk.from_count, hunk.to_line - 1, hunk.to_count),
                [[_MARKS[line.type], [[part.type[0], part.text] for part in line.parts]] for line in hunk.lines],
            ]
            for hunk in hunks
        ],
    }
    # A lone surrogate in a page is not valid UTF-8: replaced below.
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return zstandard.compress(text.encode("utf-8", "replace"), _LEVEL)


def unpack(body: bytes | None) -> tuple[list[DiffHunk], tuple[str, ...]]:
    if body is None:
        return [], ()
    # Check the size of our own rows too: a database may come from elsewhere. Check it first: zstandard applies
    # `max_output_size` only to frames that do not state their size.
    if zstandard.frame_content_size(body) > MAX_STORED_BYTES:
        raise zstandard.ZstdError("a stored diff is larger than any that is written")
    content = json.loads(zstandard.decompress(body, max_output_size=MAX_STORED_BYTES))
    kinds = {mark: kind for kind, mark in _MARKS.items()}
    hunks = [
        DiffHunk(
            from_line=a + 1,
            from_count=a_count,
            to_line=b + 1,
            to_count=b_count,
            lines=[_line(kinds[mark], pieces) for mark, pieces in rows],
        )
        for a, a_count, b, b_count, rows in content["hunks"]
    ]
    return hunks, tuple(content["touched"])


def _line(kind: str, pieces: list[list[str]]) -> DiffRow:
    return DiffRow(type=kind, parts=[DiffPart(type=_PARTS[word], text=text) for word, text in pieces])


def diff_html(hunks: Iterable[DiffHunk]) -> str:
    """Return the diff as a unified view in HTML, empty without hunks; changed words are in `del` and `ins`."""
    rows: list[str] = []
    for hunk in hunks:
        # Escape here, line by line: this string is inserted into a page unchanged.
        rows.append(_row("hunk", escape(hunk_head(hunk))))
        rows += [_row(_CLASSES[line.type], _MARKS[line.type] + _html_parts(line)) for line in hunk.lines]
    return "\n".join(rows)


def _row(kind: str, code: str) -> str:
    return f'<div class="ha-diff-line ha-diff-{kind}"><code>{code}</code></div>'


def _html_parts(line: DiffRow) -> str:
    if len(line.parts) == 1:
        return escape(line.text)
    return "".join(
        f"<{tag}>{escape(part.text)}</{tag}>" if (tag := _WORDS.get(part.type)) else escape(part.text)
        for part in line.parts
    )


def diff_text(hunks: Iterable[DiffHunk]) -> str:
    rows: list[str] = []
    for hunk in hunks:
        rows += [hunk_head(hunk), *(_MARKS[line.type] + line.text for line in hunk.lines)]
    return "\n".join(rows)


def hunk_head(hunk: DiffHunk) -> str:
    """Return the `@@` line of a hunk; an empty side names the line before it, as in unified diffs."""
    return f"@@ -{_place(hunk.from_line, hunk.from_count)} +{_place(hunk.to_line, hunk.to_count)} @@"


def _place(line: int, count: int) -> str:
    first = line if count else line - 1
    return f"{first}" if count == 1 else f"{first},{count}"
