"""One robots.txt by RFC 9309: which URLs our product token may request, which line decides, what a response to
GET /robots.txt means for its origin, and when to fetch it again.

Pure parsing: it fetches nothing, raises on no file, and never allows what would be too costly to decide. Where
the RFC leaves a choice, the more restrictive one applies.
"""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import chain, islice
from typing import NamedTuple, Self

from holdfast.types import FetchProblem, RobotsAnswer, RobotsRecord
from holdfast.values import dataclass

AGENT = "holdfast"
"""Our product token in robots.txt."""

# Octets of wildcard patterns times octets of the address: at the bound the worst patterns tried cost 30 ms, and a file
# of 500 ordinary wildcards is still decided for the longest address that we ask for (8,192 octets).
MAX_WORK = 50_000_000

TOO_COSTLY = "(more wildcards than this address can be held against)"

# Normalise both sides before comparing octets (section 2.2.2): unreserved characters bare, reserved ones unchanged,
# everything else escaped in upper case. `*` and `$` of a URL are escaped, so that a pattern can match them as %2A and
# %24 (section 2.2.3).
_SAFE = r"A-Za-z0-9\-._~:/?\[\]@!&'()+,;="
_RESERVED_ESCAPE = r"(?:[0189A-F][0-9A-F]|2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[B-DF])"
# What needs another spelling. A leading character class lets the search skip valid characters, which is nearly all.
_ODD_IN_ADDRESS = re.compile(rf"[^{_SAFE}](?:(?<!%)|(?!{_RESERVED_ESCAPE}))")
_ODD_IN_PATTERNS = re.compile(
    rf"[^*\n{_SAFE}](?:(?<![%$])|(?<=%)(?!{_RESERVED_ESCAPE})|(?<=\$)(?!\n|\Z))[^*\n]*",
)
_ESCAPES = r"(?P<escapes>(?:%[0-9A-Fa-f]{2})+)"
_RUN_OF_ADDRESS = re.compile(rf"{_ESCAPES}|[^{_SAFE}%]+|%")
# A truncated escape at the end of a pattern, as in `/*%` and `/a%2*`, starts many escapes and is not a percent sign.
_RUN_OF_PATTERN = re.compile(rf"{_ESCAPES}|(?P<broken>%[0-9A-Fa-f]?)\Z|[^{_SAFE}$%]+|%|\$(?!\Z)")
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_SPELLING = [chr(octet) if octet in _UNRESERVED else f"%{octet:02X}" for octet in range(256)]
_RULE_BYTES = 320
"""Memory of one rule in an index, in bytes, measured with 40,000 unrelated wildcards."""
_BEFORE_PATH = re.compile(r"[^:/?#]*://[^/?#]*")


def _spell(found: re.Match[str]) -> str:
    run = found[0]
    if found.lastgroup == "broken":
        return run.upper()
    if found.lastgroup == "escapes":
        octets = bytes.fromhex(run.replace("%", ""))
    else:
        try:
            octets = run.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            octets = run.encode("utf-8", "replace")
    return "".join(map(_SPELLING.__getitem__, octets))


def _spell_literal(found: re.Match[str]) -> str:
    """Normalise the rest of a literal, up to the next star or the end of its pattern."""
    spelled = _RUN_OF_PATTERN.sub(_spell, found[0])
    closes = found.string[found.end() : found.end() + 1] != "*"
    return spelled if closes or spelled[-1:] != "$" else spelled[:-1] + "%24"


def path_of(target: str) -> str:
    """Return path and query of a URL in the normal form that `RuleIndex.best` compares."""
    if not target.startswith("/"):
        before = _BEFORE_PATH.match(target)
        target = target[before.end() :] if before else target
        if not target.startswith("/"):
            target = "/" + target
    if "#" in target:
        target = target[: target.index("#")]
    return _RUN_OF_ADDRESS.sub(_spell, target) if _ODD_IN_ADDRESS.search(target) else target


