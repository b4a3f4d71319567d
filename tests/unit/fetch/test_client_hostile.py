"""Slow, rude and lying servers: each exchange ends in time, with what came kept where it can be believed."""

from __future__ import annotations

import asyncio
import resource
import subprocess
import sys
import time

import pytest

from holdfast.types import Fetched, FetchProblem, FetchRequest, Truncated
from tests import patience
from tests.unit.fetch.servers import (
    OK,
    Handler,
    Peer,
    answering,
    ask,
    content,
    exchange,
    fail,
    failure,
    open_client,
    run,
    serving,
)

HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
DEADLINE_S = 0.25
SLACK_S = 0.5


async def _slow_head(peer: Peer) -> None:
    await peer.request()
    await peer.drip(HEAD + b"X-Slow: " + b"a" * 10_000, 0.02)


async def _again_and_again(peer: Peer) -> None:
    while await peer.request():
        await peer.send(OK)


async def _silent(peer: Peer) -> None:
    await peer.request()
    await peer.gone()


async def _interim_forever(peer: Peer) -> None:
    await peer.request()
    while True:
        await peer.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("handler", [_slow_head, _silent, _interim_forever])
def test_a_head_that_does_not_come_ends_at_the_deadline(handler: Handler) -> None:
    before = time.monotonic()

    failed = run(failure(handler, deadline_s=DEADLINE_S))

    assert failed.problem is FetchProblem.TIMEOUT
    assert failed.sent_s is not None
    assert DEADLINE_S * 0.9 <= failed.took_s <= patience.allowed(DEADLINE_S + SLACK_S)
    assert time.monotonic() - before < patience.allowed(DEADLINE_S + 2 * SLACK_S)


def test_a_dripping_body_is_cut_at_the_deadline_and_kept() -> None:
    async def drip(peer: Peer) -> None:
        await peer.request()
        await peer.send(HEAD + b"Content-Length: 10000\r\n\r\n")
        await peer.drip(b"abcdefghij" * 1000, 0.02)

    fetched = run(exchange(drip, deadline_s=DEADLINE_S))

    assert fetched.truncated is Truncated.TIME
    assert fetched.took_s <= patience.allowed(DEADLINE_S + SLACK_S)
    assert (b"abcdefghij" * 1000).startswith(content(fetched))


def test_a_body_below_the_minimum_rate_is_cut_long_before_the_deadline() -> None:
    async def drip(peer: Peer) -> None:
        await peer.request()
        await peer.send(HEAD + b"Content-Length: 10000\r\n\r\n")
        await peer.drip(b"x" * 10_000, 0.05)

    async def main() -> None:
        async with serving(drip) as server, open_client(min_bytes_per_s=5000, rate_window_s=1) as client:
            fetched = await ask(client, server.url(), deadline_s=15)

            assert fetched.truncated is Truncated.TIME
            assert 0 < fetched.body.size < 200
            assert fetched.took_s < patience.allowed(4)

    run(main())


async def _reset_in_body(peer: Peer) -> None:
    await peer.request()
    await peer.send(HEAD + b"Content-Length: 1000\r\n\r\npart")
    await asyncio.sleep(0.02)
    peer.reset()


@pytest.mark.parametrize(
    ("handler", "body"),
    [
        (_reset_in_body, b"part"),
        (answering(HEAD + b"Content-Length: 1000\r\n\r\npart"), b"part"),
        (answering(CHUNKED + b"4\r\npart\r\n"), b"4\r\npart\r\n"),
        (answering(CHUNKED + b"4\r\npa"), b"4\r\npa"),
        (answering(CHUNKED), b""),
        (answering(CHUNKED + b"4\r\npart\r\nzz\r\nmore\r\n", then_wait=True), b"4\r\npart\r\nzz\r\nmore\r\n"),
        (answering(CHUNKED + b"FFFFFFFFFFFFFFFF\r\nmore", then_wait=True), b"FFFFFFFFFFFFFFFF\r\nmore"),
        (answering(CHUNKED + b"-1\r\nmore", then_wait=True), b"-1\r\nmore"),
        (answering(CHUNKED + b"0x5\r\nhello\r\n0\r\n\r\n", then_wait=True), b"0x5\r\nhello\r\n0\r\n\r\n"),
    ],
)
def test_a_body_that_breaks_off_is_kept_and_marked(handler: Handler, body: bytes) -> None:
    fetched = run(exchange(handler))

    assert fetched.truncated is Truncated.DISCONNECT
    assert content(fetched) == body


