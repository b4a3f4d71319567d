"""One walk over a part of a page: its text, headings, definition terms and links with their text, in linear time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field
from typing import Final

from selectolax.lexbor import LexborNode

from holdfast.parse.text import (
    BLOCK_IDS,
    BLOCK_MARK,
    FURNITURE_IDS,
    LAST_NUMBERED,
    LINE_MARK,
    MAX_TEXT_CHARS,
    OWNER_IDS,
    PREFORMATTED_IDS,
    TEXT_ID,
    UNSHOWN_IDS,
    UNSHOWN_OR_AROUND_IDS,
    as_lines,
    clean_line,
    numbers_of,
    tidied,
    without_marks,
)
from holdfast.values import dataclass

MAX_HEADINGS = 200
MAX_TERMS, MAX_TERM_CHARS, MAX_TERMS_BYTES = 2_000, 120, 64 * 1024
_HEADING_CHARS, _HEADING_PARTS = 300, 1000
_TERM_PARTS = 64
_NUMBER: Final = re.compile(r"\s?(?:section|chapter|table|figure|part|appendix|example|§)\s[\dA-Z][\d.]{0,12}\s?", re.I)
# Bold text longer than this is emphasis, not a name.
_LEADING_CHARS, _LEADING_WORDS = 80, 8
# `lower('TOM')` is an example of a use, not a definition.
_EXAMPLE: Final = frozenset("'\"“„«;{")
# Marks and blanks that may precede the first word of a cell or paragraph: parts, and characters of each.
_BEFORE_LEADING, _BLANK_CHARS = 6, 256
_ANCHOR_PARTS, _HARDLY_CHARS = 40, 4
ANCHOR_CHARS = 80
"""Limit on a link's text, and on the text next to it."""
# Shorter text beside a link says nothing about its target; nor does a date, a count or a version. The last is the most
# parts between a term and its definition.
_BESIDE_LEAST, _NUMBER_CHARS, _BESIDE_PARTS, _BETWEEN_PARTS = 8, 30, 24, 4
_SEPARATORS: Final = " \t\n\xa0—–-:：,;|·•…"
# Limit of text read per link or term: nested elements repeat the same text.
_LOOKED_AT_CHARS = 1_000
LINK_MARK = "\x02"
"""Surrounds link texts where they must be distinguishable from other text."""
_SIGNS: Final = frozenset({"¶", "#", "§", "🔗", "⚓", "∞", "⚓︎"})
# Text that sorts after it starts with a letter, a digit or a sign.
_MOST_BLANK: Final = "!"
_BLANKS: Final = " \t\n\r\f\xa0" + LINE_MARK + LINK_MARK

# Roles of elements in the walk, as bits.
_SKIPPED, _FURNITURE, _OWNER, _PREFORMATTED, _BLOCK = 1, 2, 4, 8, 16
_HEADING, _ANCHOR, _TERM, _OPENS, _LEADING, _IMAGE, _FIRST, _VISIBLE = 32, 64, 128, 256, 512, 1024, 2048, 4096
_GAP, _APART, _ITEM, _DEFINES, _LINE_END = 8192, 16384, 32768, 65536, 131072
_STOPS, _COUNTED = _SKIPPED | _FURNITURE, _OWNER | _PREFORMATTED
_NOTED = _HEADING | _ANCHOR | _TERM | _LEADING | _ITEM
_CLOSES = _NOTED | _BLOCK | _APART | _GAP


# Readers see formulas, the words of drawings, the options of lists, and the replacements of objects that cannot be
# loaded; none of these is a sentence of a page's content.
_UNSHOWN_IDS = UNSHOWN_IDS - numbers_of("svg math select object")


def _table(left_out: frozenset[int]) -> dict[int, int]:
    """Return the roles of elements by lexbor's number, so that a node needs one lookup instead of ten."""
    roles = (
        (BLOCK_IDS | PREFORMATTED_IDS, _BLOCK),
        (numbers_of("br"), _GAP | _LINE_END),
        (PREFORMATTED_IDS, _PREFORMATTED),
        (OWNER_IDS, _OWNER),
        (numbers_of("h1 h2 h3 h4 h5 h6"), _HEADING),
        (numbers_of("h1 h2"), _FIRST),
        (numbers_of("a"), _ANCHOR | _APART),
        (numbers_of("dt dfn summary caption figcaption"), _TERM),
        (numbers_of("dt dd li tr"), _ITEM),
        (numbers_of("dd"), _DEFINES),
        (numbers_of("td th li p"), _OPENS),
        (numbers_of("code tt b strong var dfn kbd samp"), _LEADING),
        (numbers_of("img"), _IMAGE),
        (numbers_of("img input select svg math mi mn mo ms mtext iframe object canvas audio video"), _GAP),
        (left_out, _SKIPPED),
        (left_out - _UNSHOWN_IDS, _VISIBLE),
    )
    made: dict[int, int] = {}
    for numbers, role in roles:
        for number in numbers:
            made[number] = made.get(number, 0) | role
    for number in FURNITURE_IDS & left_out:
        # The header of an article belongs to it, the page's does not.
        made[number] = made[number] & ~_SKIPPED | _FURNITURE
    return made


