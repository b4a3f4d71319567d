"""One page, asked for by our own client and by a browser: does a site answer a browser otherwise than us?

The browser is pinned to the address that our guard has judged, and reaches no other host; robots.txt is obeyed, and our
name is told. It runs in its own sandbox, and as `nobody` where we are root.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from pathlib import Path

from holdfast.clock import Clock
from holdfast.config import Settings
from holdfast.crawl.plan import CrawlPlan
from holdfast.crawl.robots_gate import AGENT
from holdfast.errors import Invalid, NotPermitted, Unavailable
from holdfast.fetch import robots_state
from holdfast.types import FetchFailed
from holdfast.urls import Url
from holdfast.worker.domain_leases import hold_domains
from holdfast.worker.solo import Document, open_solo, rules_of

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


async def ask_plainly(settings: Settings, url: Url, *, contact: str, networks: Sequence[str]) -> Document | FetchFailed:
    """Return what our own client gets, politely; NotPermitted if robots.txt forbids it."""
    agent = CrawlPlan(seeds=(url.fetch,), contact=contact).agent()
    async with open_solo(settings, agent=agent, networks=networks, delay_s=settings.politeness.delay_s) as solo:
        state = await solo.robots(url)
        verdict = robots_state.verdict(state, state.checked_at)
        allowed = verdict is robots_state.Verdict.ALLOW or (
            verdict is robots_state.Verdict.RULES and rules_of(state, AGENT).decide(url.fetch).allowed
        )
        if not allowed:
            raise NotPermitted(f"robots.txt of {url.origin} does not allow {url.fetch}; nothing was asked")
        answer = await solo.get(url, deadline_s=settings.fetch.deadline_s)
    if answer is None:
        raise Unavailable(f"{url.fetch} redirects too often; ask for the address where it should end")
    return answer


def plain_look(answer: Document | FetchFailed) -> Look:
    """Return an answer of our own client as a look."""
    if isinstance(answer, FetchFailed):
        return Look(ok=False, seconds=answer.took_s, error=f"{answer.problem.value}: {answer.message}")
    text = answer.body.decode("utf-8", "replace")
    status = answer.fetched.status
    return Look(ok=status < 400, seconds=answer.fetched.took_s, status=status, bytes=len(answer.body),
                title=_title(text))  # fmt: skip


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
        program, "--headless=new", "--disable-gpu", "--no-first-run", "--disable-extensions", "--disable-sync",
        "--disable-background-networking", "--disable-component-update", "--no-proxy-server", "--mute-audio",
        f"--user-data-dir={folder / 'profile'}", f"--user-agent={agent}",
        f"--host-resolver-rules=MAP {url.host} {address},MAP * ~NOTFOUND", "--dump-dom", url.fetch,
    ]  # fmt: skip


def ask_with_browser(command: Sequence[str], folder: Path, clock: Clock, *, deadline_s: float) -> Look:
    """Run a browser to its end, or to its deadline, and return what it saw; no process of it is left."""
    began = clock.monotonic()
    dom, said = folder / "dom.html", folder / "said.log"
    nobody = pwd.getpwnam(_NOBODY) if os.geteuid() == 0 else None
    if nobody is not None:
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(folder), "LANG": "C.UTF-8"}
    with dom.open("wb") as out, said.open("wb") as err:
        try:
            process = subprocess.Popen(
                list(command), stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment, cwd=folder,
                start_new_session=True, user=nobody and nobody.pw_uid, group=nobody and nobody.pw_gid,
                extra_groups=None if nobody is None else (),
            )  # fmt: skip
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


def probe(settings: Settings, url: Url, answer: Document, program: str, clock: Clock, *, agent: str) -> Look:
    """Ask a browser for the page that our own client got, at the address that it got it from."""
    delay_s = settings.politeness.delay_s
    with (
        tempfile.TemporaryDirectory(prefix="holdfast-probe-") as name,
        hold_domains(settings, [url.domain], delay_s=delay_s),
    ):
        folder = Path(name)
        command = browser_command(program, url, ip=answer.fetched.ip, agent=agent, folder=folder)
        return ask_with_browser(command, folder, clock, deadline_s=settings.fetch.deadline_s)
