"""Finds the main content of a page by the first stage that succeeds: a template, marked-up data, density.

1. A template of its source names the elements (`SiteTemplate`).
2. Microdata names an article's body; JSON-LD carries one if the page itself shows little (a script renders it).
3. `main`, then the only `article`; otherwise the whole page without the parts around the content: navigation,
asides, headers, footers, forms, boxes named for such roles, and menus, that is, runs of links at both ends.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from html import unescape
from typing import Final, NotRequired, TypedDict

import re2
from selectolax.lexbor import LexborHTMLParser, LexborNode

from holdfast.parse.text import BLOCK_MARK, blocks_of, clean_line, marked_text, tidied
from holdfast.parse.walking import AROUND, FORM_CONTENT, LINK_MARK, MAX_HEADINGS, SHOWN, Content, ContentWalk, walk

# Least text of a `main` or an `article` to count as the content.
_ROOT_CHARS = 100
# Below this the wrong part was chosen: the page's content is in its header or aside.
_MIN_CHARS = 200
_BODY_CHARS = 200
_AROUND = "[role=navigation],[role=banner],[role=contentinfo],[role=search],[role=complementary]"
_NOISE_WORDS = ("cookie", "consent", "newsletter", "subscribe", "banner", "notification")
# A longer element is not a cookie box but the page around it, named after it.
_NOISE_CHARS = 2000
# Boxes whose names state their purpose; if they make up more than half of a page, they are content (a forum's
# `comment`).
_BOX_WORDS = (
    *("sidebar", "breadcrumb", "related", "share", "social", "promo", "advert", "sponsor"),
    *("navbar", "navheader", "navfooter", "menu", "comment", "disqus", "paginat", "recommend", "trending"),
)
_ID_WORDS = ("sidebar", "breadcrumb", "comment", "disqus", "navbar")
_MAX_BOXES = 50
_MAX_CHOSEN, _MAX_REMOVED = 50, 500
_MAIN = "main,[role=main]"
# Elements that no browser shows without a style, by the word in the markup that makes a search for them worthwhile.
_HIDDEN: Final = {
    "hidden": "[hidden]",
    "popover": "[popover]",
    "dialog": "dialog:not([open])",
    "annotation": "annotation",
    "metadata": "metadata",
    "style": "[style*=display i],[style*=visibility i]",
}
# The last of several styles counts.
_STYLE: Final = re.compile(r"(?:^|;)\s*(display|visibility)\s*:\s*(\w+)")
_STYLE_CHARS = 2_000
_SPOKEN: Final = {
    "alt=": "[alt]",
    "title=": "[title]",
    "placeholder=": "[placeholder]",
    "value=": "input[value]",
    "label=": "optgroup[label],option[label]",
}
_MAX_SPOKEN, _SPOKEN_CHARS = 2_000, 500
_CONTENT_TAGS = ("h1", "h2", "h3", "h4", "h5", "h6", "p", "article", "a", "span", "code")
_OWN_CONTENT = "main,article,h1,pre,dt"
_LEAST_LEFT = 0.5
# Some put markup into their data; do not parse it, because it was not checked for pathological markup.
_TAG: Final = re.compile(r"<[^<>]{0,500}+>")
_FRAME = ("html", "body", "main")
_NAMED: Final = r"(?:class|id)\s*=\s*[\"']?[^\"'<>]*"
_TELLING: Final = {
    **{word: rf"[\s\"'/=]{word}[\s\"'/=>]" for word in ("hidden", "popover")},
    **{word: f"<{word}" for word in ("dialog", "annotation", "metadata")},
    "style": r"(?:display|visibility)\s*:\s*[nhc]",
    "role": r"\srole\s*=",
    "main": r"<main[\s>]",
    "article": r"<article[\s>]",
    "ld+json": r"ld\+json",
    "itemprop": r"\sitemprop\s*=",
    "time": r"<time[\s>]",
    "form": r"<form[\s>]",
    **{name: rf"\s{name[:-1]}\s*=\s*[\"']?[^\"'\s>]" for name in _SPOKEN},
    **{word: _NAMED + word for word in (*_NOISE_WORDS, *_BOX_WORDS)},
}


class SiteTemplate(TypedDict):
    """CSS selectors for the parts of one source's pages, validated when the source was written."""

    main: NotRequired[str]
    title: NotRequired[str]
    author: NotRequired[str]
    published: NotRequired[str]
    remove: NotRequired[list[str]]


