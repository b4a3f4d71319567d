"""What a crawl takes for one page: a slash at the end, tracking parameters, ports that are not asked otherwise."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests import patience
from tests.flow.crawler import Crawler, fetched
from tests.site import Site

_LINKS = "".join(f'<a href="{path}">x</a>' for path in ("/a", "/a/", "/b?from=1", "/b?from=2", "/c?utm_x=1", "/c"))


def _asked(crawler: Crawler, *options: str) -> set[str]:
    with Site.start(hosts=1, pages=1) as site:
        site.serve("/", _LINKS)
        for path in ("/a", "/a/", "/b", "/c"):
            site.serve(path, "<p>x</p>")
        crawler.crawl(site.url(0), "--delay", "0", "--no-sitemaps", "--depth", "1", *options)
        return {entry.partition("/")[2] for entry in fetched(site.settled())}


def test_without_options_a_slash_makes_another_page_and_the_usual_parameters_do_not(crawler: Crawler) -> None:
    assert _asked(crawler) == {"", "a", "a/", "b?from=1", "b?from=2", "c?utm_x=1"}


def test_a_slash_at_the_end_and_own_parameters_may_be_left_out_of_account(crawler: Crawler) -> None:
    asked = _asked(crawler, "--strip-trailing-slash", "--tracking", "from")

    assert asked == {"", "a", "b?from=1", "c?utm_x=1", "c"}, "own parameters stand in the place of the usual ones"


def _answers(host: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0


@contextmanager
def _on_port(host: str, port: int) -> Iterator[None]:
    """Serve one page on a port of this machine where a database would live."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = b"<title>it</title>"
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        await writer.drain()
        writer.close()

    loop = asyncio.new_event_loop()
    ready = threading.Event()

    async def serve() -> asyncio.Server:
        server = await asyncio.start_server(answer, host, port)
        ready.set()
        return server

    def run() -> None:
        server = loop.run_until_complete(serve())
        loop.run_forever()
        server.close()
        loop.run_until_complete(server.wait_closed())
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()

    thread = threading.Thread(target=run, name="odd-port", daemon=True)
    thread.start()
    assert ready.wait(patience.deadline(30))
    try:
        yield
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def test_a_port_that_is_not_asked_otherwise_may_be_allowed(crawler: Crawler) -> None:
    port = 6697
    host = next(f"127.0.0.{number}" for number in range(9, 255) if not _answers(f"127.0.0.{number}", port))
    seed = f"http://{host}:{port}/"
    refused = crawler.start(seed)
    refused.communicate(timeout=patience.deadline(60))
    with _on_port(host, port):
        crawler.crawl(seed, "--allow-port", str(port), "--delay", "0", "--no-sitemaps")

    assert refused.returncode != 0
    assert crawler.outcomes()[seed] == ("success", "ok")
