"""A row that names a place where no WARC file of ours may lie is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from holdfast.errors import NotFound
from holdfast.storage.roots import (
    ROOTS,
    StrayFile,
    find_file,
    key_of,
    local_path,
    may_lie_at,
    record_root,
    recorded_roots,
    stored_file,
)
from holdfast.storage.store import FileKey


def test_what_lies_below_the_data_directory_is_found_there(tmp_path: Path) -> None:
    assert local_path(tmp_path, FileKey("warcs/a/b.warc.gz")) == tmp_path.resolve() / "warcs/a/b.warc.gz"
    assert local_path(tmp_path, FileKey("warcs/a.WARC.GZ.open")).name == "a.WARC.GZ.open"
    assert local_path(tmp_path, FileKey("a.warc", str(tmp_path / "warcs"))) == tmp_path.resolve() / "warcs/a.warc"


@pytest.mark.parametrize(
    "stored",
    ["/etc/shadow", "/etc/x.warc.gz", "../other/x.warc", "warcs/../../x.warc.gz", "holdfast.db", "", "warcs/x.warc/..",
     "a\0.warc", "warc-roots.json", "warcs/x.warc.gz.txt"],
)  # fmt: skip
def test_any_other_place_is_refused(tmp_path: Path, stored: str) -> None:
    with pytest.raises(StrayFile, match="import --in-place"):
        local_path(tmp_path, FileKey(stored))


def test_a_file_is_placed_only_where_it_lies_and_may_lie(tmp_path: Path) -> None:
    home, stray = tmp_path / "home", tmp_path / "stray.warc.gz"
    (home / "warcs").mkdir(parents=True)
    for path in (home / "warcs/a.warc.gz", home / "notes.txt", stray):
        path.touch()

    found = find_file(home, FileKey("warcs/a.warc.gz"))
    assert found is not None
    assert found.local_path() == home.resolve() / "warcs/a.warc.gz"
    for stored in ("", "warcs/gone.warc.gz", "notes.txt", "../stray.warc.gz", str(stray), f"{'n' * 300}.warc"):
        assert find_file(home, FileKey(stored)) is None
    assert find_file(home, None) is None
    assert find_file(home, key_of(home, stray)) is None


def test_a_recorded_folder_may_hold_files_and_its_neighbours_may_not(tmp_path: Path) -> None:
    home, store = tmp_path / "home", tmp_path / "store"
    home.mkdir()
    (store / "deep").mkdir(parents=True)
    record_root(home, store)

    assert local_path(home, key_of(home, store / "deep/a.warc.gz")) == store.resolve() / "deep/a.warc.gz"
    for stray in (tmp_path / "a.warc.gz", tmp_path / "store2/a.warc.gz", store / "deep/passwords"):
        with pytest.raises(StrayFile):
            local_path(home, key_of(home, stray))


def test_a_link_out_of_a_recorded_folder_leads_nowhere(tmp_path: Path) -> None:
    home, store, secret = tmp_path / "home", tmp_path / "store", tmp_path / "secret.warc"
    home.mkdir()
    store.mkdir()
    secret.touch()
    (store / "x.warc").symlink_to(secret)
    record_root(home, store)

    with pytest.raises(StrayFile):
        local_path(home, FileKey("x.warc", str(store)))


def test_folders_are_kept_once_and_a_wider_one_stands_for_those_in_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    for name in ("b", "a", "a", "c/d", "c"):
        record_root(home, tmp_path / name)
    record_root(home, tmp_path / "c/e")
    record_root(home, home / "warcs")

    assert recorded_roots(home) == tuple(tmp_path.resolve() / name for name in ("a", "b", "c"))


@pytest.mark.parametrize("content", ["", "[]", '{"type": "other", "roots": ["/"]}', '{"roots": 3}', "[" * 5000])
def test_a_broken_list_lets_nothing_in(tmp_path: Path, content: str) -> None:
    (tmp_path / ROOTS).write_text(content)

    assert recorded_roots(tmp_path) == ()


def test_the_list_is_read_anew_when_it_changes(tmp_path: Path) -> None:
    record_root(tmp_path, Path("/srv/one"))
    assert recorded_roots(tmp_path) == (Path("/srv/one"),)

    (tmp_path / ROOTS).write_text(json.dumps({"type": "holdfast-warc-roots", "roots": ["/srv/two", "relative", 7]}))

    assert recorded_roots(tmp_path) == (Path("/srv/two"),)


def test_only_names_of_warc_files_count() -> None:
    assert may_lie_at(Path("/x/a.warc.zst"))
    assert not may_lie_at(Path("/x/archive"))


def test_a_link_out_of_the_data_directory_leads_nowhere(tmp_path: Path) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    (home / "warcs").mkdir(parents=True)
    elsewhere.mkdir()
    (elsewhere / "x.warc").touch()
    (home / "warcs" / "away").symlink_to(elsewhere)
    (home / "warcs" / "x.warc").symlink_to(elsewhere / "x.warc")

    for stored in ("warcs/away/x.warc", "warcs/x.warc"):
        with pytest.raises(StrayFile):
            local_path(home, FileKey(stored))
        assert find_file(home, FileKey(stored)) is None
    record_root(home, elsewhere)
    assert local_path(home, FileKey("warcs/away/x.warc")) == elsewhere.resolve() / "x.warc"


def test_the_folder_of_captures_may_itself_lead_to_a_larger_disk(tmp_path: Path) -> None:
    home, disk = tmp_path / "home", tmp_path / "disk"
    home.mkdir()
    disk.mkdir()
    (home / "warcs").symlink_to(disk)
    (disk / "a.warc.gz").touch()

    assert local_path(home, FileKey("warcs/a.warc.gz")) == disk.resolve() / "a.warc.gz"
    with pytest.raises(StrayFile):
        local_path(home, key_of(home, tmp_path / "elsewhere" / "a.warc.gz"))


@pytest.mark.parametrize("location", ["/etc", "disk", "../disk", "/recorded/../etc", "/recorded\0", "", "s3://bucket"])
def test_row_with_any_other_location_is_refused(tmp_path: Path, location: str) -> None:
    record_root(tmp_path, Path("/recorded"))

    with pytest.raises(StrayFile, match="import --in-place"):
        local_path(tmp_path, FileKey("x.warc.gz", location))
    assert find_file(tmp_path, FileKey("x.warc.gz", location)) is None
    assert local_path(tmp_path, FileKey("x.warc.gz", "/recorded/deep")) == Path("/recorded/deep/x.warc.gz")


def test_link_to_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.warc.gz").symlink_to("x.warc.gz")

    with pytest.raises(StrayFile):
        local_path(tmp_path, FileKey("x.warc.gz"))
    assert find_file(tmp_path, FileKey("x.warc.gz")) is None


def test_named_pipe_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.warc.gz")
    # Without a writer, an open that waits would never return.
    with pytest.raises(NotFound, match="is no file"):
        stored_file(tmp_path, FileKey("x.warc.gz")).open()
