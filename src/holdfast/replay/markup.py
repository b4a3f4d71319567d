"""Rewrites HTML and SVG so that every reference leads into the archive. Only values change; no tree is built.

The text is split into tags like in the HTML standard's tokeniser, in one forward pass, and everything except
addresses in known places is copied. Scripts are not changed: the sandbox (`headers.replay_policy`) contains
them, and anything that a hostile page hides from this parser; rewriting is for fidelity, the policy for
containment. Two things are inserted: our script (`pages.shim_for`) before the page's own head, and our bar
before its body.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from holdfast.replay.address import Modifier
from holdfast.replay.css import rewrite_css, rewrite_srcset
from holdfast.replay.links import (
    MAX_CHARS,
    RETIRED_PREFIX,
    AttributeKind,
    Deadline,
    Links,
    escape,
    is_elsewhere,
    is_readable,
    kind_of,
    modifier_of,
    unescape,
)

# How deep documents inside srcdoc attributes are rewritten; deeper ones are emptied.
_MAX_NESTING = 2
# Limit of documents in attributes that get our script, too: it has ten thousand characters.
_MAX_INNER = 16
# Limit of a URL as written, with character references; longer ones are not read.
_MAX_RAW_ADDRESS = 8 * MAX_CHARS

_SPACE = r"\t\n\f\r "
_TAG_NAME = re.compile(rf"[A-Za-z][^{_SPACE}/>]*+")
_ATTRIBUTE = re.compile(
    rf"[{_SPACE}/]*+(?:(>)|([^{_SPACE}/>][^{_SPACE}/>=]*+)"
    rf"(?:[{_SPACE}]*+=[{_SPACE}]*+(?:\"([^\"]*+)\"|'([^']*+)'|((?![\"'])[^{_SPACE}>]*+)))?+)"
)
_EQUALS = re.compile(rf"[{_SPACE}]*+=")
_HARMLESS = (
    rf"""(?:[{_SPACE}]++(?:class|id|title|alt|width|height|name|value|role|lang|dir|align|colspan|rowspan|for|loading|"""
    r"""aria-[a-z]++)=(?:"[^"]*+"|'[^']*+'))*+"""
)
# Text, end tags and start tags without anything to rewrite, and common links and images with one reference: matching
# these at once saves two thirds of the time. The rest is parsed step by step.
_NOTHING_TO_DO = re.compile(
    rf"(?:[^<]++|</(?!svg|math)[a-z][a-z0-9]*+[{_SPACE}]*+>|<(?!(?:script|style|textarea|title|xmp|iframe|noembed|"
    rf"noframes|plaintext|body|frameset|svg|math|base|meta|link)[{_SPACE}/>])[a-z][a-z0-9]*+{_HARMLESS}[{_SPACE}]*+/?>)*+",
    re.IGNORECASE,
)
_ONE_ADDRESS = re.compile(
    rf'<(?:a{_HARMLESS}[{_SPACE}]++href|(img){_HARMLESS}[{_SPACE}]++src)="([^"]*+)"{_HARMLESS}[{_SPACE}]*+/?>',
    re.IGNORECASE,
)
_SCRIPT_STEP = re.compile(rf"<!--|-->|<(/?)script(?=[{_SPACE}/>])", re.I)
_COMMENT_END = re.compile(r"--!?>")
_REFRESH = re.compile(r"(\s{0,32}[\d.]{0,16}\s{0,32}[;,]?\s{0,32}(?:url\s{0,32}=\s{0,32})?)(.*)", re.I | re.S)
_RAW_TEXT = {
    name: re.compile(rf"</{name}(?=[{_SPACE}/>])", re.I)
    for name in ("style", "textarea", "title", "xmp", "iframe", "noembed", "noframes")
}
_BLANK = re.compile(rf"[{_SPACE}]*+")
_BYTE_ORDER_MARKS = ("\ufeff", "\xef\xbb\xbf")
_CDATA = "<![CDATA["
# Elements that may precede the body without starting it (HTML standard, "in head" and "after head").
_OF_THE_HEAD = frozenset(
    {"base", "basefont", "bgsound", "link", "meta", "noframes", "noscript", "script", "style", "template", "title"}
)
_FOREIGN = frozenset({"svg", "math"})
# Elements of SVG and MathML that contain HTML.
_HTML_INTEGRATION_POINTS = {
    "svg": frozenset({"foreignobject", "desc", "title"}),
    "math": frozenset({"mi", "mo", "mn", "ms", "mtext", "annotation-xml"}),
}
# Elements that end SVG or MathML content (HTML standard, "rules for parsing tokens in foreign content").
_BREAKOUT = frozenset(
    {
        *("b", "big", "blockquote", "body", "br", "center", "code", "dd", "div", "dl", "dt", "em", "embed", "h1", "h2"),
        *("h3", "h4", "h5", "h6", "head", "hr", "i", "img", "li", "listing", "menu", "meta", "nobr", "ol", "p"),
        *("pre", "ruby", "s", "small", "span", "strong", "strike", "sub", "sup", "table", "tt", "u", "ul", "var"),
    }
)
# Deeper than any real SVG; a hostile page nests until memory is full.
_MAX_FOREIGN = 1000


