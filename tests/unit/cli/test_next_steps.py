"""What commands say where a step is missing, a name is wrong or a file was written: what to do next, in one line."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from tests.archive import Shot, build_archive
from tests.typed import Typist
from tests.unit.index.files import record, response, write

_PAGE = "<title>Tides</title><main><p>The heron waits in the reeds, as it does on every day.</p></main>"
_SHOTS = [
    Shot(url="https://example.org/tides", body=_PAGE),
    Shot(url="https://example.org/tides?month=4", body=_PAGE),
    Shot(url="https://example.org/tides/high", body=_PAGE),
]
_WAITS = "holdfast: sealed WARC files wait to be indexed; run: holdfast index\n"


@pytest.fixture
def typed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Typist:
    return Typist(tmp_path / "home", capsys)


def _archive(typed: Typist, *, index: bool = True) -> None:
    with closing(build_archive(typed.home, _SHOTS, index=index).database):
        pass


def test_a_search_that_finds_nothing_says_that_files_wait_to_be_indexed(typed: Typist) -> None:
    _archive(typed, index=False)
    waiting, told = typed("search heron"), typed("search heron --json")
    typed("index")
    found, absent = typed("search heron"), typed("search osprey")

    assert (waiting.code, waiting.err) == (0, _WAITS)
    assert (told.object["total"], told.err) == (0, _WAITS)
    assert ("The heron" in found.out, found.err, absent.err) == (True, "", "")


def test_a_package_of_a_crawl_that_is_not_indexed_names_the_command_that_does_it(typed: Typist, tmp_path: Path) -> None:
    _archive(typed, index=False)
    refused = typed("export wacz 1 -o", str(tmp_path / "one.wacz"))
    typed("index")
    done = typed("export wacz 1 -o", str(tmp_path / "one.wacz"))

    assert (refused.code, done.code) == (1, 0)
    assert "index the sealed files with: holdfast index, see" in refused.err


def test_a_worker_without_a_contact_names_what_it_takes(typed: Typist, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_CONTACT", raising=False)
    refused = typed("start-worker --once")
    monkeypatch.setenv("HOLDFAST_CONTACT", "nobody")
    wrong = typed("start-worker --once")

    assert (refused.code, wrong.code) == (1, 1)
    assert "set HOLDFAST_CONTACT to an e-mail or web address" in refused.err
    assert "'nobody' cannot be the contact: it is not an e-mail or web address; set HOLDFAST_CONTACT" in wrong.err
    assert "--contact" not in refused.err + wrong.err


@pytest.mark.parametrize(
    ("line", "rows"), [("export snapshots --format csv", 3), ("export snapshots --limit 1", 1), ("export changes", 0)]
)
def test_an_export_into_a_file_says_what_it_wrote(typed: Typist, tmp_path: Path, line: str, rows: int) -> None:
    _archive(typed)
    path = tmp_path / "rows"
    done = typed(f"{line} -o", str(path))
    shown = typed(line)

    words = "1 row" if rows == 1 else f"{rows} rows"
    assert (done.code, done.out, done.err) == (0, "", f"{path}: {words}, {path.stat().st_size:,} bytes\n")
    assert (shown.out.encode(), shown.err) == (path.read_bytes(), ""), "nothing is told beside the rows themselves"


def test_an_export_of_sources_into_a_file_says_what_it_wrote(typed: Typist, tmp_path: Path) -> None:
    typed("source create ex --seed https://example.org/")
    path = tmp_path / "sources.yaml"
    done = typed("source export -o", str(path))

    assert (done.code, done.out) == (0, "")
    assert done.err == f"{path}: 1 source, {path.stat().st_size:,} bytes\n"
    assert typed("source export --json -o", str(path)).err == ""


def test_hiding_an_address_that_was_never_captured_says_so_and_offers_others(typed: Typist) -> None:
    _archive(typed)
    near = typed("snapshot hide http://www.example.org/tides?month=5 --reason asked")
    alone = typed("snapshot hide https://example.org/ebb --reason asked")
    there = typed("snapshot hide https://example.org/tides/high --reason asked")
    told = typed("snapshot hide https://example.org/flood --reason asked --json")

    assert (near.code, alone.code, there.code) == (0, 0, 0)
    assert near.out.splitlines() == [
        "http://www.example.org/tides?month=5: hidden, 0 captures",
        "no indexed capture has this address; if one comes, it will be hidden",
        "there are captures of https://example.org/tides",
        "there are captures of https://example.org/tides?month=4",
    ]
    assert alone.out.splitlines()[1:] == ["no indexed capture has this address; if one comes, it will be hidden"]
    assert there.out == "https://example.org/tides/high: hidden, 1 capture\n"
    assert told.object["snapshots"] == 0


@pytest.mark.parametrize("line", ["auto-recover", "storage-watchdog", "cleanup-old-jobs"])
def test_commands_of_timers_say_with_the_same_words_that_they_only_looked(typed: Typist, line: str) -> None:
    looked, done = typed(line), typed(f"{line} --apply")

    assert looked.out.endswith("dry run: nothing was changed; do it with --apply\n")
    assert (done.code, "dry run" in done.out) == (0, False)


def test_an_import_says_which_records_are_no_captures_of_the_web(typed: Typist, tmp_path: Path) -> None:
    urls = ("urn:pageinfo:https://example.org/", "javascript:void(0)", "dns:example.org", "ftp://example.org/a")
    notes = [record(b"x", kind="resource", url=url) for url in urls]
    path = write(tmp_path / "a.warc.gz", record(response(b"<p>The page itself.</p>")), *notes)
    done = typed("import --source foreign", str(path))
    whole = write(tmp_path / "b.warc.gz", record(response(b"<p>Another page.</p>")))

    assert (
        "  note: 3 records of other addresses (dns:, urn:, …) left out: only http and https become snapshots\n"
        in done.out
    )
    assert "other_scheme, 1 times" in done.err, "what its owner may look for stays a warning"
    assert "left out" not in typed("import --source foreign", str(whole)).out
