"""`holdfast robots`: what robots.txt says about an address, and which line says so."""

from __future__ import annotations

import asyncio
import json as jsonlib
import sys
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast import config
from holdfast.cli.formatting import text
from holdfast.cli.parameters import AsJson, Home, configure_log, read_network
from holdfast.cli.seeds import check_seed
from holdfast.crawl.contact import known_contact
from holdfast.crawl.plan import CrawlPlan
from holdfast.crawl_process.requests import open_polite_client, rules_of
from holdfast.errors import Invalid
from holdfast.fetch import robots as robots_file
from holdfast.fetch.guard import AddressGuard
from holdfast.fetch.robots import RobotsFile
from holdfast.types import RobotsAnswer, RobotsState
from holdfast.urls import Url, parse_seed


def robots(
    urls: Annotated[list[str], typer.Argument(help="Addresses to ask about.")],
    agent: Annotated[str, typer.Option(help="Product token to ask for.")] = "holdfast",
    file: Annotated[Path | None, typer.Option(help="Read this robots.txt instead of the site's.")] = None,
    allow_network: Annotated[list[str] | None, typer.Option(help="Private network (CIDR) that may be asked.")] = None,
    contact: Annotated[str | None, typer.Option(help="E-mail or web address that site owners can reach.")] = None,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Say whether addresses may be asked for, by which rule and line, with crawl-delay and sitemaps.

    Example: holdfast robots https://example.org/private/ --file robots.txt
    """
    settings = config.load(home=home)
    configure_log(settings, unless_set="ERROR")
    targets = [parse_seed(url) for url in urls]
    if file is not None:
        rules = _read(file, agent)
        answers = [_answer(url, rules) for url in targets]
    else:
        networks = [*map(str, settings.allow_networks), *map(read_network, allow_network or [])]
        guard = AddressGuard(tuple(map(ip_network, networks)))
        for url in urls:
            # A private address is refused before it is dialled, as in a crawl.
            check_seed(url, guard)
        who = contact or known_contact(settings)
        states = asyncio.run(_ask(settings, targets, networks, who))
        answers = [_live(url, state, agent) for url, state in zip(targets, states, strict=True)]
    if json:
        print(jsonlib.dumps(answers[0] if len(answers) == 1 else answers))
        return
    for answer in answers:
        _print(answer)


async def _ask(
    settings: config.Settings, urls: list[Url], networks: list[str], contact: str | None
) -> list[RobotsState]:
    if contact is None:
        raise Invalid("no contact, so no site is asked; give one with --contact, or read a file with --file")
    # Under the name of a crawl, with its contact: sites may serve another robots.txt to others.
    agent = CrawlPlan(seeds=(urls[0].fetch,), contact=contact).agent()
    async with open_polite_client(settings, agent=agent, networks=networks, delay_s=1.0) as solo:
        return [await solo.robots(url) for url in urls]


def _read(file: Path, agent: str) -> RobotsFile:
    try:
        return RobotsFile.parse(file.read_bytes(), agent)
    except OSError as exc:
        raise Invalid(f"cannot read {file}: {exc.strerror}") from exc


def _live(url: Url, state: RobotsState, agent: str) -> dict[str, Any]:
    verdict = robots_file.verdict(state, state.checked_at)
    # The rules of the stored bytes are read again for the agent that was asked about, not for our own.
    if verdict is robots_file.RobotsVerdict.RULES:
        return {**_answer(url, rules_of(state, agent)), "status": state.status}
    if state.answer is RobotsAnswer.UNREACHABLE:
        problem = "does not answer" if state.status is None else f"answers {state.status}"
        print(f"holdfast: {url.origin}/robots.txt {problem}: nothing may be asked there now", file=sys.stderr)
    allowed = verdict is robots_file.RobotsVerdict.ALLOW
    return {
        "url": url.fetch,
        "allowed": allowed,
        "rule": None,
        "line": None,
        "crawl_delay": None,
        "sitemaps": [],
        "status": state.status,
    }


def _answer(url: Url, rules: RobotsFile) -> dict[str, Any]:
    decision = rules.decide(url.fetch)
    return {
        "url": url.fetch,
        "allowed": decision.allowed,
        "rule": decision.rule,
        "line": decision.line,
        "crawl_delay": rules.crawl_delay,
        "sitemaps": list(rules.sitemaps),
    }


def _print(answer: dict[str, Any]) -> None:
    by = f"line {answer['line']}: {answer['rule']}" if answer["line"] else _without_rule(answer)
    print(text(f"{'allowed' if answer['allowed'] else 'disallowed'}  {answer['url']}  ({by})"))
    if answer["crawl_delay"] is not None:
        print(f"  crawl-delay {answer['crawl_delay']:g} s")
    for sitemap in answer["sitemaps"]:
        print(f"  sitemap {text(sitemap)}")


def _without_rule(answer: dict[str, Any]) -> str:
    """Return why an address is allowed or not where no line of a file says so."""
    if answer["allowed"]:
        # RFC 9309, 2.3.1.3: a 4xx means that there are no rules; a 5xx that nothing may be asked.
        missing = 400 <= (answer.get("status") or 0) < 500
        return f"there is no robots.txt: status {answer['status']}" if missing else "no rule matches"
    if answer.get("status") is None:
        return "robots.txt cannot be read: no answer"
    broken = 200 <= answer["status"] < 300
    return f"robots.txt cannot be read: {'a broken answer' if broken else 'status'} {answer['status']}"


app_command = robots
