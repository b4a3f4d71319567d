"""What a browser test stands on: the archive on a real port, a browser that reaches nothing else, a leak counter."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from shutil import which

import pytest
import uvicorn
from playwright.sync_api import Browser, sync_playwright

from holdfast.api.app import create_app
from holdfast.api.web_files import WebFiles
from holdfast.wiring.archive import Archive
from tests import needs, patience


@contextmanager
def serving(archive: Archive, *, port: int = 0, web: WebFiles | None = None) -> Iterator[int]:
    """Serve an archive from a thread, on a port that the kernel chooses, or on one that it chose before."""
    app = create_app(archive, web=web)
    # Streams would hold the server until their readers leave.
    config = uvicorn.Config(
        app, host="127.0.0.1", port=0, log_level="error", lifespan="off", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    listener = socket.create_server(("127.0.0.1", port))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(patience.deadline(10))
        listener.close()


@dataclass(slots=True)
class Leaks:
    """Takes every connection that is meant for the live web, and remembers what it began with."""

    port: int
    first_bytes: list[bytes] = field(default_factory=list)

    @property
    def asked(self) -> list[bytes]:
        """The first line of each request that left the archive."""
        return [begin.partition(b"\r\n")[0] for begin in self.first_bytes]


@contextmanager
def counting_leaks() -> Iterator[Leaks]:
    """Listen where the browser is told that the whole web lives."""
    listener = socket.create_server(("127.0.0.1", 0))
    leaks = Leaks(listener.getsockname()[1])

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(1)
                try:
                    leaks.first_bytes.append(connection.recv(2048))
                except OSError:
                    leaks.first_bytes.append(b"(nothing sent)")

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield leaks
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(patience.deadline(5))


def find_chromium() -> str:
    """Return Debian's Chromium, or skip; the build without windows takes half the time of the processor."""
    return which("chromium-headless-shell") or which("chromium-browser") or needs.program("chromium")


@contextmanager
def browsing(leak_port: int) -> Iterator[Browser]:
    """Open a browser for which every name and address but the archive's hosts is the leak counter."""
    # The browser's own errands (updates, accounts) are nobody's leak.
    own = "MAP *.googleapis.com ~NOTFOUND, MAP *.google.com ~NOTFOUND"
    rules = f"{own}, MAP * 127.0.0.1:{leak_port}, EXCLUDE localhost, EXCLUDE replay.localhost"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_chromium(), args=["--no-sandbox", f"--host-resolver-rules={rules}"]
        )
        try:
            yield browser
        finally:
            browser.close()


@pytest.fixture(scope="module")
def leaks() -> Iterator[Leaks]:
    """The leak counter of a module's tests."""
    with counting_leaks() as counter:
        yield counter


@pytest.fixture(scope="module")
def browser(leaks: Leaks) -> Iterator[Browser]:
    """One browser for a module's tests: it takes seconds to start."""
    with browsing(leaks.port) as opened:
        yield opened