@cache
def _telling() -> re2.Set:
    # Search all words in one pass over the bytes: 90 us for 40 KB; ten searches took 270 together.
    found = re2.Set.SearchSet()
    for pattern in _TELLING.values():
        found.Add(f"(?i){pattern}")
    found.Compile()
    return found


_WORDS: Final = tuple(_TELLING)


def telling_words(markup: bytes | str) -> frozenset[str]:
    """Return the words of the markup that make a search for certain elements worthwhile."""
    # RE2 rejects lone surrogates, which only a broken charset produces.
    data = markup.encode("utf-8", "replace") if isinstance(markup, str) else markup
    return frozenset(_WORDS[number] for number in _telling().Match(data) or ())


def read_content(
    tree: LexborHTMLParser, words: frozenset[str], template: SiteTemplate | None = None, body_text: str = ""
) -> Content:
    """Return the content of a page, with the rest of its text.

    `words` is the result of `telling_words`: each selector costs a walk over the tree. `body_text` is the body of
    an article from the page's own data.
    """
    body = tree.body
    if body is None:
        return Content()
    _remove_hidden(body, words)
    rest = _Rest(_spoken(body, words))
    if template is not None and (chosen := _by_template(tree, template, rest)):
        content = walk(*chosen)
        rest.add(body, stops=chosen)
    else:
        _remove_around(tree, words, rest)
        content = _by_elements(tree, body, words, rest)
        # A page rendered by scripts shows a notice, and has its text in its data.
        if len(body_text) >= _BODY_CHARS and len(content.text) * 2 < len(body_text):
            rest.blocks += blocks_of(content.text)
            content.text = marked_text(unescape(_TAG.sub("\n", body_text)))
    return rest.complete(content)


class _Rest(ContentWalk):
    def __init__(self, blocks: list[str]) -> None:
        super().__init__(AROUND)
        self.blocks = blocks

    def add(self, *roots: LexborNode, marks: bool = False, stops: Sequence[LexborNode] = ()) -> None:
        super().add(*roots, marks=marks, stops=stops)
        # Many have only icons: the library detects that in a tenth of the time of a walk.
        while found := self.content.left_out:
            self.content.left_out = []
            super().add(*[box for box in found if box.text().strip() and box.mem_id not in self._stops], stops=stops)

    def take_out(self, nodes: Sequence[LexborNode]) -> None:
        # Go from the last to the first, so that an inner node is removed before its parent.
        for node in reversed(nodes):
            self.add(node)
            node.decompose()

    def complete(self, content: Content) -> Content:
        self.add(*content.left_out)
        blocks = dict.fromkeys([*self.blocks, *blocks_of(tidied(self.text))])
        for block in blocks.keys() & {"", *blocks_of(content.text)}:
            del blocks[block]
        content.rest = "\n".join(blocks)
        content.is_cut |= self.content.is_cut
        known = set(content.headings)
        content.headings += [heading for heading in self.content.headings if heading not in known]
        del content.headings[MAX_HEADINGS:]
        return content


def _spoken(body: LexborNode, words: frozenset[str]) -> list[str]:
    found: dict[str | None, None] = {}
    for node in _select(body, _SPOKEN, words)[:_MAX_SPOKEN]:
        attributes = node.attributes
        kind = (attributes.get("type") or "").lower() if node.tag == "input" else ""
        # The value of other inputs is what a reader would type over.
        is_button = kind in ("submit", "button", "reset")
        for name in ("value", "title") if is_button else ("alt", "title", "placeholder", "label"):
            found[None if kind == "hidden" else attributes.get(name)] = None
    return [clean_line(text, _SPOKEN_CHARS) for text in found if text]


def _select(root: LexborNode, selectors: dict[str, str], words: frozenset[str]) -> list[LexborNode]:
    asked = ",".join([selector for word, selector in selectors.items() if word in words])
    return root.css(asked) if asked else []


