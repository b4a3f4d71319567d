"""Facts shared by all URLs with the same scheme, host and port, computed once and cached.

Rejects credentials, hosts that cannot exist in DNS, and ports of services other than websites.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from functools import lru_cache
from importlib.resources import files
from typing import Final, NamedTuple

from url import URL, URLError

from holdfast.values import dataclass

NORMALISER_VERSION: Final = 1
"""Increased with any change that gives a URL another normal form: the hashes of an archive depend on it."""

_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_ESCAPE = re.compile(r"%(?:[0-9A-Fa-f]{2})?")

# A lower-case escape, an escaped unreserved character, or a bare percent sign. Most escapes are normalised, and one
# search shows this.
_UNTIDY = re.compile(r"%(?![0-9A-F]{2})|%(?:2[DE]|3[0-9]|4[1-9A-F]|5[0-9AF]|6[1-9A-F]|7[0-9AE])")


def _escape_table() -> dict[str, str]:
    # A percent sign that starts no escape becomes %25: otherwise decoding the next escape (`%%37e`) could create a new
    # one, and a second pass would give another result.
    table = {"%": "%25"}
    for code in range(256):
        char = chr(code)
        plain = char if char in _UNRESERVED else f"%{code:02X}"
        for first in "{0:x}{0:X}".format(code >> 4):
            for second in "{0:x}{0:X}".format(code & 15):
                table[f"%{first}{second}"] = plain
    return table


_PLAIN = _escape_table()


def _replace(match: re.Match[str]) -> str:
    return _PLAIN[match[0]]


def _name(pair: str) -> str:
    return pair.partition("=")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Normalisation:
    """The rules by which a source decides whether two URLs are the same page.

    Changing any field but `allow_ports` gives its pages new identities.
    """

    tracking: frozenset[str] = frozenset({"fbclid", "gclid", "gclsrc", "dclid", "msclkid", "ref", "source"})
    """Names of query parameters that do not change the page, in lower case."""
    tracking_prefixes: tuple[str, ...] = ("utm_",)
    """Prefixes of such names, in lower case."""
    strip_trailing_slash: bool = False
    """Whether `/a/` and `/a` are the same page; the root stays `/`."""
    force_https: bool = False
    """Whether `http` on its default port is normalised to `https`; a service on another port keeps its scheme."""
    allow_ports: frozenset[int] = frozenset()
    """Ports that are accepted in addition to the general rule (see `sites.port_allowed`)."""
    # Stored, because each page uses the cache by policy.
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        values = self.tracking, self.tracking_prefixes, self.strip_trailing_slash, self.force_https, self.allow_ports
        object.__setattr__(self, "_hash", hash(values))

    def __hash__(self) -> int:
        return self._hash


DEFAULT: Final = Normalisation()


def normalisation_of(
    *, strip_trailing_slash: bool, force_https: bool, tracking: Sequence[str] | None, allow_ports: Iterable[int]
) -> Normalisation:
    """Return the policy for settings written by a person; a name in `tracking` that ends in `*` is a prefix."""
    chosen = DEFAULT
    if tracking is not None:
        names = [name.strip().lower() for name in tracking if name.strip()]
        chosen = Normalisation(
            tracking=frozenset(name for name in names if not name.endswith("*")),
            tracking_prefixes=tuple(sorted({name[:-1] for name in names if name.endswith("*")})),
        )
    return replace(
        chosen, strip_trailing_slash=strip_trailing_slash, force_https=force_https, allow_ports=frozenset(allow_ports)
    )


class PathAndQuery:
    __slots__ = ("_prefixes", "_strip", "_tracking")

    def __init__(self, policy: Normalisation) -> None:
        self._tracking = policy.tracking
        self._prefixes = policy.tracking_prefixes
        self._strip = policy.strip_trailing_slash

    def normalise(self, rest: str) -> str:
        """Return path and query in their normal form.

        Escapes of unreserved characters are decoded, others written in upper case. Query pairs are sorted by name
        only,
        so that repeated names stay in order (`a=2&a=1` and `a=1&a=2` are different requests to a server); tracking
        parameters, empty pairs and an empty query are dropped. One pass, and idempotent.
        """
        if "%" in rest and _UNTIDY.search(rest):
            rest = _ESCAPE.sub(_replace, rest)
        path, _, query = rest.partition("?")
        if self._strip:
            path = path.rstrip("/") or "/"
        if query:
            query = self._query(query)
        return f"{path}?{query}" if query else path

    def _query(self, query: str) -> str:
        if "&" not in query:
            return "" if self._tracked(query) else query
        pairs = [pair for pair in query.split("&") if pair and not self._tracked(pair)]
        # A stable sort by name only: `a=2&a=1` and `a=1&a=2` are different requests to a server.
        pairs.sort(key=_name)
        return "&".join(pairs)

    def steps(self, rest: str) -> Iterator[tuple[str, str]]:
        """Yield each step of `normalise`: its name and its result, including steps that changed nothing.

        For explanations to people, and slower; a test ensures that both agree.
        """
        rest = _ESCAPE.sub(_replace, rest) if "%" in rest else rest
        yield "escapes", rest
        path, mark, query = rest.partition("?")
        path = path.rstrip("/") or "/" if self._strip else path
        yield "trailing_slash", f"{path}{mark}{query}"
        pairs = [pair for pair in query.split("&") if not self._tracked(pair)]
        yield "tracking", f"{path}?{'&'.join(pairs)}" if mark and pairs else path
        pairs = [pair for pair in pairs if pair]
        yield "empty_query", f"{path}?{'&'.join(pairs)}" if pairs else path
        pairs.sort(key=_name)
        yield "query_order", f"{path}?{'&'.join(pairs)}" if pairs else path

    def _tracked(self, pair: str) -> bool:
        name = pair.partition("=")[0].lower()
        return name in self._tracking or name.startswith(self._prefixes)


_REMEMBERED_SITES: Final = 4096
_REMEMBERED_CHARS: Final = 300  # a host has at most 253; longer ones are refused, and not worth memory
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_NAME = re.compile(r"[a-z0-9_.\-]+")  # the parser lets quotes, braces and the like stand in a host
_IPV4 = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")

DENIED_PORTS: Final = frozenset(
    {
        *(1433, 1434, 1521, 3306, 5432, 6379, 7687, 9042, 9160, 11211, 26379, 27017, 27018, 27019, 28015),  # databases
        *(5984, 8086, 8529, 9200, 9300),  # stores that speak HTTP to every client
        *(1883, 2181, 4222, 4369, 5671, 5672, 8883, 9092, 15672, 25672, 61613, 61616),  # queues
        *(2375, 2376, 2377, 2379, 2380, 4243, 6443, 8500, 8600, 10250, 10255, 10256),  # machines that run machines
        *(2049, 3260, 3389, 5900, 5901, 5902, 5903, 5985, 5986, 6000, 6001, 9100),  # files, screens, printers
        *(1719, 1720, 1723, 3659, 4045, 4190, 5060, 5061, 6566, 6679, 6697, 10080),  # as browsers refuse (Fetch, 2.9)
        *range(6665, 6670),
    }
)
"""Ports above 1023 that are never requested unless a source names them: URLs must not reach databases."""


class Site(NamedTuple):
    scheme: str
    host: str
    port: int
    domain: str
    origin: str
    prefix: str
    """The start of every normalised URL of this site."""
    as_is: bool
    """Whether a URL without query and escapes is its own normal form."""


def is_ip(host: str) -> bool:
    """Return whether a host, as serialised by the WHATWG parser, is an IP address rather than a name."""
    return host.startswith("[") or _IPV4.fullmatch(host) is not None


def port_allowed(port: int, allow_ports: frozenset[int] = frozenset()) -> bool:
    """Return whether a website may use this port: 80, 443, above 1023 except DENIED_PORTS, and `allow_ports`."""
    # A source may allow even a denied port: its operator chose it.
    if port in allow_ports:
        return 0 < port < 65536
    return port in (80, 443) or (port > 1023 and port not in DENIED_PORTS)


def _host_problem(host: str) -> str | None:
    if not host:
        return "it names no host"
    if is_ip(host):
        return None
    if len(host) > 253 or any(not 0 < len(label) < 64 for label in host.split(".")):
        return "its host is no name that could be looked up (empty or over-long label)"
    return None if _NAME.fullmatch(host) else "its host has a character that no host name has"


def _build(start: str, policy: Normalisation) -> Site | str:
    try:
        parsed = URL.parse(start + "/")
    except (URLError, ValueError):
        return "it cannot be parsed"
    scheme = parsed.scheme
    if scheme not in _DEFAULT_PORTS:
        return f"only http and https are fetched, not {scheme}"
    if parsed.username or parsed.password is not None:
        return "it carries a user name or password"
    # A final dot is another spelling of the same host, and must not be another politeness key.
    host = (parsed.host_str or "").removesuffix(".")
    if problem := _host_problem(host):
        return problem
    default = _DEFAULT_PORTS[scheme]
    port = default if parsed.port is None else parsed.port
    if not port_allowed(port, policy.allow_ports):
        return f"port {port} is not one where websites live; a source can allow it"
    origin = f"{scheme}://{host}" if port == default else f"{scheme}://{host}:{port}"
    # One politeness key for both schemes: they are one server.
    domain = host if port in (80, 443) else f"{host}:{port}"
    # Only on the default port: a server on 8080 rarely uses TLS there.
    upgraded = policy.force_https and scheme == "http" and port == default
    prefix = f"https://{host}" if upgraded else origin
    as_is = prefix == start and not policy.strip_trailing_slash
    return Site(scheme, host, port, domain, origin, prefix, as_is)


class Sites:
    __slots__ = ("_known", "_policy", "spelling")

    def __init__(self, policy: Normalisation) -> None:
        self._policy = policy
        self._known: dict[str, Site | str] = {}
        self.spelling = PathAndQuery(policy)

    def get(self, start: str) -> Site | str:
        """Return the site of `scheme://authority`, as serialised by the parser, or the reason why it is rejected."""
        return self._known.get(start) or self._learn(start)

    def _learn(self, start: str) -> Site | str:
        site = _build(start, self._policy)
        if len(start) <= _REMEMBERED_CHARS:
            # A DNS wildcard creates unlimited hosts.
            if len(self._known) >= _REMEMBERED_SITES:
                self._known.clear()
            self._known[start] = site
        return site


@lru_cache(maxsize=32)
def sites_of(policy: Normalisation) -> Sites:
    return Sites(policy)


_LIST: Final = "public_suffix_list.dat"


@lru_cache(maxsize=1)
def _rules() -> frozenset[str]:
    """Return every rule of the list in ASCII, with `*.` and `!`: from both the registries' and the private section."""
    text = files(__package__).joinpath(_LIST).read_text("utf-8")
    lines = (line.split(None, 1)[0] for line in text.splitlines() if line and not line.startswith("//"))
    return frozenset(line if line.isascii() else _ascii(line) for line in lines)