async def _reset_at_once(peer: Peer) -> None:
    await peer.request()
    peer.reset()


async def _reset_in_head(peer: Peer) -> None:
    await peer.request()
    await peer.send(HEAD)
    await asyncio.sleep(0.02)
    peer.reset()


@pytest.mark.parametrize(
    "handler",
    [
        _reset_at_once,
        _reset_in_head,
        answering(b""),
        answering(HEAD + b"A: b\r\n"),
        answering(b"HTTP/1.1 100 Continue\r\n\r\n"),
    ],
)
def test_a_connection_that_ends_before_the_head_is_a_disconnect(handler: Handler) -> None:
    failed = run(failure(handler))

    assert failed.problem is FetchProblem.DISCONNECTED
    assert failed.sent_s is not None


@pytest.mark.parametrize(
    "wire",
    [
        b"<html>no head at all</html>",
        b"hello",
        b"ICY 200 OK\r\n\r\n",
        b"HTTP/2 200\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 99999 Much\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 abc\r\n\r\n",
        b"\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n\0\0\x12\4\0\0\0\0\0",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n\x81\5hello",
        HEAD + b"X-Nul: a\0b\r\nContent-Length: 2\r\n\r\nok",
        HEAD + b"X-Return: a\rb\r\nContent-Length: 2\r\n\r\nok",
        HEAD + b"no colon here\r\nContent-Length: 2\r\n\r\nok",
        HEAD + b"Content-Length: -1\r\n\r\nok",
        HEAD + b"Content-Length: 2\r\nContent-Length: 5\r\n\r\nok",
        HEAD + b"".join(b"X-%d: a\r\n" % n for n in range(10_000)) + b"\r\nok",
        HEAD + b"X-Large: " + b"a" * 1_000_000 + b"\r\n\r\nok",
        b"HTTP/1.1 200 " + b"a" * 1_000_000 + b"\r\n\r\nok",
        b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n" * 10_000 + OK,
        b"HTTP/1.1 100 Continue\r\n\r\n" * 20_000,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
)
def test_what_is_no_response_is_a_bad_response(wire: bytes) -> None:
    assert run(failure(answering(wire, then_wait=True), deadline_s=0.5)).problem is FetchProblem.BAD_RESPONSE


@pytest.mark.parametrize(
    ("wire", "received"),
    [
        (HEAD + b"X-A: 1\r\nContent-Length: -1\r\n\r\nbody", HEAD + b"X-A: 1\r\n"),
        (b"HTTP/1.1 302 Found\r\nLocation: /a\r\nLocation: /b\r\n\r\n", b"HTTP/1.1 302 Found\r\nLocation: /a\r\n"),
        (b"HTTP/1.1 20000 OK\r\nContent-Length: 4\r\n\r\nbody", b"HTTP/1.1 20000 OK\r\nContent-Length: 4\r\n\r\nbody"),
        (b"\x16\x03\x01 no HTTP at all", b""),
    ],
)
def test_what_came_of_a_bad_response_is_handed_over(wire: bytes, received: bytes) -> None:
    failed = run(failure(answering(wire)))

    assert (failed.problem, failed.received) == (FetchProblem.BAD_RESPONSE, received)


def test_a_head_above_our_own_cap_is_a_bad_response() -> None:
    wire = HEAD + b"X-Long: " + b"a" * 5000 + b"\r\nContent-Length: 0\r\n\r\n"

    async def main() -> None:
        async with serving(answering(wire)) as server, open_client(max_header_bytes=4000) as client:
            assert (await fail(client, server.url())).problem is FetchProblem.BAD_RESPONSE

    run(main())


def test_an_endless_chunked_body_ends_at_the_cap() -> None:
    async def endless(peer: Peer) -> None:
        await peer.request()
        await peer.send(CHUNKED)
        while True:
            await peer.send(b"ffff\r\n" + bytes(0xFFFF) + b"\r\n")

    fetched = run(exchange(endless, max_body_bytes=2_000_000))

    assert (fetched.truncated, fetched.body.size) == (Truncated.LENGTH, 2_000_000)
    fetched.body.close()


def test_hundreds_of_thousands_of_tiny_chunks_cost_little_and_arrive_whole() -> None:
    wire = b"1\r\na\r\n" * 300_000 + b"0\r\n\r\n"
    before = resource.getrusage(resource.RUSAGE_SELF)

    fetched = run(exchange(answering(CHUNKED, wire)))

    after = resource.getrusage(resource.RUSAGE_SELF)
    assert content(fetched) == wire
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1.0


def test_a_megabyte_of_chunk_extension_is_kept_as_it_came() -> None:
    wire = b"5;" + b"a" * 1_000_000 + b"\r\nhello\r\n0\r\n\r\n"

    assert content(run(exchange(answering(CHUNKED + wire)))) == wire


def test_garbage_on_a_kept_connection_never_becomes_an_answer() -> None:
    async def garbage_as_answer(peer: Peer) -> None:
        await peer.request()
        await peer.send(OK)
        await peer.request()
        await peer.send(b"\x00\xffgarbage garbage garbage\r\n\r\n")
        await peer.gone()

    async def unasked_garbage(peer: Peer) -> None:
        while await peer.request():
            await peer.send(OK)
            await peer.send(b"HTTP/1.1 666 Unasked\r\nContent-Length: 4\r\n\r\nevil")

    async def main() -> None:
        async with serving(garbage_as_answer) as server, open_client() as client:
            await ask(client, server.url("/first"))
            failed = await fail(client, server.url("/second"))
            assert (failed.problem, failed.kept_connection) == (FetchProblem.BAD_RESPONSE, True)
        async with serving(unasked_garbage) as server, open_client() as client:
            for _ in range(3):
                assert content(await ask(client, server.url())) == b"ok"
                await asyncio.sleep(0.01)

    run(main())


def test_a_request_is_never_repeated_when_a_kept_connection_dies() -> None:
    """libcurl would send it again at once, and the site would see two requests without a pause."""

    async def once(peer: Peer) -> None:
        await peer.request()
        await peer.send(OK)
        await peer.request()

    async def main() -> None:
        async with serving(once) as server, open_client() as client:
            await ask(client, server.url("/first"))
            failed = await fail(client, server.url("/second"))

            assert failed.problem is FetchProblem.DISCONNECTED
            assert failed.sent_s is not None
            assert failed.kept_connection
            assert [head.split()[1] for head in server.requests] == [b"/first", b"/second"]
            assert content(await ask(client, server.url("/third"))) == b"ok"

    run(main())


def test_a_request_that_asks_for_it_goes_over_a_new_connection() -> None:
    async def main() -> None:
        async with serving(_again_and_again) as server, open_client() as client:
            await ask(client, server.url("/first"))
            await ask(client, server.url("/second"))
            assert server.connections == 1

            answer = await client.fetch(FetchRequest(url=server.url("/third"), fresh_connection=True))

            assert isinstance(answer, Fetched)
            assert server.connections == 2

    run(main())


@pytest.mark.parametrize("last_words", [b"", b"\x00\xffgarbage garbage garbage\r\n\r\n"])
def test_a_failure_on_a_new_connection_is_that_of_the_answer(last_words: bytes) -> None:
    async def main() -> None:
        async with serving(answering(last_words)) as server, open_client() as client:
            assert not (await fail(client, server.url())).kept_connection

    run(main())


def test_a_connection_that_was_closed_while_idle_is_not_used_again() -> None:
    async def main() -> None:
        async with serving(answering(OK)) as server, open_client() as client:
            for _ in range(3):
                assert content(await ask(client, server.url())) == b"ok"
                await server.closed()

            assert server.connections == 3

    run(main())


def test_bytes_behind_the_last_chunk_stay_with_the_body() -> None:
    """libcurl hands over what it read in one go; the payload reader notes what does not belong."""
    wire = b"5\r\nhello\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"

    fetched = run(exchange(answering(CHUNKED + wire, then_wait=True)))

    assert content(fetched) == wire
    assert fetched.truncated is None


def test_stalled_hosts_do_not_slow_the_others() -> None:
    async def main() -> None:
        async with (
            serving(_silent) as stalled,
            serving(answering(OK, then_wait=True)) as quick,
            open_client() as client,
        ):
            stuck = [
                asyncio.create_task(client.fetch(FetchRequest(url=stalled.url(f"/{n}"), deadline_s=600)))
                for n in range(50)
            ]
            for _ in range(50):
                await ask(client, quick.url())
            waiting = sum(not task.done() for task in stuck)
            for task in stuck:
                task.cancel()
            await asyncio.gather(*stuck, return_exceptions=True)

            assert waiting == 50

    run(main())


def test_the_guard_of_memory_spools_what_many_bodies_hold_together() -> None:
    """300 KB each is small for one body and too much for twenty of them."""

    async def held(peer: Peer) -> None:
        await peer.request()
        await peer.send(HEAD + b"Content-Length: 400000\r\n\r\n" + bytes(300_000))
        await asyncio.sleep(0.1)
        await peer.send(bytes(100_000))

    async def main() -> None:
        async with serving(held) as server, open_client(memory_room_bytes=1_000_000) as client:
            results = await asyncio.gather(*(ask(client, server.url(f"/{n}")) for n in range(20)))

            kinds = {type(result.body).__name__ for result in results}
            assert kinds == {"MemoryBody", "SpooledBody"} or kinds == {"SpooledBody"}
            assert all(content(result) == bytes(400_000) for result in results)

    run(main())


_FEW_DESCRIPTORS = """
import asyncio, resource, sys
from ipaddress import ip_network
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
import uvloop
from holdfast.clock import SystemClock
from holdfast.fetch.client import Client, ClientSettings
from holdfast.fetch.guard import AddressGuard
from holdfast.types import Fetched, FetchRequest

async def main(port):
    client = Client(ClientSettings(user_agent="t"), AddressGuard([ip_network("127.0.0.0/8")]), SystemClock())
    urls = [f"http://127.0.{n // 100}.{n % 100 + 1}:{port}/" for n in range(200)]
    results = await asyncio.gather(*(client.fetch(FetchRequest(url=url, deadline_s=60)) for url in urls))
    await client.close()
    print(sum(isinstance(result, Fetched) for result in results))

uvloop.run(main(int(sys.argv[1])))
"""


def test_with_few_descriptors_the_hosts_take_turns() -> None:
    async def main() -> None:
        async with serving(answering(OK, then_wait=True), host="0.0.0.0") as server:
            command = [sys.executable, "-c", _FEW_DESCRIPTORS, str(server.port)]
            child = await asyncio.to_thread(subprocess.run, command, capture_output=True, check=True)

            assert child.stdout.split()[-1] == b"200"
            assert server.connections == 200
            assert server.most_open < 64

    run(main())


def test_a_connection_whose_answer_had_two_lengths_is_not_used_again() -> None:
    """What follows by the shorter length could be read as the answer to the next request."""
    two = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n"

    async def main() -> None:
        async with serving(answering(two, then_wait=True)) as server, open_client() as client:
            for n in range(3):
                await ask(client, server.url(f"/{n}"))

            assert (server.connections, len(server.requests)) == (3, 3)

    run(main())
