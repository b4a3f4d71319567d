"""What a test holds of the misbehaving web: start it in a thread or in a process of its own, ask, read its log."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType

from tests import forked
from tests.site.book import Handler
from tests.site.log import Entry, LogReader
from tests.site.plain import truth
from tests.site.server import Plan, Server, TlsKind
from tests.site.wire import Exchange

_ROOT = Path(__file__).parents[2]


class Site:
    """A running web. `start` gives one; leaving its `with` block, or `stop`, ends it."""

    def __init__(self, folder: tempfile.TemporaryDirectory[str], plan: Plan) -> None:
        self._folder, self._plan = folder, plan
        self._log = LogReader(plan.log)
        self._server: Server | None = None
        self._thread: threading.Thread | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._hang_up: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None
        self.hosts: list[str] = []
        self.port = 0
        self.tls_port: int | None = None
        self.certificate: Path | None = None
        """What a client must trust to accept the encrypted port."""

    @classmethod
    def start(
        cls,
        hosts: int = 8,
        *,
        pages: int = 12,
        rough: bool = False,
        robots: Mapping[int, str] | None = None,
        tls: TlsKind | None = None,
        process: bool = False,
    ) -> Site:
        """Serve on so many loopback addresses and return when they answer.

        In a thread by default, so that a test can add pages; `process=True` keeps the test's own work from delaying
        the site, which is what a politeness or speed test wants.
        """
        folder = tempfile.TemporaryDirectory(prefix="site-")
        plan = Plan(hosts=hosts, pages=pages, rough=rough, robots=dict(robots or {}), tls=tls, folder=Path(folder.name))
        site = cls(folder, plan)
        if process:
            site._start_process()
        else:
            site._start_thread()
        return site

    @classmethod
    def plain(cls, hosts: int, pages: int, *, rough: bool = False) -> Site:
        """Serve an ordinary generated web of many pages in a process of its own; `urls` is the truth about it."""
        return cls.start(hosts, pages=pages, rough=rough, process=True)

    def _start_thread(self) -> None:
        ready = threading.Event()
        server = Server(self._plan)

        async def serve() -> None:
            stop = asyncio.Event()
            self._hang_up = (asyncio.get_running_loop(), stop)
            ready.set()
            await server.run(stop)

        self._thread = threading.Thread(target=lambda: asyncio.run(serve()), name="site", daemon=True)
        self._thread.start()
        ready.wait()
        self._server = server
        self.hosts, self.port, self.tls_port = server.hosts, server.port, server.tls_port
        self.certificate = server.certificate

    def _start_process(self) -> None:
        plan = self._plan
        command = [sys.executable, "-m", "tests.site", "--until-eof", "--folder", str(plan.folder)]
        command += ["--hosts", str(plan.hosts), "--pages", str(plan.pages)]
        command += [*(["--rough"] if plan.rough else []), *(["--tls", plan.tls] if plan.tls else [])]
        for index, name in plan.robots.items():
            command += ["--robots", f"{index}={name}"]
        self._process = forked.Popen(command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        said = json.loads(self._process.stdout.readline())
        self.hosts, self.port, self.tls_port = said["hosts"], said["port"], said["tls_port"]
        self.certificate = Path(said["certificate"]) if said["certificate"] else None

    def url(self, host: int = 0, path: str = "/", *, scheme: str = "http") -> str:
        """Return the address of a path on the host of this index."""
        port = self.port if scheme == "http" else self.tls_port
        return f"{scheme}://{self.hosts[host]}:{port}{path}"

    def urls(self) -> list[str]:
        """Return every ordinary page of every host: what a complete crawl has seen."""
        return [f"http://{host}:{self.port}{path}" for host in self.hosts for path in truth(self._plan.pages)]

    def on(self, path: str, handler: Handler, *, host: int | None = None) -> None:
        """Add a page of the test's own, on one host or on all; it wins over every other."""
        if self._server is None:
            raise RuntimeError("a site in its own process takes no pages from a test; start it without process=True")
        self._server.custom[None if host is None else self.hosts[host], path] = handler

    def serve(
        self,
        path: str,
        body: bytes | str,
        *,
        status: int = 200,
        headers: Iterable[tuple[str, str]] = (),
        media: str | None = "text/html; charset=utf-8",
        host: int | None = None,
    ) -> None:
        """Add a page of the test's own that gives one fixed answer."""
        kept = tuple(headers)

        async def handler(exchange: Exchange) -> None:
            await exchange.reply(body, status=status, headers=kept, media=media)

        self.on(path, handler, host=host)

    def robots(self, host: int, name: str) -> None:
        """Let a host serve another robots.txt from now on, by its name in the table."""
        if self._server is None:
            raise RuntimeError("name the robots.txt of a site in its own process when you start it")
        self._server.robots[self.hosts[host]] = name

    def log(self) -> list[Entry]:
        """Return every request so far, in order of arrival."""
        return self._log.entries()

    def faults(self) -> list[str]:
        """Return what broke inside pages: bugs of the site or of a test's own page."""
        return [f"{entry.path}: {entry.fault}" for entry in self.log() if entry.fault]

    def settled(self, *, within_s: float = 5.0) -> list[Entry]:
        """Return the log once no request is open any more; raises TimeoutError if one stays open."""
        deadline = time.monotonic() + within_s
        while True:
            entries = self.log()
            still_open = [entry.path for entry in entries if entry.end is None]
            if not still_open:
                return entries
            if time.monotonic() > deadline:
                raise TimeoutError(f"still open after {within_s} s: {still_open}")
            threading.Event().wait(0.005)

    def stop(self) -> None:
        """Hang up on everybody and free the port; the log is gone afterwards. May be called twice."""
        if self._thread is not None and self._hang_up is not None:
            loop, stop = self._hang_up
            loop.call_soon_threadsafe(stop.set)
            self._thread.join()
            self._thread = None
        if self._process is not None:
            self._process.communicate()
            self._process = None
        self._folder.cleanup()

    def __enter__(self) -> Site:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
