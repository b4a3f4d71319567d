"""`holdfast probe-browser-fetch`: one page, as our client gets it and as a browser sees it. Nothing is stored."""

from __future__ import annotations

import asyncio
import json as jsonlib
from dataclasses import asdict
from ipaddress import ip_network
from typing import Annotated

import typer

from holdfast import config
from holdfast.cli.contact import find_contact
from holdfast.cli.logs import configure_log
from holdfast.cli.options import AsJson, Home
from holdfast.cli.seeds import check_seed
from holdfast.cli.tables import table
from holdfast.cli.values import read_network
from holdfast.clock import SystemClock
from holdfast.crawl.plan import CrawlPlan
from holdfast.fetch.guard import Guard
from holdfast.types import FetchFailed
from holdfast.urls import parse_seed
from holdfast.worker.care.probing import Look, ask_plainly, find_browser, plain_look, probe


def probe_browser_fetch(
    address: Annotated[str, typer.Argument(help="The page.", metavar="URL")],
    program: Annotated[str | None, typer.Option("--program", help="The browser; chromium if it is found.")] = None,
    allow_network: Annotated[list[str] | None, typer.Option(help="Private network (CIDR) that may be asked.")] = None,
    contact: Annotated[str | None, typer.Option(help="E-mail or web address that site owners can reach.")] = None,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Ask for one page with our own client and with a browser, and compare; exit 1 if the browser does not get it.

    It tells a site that refuses crawlers from one that is down, before a source is switched to zimit. The browser
    reaches no host but the page's own, so pictures from elsewhere are missing.

    Example: holdfast probe-browser-fetch https://example.org/
    """
    settings = config.load(home=home)
    configure_log(settings, unless_set="ERROR")
    browser = find_browser(program)
    networks = [*map(str, settings.allow_networks), *map(read_network, allow_network or [])]
    check_seed(address, Guard(tuple(map(ip_network, networks))))
    url, who = parse_seed(address), find_contact(settings, contact)
    answer = asyncio.run(ask_plainly(settings, url, contact=who, networks=networks))
    plain = plain_look(answer)
    if isinstance(answer, FetchFailed):
        seen = Look(ok=False, seconds=0.0, error="not asked: our own client reached no address")
    else:
        agent = CrawlPlan(seeds=(url.fetch,), contact=who).agent()
        seen = probe(settings, answer.url, answer, browser, SystemClock(), agent=agent)
    if json:
        print(jsonlib.dumps({"url": url.fetch, "program": browser, "plain": asdict(plain), "browser": asdict(seen)}))
    else:
        rows = [(name, "yes" if one.ok else "NO", one.status, one.bytes, f"{one.seconds:.1f}", one.title, one.error)
                for name, one in (("our client", plain), ("browser", seen))]  # fmt: skip
        print(table(("", "got it", "status", "bytes", "seconds", "title", "trouble"), rows))
    if not seen.ok:
        raise typer.Exit(1)
