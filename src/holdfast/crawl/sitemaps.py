"""The sitemaps that robots files name, as addresses to add; a seed's origin without one gets the usual place."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.crawl.crew import Crew
from holdfast.crawl.links import SITEMAP_PRIORITY
from holdfast.crawl.redirects import follow
from holdfast.crawl.robots_gate import RobotsGate
from holdfast.errors import UrlRefused
from holdfast.types import Found, Kind
from holdfast.urls import parse


def sitemaps_of(crew: Crew, gate: RobotsGate) -> Iterator[Found]:
    """Yield the sitemaps of origins whose robots.txt was read; a seed's origin without one gets the usual place."""
    origins, gate.sitemaps = gate.sitemaps, []
    if not crew.plan.sitemaps or crew.plan.scope == "page":
        return
    seeds = crew.seed_origins
    for origin, named in origins:
        if origin in crew.met_origins:
            continue
        # Here, and not where a robots.txt is read: the lane of a visitor reads it too, and offers nothing.
        crew.met_origins[origin] = True
        if origin not in seeds and not crew.scope.decide(parse(f"{origin}/", crew.policy), 0).allowed:
            continue  # the sitemaps of hosts that only lend us a picture are not ours to read
        for address in named or ((f"{origin}/sitemap.xml",) if origin in seeds else ()):
            try:
                url = follow(parse(f"{origin}/", crew.policy), address, crew.policy)
            except UrlRefused:
                continue
            yield Found(url.fetch, url.hash64, url.domain, Kind.SITEMAP, 1, SITEMAP_PRIORITY)
