"""One robots.txt as RFC 9309 reads it: what our product token may ask for, which line says so, what an answer to GET
/robots.txt means for its origin, and when to ask again.

Bytes in, answers out. It fetches nothing, raises on no file, and never grants what it could not afford to decide.
Where the RFC leaves a choice, the choice with less access is taken.
"""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import chain, islice
from typing import NamedTuple, Self

from holdfast.types import FetchProblem, RobotsAnswer, RobotsState
from holdfast.values import dataclass

# Octets of wildcard patterns times octets of the address: at the bound the worst patterns tried cost 30 ms, and a file
# of 500 ordinary wildcards is still decided for the longest address that we ask for (8,192 octets).
MAX_WORK = 50_000_000

TOO_COSTLY = "(more wildcards than this address can be held against)"

# Both sides are brought to one spelling before octets are compared (section 2.2.2): unreserved characters bare, the
# reserved ones as they stand, everything else escaped in upper case. `*` and `$` of an address are escaped, so that a
# pattern can name them as %2A and %24 (section 2.2.3).
_SAFE = r"A-Za-z0-9\-._~:/?\[\]@!&'()+,;="
_RESERVED_ESCAPE = r"(?:[0189A-F][0-9A-F]|2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[B-DF])"
# What needs another spelling. A leading character class lets the search skip all that is well, which is nearly all.
_ODD_IN_ADDRESS = re.compile(rf"[^{_SAFE}](?:(?<!%)|(?!{_RESERVED_ESCAPE}))")
_ODD_IN_PATTERNS = re.compile(
    rf"[^*\n{_SAFE}](?:(?<![%$])|(?<=%)(?!{_RESERVED_ESCAPE})|(?<=\$)(?!\n|\Z))[^*\n]*",
)
_ESCAPES = r"(?P<escapes>(?:%[0-9A-Fa-f]{2})+)"
_RUN_OF_ADDRESS = re.compile(rf"{_ESCAPES}|[^{_SAFE}%]+|%")
# An escape that a pattern breaks off, as in `/*%` and `/a%2*`, begins many escapes and is no percent sign.
_RUN_OF_PATTERN = re.compile(rf"{_ESCAPES}|(?P<broken>%[0-9A-Fa-f]?)\Z|[^{_SAFE}$%]+|%|\$(?!\Z)")
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_SPELLING = [chr(octet) if octet in _UNRESERVED else f"%{octet:02X}" for octet in range(256)]
_RULE_BYTES = 320
"""A rule's share of the tables of an index, measured with 40,000 wildcards that have nothing in common."""
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
    """Spell the rest of a literal, up to the next star or the end of its pattern."""
    spelled = _RUN_OF_PATTERN.sub(_spell, found[0])
    closes = found.string[found.end() : found.end() + 1] != "*"
    return spelled if closes or spelled[-1:] != "$" else spelled[:-1] + "%24"


def path_of(target: str) -> str:
    """Return path and query of an address (or of a whole URL) in the spelling that `RuleIndex.best` compares."""
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
    """Return the patterns in the spelling that is compared."""
    # All at once, because one pass costs a tenth of 180.
    if not values:
        return []
    patterns = _ODD_IN_PATTERNS.sub(_spell_literal, "\n".join(values))
    if "%" not in patterns:
        return patterns.split("\n")
    return [_fold_query(each) if "%" in each and "?" in each else each for each in patterns.split("\n")]


class RobotsRule(NamedTuple):
    """One allow or disallow line of the group, its value as written."""

    line: int
    allow: bool
    value: str

    def shown(self) -> str:
        """Return the rule fit for a log, a database and a terminal."""
        value = self.value[:500]
        if not value.isprintable():
            value = "".join(char if char.isprintable() else "\ufffd" for char in value)
        return f"{'Allow' if self.allow else 'Disallow'}: {value}"


def _matches(pattern: str, path: str) -> bool:
    """Return whether a pattern with stars matches a path."""
    # Each literal between the stars is taken at its first place: if that fails, no later place would do.
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
"""Stands for a decision that was not made; no line of the file says it."""


class RuleIndex:
    """The rules of one group, arranged so that a decision touches only those whose literal head fits.

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
            # Of two rules with one pattern the allowing one wins (section 2.2.2), else the first is the one to name.
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
        # To look for the longest literal first rules most patterns out without matching them piece by piece.
        rank = len(pattern) * 2 + self._rules[number][1]
        self._wild.setdefault(head, []).append((needle, rank, number, pattern))

    def rules(self) -> list[RobotsRule]:
        """Return the rules in the order of their lines."""
        return [RobotsRule(*rule) for rule in self._rules]

    def memory_bytes(self) -> int:
        """Return about how much memory the index takes: each rule as written, as spelled, and its places in tables."""
        return sum(_RULE_BYTES + 2 * sys.getsizeof(value) for _, _, value in self._rules)

    def best(self, path: str) -> RobotsRule | None:
        """Return the most specific rule that matches what `path_of` gave, the allowing one on a tie; None if none."""
        # A hostile file would hold the event loop up here (see MAX_WORK): what is not decided is not granted.
        if len(path) > self._longest:
            return DENIED
        rank, number = self._best(path)
        if "%" in path and "?" in path:
            folded = _fold_query(path)
            if folded != path:
                rank, number = max((rank, number), self._best(folded), key=_by_rank_then_line)
        return RobotsRule(*self._rules[number]) if rank else None

    def _best(self, path: str) -> tuple[int, int]:
        """Return rank and number of the best rule, the first of equals; the rank is 0 if none matches."""
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
"""What is parsed; RFC 9309 section 2.5 asks for 500 KiB at least."""
MAX_SITEMAP_CHARS = 2_048
MAX_NOTES = 20
MAX_CRAWL_DELAY_S = 86_400.0
"""A longer one is a slip; the caller's own cap (see `capped`) is far lower."""


