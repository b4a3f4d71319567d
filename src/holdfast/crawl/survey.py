"""Survey of a website before it is crawled: robots.txt, sitemaps and the first page. Nothing is stored.

Every request respects the address guard, robots.txt, and the lease and delay of its domain, as a crawl does.
Limits: 25 s in total, 4 redirects, 2 MB for the page, 8 sitemaps of 10 MB, 100,000 URLs, 4 concurrent surveys
per process.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from ipaddress import ip_address, ip_network
from itertools import islice
from typing import Any, Final, Literal

from holdfast.config import Settings
from holdfast.crawl.live_pages import LiveFailed, live_turn
from holdfast.crawl.outcomes import follow
from holdfast.crawl.requests import (
    DocumentLimits,
    DomainBusy,
    DomainForbidden,
    FetchedDocument,
    PoliteClient,
    RobotsDenied,
    open_polite_client,
    rules_of,
)
from holdfast.errors import AddressForbidden, UrlRefused
from holdfast.fetch.robots import AGENT, RobotsFile
from holdfast.frontier.explain_robots import RobotsRuling, answer_for, answer_of
from holdfast.jobs.administration.source_preview import rule_sentence
from holdfast.parse import ParseProblem, parse_sitemap
from holdfast.records import Operator, record
from holdfast.sources.config import read_config
from holdfast.sources.contact import contact_of, remember_contact
from holdfast.sources.plan import CrawlDefaults, CrawlPlan, crawl_plan
from holdfast.sources.queries import SiteSource
from holdfast.types import FetchFailed, FetchProblem, ParsedPage, RobotsAnswer, RobotsRecord, UrlKind
from holdfast.urls import DEFAULT, Base, ResolvedLink, Scope, ScopeVerdict, Url, parse, parse_seed, registrable, resolve
from holdfast.warc.payload import parse_head

LIMIT_S: Final = 25.0
MAX_SITEMAPS: Final = 8
MAX_ADDRESSES: Final = 100_000
"""Limit of counted URLs, over all sitemaps."""
SHOWN: Final = 20
"""Size of the sample of URLs that a crawl would request; excluded URLs are shown in addition."""
_SHOWN_LEFT_OUT: Final = 5
_SHOWN_LINES: Final = 50
# A robots.txt with the worst wildcards takes 30 ms per URL.
_JUDGED: Final = 300
"""Number of URLs that the rules of robots.txt are applied to."""
_NAME_CHARS: Final = 80
_PATIENCE_S: Final = LIMIT_S / 2
_PAGE = DocumentLimits(request_s=8.0, body_bytes=2_000_000, redirects=4, patience_s=_PATIENCE_S)
_SITEMAP = replace(_PAGE, body_bytes=10_000_000)
_HTML: Final = ("text/html", "application/xhtml+xml")
_PASSWORD = re.compile(rb"<input[^>]{0,200}type\s*=\s*[\"']?password", re.IGNORECASE)
_FEW_LINKS: Final = 3


SurveyWarning = Literal[
    "cut_short",
    "long_delay",
    "page_forbidden",
    "all_forbidden",
    "sign_in_needed",
    "refused",
    "error_status",
    "not_html",
    "noindex",
    "nofollow",
    "sign_in",
    "no_links",
    "page_cut",
    "other_site",
]
"""What a warning of a survey is about; the web application has a sentence for each."""


@record
class SurveyedAddress:
    """A URL that the survey found."""

    url: Operator[str]
    found_in: Operator[str]
    """`address` (as typed), `page` or `sitemap`."""
    in_scope: Operator[bool]
    allowed: Operator[bool | None]
    """According to robots.txt; null if the robots.txt of that host was not read."""
    reason: Operator[str]
    """The deciding rule, in words."""
    rule: Operator[str | None] = None
    """The deciding rule: in scope, the line of robots.txt; else that of the source, such as `exclude:/calendar/`."""
    line: Operator[int | None] = None
    """Number of that line in robots.txt."""


@record
class SurveyedSitemap:
    """A sitemap listed in robots.txt or in a sitemap index, or found at the default location."""

    url: Operator[str]
    entries: Operator[int]
    in_scope: Operator[int]
    problem: Operator[str | None] = None


@record
class RobotsLine:
    """A line of robots.txt that applies to us."""

    line: Operator[int]
    rule: Operator[str]


@record
class SurveyedRobots:
    """The robots.txt of the site."""

    url: Operator[str]
    status: Operator[int | None]
    """Null if the stored copy was used, or none was available."""
    answer: Operator[RobotsAnswer]
    lines: Operator[tuple[RobotsLine, ...]]
    """The rules that apply to us, at most 50."""
    lines_left_out: Operator[int]
    crawl_delay_s: Operator[float | None]
    judged: Operator[int]
    """URLs in scope that the rules were applied to."""
    forbidden: Operator[int]


@record
class SiteSurvey:
    """What a survey found out about a website."""

    requested_url: Operator[str]
    final_url: Operator[str]
    """URL after redirects: the one to start from."""
    status: Operator[int | None]
    """Status of the first page; null if it was not requested."""
    content_type: Operator[str | None]
    title: Operator[str | None]
    name: Operator[str]
    code: Operator[str]
    """Suggested code for the source: unused, or that of the site's existing source."""
    source_id: Operator[int | None]
    """The existing source of this site, whose configuration decides which URLs are crawled; null without one."""
    contact: Operator[str]
    robots: Operator[SurveyedRobots]
    sitemaps: Operator[tuple[SurveyedSitemap, ...]]
    addresses: Operator[tuple[SurveyedAddress, ...]]
    page_count: Operator[int | None]
    """Pages listed in sitemaps and the first page, in scope and not forbidden by robots.txt; null without a sitemap.

    For more than 300 pages, robots.txt is applied to a random sample, and the result is extrapolated.
    """
    page_count_is_exact: Operator[bool]
    """False if there are more than were counted, or if the number comes from a sample."""
    linked_pages: Operator[int]
    """Pages in scope that the first page links to."""
    delay_s: Operator[float]
    estimated_s: Operator[float | None]
    """Time for the pages at this delay, without images and style sheets. Null if the number of pages is unknown."""
    warnings: Operator[tuple[str, ...]]
    warning_codes: Operator[tuple[SurveyWarning, ...]]
    """The code of each warning, in the same order."""