def _fold_query(text: str) -> str:
    """Return text with `/ : ? @` unescaped after the first question mark: they delimit nothing there."""
    # RFC 3986, section 3.4. Table 1 of RFC 9309, section 2.2.2, wants `?baz=https://foo.bar` and
    # `?baz=https%3A%2F%2Ffoo.bar` to be one address.
    path, mark, query = text.partition("?")
    return path + mark + query.replace("%2F", "/").replace("%3A", ":").replace("%3F", "?").replace("%40", "@")


def _spell_patterns(values: list[str]) -> list[str]:
    # Replace all at once: one pass costs a tenth of 180.
    if not values:
        return []
    patterns = _ODD_IN_PATTERNS.sub(_spell_literal, "\n".join(values))
    if "%" not in patterns:
        return patterns.split("\n")
    return [_fold_query(each) if "%" in each and "?" in each else each for each in patterns.split("\n")]


class RobotsRule(NamedTuple):
    line: int
    allow: bool
    value: str

    def shown(self) -> str:
        """Return the rule as safe text for a log, a database and a terminal."""
        value = self.value[:500]
        if not value.isprintable():
            value = "".join(char if char.isprintable() else "\ufffd" for char in value)
        return f"{'Allow' if self.allow else 'Disallow'}: {value}"


def _matches(pattern: str, path: str) -> bool:
    # Match each literal between the stars at its first position: if that fails, no later one would match.
    *pieces, tail = pattern.split("*")
    if not path.startswith(pieces[0]):
        return False
    at = 0
    for piece in pieces:
        at = path.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    if tail[-1:] == "$":
        return len(path) - len(tail) + 1 >= at and path.endswith(tail[:-1])
    return path.find(tail, at) >= 0


def _by_rank_then_line(match: tuple[int, int]) -> tuple[int, int]:
    rank, number = match
    return rank, -number


DENIED = RobotsRule(0, False, TOO_COSTLY)
"""Placeholder for a decision that was too costly; it corresponds to no line of the file."""


class RuleIndex:
    """The rules of one group, indexed so that a decision checks only those whose literal prefix matches.

    A rank is twice the octets of the pattern, plus one if the rule allows: the greater rank wins (section 2.2.2).
    """

    __slots__ = ("_exact", "_heads", "_lengths", "_longest", "_plain", "_rules", "_wild")

    def __init__(self, rules: list[tuple[int, bool, str]]) -> None:
        self._rules = rules
        self._plain: dict[str, int] = {}
        """Patterns without special characters, and the number of their rule."""
        self._exact: dict[str, int] = {}
        """Patterns whose only special character is the closing `$`."""
        self._wild: dict[str, list[tuple[str, int, int, str]]] = {}
        """Patterns with a star, by the literal before it: longest other literal, rank, number, pattern."""
        starred: dict[str, int] = {}
        for number, pattern in enumerate(_spell_patterns([value for _, _, value in rules])):
            if "*" in pattern:
                table = starred
            elif pattern[-1] == "$":
                table, pattern = self._exact, pattern[:-1]
            else:
                table = self._plain
            # Of two rules with one pattern the allowing one wins (section 2.2.2); else the first is reported.
            first = table.setdefault(pattern, number)
            if first != number and rules[number][1] and not rules[first][1]:
                table[pattern] = number
        for pattern, number in starred.items():
            self._add_starred(pattern, number)
        self._lengths = sorted({len(pattern) for pattern in self._plain}, reverse=True)
        self._heads = sorted({len(head) for head in self._wild})
        octets = sum(map(len, starred))
        self._longest = MAX_WORK // octets if octets else MAX_WORK

    def _add_starred(self, pattern: str, number: int) -> None:
        head, _, rest = pattern.partition("*")
        needle = rest[:-1] if rest[-1:] == "$" else rest
        if "*" in needle:
            needle = max(needle.split("*"), key=len)
        # Searching the longest literal first excludes most patterns without matching them piece by piece.
        rank = len(pattern) * 2 + self._rules[number][1]
        self._wild.setdefault(head, []).append((needle, rank, number, pattern))

    def rules(self) -> list[RobotsRule]:
        return [RobotsRule(*rule) for rule in self._rules]

    def memory_bytes(self) -> int:
        """Estimate the memory of the index: each rule as written, as normalised, and its table entries."""
        return sum(_RULE_BYTES + 2 * sys.getsizeof(value) for _, _, value in self._rules)

    def best(self, path: str) -> RobotsRule | None:
        """Return the most specific rule matching a path from `path_of`, the allowing one on a tie; None without a
        match.
        """
        # A hostile file would block the event loop here (see MAX_WORK): an undecided URL is denied.
        if len(path) > self._longest:
            return DENIED
        rank, number = self._best(path)
        if "%" in path and "?" in path:
            folded = _fold_query(path)
            if folded != path:
                rank, number = max((rank, number), self._best(folded), key=_by_rank_then_line)
        return RobotsRule(*self._rules[number]) if rank else None

    def _best(self, path: str) -> tuple[int, int]:
        """Return rank and number of the best rule, the first of equals; the rank is 0 without a match."""
        size = len(path)
        rank = best = 0
        for length in self._lengths:
            if length <= size:
                number = self._plain.get(path[:length])
                if number is not None:
                    rank, best = length * 2 + self._rules[number][1], number
                    break
        if path in self._exact:
            number = self._exact[path]
            rank, best = (size + 1) * 2 + self._rules[number][1], number
        for length in self._heads:
            for needle, its_rank, number, pattern in self._wild.get(path[:length], ()):
                if needle in path and (its_rank, best) > (rank, number) and _matches(pattern, path):
                    rank, best = its_rank, number
        return rank, best


