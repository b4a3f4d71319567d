"""Places where a site makes up addresses without end. Two kinds are seen in the address alone, four need a memory.

What is refused here is refused for adding only: an address that is already known is not judged again.
"""

from __future__ import annotations

from typing import Final, Protocol

from holdfast.urls.sites import registrable
from holdfast.values import dataclass


class Address(Protocol):
    """What the rules look at: a Url and a Resolved alike."""

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
    """From where on a site looks endless."""

    repeats: int = 3
    """How often one segment may stand in a path."""
    path_segments: int = 20
    query_variants: int = 1_000
    """How many different queries one path may have."""
    domains: int = 1_000
    """How many hosts one registrable domain may have: a wildcard in the DNS makes up millions."""
    directory_urls: int = 100_000
    """How many addresses may stand in one directory: a calendar or a shop makes up new ones for ever."""
    domain_urls: int = 5_000_000
    """How many addresses one domain may have in one execution."""


DEFAULT_LIMITS: Final = TrapLimits()

REPEATED_SEGMENTS: Final = "trap:repeated_segments"
PATH_DEPTH: Final = "trap:path_depth"
QUERY_VARIANTS: Final = "trap:query_variants"
SUBDOMAINS: Final = "trap:subdomains"
DIRECTORY_BUDGET: Final = "trap:directory_budget"
DOMAIN_BUDGET: Final = "trap:domain_budget"


def path_trap(normalised: str, limits: TrapLimits = DEFAULT_LIMITS) -> str | None:
    """Return the rule that a path breaks by its shape (too deep, or going round in circles), or None."""
    if normalised.count("/") - 2 <= min(limits.repeats, limits.path_segments):
        return None
    segments = normalised.partition("?")[0].split("/")[3:]
    if not segments[-1]:
        segments.pop()
    if len(segments) > limits.path_segments:
        return PATH_DEPTH
    if len(segments) - len(set(segments)) < limits.repeats:
        return None
    return REPEATED_SEGMENTS if any(segments.count(segment) > limits.repeats for segment in set(segments)) else None


class TrapGuard:
    """The memory of one execution: which queries each path has had, which hosts each registrable domain, and how many
    addresses each directory and domain.

    Bounded: when it is full, what was used longest ago is forgotten, except that a path once closed stays closed for
    much longer. It is not kept across restarts. Not for two threads at once.
    """

    __slots__ = ("_closed", "_domains", "_limits", "_max_entries", "_owners", "_size", "_taken", "_variants")

    def __init__(self, limits: TrapLimits = DEFAULT_LIMITS, *, max_entries: int = 200_000) -> None:
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
        """How many queries it has in mind: at most `max_entries`."""
        return self._size

    def refuses(self, address: Address) -> str | None:
        """Return the rule that keeps a found address out, or None after remembering it.

        An address that is asked about twice counts twice in the budgets of its directory and domain.
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
        """Count one more address in a directory or a domain; False if there were enough."""
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
        if len(variants) >= self._limits.query_variants:
            if len(self._closed) >= self._max_entries:
                del self._closed[next(iter(self._closed))]
            self._closed[path] = None

    def _admits_domain(self, address: Address) -> bool:
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
