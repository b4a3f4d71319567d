"""The manifest: whole or not at all, by any number of hands."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import Conflict
from holdfast.warc.manifest import (
    ManifestDamaged,
    add_to_manifest,
    is_listed,
    read_manifest,
    remove_from_manifest,
)
from holdfast.warc.outfile import SealedFile


def sealed(folder: Path, file_id: int) -> SealedFile:
    return SealedFile(path=folder / f"{file_id}.warc.gz", size=10, sha256="ab" * 32, crc32=5, record_count=3)


def line(folder: Path, file_id: int) -> dict[str, Any]:
    """Return what the manifest says of such a file."""
    one = asdict(sealed(folder, file_id))
    return {"file_id": file_id, "name": one.pop("path").name, **one}


def test_entries_come_back_by_id_and_twice_is_once(tmp_path: Path) -> None:
    for file_id in (3, 1, 2, 1):
        add_to_manifest(file_id, sealed(tmp_path, file_id))
    written = (tmp_path / "manifest.json").stat().st_mtime_ns
    add_to_manifest(2, sealed(tmp_path, 2))

    assert read_manifest(tmp_path) == {number: sealed(tmp_path, number) for number in (1, 2, 3)}
    assert [*read_manifest(tmp_path)] == [1, 2, 3]
    assert (tmp_path / "manifest.json").stat().st_mtime_ns == written


def test_a_repaired_file_replaces_its_entry(tmp_path: Path) -> None:
    add_to_manifest(1, sealed(tmp_path, 1))
    add_to_manifest(1, replace(sealed(tmp_path, 1), size=9))

    assert [known.size for known in read_manifest(tmp_path).values()] == [9]


def test_a_name_belongs_to_one_file(tmp_path: Path) -> None:
    add_to_manifest(1, sealed(tmp_path, 1))

    with pytest.raises(Conflict):
        add_to_manifest(2, sealed(tmp_path, 1))


def test_a_file_can_be_struck_off_even_if_it_was_never_there(tmp_path: Path) -> None:
    remove_from_manifest(tmp_path, 1)
    add_to_manifest(1, sealed(tmp_path, 1))
    remove_from_manifest(tmp_path, 1)
    remove_from_manifest(tmp_path, 1)

    assert read_manifest(tmp_path) == {}


def test_a_damaged_manifest_and_one_of_somebody_else_are_neither_read_nor_overwritten(tmp_path: Path) -> None:
    add_to_manifest(1, sealed(tmp_path, 1))
    path = tmp_path / "manifest.json"
    good = path.read_text()
    up = json.loads(good)
    up["files"][0]["name"] = "../../etc/passwd"

    ours, others = (good[:-30], json.dumps(up)), ('{"name": "a web application"}', "[]")
    for text, is_ours in [*((text, True) for text in ours), *((text, False) for text in others)]:
        path.write_text(text)
        with pytest.raises(ManifestDamaged) as caught:
            add_to_manifest(2, sealed(tmp_path, 2))
        assert caught.value.is_ours is is_ours
        assert path.read_text() == text


def test_a_sealed_file_costs_a_line_and_not_the_whole_list(tmp_path: Path) -> None:
    for file_id in range(1000):
        add_to_manifest(file_id, sealed(tmp_path, file_id))
    base = (tmp_path / "manifest.json").stat()
    before = (tmp_path / "manifest.journal").stat().st_size

    add_to_manifest(1000, sealed(tmp_path, 1000))

    assert (tmp_path / "manifest.json").stat() == base
    assert (tmp_path / "manifest.journal").stat().st_size - before < 300
    assert len(read_manifest(tmp_path)) == 1001


def test_lines_are_united_with_the_list_before_they_outgrow_it(tmp_path: Path) -> None:
    lines = []
    for file_id in range(600):
        add_to_manifest(file_id, sealed(tmp_path, file_id))
        journal = tmp_path / "manifest.journal"
        lines.append(len(journal.read_bytes().splitlines()) if journal.exists() else 0)

    assert max(lines) <= 300
    assert lines.count(0) < 12


@pytest.mark.parametrize("left", ["half a line", "lines that are in the list already"])
def test_what_a_killed_process_leaves_behind_does_no_harm(tmp_path: Path, left: str) -> None:
    for file_id in range(5):
        add_to_manifest(file_id, sealed(tmp_path, file_id))
    remove_from_manifest(tmp_path, 3)
    journal = tmp_path / "manifest.journal"
    lines = journal.read_bytes()
    if left == "half a line":
        journal.write_bytes(lines + b'{"add": {"file_id": 9, "na')
    else:
        listing = json.loads((tmp_path / "manifest.json").read_text())
        listing["files"] = [line(tmp_path, file_id) for file_id in read_manifest(tmp_path)]
        (tmp_path / "manifest.json").write_text(json.dumps(listing))

    assert [*read_manifest(tmp_path)] == [0, 1, 2, 4]
    add_to_manifest(7, sealed(tmp_path, 7))
    assert [*_read_elsewhere(tmp_path)] == [0, 1, 2, 4, 7]


def test_a_damaged_line_in_the_middle_is_told(tmp_path: Path) -> None:
    for file_id in range(3):
        add_to_manifest(file_id, sealed(tmp_path, file_id))
    journal = tmp_path / "manifest.journal"
    journal.write_bytes(b"nonsense\n" + journal.read_bytes().partition(b"\n")[2])

    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert "manifest.journal is no manifest" in pool.apply(_problem, (tmp_path,))


def _problem(folder: Path) -> str:
    try:
        read_manifest(folder)
    except ManifestDamaged as exc:
        return str(exc)
    return ""


def _read_elsewhere(folder: Path) -> dict[int, SealedFile]:
    """Return what a process that has never seen this folder reads there."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(read_manifest, (folder,))


