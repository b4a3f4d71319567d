"""What each process of a crawl is given: its assignment, the seeds to add, and the scope that grows while it runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from threading import Lock
from typing import Self

from holdfast.sources.plan import CrawlPlan
from holdfast.types import FoundUrl, UrlKind
from holdfast.urls import Url, parse, priority
from holdfast.urls.scope import Patterns
from holdfast.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """One process's part of an execution: its start parameters, passed as JSON on standard input."""

    plan: str
    execution_id: int
    source_code: str
    output_dir: str
    run_file: str
    processes: int
    seconds_left: float | None
    supervisor: int
    """Owner id of the supervisor; when the supervisor is gone, this process hands back its work and ends."""
    epoch: int | None = None
    """Epoch of the lease under which the execution runs: this process drains when it ends. None without a lease."""
    goes_on_with: int | None = None
    """The execution whose frontier is continued, if this one retries another."""

    @property
    def frontier_id(self) -> int:
        return self.execution_id if self.goes_on_with is None else self.goes_on_with

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls(**json.loads(text))


class CrawlScope:
    """Decides and normalises the URLs a crawl process accepts; widens when a seed redirects elsewhere."""

    def __init__(self, plan: CrawlPlan) -> None:
        self.plan = plan
        self.rules = plan.build_scope()
        """Read by any thread, without the lock: `widen` puts another value here and changes none."""
        self.normalisation = plan.normalisation()
        """How this crawl tells one page from another: every address is read by it."""
        self.seed_origins = frozenset(plan.seed_origins())
        self._landed: set[str] = set()
        self._widening = Lock()
        self._added_rules: tuple[str, ...] = ()
        self._added = Patterns()

    def widen(self, url: Url) -> bool:
        """Add the URL where a seed landed to the scope; return False if it was already included."""
        # Parsing threads and the loop may report such places concurrently: without the lock one would be lost.
        with self._widening:
            if url.normalised in self._landed:
                return False
            self._landed.add(url.normalised)
            before, self.rules = self.rules, self.rules.with_landing_hosts((url,))
            return self.rules is not before

    def exclude(self, rules: tuple[str, ...]) -> bool:
        """Exclude URLs matching these rules in addition to the plan's; return False if the rules are unchanged.

        An operator adds and removes such rules while the crawl runs.
        """
        with self._widening:
            if rules == self._added_rules:
                return False
            self._added, self.rules = Patterns(rules), self.rules.excluding((*self.plan.exclude, *rules))
            self._added_rules = rules
            return True

    def left_out(self, url: Url) -> str | None:
        """Return the rule by which an operator excluded a URL since the crawl started, else None.

        Used for queued URLs, which passed all other rules when they were found.
        """
        return self._added.first(url.normalised)


_LIST_PRIORITY = 3


def seeds_of(plan: CrawlPlan) -> Iterator[FoundUrl]:
    """Yield the seeds as URLs to add, in the given order; for polling crawls, the due feeds and sitemaps."""
    if plan.polls:
        policy = plan.normalisation()
        for url in (parse(polled.url, policy) for polled in plan.lists):
            yield FoundUrl(url.fetch, url.hash64, url.domain, UrlKind.SITEMAP, 0, _LIST_PRIORITY)
    for url in islice(plan.each_seed_url(), int(plan.search) if plan.polls else None):
        yield FoundUrl(url.fetch, url.hash64, url.domain, UrlKind.PAGE, 0, priority(url.normalised, 0, is_seed=True))