SiteOf = Callable[[str], SiteSource]
"""Finds the source of a home page (`sources.queries.site_of`)."""


def survey_site(
    settings: Settings,
    address: str,
    *,
    site_of: SiteOf,
    contact: str | None = None,
    config: Mapping[str, Any] | None = None,
) -> SiteSurvey:
    """Survey a website. Blocks for up to 25 s. A given contact is stored for all later crawls (`remember_contact`).

    `config` has fields of a source's configuration that decide which URLs are in scope; the seed is `address`.
    Raise UrlRefused, Invalid for a wrong field, ContactMissing, AddressForbidden, DomainForbidden, DomainBusy,
    LiveBusy, LiveFailed.
    """
    url, chosen = _located(address, site_of, config or {})
    who = contact_of(settings) if contact is None else remember_contact(settings, contact)
    networks = tuple(map(str, settings.allow_networks))
    house = CrawlDefaults(who, settings.user_agent, networks, None, settings.politeness.delay_s)
    plan = crawl_plan(read_config({**chosen, "seeds": [url.fetch]}), house, number=1)
    with live_turn(url, networks):
        return asyncio.run(_survey(settings, plan, url, site_of, may_be_http="://" not in address))


def _located(address: str, site_of: SiteOf, config: Mapping[str, Any]) -> tuple[Url, dict[str, Any]]:
    """Return the URL and the configuration for its crawl; raise UrlRefused, also for a port that this forbids.

    Like the start of a crawl: the configuration of an existing source applies, which may allow unusual ports.
    """
    try:
        front = parse_seed(address)
    except UrlRefused:
        # Only the source states the allowed ports, and the source is found by its origin.
        front = parse_seed(address, replace(DEFAULT, allow_ports=frozenset(range(1, 65_536))))
    chosen = {**(site_of(f"{front.origin}/").config or {}), **config}
    ports = frozenset(one for one in chosen.get("allow_ports") or () if isinstance(one, int))
    return parse_seed(address, replace(DEFAULT, allow_ports=ports)), chosen


