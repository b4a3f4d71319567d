"""The text that a reader sees, one block a line: NFC, without control, bidirectional and zero-width characters."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode

MAX_TEXT_CHARS = 4 * 1024 * 1024
BLOCK_MARK = "\x01"

# What would break a database, a terminal or a reading order; joiners (U+200C, U+200D) carry meaning and stay.
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\ufdd0-\ufdef\ufffe\uffff\U000e0000-\U000e007f]"
)
# Python sorts a run of combining marks in quadratic time: 100,000 of them take 4 s, 512 take 0.1 ms.
_NFC_CHARS = 512

# The same for Latin-1, as a table of bytes at a quarter of the cost: white space becomes a space, the rest goes.
_SPACES = bytes(32 if byte in b"\t\n\v\f\r\x1c\x1d\x1e\x1f\x85\xa0" else byte for byte in range(256))
_CONTROLS = bytes(
    byte for byte in (*range(32), *range(127, 160), 0xAD) if _SPACES[byte] != 32 and byte != ord(BLOCK_MARK)
)

HIDDEN = '[hidden],[style*="display:none" i],[style*="display: none" i]'
# Below this the frame was taken for the picture: a page whose content stands in its header or aside.
MIN_MAIN_CHARS = 200


# Mutation events serve scripts and <selectedcontent>. With them each <option> costs a look at all before it: a megabyte
# of them takes a minute, without them 50 ms.
_OPTIONS = LexborDocumentOptions.WO_EVENTS.value


def tree_of(page: bytes | str) -> LexborHTMLParser:
    """Return the tree of a page: the one way in which a page that others wrote is parsed."""
    return LexborHTMLParser(page, options=_OPTIONS)


def numbers_of(tags: str) -> frozenset[int]:
    """Return lexbor's numbers of these elements; a node's number is cheaper to ask for than its name."""
    document = LexborHTMLParser("")
    return frozenset(document.create_node(tag).tag_id for tag in tags.split())


def _text_number() -> int:
    paragraph = LexborHTMLParser("<p>x</p>").css_first("p")
    text = paragraph.first_child if paragraph else None
    assert text is not None
    return text.tag_id


TEXT_ID = _text_number()
BLOCK_IDS = numbers_of(
    "address article aside blockquote body br button caption center dd details dialog dir div dl dt fieldset "
    "figcaption figure footer form frameset h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu nav ol "
    "optgroup option p search section summary table tbody td textarea tfoot th thead title tr ul"
)
PREFORMATTED_IDS = numbers_of("pre listing xmp plaintext")
UNSHOWN_IDS = numbers_of(
    "script style template noscript svg math iframe object canvas audio video datalist select head"
)
UNSHOWN_OR_AROUND_IDS = UNSHOWN_IDS | numbers_of("nav aside header footer")
FURNITURE_IDS, OWNER_IDS = numbers_of("header footer"), numbers_of("main article section")
_CODE_IDS = numbers_of("script style noscript")


def clean_line(text: str, limit: int) -> str:
    """Return a text as one line of at most `limit` characters, fit for a database and a screen."""
    line = " ".join(text[: limit * 8].split())
    if not line.isprintable():
        line = " ".join(_UNSEEN.sub("", line).split())
    return nfc(line)[:limit].rstrip()


def clean_text(text: str) -> str:
    """Return plain text with its lines kept, each cleaned like a block of a page."""
    return tidied(text[:MAX_TEXT_CHARS].replace("\r\n", "\n").replace("\r", "\n").replace("\n", BLOCK_MARK))


def nfc(text: str) -> str:
    """Return the text in normalisation form C, in time linear in its length."""
    if text.isascii():
        return text
    if len(text) <= _NFC_CHARS:
        return unicodedata.normalize("NFC", text)
    parts, at = [], 0
    while at < len(text):
        end = at + _NFC_CHARS
        if end < len(text):
            # Cut before a character that does not combine with what stands before it, if one is near.
            for back in range(32):
                if unicodedata.combining(text[end - back]) == 0 and not "\u1100" <= text[end - back] <= "\u11ff":
                    end -= back
                    break
        parts.append(unicodedata.normalize("NFC", text[at:end]))
        at = end
    return "".join(parts)


def main_text(tree: LexborHTMLParser) -> str:
    """Return the page's own text: what is shown, less navigation, asides and the page's header and footer.

    Removes hidden elements from the tree. A page with almost nothing outside its frame gives all it shows.
    """
    body = tree.body
    if body is None:
        return ""
    # From the last to the first: what is inside another goes before it; a node that went with its parent is no more.
    for node in reversed(tree.css(HIDDEN)):
        if node.tag not in {"html", "body"}:
            node.decompose()
    main = tidied(_blocks(body, UNSHOWN_OR_AROUND_IDS))
    if len(main) >= MIN_MAIN_CHARS:
        return main
    everything = tidied(_blocks(body, UNSHOWN_IDS))
    return main if len(main) * 2 >= len(everything) else everything


def text_sample(tree: LexborHTMLParser, chars: int) -> str:
    """Return about the first `chars` characters of prose in a page; leaves the tree whole."""
    body = tree.body
    if body is None:
        return ""
    parts, size = [], 0
    for node in body.traverse(include_text=True, skip_empty=True):
        if node.tag_id != TEXT_ID or ((parent := node.parent) is not None and parent.tag_id in _CODE_IDS):
            continue
        text = node.text_content or ""
        parts.append(text[:chars])
        size += len(text)
        if size >= chars:
            break
    return " ".join(parts)


def _blocks(body: LexborNode, left_out: frozenset[int]) -> str:
    """Return the text below a node, with a mark wherever a block begins or ends.

    Walks by hand, because the library's own traversal cannot step over a subtree; on 120 documentation pages that is
    570 us a page, against 1,080 for removing subtrees first.
    """
    parts: list[str] = []
    above: list[tuple[LexborNode, int]] = []
    own = 0
    node = body.first_child
    while node is not None:
        number = node.tag_id
        if number == TEXT_ID:
            parts.append(node.text_content or "")
        elif number in PREFORMATTED_IDS:
            parts += BLOCK_MARK, node.text().replace("\n", BLOCK_MARK), BLOCK_MARK
        elif number not in left_out or (own and number in FURNITURE_IDS):
            if number in BLOCK_IDS:
                parts.append(BLOCK_MARK)
            child = node.first_child
            if child is not None:
                own += number in OWNER_IDS
                above.append((node, number))
                node = child
                continue
        following = node.next
        while following is None and above:
            node, number = above.pop()
            own -= number in OWNER_IDS
            if number in BLOCK_IDS:
                parts.append(BLOCK_MARK)
            following = node.next
        node = following
    return "".join(parts)[:MAX_TEXT_CHARS]


def tidied(marked: str) -> str:
    """Return marked text with one block a line, white space folded, unseen characters gone."""
    try:
        marked = marked.encode("latin-1").translate(_SPACES, _CONTROLS).decode("latin-1")
    except UnicodeEncodeError:
        return nfc(_folded(marked))
    lines = []
    for block in marked.split(BLOCK_MARK):
        line = block.strip()
        while "  " in line:
            line = line.replace("  ", " ")
        if line:
            lines.append(line)
    return "\n".join(lines)


def _folded(marked: str) -> str:
    """Do for any text what the table does for Latin-1."""
    lines = []
    for block in marked.split(BLOCK_MARK):
        line = block.strip()
        # Line breaks, tabs and every other space than the plain one are not printable either.
        if "  " in line or not line.isprintable():
            line = " ".join(_UNSEEN.sub("", " ".join(line.split())).split())
        if line:
            lines.append(line)
    return "\n".join(lines)


_UNUSABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+")
_BLANKS = re.compile(r"\s+")
_WORD = re.compile(r"[^\W_]+")


def tidy(text: str) -> str:
    """Return the text in composed form, with controls, lone surrogates and runs of blanks made one blank."""
    composed = text if text.isascii() else nfc(_UNUSABLE.sub(" ", text))
    return _BLANKS.sub(" ", _UNUSABLE.sub(" ", composed)).strip()


_UNSPACED: Final = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")
"""Chinese, Japanese and Korean letters: scripts whose words the analysers cannot tell apart."""


def analysable(text: str) -> str:
    """Return the text as the index's analysers want it: composed, and with each letter of an unspaced script a word."""
    if text.isascii():
        return text
    whole = text if unicodedata.is_normalized("NFC", text) else nfc(text)
    return _UNSPACED.sub(r" \g<0> ", whole) if max(whole) >= "\u2e80" else whole


