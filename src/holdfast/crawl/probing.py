"""Probes a site without crawling it: one page fetched by our client and by a browser, and the steps of a dry run.

The browser is pinned to the address that our guard has approved, and reaches no other host; robots.txt is
obeyed, and our User-Agent is sent. It runs in its own sandbox; a server that runs as root starts it as user `nobody`.
"""

from __future__ import annotations

import asyncio
import os
import pwd
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from ipaddress import IPv6Address, ip_address
from pathlib import Path

from holdfast.clock import Clock
from holdfast.config import Settings
from holdfast.crawl.link_filter import REQUISITE_PRIORITY
from holdfast.crawl.requests import (
    DocumentLimits,
    FetchedDocument,
    PoliteClient,
    hold_domains,
    open_polite_client,
)
from holdfast.errors import Invalid, Unavailable
from holdfast.frontier.explain_robots import answer_for
from holdfast.processes.child_process import ChildProcess
from holdfast.records import Operator, record
from holdfast.sources.plan import CrawlPlan
from holdfast.types import FetchFailed, UrlKind
from holdfast.urls import Base, Url, parse, priority, resolve
from holdfast.warc.payload import parse_head

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_MAX_BYTES = 10 * 1024 * 1024
_TITLE = re.compile(r"<title[^>]{0,200}>([^<]{0,500})", re.I)
_ERROR = re.compile(r"\bERR_[A-Z_]{3,60}")
_ERROR_PAGE = 'id="main-frame-error"'
_NOBODY = "nobody"


@record
class Look:
    """What one client got of a page."""

    ok: Operator[bool]
    seconds: Operator[float]
    status: Operator[int | None] = None
    bytes: Operator[int] = 0
    title: Operator[str | None] = None
    error: Operator[str | None] = None


async def ask_plainly(
    settings: Settings, url: Url, *, contact: str, networks: Sequence[str]
) -> FetchedDocument | FetchFailed:
    """Fetch a page with our own client, politely; raise RobotsDenied if robots.txt disallows it or its redirects."""
    agent = CrawlPlan(seeds=(url.fetch,), contact=contact).agent()
    async with open_polite_client(
        settings, agent=agent, networks=networks, delay_s=settings.politeness.delay_s
    ) as client:
        limits = DocumentLimits(request_s=settings.fetch.deadline_s)
        answer = await client.get(url, limits, obey_robots=True)
    if answer is None:
        raise Unavailable(f"{url.fetch} redirects too often; ask for the address where it should end")
    return answer


def plain_look(answer: FetchedDocument | FetchFailed) -> Look:
    if isinstance(answer, FetchFailed):
        return Look(ok=False, seconds=answer.took_s, error=f"{answer.problem.value}: {answer.message}")
    text = answer.body.decode("utf-8", "replace")
    status = answer.fetched.status
    return Look(
        ok=status < 400, seconds=answer.fetched.took_s, status=status, bytes=len(answer.body), title=_title(text)
    )


def find_browser(given: str | None) -> str:
    """Return the path of a browser; raise Invalid if none is found."""
    for name in (given,) if given else BROWSERS:
        if found := shutil.which(name):
            return found
    raise Invalid(f"no browser found (looked for {given or ', '.join(BROWSERS)}); name one with --program")


def browser_command(program: str, url: Url, *, ip: str, agent: str, folder: Path) -> list[str]:
    """Return the command that prints a page as the browser renders it; the browser can resolve no other host."""
    address = f"[{ip}]" if isinstance(ip_address(ip), IPv6Address) else ip
    return [
        program,
        "--headless=new",
        "--disable-gpu",
        "--no-first-run",
        "--disable-extensions",
        "--disable-sync",
        "--disable-background-networking",
        "--disable-component-update",
        # A proxy would connect to other addresses than the one that our guard has checked.
        "--no-proxy-server",
        "--mute-audio",
        f"--user-data-dir={folder / 'profile'}",
        f"--user-agent={agent}",
        # Pin the host to the checked address; all other hosts (trackers, redirects into private networks) do not
        # resolve.
        f"--host-resolver-rules=MAP {url.host} {address},MAP * ~NOTFOUND",
        "--dump-dom",
        url.fetch,
    ]


def ask_with_browser(command: Sequence[str], folder: Path, clock: Clock, *, deadline_s: float) -> Look:
    """Run a browser to its end or deadline, and return the result; all its processes are ended."""
    began = clock.monotonic()
    dom, said = folder / "dom.html", folder / "said.log"
    # A browser's sandbox does not work as root, and without it a page would run with our rights.
    nobody = pwd.getpwnam(_NOBODY) if os.geteuid() == 0 else None
    if nobody is not None:
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(folder), "LANG": "C.UTF-8"}
    with dom.open("wb") as out, said.open("wb") as err:
        try:
            process = ChildProcess(
                command,
                environment,
                stdout=out,
                stderr=err,
                cwd=folder,
                user=nobody and nobody.pw_uid,
                group=nobody and nobody.pw_gid,
                extra_groups=None if nobody is None else (),
            )
        except OSError as exc:
            raise Invalid(f"cannot start {command[0]}: {exc.strerror}; name another with --program") from exc
        # With all its processes: a page may keep one of them busy for ever.
        code = process.finish(deadline_s)
    with dom.open("rb") as file:
        text = file.read(_MAX_BYTES).decode("utf-8", "replace")
    error = _trouble(code, text, said, deadline_s)
    return Look(ok=error is None, seconds=clock.monotonic() - began, bytes=len(text), title=_title(text), error=error)


