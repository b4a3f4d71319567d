"""The WARC output: no file is lost because disk or database were away, none is trusted that may be torn."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from holdfast.config import WarcSettings
from holdfast.crawl.warc_output import OutputBroken, WarcOutput
from holdfast.errors import Unavailable
from holdfast.fetch.body import MemoryBody
from holdfast.types import Fetched
from holdfast.warc.outfile import SealedFile
from holdfast.warc.record import sha256_of
from holdfast.warc.writer import ExchangeDraft
from tests.clock import FakeClock


def exchange(body: bytes = b"<p>hello</p>") -> ExchangeDraft:
    """Return something to append."""
    fetched = Fetched(
        url="https://example.org/", status=200, started_at=datetime(2026, 9, 1, tzinfo=UTC), took_s=0.0,
        ip="192.0.2.1", request_head=b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n", body=MemoryBody([body]),
        response_head=b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n",
    )  # fmt: skip
    return ExchangeDraft(fetched=fetched, payload_digest=sha256_of((body,)))


class Registry:
    """What an output reports to the database, which may be away."""

    def __init__(self) -> None:
        self.registered: list[Path] = []
        self.sealed: list[SealedFile] = []
        self.away = False

    def register(self, path: Path) -> int:
        self._answer()
        self.registered.append(path)
        return len(self.registered)

    def seal(self, _file_id: int, sealed: SealedFile) -> None:
        self._answer()
        self.sealed.append(sealed)

    def _answer(self) -> None:
        if self.away:
            raise Unavailable("the database is away")


@pytest.fixture
def registry() -> Registry:
    """A database that answers, until it is told not to."""
    return Registry()


@pytest.fixture
def make(tmp_path: Path, clock: FakeClock, registry: Registry) -> Callable[..., WarcOutput]:
    """Make an output that reports to this registry; files are full after so many bytes."""

    (tmp_path / "warcs").mkdir()

    def output(folder: Path = tmp_path / "warcs", **limits: float) -> WarcOutput:
        settings = WarcSettings(bytes=int(limits.get("bytes", 10**9)))
        made = WarcOutput(folder, "code-1", info={}, clock=clock, settings=settings)
        made.register, made.sealed = registry.register, registry.seal
        return made

    return output


def test_a_file_is_registered_before_it_is_made_and_never_again(
    make: Callable[..., WarcOutput], registry: Registry, tmp_path: Path
) -> None:
    output = make()
    registry.away = True
    with pytest.raises(Unavailable):
        output.append(exchange())
    assert list((tmp_path / "warcs").iterdir()) == []
    registry.away = False

    output.append(exchange())
    output.append(exchange())
    output.close()

    assert len(registry.registered) == 1
    assert [sealed.path for sealed in registry.sealed] == registry.registered


def test_a_file_that_could_not_be_made_keeps_its_row_for_the_next_try(
    make: Callable[..., WarcOutput], registry: Registry, tmp_path: Path
) -> None:
    (tmp_path / "blocked").write_text("a file where the folder should be")
    output = make(tmp_path / "blocked")
    for _ in range(3):
        with pytest.raises(Unavailable):
            output.append(exchange())
    (tmp_path / "blocked").unlink()
    with pytest.raises(Unavailable):
        output.append(exchange())
    assert not (tmp_path / "blocked").exists(), "a folder that vanished is not made: its storage is away"
    (tmp_path / "blocked").mkdir()

    output.append(exchange())
    output.close()

    assert len(registry.registered) == 1
    assert registry.sealed[0].record_count == 3


def test_nothing_is_written_to_another_folder_that_stands_where_ours_was(
    make: Callable[..., WarcOutput], registry: Registry, tmp_path: Path
) -> None:
    folder = tmp_path / "mounted"
    folder.mkdir()
    output = make(folder)
    folder.rename(tmp_path / "away")
    folder.mkdir()

    with pytest.raises(OutputBroken):
        output.append(exchange())
    with pytest.raises(OutputBroken):
        output.sync()

    assert (registry.registered, list(folder.iterdir())) == ([], [])


def test_a_folder_that_came_later_is_held_to_as_well(
    make: Callable[..., WarcOutput], registry: Registry, tmp_path: Path
) -> None:
    folder = tmp_path / "later"
    output = make(folder)
    folder.mkdir()
    output.append(exchange())
    output.close()
    folder.rename(tmp_path / "away")
    folder.mkdir()

    with pytest.raises(OutputBroken):
        output.append(exchange())

    assert (len(registry.registered), list(folder.iterdir())) == (1, [])


def test_a_sealed_file_is_told_again_until_the_database_has_heard_of_it(
    make: Callable[..., WarcOutput], registry: Registry, clock: FakeClock
) -> None:
    output = make(bytes=4096)
    output.append(exchange(random.Random(1).randbytes(16_384)))
    registry.away = True
    output.rotate()
    assert registry.registered[0].exists()
    assert registry.sealed == []
    registry.away = False

    output.rotate()
    assert registry.sealed == [], "asked again at once"
    clock.advance(1.5)
    output.rotate()
    output.rotate()

    assert len(registry.sealed) == 1


def test_closing_says_so_if_the_database_did_not_hear_of_the_last_file(
    make: Callable[..., WarcOutput], registry: Registry
) -> None:
    output = make()
    output.append(exchange())
    registry.away = True

    with pytest.raises(Unavailable):
        output.close()


def test_after_a_failed_seal_nothing_is_synced_or_appended_any_more(
    make: Callable[..., WarcOutput], registry: Registry
) -> None:
    output = make()
    output.append(exchange())
    registry.registered[0].write_bytes(b"a stranger took the name")

    with pytest.raises(OutputBroken):
        output.close()
    with pytest.raises(OutputBroken):
        output.sync()
    with pytest.raises(OutputBroken):
        output.append(exchange())