CONTENT: Final = _table(UNSHOWN_OR_AROUND_IDS | numbers_of("form button rt"))
"""The elements of a page's content: without navigation, asides, forms, and the page's own header and footer.

Readings (`rt`) are excluded too: they are placed between the letters of one word.
"""
FORM_CONTENT: Final = _table(UNSHOWN_OR_AROUND_IDS | numbers_of("button rt"))
"""The elements of a page's content if a form contains it."""
SHOWN: Final = _table(_UNSHOWN_IDS)
AROUND: Final = {
    number: role & ~(_ANCHOR | _TERM | _OPENS | _LEADING | _IMAGE | _ITEM)
    for number, role in _table(_UNSHOWN_IDS | numbers_of("nav aside header footer form")).items()
}
"""All visible elements except the surrounding boxes; read for text and headings only."""


# Use a plain tuple: a page has hundreds, and creating a named one takes four times as long.
Anchor = tuple[str, str, str]
"""A link of a page: its target as written, its text, and the text next to it in a list or table of such links."""


@dataclass(slots=True)
class Content:
    text: str = ""
    headings: list[str] = field(default_factory=list)
    title: str | None = None
    """The first heading of the first rank, otherwise of the second."""
    terms: list[str] = field(default_factory=list)
    anchors: list[Anchor] = field(default_factory=list)
    """As written, in order, not tidied."""
    left_out: list[LexborNode] = field(default_factory=list)
    rest: str = ""
    """The page's text outside this content: navigation, boxes, headers, footers, and texts of attributes."""
    is_cut: bool = False


