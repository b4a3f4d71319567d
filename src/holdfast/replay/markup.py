"""HTML and SVG rewritten so that every reference leads into the archive. Only values change; no tree is built.

The text is cut into tags as the HTML standard's tokeniser does, in one pass that only goes forward, and whatever is
not an address in a known place is copied. Scripts are not touched: the sandbox contains them (see `policy`). So is
what a hostile page hides from this reader; rewriting is for fidelity, the policy for containment.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from holdfast.replay.address import Modifier
from holdfast.replay.attributes import RETIRED_PREFIX, Kind, kind_of, modifier_of
from holdfast.replay.deadline import Deadline
from holdfast.replay.entities import escape, unescape
from holdfast.replay.links import Links
from holdfast.replay.sheet import rewrite_css
from holdfast.replay.srcset import rewrite_srcset

_MAX_NESTING = 2
"""How deep documents inside srcdoc attributes are rewritten; deeper ones are emptied."""

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
# Text, end tags and start tags in which nothing is to be done, and links and images with nothing else to do, as they
# are mostly written: together they take two thirds of the time away. What they do not match is cut step by step.
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


class Bar(NamedTuple):
    """What is put into a page that a reader looks at."""

    html: str
    """In ASCII, so that it is right in any charset."""


class _Attribute(NamedTuple):
    name: str
    name_start: int
    name_end: int
    value_start: int
    """Of the value with its quotes; -1 if there is none."""
    value_end: int
    raw: str


class Markup:
    """One document on its way through."""

    def __init__(
        self, links: Links, deadline: Deadline, *, decode: Callable[[str], str] | None = None, is_xml: bool = False
    ) -> None:
        """Take what resolves references, the time there is, and how a value of the document's charset becomes text."""
        self._links = links
        self._deadline = deadline
        self._decode = decode or (lambda value: value)
        self._is_xml = is_xml
        self._nesting = 0
        self._start("", None)

    def _start(self, text: str, bar: Bar | None) -> None:
        self._text = text
        self._bar = bar
        self._at = self._copied = 0
        self._foreign = 0
        self._pieces: list[str] = []
        self._has_frames = False

    def rewrite(self, text: str, bar: Bar | None = None) -> str:
        """Return the document with its references in the archive and the bar first in its body; TooSlow if time is up.

        Without a body tag the bar stands at the end, where browsers put it into the body; a frameset gets none.
        """
        self._start(text, bar)
        while (at := self._next()) < len(text):
            self._deadline.check()
            if simple := _ONE_ADDRESS.match(text, at):
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
        self._pieces.append(text[self._copied :])
        if self._bar is not None and not self._has_frames and not self._is_xml:
            self._pieces.append(self._bar.html)
        return "".join(self._pieces)

    def _rewrite_one(self, tag: re.Match[str]) -> None:
        """Rewrite a link or image that has one address and nothing else of interest."""
        modifier = Modifier.IMAGE if tag[1] else self._links.modifier
        new = self._links.to(self._text_of(tag[2]), modifier)
        if new is not None:
            self._replace(tag.start(2), tag.end(2), escape(new))
        self._at = tag.end()

    def _next(self) -> int:
        """Return where the next `<` stands that has to be looked at; the end of the text if there is none."""
        passed = _NOTHING_TO_DO.match(self._text, self._at)
        return passed.end() if passed else self._at

    def _after(self, mark: str, at: int) -> int:
        found = self._text.find(mark, at)
        return len(self._text) if found < 0 else found + len(mark)

    def _pass_declaration(self, at: int) -> None:
        """Go behind a comment or doctype; CDATA is a comment in HTML, and text in SVG, where nothing is lost by it."""
        text = self._text
        if not text.startswith("<!--", at):
            self._at = self._after(">", at)
        elif text.startswith((">", "->"), at + 4):
            self._at = self._after(">", at + 4)
        else:
            end = _COMMENT_END.search(text, at + 4)
            self._at = end.end() if end else len(text)

    def _end_tag(self, at: int) -> None:
        name = _TAG_NAME.match(self._text, at + 2)
        if name is None:
            self._at = self._after(">", at)
            return
        if self._foreign and name[0].lower() in ("svg", "math"):
            self._foreign -= 1
        self._at = name.end()
        self._attributes()

    def _start_tag(self, match: re.Match[str]) -> None:
        name = match[0].lower()
        self._at = match.end()
        attributes = self._attributes()
        if attributes is None:
            return  # the file ends inside this tag, which is then none
        if attributes:
            self._rewrite_tag(name, attributes)
        if name in ("svg", "math"):
            self._foreign += 1
        if (self._is_xml or self._foreign) and self._text[self._at - 2 : self._at] == "/>":
            if name in ("svg", "math"):
                self._foreign -= 1
            return
        self._enter(name)

    def _enter(self, name: str) -> None:
        """Go on behind a start tag: into a body, or over text that is no markup."""
        if name == "body":
            self._insert_bar()
        elif name == "frameset":
            self._has_frames = True
        elif name == "script":
            self._pass_script()
        elif name == "plaintext":
            self._at = len(self._text)
        elif name in _RAW_TEXT:
            start = self._at
            end = _RAW_TEXT[name].search(self._text, start)
            self._at = end.start() if end else len(self._text)
            if name == "style":
                self._style(start, self._at)

    def _insert_bar(self) -> None:
        if self._bar is not None:
            self._pieces += (self._text[self._copied : self._at], self._bar.html)
            self._copied = self._at
            self._bar = None

    def _pass_script(self) -> None:
        """Go to the end of a script; inside `<!--` a nested `<script>` hides one end tag (double escaping)."""
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
        """Return the attributes of the tag whose name ends here, and go behind it; None if the file ends first."""
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
                    break  # a value that follows `=` and did not match: a quote that nothing closes swallows the rest
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
            if attribute.name not in values:  # of two with one name, browsers take the first
                values[attribute.name] = attribute.raw
                first.append(attribute)
        for attribute in first:
            kind = kind_of(tag, attribute.name, values)
            if kind is None:
                continue
            if kind is Kind.RETIRED:
                self._retire(attribute)
            elif attribute.value_start >= 0:
                value = self._text_of(attribute.raw)
                new = self._value(kind, tag, attribute.name, values, value)
                if new is not None and new != value:
                    self._replace(attribute.value_start, attribute.value_end, f'"{escape(new)}"')

    def _value(self, kind: Kind, tag: str, name: str, values: dict[str, str], value: str) -> str | None:
        """Return the new value of an attribute; None to leave it as it is."""
        to = self._links.to
        if kind is Kind.ADDRESS:
            modifier = modifier_of(tag, name, values, self._links.modifier)
            if tag == "base":
                self._links.set_base(value)
                return to(value, self._links.modifier)
            return to(value, modifier)
        if kind is Kind.SRCSET:
            return rewrite_srcset(value, Modifier.IMAGE, to, self._deadline)
        if kind is Kind.STYLE:
            return rewrite_css(value, to, self._deadline)
        if kind is Kind.REFRESH:
            return refresh_into(value, self._links)
        return self._srcdoc(value)

    def _srcdoc(self, value: str) -> str:
        if self._nesting >= _MAX_NESTING:
            return ""
        inner = Markup(self._links, self._deadline)
        inner._nesting = self._nesting + 1
        return inner.rewrite(value)

    def _style(self, start: int, end: int) -> None:
        """Rewrite the text of a style element, whose references alone are decoded."""

        def resolve(reference: str, modifier: str) -> str | None:
            return self._links.to(self._real(reference), modifier)

        sheet = self._text[start:end]
        new = rewrite_css(sheet, resolve, self._deadline)
        if new != sheet:
            self._replace(start, end, escape(new) if self._is_xml and "&" in new else new)

    def _text_of(self, raw: str) -> str:
        return unescape(self._real(raw))

    def _real(self, raw: str) -> str:
        return raw if raw.isascii() else self._decode(raw)

    def _retire(self, attribute: _Attribute) -> None:
        self._replace(attribute.name_start, attribute.name_end, RETIRED_PREFIX + attribute.name)

    def _replace(self, start: int, end: int, new: str) -> None:
        self._pieces += (self._text[self._copied : start], new)
        self._copied = end


def refresh_into(content: str, links: Links) -> str:
    """Return a meta refresh, or a Refresh header, whose target is in the archive; as it was if it has none."""
    found = _REFRESH.fullmatch(content[:16_384])
    target = found[2].strip() if found else ""
    if found is None or not target:
        return content
    if target[:1] in {"'", '"'}:
        target = target[1:].partition(target[0])[0]
    new = links.to(target, links.modifier)
    return content if new is None else f"{found[1]}{new}"
