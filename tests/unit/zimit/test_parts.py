"""The smaller parts: permissions, the store's identity, the crawl command, names inside the container, no database."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.zimit.capture import crawl_command, has_html
from holdfast.zimit.docker import Docker, Times, inside_path, relax
from holdfast.zimit.errors import StoreMissing, ToolConfigRefused
from holdfast.zimit.flags import read_options
from holdfast.zimit.output_directory import SENTINEL, open_place, store_is_present

BASE = ("--seeds", "https://example.org/a", "--name", "job", "--output-dir", "out")


class _Engine(Docker):
    """Notes what it is asked to run."""

    def __init__(self) -> None:
        super().__init__(Times())
        self.asked: list[list[str]] = []

    def ask(self, *words: str, timeout_s: float | None = None) -> subprocess.CompletedProcess[str]:
        self.asked.append(list(words))
        return subprocess.CompletedProcess(words, 0)


def _denied(_path: Path, _mode: int) -> None:
    raise PermissionError(1, "not yours")


def test_permissions_only_gain_reading(tmp_path: Path) -> None:
    file = tmp_path / ".tmp1" / "deep" / "a.warc.gz"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"x")
    (tmp_path / "private").write_bytes(b"x")
    for path, mode in ((file, 0o600), (file.parent, 0o700), (file.parent.parent, 0o700), (tmp_path / "private", 0o600)):
        path.chmod(mode)

    assert relax(_Engine(), tmp_path, image="zimit", container=None)

    modes = [path.stat().st_mode & 0o777 for path in (file, file.parent, file.parent.parent, tmp_path / "private")]
    assert modes == [0o644, 0o755, 0o755, 0o600]


def test_files_of_the_container_s_user_are_changed_by_the_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".tmp1").mkdir(mode=0o700)
    engine = _Engine()

    with monkeypatch.context() as denied:
        denied.setattr(Path, "chmod", _denied)
        relax(engine, tmp_path, image="zimit", container="abc123")
        relax(engine, tmp_path, image="zimit", container=None)
    relax(engine, tmp_path, image="zimit", container=None)

    run = ["run", "--rm", "-v", f"{tmp_path}:/output", "--entrypoint", "chmod", "zimit", "-R", "a+rX", "/output"]
    assert engine.asked == [["exec", "abc123", "chmod", "-R", "a+rX", "/output"], run]


def test_a_place_is_known_by_more_than_its_name(tmp_path: Path) -> None:
    job = tmp_path / "job"
    place = open_place(job, None)
    place.check()
    job.rename(tmp_path / "away")
    with pytest.raises(StoreMissing):
        place.check()
    job.mkdir()
    with pytest.raises(StoreMissing, match="another directory"):
        place.check()
    assert list(job.iterdir()) == []


def test_no_directory_is_made_where_storage_should_be(tmp_path: Path) -> None:
    with pytest.raises(StoreMissing):
        open_place(tmp_path / "not-mounted" / "job", None)
    with pytest.raises(StoreMissing, match=SENTINEL):
        open_place(tmp_path / "code" / "job", tmp_path)
    assert not store_is_present(tmp_path)
    assert list(tmp_path.iterdir()) == []

    (tmp_path / SENTINEL).touch()
    open_place(tmp_path / "code" / "job", tmp_path)
    assert store_is_present(tmp_path)
    with pytest.raises(ToolConfigRefused, match="below"):
        open_place(tmp_path.parent / "elsewhere", tmp_path)


def test_our_own_crawl_is_asked_for_what_zimit_was_asked_for() -> None:
    flags = ("--scopeIncludeRx", "/a/", "--scopeExcludeRx", "/b/", "--pageLimit", "5", "--depth", "3", "--limit", "0")
    words = crawl_command(read_options((*BASE, *flags, "--adminEmail", "a@b.test", "--timeLimit=60")))

    def value(name: str) -> str:
        return words[words.index(name) + 1]

    assert words[1:6] == ["-P", "-m", "holdfast.cli.main", "crawl", "https://example.org/a"]
    assert (value("--scope"), value("--include"), value("--exclude"), value("--depth")) == ("page", "/a/", "/b/", "3")
    assert (value("--max-pages"), value("--max-time"), value("--contact")) == ("5", "60", "a@b.test")
    assert words.count("--max-pages") == 1
    plain = crawl_command(read_options((*BASE, "--scopeType", "host")))
    assert plain[plain.index("--scope") + 1] == "host"
    assert plain[plain.index("--depth") + 1] == "-1"


def test_a_warc_without_html_is_no_capture(tmp_path: Path) -> None:
    broken = tmp_path / "a.warc.gz"
    broken.write_bytes(b"\x1f\x8b\x08 no gzip")

    assert not has_html(broken)
    assert not has_html(tmp_path / "none.warc.gz")


def test_a_file_that_the_container_cannot_name_has_no_name(tmp_path: Path) -> None:
    assert inside_path(tmp_path / "warcs" / "a.warc.gz", tmp_path) == "/output/warcs/a.warc.gz"
    assert inside_path(tmp_path / "warcs" / "a,b.warc.gz", tmp_path) is None
    assert inside_path(tmp_path.parent / "a.warc.gz", tmp_path) is None


def test_the_command_loads_no_database() -> None:
    code = "import sys, holdfast.zimit.main; print([m for m in sys.modules if 'sqlalchemy' in m or '.db' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
