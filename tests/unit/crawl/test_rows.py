"""A process's line to the outside: stop requests, the others' totals, landing places that none forgets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.crawl.progress import RowControl
from holdfast.processes.owners import OwnerProcess
from holdfast.processes.runfile import RunFile
from holdfast.wiring import Runtime
from tests.execution import begun_execution


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[Runtime]:
    """A data directory in which an execution has begun."""
    with begun_execution(tmp_path / "home") as begin:
        yield begin.runtime


def _control(runtime: Runtime) -> tuple[RowControl, OwnerProcess]:
    owner = OwnerProcess(runtime.raw_db, runtime.clock, run=RunFile(runtime.run_folder), kind="process", execution_id=1)
    return RowControl(runtime, owner, 1), owner


def test_landing_places_of_all_processes_come_together_and_are_written_with_the_next_word(runtime: Runtime) -> None:
    (one, owner), (other, other_owner) = _control(runtime), _control(runtime)
    one.note_landing("https://a.example/")
    other.note_landing("https://b.example/")
    other.note_landing("https://a.example/")
    assert one.read_news().landing == ()

    one.write_landings()
    other.write_landings()
    one.write_landings()

    assert one.read_news().landing == ("https://a.example/", "https://b.example/")
    owner.end()
    other_owner.end()


def test_totals_are_those_of_the_others(runtime: Runtime) -> None:
    control, owner = _control(runtime)
    for owner_id, pages in ((owner.id, 5), (owner.id + 1, 7), (owner.id + 2, 8)):
        counts = {"pages": pages, "bytes": 10 * pages}
        runtime.frontier.settle(1, owner_id, [], counts=lambda *_, counts=counts: counts)

    word = control.read_news()

    assert (word.other_pages, word.other_bytes) == (15, 150)
    owner.end()


def test_a_stop_request_is_heard_and_a_process_that_listens_is_alive(runtime: Runtime) -> None:
    control, owner = _control(runtime)
    with runtime.raw_db.write() as tx:
        tx.execute("UPDATE owners SET heartbeat_at = 0 WHERE id = ?", (owner.id,))
        tx.execute("UPDATE executions SET stop_requested = 'drain', config = ?", (json.dumps({}),))

    assert control.read_news().stop == "drain"
    with runtime.raw_db.read() as tx:
        assert tx.execute("SELECT heartbeat_at > 0 FROM owners WHERE id = ?", (owner.id,)) == [(1,)]
    owner.end()