async def _survey(settings: Settings, plan: CrawlPlan, url: Url, site_of: SiteOf, *, may_be_http: bool) -> SiteSurvey:
    async with open_polite_client(
        settings, agent=plan.agent(), networks=plan.allow_networks, delay_s=plan.delay_s, policy=plan.normalisation()
    ) as client:
        walk = _Walk(client, plan)
        try:
            async with asyncio.timeout(LIMIT_S):
                try:
                    await walk.open(url)
                except LiveFailed:
                    # The address had no scheme: https was our guess.
                    if not may_be_http or not walk.has_no_https:
                        raise
                    await walk.open(parse(f"http{url.fetch.removeprefix('https')}", plan.normalisation()))
                await walk.read_sitemaps()
        except TimeoutError:
            walk.is_cut = True
            if walk.state is None:
                raise LiveFailed(f"{url.origin} did not answer within {LIMIT_S:g} s; try again later") from None
            walk.warn("cut_short")
        return walk.survey(url, site_of)


class _Candidates:
    def __init__(self) -> None:
        self.urls: dict[int, ResolvedLink] = {}
        self.left_out: dict[int, tuple[ResolvedLink, ScopeVerdict]] = {}

    def add(self, links: Iterable[ResolvedLink], scope: Scope) -> int:
        """Add links; return how many of them are in scope and new."""
        before = len(self.urls)
        for link in links:
            verdict = scope.decide(link, 1)
            if verdict.allowed:
                self.urls.setdefault(link.hash64, link)
            elif len(self.left_out) < _SHOWN_LEFT_OUT:
                self.left_out.setdefault(link.hash64, (link, verdict))
        return len(self.urls) - before


