"""The ZIP that is never written: any reader takes it, any part of it can be read, whatever its size."""

from __future__ import annotations

import io
import os
import zipfile
import zlib
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import NotFound
from holdfast.exports.zipping import FileRange, MemberChanged, VirtualZip, ZipMember

_MOMENT = datetime(2026, 3, 4, 5, 6, 8, tzinfo=UTC)


def _member(name: str, *pieces: bytes) -> ZipMember:
    return ZipMember(name=name, crc32=zlib.crc32(b"".join(pieces)), segments=pieces)


def _whole(archive: VirtualZip) -> bytes:
    return b"".join(archive.read())


@given(st.lists(st.lists(st.binary(max_size=40), max_size=3), max_size=6))
def test_a_reader_finds_every_member_as_it_was_given(contents: list[list[bytes]]) -> None:
    archive = VirtualZip([_member(f"a/é{n}.bin", *pieces) for n, pieces in enumerate(contents)], _MOMENT)

    raw = _whole(archive)

    assert len(raw) == archive.size
    with zipfile.ZipFile(io.BytesIO(raw)) as found:
        assert found.testzip() is None
        assert [found.read(f"a/é{n}.bin") for n in range(len(contents))] == [b"".join(pieces) for pieces in contents]
        assert all(entry.compress_type == zipfile.ZIP_STORED for entry in found.infolist())
        assert all(entry.date_time == (2026, 3, 4, 5, 6, 8) for entry in found.infolist())


@given(st.integers(0, 400), st.integers(0, 400))
def test_any_range_is_that_part_of_the_whole(start: int, end: int) -> None:
    archive = VirtualZip([_member("one", b"0123456789" * 3, b"abc"), _member("two", b"x" * 50)], _MOMENT)

    assert b"".join(archive.read(start, end)) == _whole(archive)[start:end]


def test_members_lie_in_files(tmp_path: Path) -> None:
    path = tmp_path / "x.warc.gz"
    path.write_bytes(b"0123456789")
    segments = (FileRange(path, 0, 4), b"____", FileRange(path, 8, 2))
    archive = VirtualZip([ZipMember(name="m", crc32=zlib.crc32(b"0123____89"), segments=segments)], _MOMENT)

    with zipfile.ZipFile(io.BytesIO(_whole(archive))) as found:
        assert found.read("m") == b"0123____89"


def test_a_file_that_shrank_or_went_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.warc.gz"
    path.write_bytes(b"0123")
    archive = VirtualZip([ZipMember(name="m", crc32=0, segments=(FileRange(path, 0, 10),))], _MOMENT)

    with pytest.raises(MemberChanged):
        _whole(archive)
    path.unlink()
    with pytest.raises(NotFound):
        _whole(archive)


class _Window(io.RawIOBase):
    """A seekable file over a virtual archive, so that zipfile reads six gigabytes without anybody holding them."""

    def __init__(self, archive: VirtualZip) -> None:
        self._archive, self._at = archive, 0

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._archive.size}[whence] + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1) -> bytes:
        end = self._archive.size if size < 0 else self._at + size
        data = b"".join(self._archive.read(self._at, end))
        self._at += len(data)
        return data


def test_six_gigabytes_need_zip64_and_are_read_by_others(tmp_path: Path) -> None:
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(5 << 30)  # a hole: no disk is used
    members = [
        ZipMember(name="archive/large", crc32=1, segments=(FileRange(large, 0, 5 << 30),)),
        _member("behind", b"here"),
        ZipMember(name="exact", crc32=2, segments=(FileRange(large, 0, 0xFFFFFFFF),)),
        _member("last", b"there"),
    ]

    with zipfile.ZipFile(_Window(VirtualZip(members, _MOMENT))) as found:
        assert (found.read("behind"), found.read("last")) == (b"here", b"there")
        assert [entry.file_size for entry in found.infolist()] == [5 << 30, 4, 0xFFFFFFFF, 5]
        with found.open("archive/large") as opened:
            assert opened.read(10) == b"\0" * 10


def test_more_members_than_sixteen_bits_count() -> None:
    archive = VirtualZip([_member(f"m{n}", b"x") for n in range(66_000)], _MOMENT)

    with zipfile.ZipFile(io.BytesIO(_whole(archive))) as found:
        assert len(found.infolist()) == 66_000
        assert found.read("m65999") == b"x"


def test_two_members_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="one name"):
        VirtualZip([_member("m", b""), _member("m", b"")], _MOMENT)


@pytest.mark.parametrize(("year", "shown"), [(1970, 1980), (2200, 2107)])
def test_moments_that_zip_cannot_say_are_moved_to_the_nearest_year(year: int, shown: int) -> None:
    archive = VirtualZip([_member("m", b"")], datetime(year, 2, 3, tzinfo=UTC))

    with zipfile.ZipFile(io.BytesIO(_whole(archive))) as found:
        assert found.infolist()[0].date_time[:3] == (shown, 2, 3)
