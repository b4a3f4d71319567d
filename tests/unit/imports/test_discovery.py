"""Which files an import means: the output of archive-tool with its temporary folders, each file once (facts, 1.3)."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from holdfast.imports.packages import discover
from holdfast.imports.placing import (
    Keeping,
    NotAnArchive,
    PlacementTarget,
    clean_name,
    digest_of,
    free_name,
    inspect_file,
    place,
)
from holdfast.zimit.output_directory import STATE_NAME
from tests.unit.index.files import record, write


def _output(folder: Path) -> Path:
    """Make what a tool leaves: stable files, temporary ones, one of them linked to its stable name."""
    archive = folder / "out" / ".tmpone" / "collections" / "crawl-20260901" / "archive"
    elsewhere = folder / "elsewhere" / ".tmptwo" / "collections" / "crawl-20260902" / "archive"
    for one in (archive, elsewhere, folder / "out" / "warcs"):
        one.mkdir(parents=True)
    write(archive / "rec-1.warc.gz", record())
    write(archive / "rec-2.warc.gz", record(url="http://example.org/2"))
    write(elsewhere / "rec-3.warc.gz", record(url="http://example.org/3"))
    os.link(archive / "rec-1.warc.gz", folder / "out" / "warcs" / "warc-000001.warc.gz")
    (archive / "rec-0.warc.gz").touch()
    return folder / "out"


def test_stable_and_temporary_files_are_united_and_each_counts_once(tmp_path: Path) -> None:
    folder = _output(tmp_path)
    (folder / STATE_NAME).write_text(json.dumps({"temp_dirs_host_paths": [str(tmp_path / "elsewhere" / ".tmptwo"), 7]}))

    found = discover([folder], follow_state=True)

    assert [path.name for path in found.files] == ["warc-000001.warc.gz", "rec-3.warc.gz", "rec-2.warc.gz"]
    assert sorted((path.name, why) for path, why in found.passed_over) == [
        ("rec-0.warc.gz", "empty"), ("rec-1.warc.gz", "the same file under another name"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "state", ["", "{", "[]", '{"temp_dirs_host_paths": 3}', '{"temp_dirs_host_paths": ["/\\u0000"]}']
)
def test_a_state_that_makes_no_sense_is_no_state(tmp_path: Path, state: str) -> None:
    folder = _output(tmp_path)
    (folder / STATE_NAME).write_text(state)

    assert len(discover([folder]).files) == 2


def test_links_are_not_followed_out_of_a_folder(tmp_path: Path) -> None:
    folder = _output(tmp_path)
    (folder / "loop").symlink_to(folder)
    (folder / "away").symlink_to(tmp_path / "elsewhere")

    assert len(discover([folder]).files) == 2


def test_what_was_named_and_is_not_there_is_missing(tmp_path: Path) -> None:
    assert discover([tmp_path / "none"]).missing == [tmp_path / "none"]


@pytest.mark.parametrize(
    ("name", "clean"),
    [
        ("a b/ü.warc.gz", "a_b_.warc.gz"), ("..\\..\\x.warc", "_.._x.warc"), (".hidden.warc", "hidden.warc"),
        ("noname", "noname.warc"), ("x" * 300 + ".warc", "x" * 145 + ".warc"), ("", "archive.warc"),
    ],
)  # fmt: skip
def test_a_stored_name_is_safe_anywhere(tmp_path: Path, name: str, clean: str) -> None:
    path = write(tmp_path / "file", record(), packed=False)

    assert clean_name(name, path) == clean


def test_a_name_that_is_taken_gets_a_number(tmp_path: Path) -> None:
    (tmp_path / "a.warc.gz").touch()
    (tmp_path / "a-2.warc.gz.open").touch()

    assert free_name(tmp_path, "a.warc.gz").name == "a-3.warc.gz"


@pytest.mark.parametrize(
    ("keeping", "how"), [(Keeping.COPY, "copied"), (Keeping.LINK, "linked"), (Keeping.MOVE, "unpacked")]
)
def test_a_file_is_placed_with_the_digests_it_had(tmp_path: Path, keeping: Keeping, how: str) -> None:
    path, folder = write(tmp_path / "a.warc.gz", record()), tmp_path / "home"
    folder.mkdir()
    digests = digest_of(path, lambda count: None)

    inspected, target = inspect_file(path, lambda count: None), PlacementTarget(folder, "a.warc.gz", keeping)
    placed, used = place(path, inspected, digests, target, lambda count: None)

    assert used == how
    assert path.exists() is (keeping is not Keeping.MOVE)
    assert (path.exists() and placed.path.samefile(path)) is (keeping is Keeping.LINK)
    assert digest_of(placed.path, lambda count: None) == digests
    assert (placed.size, placed.sha256, placed.crc32) == digests
    path.unlink(missing_ok=True)
    assert placed.path.is_file()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "is empty"), (b"%PDF-1.4", "is not a WARC, ARC or WACZ file: it begins with “%PDF-1.4”"),
        (b"WARC/1.1\r\n", "holds no record that can be read: at 0: record_header"),
        (b"\x1f\x8b\x08\x00", "holds no record that can be read: at 0: truncated"),
        (b"\x28\xb5\x2f\xfdxxxx", "holds no record that can be read: at 0: zstd_data"),
    ],
)  # fmt: skip
def test_what_is_no_archive_is_said_in_words(tmp_path: Path, content: bytes, told: str) -> None:
    path = tmp_path / "x.bin"
    path.write_bytes(content)

    with pytest.raises(NotAnArchive, match=r"x\.bin") as caught:
        inspect_file(path, lambda count: None)

    assert told in str(caught.value)


def test_a_folder_that_cannot_be_looked_into_is_told_and_not_taken_for_empty(tmp_path: Path) -> None:
    write(tmp_path / "there.warc.gz", record())
    place = os.open(tmp_path, os.O_RDONLY)
    for _ in range(20):  # so deep that the kernel refuses its whole name
        os.mkdir("x" * 250, dir_fd=place)
        below = os.open("x" * 250, os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = below
    os.close(place)
    found = discover([tmp_path])
    assert [path.name for path in found.files] == ["there.warc.gz"]
    assert [why for _, why in found.unreadable] == ["File name too long"]


def test_a_state_file_leads_out_of_its_folder_only_if_that_was_asked_for(tmp_path: Path) -> None:
    folder, elsewhere = _output(tmp_path), tmp_path / "elsewhere" / ".tmptwo"
    (folder / STATE_NAME).write_text(json.dumps({"temp_dirs_host_paths": [str(elsewhere)]}))

    found = discover([folder])

    assert [path.name for path in found.files] == ["warc-000001.warc.gz", "rec-2.warc.gz"]
    assert (elsewhere, f"{STATE_NAME} names it, outside of {folder}") in found.passed_over


def test_what_looks_like_an_archive_and_is_not_read_is_listed(tmp_path: Path) -> None:
    names = ["a.warc.gz.open", "b.warc.wet.gz", "c.wat", "d.HAR", "e.txt", "f.open"]
    for name in (*names, "g.warc"):
        (tmp_path / name).write_bytes(b"x")

    found = discover([tmp_path])

    assert [path.name for path in found.files] == ["g.warc"]
    assert [path.name for path, _ in found.passed_over] == names[:4]


@pytest.mark.parametrize("keeping", list(Keeping))
def test_of_a_link_the_file_is_kept(tmp_path: Path, keeping: Keeping) -> None:
    folder, store = tmp_path / "home", tmp_path / "annex" / "objects"
    folder.mkdir()
    store.mkdir(parents=True)
    write(store / "SHA256E-s1--abc", record())
    link = tmp_path / "annex" / "a.warc.gz"
    link.symlink_to(Path("objects") / "SHA256E-s1--abc")
    digests = digest_of(link, lambda count: None)

    target = PlacementTarget(folder, link.name, keeping)
    placed, _ = place(link, inspect_file(link, lambda count: None), digests, target, lambda count: None)

    assert not placed.path.is_symlink()
    (store / "SHA256E-s1--abc").unlink(missing_ok=True)
    assert digest_of(placed.path, lambda count: None) == digests
    assert [path.name for path in folder.iterdir()] == ["a.warc.gz"]


def test_a_linked_folder_outside_is_told_and_one_inside_is_met_once(tmp_path: Path) -> None:
    named, outside = tmp_path / "named", tmp_path / "outside"
    (named / "a").mkdir(parents=True)
    outside.mkdir()
    (named / "a/one.warc.gz").write_bytes(b"1")
    (outside / "two.warc.gz").write_bytes(b"2")
    (named / "again").symlink_to(named / "a", target_is_directory=True)
    (named / "round").symlink_to(named, target_is_directory=True)
    (named / "away").symlink_to(outside, target_is_directory=True)

    found = discover([named])

    assert found.files == [named / "a/one.warc.gz"]
    assert [path for path, _ in found.passed_over] == [named / "away"]
    assert str(outside) in found.passed_over[0][1]
    assert discover([named / "away"]).files == [named / "away/two.warc.gz"], "a link that is named is meant"