class _Walk:
    def __init__(self, client: PoliteClient, plan: CrawlPlan) -> None:
        self._client, self._plan, self._policy = client, plan, plan.normalisation()
        self._scope = plan.build_scope()
        self.url = plan.first_seed_url()
        self.state: RobotsRecord | None = None
        self._rules: RobotsFile | None = None
        self._document: FetchedDocument | None = None
        self._page = ParsedPage()
        self._linked, self._listed = _Candidates(), _Candidates()
        self._sitemaps: list[SurveyedSitemap] = []
        self.is_cut = self.has_no_https = False
        self._warnings: list[tuple[SurveyWarning, str]] = []

    def warn(self, code: SurveyWarning, **values: object) -> None:
        self._warnings.append((code, _WARNINGS[code].format(**values)))

    async def open(self, url: Url) -> None:
        """Fetch robots.txt and the first page; raise LiveFailed or AddressForbidden if the site cannot be reached."""
        self.url = url
        try:
            answer = await self._client.get(url, _PAGE, obey_robots=True)
        except RobotsDenied as exc:
            return await self._denied(exc.url)
        except AddressForbidden as exc:
            raise _private(str(exc)) from exc
        except DomainBusy:
            wait_s = self._client.delay_of(self.url.domain)
            # Another process crawls the domain: a second wait, for robots.txt, would fail the same way.
            if wait_s <= _PATIENCE_S:
                raise
            await self._know_robots()
            self.is_cut = True
            self.warn("long_delay", wait_s=wait_s)
            return None
        if answer is None:
            raise LiveFailed(
                f"{url.fetch} redirects more than {_PAGE.redirects} times, perhaps in a circle; open it in a browser, "
                "then enter the address where it ends"
            )
        if isinstance(answer, FetchFailed):
            raise self._failed(answer)
        self.url, self._document = answer.url, answer
        await self._know_robots()
        return self._read_page(answer)

    async def _denied(self, url: Url) -> None:
        """Continue without the first page if rules forbid it; raise if robots.txt could not be read."""
        if (failure := self._client.failures.get(url.origin)) is not None:
            raise self._failed(failure)
        self.url = url
        await self._know_robots()
        assert self.state is not None
        if self._rules is None:
            raise LiveFailed(
                f"{url.origin}/robots.txt answered with status {self.state.status}, so nothing may be requested there "
                "now; try again later"
            )
        self.warn("page_forbidden", reason=answer_of(self._rules, url).reason)

    async def _know_robots(self) -> None:
        self.state = state = await self._client.robots(self.url, _PAGE, stored=True)
        self._rules = rules_of(state, AGENT) if state.answer is RobotsAnswer.RULES else None
        # Do as a crawl does when a seed redirects: its target belongs to the site.
        self._scope = self._scope.with_landing_hosts((self.url,))

    def _failed(self, failure: FetchFailed) -> LiveFailed | AddressForbidden:
        host = parse(failure.url, self._policy).host
        if failure.problem in (FetchProblem.ADDRESS_FORBIDDEN, FetchProblem.URL_REFUSED):
            return _private(f"{host} may not be requested: {failure.message}")
        self.has_no_https = failure.problem not in (FetchProblem.NO_SUCH_NAME, FetchProblem.DNS)
        return LiveFailed(_SENTENCES.get(failure.problem, _NO_ANSWER).format(host=host, why=failure.message))

    def _read_page(self, answer: FetchedDocument) -> None:
        head, status = parse_head(answer.fetched.response_head), answer.fetched.status
        if status >= 400:
            self.warn(_OF_STATUS.get(status, "error_status"), status=status)
        if (head.media_type or "") not in _HTML:
            self.warn("not_html", kind=head.media_type or "of an unknown type")
            return
        self._page = answer.parse(head)
        base = Base(answer.url.fetch, self._page.base, self._policy)
        links = () if self._page.nofollow else resolve(base, [link.url for link in self._page.links])
        own = self.url.hash64
        self._linked.add((link for link in links if link.hash64 != own), self._scope)
        if self._page.noindex:
            self.warn("noindex")
        if self._page.nofollow:
            self.warn("nofollow")
        if len(self._linked.urls) <= _FEW_LINKS and _PASSWORD.search(answer.body):
            self.warn("sign_in")
        elif not self._linked.urls and not self._page.nofollow and 200 <= status < 300:
            self.warn("no_links")
        if answer.is_cut:
            self.warn("page_cut")

    async def read_sitemaps(self) -> None:
        if not self._plan.sitemaps or self._plan.scope == "page":
            return
        written = self._rules.sitemaps if self._rules else ()
        usual = [] if written else [parse(f"{self.url.origin}/sitemap.xml", self._policy)]
        named = (one for one in map(partial(self._seen_from, self.url), written) if one is not None)
        # A robots.txt of 512 KiB may list 20,000: read one more than the limit to know that there are more.
        waiting = [*dict.fromkeys(islice(named, MAX_SITEMAPS + 1)), *usual]
        met = set(waiting)
        for _ in range(MAX_SITEMAPS):
            if not waiting:
                return
            url = waiting.pop(0)
            found = await self._sitemap(url, is_guess=url in usual)
            children = [one for one in found if one not in met]
            met.update(children)
            waiting += children
            if len(self._listed.urls) >= MAX_ADDRESSES:
                break
        self.is_cut = self.is_cut or bool(waiting)

    def _seen_from(self, url: Url, written: str) -> Url | None:
        try:
            found = follow(url, written, self._policy)
        except UrlRefused:
            return None
        return found if self._scope.decide(found, 1, UrlKind.SITEMAP).allowed else None

    async def _sitemap(self, url: Url, *, is_guess: bool) -> list[Url]:
        answer: FetchedDocument | FetchFailed | None = None
        problem: str | None = None
        try:
            answer = await self._client.get(url, _SITEMAP, obey_robots=True)
        except (RobotsDenied, AddressForbidden, DomainBusy, DomainForbidden) as exc:
            problem = str(exc)
            self.is_cut = self.is_cut or isinstance(exc, DomainBusy)
        if isinstance(answer, FetchFailed):
            problem, answer = f"it cannot be fetched ({answer.problem.value})", None
        elif answer is None:
            problem = problem or "it redirects too often"
        elif answer.fetched.status != 200:
            problem, answer = f"it answers with status {answer.fetched.status}", None
        if answer is None:
            # robots.txt does not list the default location: most sites have no file there.
            if not is_guess:
                self._sitemaps.append(SurveyedSitemap(url=url.fetch, entries=0, in_scope=0, problem=problem))
            return []
        found = parse_sitemap(answer.body, answer.url.fetch)
        if is_guess and not (found.urls or found.children):
            return []
        is_cut = answer.is_cut or bool(found.over) or ParseProblem.BODY_CUT in found.problems
        room = MAX_ADDRESSES - len(self._listed.urls)
        base = Base(answer.url.fetch, None, self._policy)
        added = self._listed.add(resolve(base, found.urls[:room]), self._scope)
        self.is_cut = self.is_cut or is_cut or len(found.urls) > room
        self._sitemaps.append(
            SurveyedSitemap(
                url=url.fetch,
                entries=len(found.urls) or len(found.children),
                in_scope=added,
                problem=", ".join(found.problems) or ("it was cut" if is_cut else None),
            )
        )
        children = (self._seen_from(answer.url, child) for child in found.children[: MAX_SITEMAPS + 1])
        return [child for child in children if child is not None]

    def survey(self, typed: Url, site_of: SiteOf) -> SiteSurvey:
        assert self.state is not None
        if registrable(typed.host) != registrable(self.url.host):
            self.warn("other_site", typed=typed.host, host=self.url.host)
        addresses, known, judged, forbidden = self._sample()
        if judged and judged == forbidden:
            self.warn("all_forbidden")
        count = round(known * (1 - forbidden / max(1, judged))) if self._listed.urls else None
        delay_s = self._delay_s()
        pages = count if count is None or not self._plan.max_pages else min(count, self._plan.max_pages)
        document = self._document
        head = None if document is None else parse_head(document.fetched.response_head)
        site = site_of(f"{self.url.origin}/")
        title = " ".join((self._page.title or "").split())[:200] or None
        printable = "".join(one if one.isprintable() else " " for one in title or "")
        return SiteSurvey(
            requested_url=typed.fetch,
            final_url=self.url.fetch,
            status=None if document is None else document.fetched.status,
            content_type=None if head is None else head.media_type,
            title=title,
            name=printable[:_NAME_CHARS].strip() or self.url.host,
            code=site.code,
            source_id=site.id,
            contact=self._plan.contact,
            robots=self._robots(judged, forbidden),
            sitemaps=tuple(self._sitemaps),
            addresses=addresses,
            page_count=count,
            page_count_is_exact=count is not None and not self.is_cut and (known <= _JUDGED or not forbidden),
            linked_pages=len(self._linked.urls),
            delay_s=delay_s,
            estimated_s=None if pages is None else pages * delay_s,
            warnings=tuple(sentence for _, sentence in self._warnings),
            warning_codes=tuple(code for code, _ in self._warnings),
        )

    def _delay_s(self) -> float:
        """Return the delay of a crawl in seconds: at least one on the public web."""
        delay_s = self._client.delay_of(self.url.domain)
        networks = map(ip_network, self._plan.allow_networks)
        ip = None if self._document is None else ip_address(self._document.fetched.ip)
        return delay_s if ip is not None and any(ip in one for one in networks) else max(1.0, delay_s)

    def _robots(self, judged: int, forbidden: int) -> SurveyedRobots:
        state, rules = self.state, self._rules
        assert state is not None
        lines = [] if rules is None else rules.rules()
        return SurveyedRobots(
            url=f"{state.origin}/robots.txt",
            status=state.status,
            answer=state.answer,
            lines=tuple(RobotsLine(line=one.line, rule=one.shown()) for one in lines[:_SHOWN_LINES]),
            lines_left_out=max(0, len(lines) - _SHOWN_LINES),
            crawl_delay_s=None if rules is None else rules.crawl_delay,
            judged=judged,
            forbidden=forbidden,
        )

    def _sample(self) -> tuple[tuple[SurveyedAddress, ...], int, int, int]:
        """Return sample URLs, the number of known URLs in scope, how many of them robots.txt was applied to, and
        how many of those it forbids.
        """
        found = {self.url.hash64: (self.url.fetch, "address")}
        for link in self._linked.urls.values():
            found.setdefault(link.hash64, (link.fetch, "page"))
        for link in self._listed.urls.values():
            found.setdefault(link.hash64, (link.fetch, "sitemap"))
        # Sample by hash: the order of a sitemap often has a pattern. The first ones are shown in addition, and not
        # counted.
        sample = set(sorted(found)[:_JUDGED])
        first = list(found)[:SHOWN]
        shown: dict[bool, list[SurveyedAddress]] = {True: [], False: []}
        judged = forbidden = 0
        room = {"address": 1, "page": SHOWN // 2, "sitemap": SHOWN}
        for key in dict.fromkeys((*first, *sorted(sample))):
            fetch, where = found[key]
            said = self._said(parse(fetch, self._policy))
            is_forbidden = said is not None and not said.allowed
            if key in sample:
                judged, forbidden = judged + (said is not None), forbidden + is_forbidden
            one = SurveyedAddress(
                url=fetch,
                found_in=where,
                in_scope=True,
                allowed=None if said is None else said.allowed,
                reason="its host has its own robots.txt, which the crawl reads first" if said is None else said.reason,
                rule=None if said is None else said.rule,
                line=None if said is None else said.line,
            )
            if is_forbidden:
                shown[False].append(one)
            elif room[where] > 0 and len(shown[True]) < SHOWN:
                room[where] -= 1
                shown[True].append(one)
        # A link of the page may be in a sitemap, too: the first mention counts.
        left_out: dict[int, SurveyedAddress] = {}
        for where, seen in (("page", self._linked), ("sitemap", self._listed)):
            for key, (link, verdict) in seen.left_out.items():
                out = SurveyedAddress(
                    url=link.fetch,
                    found_in=where,
                    in_scope=False,
                    allowed=None,
                    reason=rule_sentence(verdict),
                    rule=verdict.rule,
                )
                left_out.setdefault(key, out)
        addresses = (*shown[True], *shown[False][:_SHOWN_LEFT_OUT], *islice(left_out.values(), _SHOWN_LEFT_OUT))
        return addresses, len(found), judged, forbidden

    def _said(self, url: Url) -> RobotsRuling | None:
        assert self.state is not None
        if url.origin != self.state.origin:
            return None
        if self._rules is not None:
            return answer_of(self._rules, url)
        return answer_for(url, (self.state,), self.state.checked_at)


_NO_ANSWER: Final = "{host} did not give a usable answer ({why}); open it in a browser, then try again"
_SENTENCES: Final = {
    FetchProblem.NO_SUCH_NAME: "there is no host {host}; check the spelling of the address",
    FetchProblem.DNS: "no nameserver could resolve {host} ({why}); check the network of this server, then try again",
    FetchProblem.CONNECT: "{host} does not accept connections ({why}); check the address, or try again later",
    FetchProblem.TLS: "{host} has no valid certificate ({why}); its owner must renew it, or enter an http:// address",
    FetchProblem.TIMEOUT: "{host} did not answer in time; try again later",
}


def _private(sentence: str) -> AddressForbidden:
    return AddressForbidden(
        f"{sentence}; to crawl a private network, add it to HOLDFAST_ALLOW_NETWORKS and restart the server"
    )


_WARNINGS: Final[dict[SurveyWarning, str]] = {
    "cut_short": f"The survey ended after {LIMIT_S:g} s; the crawl will find more.",
    "long_delay": "robots.txt asks for {wait_s:g} s between two requests, so the first page was not read.",
    "page_forbidden": "robots.txt forbids the first page ({reason}), so it was not requested.",
    "all_forbidden": "robots.txt forbids every address that was found; a crawl would fetch nothing.",
    "sign_in_needed": (
        "The first page asks for a password (status {status}); a crawl sees only what everybody can see."
    ),
    "refused": "The site refuses our crawler (status {status}); ask its owner for access before you crawl it.",
    "error_status": "The first page answers with an error (status {status}); check the address.",
    "not_html": "The first page is not HTML but {kind}: it has no links to follow.",
    "noindex": "The first page asks not to be indexed (noindex): it is archived, but search does not show it.",
    "nofollow": "The first page asks crawlers not to follow its links (nofollow): only sitemaps lead further.",
    "sign_in": "The first page looks like a sign-in page; a crawl sees only what everybody can see.",
    "no_links": "The first page has no links to its own site; JavaScript may build them, and the crawler runs none.",
    "page_cut": f"The first page is larger than {_PAGE.body_bytes:,} bytes; links behind that were not read.",
    "other_site": "{typed} leads to another site, {host}; that one would be crawled.",
}
_OF_STATUS: Final[dict[int, SurveyWarning]] = {
    401: "sign_in_needed",
    407: "sign_in_needed",
    403: "refused",
    429: "refused",
}
