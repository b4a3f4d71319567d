"""The ordinary life of the client: what it sends, what it keeps, what it hands back."""

from __future__ import annotations

import asyncio
import gc
import gzip
import os
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from holdfast.clock import SystemClock
from holdfast.errors import Unavailable
from holdfast.fetch.client import Client, ClientSettings
from holdfast.types import FetchProblem, FetchRequest, Truncated
from tests import patience
from tests.unit.fetch.servers import (
    BYE,
    LOOPBACK,
    OK,
    Peer,
    answering,
    ask,
    content,
    exchange,
    fail,
    open_client,
    run,
    serving,
)


def test_the_recorded_request_is_what_the_server_received(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 site.test\n")

    async def main() -> None:
        extra = (("X-Odd", "ä é"), ("X-Empty", ""))
        async with (
            serving(answering(OK, then_wait=True)) as server,
            open_client(hosts=hosts, from_header="crawler@example.org", extra_headers=extra) as client,
        ):
            for url in (
                server.url("/"),
                server.url("/a%20b;c=1/../d//e?x=[1]&y={2}|^`'\"<>\\@:"),
                server.url("?only=query"),
                server.url("/named", host="site.test"),
                server.url("/dot", host="site.test."),
            ):
                fetched = await ask(client, url)
                assert fetched.request_head == server.requests[-1]
            own = (("If-None-Match", '"abc"'), ("accept", "text/css"), ("Cookie", "a=1; b=2"), ("X-None", ""))
            fetched = await ask(client, server.url("/own"), headers=own)
            assert fetched.request_head == server.requests[-1]
            fetched = await ask(client, server.url("/plain"))
            assert fetched.request_head == server.requests[-1]

            lines = server.requests[-1].split(b"\r\n")
            assert lines[0] == b"GET /plain HTTP/1.1"
            assert lines[1] == b"Host: 127.0.0.1:%d" % server.port
            assert b"User-Agent: holdfast-test/1" in lines
            assert b"Accept-Encoding: gzip, deflate, br, zstd" in lines
            assert b"From: crawler@example.org" in lines
            assert "X-Odd: ä é".encode("latin-1") in lines
            assert b"X-Empty:" in lines
            assert server.requests[-2].count(b"ccept:") == 1

    run(main())


def test_headers_of_one_request_never_reach_the_next() -> None:
    async def main() -> None:
        async with serving(answering(OK, then_wait=True)) as server, open_client() as client:
            for number in range(300):
                own = (("Cookie", f"n={number}"),) if number % 2 else ()
                fetched = await ask(client, server.url(), headers=own)
                assert fetched.request_head == server.requests[-1]
                assert (b"Cookie: n=%d\r\n" % number in server.requests[-1]) == bool(own)

    run(main())


def test_an_ipv6_literal_is_asked_with_its_brackets() -> None:
    async def main() -> None:
        async with serving(answering(OK), host="::1") as server, open_client() as client:
            fetched = await ask(client, server.url("/six", host="[::1]"))

            assert fetched.ip == "::1"
            assert fetched.request_head == server.requests[0]
            assert b"Host: [::1]:%d\r\n" % server.port in server.requests[0]

    run(main())


def test_the_response_is_kept_byte_for_byte() -> None:
    body = gzip.compress(b"<html>" * 5000)
    chunked = b"".join(b"%x;ext=1\r\n%b\r\n" % (len(part), part) for part in (body[:1000], body[1000:]))
    wire = chunked + b"0\r\nX-Trailer: yes\r\n\r\n"
    head = (
        b"HTTP/1.1 200 Gar nicht \xfcbel\r\nsErVeR :  odd\r\nSet-Cookie: a=1\r\nSet-Cookie: a=2\r\n"
        b"X-Latin: \xe9\xff\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
    )

    fetched = run(exchange(answering(head + wire[:50], wire[50:], then_wait=True)))

    assert fetched.status == 200
    assert fetched.response_head == head
    assert content(fetched) == wire
    assert fetched.truncated is None
    assert fetched.tls_verified is None


def test_bare_line_feeds_are_kept_and_folded_lines_are_unfolded() -> None:
    """Unfolding is libcurl's and the one known difference from the wire: docs/decisions/0003-libcurl.md."""
    bare = run(exchange(answering(b"HTTP/1.0 200 OK\nA: b\nContent-Length: 2\n\nok")))
    folded = run(exchange(answering(b"HTTP/1.1 200 OK\r\nX: a\r\n  b\r\nContent-Length: 0\r\n\r\n")))

    assert bare.response_head == b"HTTP/1.0 200 OK\nA: b\nContent-Length: 2\n\n"
    assert folded.response_head == b"HTTP/1.1 200 OK\r\nX: a b\r\nContent-Length: 0\r\n\r\n"


def test_interim_heads_are_dropped() -> None:
    interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n"

    fetched = run(exchange(answering(interim + OK)))

    assert fetched.response_head + content(fetched) == OK


@pytest.mark.parametrize(
    ("wire", "status", "size"),
    [
        (b"HTTP/1.1 999 Odd\r\nContent-Length: 1\r\n\r\nx", 999, 1),
        (b"HTTP/1.1 200\r\nContent-Length: 1\r\n\r\nx", 200, 1),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\nETag: x\r\n\r\n", 304, 0),
        (b"HTTP/1.1 204 Nothing\r\n\r\n", 204, 0),
        (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 2\r\n\r\nhi", 302, 2),
        (b"HTTP/1.1 401 Who\r\nWWW-Authenticate: Basic realm=x\r\nContent-Length: 2\r\n\r\nhi", 401, 2),
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", 200, 13),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\nmuch", 200, 4),
        (b"HTTP/1.1 200 OK\r\nX-Long: " + b"a" * 90_000 + b"\r\nContent-Length: 0\r\n\r\n", 200, 0),
    ],
)
def test_an_unusual_response_is_one_exchange_and_nothing_more(wire: bytes, status: int, size: int) -> None:
    async def main() -> None:
        async with serving(answering(wire)) as server, open_client() as client:
            fetched = await ask(client, server.url())

            assert (fetched.status, fetched.body.size, fetched.truncated) == (status, size, None)
            assert fetched.response_head + content(fetched) == wire
            assert len(server.requests) == 1

    run(main())


def test_connections_are_kept_and_shared_between_calls() -> None:
    async def main() -> None:
        async with serving(answering(OK, then_wait=True)) as server, open_client() as client:
            for _ in range(5):
                assert content(await ask(client, server.url())) == b"ok"

            assert (server.connections, len(server.requests)) == (1, 5)

    run(main())


def test_start_and_address_are_recorded() -> None:
    class Noon:
        def now(self) -> datetime:
            return datetime(2026, 11, 15, 12, tzinfo=UTC)

        def monotonic(self) -> float:
            return time.monotonic()

    async def main() -> None:
        async with serving(answering(OK)) as server, open_client(clock=Noon()) as client:
            fetched = await ask(client, server.url())

            assert fetched.started_at == datetime(2026, 11, 15, 12, tzinfo=UTC)
            assert fetched.ip == "127.0.0.1"
            assert 0 < fetched.took_s < patience.allowed(5)
            assert fetched.url == server.url()

    run(main())


def test_a_large_body_goes_to_disk_and_leaves_no_name(tmp_path: Path) -> None:
    body = os.urandom(3 * 1024 * 1024)
    wire = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body

    async def main() -> None:
        async with serving(answering(wire)) as server, open_client(spool_dir=tmp_path) as client:
            fetched = await ask(client, server.url())

            assert not any(os.scandir(tmp_path))
            pieces = list(fetched.body.chunks())
            assert len(pieces) > 1
            assert b"".join(pieces) == body
            assert content(fetched) == body

    run(main())


def test_a_spool_that_cannot_be_written_is_an_error_of_ours(tmp_path: Path) -> None:
    wire = b"HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n" + bytes(200_000)

    async def main() -> None:
        async with (
            serving(answering(wire)) as server,
            open_client(spool_dir=tmp_path / "missing", memory_bytes=10_000) as client,
        ):
            with pytest.raises(Unavailable, match="spool"):
                await client.fetch(FetchRequest(url=server.url()))

    run(main())


def test_the_cap_cuts_a_body_exactly() -> None:
    wire = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + b"x" * 100_000

    cut = run(exchange(answering(wire), max_body_bytes=99_999))
    whole = run(exchange(answering(wire), max_body_bytes=100_000))

    assert (cut.body.size, cut.truncated) == (99_999, Truncated.LENGTH)
    assert (whole.body.size, whole.truncated) == (100_000, None)


def test_no_more_connections_are_open_than_allowed() -> None:
    async def slow(peer: Peer) -> None:
        await peer.request()
        await asyncio.sleep(0.02)
        await peer.send(BYE)

    async def main() -> None:
        async with serving(slow) as server, open_client(max_connections=2) as client:
            results = await asyncio.gather(*(ask(client, server.url(f"/{n}")) for n in range(8)))

            assert len(results) == len(server.requests) == 8
            assert server.most_open <= 2

    run(main())


def test_a_turn_is_not_lost_with_a_caller_that_gives_up() -> None:
    async def main() -> None:
        async with serving(answering(OK, then_wait=True)) as server, open_client(max_connections=1) as client:

            async def first() -> None:
                await ask(client, server.url("/first"))
                second.cancel()

            leading = asyncio.create_task(first())
            await asyncio.sleep(0)
            second = asyncio.create_task(client.fetch(FetchRequest(url=server.url("/second"))))
            third = asyncio.create_task(ask(client, server.url("/third")))
            await asyncio.wait_for(asyncio.gather(leading, third), patience.deadline(2))

            assert second.cancelled()
            assert [head.split()[1] for head in server.requests] == [b"/first", b"/third"]

    run(main())


def test_cancelling_a_caller_ends_the_transfer() -> None:
    async def main() -> None:
        hung_up = asyncio.Event()

        async def endless(peer: Peer) -> None:
            await peer.request()
            await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nsome")
            await peer.gone()
            hung_up.set()

        async with serving(endless) as server, open_client() as client:
            task = asyncio.create_task(client.fetch(FetchRequest(url=server.url())))
            await server.asked.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.wait_for(hung_up.wait(), patience.deadline(2))

    run(main())


def test_closing_the_client_cancels_its_callers() -> None:
    async def main() -> None:
        async with serving(answering(b"", then_wait=True)) as server, open_client(max_connections=1) as client:
            tasks = [asyncio.create_task(client.fetch(FetchRequest(url=server.url()))) for _ in range(2)]
            await server.asked.wait()
            await client.close()
            results = await asyncio.gather(*tasks, return_exceptions=True)

            assert [type(result) for result in results] == [asyncio.CancelledError] * 2

    run(main())


def test_descriptors_come_back() -> None:
    async def use(url: str) -> int:
        async with open_client() as client:
            for _ in range(20):
                await ask(client, url)
            await fail(client, "http://127.0.0.1:1/")
        await asyncio.sleep(0.01)
        return len(list(os.scandir("/proc/self/fd")))

    async def main() -> None:
        async with serving(answering(BYE)) as server:
            # What earlier tests left behind may be closed meanwhile.
            gc.collect()
            assert await use(server.url()) >= await use(server.url())

    run(main())


def test_the_standard_event_loop_serves_as_well() -> None:
    async def main() -> bytes:
        async with serving(answering(OK)) as server, open_client() as client:
            return content(await ask(client, server.url()))

    assert asyncio.run(main()) == b"ok"


def test_nothing_is_read_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with serving(answering(OK)) as proxy, serving(answering(OK)) as server:
            for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
                monkeypatch.setenv(name, proxy.url())
            (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password secret\n")
            monkeypatch.setenv("HOME", str(tmp_path))
            async with open_client() as client:
                await ask(client, server.url())

            assert not proxy.requests
            assert b"uthorization" not in server.requests[0]

    run(main())


def test_what_a_site_asks_a_browser_to_remember_is_not_remembered() -> None:
    wire = (
        b'HTTP/1.1 200 OK\r\nStrict-Transport-Security: max-age=9999\r\nAlt-Svc: h2=":1", h3=":1"\r\n'
        b"Set-Cookie: a=1\r\nLink: <http://127.0.0.1:1/x>; rel=preload\r\nRefresh: 0; url=/x\r\n"
        b"Content-Length: 0\r\n\r\n"
    )

    async def main() -> None:
        async with serving(answering(wire, then_wait=True)) as server, open_client() as client:
            await ask(client, server.url("/one"))
            await ask(client, server.url("/two"))

            assert len(server.requests) == 2
            assert b"ookie" not in server.requests[1]

    run(main())


@pytest.mark.parametrize(
    "header",
    [
        ("X-Break", "a\r\nEvil: 1"),
        ("X-Break\r\nEvil", "1"),
        ("X Y", "1"),
        ("X-Nul", "a\0b"),
        ("X-Wide", "snow\u2603"),
        ("Host", "elsewhere.test"),
        ("Transfer-Encoding", "chunked"),
        ("Content-Length", "5"),
    ],
)
def test_a_header_that_would_change_the_request_is_not_sent(header: tuple[str, str]) -> None:
    async def main() -> None:
        async with serving(answering(OK)) as server, open_client() as client:
            failed = await fail(client, server.url(), headers=(header,))

            assert failed.problem is FetchProblem.URL_REFUSED
            assert server.connections == 0

    run(main())


def test_a_port_outside_the_list_is_not_asked() -> None:
    async def main() -> None:
        async with serving(answering(OK)) as server, open_client(allow_ports=frozenset({80, 443})) as client:
            assert (await fail(client, server.url())).problem is FetchProblem.URL_REFUSED
            assert server.connections == 0

    run(main())


def test_a_missing_certificate_bundle_is_said_at_once(tmp_path: Path) -> None:
    settings = ClientSettings(user_agent="x", ca_file=tmp_path / "none.pem")

    with pytest.raises(Unavailable, match="certificate"):
        Client(settings, LOOPBACK, SystemClock())
