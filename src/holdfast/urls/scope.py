"""Scope rules: which URLs found by a crawl belong to it, and which rule decides. Rejects rules that RE2 rejects.

Traps are places where a site generates URLs without end. Two kinds are visible in the URL alone, four need a
memory. A trap only prevents adding: a known URL is not judged again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple, Protocol

import re2

from holdfast.errors import Invalid
from holdfast.types import UrlKind
from holdfast.urls.address import Url
from holdfast.urls.sites import is_ip, registrable
from holdfast.values import dataclass


class Address(Protocol):
    """Interface that the rules use: both Url and ResolvedLink have it."""

    @property
    def normalised(self) -> str: ...
    @property
    def hash64(self) -> int: ...
    @property
    def domain(self) -> str: ...
    @property
    def host(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TrapLimits:
    repeats: int = 3
    """How many times one segment may occur in a path."""
    path_segments: int = 40
    query_variants: int = 100_000
    """How many different queries one path may have. A large forum has its topics there; at one request per second,
    this many take 28 hours.
    """
    domains: int = 10_000
    """How many hosts one registrable domain may have: a DNS wildcard produces millions."""
    directory_urls: int = 1_000_000
    """How many URLs one directory may contain: a calendar or a shop generates new ones forever. At one request per
    second, this many take 11 days.
    """
    domain_urls: int = 20_000_000
    """How many URLs one domain may have in one execution. The largest encyclopedia has 7 million articles."""


DEFAULT_LIMITS: Final = TrapLimits()

REPEATED_SEGMENTS: Final = "trap:repeated_segments"
PATH_DEPTH: Final = "trap:path_depth"
QUERY_VARIANTS: Final = "trap:query_variants"
SUBDOMAINS: Final = "trap:subdomains"
DIRECTORY_BUDGET: Final = "trap:directory_budget"
DOMAIN_BUDGET: Final = "trap:domain_budget"


def path_trap(normalised: str, limits: TrapLimits = DEFAULT_LIMITS) -> str | None:
    """Return the rule that a path violates by its shape (too deep, or repeating segments), or None."""
    # Nearly all paths are short, which one count shows.
    if normalised.count("/") - 2 <= min(limits.repeats, limits.path_segments):
        return None
    segments = normalised.partition("?")[0].split("/")[3:]
    if not segments[-1]:
        segments.pop()
    if len(segments) > limits.path_segments:
        return PATH_DEPTH
    # With fewer duplicates no segment can exceed the limit; counting each segment would cost more.
    if len(segments) - len(set(segments)) < limits.repeats:
        return None
    return REPEATED_SEGMENTS if any(segments.count(segment) > limits.repeats for segment in set(segments)) else None


class TrapGuard:
    """The memory of one execution: queries per path, hosts per registrable domain, and the number of URLs per
    directory and domain.

    Bounded: when full, the least recently used entries are dropped, except that a closed path stays closed for much
    longer. Not preserved across restarts. Not thread-safe.
    """

    __slots__ = ("_closed", "_domains", "_limits", "_max_entries", "_owners", "_size", "_taken", "_variants")

    def __init__(self, limits: TrapLimits = DEFAULT_LIMITS, *, max_entries: int = 400_000) -> None:
        """`max_entries` limits each memory: full, the queries use 30 MB. It must exceed the query limit of one
        path.
        """
        self._limits = limits
        self._max_entries = max_entries
        self._variants: dict[int, set[int]] = {}
        self._size = 0
        self._closed: dict[int, None] = {}
        self._domains: dict[str, str] = {}
        self._owners: dict[str, int] = {}
        self._taken: dict[int | str, int] = {}

    @property
    def remembered(self) -> int:
        """Number of remembered queries: at most `max_entries`."""
        return self._size

    def refuses(self, address: Address) -> str | None:
        """Return the rule that rejects a found URL, or None after recording it.

        A URL that is checked twice counts twice in the budgets of its directory and domain.
        """
        normalised = address.normalised
        mark = normalised.find("?")
        if mark >= 0 and not self._admits_variant(hash(normalised[:mark]), address.hash64):
            return QUERY_VARIANTS
        if address.domain not in self._domains and not self._admits_domain(address):
            return SUBDOMAINS
        directory = hash(normalised[: normalised.rfind("/", 0, mark if mark >= 0 else len(normalised))])
        if not self._within(directory, self._limits.directory_urls):
            return DIRECTORY_BUDGET
        return None if self._within(address.domain, self._limits.domain_urls) else DOMAIN_BUDGET

    def _within(self, place: int | str, budget: int) -> bool:
        """Count one more URL in a directory or a domain; return False if the budget was used up."""
        taken = self._taken.get(place, 0)
        if taken >= budget:
            return False
        self._taken[place] = taken + 1
        if len(self._taken) > self._max_entries:  # the smaller half goes: those with many are what this is for
            keep = sorted(self._taken.items(), key=lambda one: -one[1])[: self._max_entries // 2]
            self._taken = dict(keep)
        return True

    def _admits_variant(self, path: int, variant: int) -> bool:
        variants = self._variants.pop(path, None)
        if variants is None:
            if path in self._closed:
                return False
            variants = set()
        self._variants[path] = variants  # last in the dict: used last
        if variant in variants:
            return True
        if len(variants) >= self._limits.query_variants:
            return False
        variants.add(variant)
        self._size += 1
        if self._size > self._max_entries:
            self._forget_a_path()
        return True

    def _forget_a_path(self) -> None:
        path = next(iter(self._variants))
        variants = self._variants.pop(path)
        self._size -= len(variants)
        # A full path stays closed for longer than its queries are remembered: otherwise a calendar would reopen each
        # time.
        if len(variants) >= self._limits.query_variants:
            if len(self._closed) >= self._max_entries:
                del self._closed[next(iter(self._closed))]
            self._closed[path] = None

    def _admits_domain(self, address: Address) -> bool:
        # Count by registrable domain: a DNS wildcard creates hosts, but not domains.
        owner = registrable(address.host)
        count = self._owners.get(owner, 0)
        if count >= self._limits.domains:
            return False
        self._owners[owner] = count + 1
        self._domains[address.domain] = owner
        if len(self._domains) > self._max_entries:
            self._forget_a_domain()
        return True

    def _forget_a_domain(self) -> None:
        owner = self._domains.pop(next(iter(self._domains)))
        self._owners[owner] -= 1
        if not self._owners[owner]:
            del self._owners[owner]


MAX_RULES: Final = 500
MAX_RULE_BYTES: Final = 1024

# Measured with nested repetitions of 1 KB: with 64 KiB the worst is refused after 10 ms, with 256 KiB one compiles in
# 270 ms, and with RE2's default of 8 MiB a single search of 8,000 characters then takes 1.2 s.
_RULE_MEMORY: Final = 64 * 1024
_GROUP_MEMORY: Final = 1024 * 1024
_GROUP_SIZE: Final = 4_000
_TOTAL_SIZE: Final = 100_000


class InvalidPattern(Invalid):
    """A scope rule is invalid."""

    code = "invalid_pattern"

    def __init__(self, pattern: str, reason: str) -> None:
        super().__init__(f"cannot use the rule {pattern[:200]!r}: {reason}")
        self.pattern, self.reason = pattern, reason


def _options(memory: int) -> Any:
    options = re2.Options()
    # Otherwise RE2 writes to standard error, past the log.
    options.log_errors = False
    # Only whether a pattern matches is used; without groups the search is faster.
    options.never_capture = True
    options.max_mem = memory
    return options


# RE2's messages for common mistakes, for people who rarely write regular expressions.
_PLAIN_WORDS: Final = {
    "missing )": "a ( is not closed; write \\( where you mean the bracket itself",
    "unexpected )": "a ) has no ( before it; write \\) where you mean the bracket itself",
    "missing ]": "a [ is not closed; write \\[ where you mean the bracket itself",
    "no argument for repetition": "nothing stands before the * or +; write .* for any text",
    "trailing \\": "it ends with a \\; write \\\\ where you mean the sign itself",
}


def _reason(message: str) -> str:
    if "perl operator" in message or "named capture" in message:
        return f"{message} (look-around does not exist in RE2; use an include and an exclude rule instead)"
    if message.startswith("invalid escape sequence: \\") and message[-1:].isdigit():
        return f"{message} (back-references do not exist in RE2)"
    if "too large" in message:
        return "its repetitions make it too large; write it more simply"
    plain = next((words for said, words in _PLAIN_WORDS.items() if message.startswith(said)), None)
    return message if plain is None else f"{plain} ({message})"


EXCLUDE_PRESETS: Final = {
    "assets": r"[.](?:css|js|mjs|map|ico|woff2?|ttf|otf|eot)(?:[?]|$)",
    "media": r"[.](?:jpe?g|png|gif|webp|avif|svg|mp[34]|m4[av]|webm|og[gv]|wav|avi|mov)(?:[?]|$)",
    "downloads": r"[.](?:zip|gz|tgz|bz2|xz|7z|rar|tar|exe|msi|dmg|iso|apk|deb|rpm)(?:[?]|$)",
    "accounts": r"/(?:log-?in|log-?out|sign-?in|sign-?up|sign-?out|register|account|wp-login[.]php)(?:[/?.]|$)",
    "admin": r"/(?:admin|administrator|wp-admin|user/edit)(?:[/?]|$)",
    "shops": r"/(?:cart|basket|checkout|wish-?list|my-account)(?:[/?]|$)",
    "tags": r"/(?:tag|tags|category|categories|author)/",
    "searches": r"/search(?:[/?]|$)|[?&](?:q|query|search|s)=",
    "calendars": r"/(?:calendar|events)/[0-9]{4}|[?&](?:month|year|date|day)=[0-9]",
    "sorting": r"[?&](?:sort|order|orderby|dir|filter|view|display)=",
}
"""Rules that a source can name as `preset:NAME` instead of writing them."""
_PRESET: Final = "preset:"


def spelled_out(rule: str) -> str:
    """Return the regular expression of a rule; raise `InvalidPattern` for an unknown preset."""
    if not rule.startswith(_PRESET):
        return rule
    found = EXCLUDE_PRESETS.get(rule.removeprefix(_PRESET))
    if found is None:
        raise InvalidPattern(rule, f"unknown preset; expected one of: {', '.join(EXCLUDE_PRESETS)}")
    return found


def _compile(pattern: str) -> Any:
    if not pattern:
        raise InvalidPattern(pattern, "it is empty and would match everything")
    if not pattern.isascii():
        raise InvalidPattern(pattern, "normalised addresses are ASCII; write other characters as %C3%A9")
    if r"\Q" in pattern:  # left open, it would swallow the rules that it is joined with
        raise InvalidPattern(pattern, r"\Q is not accepted; put a backslash before each special character")
    if len(pattern) > MAX_RULE_BYTES:
        raise InvalidPattern(pattern, f"it is longer than {MAX_RULE_BYTES} bytes")
    try:
        return re2.compile(pattern.encode(), _options(_RULE_MEMORY))
    except re2.error as exc:
        message = exc.args[0] if exc.args else "it does not compile"
        text = message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)
        raise InvalidPattern(pattern, _reason(text)) from None


def _grouped(patterns: Sequence[str], compiled: Sequence[Any]) -> list[tuple[Any, range]]:
    """Combine the rules into few expressions with the numbers of their rules, so that a miss costs one search."""
    groups: list[tuple[Any, range]] = []
    start = size = 0
    for number, rule in enumerate(compiled):
        if number > start and size + rule.programsize > _GROUP_SIZE:
            groups.append((_join(patterns[start:number]), range(start, number)))
            start, size = number, 0
        size += rule.programsize
    if compiled:
        groups.append((_join(patterns[start:]), range(start, len(compiled))))
    return groups


def _join(patterns: Sequence[str]) -> Any:
    return re2.compile("|".join(f"(?:{pattern})" for pattern in patterns).encode(), _options(_GROUP_MEMORY))


class Patterns:
    """A list of rules, each searched for anywhere in a normalised URL."""

    __slots__ = ("_compiled", "_groups", "texts")

    def __init__(self, texts: Sequence[str] = ()) -> None:
        """Compile the rules; raise `InvalidPattern` for the first invalid one, with its text and the reason."""
        if len(texts) > MAX_RULES:
            raise Invalid(f"{len(texts)} rules are more than {MAX_RULES}; join some with |")
        self.texts = tuple(texts)
        spelled = [spelled_out(text) for text in self.texts]
        self._compiled = [_compile(text) for text in spelled]
        if sum(rule.programsize for rule in self._compiled) > _TOTAL_SIZE:
            raise Invalid("the rules are too large together; write them more simply")
        self._groups = _grouped(spelled, self._compiled)

    def first(self, normalised: str) -> str | None:
        """Return the first rule that matches, as it was written, or None."""
        if not self._groups:
            return None
        text = normalised.encode()
        for group, numbers in self._groups:
            # Only after a match, find the rule; nearly no URL matches.
            if group.search(text):
                for number in numbers:
                    if self._compiled[number].search(text):
                        return self.texts[number]
        return None


_REMEMBERED_DOMAINS: Final = 16_384


class ScopeKind(StrEnum):
    """How far a crawl goes from its seeds. A port that is neither 80 nor 443 is part of the host."""

    PAGE = "page"
    """The seeds themselves and their embedded resources."""
    PREFIX = "prefix"
    """URLs in or below a seed's directory, in both schemes and on the www twin."""
    HOST = "host"
    """Both schemes of a seed's host, and its www twin."""
    DOMAIN = "domain"
    """The registrable domain of a seed with all its subdomains; an IP address stands for itself."""
    ANY = "any"
    """All hosts."""


