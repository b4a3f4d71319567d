"""Where redirects end: an address that was answered with another one is captured if that one was, and not otherwise.

A redirect inside a domain was followed by the crawl itself. One to another domain, and every one that another program
met, is followed here through what all executions of the edition know, a stretch of addresses at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple

from holdfast.db.engine import Database
from holdfast.editions import queries
from holdfast.editions.ledger.rows import REDIRECTED, Fate, Sighting, fate_of, fate_of_status, rank_of
from holdfast.editions.volume import Run, Shard
from holdfast.errors import UrlRefused
from holdfast.urls import Scope, Url, parse_seed

_MAX_HOPS: Final = 20
"""As many as browsers follow."""


class _Stop(NamedTuple):
    """What is known of an address on the way."""

    fate: Fate
    reason: str
    http_status: int | None = None
    redirected_to: str | None = None

    @property
    def leads_on(self) -> bool:
        """Whether it is no end yet."""
        return self.fate is Fate.CAPTURED and self.reason == REDIRECTED


class Trail:
    """Follows redirects through the executions of one edition."""

    def __init__(self, database: Database, runs: Iterable[tuple[Shard, Run]], scope: Scope | None, *,
                 with_frontier: Collection[int]) -> None:  # fmt: skip
        self._database, self._scope = database, scope
        self._ended = {run.id: run.ended for _, run in runs}
        self._with_frontier = [run_id for run_id in self._ended if run_id in with_frontier]
        self._without = [run_id for run_id in self._ended if run_id not in with_frontier]

    def followed(self, found: Sequence[Sighting]) -> list[Sighting]:
        """Return these sightings in their order; those that lead elsewhere have the fate of where they led."""
        ends = list(found)
        under_way = {at: one.redirected_to for at, one in enumerate(found)
                     if one.fate is Fate.CAPTURED and one.reason == REDIRECTED}  # fmt: skip
        for _ in range(_MAX_HOPS):
            if not under_way:
                return ends
            known = self._known(target for target in under_way.values() if target is not None)
            further: dict[int, str | None] = {}
            for at, target in under_way.items():
                stop = _NOWHERE if target is None else known[target]
                if stop.leads_on:
                    further[at] = stop.redirected_to
                else:
                    ends[at] = _ended(ends[at], target, stop)
            under_way = further
        for at, target in under_way.items():
            ends[at] = _ended(ends[at], target, _Stop(Fate.FAILED, "too_many_redirects"))
        return ends

    def _known(self, targets: Iterable[str]) -> dict[str, _Stop]:
        """Return what is known of each of these addresses: the best of all executions, or why nobody asked for it."""
        urls: dict[str, Url | None] = {}
        for target in targets:
            try:
                urls[target] = parse_seed(target)
            except UrlRefused:
                urls[target] = None
        stops = self._stops([url for url in urls.values() if url is not None])
        return {
            target: _NOWHERE if url is None else stops.get(url.hash64) or self._unasked(url)
            for target, url in urls.items()
        }

    def _stops(self, urls: Sequence[Url]) -> dict[int, _Stop]:
        pages = {url.hash64 for url in urls}
        best: dict[int, _Stop] = {}
        with self._database.read() as session:
            asked = queries.attempts_on(session, self._with_frontier, pages, {url.domain for url in urls})
            seen = queries.captures_of_pages(session, self._without, pages)
        for page, execution_id, outcome, reason, status, target in asked:
            fate, why = fate_of(outcome, reason, ended=self._ended[execution_id])
            _keep_best(best, page, _Stop(fate, why, status, target))
        for page, status, target, truncated in seen:
            fate, why = fate_of_status(status, truncated)
            _keep_best(best, page, _Stop(fate, why, status, target))
        return best

    def _unasked(self, url: Url) -> _Stop:
        if self._scope is not None and not (verdict := self._scope.decide(url, 1)).allowed:
            return _Stop(Fate.EXCLUDED, f"out_of_scope:{verdict.rule}")
        return _Stop(Fate.NOT_REACHED, "not_followed")


_NOWHERE = _Stop(Fate.FAILED, "nowhere")
"""An answer that says "elsewhere" and names no place, or none that can be asked for."""


def _keep_best(best: dict[int, _Stop], page: int, stop: _Stop) -> None:
    """Note a stop unless a better one is known; of two captures, the one that is a page itself."""
    known = best.get(page)
    if known is None or _order(stop) < _order(known):
        best[page] = stop


def _order(stop: _Stop) -> tuple[object, ...]:
    return rank_of(stop.fate), stop.leads_on, stop.reason, stop.redirected_to or "", stop.http_status or 0


def _ended(one: Sighting, target: str | None, stop: _Stop) -> Sighting:
    """Return a sighting with the fate of where it led; captured, it keeps its own record."""
    if stop.fate is Fate.CAPTURED:
        return one._replace(redirected_to=target)
    reason = stop.reason if stop.reason.startswith("redirect_") else f"redirect_{stop.reason}"
    return one._replace(
        fate=stop.fate, reason=reason, redirected_to=target or one.redirected_to, snapshot_id=None, backend=None,
        fidelity=None, http_status=stop.http_status or one.http_status,
    )  # fmt: skip
