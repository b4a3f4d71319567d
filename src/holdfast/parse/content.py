"""What a page is about: the text, headings and links of its content, in one walk over a tree.

The content is a `main` that says something, or else an `article`, or else the body; in each of them without navigation,
asides and forms. Removes hidden elements from the tree.
"""

from __future__ import annotations

from dataclasses import field

from selectolax.lexbor import LexborHTMLParser, LexborNode

from holdfast.parse.text import (
    BLOCK_IDS,
    BLOCK_MARK,
    FURNITURE_IDS,
    HIDDEN,
    MAX_TEXT_CHARS,
    MIN_MAIN_CHARS,
    OWNER_IDS,
    PREFORMATTED_IDS,
    TEXT_ID,
    UNSHOWN_IDS,
    UNSHOWN_OR_AROUND_IDS,
    clean_line,
    numbers_of,
    tidied,
)
from holdfast.values import dataclass

MAX_HEADINGS = 200
_HEADING_CHARS, _HEADING_PARTS = 300, 1000
_ROOT_CHARS = 100
"""What a `main` or an `article` must hold to be taken for the content (1.5 of the facts)."""
_LEFT_OUT_IDS = UNSHOWN_OR_AROUND_IDS | numbers_of("form button")
_HEADING_IDS = numbers_of("h1 h2 h3 h4 h5 h6")
(_ANCHOR_ID,) = numbers_of("a")
_AROUND = "[role=navigation],[role=banner],[role=contentinfo],[role=search]"
_NOISE_WORDS = ("cookie", "consent", "newsletter", "subscribe")
_NOISE = ",".join(f"[id*={word} i],[class*={word} i]" for word in _NOISE_WORDS)
_NOISE_CHARS = 2000
"""What is longer is no box about cookies but the page that has one, named after it."""
_MAX_BOXES = 50
_TELLING = ("hidden", "display", "role", "<main", "<article", "ld+json", *_NOISE_WORDS)
_FRAME = ("html", "body", "main")


@dataclass(slots=True)
class Content:
    """What stands in a part of a page."""

    text: str = ""
    """One block a line."""
    headings: list[str] = field(default_factory=list)
    hrefs: list[str] = field(default_factory=list)
    """As written, in order."""


def telling_words(markup: bytes | str) -> frozenset[str]:
    """Return which words stand in the markup that make a look for certain elements worth its time."""
    lowered = markup.lower()
    if isinstance(lowered, bytes):
        return frozenset(word for word in _TELLING if word.encode() in lowered)
    return frozenset(word for word in _TELLING if word in lowered)


def read_content(tree: LexborHTMLParser, words: frozenset[str]) -> Content:
    """Return the content of a page; of one with almost nothing outside its frame, all it shows.

    `words` are those that `telling_words` found: each selector costs a walk over the tree.
    """
    body = tree.body
    if body is None:
        return Content()
    wanted = [selector for selector, told in ((HIDDEN, {"hidden", "display"}), (_AROUND, {"role"})) if told & words]
    # From the last to the first: what is inside another goes before it; a node that went with its parent is no more.
    for node in reversed(tree.css(",".join(wanted))) if wanted else ():
        if node.tag not in _FRAME:
            node.decompose()
    if words.intersection(_NOISE_WORDS):
        _remove_noise(tree)
    for selector, told in (("main,[role=main]", {"<main", "role"}), ("article", {"<article"})):
        found = tree.css(selector) if told & words else []
        if len(found) == 1 or (found and selector != "article"):
            content = _walk(found[0], _LEFT_OUT_IDS)
            if len(content.text) >= _ROOT_CHARS:
                return content
    content = _walk(body, _LEFT_OUT_IDS)
    if len(content.text) >= MIN_MAIN_CHARS:
        return content
    everything = _walk(body, UNSHOWN_IDS)
    return content if len(content.text) * 2 >= len(everything.text) else everything


def read_whole(tree: LexborHTMLParser) -> Content:
    """Return all that a page shows, what stands around its content too."""
    body = tree.body
    if body is None:
        return Content()
    for node in reversed(tree.css(HIDDEN)):
        if node.tag not in _FRAME:
            node.decompose()
    return _walk(body, UNSHOWN_IDS)


def _remove_noise(tree: LexborHTMLParser) -> None:
    """Remove boxes that ask for consent or an address; what they say changes without the page."""
    for node in reversed(tree.css(_NOISE)[:_MAX_BOXES]):
        if node.tag not in _FRAME and node.css_first("main,article,h1") is None and len(node.text()) <= _NOISE_CHARS:
            node.decompose()


def _walk(root: LexborNode, left_out: frozenset[int]) -> Content:
    """Walk by hand, as `text` does, and for its reason; headings and links are noted on the way."""
    content, parts = Content(), list[str]()
    above: list[tuple[LexborNode, int, int]] = []
    own = int(root.tag_id in OWNER_IDS)
    node = root.first_child
    while node is not None:
        number = node.tag_id
        if number == TEXT_ID:
            parts.append(node.text_content or "")
        elif number in PREFORMATTED_IDS:
            parts += BLOCK_MARK, node.text().replace("\n", BLOCK_MARK), BLOCK_MARK
        elif number not in left_out or (own and number in FURNITURE_IDS):
            if number == _ANCHOR_ID and (href := node.attributes.get("href")):
                content.hrefs.append(href)
            if number in BLOCK_IDS:
                parts.append(BLOCK_MARK)
            child = node.first_child
            if child is not None:
                own += number in OWNER_IDS
                above.append((node, number, len(parts)))
                node = child
                continue
        following = node.next
        while following is None and above:
            node, number, start = above.pop()
            own -= number in OWNER_IDS
            if number in BLOCK_IDS:
                if number in _HEADING_IDS:
                    _note_heading(content, parts, start)
                parts.append(BLOCK_MARK)
            following = node.next
        node = following
    content.text = tidied("".join(parts)[:MAX_TEXT_CHARS])
    return content


def _note_heading(content: Content, parts: list[str], start: int) -> None:
    """Note the text from a part on; of a heading that holds half the page, as those that nest do, only its start."""
    if len(content.headings) < MAX_HEADINGS:
        text = "".join(parts[start : start + _HEADING_PARTS])
        heading = clean_line(text.replace(BLOCK_MARK, " "), _HEADING_CHARS)
        if heading:
            content.headings.append(heading)