class ScopeVerdict(NamedTuple):
    allowed: bool
    rule: str


SEED_RULE: Final = "seed"
_SEED: Final = ScopeVerdict(True, SEED_RULE)
_REQUISITE: Final = ScopeVerdict(True, "requisite")
_SITEMAP: Final = ScopeVerdict(True, "sitemap")
_TOO_DEEP: Final = ScopeVerdict(False, "max_depth")


def twins_of(url: Url) -> tuple[str, ...]:
    """Return the domain of a URL and its twin, with or without `www.`: to people they are one site."""
    domain = url.domain
    if is_ip(url.host):
        return (domain,)
    return (domain, domain.removeprefix("www.") if domain.startswith("www.") else f"www.{domain}")


def _owner(domain: str, host: str) -> str:
    """Return the registrable domain, with any port that makes it a different place."""
    # The rest of the domain is its port.
    return registrable(host) + domain[len(host) :]


def _directory(url: Url) -> str:
    """Return the path up to its last slash; a final slash that the policy strips still marks a directory."""
    group = url.group
    path = group[group.index("/", 8) :]
    if url.fetch.partition("?")[0].endswith("/") and not path.endswith("/"):
        return f"{path}/"
    return path[: path.rindex("/") + 1]


class _Places:
    __slots__ = ("_directories", "_known", "_longest", "_owners", "pages")

    def __init__(self, seeds: Iterable[Url], before: _Places | None = None) -> None:
        """Add the places of these seeds to the known ones in `before`: copying them costs a thousandth of deriving
        them
        from their seeds, of which there may be 100,000.
        """
        self.pages: set[int] = set(before.pages) if before else set()
        self._owners: set[str] = set(before._owners) if before else set()
        self._directories: dict[str, frozenset[str]] = dict(before._directories) if before else {}
        self._known: dict[str, bool] = {}
        self._longest: int = before._longest if before else 0
        added: dict[str, set[str]] = {}
        for seed in seeds:
            self.pages.add(seed.hash64)
            self._owners.add(_owner(seed.domain, seed.host))
            for domain in twins_of(seed):
                added.setdefault(domain, set()).add(_directory(seed))
        for domain, paths in added.items():
            self._directories[domain] = self._directories.get(domain, frozenset()) | paths
            self._longest = max(self._longest, *map(len, paths))

    def has(self, kind: ScopeKind, url: Url) -> bool:
        """Return whether adding a URL as a seed would change nothing in a scope of this kind."""
        if kind is ScopeKind.ANY or url.hash64 in self.pages:
            return True
        if kind is ScopeKind.HOST:
            return all(domain in self._directories for domain in twins_of(url))
        return kind is ScopeKind.DOMAIN and _owner(url.domain, url.host) in self._owners

    def cover(self, kind: ScopeKind) -> Callable[[Address], bool]:
        predicates: dict[ScopeKind, Callable[[Address], bool]] = {
            ScopeKind.PAGE: lambda _: False,
            ScopeKind.PREFIX: self._in_directory,
            ScopeKind.HOST: lambda address: address.domain in self._directories,
            ScopeKind.DOMAIN: self._in_domain,
            ScopeKind.ANY: lambda _: True,
        }
        return predicates[kind]

    def _in_directory(self, address: Address) -> bool:
        directories = self._directories.get(address.domain)
        if directories is None:
            return False
        normalised = address.normalised
        path = normalised[normalised.index("/", 8) :].partition("?")[0]
        # Look up each directory above the path: 100,000 seeds may have as many. `/docs` without its slash is the name
        # of the directory `/docs/`.
        end = path.find("/") + 1
        while 0 < end <= self._longest:
            if path[:end] in directories:
                return True
            end = path.find("/", end) + 1
        return f"{path}/" in directories

    def _in_domain(self, address: Address) -> bool:
        inside = self._known.get(address.domain)
        if inside is None:
            # Bounded: links refer to more domains than there are seeds.
            if len(self._known) >= _REMEMBERED_DOMAINS:
                self._known.clear()
            inside = self._known[address.domain] = _owner(address.domain, address.host) in self._owners
        return inside


