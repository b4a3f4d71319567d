"""Heavy work is made for a client; once the client has left, it ends within a portion, and its thread is free."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from threading import Barrier, Event
from time import monotonic

import pytest
from starlette.responses import Response
from starlette.types import Message

from holdfast import cancellation
from holdfast.api.errors import ServerBusy
from holdfast.api.heavy import EXPORT_THREADS, HEAVY_THREADS, ReplayTurns, SlowTaskPool, Streamed
from holdfast.cancellation import WorkAbandoned
from holdfast.config import DiskSettings
from holdfast.errors import NoSpace, Unavailable
from holdfast.exports.package import export_cdxj
from tests.archive import Shot, build_archive
from tests.patience import deadline


class _Client:
    """Asks once, and leaves when it is told to; from any thread."""

    def __init__(self) -> None:
        self._loop, self._leaving = asyncio.get_running_loop(), asyncio.Event()
        self._asked = False

    def leave(self) -> None:
        self._loop.call_soon_threadsafe(self._leaving.set)

    async def receive(self) -> Message:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._leaving.wait()
        return {"type": "http.disconnect"}


def _endless(began: Callable[[], None]) -> None:
    """Work in portions until somebody says stop; a test that fails waits for that in vain."""
    began()
    until = monotonic() + deadline(60)
    while monotonic() < until:
        cancellation.check()
    raise AssertionError("nothing ended it")


async def _leave_before_the_answer() -> tuple[list[BaseException | Response], Response]:
    heavy = SlowTaskPool()
    clients = [_Client() for _ in range(HEAVY_THREADS)]

    def work(client: _Client) -> Response:
        _endless(client.leave)
        return Response()

    asked = [heavy.answer(client.receive, lambda client=client: work(client)) for client in clients]  # type: ignore[misc]
    ended = await asyncio.gather(*asked, return_exceptions=True)
    return ended, await heavy.answer(_Client().receive, lambda: Response(b"made"))


def test_work_whose_client_left_ends_at_its_next_portion_and_frees_its_thread() -> None:
    ended, after = asyncio.run(_leave_before_the_answer())

    assert [type(one) for one in ended] == [WorkAbandoned] * HEAVY_THREADS
    assert after.body == b"made"


async def _leave_in_the_middle() -> tuple[list[bytes], bool]:
    client, sent, is_closed = _Client(), [], Event()

    def pieces() -> Iterator[bytes]:
        try:
            yield b"one"
            yield b"two"
            _endless(client.leave)
        finally:
            is_closed.set()

    async def send(message: Message) -> None:
        sent.append(message.get("body", b""))

    heavy = SlowTaskPool()
    response = await heavy.answer(client.receive, lambda: Streamed(pieces(), "text/plain", {}))
    scope = {"type": "http", "asgi": {"spec_version": "2.3"}}
    await response(scope, client.receive, send)
    return sent, is_closed.is_set()


def test_a_streamed_answer_whose_client_left_ends_in_the_middle_of_a_piece_and_lets_go_of_all() -> None:
    sent, is_closed = asyncio.run(_leave_in_the_middle())

    assert [piece for piece in sent if piece] == [b"one", b"two"]
    assert is_closed


async def _read_slowly() -> tuple[list[type[BaseException]], int, Response]:
    """Ask for more answers that hold something than may be read at once; none of their clients reads on."""
    heavy, closed = SlowTaskPool(), []

    def holding(number: int) -> Iterator[bytes]:
        try:
            yield b"one"
            yield b"two"
        finally:
            closed.append(number)

    def work(number: int) -> Streamed:
        return Streamed(holding(number), "text/plain", {}, is_holding=True)

    refused: list[type[BaseException]] = []
    answers = []
    for number in range(20):
        try:
            answers.append(await heavy.answer(_Client().receive, lambda number=number: work(number)))  # type: ignore[misc]
        except ServerBusy as busy:
            refused.append(type(busy))
    plain = await heavy.answer(_Client().receive, lambda: Response(b"made"))
    for answer in answers:
        gone = _Client()
        gone.leave()
        await answer({"type": "http", "asgi": {"spec_version": "2.3"}}, gone.receive, _dropped)
    again = await heavy.answer(_Client().receive, lambda: work(99))
    await again({"type": "http", "asgi": {"spec_version": "2.4"}}, _Client().receive, _dropped)
    assert 99 in closed
    return refused, len(answers) - (len(closed) - 1), plain


async def _dropped(_message: Message) -> None:
    """Take what is sent."""


def test_answers_that_hold_files_until_they_are_read_are_counted_and_let_go_when_their_clients_leave() -> None:
    refused, held, plain = asyncio.run(_read_slowly())

    assert refused == [ServerBusy] * 12
    assert held == 0
    assert plain.body == b"made", "what holds nothing goes on"


async def _export_for_long() -> tuple[Response, list[BaseException | Response]]:
    """Ask for more exports than are begun at once, all of which take long; and then for something else."""
    heavy, clients, began = SlowTaskPool(), [_Client() for _ in range(HEAVY_THREADS + EXPORT_THREADS)], Event()

    def sort() -> Response:
        _endless(began.set)
        return Response()

    exports = [asyncio.create_task(heavy.answer(client.receive, sort, is_export=True)) for client in clients]
    await asyncio.to_thread(began.wait, deadline(60))
    other = await heavy.answer(_Client().receive, lambda: Response(b"made"))
    for client in clients:
        client.leave()
    return other, await asyncio.gather(*exports, return_exceptions=True)


def test_exports_that_take_long_leave_the_threads_of_other_heavy_work_free() -> None:
    other, ended = asyncio.run(_export_for_long())

    assert other.body == b"made"
    assert {type(one) for one in ended} <= {WorkAbandoned, ServerBusy}


def test_cdxj_export_without_disk_space_is_not_started(tmp_path: Path) -> None:
    archive = build_archive(tmp_path / "home", [Shot(url="https://example.org/")])
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    everything = DiskSettings(free_bytes=1 << 60, free_percent=0.0)

    with pytest.raises(NoSpace, match="are kept free"):
        list(export_cdxj(archive.database, scratch, source_id=1, disk=everything))
    assert list(scratch.iterdir()) == []


def test_a_folder_that_cannot_be_sorted_in_is_not_called_full(tmp_path: Path) -> None:
    archive = build_archive(tmp_path / "home", [Shot(url="https://example.org/")])

    with pytest.raises(Unavailable, match="cannot sort the index below") as refused:
        list(export_cdxj(archive.database, tmp_path / "absent", source_id=1))
    archive.database.close()

    assert not isinstance(refused.value, NoSpace)


def test_an_index_that_no_client_waits_for_is_not_sorted_and_leaves_nothing_on_the_disk(tmp_path: Path) -> None:
    archive = build_archive(tmp_path / "home", [Shot(url=f"https://example.org/{number}") for number in range(3)])
    scratch, left = tmp_path / "scratch", Event()
    scratch.mkdir()
    with cancellation.until(left):
        kept = list(export_cdxj(archive.database, scratch, source_id=1))
        left.set()
        with pytest.raises(WorkAbandoned):
            next(export_cdxj(archive.database, scratch, source_id=1))
    archive.database.close()

    assert len(kept) == 3
    assert list(scratch.iterdir()) == []


def test_replay_rewrites_one_page_at_a_time_for_an_address() -> None:
    asyncio.run(_two_addresses())


async def _two_addresses() -> None:
    turns, both = ReplayTurns(), Barrier(2)
    running: Counter[str] = Counter()
    most: Counter[str] = Counter()

    def work(address: str) -> None:
        running[address] += 1
        most[address] = max(most[address], running[address])
        both.wait(60)  # only passed while a page of the other address is being rewritten
        running[address] -= 1

    asked = [address for address in ("a", "b") for _ in range(5)]
    await asyncio.gather(*(turns.run(address, partial(work, address)) for address in asked))

    assert most == {"a": 1, "b": 1}