def _trouble(code: int | None, text: str, said: Path, deadline_s: float) -> str | None:
    if code is None:
        return f"it took longer than {deadline_s:g} s"
    if _ERROR_PAGE in text:
        found = _ERROR.search(text)
        return f"net::{found[0]}" if found else "it shows an error page"
    if code or not text.strip():
        words = said.read_text(errors="replace").strip()
        if found := _ERROR.search(words):
            return f"net::{found[0]}"
        return f"it ended with {code}: {words.splitlines()[-1][:300] if words else 'no word'}"
    return None


def _title(text: str) -> str | None:
    found = _TITLE.search(text)
    return " ".join(found[1].split()) if found else None


def probe(settings: Settings, url: Url, answer: FetchedDocument, program: str, clock: Clock, *, agent: str) -> Look:
    """Fetch with a browser the page that our own client got, from the same IP address."""
    delay_s = settings.politeness.delay_s
    with (
        tempfile.TemporaryDirectory(prefix="holdfast-probe-") as name,
        hold_domains(settings, [url.domain], delay_s=delay_s),
    ):
        folder = Path(name)
        command = browser_command(program, url, ip=answer.fetched.ip, agent=agent, folder=folder)
        return ask_with_browser(command, folder, clock, deadline_s=settings.fetch.deadline_s)


_SHOWN = 50


@record
class DryRunStep:
    """A request that a crawl would send, and why."""

    order: Operator[int]
    url: Operator[str]
    kind: Operator[str]
    depth: Operator[int]
    priority: Operator[int]
    why: Operator[str]


@record
class ExcludedLinks:
    """Links to a host that a rule excludes."""

    rule: Operator[str]
    host: Operator[str]
    count: Operator[int]


@record
class DryRun:
    """The first requests of a crawl, and the links that it would exclude."""

    first: Operator[list[DryRunStep]]
    excluded: Operator[list[ExcludedLinks]]


def dry_run(plan: CrawlPlan, settings: Settings) -> DryRun:
    """Return the first requests of a crawl with reasons; fetches only robots.txt and the first ten seeds."""
    return asyncio.run(_look(plan, settings))


async def _look(plan: CrawlPlan, settings: Settings) -> DryRun:
    scope, excluded = plan.build_scope(), Counter[tuple[str, str]]()
    rows: dict[int, tuple[int, Url, UrlKind, int, str]] = {}
    async with open_polite_client(
        settings,
        agent=plan.agent(),
        networks=plan.allow_networks,
        delay_s=max(plan.delay_s, 1.0),
        policy=plan.normalisation(),
    ) as client:
        for url in plan.seed_urls()[:10]:
            allowed, why = await _permission(plan, client, url)
            rows[url.hash64] = (3, url, UrlKind.PAGE, 0, f"seed; {why}")
            if not allowed:
                continue
            answer = await client.get(url, DocumentLimits(request_s=settings.fetch.deadline_s))
            if not isinstance(answer, FetchedDocument):
                problem = answer.message if isinstance(answer, FetchFailed) else "it redirects too often"
                rows[url.hash64] = (3, url, UrlKind.PAGE, 0, f"seed; cannot be read: {problem}")
                continue
            for kind, hrefs in _mentioned(answer, requisites=plan.requisites):
                for link in resolve(Base(*hrefs[0], policy=plan.normalisation()), hrefs[1]):
                    depth = 1 if kind is UrlKind.PAGE else 0
                    verdict = scope.decide(link, depth, kind)
                    if not verdict.allowed:
                        excluded[verdict.rule, link.host] += 1
                    elif link.hash64 not in rows:
                        rank = priority(link.normalised, depth) if kind is UrlKind.PAGE else REQUISITE_PRIORITY
                        rows[link.hash64] = (rank, parse(link.fetch, plan.normalisation()), kind, depth, verdict.rule)
        return await _ordered(plan, client, rows.values(), excluded)


def _mentioned(
    answer: FetchedDocument, *, requisites: bool
) -> list[tuple[UrlKind, tuple[tuple[str, str | None], list[str]]]]:
    page = answer.parse(parse_head(answer.fetched.response_head))
    base = (answer.url.fetch, page.base)
    found = [(UrlKind.PAGE, (base, [link.url for link in page.links]))]
    if requisites:
        found.append((UrlKind.REQUISITE, (base, [link.url for link in page.resources])))
    return found


async def _ordered(
    plan: CrawlPlan,
    client: PoliteClient,
    rows: Iterable[tuple[int, Url, UrlKind, int, str]],
    excluded: Counter[tuple[str, str]],
) -> DryRun:
    steps = []
    seeds_first = sorted(rows, key=lambda row: (not row[4].startswith("seed"), -row[0]))
    origins = {url.origin for url in plan.seed_urls()}
    for order, (rank, url, kind, depth, why) in enumerate(seeds_first[:_SHOWN], 1):
        if url.origin in origins and not why.startswith("seed"):
            why = f"in scope by {why}; {(await _permission(plan, client, url))[1]}"
        steps.append(DryRunStep(order=order, url=url.fetch, kind=kind.value, depth=depth, priority=rank, why=why))
    left_out = [ExcludedLinks(rule=rule, host=host, count=count) for (rule, host), count in excluded.most_common(20)]
    return DryRun(first=steps, excluded=left_out)


async def _permission(plan: CrawlPlan, client: PoliteClient, url: Url) -> tuple[bool, str]:
    if plan.robots == "ignore":
        return True, "robots.txt ignored"
    state = await client.robots(url)
    ruling = answer_for(url, (state,), state.checked_at)
    by = f"line {ruling.line}: {ruling.rule}" if ruling.line else ruling.reason
    return ruling.allowed, f"robots.txt {'allows' if ruling.allowed else 'forbids'} it ({by})"