MAX_BYTES = 512 * 1024
"""Parsing limit; RFC 9309 section 2.5 requires at least 500 KiB."""
MAX_SITEMAP_CHARS = 2_048
MAX_NOTES = 20
MAX_CRAWL_DELAY_S = 86_400.0
"""A longer delay counts as a mistake; the caller's own limit (see `capped`) is far lower."""


class RobotsDecision(NamedTuple):
    """Whether a URL may be requested, with the deciding rule and line; both None if no rule matched."""

    allowed: bool
    rule: str | None = None
    line: int | None = None


def capped(delay_s: float, cap_s: float) -> tuple[float, bool]:
    """Return the delay limited to the cap, and whether the file requested more, which the caller logs."""
    return min(delay_s, cap_s), delay_s > cap_s


# A product token has no digits (section 2.2.1), but `holdfast2` names another robot than `holdfast`.
_TOKEN = re.compile(r"[A-Za-z0-9_-]*")


def product_token(agent: str) -> str:
    """Return the lower-case product token at the start of a User-Agent value; empty if missing."""
    found = _TOKEN.match(agent.strip(" \t"))
    return found[0].lower() if found else ""


class RobotsFile:
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
        """Parse a robots.txt for an agent (`holdfast`, or a whole User-Agent that starts with its token).

        Unreadable parts are skipped and noted; no body is rejected.
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

    def rules(self) -> list[RobotsRule]:
        return self._index.rules()

    def memory_bytes(self) -> int:
        """Estimate the memory of the parsed file, rather too high than too low."""
        texts = (*self.sitemaps, *self.notes)
        return _EMPTY_FILE_BYTES + self._index.memory_bytes() + sum(map(sys.getsizeof, texts))

    def decide(self, target: str) -> RobotsDecision:
        """Return whether this URL (path and query, or the whole URL) may be requested, and by which rule."""
        path = path_of(target)
        rule = self._index.best(path)
        # The file itself may always be requested (section 2.2.2), whatever its rules.
        if rule is None or path == "/robots.txt":
            return _FREE
        return (
            RobotsDecision(False, TOO_COSTLY) if rule is DENIED else RobotsDecision(rule.allow, rule.shown(), rule.line)
        )


_FREE = RobotsDecision(True)
_EMPTY_FILE_BYTES = 2_048
_DISALLOW, _ALLOW, _AGENT, _DELAY, _SITEMAP, _OTHER = range(6)
# Accept misspellings with only one possible meaning: rules that are not read would not be obeyed.
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
    __slots__ = ("delays", "named", "rules")

    def __init__(self) -> None:
        self.named = False
        self.rules: list[tuple[int, bool, str]] = []
        """Line, whether it allows, value."""
        self.delays: list[float] = []


class _Lines:
    def __init__(self, token: str, notes: list[str]) -> None:
        self.own, self.star = _Group(), _Group()
        self.sitemaps: dict[str, None] = {}
        self._token = token
        self._notes = notes
        self._current: list[_Group] = []
        """Which of the two the group being read is for."""
        self._naming = False
        """True while user-agent lines follow each other; other records between them change nothing (section 2.2.4)."""

    def read(self, text: str) -> None:
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
            group = self.star  # `* foo` counts as every crawler
        elif self._token and product_token(value) == self._token:
            group = self.own
        else:
            return
        group.named = True
        if group not in self._current:
            self._current.append(group)

    def _delay(self, number: int, value: str) -> None:
        """Apply a delay to the agents named so far: a bot with only a delay must not pass it to the next one."""
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
        else:
            self.sitemaps[value] = None

    def _note(self, note: str) -> None:
        if len(self._notes) < MAX_NOTES and note not in self._notes:
            self._notes.append(note)


def _read_loosely(line: str) -> tuple[int, str]:
    """Parse a line with an irregular field: other letter case, surrounding spaces, or a missing colon."""
    key, _, value = line.partition(":")
    field = _SPELLINGS.get(key.strip().lower(), _OTHER)
    if field == _OTHER:
        key, *rest = line.split(None, 1) or [""]
        if rest:
            field, value = _SPELLINGS.get(key.lower(), _OTHER), rest[0]
    return field, value


def _decode(body: bytes, notes: list[str]) -> str:
    """Return the lines to parse, each ended by a line feed; invalid UTF-8 octets survive as surrogates."""
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
        # Drop a truncated line: it would be another rule than the written one.
        text = text[: text.rfind("\n") + 1]
        notes.append(f"cut after {MAX_BYTES} bytes")
    return text


_HTML = re.compile(r"<(?:!doctype|html|head|body|title|script|meta)\b", re.IGNORECASE)


def _is_html(text: str) -> bool:
    return text[:256].lstrip()[:1] == "<" and _HTML.search(text[:2_048]) is not None


FRESH = timedelta(hours=1)
"""How long a response is used before it is fetched again."""
STALE = timedelta(hours=24)
"""How long a response may be used at all (section 2.4)."""
OUTAGE = timedelta(minutes=30)
"""How long an unreadable origin is retried at short intervals: as long as an execution waits for a domain."""
LONGEST_WAIT = timedelta(seconds=60)
"""Longest wait during that time: a recovered origin is noticed within a minute."""
AFTER_OUTAGE = timedelta(hours=1)
"""Wait after an outage that lasted longer."""
SKEW = timedelta(minutes=5)
"""How far in our future another machine's clock may have dated a state."""


