"""One spelling per page: what the policy of a source makes of an address that the WHATWG parser has written out.

It refuses nothing; `sites` decides which hosts and ports are acceptable, `address` which strings are addresses at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from typing import Final

from holdfast.values import dataclass

NORMALISER_VERSION: Final = 1
"""Raised with any change that gives an address another normalised form: the hashes of an archive depend on it."""

_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_ESCAPE = re.compile(r"%(?:[0-9A-Fa-f]{2})?")

# An escape in lower case, of an unreserved character, or none at all. Most escapes are tidy, and one search says so.
_UNTIDY = re.compile(r"%(?![0-9A-F]{2})|%(?:2[DE]|3[0-9]|4[1-9A-F]|5[0-9AF]|6[1-9A-F]|7[0-9AE])")


def _escape_table() -> dict[str, str]:
    # A percent sign that starts no escape becomes %25: left alone, decoding what follows it (`%%37e`) could complete
    # a new escape, and a second pass would give another result.
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
    """How a source tells one page from another. Changing any but `allow_ports` gives its pages new identities."""

    tracking: frozenset[str] = frozenset({"fbclid", "gclid", "gclsrc", "dclid", "msclkid", "ref", "source"})
    """Names of query parameters that do not change the page, in lower case."""
    tracking_prefixes: tuple[str, ...] = ("utm_",)
    """The same for whole families of names, in lower case."""
    strip_trailing_slash: bool = False
    """Whether `/a/` and `/a` are one page; the root stays `/`."""
    force_https: bool = False
    """Whether `http` on its default port is spelled `https`; a service on another port keeps its scheme."""
    allow_ports: frozenset[int] = frozenset()
    """Ports that are accepted beyond the general rule (see `sites.port_allowed`)."""
    _hash: int = field(init=False, repr=False, compare=False)
    """Kept, because what is remembered by policy is asked for with every page."""

    def __post_init__(self) -> None:
        told = self.tracking, self.tracking_prefixes, self.strip_trailing_slash, self.force_https, self.allow_ports
        object.__setattr__(self, "_hash", hash(told))

    def __hash__(self) -> int:
        return self._hash


DEFAULT: Final = Normalisation()


def normalisation_of(
    *, strip_trailing_slash: bool, force_https: bool, tracking: Sequence[str] | None, allow_ports: Iterable[int]
) -> Normalisation:
    """Return the policy that a person wrote down; a name of `tracking` that ends in `*` stands for a family."""
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
    """The part of the policy that works on what follows the host; made once per policy."""

    __slots__ = ("_prefixes", "_strip", "_tracking")

    def __init__(self, policy: Normalisation) -> None:
        self._tracking = policy.tracking
        self._prefixes = policy.tracking_prefixes
        self._strip = policy.strip_trailing_slash

    def normalise(self, rest: str) -> str:
        """Return path and query in their one spelling.

        Escapes of unreserved characters are decoded, others written in upper case. Query pairs are sorted by name
        only, so that repeated names keep their order (`a=2&a=1` and `a=1&a=2` are different requests to a server);
        tracking parameters, empty pairs and an empty query are dropped. One pass, and idempotent.
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
        pairs.sort(key=_name)
        return "&".join(pairs)

    def _tracked(self, pair: str) -> bool:
        name = pair.partition("=")[0].lower()
        return name in self._tracking or name.startswith(self._prefixes)
