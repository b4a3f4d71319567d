"""Files of dead owners are repaired and sealed; those of the living are not touched."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.warc.repair import FileInUse, adopt
from holdfast.warc.verify import verify_file
from holdfast.warc.writer import WarcWriter
from tests.clock import FakeClock
from tests.unit.warc.archives import INFO, exchange, write

ROOT = Path(__file__).parents[3]


def abandoned(folder: Path, torn: bytes = b"") -> tuple[Path, list[int]]:
    """Leave a file behind as a dead owner would; return its open name and where its records end."""
    sealed, ends = write(folder, 3)
    path = sealed.path.rename(folder / "archive.warc.gz.open")
    path.write_bytes(path.read_bytes() + torn)
    return path, ends


def test_the_file_of_a_living_owner_is_left_alone(tmp_path: Path) -> None:
    writer = WarcWriter.create(tmp_path, "archive", 7, INFO, FakeClock())
    writer.append_exchange(exchange())
    before = writer.path.read_bytes()

    for name in (writer.path, writer.sealed_path):
        with pytest.raises(FileInUse):
            adopt(name)

    assert writer.path.read_bytes() == before
    assert writer.seal().record_count == 3


def test_the_file_of_a_dead_owner_is_sealed_by_either_of_its_names(tmp_path: Path) -> None:
    for name in ("archive.warc.gz", "archive.warc.gz.open"):
        _, ends = abandoned(tmp_path)

        adoption = adopt(tmp_path / name)

        assert adoption is not None
        assert adoption.sealed.path == tmp_path / "archive.warc.gz"
        assert adoption.sealed.record_count == 7
        assert adoption.sealed.sha256 == hashlib.sha256(adoption.sealed.path.read_bytes()).hexdigest()
        assert adoption.response_offsets == (ends[0], ends[2], ends[4])
        assert adoption.torn_bytes == 0
        assert [path.name for path in tmp_path.iterdir()] == ["archive.warc.gz"]
        adoption.sealed.path.unlink()


def test_a_torn_tail_is_cut_and_kept_beside_the_file(tmp_path: Path) -> None:
    torn = b"\x1f\x8b\x08\x10 half a rec"
    _, ends = abandoned(tmp_path, torn)

    adoption = adopt(tmp_path / "archive.warc.gz")

    assert adoption is not None
    assert adoption.torn_bytes == len(torn)
    assert adoption.sealed.size == ends[-1]
    assert (tmp_path / "archive.warc.gz.tail.bad").read_bytes() == torn
    assert verify_file(adoption.sealed.path).ok


def test_damage_in_the_middle_keeps_every_ordinal(tmp_path: Path) -> None:
    path, ends = abandoned(tmp_path)
    damaged = bytearray(path.read_bytes())
    damaged[ends[1] + 60] ^= 1
    path.write_bytes(damaged)

    adoption = adopt(path)

    assert adoption is not None
    assert adoption.sealed.record_count == 7
    assert adoption.response_offsets == (ends[0], ends[2], ends[4])
    assert (tmp_path / "archive.warc.gz.bad").read_bytes() == damaged
    assert not path.exists()
    assert verify_file(adoption.sealed.path).ok


def test_a_file_without_a_whole_record_is_put_aside(tmp_path: Path) -> None:
    path = tmp_path / "archive.warc.gz.open"
    path.write_bytes(b"\x1f\x8b\x08")

    assert adopt(path) is None
    assert [file.name for file in tmp_path.iterdir()] == ["archive.warc.gz.bad"]


def test_no_file_at_all_is_nothing_to_adopt(tmp_path: Path) -> None:
    assert adopt(tmp_path / "archive.warc.gz") is None


def test_a_file_that_was_sealed_and_never_noted_is_taken_stock_of(tmp_path: Path) -> None:
    sealed, ends = write(tmp_path, 2)

    adoption = adopt(sealed.path)

    assert adoption is not None
    assert adoption.sealed == sealed
    assert adoption.response_offsets == (ends[0], ends[2])
    assert not adoption.report.changed


def test_an_adoption_that_was_killed_between_its_renames_is_completed(tmp_path: Path) -> None:
    sealed, _ = write(tmp_path, 2)
    (tmp_path / "archive.warc.gz.open").write_bytes(b"the damaged original")

    adoption = adopt(sealed.path)

    assert adoption is not None
    assert adoption.sealed == sealed
    assert (tmp_path / "archive.warc.gz.bad").read_bytes() == b"the damaged original"
    assert not (tmp_path / "archive.warc.gz.open").exists()


def test_a_process_killed_in_the_middle_of_writing_leaves_a_file_that_can_be_adopted(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from tests.unit.warc.archives import INFO, exchange\n"
        "from tests.clock import FakeClock\n"
        "from holdfast.warc.writer import WarcWriter\n"
        "writer = WarcWriter.create(Path(sys.argv[1]), 'archive', 7, INFO, FakeClock())\n"
        "while True:\n"
        "    writer.append_exchange(exchange()); print('.', flush=True)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE)
    assert child.stdout is not None
    for _ in range(20):
        child.stdout.readline()
    with pytest.raises(FileInUse):
        adopt(tmp_path / "archive.warc.gz")
    os.kill(child.pid, signal.SIGKILL)
    child.stdout.close()
    child.wait()

    adoption = adopt(tmp_path / "archive.warc.gz")

    assert adoption is not None
    assert adoption.sealed.record_count >= 41
    assert verify_file(adoption.sealed.path).ok
