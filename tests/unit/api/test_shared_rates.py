"""Many requests at once: exactly as many go on as the limit says, wherever they are counted."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from holdfast import log
from holdfast.api.app import create_app, rates_of
from holdfast.api.middleware import shared_rates
from holdfast.api.middleware.rate_limits import CountedRequest, Tier
from holdfast.api.middleware.shared_rates import SharedRates
from holdfast.clock import SystemClock
from holdfast.config import Settings
from holdfast.wiring.archive import open_archive
from tests import patience
from tests.redis import running_redis
from tests.unit.api.conftest import MakeClient

_TIER = Tier("race", 7)


@pytest.fixture(scope="module")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_redis(tmp_path_factory.mktemp("redis")) as url:
        yield url


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Redis take its time: on a busy machine it may be late, and a count in each process is no count of all."""
    monkeypatch.setattr(shared_rates, "_ANSWER_S", patience.deadline(30))


async def _race(url: str, counters: int, requests: int) -> list[CountedRequest]:
    counting = [SharedRates(url, SystemClock(), prefix="race") for _ in range(counters)]
    try:
        return await asyncio.gather(*(counting[number % counters].count(_TIER, "one") for number in range(requests)))
    finally:
        for rates in counting:
            await rates.close()


@pytest.mark.usefixtures("patient")
def test_of_many_requests_to_many_processes_exactly_the_limit_goes_on(redis_url: str) -> None:
    counted = asyncio.run(_race(redis_url, 4, 60))

    assert sum(one.wait_s == 0 for one in counted) == 7
    assert all(1 <= one.wait_s <= 61 for one in counted if one.wait_s)
    assert {one.left for one in counted} <= set(range(7))


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("where", ["memory", "redis"])
def test_of_many_requests_at_once_exactly_the_limit_is_answered(tmp_path: Path, redis_url: str, where: str) -> None:
    settings = Settings(
        home=tmp_path,
        redis_url=redis_url if where == "redis" else None,
        api={"rates": "general=11", "connections_per_address": 100},
    )

    async def ask() -> list[httpx.Response]:
        with open_archive(settings) as archive:
            app = create_app(archive)
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8060") as client:
                # What a first answer loads takes longer than Redis is waited for.
                await client.get("/api/health")
                answers = await asyncio.gather(*(client.get("/nothing") for _ in range(40)))
            await app.state.rates.close()
            return answers

    answers = asyncio.run(ask())

    assert sorted(answer.status_code for answer in answers) == [404] * 11 + [429] * 29
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert refused.headers["retry-after"] == refused.headers["ratelimit-reset"]
    assert refused.headers["ratelimit-remaining"] == "0"
    assert refused.headers["ratelimit-policy"] == '"general";q=11;w=60'


@pytest.mark.parametrize("kind", ["nothing listens", "nothing answers"])
def test_without_redis_each_process_counts_for_itself_at_once(kind: str) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]
        if kind == "nothing listens":
            listener.close()
        rates = rates_of(f"redis://127.0.0.1:{port}/0", SystemClock())
        assert isinstance(rates, SharedRates)

        async def ask() -> list[int]:
            async with asyncio.timeout(30):
                waits = [(await rates.count(_TIER, "one")).wait_s for _ in range(9)]
                await rates.close()
                return waits

        with log.captured("WARNING") as events:
            waits = asyncio.run(ask())

    assert [wait == 0 for wait in waits] == [True] * 7 + [False] * 2
    assert [event["event"] for event in events] == ["rates.redis_away"]


def test_an_answer_says_how_much_of_the_limit_is_left(make_client: MakeClient) -> None:
    client = make_client(search_per_minute=3)
    answers = [client.get("/api/search") for _ in range(4)]

    assert [answer.headers["ratelimit-remaining"] for answer in answers] == ["2", "1", "0", "0"]
    assert {answer.headers["ratelimit-limit"] for answer in answers} == {"3"}
    assert answers[0].headers["ratelimit"].startswith('"search";r=2;t=')
    assert "ratelimit-limit" not in client.get("/api/health").headers


@pytest.mark.parametrize(("where", "word"), [("redis", "ok"), ("nowhere", "away"), (None, "not configured")])
def test_health_says_whether_redis_answers(tmp_path: Path, redis_url: str, where: str | None, word: str) -> None:
    # Port 1 is answered by no one.
    url = {"redis": redis_url, "nowhere": "redis://127.0.0.1:1/0", None: None}[where]

    async def ask() -> str:
        with open_archive(Settings(home=tmp_path, redis_url=url)) as archive:
            app = create_app(archive)
            async with httpx.AsyncClient(
                transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:8060"
            ) as client:
                await client.get("/api/usage")
                found: str = (await client.get("/health")).json()["services"]["redis"]
                await app.state.rates.close()
            app.state.totals.close()
            return found

    assert asyncio.run(ask()) == word
