"""A website surveyed before it is crawled: real sockets, robots.txt, sitemaps, redirects, and sites that misbehave."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path

import pytest

from holdfast.config import FetchSettings, PolitenessSettings, Settings
from holdfast.crawl import outcomes
from holdfast.crawl import survey as flow
from holdfast.crawl.live_pages import LiveFailed
from holdfast.crawl.requests import DomainBusy
from holdfast.crawl.survey import SiteSurvey, survey_site
from holdfast.errors import AddressForbidden, UrlRefused
from holdfast.frontier.control import DomainUpdate
from holdfast.processes.owners import VISITOR, OwnerProcess
from holdfast.processes.runfile import RunFile
from holdfast.sources.codes import free_code
from holdfast.sources.contact import ContactMissing, ContactRefused
from holdfast.sources.queries import SiteSource
from holdfast.types import RobotsAnswer
from holdfast.urls import Normalisation, Url, parse
from holdfast.wiring import open_runtime
from tests.site import Exchange, Site
from tests.unit.fetch.nameserver import nameserver
from tests.unit.fetch.servers import run

LOOPBACK = (ip_network("127.0.0.0/8"),)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings of a data directory without a database; no delay, for tests are not timed."""
    return Settings(
        home=tmp_path,
        allow_networks=LOOPBACK,
        contact="t@example.org",
        politeness=PolitenessSettings(delay_s=0.0),
    )


def surveyed(settings: Settings, address: str, **how: object) -> SiteSurvey:
    return survey_site(settings, address, site_of=_site_of, **how)  # type: ignore[arg-type]


def _site_of(front_page: str) -> SiteSource:
    return SiteSource(free_code(lambda _code: False, name=None, seed=front_page), None)


def front(*links: str, head: str = "<title>Town of Kelpsound</title>") -> str:
    return f"<html><head>{head}</head><body>{''.join(f'<a href={one!r}>x</a>' for one in links)}</body></html>"


def urlset(*addresses: str) -> str:
    return f"<urlset>{''.join(f'<url><loc>{one}</loc></url>' for one in addresses)}</urlset>"


def test_survey_reads_robots_sitemap_and_first_page(settings: Settings, site: Site) -> None:
    site.serve("/robots.txt", f"User-agent: *\nDisallow: /private\nCrawl-delay: 0.5\nSitemap: {site.url(0, '/map')}\n",
               media="text/plain")  # fmt: skip
    site.serve("/map", urlset(site.url(0, "/a"), site.url(0, "/private/b"), "https://other.example/"), media="text/xml")
    site.serve("/", front("/news", "/private/c", "https://elsewhere.example/"))

    found = surveyed(settings, site.url(0, "/"))

    assert (found.status, found.title, found.name) == (200, "Town of Kelpsound", "Town of Kelpsound")
    assert (found.page_count, found.page_count_is_exact, found.linked_pages) == (3, True, 2)
    assert (found.delay_s, found.estimated_s) == (0.5, 1.5)
    assert [(one.entries, one.in_scope, one.problem) for one in found.sitemaps] == [(3, 2, None)]
    assert [(one.line, one.rule) for one in found.robots.lines] == [(2, "Disallow: /private")]
    assert (found.robots.judged, found.robots.forbidden, found.warnings) == (5, 2, ())
    by_url = {one.url: one for one in found.addresses}
    assert by_url[site.url(0, "/a")].found_in == "sitemap"
    assert by_url[site.url(0, "/news")].allowed is True
    assert by_url[site.url(0, "/private/c")].reason == "line 2 forbids it: Disallow: /private"
    assert by_url["https://elsewhere.example/"].in_scope is False
    assert [one.path for one in site.log()] == ["/robots.txt", "/", "/map"]
    assert all("t@example.org" in (one.user_agent or "") for one in site.log())


def test_survey_stores_nothing(settings: Settings, site: Site) -> None:
    surveyed(settings, site.url(0, "/"))

    assert [one.name for one in settings.home.iterdir()] == ["run"]  # the counters of requests by IP address


def test_survey_follows_sitemap_index(settings: Settings, site: Site) -> None:
    children = "".join(f"<sitemap><loc>{site.url(0, f'/map/{number}')}</loc></sitemap>" for number in range(2))
    site.serve("/sitemap.xml", f"<sitemapindex>{children}</sitemapindex>", media="text/xml")
    for number in range(2):
        site.serve(f"/map/{number}", urlset(site.url(0, f"/{number}/a"), site.url(0, "/both")), media="text/xml")
    site.serve("/", front())

    found = surveyed(settings, site.url(0, "/"))

    assert (found.page_count, found.page_count_is_exact) == (4, True)
    assert [one.in_scope for one in found.sitemaps] == [0, 2, 1]