def _by_template(tree: LexborHTMLParser, template: SiteTemplate, rest: _Rest) -> list[LexborNode]:
    for selector in template.get("remove", ()):
        rest.take_out([node for node in tree.css(selector)[:_MAX_REMOVED] if node.tag not in _FRAME])
    main = template.get("main", "")
    found = tree.css(main)[:_MAX_CHOSEN] if main else []
    # Skip an element inside another chosen one.
    inner = {one.mem_id for node in found for one in node.css(main) if one.mem_id != node.mem_id}
    chosen = [node for node in found if node.mem_id not in inner]
    return chosen if any(node.text().strip() for node in chosen) else []


def _remove_hidden(root: LexborNode, words: frozenset[str]) -> None:
    visible: set[int] = set()
    held: set[int] = set()
    # From the last to the first: an inner node goes before the one that holds it.
    for node in reversed(_select(root, _HIDDEN, words)):
        if node.tag in _FRAME:
            continue
        attributes = node.attributes
        styles = dict(_STYLE.findall((attributes.get("style") or "")[:_STYLE_CHARS].lower()))
        visibility = styles.get("visibility")
        if not _is_drawn(node.tag or "", attributes, styles.get("display")):
            node.decompose()
        elif visibility == "visible":
            visible.add(node.mem_id)
            _note_holders(node, held)
        elif visibility in ("hidden", "collapse"):
            _remove_but(node, visible, held)


def _is_drawn(tag: str, attributes: dict[str, str | None], display: str | None) -> bool:
    if display is not None:
        return display != "none"
    if tag == "dialog":
        return "open" in attributes
    return attributes.keys().isdisjoint(("hidden", "popover")) and tag not in ("annotation", "metadata")