def _waits() -> tuple[timedelta, ...]:
    """Return the waits after each failure of an outage: 2, 4, 8 s and so on, then a minute each, until it is over."""
    waits: list[timedelta] = []
    while sum(waits, timedelta()) < OUTAGE:
        waits.append(min(timedelta(seconds=2.0 * 2.0 ** len(waits)), LONGEST_WAIT))
    return tuple(waits)


RETRIES = _waits()


class RobotsVerdict(StrEnum):
    ALLOW = "allow"
    RULES = "rules"
    """Parse the body and apply its rules."""
    DISALLOW = "disallow"
    UNKNOWN = "unknown"
    """No URL of this origin is requested before its robots.txt."""


IN_FORCE = (RobotsVerdict.RULES, RobotsVerdict.ALLOW)
"""Verdicts based on a response; the others apply without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotsRead:
    """Result of one attempt to read an origin's robots.txt, redirects followed.

    A body that broke off or cannot be decoded is a failure whatever its status; one cut by our size limit is not.
    """

    origin: str
    status: int | None = None
    """Status of the last hop; None without a response."""
    body: bytes = b""
    failure: FetchProblem | None = None
    too_many_redirects: bool = False
    """Whether there was a sixth redirect in a row, which was not followed."""


def read_answer(previous: RobotsRecord | None, result: RobotsRead, now: datetime) -> RobotsRecord:
    """Return the state of the origin after this attempt.

    2xx gives rules; 4xx and more than five redirects mean that there is no file, so everything is allowed; 429,
    5xx, no response and anything else mean unreachable: the last response of any kind stays valid for 24 hours, and
    without one everything is disallowed.
    """
    answer = _answer_of(result)
    if answer is not RobotsAnswer.UNREACHABLE:
        body = result.body[:MAX_BYTES] if answer is RobotsAnswer.RULES else b""
        return RobotsRecord(
            origin=result.origin, answer=answer, fetched_at=now, checked_at=now, status=result.status, body=body
        )
    if previous is None:
        return RobotsRecord(
            origin=result.origin, answer=answer, fetched_at=now, checked_at=now, status=result.status, failures=1
        )
    # A failure long after the last one starts a new outage, retried like the first.
    before = 0 if now - previous.checked_at >= AFTER_OUTAGE else previous.failures
    failed = replace(previous, checked_at=now, status=result.status, failures=before + 1)
    # A short outage does not change a missing robots.txt. The RFC allows treating 30 days of outage as "no file"; we do
    # not: an unreachable origin has not agreed.
    if verdict(previous, now) in IN_FORCE or previous.answer is RobotsAnswer.UNREACHABLE:
        return failed
    return replace(failed, answer=RobotsAnswer.UNREACHABLE, fetched_at=now, body=b"")


def _answer_of(result: RobotsRead) -> RobotsAnswer:
    if result.failure is not None or result.status is None:
        return RobotsAnswer.UNREACHABLE
    if result.too_many_redirects:
        return RobotsAnswer.ALLOW_ALL
    if 200 <= result.status < 300:
        return RobotsAnswer.RULES
    if 400 <= result.status < 500 and result.status != 429:
        return RobotsAnswer.ALLOW_ALL
    return RobotsAnswer.UNREACHABLE


def next_try_at(state: RobotsRecord) -> datetime:
    """Return when to fetch the origin's robots.txt again; never after the current response expires."""
    if state.failures == 0:
        wait = FRESH
    elif state.failures <= len(RETRIES):
        wait = RETRIES[state.failures - 1]
    else:
        wait = AFTER_OUTAGE
    due = state.checked_at + wait
    if state.answer is RobotsAnswer.UNREACHABLE:
        return due
    return min(due, max(state.fetched_at + STALE, state.checked_at))


def needs_fetch(state: RobotsRecord | None, now: datetime) -> bool:
    """Return whether to fetch robots.txt now; also if a clock that ran ahead dated the state."""
    return state is None or now >= next_try_at(state) or state.checked_at > now + SKEW


def verdict(state: RobotsRecord | None, now: datetime) -> RobotsVerdict:
    """Return the access to the origin now; a response that is too old, or dated in our future, does not count."""
    if state is None:
        return RobotsVerdict.UNKNOWN
    if state.answer is RobotsAnswer.UNREACHABLE:
        return RobotsVerdict.DISALLOW
    if not -SKEW <= now - state.fetched_at <= STALE:
        return RobotsVerdict.UNKNOWN
    return RobotsVerdict.RULES if state.answer is RobotsAnswer.RULES else RobotsVerdict.ALLOW