class RobotsDecision(NamedTuple):
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

    def rules(self) -> list[RobotsRule]:
        """Return the allow and disallow lines that apply to our token, in their order."""
        return self._index.rules()

    def memory_bytes(self) -> int:
        """Return about how much memory the parsed file takes, rather too much than too little."""
        texts = (*self.sitemaps, *self.notes)
        return _EMPTY_FILE_BYTES + self._index.memory_bytes() + sum(map(sys.getsizeof, texts))

    def decide(self, target: str) -> RobotsDecision:
        """Return whether this address (path and query, or the whole URL) may be asked for, and by which rule."""
        path = path_of(target)
        rule = self._index.best(path)
        # The file itself may always be asked for (section 2.2.2), whatever its rules say.
        if rule is None or path == "/robots.txt":
            return _FREE
        return (
            RobotsDecision(False, TOO_COSTLY) if rule is DENIED else RobotsDecision(rule.allow, rule.shown(), rule.line)
        )


_FREE = RobotsDecision(True)
_EMPTY_FILE_BYTES = 2_048
_DISALLOW, _ALLOW, _AGENT, _DELAY, _SITEMAP, _OTHER = range(6)
# Slips that only ever mean one thing are read as meant: rules that are not read would not be obeyed.
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
        self.sitemaps: dict[str, None] = {}
        self._token = token
        self._notes = notes
        self._current: list[_Group] = []
        """Which of the two the group being read is for."""
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
            group = self.star  # `* foo` means every crawler, whatever else was meant
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
        else:
            self.sitemaps[value] = None

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


FRESH = timedelta(hours=1)
"""How long an answer is used before it is asked for anew."""
STALE = timedelta(hours=24)
"""How long an answer may be used at all (section 2.4)."""
OUTAGE = timedelta(minutes=30)
"""How long an origin that cannot be read is tried at short intervals: as long as an execution waits for a domain."""
LONGEST_WAIT = timedelta(seconds=60)
"""The longest wait during that time: an origin that comes back is noticed within a minute."""
AFTER_OUTAGE = timedelta(hours=1)
"""The wait after an outage that lasted longer."""
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
    """What a state allows now."""

    ALLOW = "allow"
    RULES = "rules"
    """Parse the body and ask it."""
    DISALLOW = "disallow"
    UNKNOWN = "unknown"
    """Nothing is asked of this origin before its robots.txt was."""


IN_FORCE = (RobotsVerdict.RULES, RobotsVerdict.ALLOW)
"""Verdicts that an answer has given; the others stand for want of one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotsRead:
    """What came of one try to read an origin's robots.txt, redirects followed.

    A body that broke off, or that cannot be decoded, is a failure whatever its status; one that our size limit cut is
    not.
    """

    origin: str
    status: int | None = None
    """Of the last hop; None if there was no response."""
    body: bytes = b""
    """Content-decoded."""
    failure: FetchProblem | None = None
    too_many_redirects: bool = False
    """A sixth redirect in a row; it was not followed."""


def read_answer(previous: RobotsState | None, result: RobotsRead, now: datetime) -> RobotsState:
    """Return what is known of the origin after this try.

    2xx is rules; 4xx and more than five redirects mean that there is no file, so all is allowed; 429, 5xx, no response
    and anything else mean unreachable: the last answer stays in force for 24 hours, whatever it was, and without one
    all is disallowed.
    """
    answer = _answer_of(result)
    if answer is not RobotsAnswer.UNREACHABLE:
        body = result.body[:MAX_BYTES] if answer is RobotsAnswer.RULES else b""
        return RobotsState(
            origin=result.origin, answer=answer, fetched_at=now, checked_at=now, status=result.status, body=body
        )
    if previous is None:
        return RobotsState(
            origin=result.origin, answer=answer, fetched_at=now, checked_at=now, status=result.status, failures=1
        )
    # A failure long after the last one begins a new outage: it is tried as patiently as the first.
    before = 0 if now - previous.checked_at >= AFTER_OUTAGE else previous.failures
    failed = replace(previous, checked_at=now, status=result.status, failures=before + 1)
    # A site without a robots.txt that is down for a moment has not changed its mind. The RFC allows to treat 30 days of
    # outage as "no file"; we do not: an origin that cannot answer has not agreed.
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


def next_try_at(state: RobotsState) -> datetime:
    """Return when the origin's robots.txt is to be asked for again; never after the answer in force expires."""
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


def needs_fetch(state: RobotsState | None, now: datetime) -> bool:
    """Return whether robots.txt is to be asked for now; also if a clock that ran ahead dated the state."""
    return state is None or now >= next_try_at(state) or state.checked_at > now + SKEW


def verdict(state: RobotsState | None, now: datetime) -> RobotsVerdict:
    """Return what may be asked of the origin now; an answer that is too old, or dated in our future, is no answer."""
    if state is None:
        return RobotsVerdict.UNKNOWN
    if state.answer is RobotsAnswer.UNREACHABLE:
        return RobotsVerdict.DISALLOW
    if not -SKEW <= now - state.fetched_at <= STALE:
        return RobotsVerdict.UNKNOWN
    return RobotsVerdict.RULES if state.answer is RobotsAnswer.RULES else RobotsVerdict.ALLOW