def _remove_but(root: LexborNode, visible: set[int], held: set[int]) -> None:
    """Remove a node; if it is in `held`, remove only the parts of it that contain no visible node."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.mem_id not in held:
            node.decompose()
        elif node.mem_id not in visible:
            waiting += node.iter(include_text=True)


def _remove_around(tree: LexborHTMLParser, words: frozenset[str], rest: _Rest) -> None:
    if "role" in words:
        rest.take_out([node for node in tree.css(_AROUND) if node.tag not in _FRAME])
    if asked := [word for word in _NOISE_WORDS if word in words]:
        found = tree.css(_named(asked))[:_MAX_BOXES]
        rest.take_out([node for node in _boxes(found, set()) if len(node.text()) <= _NOISE_CHARS])


def _remove_boxes(root: LexborNode, words: frozenset[str], rest: _Rest) -> None:
    total = left = 0
    held: set[int] = set()
    for word in _BOX_WORDS:
        if word not in words:
            continue
        # Match classes, and only few ids: manuals give their sections ids with the words of their headings.
        by_id = f",[id^={word} i]" if word in _ID_WORDS else ""
        boxes = _boxes(root.css(f"[class*={word} i]{by_id}")[:_MAX_BOXES], held)
        if boxes and not total:
            total = left = len(root.text())
        size = sum(len(node.text()) for node in boxes)
        if boxes and left - size >= total * _LEAST_LEFT:
            left -= size
            rest.take_out(boxes)


def _boxes(nodes: list[LexborNode], held: set[int]) -> list[LexborNode]:
    """Return outermost nodes that may be outside the content, in document order.

    They contain no element named as content. `held` collects the ids of nodes that do, so that none is searched
    twice.
    """
    kept: list[LexborNode] = []
    inside = beside = 0
    for node in nodes:
        if node.mem_id in held or node.tag in _FRAME or node.tag in _CONTENT_TAGS:
            continue
        parent = above = node.parent
        while above is not None and above.mem_id not in (inside, beside):
            above = above.parent
        if above is not None and above.mem_id == inside:
            continue
        content = node.css_first(_OWN_CONTENT)
        if content is None:
            kept.append(node)
            inside, beside = node.mem_id, parent.mem_id if parent is not None else 0
        else:
            _note_holders(content, held)
    return kept


def _note_holders(node: LexborNode | None, held: set[int]) -> None:
    while node is not None and node.mem_id not in held:
        held.add(node.mem_id)
        node = node.parent


def _named(words: list[str]) -> str:
    return ",".join(f"[id*={word} i],[class*={word} i]" for word in words)


def _content_of(root: LexborNode, *, marks: bool = False) -> Content:
    """Return the content below a node; include forms if one has more text than the rest (ASP.NET)."""
    content = walk(root, marks=marks)
    size = len(content.text)
    forms = [node for node in content.left_out if node.tag == "form" and len(node.text()) > size]
    # Do not use the library's text, which includes options and scripts.
    return walk(root, roles=FORM_CONTENT, marks=marks) if any(len(walk(one).text) > size for one in forms) else content


def _by_elements(tree: LexborHTMLParser, body: LexborNode, words: frozenset[str], rest: _Rest) -> Content:
    for sign, selector in (("itemprop", "[itemprop~=articleBody i]"), ("main", _MAIN), ("article", "article")):
        if sign not in words and not (sign == "main" and "role" in words):
            continue
        first = tree.css_first(selector)
        # Several articles form a list: none of them is the content of the page.
        if first is None or (sign != "main" and len(tree.css(selector)) > 1):
            continue
        _remove_boxes(first, words, rest)
        content = _content_of(first)
        if len(content.text) >= (_BODY_CHARS if sign == "itemprop" else _ROOT_CHARS):
            rest.add(body, stops=[first])
            return content
    _remove_boxes(body, words, rest)
    content = _content_of(body, marks=True)
    content.text, menus = _without_menus(content.text, content.title)
    if len(content.text) < _MIN_CHARS:
        everything = walk(body, roles=SHOWN)
        # If most of the page is in the omitted part, then that part is the page.
        if len(content.text) * 2 < len(everything.text):
            return everything
    rest.blocks += blocks_of(menus)
    return content


# Longest line that is not a sentence: a date, a name, `Related`.
_SHORT_CHARS = 40
_MENU_LINES = 3
_BLANKS = " \t\n\r\f\xa0" + LINK_MARK
_PROSE_CHARS = 400


def _without_menus(marked: str, title: str | None) -> tuple[str, str]:
    """Return a marked text without the runs of links before and after its prose, and those runs.

    Only at both ends, up to the title: a list of links between paragraphs is content. A page of links alone stays
    unchanged.
    """
    blocks = [block for block in marked.split(BLOCK_MARK) if block and block.strip(_BLANKS)]
    first, last = _menu_blocks(blocks, title), len(blocks) - _menu_blocks(blocks[::-1], title)
    menus: list[str] = []
    if (first or last < len(blocks)) and _has_prose(blocks[first:last]):
        kept = blocks[first:last]
        # A list that is longer than the text before it is the page's content.
        if sum(map(len, kept)) * 2 >= sum(map(len, blocks)):
            blocks, menus = kept, blocks[:first] + blocks[last:]
    return _unmarked(blocks), _unmarked(menus)


def _unmarked(blocks: list[str]) -> str:
    return tidied(BLOCK_MARK.join(blocks).replace(LINK_MARK, ""))


def _has_prose(blocks: list[str]) -> bool:
    chars = 0
    for block in blocks:
        if len(block) >= _SHORT_CHARS and not _is_link(block):
            chars += len(block)
            if chars >= _PROSE_CHARS:
                return True
    return False


def _is_link(block: str) -> bool:
    pieces = block.split(LINK_MARK)
    # The parts alternate (outside, inside, outside …): the marks come in pairs.
    return len(pieces) > 1 and sum(len(piece.strip()) for piece in pieces[::2]) <= len(pieces)


def _menu_blocks(blocks: list[str], title: str | None) -> int:
    end = links = 0
    for number, block in enumerate(blocks):
        if _is_link(block):
            links += 1
            end = number + 1
        elif len(block.strip()) >= _SHORT_CHARS or number - end >= _MENU_LINES or clean_line(block, 300) == title:
            break
    # A list of terms, each with a link for its meaning, is half links.
    return end if links >= _MENU_LINES and links * 4 >= end * 3 else 0


def read_whole(tree: LexborHTMLParser, words: frozenset[str]) -> Content:
    body = tree.body
    if body is None:
        return Content()
    _remove_hidden(body, words)
    return walk(body, roles=SHOWN)


def line_at(tree: LexborHTMLParser, selector: str, limit: int) -> str:
    """Return the text of the first match of a selector as one line; for `time` and `meta`, the stated value."""
    node = tree.css_first(selector)
    if node is None:
        return ""
    attributes = node.attributes
    stated = attributes.get("datetime") or attributes.get("content")
    return clean_line(stated or node.text()[: limit * 8], limit)