def is_unspaced(word: str) -> bool:
    """Return whether a word is of a script that does not part its words."""
    return _UNSPACED.search(word) is not None


def letters_of(word: str) -> list[str]:
    """Return a word of an unspaced script as the index keeps it: letter by letter, other runs whole."""
    return analysable(word).split()


_LETTERS: Final = {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ł": "l", "ð": "d", "þ": "th", "ı": "i"}
"""Letters that no decomposition takes apart, spelled as the index's own analyser spells them."""


def _bare(char: str) -> str:
    kept = "".join(c for c in unicodedata.normalize("NFKD", char) if not unicodedata.combining(c))
    return "".join([_LETTERS.get(c, c) for c in kept])


_FOLDED: Final = {code: bare for code in range(0x80, 0x2000) if (bare := _bare(chr(code))) != chr(code)}
"""Everything below the symbols in one step: the scripts of Europe are folded without looking at single letters."""


_SYMBOLS: Final = re.compile("[\u2000-\U0010ffff]+")


def fold(text: str) -> str:
    """Return the text without case and accents: what substring terms are looked up in, and looked up as."""
    low = tidy(text).lower()
    if low.isascii():
        return low
    return _SYMBOLS.sub(lambda found: "".join(map(_bare, found[0])), low.translate(_FOLDED))


def words_of(text: str) -> list[str]:
    """Return the words of a text, folded, in order."""
    return _WORD.findall(fold(text))


def _same_length_table() -> dict[str, str]:
    table: dict[str, str] = {}
    for code in range(0x80, 0x2000):
        bare = _bare(chr(code))
        if len(bare) == 1 and bare != chr(code):
            table[chr(code)] = bare
    return table


_SAME_LENGTH: Final = _same_length_table()


def fold_in_place(text: str) -> str:
    """Return the text folded letter by letter: every character keeps its place, so that places found are places shown.

    What folds to two letters (`œ`) stays as it is.
    """
    if text.isascii():
        return text.lower()
    # The one capital whose small form is longer; and one pass for each accented letter that occurs, which takes an
    # eighth of what a table for all letters takes.
    low = text.replace("\u0130", "i").lower()
    for char in set(low):
        if char > "\x7f" and (bare := _SAME_LENGTH.get(char)) is not None:
            low = low.replace(char, bare)
    return low
