"""One robots.txt as RFC 9309 reads it: what our product token may ask for, and which line says so.

Bytes in, answers out. It fetches nothing, raises on no file, and never grants what it could not afford to decide.
"""

from __future__ import annotations

import re
import sys
from itertools import chain, islice
from typing import NamedTuple, Self

from holdfast.fetch.robots_rules import DENIED, TOO_COSTLY, RuleIndex, path_of

MAX_BYTES = 512 * 1024
"""What is parsed; RFC 9309 section 2.5 asks for 500 KiB at least."""
MAX_SITEMAPS = 50
MAX_SITEMAP_CHARS = 2_048
MAX_NOTES = 20
MAX_CRAWL_DELAY_S = 86_400.0
"""Nobody means more than a day; the caller's own cap (see `capped`) is far lower."""


class Decision(NamedTuple):
    """Whether an address may be asked for, with the rule and the line that decided; neither if no rule matched."""

    allowed: bool
    rule: str | None = None
    line: int | None = None


class Capped(NamedTuple):
    """A delay that we are willing to keep, and whether the file asked for more."""

    seconds: float
    cut: bool


def capped(delay_s: float, cap_s: float) -> Capped:
    """Return the delay, no longer than the cap; `cut` tells the caller to log that the cap bit."""
    return Capped(min(delay_s, cap_s), delay_s > cap_s)


# A product token has no digits (section 2.2.1), but `holdfast2` names another robot than `holdfast`.
_TOKEN = re.compile(r"[A-Za-z0-9_-]*")


def product_token(agent: str) -> str:
    """Return the lower-case product token that a User-Agent value starts with; empty if it starts with none."""
    found = _TOKEN.match(agent.strip(" \t"))
    return found[0].lower() if found else ""


class RobotsFile:
    """The part of one robots.txt that concerns one product token."""

    __slots__ = ("_index", "agent", "crawl_delay", "group", "notes", "sitemaps")

    def __init__(self, agent: str, lines: _Lines, notes: list[str]) -> None:
        group = lines.own if lines.own.named else lines.star
        self._index = RuleIndex(group.rules)
        self.agent = agent
        self.group: str | None = (agent if group is lines.own else "*") if group.named else None
        """The user-agent line that applies: our token, else the star, else none."""
        self.crawl_delay: float | None = max(group.delays, default=None)
        """The longest delay asked of us, in seconds; not yet capped."""
        self.sitemaps: tuple[str, ...] = tuple(lines.sitemaps)
        """As written; the caller resolves them and asks the guard."""
        lost = (f"line {line}: starts with neither / nor *" for line, _, value in group.rules if value[0] not in "/*")
        self.notes: tuple[str, ...] = tuple(islice(chain(notes, lost), MAX_NOTES))

    @classmethod
    def parse(cls, body: bytes, agent: str) -> Self:
        """Return what these bytes mean for an agent (`holdfast`, or a whole User-Agent that starts with its token).

        Whatever cannot be read is left out and noted; no body is refused.
        """
        notes: list[str] = []
        token = product_token(agent)
        lines = _Lines(token, notes)
        text = _decode(body, notes)
        if _is_html(text):
            notes.append("an HTML page, not a robots.txt: no rules")
        else:
            lines.read(text)
        return cls(token, lines, notes)

    def memory_bytes(self) -> int:
        """Return about how much memory the parsed file takes, rather too much than too little."""
        texts = (*self.sitemaps, *self.notes)
        return _EMPTY_FILE_BYTES + self._index.memory_bytes() + sum(map(sys.getsizeof, texts))

    def decide(self, target: str) -> Decision:
        """Return whether this address (path and query, or the whole URL) may be asked for, and by which rule."""
        path = path_of(target)
        rule = self._index.best(path)
        if rule is None or path == "/robots.txt":
            return _FREE
        return Decision(False, TOO_COSTLY) if rule is DENIED else Decision(rule.allow, rule.shown(), rule.line)