class Scope:
    """The immutable rules of one crawl; evaluated for every link."""

    __slots__ = (
        "_covers",
        "_exclude",
        "_include",
        "_inside",
        "_limits",
        "_outside",
        "_pages",
        "_places",
        "kind",
        "max_depth",
    )

    def __init__(
        self,
        places: _Places,
        kind: ScopeKind,
        include: Patterns,
        exclude: Patterns,
        max_depth: int | None,
        limits: TrapLimits,
    ) -> None:
        """Use `Scope.build`, which accepts rules as people write them."""
        self._places = places
        self.kind = kind
        self.max_depth = max_depth
        self._include, self._exclude, self._limits = include, exclude, limits
        self._inside = ScopeVerdict(True, f"scope:{kind}")
        self._outside = ScopeVerdict(False, f"scope:{kind}")
        self._pages = places.pages
        self._covers = places.cover(kind)

    @classmethod
    def build(
        cls,
        seeds: Iterable[Url],
        kind: ScopeKind = ScopeKind.HOST,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        max_depth: int | None = None,
        limits: TrapLimits = DEFAULT_LIMITS,
    ) -> Scope:
        """Return the scope of these seeds; raise `Invalid` for a rule that RE2 rejects, or without any seed.

        A rule is searched for anywhere in the normalised URL. `include` adds matches to the scope on any host;
        `exclude` always wins, over seeds and embedded files too. No depth, or a negative one, means no limit.
        """
        places = _Places(seeds)
        if not places.pages:
            raise Invalid("a crawl needs at least one seed; name an address to start from")
        depth = None if max_depth is None or max_depth < 0 else max_depth
        return cls(places, ScopeKind(kind), Patterns(include), Patterns(exclude), depth, limits)

    def with_landing_hosts(self, urls: Iterable[Url]) -> Scope:
        """Return this scope, widened by the redirect targets of seeds, as if these had been seeds.

        Return the same object if they change nothing: a host whose seeds redirect to its www twin already has both.
        """
        new = [url for url in urls if not (self._places.has(self.kind, url) and self.decide(url, 0).allowed)]
        if not new:
            return self
        places = _Places(new, self._places)
        return Scope(places, self.kind, self._include, self._exclude, self.max_depth, self._limits)

    def excluding(self, rules: Sequence[str]) -> Scope:
        """Return this scope with these exclude rules instead of its own; raise `Invalid` for one that RE2 rejects."""
        return Scope(self._places, self.kind, self._include, Patterns(rules), self.max_depth, self._limits)

    def is_seed(self, url_hash: int) -> bool:
        """Return whether a URL is a seed or the redirect target of one."""
        return url_hash in self._pages

    def decide(self, address: Address, depth: int, kind: UrlKind = UrlKind.PAGE) -> ScopeVerdict:
        """Return whether a URL belongs to the crawl; the first matching rule decides.

        1. an exclude rule: no
        2. embedded files and sitemaps: yes, whatever their host and depth
        3. a seed: yes
        4. deeper than max_depth: no
        5. inside the scope, or matching an include rule: yes, unless the path looks like a trap
        6. everything else: no
        """
        normalised = address.normalised
        # Check exclusions first: they apply to seeds and embedded files, too.
        if self._exclude.texts and (pattern := self._exclude.first(normalised)) is not None:
            return ScopeVerdict(False, f"exclude:{pattern}")
        if kind is not UrlKind.PAGE:
            return _REQUISITE if kind is UrlKind.REQUISITE else _SITEMAP
        if address.hash64 in self._pages:
            return _SEED
        if self.max_depth is not None and depth > self.max_depth:
            return _TOO_DEEP
        if self._covers(address):
            verdict = self._inside
        elif (pattern := self._include.first(normalised)) is not None:
            verdict = ScopeVerdict(True, f"include:{pattern}")
        else:
            return self._outside
        trap = path_trap(normalised, self._limits)
        return verdict if trap is None else ScopeVerdict(False, trap)