class ContentWalk:
    """A walk in progress, over the elements in `roles` (CONTENT, SHOWN or AROUND)."""

    __slots__ = (
        *(
            "_alt",
            "_away",
            "_item",
            "_links",
            "_noted",
            "_parts",
            "_passed",
            "_rank",
            "_roles",
            "_stops",
            "_stop_tags",
            "_terms_bytes",
        ),
        *("content", "terms"),
    )

    def __init__(self, roles: dict[int, int]) -> None:
        self._roles = roles
        self._parts: list[str] = []
        self._links: list[dict[str, str | None]] = []
        self._alt = ""
        self._away = self._item = (0, 0)
        self._passed = self._noted = 0
        self.terms: dict[str, None] = {}
        self._terms_bytes = 0
        self._rank = 3
        self.content = Content()

    def add(self, *roots: LexborNode, marks: bool = False, stops: Sequence[LexborNode] = ()) -> None:
        """Read the content below some nodes, without entering `stops`; with `marks`, the text has marks around
        links.
        """
        self._stops, self._stop_tags = {node.mem_id for node in stops}, {node.tag_id for node in stops}
        for root in roots:
            self._below(root, marks=marks)
            self._parts.append(BLOCK_MARK)

    @property
    def text(self) -> str:
        whole = "".join(self._parts)
        self.content.is_cut |= len(whole) > MAX_TEXT_CHARS
        return whole[:MAX_TEXT_CHARS]

    def _below(self, root: LexborNode, *, marks: bool) -> None:
        # Walk by hand: the library's own traversal cannot skip a subtree. Each statement here runs some thousand times
        # per page.
        parts, role_of, stop_tags = self._parts, self._roles.get, self._stop_tags
        above: list[tuple[LexborNode, int, int]] = []
        own, preformatted = (int(role_of(root.tag_id, 0) & bit > 0) for bit in (_OWNER, _PREFORMATTED))
        opened, link_end = -1_000, -1
        node = root.first_child
        while node is not None:
            number = node.tag_id
            if number == TEXT_ID:
                text = node.text_content or ""
                parts.append(as_lines(text) if preformatted else text)
            else:
                role, child = role_of(number, 0), node.first_child
                if role:
                    if role & _STOPS and not (own and role & _FURNITURE):
                        self._leave_out(node, role)
                        child = None
                    elif role & _BLOCK:
                        parts.append(BLOCK_MARK)
                        if stop_tags and number in stop_tags and node.mem_id in self._stops:
                            child = None
                        if role & _OPENS:
                            opened = len(parts)
                        elif role & _COUNTED and child is not None:
                            own += role & _OWNER > 0
                            preformatted += role & _PREFORMATTED > 0
                    elif role & _APART:
                        if link_end == len(parts):
                            parts.append(" ")  # browsers draw links of a menu apart even without blanks
                        if role & _ANCHOR:
                            role, child = self._open_link(node.attributes, role, child, marks=marks)
                    elif role & _LEADING:
                        is_late = len(parts) - opened > _BEFORE_LEADING or parts[-1] > _MOST_BLANK
                        role = role & _TERM if is_late or preformatted else self._leading(role, opened)
                    elif role & _GAP:
                        self._part(node, role)
                elif number > LAST_NUMBERED:
                    parts.append(" ")  # labels of a drawing
                if child is not None:
                    above.append((node, role, len(parts)))
                    node = child
                    continue
            following = node.next
            while following is None and above:
                node, role, start = above.pop()
                if role & _CLOSES:
                    if role & _NOTED:
                        self._close(node, role, start)
                    if role & _BLOCK:
                        parts.append(BLOCK_MARK)
                        if role & _COUNTED:
                            own -= role & _OWNER > 0
                            preformatted -= role & _PREFORMATTED > 0
                    elif role & _GAP:
                        parts.append(" ")
                    elif role & _APART:
                        if marks:
                            parts.append(LINK_MARK)
                        link_end = len(parts)
                following = node.next
            node = following

    def _leave_out(self, node: LexborNode, role: int) -> None:
        if role & (_BLOCK | _GAP):
            self._parts.append(BLOCK_MARK if role & _BLOCK else " ")
        if role & _VISIBLE:
            self.content.left_out.append(node)

    def _part(self, node: LexborNode, role: int) -> None:
        """Separate the words around an inline element; a picture may be the only content of a link."""
        if role & _LINE_END:
            # Two line ends are a blank line, which ends a block.
            self._parts.append(LINE_MARK if self._parts and _says(self._parts[-1]) else BLOCK_MARK)
            return
        self._parts.append(" ")
        if role & _IMAGE and self._links:
            self._alt = self._alt or (node.attributes.get("alt") or "")[:_LOOKED_AT_CHARS]

    def _open_link(
        self, attributes: dict[str, str | None], role: int, child: LexborNode | None, *, marks: bool
    ) -> tuple[int, LexborNode | None]:
        """Return the state of a link, and the child to continue with: None for a permalink, which is not text."""
        href = attributes.get("href")
        if not href:
            return 0, child
        if child is None:
            self.content.anchors.append((href, self._called(attributes, ""), ""))
            return 0, None
        if "#" in href and _is_sign(child):
            self._parts.append(" ")
            return 0, None
        self._links.append(attributes)
        self._alt = ""
        if marks:
            self._parts.append(LINK_MARK)
        return role, child

    def _leading(self, role: int, opened: int) -> int:
        for part in self._parts[opened:]:
            # An empty element adds no part, so that any number of them may follow the same blanks.
            if len(part) > _BLANK_CHARS or _says(part):
                return role & _TERM
        return role & _TERM or _LEADING

    def _close(self, node: LexborNode, role: int, start: int) -> None:
        if role & _ITEM:
            self._note_beside(role, start)
        if role & _ANCHOR:
            parts = self._parts
            attributes = self._links.pop()
            href = attributes["href"] or "#"
            if len(parts) == start + 1:
                words = parts[start][:_LOOKED_AT_CHARS]
            else:
                words = _start_of(parts, start, most=_ANCHOR_PARTS, chars=_LOOKED_AT_CHARS)
            if len(attributes) > 1 or len(words) <= _HARDLY_CHARS or self._alt:
                words = self._called(attributes, words)
            self.content.anchors.append((href, words, ""))
            if href[0] != "#":
                self._passed, self._away = self._away[0], (start, len(parts))
                self._noted = len(self.content.anchors)
        elif role & _HEADING:
            self._note_heading(role, start, node)
        elif role & _TERM:
            self._note_term(start, MAX_TERM_CHARS)
        elif role & _LEADING and not self._is_in_link_away():
            self._note_term(start, _LEADING_CHARS)

    def _note_beside(self, role: int, start: int) -> None:
        parts, (first, last) = self._parts, self._away
        if role & _DEFINES and start - self._item[1] <= _BETWEEN_PARTS:
            start = self._item[0]  # a term and its definition are one item
        else:
            self._item = start, len(parts)
        anchors = self.content.anchors
        if not self._passed < start <= first or len(anchors) != self._noted:
            return
        if _says(_start_of(parts, start, most=min(first - start, _TERM_PARTS), chars=_LOOKED_AT_CHARS)):
            return
        href, words, known = anchors[-1]
        text = _start_of(parts, last, most=_BESIDE_PARTS, chars=_LOOKED_AT_CHARS)
        beside = clean_line(_plain(text).strip(_SEPARATORS), ANCHOR_CHARS)
        is_number = len(beside) < _NUMBER_CHARS and any(map(str.isdigit, beside))
        if not known and not is_number and len(beside) >= _BESIDE_LEAST:
            anchors[-1] = href, words, beside

    def _is_in_link_away(self) -> bool:
        return bool(self._links) and (self._links[-1]["href"] or "#")[0] != "#"

    def _called(self, attributes: dict[str, str | None], words: str) -> str:
        """Return a link's text, or its label for screen readers if the text says little.

        `Prev`, `Section 9.4`, and pictures without text.
        """
        if not _says(words):
            words = self._alt
        named = attributes.get("title") or attributes.get("aria-label")
        return named if named and (len(words) <= _HARDLY_CHARS or _NUMBER.fullmatch(words)) else words

    def _note_heading(self, role: int, start: int, node: LexborNode) -> None:
        content = self.content
        if len(content.headings) >= MAX_HEADINGS:
            return
        text = _start_of(self._parts, start, most=_HEADING_PARTS, chars=_HEADING_CHARS * 8)
        heading = clean_line(_plain(text), _HEADING_CHARS)
        if not heading:
            return
        content.headings.append(heading)
        if role & _FIRST and self._rank > 1:
            rank = 1 if node.tag == "h1" else 2
            if rank < self._rank:
                self._rank, content.title = rank, heading

    def _note_term(self, start: int, limit: int) -> None:
        parts = self._parts
        if len(self.terms) >= MAX_TERMS or self._terms_bytes >= MAX_TERMS_BYTES:
            return
        first, last = self._away
        if first >= start:
            # Words that link to another page are not defined here; nor is an entry of an index, `abs, Functions`.
            before = _start_of(parts, start, most=min(first - start, _TERM_PARTS), chars=_LOOKED_AT_CHARS).strip(
                _BLANKS
            )
            behind = _start_of(parts, last, most=_TERM_PARTS, chars=_LOOKED_AT_CHARS)
            if (not before or before[-1] == ",") and not _says(behind):
                return
        term = _start_of(parts, start, most=_TERM_PARTS, chars=_LOOKED_AT_CHARS)
        term = clean_line(_plain(term), MAX_TERM_CHARS).rstrip(" :¶")
        if not term or not any(map(str.isalnum, term)):
            return
        if limit < MAX_TERM_CHARS and (
            len(term) > limit or term.count(" ") >= _LEADING_WORDS or not _EXAMPLE.isdisjoint(term)
        ):
            return
        if term not in self.terms:
            self.terms[term] = None
            self._terms_bytes += len(term.encode("utf-8", "replace")) + 1


def _start_of(parts: list[str], start: int, *, most: int, chars: int) -> str:
    some = parts[start : start + most]
    if len(some) == 1:
        return some[0][:chars]
    size = 0
    for number, part in enumerate(some, 1):
        size += len(part)
        if size >= chars:
            # The last one may be a whole page.
            return "".join([*some[: number - 1], part[:chars]])[:chars]
    return "".join(some)


def _plain(marked: str) -> str:
    return without_marks(marked.replace(BLOCK_MARK, " ").replace(LINK_MARK, ""))


def _says(marked: str) -> bool:
    return bool(marked.strip(_BLANKS))


def _is_sign(child: LexborNode | None) -> bool:
    for _ in range(3):
        if child is None or child.next is not None:
            return False
        if child.tag_id == TEXT_ID:
            return (child.text_content or "").strip() in _SIGNS
        child = child.first_child
    return False


def walk(*roots: LexborNode, roles: dict[int, int] = CONTENT, marks: bool = False) -> Content:
    """Return the content below these nodes; with `marks`, the text has marks around blocks and links."""
    found = ContentWalk(roles)
    found.add(*roots, marks=marks)
    found.content.text = found.text if marks else tidied(found.text)
    found.content.terms = list(found.terms)
    return found.content