class _Attribute(NamedTuple):
    name: str
    name_start: int
    name_end: int
    value_start: int
    """Start of the value with its quotes; -1 without a value."""
    value_end: int
    raw: str


class Markup:
    def __init__(
        self,
        links: Links,
        deadline: Deadline,
        *,
        decode: Callable[[str], str] | None = None,
        is_xml: bool = False,
        shim: str = "",
    ) -> None:
        """Set the resolver of references, the deadline, and the decoder for values in the document's charset.

        `shim` is the element to insert before the page's first one; empty where scripts may not run.
        """
        self._links = links
        self._deadline = deadline
        self._decode = decode or (lambda value: value)
        self._is_xml = is_xml
        self._shim = shim
        self._inner_left = _MAX_INNER
        self._nesting = 0
        self._start("", "")

    def _start(self, text: str, bar: str) -> None:
        self._text = text
        self._at = self._copied = 0
        self._foreign: list[str] = []
        self._pieces: list[str] = []
        self._pending_shim, self._pending_bar = self._shim, bar
        # The current `noscript` or `template` before the body, whose content does not start a body.
        self._held = ""
        self.has_frames = False
        """Whether the page is a frameset, which has no body to put a bar into."""
        self.title = ""
        """The first title as it is written."""

    def rewrite(self, text: str, bar: str = "") -> str:
        """Rewrite the document's references and insert the bar first in its body; raise TooSlow on timeout.

        The bar is markup in ASCII, which is right in any charset; empty for none. Without a body tag, it precedes the
        first content of the body; a frameset gets none.
        """
        self._start(text, bar)
        # A byte order mark is only valid at the very start: text before it would make it a character of the page.
        self._at = next((len(mark) for mark in _BYTE_ORDER_MARKS if text.startswith(mark)), 0)
        while (at := self._next()) < len(text):
            self._deadline.check()
            # No fast path until our script and bar are inserted: the next tag may be the one that they have to precede.
            if not self._is_pending and not self._foreign and (simple := _ONE_ADDRESS.match(text, at)):
                self._rewrite_one(simple)
                continue
            self._at = at + 1
            following = text[at + 1 : at + 2]
            if following == "!":
                self._pass_declaration(at)
            elif following == "/":
                self._end_tag(at)
            elif following == "?":
                self._at = self._after(">", at)
            elif (name := _TAG_NAME.match(text, at + 1)) is not None:
                self._start_tag(name)
            else:
                self._begin_body(at)
        self._pieces.append(text[self._copied :])
        # A page without elements gets its bar at the end; XML may have nothing after its root.
        if not self.has_frames and not self._is_xml:
            self._pieces.append(self._pending_bar)
        return "".join(self._pieces)

    @property
    def _is_pending(self) -> bool:
        return bool(self._pending_shim or (self._pending_bar and not self.has_frames))

    def _insert(self, at: int, *, shim: bool = False, bar: bool = False) -> None:
        if shim and self._pending_shim:
            self._pieces += (self._text[self._copied : at], self._pending_shim)
            self._copied, self._pending_shim = at, ""
        if bar and self._pending_bar:
            self._pieces += (self._text[self._copied : at], self._pending_bar)
            self._copied, self._pending_bar = at, ""

    def _begin_body(self, at: int) -> None:
        """Handle content that starts the body implicitly, without a tag."""
        if not self._held and not self._is_xml and not self.has_frames:
            self._insert(at, shim=True, bar=True)

    def _place_before(self, name: str, at: int) -> None:
        """Insert what belongs before this start tag; in XML no tags are implied."""
        if self._is_xml or self._held or name in ("html", "head"):
            return
        if name in _OF_THE_HEAD:
            self._insert(at, shim=True)
            self._held = name if name in ("noscript", "template") else ""
        elif name in ("body", "frameset"):
            self._insert(at, shim=True)
            self.has_frames = name == "frameset" and bool(self._pending_bar)
        else:
            self._begin_body(at)

    def _rewrite_one(self, tag: re.Match[str]) -> None:
        """Rewrite a link or image that has one address and no other relevant attribute."""
        modifier = Modifier.IMAGE if tag[1] else self._links.modifier
        new = self._links.to(self._text_of(tag[2]), modifier)
        if new is not None:
            self._replace(tag.start(2), tag.end(2), escape(new))
        self._at = tag.end()

    def _next(self) -> int:
        if self._is_pending:
            blank = _BLANK.match(self._text, self._at)
            at = blank.end() if blank else self._at
            if self._text.startswith("<", at) or at >= len(self._text):
                return at
            self._begin_body(at)
            if self._is_pending:
                found = self._text.find("<", at)
                return len(self._text) if found < 0 else found
        # Parse every tag here: it may end the SVG or MathML content.
        if self._foreign:
            found = self._text.find("<", self._at)
            return len(self._text) if found < 0 else found
        passed = _NOTHING_TO_DO.match(self._text, self._at)
        return passed.end() if passed else self._at

    def _after(self, mark: str, at: int) -> int:
        found = self._text.find(mark, at)
        return len(self._text) if found < 0 else found + len(mark)

    def _pass_declaration(self, at: int) -> None:
        """Skip a comment or doctype; CDATA is a comment in HTML, and text in foreign content and in XML."""
        text = self._text
        # Treated as text in HTML, it would hide tags that a browser sees, and the other way round.
        if text.startswith(_CDATA, at) and (self._is_foreign or self._is_xml):
            self._at = self._after("]]>", at)
        elif not text.startswith("<!--", at):
            self._at = self._after(">", at)
        # `<!-->` and `<!--->` are complete comments (HTML standard, "comment start state").
        elif text.startswith((">", "->"), at + 4):
            self._at = self._after(">", at + 4)
        else:
            end = _COMMENT_END.search(text, at + 4)
            self._at = end.end() if end else len(text)

    @property
    def _is_foreign(self) -> bool:
        """Whether the position is inside SVG or MathML, where no element's text is raw."""
        return bool(self._foreign) and self._foreign[-1] in _FOREIGN

    def _end_tag(self, at: int) -> None:
        match = _TAG_NAME.match(self._text, at + 2)
        if match is None:
            self._at = self._after(">", at)
            return
        name = match[0].lower()
        # As in browsers, an end tag in HTML inside SVG must not end the SVG.
        if name in self._foreign and (self._is_foreign or self._foreign[-1] == name):
            while self._foreign.pop() != name:
                pass
        if name == self._held:
            self._held = ""
        self._at = match.end()
        self._attributes()

    def _start_tag(self, match: re.Match[str]) -> None:
        name = match[0].lower()
        self._at = match.end()
        attributes = self._attributes()
        if attributes is None:
            # The file ends inside this tag, so it is not a tag.
            return
        if self._is_pending:
            self._place_before(name, match.start() - 1)
        if attributes:
            self._rewrite_tag(name, attributes)
        # Only SVG, MathML and XML have self-closing tags; in HTML the slash is ignored.
        is_closed = self._text[self._at - 2 : self._at] == "/>"
        was_foreign = self._is_foreign
        self._descend(name, attributes, is_closed=is_closed)
        if self._is_xml or self._is_foreign or (was_foreign and name not in _BREAKOUT):
            if not is_closed:
                self._enter_foreign(name)
            return
        self._enter(name)

    def _descend(self, name: str, attributes: list[_Attribute], *, is_closed: bool) -> None:
        """Track the start of SVG or MathML, and of HTML inside them."""
        if self._is_xml:
            return
        if self._is_foreign:
            top = self._foreign[-1]
            # The only element that ends SVG or MathML only with certain attributes (HTML standard, same section).
            is_styled_font = name == "font" and any(one.name in ("color", "face", "size") for one in attributes)
            if name in _BREAKOUT or is_styled_font:
                while self._is_foreign:
                    self._foreign.pop()
            elif name in _HTML_INTEGRATION_POINTS[top] and not is_closed and len(self._foreign) < _MAX_FOREIGN:
                encoding = next((one.raw.strip().lower() for one in attributes if one.name == "encoding"), "")
                # In MathML, `annotation-xml` contains HTML only with one of these encodings.
                if name != "annotation-xml" or encoding in ("text/html", "application/xhtml+xml"):
                    self._foreign.append(name)
        if name in _FOREIGN and not is_closed and len(self._foreign) < _MAX_FOREIGN:
            self._foreign.append(name)

    def _enter_foreign(self, name: str) -> None:
        """Continue after a start tag in XML or foreign content, where text is markup and may be a style sheet."""
        if self._is_xml and name == "head":
            self._insert(self._at, shim=True)
        elif self._is_xml and name == "body":
            self._insert(self._at, bar=True)
        elif self._is_xml and (name in _RAW_TEXT or name == "script"):
            self._enter(name)
        elif name == "style":
            blank = _BLANK.match(self._text, self._at)
            start = blank.end() if blank else self._at
            if self._text.startswith(_CDATA, start):
                end = self._text.find("]]>", start)
                self._style(start + len(_CDATA), len(self._text) if end < 0 else end)
                self._at = self._after("]]>", start)
            else:
                end = self._text.find("<", self._at)
                end = len(self._text) if end < 0 else end
                self._style(self._at, end)
                self._at = end

    def _enter(self, name: str) -> None:
        """Continue after a start tag: into a head or body, or past raw text."""
        if name == "head":
            self._insert(self._at, shim=True)
        elif name == "body":
            self._insert(self._at, bar=True)
        elif name == "script":
            self._pass_script()
        # Nothing ends it: the rest of the file is text.
        elif name == "plaintext":
            self._at = len(self._text)
        elif name in _RAW_TEXT:
            start = self._at
            end = _RAW_TEXT[name].search(self._text, start)
            self._at = end.start() if end else len(self._text)
            if name == "style":
                self._style(start, self._at)
            # For the frame around a frameset, which needs a title.
            elif name == "title" and not self.title:
                self.title = self._text[start : self._at]

    def _pass_script(self) -> None:
        """Skip a script; inside `<!--` a nested `<script>` hides one end tag (double escaping)."""
        is_escaped = is_double = False
        while step := _SCRIPT_STEP.search(self._text, self._at):
            self._deadline.check()
            self._at = step.end()
            if step[0] == "<!--":
                is_escaped = True
            elif step[0] == "-->":
                is_escaped = is_double = False
            elif not step[1]:
                is_double = is_escaped
            elif is_double:
                is_double = False
            else:
                self._at = step.start()
                return
        self._at = len(self._text)

    def _attributes(self) -> list[_Attribute] | None:
        """Parse the attributes of the tag whose name ends here; None if the file ends first."""
        text, at = self._text, self._at
        found: list[_Attribute] = []
        match_next = _ATTRIBUTE.match
        while match := match_next(text, at):
            at = match.end()
            group = match.lastindex or 0
            if group == 1:
                self._at = at
                return found
            if group == 2:
                if _EQUALS.match(text, at):
                    # The value after `=` did not match: an unclosed quote swallows the rest.
                    break
                value_start = value_end = -1
                raw = ""
            else:
                quotes = group != 5
                value_start, value_end = match.start(group) - quotes, match.end(group) + quotes
                raw = match[group]
            self._deadline.check()
            found.append(_Attribute(match[2].lower(), match.start(2), match.end(2), value_start, value_end, raw))
        self._at = len(text)
        return None

    def _rewrite_tag(self, tag: str, attributes: list[_Attribute]) -> None:
        values: dict[str, str] = {}
        first: list[_Attribute] = []
        for attribute in attributes:
            # Of two attributes with one name, browsers use the first.
            if attribute.name not in values:
                values[attribute.name] = attribute.raw
                first.append(attribute)
        is_readable_here = is_readable(tag, values) and self._reads_own_site(values)
        for attribute in first:
            kind = kind_of(tag, attribute.name, values)
            if attribute.name == "crossorigin" and is_readable(tag, values) and not is_readable_here:
                # Content of another site is shown, but not readable; with the attribute it would not even load.
                kind = AttributeKind.RETIRED
            if kind is None:
                continue
            if kind is AttributeKind.RETIRED:
                self._retire(attribute)
            elif attribute.value_start >= 0:
                self._renew(tag, attribute, kind, values, readable=is_readable_here or tag in ("source", "track"))

    def _reads_own_site(self, values: dict[str, str]) -> bool:
        """Return whether scripts of this page may read an element's address, or it has none."""
        written = values.get("src", values.get("href", ""))[:_MAX_RAW_ADDRESS]
        return not written or self._links.to_readable(self._text_of(written), Modifier.OBJECT) is not None

    def _renew(
        self, tag: str, attribute: _Attribute, kind: AttributeKind, values: dict[str, str], *, readable: bool = False
    ) -> None:
        if kind is AttributeKind.ADDRESS and len(attribute.raw) > _MAX_RAW_ADDRESS:
            # Too long for a URL of the archive: do not decode it.
            value = attribute.raw
            new = self._links.to(value, modifier_of(tag, attribute.name, values, self._links.modifier))
        else:
            value = self._text_of(attribute.raw)
            new = self._value(kind, tag, attribute.name, values, value)
            if readable and kind is AttributeKind.ADDRESS:
                modifier = modifier_of(tag, attribute.name, values, self._links.modifier)
                new = self._links.to_readable(value, modifier) or new
        if new is not None and new != value:
            self._replace(attribute.value_start, attribute.value_end, f'"{escape(new, self._deadline)}"')

    def _value(self, kind: AttributeKind, tag: str, name: str, values: dict[str, str], value: str) -> str | None:
        to = self._links.to
        if kind is AttributeKind.ADDRESS:
            modifier = modifier_of(tag, name, values, self._links.modifier)
            if tag == "base":
                self._links.set_base(value)
                return to(value, self._links.modifier)
            return to(value, modifier)
        if kind is AttributeKind.SRCSET:
            return rewrite_srcset(value, Modifier.IMAGE, to, self._deadline)
        if kind is AttributeKind.STYLE:
            return rewrite_css(value, to, self._deadline)
        if kind is AttributeKind.REFRESH:
            return refresh_into(value, self._links)
        return self._srcdoc(value)

    def _srcdoc(self, value: str) -> str:
        # Each level adds escapes: a hostile page doubles its length with every level.
        if self._nesting >= _MAX_NESTING:
            return ""
        # Each copy has ten thousand characters: a page of a thousand small documents would grow a hundredfold.
        shim = self._shim if self._inner_left > 0 else ""
        self._inner_left -= 1
        inner = Markup(self._links.inside(), self._deadline, shim=shim)
        inner._nesting, inner._inner_left = self._nesting + 1, self._inner_left
        new = inner.rewrite(value)
        self._inner_left = inner._inner_left
        return new

    def _style(self, start: int, end: int) -> None:
        """Rewrite the text of a style element; only its references are decoded."""
        sheet = self._text[start:end]
        # Outside HTML a style sheet's text is markup, in which `&` starts a reference; inside CDATA it is not.
        is_escaped = (self._is_xml or self._is_foreign) and _CDATA not in self._text[max(0, start - 16) : start + 64]

        def resolve(reference: str, modifier: str) -> str | None:
            if not is_escaped:
                return self._links.to(self._real(reference), modifier)
            target = self._links.to(self._text_of(reference[:_MAX_RAW_ADDRESS]), modifier)
            return None if target is None else escape(target)

        new = rewrite_css(sheet, resolve, self._deadline)
        if new != sheet:
            self._replace(start, end, new)

    def _text_of(self, raw: str) -> str:
        return unescape(self._real(raw), self._deadline)

    def _real(self, raw: str) -> str:
        return raw if raw.isascii() else self._decode(raw)

    def _retire(self, attribute: _Attribute) -> None:
        self._replace(attribute.name_start, attribute.name_end, RETIRED_PREFIX + attribute.name)

    def _replace(self, start: int, end: int, new: str) -> None:
        self._pieces += (self._text[self._copied : start], new)
        self._copied = end


def refresh_into(content: str, links: Links) -> str:
    """Rewrite the target of a meta refresh or Refresh header to the archive; unchanged without a target.

    A target that cannot be rewritten is dropped, and the refresh with it.
    """
    target = refresh_target(content)
    if not target:
        return content
    new = links.to(target, links.modifier)
    if new is not None:
        # The part before the target is short; do not match the rest of a hostile value.
        found = _REFRESH.fullmatch(content[:64])
        return f"{found[1] if found else '0;url='}{new}"
    # Remove targets that cannot be rewritten: they would lead out of the archive.
    return content if target[0] == "#" or is_elsewhere(target) else ""


def refresh_target(content: str) -> str:
    """Return a refresh's target as written; empty if the page only reloads itself."""
    found = _REFRESH.fullmatch(content)
    target = found[2].strip() if found else ""
    if target[:1] in {"'", '"'}:
        target = target[1:].partition(target[0])[0]
    return target.strip()