HIGH: Final = 3
MEDIUM: Final = 2
LOW: Final = 1

_SHALLOW_DEPTH: Final = 2
_DEEP_DEPTH: Final = 4

_HOMEPAGE = re.compile(r"/(?:index\.[a-z]{3,5})?")
_LISTING_PATH = re.compile(
    r"/(?:tags?|categor(?:y|ies)|archives?|authors?)(?:/|$)"
    r"|/page[/\-_]?\d+(?:\.[a-z]+|/)?$"
    r"|/(?:19|20)\d\d(?:/\d{1,2}){0,2}/?$"
)
_LISTING_QUERY = re.compile(r"(?:^|&)(?:page|paged|pg|offset|start|sort|order|orderby|filter)(?:=|\[|%5b)")
_CONTENT_PATH = re.compile(
    r"/(?:about|contact)(?:[\-_]?us)?(?:\.[a-z]+)?(?:/|$)"
    r"|/(?:blog|news|articles?|posts?|stor(?:y|ies))(?:/|$)"
)


def priority(url: str, depth: int | None, is_seed: bool = False) -> int:
    """Return 3, 2 or 1 for a normalised URL; without a depth (None), judge it by the URL alone.

    The cases overlap; the first match decides:

    1. a seed or a homepage (root or index file, no query): 3
    2. a page of a listing, or an archive (page numbers, sort orders, tags, categories, authors, years): 1. This
       comes before depth, because every site links its listings from the first page, and by depth alone a thousand
       calendar pages would be requested before the first article
    3. depth 2 or less: 3
    4. /about, /contact, blog posts, news and articles: 2, at any depth
    5. other content pages: 2 down to depth 3, deeper: 1
    """
    if is_seed:
        return HIGH
    head, _, query = url.partition("?")
    start = head.find("/", 8)
    path = head[start:].lower() if start > 0 else "/"
    if not query and _HOMEPAGE.fullmatch(path):
        return HIGH
    if _LISTING_PATH.search(path) or (query and _LISTING_QUERY.search(query.lower())):
        return LOW
    if depth is None:
        return MEDIUM
    if depth <= _SHALLOW_DEPTH:
        return HIGH
    return MEDIUM if depth < _DEEP_DEPTH or _CONTENT_PATH.search(path) else LOW
