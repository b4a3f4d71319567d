"""A disk that is full, short of breath or gone: an append is whole or has not happened."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import NoSpace, Unavailable
from holdfast.warc.member import pack
from holdfast.warc.outfile import OutFile
from holdfast.warc.verify import verify_file
from holdfast.warc.writer import WarcWriter
from tests.clock import FakeClock
from tests.unit.warc.archives import INFO, counted_ids, exchange, write

ROOT = Path(__file__).parents[3]


class WeakFile(io.FileIO):
    """A file on a disk with so much room left; it writes at most `step` bytes at a time, as a nearly full one does."""

    room = 1 << 30
    step = 1 << 30
    code = errno.ENOSPC
    truncates = True
    syncs = True

    def write(self, data: Any, /) -> int:
        piece = memoryview(data)[: min(self.step, self.room)]
        if not len(piece):
            raise OSError(self.code, os.strerror(self.code))
        self.room -= len(piece)
        return super().write(piece)

    def fileno(self) -> int:
        if not self.syncs:
            raise OSError(errno.EIO, "gone")
        return super().fileno()

    def truncate(self, size: int | None = None, /) -> int:
        if not self.truncates:
            raise OSError(errno.EIO, "gone")
        return super().truncate(size)


@pytest.fixture
def weak(tmp_path: Path) -> Iterator[WeakFile]:
    with WeakFile(tmp_path / "weak.warc.gz.open", "w+") as file:
        yield file


@pytest.fixture
def writer(tmp_path: Path, weak: WeakFile) -> WarcWriter:
    """A writer on a weak file, with a good warcinfo in front."""
    sealed, ends = write(tmp_path, 0, name="donor")
    out = OutFile(weak, Path(weak.name))
    out.append(sealed.path.read_bytes()[: ends[0]])
    return WarcWriter(out, 7, "00000000-0000-4000-8000-000000000001", FakeClock(), ids=counted_ids())


def test_short_writes_are_continued(writer: WarcWriter, weak: WeakFile) -> None:
    weak.step = 7

    writer.append_exchange(exchange())

    assert verify_file(writer.path).records == 3
    assert verify_file(writer.path).ok


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
@pytest.mark.parametrize("body", [b"small", random.Random(1).randbytes(2_000_000)], ids=["small", "streamed"])
def test_a_full_disk_leaves_the_file_as_it_was_and_the_append_can_be_tried_again(
    writer: WarcWriter, weak: WeakFile, code: int, body: bytes
) -> None:
    writer.append_exchange(exchange())
    before = writer.path.read_bytes()
    weak.room, weak.code = len(body) // 2 + 100, code

    with pytest.raises(NoSpace):
        writer.append_exchange(exchange(body))
    assert writer.path.read_bytes() == before

    weak.room = 1 << 30
    appended = writer.append_exchange(exchange(body))
    assert appended.ref.offset == len(before)
    assert appended.ref.ordinal == 3
    sealed = writer.seal()
    assert verify_file(sealed.path).ok
    assert sealed.record_count == 5
    assert sealed.sha256 == hashlib.sha256(sealed.path.read_bytes()).hexdigest()


def test_another_failure_of_the_disk_is_not_called_a_lack_of_room(writer: WarcWriter, weak: WeakFile) -> None:
    weak.room, weak.code = 10, errno.EIO

    with pytest.raises(Unavailable) as caught:
        writer.append_exchange(exchange())

    assert not isinstance(caught.value, NoSpace)


def test_a_torn_record_that_stays_is_taken_back_before_the_next(writer: WarcWriter, weak: WeakFile) -> None:
    size = writer.size
    weak.room, weak.truncates = 100, False
    with pytest.raises(NoSpace):
        writer.append_exchange(exchange())
    assert writer.path.stat().st_size == size + 100
    weak.room = 1 << 30
    with pytest.raises(Unavailable):
        writer.append_exchange(exchange())

    weak.truncates = True
    writer.append_exchange(exchange())

    assert verify_file(writer.path).ok


def test_after_a_sync_that_failed_nothing_more_is_taken(writer: WarcWriter, weak: WeakFile) -> None:
    writer.append_exchange(exchange())
    weak.syncs = False

    with pytest.raises(Unavailable):
        writer.sync()
    with pytest.raises(Unavailable):
        writer.append_exchange(exchange())
    with pytest.raises(Unavailable):
        writer.seal()

    assert verify_file(writer.path).ok


def test_a_file_size_limit_of_the_system_is_survived(tmp_path: Path) -> None:
    """The kernel refuses for real (EFBIG); then the limit is lifted and the writer goes on."""
    program = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from holdfast.errors import NoSpace\n"
        "from tests.unit.warc.archives import INFO, exchange\n"
        "from tests.clock import FakeClock\n"
        "from holdfast.warc.writer import WarcWriter\n"
        "writer = WarcWriter.create(Path(sys.argv[1]), 'limited', 7, INFO, FakeClock())\n"
        "soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (8000, hard))\n"
        "written = 0\n"
        "try:\n"
        "    while True:\n"
        "        writer.append_exchange(exchange()); written += 1\n"
        "except NoSpace:\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))\n"
        "writer.append_exchange(exchange())\n"
        "print(written, writer.seal().record_count)\n"
    )

    ran = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert ran.returncode == 0, ran.stderr
    written, records = map(int, ran.stdout.split())
    assert records == 1 + 2 * (written + 1)
    report = verify_file(tmp_path / "limited.warc.gz")
    assert (report.ok, report.records) == (True, records)


def test_a_full_disk_at_the_very_start_leaves_no_file(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_bytes(b"")

    with pytest.raises(Unavailable):
        WarcWriter.create(blocked / "below", "archive", 7, INFO, FakeClock())

    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_packed_members_state_their_own_length() -> None:
    member = pack(b"WARC/1.1\r\n\r\n")

    assert int(member[10:20], 16) == len(member)
