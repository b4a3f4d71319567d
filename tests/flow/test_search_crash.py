"""A writer of the search index that is killed, or overtaken, at the worst moments: nothing is lost or there twice."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.db.schema import make_fresh
from holdfast.search.directory import IndexDirectory
from holdfast.search.engine import IndexBroken
from holdfast.search.outbox import rebuild
from holdfast.search.queries import waiting_count
from holdfast.search.readers import ReaderCache
from tests import forked, patience
from tests.clock import FakeClock
from tests.interrupts import interrupt_and_go_on
from tests.search_bed import Bed, open_bed, pages


@pytest.fixture
def bed(tmp_path: Path, clock: FakeClock) -> Iterator[Bed]:
    """An archive on SQLite in a home of its own."""
    url = f"sqlite:///{tmp_path / 'holdfast.db'}"
    make_fresh(url)
    with open_bed(url, tmp_path, clock) as opened:
        yield opened


def _waiting(bed: Bed) -> int:
    with bed.database.read() as session:
        return waiting_count(session)


@pytest.mark.parametrize("place", ["search.committed", "search.in_force"])
def test_a_killed_drain_is_replayed_without_doubles(bed: Bed, place: str) -> None:
    bed.fill(pages(["parrot one"]))
    bed.add(pages(["parrot two", "parrot three"], host="other.test"))

    killed = forked.run(
        [sys.executable, "-m", "holdfast.cli.main", "search-index", "drain", "--home", str(bed.home)],
        env={**os.environ, "HOLDFAST_FAILPOINT": f"{place}:kill"}, capture_output=True, check=False,
    )  # fmt: skip
    assert killed.returncode == -signal.SIGKILL
    assert _waiting(bed) == 1
    assert bed.ask("parrot").total == (1 if place == "search.committed" else 3)

    assert bed.drain() == 1
    assert _waiting(bed) == 0
    found = bed.ask("parrot")
    assert (found.total, len({hit.row.id for hit in found.hits})) == (3, 3)
    reader = ReaderCache(bed.home, FakeClock()).view().reader
    assert reader is not None
    assert reader.entries == 6  # three documents and three addresses, each once


_IN_SMALL_PIECES = (
    "from holdfast.search import outbox; outbox._PAGES_AT_ONCE = outbox._COMMIT_REBUILD = 2;"
    "from holdfast.cli.main import main; main()"
)


@pytest.mark.parametrize("was_there", [True, False])
@pytest.mark.parametrize("place", ["search.in_force:kill", "search.in_force:kill:3", "search.built:kill"])
def test_a_build_that_is_killed_is_not_taken_for_an_index(bed: Bed, *, was_there: bool, place: str) -> None:
    bed.add(pages([f"parrot {n}" for n in range(6)]))
    if was_there:
        bed.drain()
        shutil.rmtree(IndexDirectory(bed.home).folder)

    killed = subprocess.run(
        [sys.executable, "-c", _IN_SMALL_PIECES, "search-index", "drain", "--home", str(bed.home)],
        env={**os.environ, "HOLDFAST_FAILPOINT": place}, capture_output=True, check=False,
        timeout=patience.deadline(60),
    )  # fmt: skip

    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not IndexDirectory(bed.home).exists()
    with pytest.raises(IndexBroken, match="broke off"):
        bed.ask("parrot")
    assert bed.drain() == (0 if was_there else 1)
    assert bed.ask("parrot").total == 6
    folders = [path for path in IndexDirectory(bed.home).folder.iterdir() if path.is_dir()]
    assert folders == [IndexDirectory(bed.home).current()]


def test_a_search_that_makes_the_index_first_can_be_interrupted_and_begins_again(bed: Bed) -> None:
    bed.add(pages(["parrot one", "parrot two"]))
    command = [sys.executable, "-m", "holdfast.cli.main", "search", "parrot", "--json", "--home", str(bed.home)]
    process = subprocess.Popen(
        command, env={**os.environ, "HOLDFAST_FAILPOINT": "search.in_force:stop"}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), status
        interrupt_and_go_on(process.pid)
        _, err = process.communicate(timeout=patience.deadline(60))
    finally:
        process.kill()

    assert (process.returncode, "it is built first" in err) == (130, True), err
    assert [path for path in IndexDirectory(bed.home).folder.iterdir() if path.is_dir()] == []
    again = forked.run(command, capture_output=True, text=True, check=True, timeout=patience.deadline(60))
    assert json.loads(again.stdout)["total"] == 2


def _overtaken(bed: Bed, command: list[str], place: str, meanwhile: Callable[[], object]) -> str:
    """Run a command, do something else where it stops first, and return what it printed when it went on."""
    process = subprocess.Popen(
        [sys.executable, "-m", "holdfast.cli.main", *command, "--json", "--home", str(bed.home)],
        env={**os.environ, "HOLDFAST_FAILPOINT": f"{place}:stop"}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), status
        meanwhile()
        # It stops each time it comes there.
        while os.WIFSTOPPED(status):
            process.send_signal(signal.SIGCONT)
            _, status = os.waitpid(process.pid, os.WUNTRACED)
        process.returncode = os.waitstatus_to_exitcode(status)
        out, err = process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            process.communicate()
    assert process.returncode == 0, err
    return out


def _throw_away(bed: Bed) -> None:
    shutil.rmtree(IndexDirectory(bed.home).folder)


def _make_anew(bed: Bed) -> None:
    _throw_away(bed)
    bed.drain()


def _rebuild(bed: Bed) -> None:
    rebuild(bed.database, bed.home, bed.clock)


@pytest.mark.parametrize("read", ["manifest", "columns"])
@pytest.mark.parametrize("meanwhile", [_rebuild, _make_anew])
def test_a_reader_that_opens_an_index_while_another_takes_its_place_finds_everything(
    bed: Bed, read: str, meanwhile: Callable[[Bed], None]
) -> None:
    bed.fill(pages(["parrot one", "parrot two", "parrot three"]))
    bed.fill(pages(["parrot four"], host="two.test"))

    out = _overtaken(bed, ["search", "parrot"], f"search.opening@{read}", lambda: meanwhile(bed))

    found = json.loads(out)
    assert (found["total"], len(found["results"])) == (4, 4)


def test_an_index_that_goes_while_a_drain_begins_does_not_become_one_of_what_waited(bed: Bed) -> None:
    bed.fill(pages(["parrot one", "parrot two"]))
    bed.add(pages(["parrot three"], host="two.test"))

    out = _overtaken(bed, ["search-index", "drain"], "search.writing", lambda: _throw_away(bed))

    assert json.loads(out) == {"changes": 1, "pages": 3, "finished": True}
    assert bed.ask("parrot").total == 3
