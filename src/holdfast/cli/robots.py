"""`holdfast robots`: the decision of robots.txt about a URL, with its line."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast.cli.formatting import text
from holdfast.cli.parameters import Contact, Networks
from holdfast.cli.printing import Done, picked, runnable
from holdfast.cli.seeds import check_reachable
from holdfast.config import Settings
from holdfast.crawl.requests import read_robots, rules_of
from holdfast.errors import Invalid
from holdfast.fetch import robots as robots_file
from holdfast.fetch.robots import RobotsFile
from holdfast.sources.contact import known_contact
from holdfast.types import RobotsAnswer, RobotsRecord
from holdfast.urls import Url, parse_seed


@runnable(is_quiet=True, opened=nullcontext, example="robots https://example.org/private/ --file robots.txt")
def robots(
    settings: Settings,
    urls: Annotated[list[str], typer.Argument(help="URLs to check.")],
    agent: Annotated[str, typer.Option(help="Product token.")] = "holdfast",
    file: Annotated[Path | None, typer.Option(help="Read this robots.txt instead of the site's.")] = None,
    allow_network: Networks = None,
    contact: Contact = None,
) -> Done:
    """Check whether URLs are allowed, with rule, line, crawl-delay and sitemaps."""
    targets = [parse_seed(url) for url in urls]
    if file is not None:
        rules = _read(file, agent)
        answers = [_answer(url, rules) for url in targets]
    else:
        # Reject a private address before connecting, as a crawl does.
        networks = check_reachable(settings, urls, allow_network)
        who = contact or known_contact(settings)
        if who is None:
            raise Invalid("no contact for requests; give one with --contact, or read a file with --file")
        states = read_robots(settings, targets, contact=who, networks=networks)
        answers = [_live(url, state, agent) for url, state in zip(targets, states, strict=True)]
    return Done(answers[0] if len(answers) == 1 else answers, map(_sentence, answers))


def _read(file: Path, agent: str) -> RobotsFile:
    try:
        return RobotsFile.parse(file.read_bytes(), agent)
    except OSError as exc:
        raise Invalid(f"cannot read {file}: {exc.strerror}") from exc


def _live(url: Url, state: RobotsRecord, agent: str) -> dict[str, Any]:
    verdict = robots_file.verdict(state, state.checked_at)
    # Parse the stored bytes again for the requested agent, not for our own.
    if verdict is robots_file.RobotsVerdict.RULES:
        return {**_answer(url, rules_of(state, agent)), "status": state.status}
    if state.answer is RobotsAnswer.UNREACHABLE:
        problem = "does not respond" if state.status is None else f"answers {state.status}"
        print(f"holdfast: {url.origin}/robots.txt {problem}: nothing may be fetched there now", file=sys.stderr)
    unknown: dict[str, Any] = {"rule": None, "line": None, "crawl_delay": None, "sitemaps": [], "status": state.status}
    return {"url": url.fetch, "allowed": verdict is robots_file.RobotsVerdict.ALLOW, **unknown}


def _answer(url: Url, rules: RobotsFile) -> dict[str, Any]:
    decision = picked(rules.decide(url.fetch), "allowed rule line", url=url.fetch)
    return {**decision, "crawl_delay": rules.crawl_delay, "sitemaps": list(rules.sitemaps)}


def _sentence(answer: dict[str, Any]) -> str:
    by = f"line {answer['line']}: {answer['rule']}" if answer["line"] else _without_rule(answer)
    lines = [text(f"{'allowed' if answer['allowed'] else 'disallowed'}  {answer['url']}  ({by})")]
    lines += [f"  crawl-delay {answer['crawl_delay']:g} s"] if answer["crawl_delay"] is not None else []
    return "\n".join([*lines, *(f"  sitemap {text(sitemap)}" for sitemap in answer["sitemaps"])])


def _without_rule(answer: dict[str, Any]) -> str:
    if answer["allowed"]:
        # RFC 9309, 2.3.1.3: a 4xx means that there are no rules; a 5xx that nothing may be requested.
        missing = 400 <= (answer.get("status") or 0) < 500
        return f"there is no robots.txt: status {answer['status']}" if missing else "no rule matches"
    if answer.get("status") is None:
        return "robots.txt cannot be read: no answer"
    broken = 200 <= answer["status"] < 300
    return f"robots.txt cannot be read: {'a broken response' if broken else 'status'} {answer['status']}"