def _ascii(rule: str) -> str:
    mark = "!" if rule.startswith("!") else "*." if rule.startswith("*.") else ""
    return f"{mark}{URL.parse(f'http://{rule.removeprefix(mark)}/').host_str}"


def _suffix_labels(host: str) -> int:
    """Return the number of labels in the host's public suffix; one without a matching rule (the list's default)."""
    rules = _rules()
    labels = host.split(".")
    for start in range(len(labels)):
        name = ".".join(labels[start:])
        # The longest match wins, and an exception overrides its wildcard.
        if f"!{name}" in rules:
            return len(labels) - start - 1
        if name in rules or (start + 1 < len(labels) and f"*.{'.'.join(labels[start + 1 :])}" in rules):
            return len(labels) - start
    return 1


def is_public_suffix(host: str) -> bool:
    """Return whether names directly below this one belong to different people."""
    host = host.lower().rstrip(".")
    return not is_ip(host) and _suffix_labels(host) == host.count(".") + 1


@lru_cache(maxsize=16_384)
def registrable(host: str) -> str:
    """Return the part of a host that its owner registered: `example.co.uk` of `www.example.co.uk`.

    An IP address, a public suffix and a single-label name are returned unchanged.
    """
    host = host.lower().rstrip(".")
    if is_ip(host):
        return host
    return ".".join(host.split(".")[-_suffix_labels(host) - 1 :])
