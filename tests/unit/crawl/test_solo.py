"""A few requests outside any crawl: by the nameservers of the settings, and no more trusting than a crawl."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.config import FetchSettings, Settings
from holdfast.crawl.requests import open_polite_client
from holdfast.types import RobotsAnswer, RobotsRecord
from holdfast.urls import Normalisation, parse
from tests.unit.fetch.nameserver import nameserver
from tests.unit.fetch.servers import answering, run, serving

_RULES = b"User-agent: *\nDisallow: /private\n"


async def _robots(url: str, home: Path, nameservers: list[str]) -> RobotsRecord:
    settings = Settings(home=home, fetch=FetchSettings(nameservers=nameservers))
    async with open_polite_client(settings, agent="t", networks=["127.0.0.0/8"], delay_s=0.0) as solo:
        return await solo.robots(parse(url))


@pytest.mark.parametrize(
    ("answer", "meaning"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(_RULES) + _RULES, RobotsAnswer.RULES),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + _RULES, RobotsAnswer.UNREACHABLE),
        (
            b"HTTP/1.1 200 OK\r\nContent-Encoding: lzma\r\nContent-Length: %d\r\n\r\n" % len(_RULES) + _RULES,
            RobotsAnswer.UNREACHABLE,
        ),
    ],
    ids=["whole", "cut", "unreadable"],
)
def test_half_a_robots_file_forbids_everything(answer: bytes, meaning: RobotsAnswer, tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(answering(answer)) as server:
            state = await _robots(server.url("/"), tmp_path / "home", [])

            assert state.answer is meaning

    run(main())


def test_a_port_that_the_plan_allows_may_be_asked_for_its_robots_file(tmp_path: Path) -> None:
    allowed = Normalisation(allow_ports=frozenset({9}))  # nothing answers there, but it may be asked

    async def main() -> None:
        settings = Settings(home=tmp_path / "home")
        async with open_polite_client(
            settings, agent="t", networks=["127.0.0.0/8"], delay_s=0.0, policy=allowed
        ) as solo:
            state = await solo.robots(parse("http://127.0.0.1:9/", allowed))

        assert state.answer is RobotsAnswer.UNREACHABLE

    run(main())


def test_names_are_looked_up_where_the_settings_say(tmp_path: Path) -> None:
    answer = b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"

    def zone(_name: str, kind: str, _times: int) -> list[str]:
        return ["A 127.0.0.1"] if kind == "A" else []

    async def main() -> None:
        async with nameserver(zone) as names, serving(answering(answer)) as server:
            state = await _robots(server.url("/", host="only.here.example"), tmp_path / "home", [names.address])

            assert (state.answer, state.status) == (RobotsAnswer.ALLOW_ALL, 404)
            assert names.asked["only.here.example", "A"] == 1

    run(main())
