"""`holdfast archive` and its flat names, as people type them at a small archive."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import delete, update

from holdfast import config
from holdfast.db.engine import Database
from holdfast.db.models import Execution, PageGroup, PageLink, Snapshot
from tests.archive import BEGIN, Shot, build_archive
from tests.typed import Typist

PAGE = (
    "<main><p>" + "Words that are enough for a page to have a text of its own. " * 3 + "</p><a href='/b'>b</a></main>"
)
SHOTS = [
    Shot(url="https://example.org/", body=PAGE),
    Shot(url="https://example.org/b"),
    Shot(url="https://example.org/", body=PAGE, moment=BEGIN + timedelta(hours=2), execution=2),
]


@pytest.fixture
def typed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Typist:
    """An archive in which one job has two executions."""
    with closing(build_archive(tmp_path / "home", SHOTS).database) as database, database.write() as session:
        session.execute(update(Execution).where(Execution.id == 2).values(job_id=1, number=2))
    return Typist(tmp_path / "home", capsys)


@pytest.fixture
def database(typed: Typist) -> Database:
    return Database(config.load(home=typed.home).database)


def test_rows_that_went_wrong_are_told_dry_and_set_right_with_apply(typed: Typist, database: Database) -> None:
    with closing(database), database.write() as session:
        session.execute(update(PageGroup).values(snapshot_count=9))
        session.execute(update(Snapshot).where(Snapshot.url.like("%/b")).values(group_id=None))
        session.execute(update(Snapshot).values(canonical_id=None))
        session.execute(delete(PageLink))

    assert typed("backfill-normalized-url-groups").out.startswith("1 page with no group\ndry run: nothing was changed")
    assert typed("backfill-normalized-url-groups --apply --json").object == {"pages": 1, "applied": True}
    assert typed("rebuild-pages --source example --json").object["wrong"] == 1
    assert typed("rebuild-pages --apply").out == "2 groups, 1 were wrong, 0 empty\n"
    assert typed("rebuild-pages").out.startswith("2 groups, 0 are wrong, 0 empty\n")
    assert typed("dedupe-snapshots").out.startswith("all executions: 3 captures, 1 to settle\ndry run")
    assert typed("dedupe-snapshots --apply --json").object == {
        "job": None, "executions": None, "captures": 3, "changed": 1, "applied": True,
    }  # fmt: skip
    first = typed("restore-deduped-snapshots --execution 1 --apply --json").object
    assert (first["job"], first["executions"], first["restored"]) == (1, [1], 0)
    assert typed("restore-deduped-snapshots --id 1").out.startswith("job 1, executions 1, 2: 1 duplicate\n")
    assert typed("backfill-outlinks --json").object == {
        "job": None, "executions": None, "pages": 2, "links": 1, "failed": {},
    }  # fmt: skip
    assert "3 pages in the new index" in typed("backfill-search-vector").out
    assert typed("search-index status --json").object["waiting"] == 0


def test_files_are_listed_read_again_and_checked_for_replay(typed: Typist) -> None:
    assert [one["id"] for one in typed("list-warcs --recent --json").object["files"]] == [2, 1]
    assert [one["id"] for one in typed("list-warcs --limit 1 --json").object["files"]] == [1]
    assert [one["id"] for one in typed("list-warcs --id 1 --recent --json").object["files"]] == [2, 1]
    assert [one["id"] for one in typed("list-warcs --execution 2 --json").object["files"]] == [2]
    assert typed("refresh-snapshot-metadata --execution 1").out.endswith(
        "job 1, execution 1: 1 file read, 0 failed, 0 snapshots changed\n"
    )
    assert "job 1, executions 1, 2: 2 files read" in typed("refresh-snapshot-metadata --id 1").out
    whole = typed("replay-reconcile --json").object
    assert ([one["replayable"] for one in whole["executions"]], whole["broken"]) == ([True, True], 0)

    next(typed.home.glob("warcs/example/execution-1/*.warc.gz")).unlink()
    broken = typed("replay-reconcile")
    assert (broken.code, "file_missing 1" in broken.out) == (1, True)
    assert typed("replay-index-job --execution 1 --json").object["replayable"] is False
    failed = typed("refresh-snapshot-metadata --execution 1 --json")
    assert (failed.code, failed.object["failed"]) == (1, 1)


def test_a_job_means_its_newest_completed_execution_and_that_is_said(typed: Typist, database: Database) -> None:
    newest = typed("replay-index-job --id 1")
    assert newest.out == "job 1, execution 2: 1 file, 1 capture, 1 checked, replayable\n"
    other = typed("replay-index-job --execution 1 --json").object
    assert (other["job"], other["execution"], other["captures"]) == (1, 1, 2)
    assert typed("index-job --id 1").out.endswith("job 1, execution 2: 1 file, 1 snapshot\n")
    assert typed("index-job --execution 1 --json").object["snapshots"] == 2

    with closing(database), database.write() as session:
        session.execute(update(Execution).where(Execution.id == 2).values(state="failed"))
    assert typed("replay-index-job --id 1").out.startswith("job 1, execution 1: ")
    with closing(database), database.write() as session:
        session.execute(update(Execution).values(state="failed"))
    none = typed("index-job --id 1")
    assert (none.code, "has no completed execution" in none.err, "--execution" in none.err) == (1, True, True)


def test_files_of_our_own_crawler_are_verified_too(typed: Typist) -> None:
    whole = typed("verify-warcs --execution 1 --level 2")
    assert (whole.code, whole.out) == (0, "1 of 1 WARC files are whole (level 2)\n")
    for name in ("verify-warc-manifest", "data-integrity-report"):
        refused = typed(f"{name} --execution 1")
        assert (refused.code, "holdfast verify-warcs --execution 1" in refused.err) == (1, True), name

    next(typed.home.glob("warcs/example/execution-1/*.warc.gz")).unlink()
    gone = typed("verify-warcs --execution 1 --json")
    assert (gone.code, gone.object["warcs_total"], gone.object["errors"]["not_a_file"]) == (1, 1, 1)


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("replay-index-job --id 9", 1, "there is no job 9; see them with: holdfast job list; an execution is named"),
        ("replay-index-job --execution 9", 1, "there is no execution 9; see them with: holdfast status"),
        ("replay-index-job --id 9 --execution 1", 1, "there is no execution 1 of job 9"),
        ("replay-index-job", 2, "--id"),
        ("index-job", 2, "name a job"),
        ("index-job --id 9", 1, "there is no job 9"),
        ("dedupe-snapshots --id 9", 1, "there is no job 9"),
        ("restore-deduped-snapshots --execution 9", 1, "there is no execution 9"),
        ("refresh-snapshot-metadata --id 9", 1, "there is no job 9"),
        ("refresh-snapshot-metadata --source nobody", 1, "there is no source 'nobody'"),
        ("list-warcs --id 9", 1, "there is no job 9"),
        ("list-warcs --source nobody", 1, "there is no source 'nobody'"),
        ("rebuild-pages --source nobody", 1, "there is no source 'nobody'"),
        ("replay-generate-previews", 1, "previews need a browser"),
        ("archive frob", 2, "No such command"),
    ],
)
def test_mistakes_have_their_exit_code_and_a_sentence(typed: Typist, line: str, code: int, said: str) -> None:
    ended = typed(line)

    assert (ended.code, ended.out) == (code, "")
    assert said in ended.err
    assert "Traceback" not in ended.err
