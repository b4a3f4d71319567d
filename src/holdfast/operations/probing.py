"""Looks at a site without crawling it: one page asked for by our client and by a browser, and the steps of a dry run.

The browser is pinned to the address that our guard has judged, and reaches no other host; robots.txt is obeyed, and our
name is told. It runs in its own sandbox, and as `nobody` where we are root.
"""

from __future__ import annotations

import asyncio
import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import Any

from holdfast.clock import Clock
from holdfast.config import Settings
from holdfast.crawl.link_filter import REQUISITE_PRIORITY
from holdfast.crawl.plan import CrawlPlan
from holdfast.crawl_process.requests import (
    DocumentLimits,
    FetchedDocument,
    PoliteClient,
    hold_domains,
    open_polite_client,
    rules_of,
)
from holdfast.errors import Invalid, Unavailable
from holdfast.fetch import robots as robots_file
from holdfast.parse import parse_page
from holdfast.types import FetchFailed, UrlKind
from holdfast.urls import Base, Url, parse, priority, resolve
from holdfast.warc.payload import parse_head

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_MAX_BYTES = 10 * 1024 * 1024
_TITLE = re.compile(r"<title[^>]{0,200}>([^<]{0,500})", re.I)
_ERROR = re.compile(r"\bERR_[A-Z_]{3,60}")
_ERROR_PAGE = 'id="main-frame-error"'
_NOBODY = "nobody"


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What one way of asking saw."""

    ok: bool
    seconds: float
    status: int | None = None
    bytes: int = 0
    title: str | None = None
    error: str | None = None


async def ask_plainly(
    settings: Settings, url: Url, *, contact: str, networks: Sequence[str]
) -> FetchedDocument | FetchFailed:
    """Return what our own client gets, politely; RobotsDenied if robots.txt disallows it or what it redirects to."""
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
    """Return an answer of our own client as a look."""
    if isinstance(answer, FetchFailed):
        return Look(ok=False, seconds=answer.took_s, error=f"{answer.problem.value}: {answer.message}")
    text = answer.body.decode("utf-8", "replace")
    status = answer.fetched.status
    return Look(
        ok=status < 400, seconds=answer.fetched.took_s, status=status, bytes=len(answer.body), title=_title(text)
    )


def find_browser(given: str | None) -> str:
    """Return the path of a browser; Invalid if there is none."""
    for name in (given,) if given else BROWSERS:
        if found := shutil.which(name):
            return found
    raise Invalid(f"no browser found (looked for {given or ', '.join(BROWSERS)}); name one with --program")


def browser_command(program: str, url: Url, *, ip: str, agent: str, folder: Path) -> list[str]:
    """Return the command that prints a page as the browser sees it; every other host is unknown to it."""
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
        # A proxy would ask other addresses than the one that our guard has judged.
        "--no-proxy-server",
        "--mute-audio",
        f"--user-data-dir={folder / 'profile'}",
        f"--user-agent={agent}",
        # Pinned to the address that was judged; every other host, of trackers and redirects into private networks, is
        # unknown to it.
        f"--host-resolver-rules=MAP {url.host} {address},MAP * ~NOTFOUND",
        "--dump-dom",
        url.fetch,
    ]


def ask_with_browser(command: Sequence[str], folder: Path, clock: Clock, *, deadline_s: float) -> Look:
    """Run a browser to its end, or to its deadline, and return what it saw; no process of it is left."""
    began = clock.monotonic()
    dom, said = folder / "dom.html", folder / "said.log"
    # A browser's sandbox does not work as root, and without it a page would run with our rights.
    nobody = pwd.getpwnam(_NOBODY) if os.geteuid() == 0 else None
    if nobody is not None:
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(folder), "LANG": "C.UTF-8"}
    with dom.open("wb") as out, said.open("wb") as err:
        try:
            process = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=environment,
                cwd=folder,
                start_new_session=True,
                user=nobody and nobody.pw_uid,
                group=nobody and nobody.pw_gid,
                extra_groups=None if nobody is None else (),
            )
        except OSError as exc:
            raise Invalid(f"cannot start {command[0]}: {exc.strerror}; name another with --program") from exc
        code = _wait(process, deadline_s)
    with dom.open("rb") as file:
        text = file.read(_MAX_BYTES).decode("utf-8", "replace")
    error = _trouble(code, text, said, deadline_s)
    return Look(ok=error is None, seconds=clock.monotonic() - began, bytes=len(text), title=_title(text), error=error)


def _wait(process: subprocess.Popen[bytes], deadline_s: float) -> int | None:
    """Return the exit code, None if it took too long; whatever it started is ended with it."""
    try:
        return process.wait(timeout=deadline_s)
    except subprocess.TimeoutExpired:
        return None
    finally:
        with suppress(ProcessLookupError):
            # The whole group: a browser is many processes, and a page may keep one of them busy for ever.
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


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
    """Ask a browser for the page that our own client got, at the address that it got it from."""
    delay_s = settings.politeness.delay_s
    with (
        tempfile.TemporaryDirectory(prefix="holdfast-probe-") as name,
        hold_domains(settings, [url.domain], delay_s=delay_s),
    ):
        folder = Path(name)
        command = browser_command(program, url, ip=answer.fetched.ip, agent=agent, folder=folder)
        return ask_with_browser(command, folder, clock, deadline_s=settings.fetch.deadline_s)


_SHOWN = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRunStep:
    """One address, in the order it would be asked for."""

    order: int
    url: str
    kind: str
    depth: int
    priority: int
    why: str


@dataclass(slots=True)
class DryRun:
    """The first steps of a crawl."""

    steps: list[DryRunStep] = field(default_factory=list)
    excluded: list[tuple[tuple[str, str], int]] = field(default_factory=list)

    def as_object(self) -> dict[str, Any]:
        """Return it for `--json`."""
        left_out = [{"rule": rule, "host": host, "count": count} for (rule, host), count in self.excluded]
        return {"first": [asdict(step) for step in self.steps], "excluded": left_out}


def dry_run(plan: CrawlPlan, settings: Settings) -> DryRun:
    """Return what would be crawled first, and why; asks for robots.txt and the first ten seeds only."""
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
    head = parse_head(answer.fetched.response_head)
    page = parse_page(answer.body, url=answer.url.fetch, media_type=head.media_type, charset=head.charset)
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
    found = DryRun(excluded=excluded.most_common(20))
    seeds_first = sorted(rows, key=lambda row: (not row[4].startswith("seed"), -row[0]))
    origins = {url.origin for url in plan.seed_urls()}
    for order, (rank, url, kind, depth, why) in enumerate(seeds_first[:_SHOWN], 1):
        if url.origin in origins and not why.startswith("seed"):
            why = f"in scope by {why}; {(await _permission(plan, client, url))[1]}"
        found.steps.append(DryRunStep(order=order, url=url.fetch, kind=kind.value, depth=depth, priority=rank, why=why))
    return found


async def _permission(plan: CrawlPlan, client: PoliteClient, url: Url) -> tuple[bool, str]:
    """Return whether robots.txt lets us ask, and in which words."""
    if plan.robots == "ignore":
        return True, "robots.txt ignored"
    state = await client.robots(url)
    verdict = robots_file.verdict(state, state.checked_at)
    if verdict is robots_file.RobotsVerdict.ALLOW:
        return True, f"no robots.txt (status {state.status})"
    if verdict is not robots_file.RobotsVerdict.RULES:
        said = "no answer" if state.status is None else f"status {state.status}"
        return False, f"robots.txt cannot be read ({said}), so nothing may be asked"
    decision = rules_of(state, "holdfast").decide(url.fetch)
    rule = f"line {decision.line}: {decision.rule}" if decision.line else "no rule matches"
    return decision.allowed, f"robots.txt {'allows' if decision.allowed else 'forbids'} it ({rule})"