def test_survey_of_huge_sitemaps_is_bounded(settings: Settings, site: Site) -> None:
    endless = "".join(f"<sitemap><loc>{site.url(0, f'/map/{number}')}</loc></sitemap>" for number in range(500))
    site.serve("/sitemap.xml", f"<sitemapindex>{endless}</sitemapindex>", media="text/xml")
    site.serve("/map/0", urlset(*(site.url(0, f"/p/{number}") for number in range(60_000))), media="text/xml")
    site.serve("/", front())

    found = surveyed(settings, site.url(0, "/"))

    assert (found.page_count, found.page_count_is_exact) == (50_001, False)
    assert len([one for one in site.log() if "map" in one.path]) == flow.MAX_SITEMAPS
    assert len(found.addresses) <= flow.SHOWN + 10


def test_survey_resolves_few_of_many_named_sitemaps(
    settings: Settings, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = "".join(f"Sitemap: {site.url(0, f'/map/{number}')}\n" for number in range(2_000))
    site.serve("/robots.txt", named, media="text/plain")
    site.serve("/", front())
    resolved: list[str] = []

    def follow(url: Url, written: str, policy: Normalisation) -> Url:
        resolved.append(written)
        return outcomes.follow(url, written, policy)

    monkeypatch.setattr(flow, "follow", follow)

    found = surveyed(settings, site.url(0, "/"))

    assert len(found.sitemaps) == flow.MAX_SITEMAPS
    assert len(resolved) <= flow.MAX_SITEMAPS + 1
    assert not found.page_count_is_exact


def test_survey_when_robots_forbids_all(settings: Settings, site: Site) -> None:
    site.serve("/robots.txt", "User-agent: *\nDisallow: /\n", media="text/plain")

    found = surveyed(settings, site.url(0, "/"))

    assert (found.status, found.title, found.name) == (None, None, "127.0.0.2")
    assert [one.path for one in site.log()] == ["/robots.txt"]
    assert "robots.txt forbids the first page (line 2 forbids it: Disallow: /)" in found.warnings[0]
    assert found.warnings[1] == "robots.txt forbids every address that was found; a crawl would fetch nothing."
    assert found.warning_codes == ("page_forbidden", "all_forbidden")
    assert (found.addresses[0].line, found.addresses[0].rule) == (2, "Disallow: /")
    assert (found.addresses[0].in_scope, found.addresses[0].allowed) == (True, False)


def test_survey_with_redirect_to_www(settings: Settings, site: Site) -> None:
    port = site.url(0, "/").rsplit(":", 1)[1].strip("/")

    async def front_page(exchange: Exchange) -> None:
        if exchange.host == "kelp.example":
            await exchange.reply("", status=301, headers=[("Location", f"http://www.kelp.example:{port}/")])
        else:
            await exchange.reply(front("/news", f"http://kelp.example:{port}/old"))

    site.on("/", front_page)

    def zone(_name: str, kind: str, _times: int) -> list[str]:
        return ["A 127.0.0.2"] if kind == "A" else []

    async def main() -> SiteSurvey:
        async with nameserver(zone) as names:
            fetch = FetchSettings(nameservers=[names.address])
            asked = settings.model_copy(update={"fetch": fetch})
            return await asyncio.to_thread(surveyed, asked, f"http://kelp.example:{port}/")

    found = run(main())

    assert found.final_url == f"http://www.kelp.example:{port}/"
    assert (found.code, found.linked_pages, found.warnings) == ("kelp-example", 2, ())


@pytest.mark.parametrize(("said", "told"), [(b"this is no TLS", "enter an http:// address"), (b"", "usable answer")])
def test_survey_tries_http_if_https_fails_and_no_scheme_typed(settings: Settings, said: bytes, told: str) -> None:
    body = front("/news").encode()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.read(4096)
        if not asked.startswith(b"GET"):
            writer.write(said)
        elif asked.startswith(b"GET / "):
            head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n"
            writer.write(head.encode() + b"Connection: close\r\n\r\n" + body)
        else:
            writer.write(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    async def main() -> None:
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            host = "{}:{}".format(*server.sockets[0].getsockname())

            with pytest.raises(LiveFailed, match=told):
                await asyncio.to_thread(surveyed, settings, f"https://{host}/")
            found = await asyncio.to_thread(surveyed, settings, host)

            assert (found.final_url, found.linked_pages) == (f"http://{host}/", 1)

    run(main())


@pytest.mark.parametrize(
    ("path", "warning"),
    [
        ("/report.pdf", "not HTML but application/pdf"),
        ("/status/403", "refuses our crawler (status 403)"),
        ("/status/401", "asks for a password (status 401)"),
        ("/status/500", "answers with an error (status 500)"),
        ("/login", "looks like a sign-in page"),
        ("/quiet", "asks not to be indexed (noindex)"),
        ("/script", "JavaScript may build them"),
    ],
)
def test_survey_warns_of_first_page(settings: Settings, site: Site, path: str, warning: str) -> None:
    site.serve("/report.pdf", "%PDF-1.7", media="application/pdf")
    site.serve("/login", "<title>Sign in</title><form><input name=p type=password></form>")
    site.serve("/quiet", front("/a", head="<meta name=robots content=noindex>"))
    site.serve("/script", "<div id=root></div><script src=/app.js></script>")

    found = surveyed(settings, site.url(0, path))

    assert warning in " ".join(found.warnings)


def test_survey_of_dead_host_names_next_step(settings: Settings) -> None:
    async def main() -> None:
        async with nameserver(lambda _name, _kind, _times: 3) as names:
            asked = settings.model_copy(update={"fetch": FetchSettings(nameservers=[names.address])})
            await asyncio.to_thread(surveyed, asked, "https://gone.example/")

    with pytest.raises(LiveFailed, match=r"127\.0\.0\.9 does not accept connections .* check the address"):
        surveyed(settings, "http://127.0.0.9:8099/")
    with pytest.raises(LiveFailed, match=r"there is no host gone\.example; check the spelling"):
        run(main())


def test_survey_of_private_address_names_setting(tmp_path: Path, site: Site) -> None:
    closed = Settings(home=tmp_path, contact="t@example.org")

    with pytest.raises(AddressForbidden, match="HOLDFAST_ALLOW_NETWORKS"):
        surveyed(closed, site.url(0, "/"))
    assert site.log() == []


@pytest.mark.parametrize(
    "typed", ["", "hello", "ftp://example.org/", "http://", "http://exa mple.org/", "javascript:1"]
)
def test_survey_refuses_garbage(settings: Settings, typed: str) -> None:
    with pytest.raises(UrlRefused):
        surveyed(settings, typed)


def test_survey_needs_contact_and_keeps_the_given_one(settings: Settings, site: Site) -> None:
    anonymous = settings.model_copy(update={"contact": ""})  # as an empty variable leaves it

    with pytest.raises(ContactMissing):
        surveyed(anonymous, site.url(0, "/"))
    with pytest.raises(ContactRefused):
        surveyed(anonymous, site.url(0, "/"), contact="nobody")
    assert site.log() == []
    assert surveyed(anonymous, site.url(0, "/"), contact="us@example.org").contact == "us@example.org"
    assert surveyed(anonymous, site.url(0, "/")).contact == "us@example.org"
    assert surveyed(settings, site.url(0, "/"), contact="us@example.org").contact == "t@example.org"


def test_survey_reports_long_crawl_delay_without_waiting(settings: Settings, site: Site) -> None:
    site.serve("/robots.txt", "User-agent: *\nCrawl-delay: 60\n", media="text/plain")

    found = surveyed(settings, site.url(0, "/"))

    assert [one.path for one in site.log()] == ["/robots.txt"]
    assert (found.delay_s, found.status) == (60.0, None)
    assert "robots.txt asks for 60 s" in found.warnings[0]


def test_survey_when_robots_txt_is_unavailable(settings: Settings, site: Site) -> None:
    site.serve("/robots.txt", "", status=503)

    with pytest.raises((LiveFailed, DomainBusy), match="try again later"):
        surveyed(settings, site.url(0, "/"))


def test_survey_without_robots_txt_and_sitemap(settings: Settings, site: Site) -> None:
    site.serve("/", front("/a", "/b"))

    found = surveyed(settings, site.url(0, "/"))

    assert (found.robots.answer, found.robots.status) == (RobotsAnswer.ALLOW_ALL, 404)
    assert (found.page_count, found.estimated_s, found.sitemaps) == (None, None, ())


def test_survey_judges_by_the_given_configuration(settings: Settings, site: Site) -> None:
    site.serve("/", front("/news/a", "/calendar/1"))

    found = surveyed(settings, site.url(0, "/"), config={"exclude": ["/calendar/"]})

    assert found.linked_pages == 1
    assert "the rule exclude /calendar/ matches" in {one.reason for one in found.addresses}


def test_survey_estimates_forbidden_pages_from_a_random_sample(settings: Settings, site: Site) -> None:
    site.serve("/robots.txt", "User-agent: *\nDisallow: /private\n", media="text/plain")
    # A fixed step through this list would meet one section only.
    pages = [site.url(0, f"/{'private' if number % 2 else 'open'}/{number}") for number in range(20_000)]
    site.serve("/sitemap.xml", urlset(*pages), media="text/xml")
    site.serve("/", front())

    found = surveyed(settings, site.url(0, "/"))

    assert found.robots.judged == 300
    assert found.page_count is not None
    assert 8_000 < found.page_count < 12_000
    assert not found.page_count_is_exact


def test_survey_plans_with_the_configuration_of_the_source(settings: Settings, site: Site) -> None:
    site.serve("/", front("/a", "/b"))

    found = survey_site(
        settings,
        site.url(0, "/"),
        site_of=lambda _front_page: SiteSource("town", {"exclude": ["/a$"], "max_pages": 7}, 3),
    )

    assert (found.code, found.source_id) == ("town", 3)
    assert {one.url: one.in_scope for one in found.addresses}[site.url(0, "/a")] is False


def test_survey_of_a_domain_that_is_crawled_now_says_so(
    settings: Settings, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow, "_PAGE", replace(flow._PAGE, patience_s=0.1))
    with open_runtime(settings) as runtime:
        holder = OwnerProcess(
            runtime.raw_db, runtime.clock, run=RunFile(runtime.run_folder), kind=VISITOR, execution_id=None
        )
        assert runtime.frontier.lease_named(holder.id, parse(site.url(0, "/")).domain) is not None
        with pytest.raises(DomainBusy, match="is being crawled"):
            surveyed(settings, site.url(0, "/"))
    assert site.log() == []


def test_survey_of_a_paused_domain_names_the_next_step(settings: Settings, site: Site) -> None:
    domain = parse(site.url(0, "/")).domain
    with open_runtime(settings) as runtime:
        runtime.frontier.control.set_domain(domain, DomainUpdate(paused=True))

    with pytest.raises(DomainBusy, match="paused by an operator; resume the domain"):
        surveyed(settings, site.url(0, "/"))
    assert site.log() == []


def test_survey_leaves_out_a_sitemap_on_a_forbidden_host(settings: Settings, site: Site) -> None:
    site.serve("/robots.txt", f"Sitemap: {site.url(1, '/map')}\n", media="text/plain")
    site.serve("/", front("/a"))
    with open_runtime(settings) as runtime:
        runtime.frontier.control.set_domain(parse(site.url(1, "/")).domain, DomainUpdate(allowed=False))

    found = surveyed(settings, site.url(0, "/"))

    assert [one.problem is not None and "is forbidden by an operator" in one.problem for one in found.sitemaps] == [
        True
    ]
    assert [one.path for one in site.log()] == ["/robots.txt", "/"]


def test_survey_asks_a_port_that_the_source_allows(settings: Settings) -> None:
    def source(_front_page: str) -> SiteSource:
        return SiteSource("town", {"allow_ports": [23]}, 3)

    with pytest.raises(UrlRefused, match="port 23 is not one"):
        surveyed(settings, "http://127.0.0.9:23/")
    with pytest.raises(LiveFailed, match=r"127\.0\.0\.9 does not accept connections"):
        survey_site(settings, "http://127.0.0.9:23/", site_of=source)


def test_survey_follows_a_redirect_into_an_allowed_network_as_a_crawl_does(settings: Settings, site: Site) -> None:
    async def moved(exchange: Exchange) -> None:
        await exchange.reply("", status=301, headers=[("Location", site.url(1, "/home"))])

    site.on("/", moved)
    site.serve("/home", front("/a"))

    found = surveyed(settings, site.url(0, "/"))

    assert found.final_url == site.url(1, "/home")
    assert found.delay_s == 0.0, "the pace of an allowed network, not of the public web"
