"""Dialling: a server that does not let us in costs its time and no more, and what is too late never leaves."""

from __future__ import annotations

import socket

import pytest

from holdfast.errors import LeaseLost
from holdfast.types import FetchProblem, FetchRequest
from tests import patience
from tests.unit.fetch.servers import Peer, fail, open_client, run, serving

SLACK_S = 0.5


async def _silent(peer: Peer) -> None:
    await peer.request()
    await peer.gone()


def _refuse() -> float:
    raise LeaseLost("it may not leave")


def test_a_server_that_does_not_accept_costs_the_connect_timeout() -> None:
    """A full backlog drops new connections silently, as a packet filter does."""

    async def main() -> None:
        with socket.socket() as deaf:
            deaf.bind(("127.0.0.1", 0))
            deaf.listen(0)
            waiting = [socket.socket() for _ in range(4)]
            for sock in waiting:
                sock.setblocking(False)
                sock.connect_ex(deaf.getsockname())
            async with open_client(connect_timeout_s=0.2) as client:
                failed = await fail(client, f"http://127.0.0.1:{deaf.getsockname()[1]}/", deadline_s=10)
            for sock in waiting:
                sock.close()

        assert failed.problem is FetchProblem.TIMEOUT
        assert failed.took_s < patience.allowed(0.2 + SLACK_S)
        assert failed.sent_s is None

    run(main())


def test_a_request_that_could_not_leave_in_time_never_leaves() -> None:
    async def main() -> None:
        async with serving(_silent) as server, open_client() as client:
            with pytest.raises(LeaseLost):
                await client.fetch(FetchRequest(url=server.url("/late"), before_send=_refuse))
            assert server.connections == 0
        with socket.socket() as deaf:
            deaf.bind(("127.0.0.1", 0))
            deaf.listen(0)
            waiting = [socket.socket() for _ in range(4)]
            for sock in waiting:
                sock.setblocking(False)
                sock.connect_ex(deaf.getsockname())
            async with open_client(connect_timeout_s=30) as client:
                url = f"http://127.0.0.1:{deaf.getsockname()[1]}/"
                slow = await fail(client, url, deadline_s=30, before_send=lambda: 0.2)
            for sock in waiting:
                sock.close()
        assert (slow.problem, slow.sent_s) == (FetchProblem.TIMEOUT, None)
        assert slow.took_s < patience.allowed(0.2 + SLACK_S)

    run(main())


def test_a_closed_port_is_a_failed_connection() -> None:
    async def main() -> None:
        async with open_client() as client:
            failed = await fail(client, "http://127.0.0.1:1/")

            assert failed.problem is FetchProblem.CONNECT
            assert failed.sent_s is None

    run(main())
