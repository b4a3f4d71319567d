"""WACZ packages: the WARC files in them, and what no honest package has (faults W09)."""

from __future__ import annotations

import struct
import warnings
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest

from holdfast.index.intake.packages import BadPackage, open_package
from tests.unit.index.files import record

WARC = record() * 3


def _package(path: Path, *members: tuple[str | zipfile.ZipInfo, bytes], method: int = zipfile.ZIP_STORED) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # it warns of names that come twice
        with zipfile.ZipFile(path, "w", method) as package:
            for name, content in members:
                package.writestr(name, content)
    return path


def _files(path: Path) -> dict[str, bytes]:
    with open_package(path) as package:
        return {file.name: b"".join(package.pieces(file)) for file in package.files()}


def _refused(path: Path) -> dict[str, str]:
    with open_package(path) as package:
        package.files()
        return dict(package.refused)


def test_the_warc_files_of_a_package_are_read_and_nothing_else(tmp_path: Path) -> None:
    path = _package(
        tmp_path / "a.wacz", ("archive/one.warc", WARC), ("archive/two.warc.gz", b"x"), ("pages/pages.jsonl", b"{}"),
        ("archive/readme.txt", b"no"), ("indexes/index.cdx", b"no"), method=zipfile.ZIP_DEFLATED,
    )  # fmt: skip

    assert _files(path) == {"one.warc": WARC, "two.warc.gz": b"x"}


@pytest.mark.parametrize(
    "name",
    [
        "../../x.warc", "archive/../../x.warc", "/archive/x.warc", "archive/sub/x.warc", "archive\\..\\x.warc",
        "C:\\archive\\x.warc", "archive/x\n.warc", "archive/" + "y" * 400 + ".warc", "archive/.warc/",
    ],
)  # fmt: skip
def test_a_name_that_leads_elsewhere_is_no_member_of_ours(tmp_path: Path, name: str) -> None:
    path = _package(tmp_path / "a.wacz", (name, WARC), ("archive/good.warc", WARC))

    assert list(_files(path)) == ["good.warc"]


def test_links_encryption_and_second_names_are_refused_one_by_one(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("archive/link.warc")
    link.external_attr = 0o120777 << 16
    secret = zipfile.ZipInfo("archive/secret.warc")
    path = _package(
        tmp_path / "a.wacz", ("archive/good.warc", WARC), (link, b"/etc/passwd"), (secret, WARC),
        ("archive/good.warc", b"another"),
    )  # fmt: skip
    raw = path.read_bytes()
    at = raw.rindex(b"archive/secret.warc") - 46
    path.write_bytes(raw[: at + 8] + struct.pack("<H", 1) + raw[at + 10 :])

    assert _refused(path) == {
        "archive/link.warc": "a link",
        "archive/secret.warc": "encrypted",
        "archive/good.warc": "a second member of this name",
    }
    assert _files(path)["good.warc"] == WARC


def test_a_member_that_would_swell_is_refused(tmp_path: Path) -> None:
    path = _package(
        tmp_path / "a.wacz", ("archive/bomb.warc", bytes(20_000_000)), ("archive/good.warc", WARC),
        method=zipfile.ZIP_DEFLATED,
    )  # fmt: skip

    assert "swell" in _refused(path)["archive/bomb.warc"]


def test_members_that_overlap_are_refused(tmp_path: Path) -> None:
    path = _package(tmp_path / "a.wacz", ("archive/one.warc", WARC), ("archive/two.warc", WARC))
    raw = path.read_bytes()
    at = raw.rindex(b"archive/two.warc") - 46
    path.write_bytes(raw[: at + 42] + struct.pack("<I", 0) + raw[at + 46 :])

    with pytest.raises(BadPackage, match="overlap"):
        _files(path)


def test_a_member_that_is_not_what_the_list_says_is_damaged(tmp_path: Path) -> None:
    path = _package(tmp_path / "a.wacz", ("archive/one.warc", WARC))
    raw = path.read_bytes()
    path.write_bytes(raw.replace(b"WARC-Type: response", b"WARC-Type: xxxponse", 1))

    with pytest.raises(BadPackage, match=r"one\.warc.*damaged"):
        _files(path)


def test_a_list_of_a_million_members_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = _package(tmp_path / "a.wacz", ("archive/one.warc", WARC))
    raw = path.read_bytes()
    at = raw.rindex(b"PK\x05\x06")
    for count, size in ((60_000, 0xFFFFFFF0), (0xFFFF, 70 << 20)):
        path.write_bytes(raw[: at + 10] + struct.pack("<HI", count, size) + raw[at + 16 :])
        with pytest.raises(BadPackage, match="lists"):
            _files(path)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"PK\x05\x06" + bytes(18), b"PK\x05\x06" + b"\xff" * 18])
def test_what_is_no_package_is_said_to_be_none(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.wacz"
    path.write_bytes(content)

    with pytest.raises(BadPackage):
        _files(path)


def test_a_package_cut_anywhere_never_raises_anything_else(tmp_path: Path) -> None:
    path = _package(tmp_path / "a.wacz", ("archive/one.warc", WARC), method=zipfile.ZIP_DEFLATED)
    raw = path.read_bytes()
    for end in range(0, len(raw), 7):
        path.write_bytes(raw[:end])
        with pytest.raises(BadPackage):
            _files(path)
    for at in range(0, len(raw), 3):
        path.write_bytes(raw[:at] + bytes((raw[at] ^ 0xFF,)) + raw[at + 1 :])
        with suppress(BadPackage):
            assert set(_files(path).values()) <= {WARC}
