"""Listeners and pollers in one event loop: what is bounded, what is told once, when nothing is read at all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence

import pytest
from starlette.types import Message, Scope

from holdfast.api.errors import StreamsFull, TooManyStreams
from holdfast.api.live.hub import (
    BEAT,
    QUEUED_BYTES,
    Channel,
    EndReason,
    EventStream,
    Frame,
    FrameBatch,
    Hub,
    Listener,
    StreamRequest,
    frame,
)
from holdfast.auth.principal import ANONYMOUS, Principal, SignInWay
from holdfast.auth.roles import Permission, Role
from holdfast.errors import Unavailable
from tests.patience import deadline

_OPERATOR = Principal(role=Role.OPERATOR, name="op", way=SignInWay.TOKEN, user_id=1)


class Counted:
    """A topic that hands out what a test gives it, and counts how often it is asked."""

    name = "counted"
    interval_s = 0.001

    def __init__(self) -> None:
        self.looks = self.begun = self.forgotten = 0
        self.waiting: list[Frame] = []
        self.trouble: Exception | None = None

    def begin(self, key: Hashable) -> None:
        self.begun += 1

    def forget(self, key: Hashable) -> None:
        self.forgotten += 1

    def poll(self, keys: Sequence[Hashable]) -> Mapping[Hashable, Sequence[Frame]]:
        self.looks += 1
        if self.trouble is not None:
            raise self.trouble
        found, self.waiting = self.waiting, []
        return {None: found}


def _scope(token: str = "a") -> Scope:
    headers = [(b"authorization", token.encode())]
    return {"type": "http", "headers": headers, "client": ("127.0.0.1", 1), "state": {}}


def _listener(principal: Principal = _OPERATOR, token: str = "a") -> Listener:
    return Listener(principal, Permission.WATCH, _scope(token))


def _hub(in_all: int = 10, per_principal: int = 10) -> Hub:
    return Hub(in_all=in_all, per_principal=per_principal, lasts_s=1000.0)


class Client:
    """One client of a stream: what it was sent; it may stop reading, or leave."""

    def __init__(self) -> None:
        self.sent = b""
        self.status = 0
        self.is_over = False
        self.reads, self._gone, self._changed = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.reads.set()

    async def receive(self) -> Message:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        await self.reads.wait()
        self.status = message.get("status", self.status)
        self.sent += message.get("body", b"")
        self.is_over = message["type"] == "http.response.body" and not message["more_body"]
        self._changed.set()

    def leave(self) -> None:
        self._gone.set()

    async def until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(deadline(10)):
            while not is_so():
                self._changed.clear()
                await self._changed.wait()


async def _until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(deadline(10)):
        while not is_so():  # noqa: ASYNC110 - a poller on a thread sets no event
            await asyncio.sleep(0.001)


def _wish(channel: Channel, *replayed: Frame) -> StreamRequest:
    return StreamRequest(channel=channel, key=None, replay=lambda: replayed)


def _stream(hub: Hub, channel: Channel, *replayed: Frame) -> tuple[Client, asyncio.Task[None]]:
    client = Client()
    stream = EventStream(hub, _listener(), _wish(channel, *replayed))
    return client, asyncio.create_task(stream(_scope(), client.receive, client.send))


def _with_hub(work: Callable[[Hub, Counted, Channel], Awaitable[None]]) -> None:
    async def run() -> None:
        hub, topic = _hub(), Counted()
        await work(hub, topic, hub.channel("counted", lambda: topic))

    asyncio.run(run())


def test_every_client_is_sent_the_same_bytes_and_nothing_is_read_without_clients() -> None:
    async def work(hub: Hub, topic: Counted, channel: Channel) -> None:
        clients = [_stream(hub, channel) for _ in range(3)]
        await _until(lambda: len(hub) == 3 and topic.looks > 0)
        topic.waiting = [frame("job:status", {"job_id": 7}, order=1, event_id="1")]
        for client, _ in clients:
            await client.until(lambda client=client: b"job_id" in client.sent)  # type: ignore[misc]
            client.leave()
        await asyncio.gather(*(task for _, task in clients))
        looks = topic.looks
        await asyncio.sleep(0.02)

        assert {client.sent.partition(b"event: connected")[2] for client, _ in clients} == {
            b'\ndata: {"topic":"counted","heartbeatSeconds":15.0}\n\nevent: job:status\nid: 1\ndata: {"job_id":7}\n\n'
        }
        assert (len(hub), topic.forgotten) == (0, 1)
        assert topic.looks <= looks + 1  # the one that was under way

    _with_hub(work)


def test_what_a_replay_told_is_not_told_again() -> None:
    async def work(hub: Hub, topic: Counted, channel: Channel) -> None:
        topic.waiting = [frame("line", number, order=number) for number in (4, 5, 6)]
        client, task = _stream(hub, channel, *(frame("line", number, order=number) for number in (3, 4, 5)))
        await client.until(lambda: b"data: 6" in client.sent)
        client.leave()
        await task

        assert [line for line in client.sent.splitlines() if line.startswith(b"data: ") and line[6:7].isdigit()] == [
            b"data: 3", b"data: 4", b"data: 5", b"data: 6",
        ]  # fmt: skip

    _with_hub(work)


def test_a_slow_client_is_dropped_and_the_others_go_on() -> None:
    async def work(hub: Hub, topic: Counted, channel: Channel) -> None:
        (slow, slow_task), (quick, quick_task) = _stream(hub, channel), _stream(hub, channel)
        await _until(lambda: b"connected" in slow.sent and b"connected" in quick.sent)
        slow.reads.clear()
        piece = "x" * (QUEUED_BYTES // 4)
        for number in range(1, 9):
            topic.waiting = [frame("line", piece, order=number, event_id=str(number))]
            await quick.until(lambda number=number: b"id: %d\n" % number in quick.sent)  # type: ignore[misc]
        slow.reads.set()
        await slow_task
        quick.leave()
        await quick_task

        assert slow.sent.endswith(b'event: end\ndata: {"reason":"slow"}\n\n')
        assert slow.is_over
        assert len(slow.sent) < QUEUED_BYTES * 1.1
        assert quick.sent.count(b"event: line") == 8

    _with_hub(work)


def test_streams_end_when_the_server_stops_and_none_begins_then() -> None:
    async def work(hub: Hub, topic: Counted, channel: Channel) -> None:
        client, task = _stream(hub, channel)
        await client.until(lambda: b"connected" in client.sent)

        hub.end()
        await task

        assert client.is_over
        assert client.sent.endswith(b'event: end\ndata: {"reason":"shutdown"}\n\n')
        with pytest.raises(StreamsFull):
            hub.enter(_listener())

    _with_hub(work)


def test_a_stream_has_a_longest_time() -> None:
    async def work(hub: Hub, topic: Counted, channel: Channel) -> None:
        hub.lasts_s = 0.01
        client, task = _stream(hub, channel)
        await task

        assert client.sent.endswith(b'event: end\ndata: {"reason":"lifetime"}\n\n')

    _with_hub(work)


def test_places_are_counted_by_user_and_in_all() -> None:
    async def run() -> None:
        hub = _hub(in_all=3, per_principal=2)
        held = [_listener(token=name) for name in "ab"]
        for one in held:
            hub.enter(one)
        with pytest.raises(TooManyStreams):
            hub.enter(_listener(token="c"))
        hub.enter(_listener(Principal(role=Role.OPERATOR, name="other", way=SignInWay.SESSION, user_id=2)))
        with pytest.raises(StreamsFull):
            hub.enter(_listener(Principal(role=Role.OPERATOR, name="third", way=SignInWay.SESSION, user_id=3)))

        hub.leave(held[0])
        hub.leave(held[0])
        hub.enter(_listener())
        assert len(hub) == 3
        hub.end()

    asyncio.run(run())


def test_a_quiet_stream_has_heartbeats_and_a_busy_one_none() -> None:
    async def work(hub: Hub, topic: Counted, channel: Channel) -> None:
        hub.beat_s = 0.01
        client, task = _stream(hub, channel)
        await client.until(lambda: BEAT in client.sent)
        client.leave()
        await task

        busy = _listener()
        busy.put(FrameBatch.of([frame("line", 1, order=1)]))
        busy.beat()
        assert BEAT not in (await busy.next())[0]

    _with_hub(work)


def test_a_stream_ends_when_its_session_is_revoked() -> None:
    asked: list[str] = []

    async def identify(scope: Scope) -> Principal:
        token = scope["headers"][0][1].decode()
        asked.append(token)
        return _OPERATOR if token == "good" else ANONYMOUS

    async def run() -> None:
        hub = _hub()
        hub.identify = identify
        good, revoked = [_listener(token="good") for _ in range(3)], [_listener(token="bad") for _ in range(2)]
        await hub.recheck([*good, *revoked])

        assert sorted(asked) == ["bad", "good"]
        assert {one.reason for one in good} == {None}
        assert {one.reason for one in revoked} == {EndReason.REVOKED}

    asyncio.run(run())


def test_a_database_that_is_away_revokes_nothing() -> None:
    async def identify(_scope: Scope) -> Principal:
        raise Unavailable("the database does not answer")

    async def run() -> None:
        hub, listener = _hub(), _listener()
        hub.identify = identify
        await hub.recheck([listener])
        assert listener.reason is None

    asyncio.run(run())


def test_heartbeats_go_on_whatever_the_question_who_listens_ends_with() -> None:
    async def identify(_scope: Scope) -> Principal:
        raise ZeroDivisionError

    async def work(hub: Hub, topic: Counted, channel: Channel) -> None:
        hub.identify = identify
        hub.beat_s = hub.recheck_s = 0.01
        client, task = _stream(hub, channel)
        await client.until(lambda: client.sent.count(BEAT) > 2)
        client.leave()
        await task

    _with_hub(work)


def test_a_frame_after_which_nothing_follows_ends_the_stream() -> None:
    async def work(hub: Hub, topic: Counted, channel: Channel) -> None:
        client, task = _stream(hub, channel)
        await client.until(lambda: b"connected" in client.sent)
        topic.waiting = [frame("line", 1, order=1)._replace(is_last=True)]
        await task

        assert client.sent.endswith(b'event: line\ndata: 1\n\nevent: end\ndata: {"reason":"over"}\n\n')

    _with_hub(work)


def test_a_poller_goes_on_after_whatever_went_wrong() -> None:
    async def work(hub: Hub, topic: Counted, channel: Channel) -> None:
        client, task = _stream(hub, channel)
        for trouble in (Unavailable("away"), ValueError("odd"), OSError("gone")):
            topic.trouble = trouble
            looks = topic.looks
            await _until(lambda looks=looks: topic.looks > looks + 1)  # type: ignore[misc]
        topic.trouble, topic.waiting = None, [frame("line", 1, order=1)]
        await client.until(lambda: b"event: line" in client.sent)
        client.leave()
        await task

    _with_hub(work)