_FREE = Decision(True)
_EMPTY_FILE_BYTES = 2_048
_DISALLOW, _ALLOW, _AGENT, _DELAY, _SITEMAP, _OTHER = range(6)
# Slips that only ever mean one thing are read as meant: a group that goes unread is a wish that goes unheard.
_SPELLINGS = {
    **dict.fromkeys(("user-agent", "useragent", "user agent", "user_agent"), _AGENT),
    "allow": _ALLOW,
    **dict.fromkeys(("disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"), _DISALLOW),
    **dict.fromkeys(("crawl-delay", "crawldelay", "crawl delay"), _DELAY),
    **dict.fromkeys(("sitemap", "sitemaps", "site-map"), _SITEMAP),
}
_USUAL = {form: field for word, field in _SPELLINGS.items() for form in (word, word.capitalize(), word.title())}
_COMMENT = re.compile(r"#[^\n]*")
_SECONDS = re.compile(r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


class _Group:
    """All that is said to one agent, from however many groups of the file (section 2.2.1)."""

    __slots__ = ("delays", "named", "rules")

    def __init__(self) -> None:
        self.named = False
        self.rules: list[tuple[int, bool, str]] = []
        """Line, whether it allows, value."""
        self.delays: list[float] = []


class _Lines:
    """What the lines say to our token and to the star."""

    def __init__(self, token: str, notes: list[str]) -> None:
        self.own, self.star = _Group(), _Group()
        self.sitemaps: list[str] = []
        self._token = token
        self._notes = notes
        self._current: list[_Group] = []
        """Whom of the two the group being read is for."""
        self._naming = False
        """True while user-agent lines follow each other; other records between them change nothing (section 2.2.4)."""

    def read(self, text: str) -> None:
        """Take each line by itself; a line that says nothing we know changes nothing."""
        current = self._current
        for number, line in enumerate(_COMMENT.sub("", text).split("\n"), 1):
            key, _, value = line.partition(":")
            field = _USUAL.get(key)
            if field is None:
                if not line:
                    continue
                field, value = _read_loosely(line)
            value = value.strip()
            if field <= _ALLOW:
                self._naming = False
                if current and value:
                    for group in current:
                        group.rules.append((number, field == _ALLOW, value))
            elif field == _AGENT:
                self._name(value)
            elif field == _DELAY:
                self._delay(number, value)
            elif field == _SITEMAP:
                self._sitemap(number, value)

    def _name(self, value: str) -> None:
        if not self._naming:
            self._naming = True
            self._current.clear()
        if value.split(None, 1)[:1] == ["*"] or (value[:1] == "*" and not product_token(value[1:])):
            group = self.star  # `* foo` means everybody, whatever else was meant
        elif self._token and product_token(value) == self._token:
            group = self.own
        else:
            return
        group.named = True
        if group not in self._current:
            self._current.append(group)

    def _delay(self, number: int, value: str) -> None:
        """Take a delay for the agents named so far: a bot with nothing but a delay must not hand it to the next one."""
        if not self._current:
            return
        if len(value) > 32 or not _SECONDS.fullmatch(value):
            self._note(f"line {number}: crawl-delay is no number of seconds")
            return
        for group in self._current:
            group.delays.append(min(float(value), MAX_CRAWL_DELAY_S))

    def _sitemap(self, number: int, value: str) -> None:
        if not value or value in self.sitemaps:
            return
        if len(value) > MAX_SITEMAP_CHARS or not value.isprintable():
            self._note(f"line {number}: a sitemap address that cannot be one")
        elif len(self.sitemaps) == MAX_SITEMAPS:
            self._note(f"more than {MAX_SITEMAPS} sitemaps: the rest is left out")
        else:
            self.sitemaps.append(value)

    def _note(self, note: str) -> None:
        if len(self._notes) < MAX_NOTES and note not in self._notes:
            self._notes.append(note)


def _read_loosely(line: str) -> tuple[int, str]:
    """Read a line whose field is not spelled as usual: other letters, spaces around it, or no colon after it."""
    key, _, value = line.partition(":")
    field = _SPELLINGS.get(key.strip().lower(), _OTHER)
    if field == _OTHER:
        key, *rest = line.split(None, 1) or [""]
        if rest:
            field, value = _SPELLINGS.get(key.lower(), _OTHER), rest[0]
    return field, value


def _decode(body: bytes, notes: list[str]) -> str:
    """Return the lines that are parsed, each ended by a line feed; octets that are no UTF-8 survive as surrogates."""
    cut = len(body) >= MAX_BYTES
    body = body[:MAX_BYTES]
    if body[:2] in (b"\xff\xfe", b"\xfe\xff"):
        text = body.decode("utf-16", "replace")
        notes.append("UTF-16, not UTF-8")
    elif body[:3] == b"\xef\xbb\xbf":
        text = body[3:].decode("utf-8", "surrogateescape")
    else:
        text = body.decode("utf-8", "surrogateescape")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if cut:
        # Half a line is another rule than the one that was written.
        text = text[: text.rfind("\n") + 1]
        notes.append(f"cut after {MAX_BYTES} bytes")
    return text


_HTML = re.compile(r"<(?:!doctype|html|head|body|title|script|meta)\b", re.IGNORECASE)


def _is_html(text: str) -> bool:
    return text[:256].lstrip()[:1] == "<" and _HTML.search(text[:2_048]) is not None