def test_many_processes_write_one_manifest(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        pool.starmap(add_to_manifest, [(file_id, sealed(tmp_path, file_id)) for file_id in range(200)])

    assert [*read_manifest(tmp_path)] == list(range(200))


_DYING = """
import sys
from pathlib import Path
from holdfast.warc.manifest import add_to_manifest, remove_from_manifest
from holdfast.warc.outfile import SealedFile

folder = Path(sys.argv[1])
while True:
    for file_id in (2, 3):
        sealed = SealedFile(path=folder / f"{file_id}", size=1, sha256="", crc32=0, record_count=1)
        add_to_manifest(file_id, sealed)
        remove_from_manifest(folder, file_id)
"""


def test_the_last_change_holds_when_uniting_is_cut_short(tmp_path: Path) -> None:
    add_to_manifest(1, sealed(tmp_path, 1))
    env = {**os.environ, "HOLDFAST_FAILPOINT": "manifest.united:kill"}
    ended = subprocess.run([sys.executable, "-c", _DYING, tmp_path], env=env, check=False)
    written = {item["file_id"] for item in json.loads((tmp_path / "manifest.json").read_text())["files"]}

    assert ended.returncode == -signal.SIGKILL
    assert (tmp_path / "manifest.journal").exists()
    assert read_manifest(tmp_path).keys() == written


def test_a_first_file_whose_list_was_never_written_is_listed_after_all(tmp_path: Path) -> None:
    add_to_manifest(1, sealed(tmp_path, 1))
    (tmp_path / "manifest.json").unlink()
    (tmp_path / "manifest.journal").write_text(json.dumps({"add": line(tmp_path, 1)}) + "\n")

    assert is_listed(["manifest.journal"])
    assert read_manifest(tmp_path) == {1: sealed(tmp_path, 1)}
    add_to_manifest(1, sealed(tmp_path, 1))

    assert (tmp_path / "manifest.json").is_file()
    assert read_manifest(tmp_path) == {1: sealed(tmp_path, 1)}
