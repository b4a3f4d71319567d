"""Every example of every help page, typed as it stands there, at a house where there is what it names."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session
from typer.core import TyperGroup

from holdfast import config
from holdfast.cli import runner
from holdfast.cli.catalogue import COMMANDS
from holdfast.cli.main import load
from holdfast.clock import SystemClock
from holdfast.db.engine import Database
from holdfast.db.models import (
    Execution,
    Feed,
    IssueReport,
    Job,
    SignalPage,
    Snapshot,
    Upload,
    WebhookDelivery,
)
from holdfast.db.models.frontier import Domain, Page, Queue
from holdfast.sources.registry import seed_presets
from holdfast.urls import parse_seed
from holdfast.wiring.jobs import open_jobs
from tests.archive import BEGIN, Shot, build_archive
from tests.editions_bed import adopt
from tests.guides import STANDINS

PAGE = "<title>{}</title><main><p>" + "Words about the flu vaccine and its calendar. " * 4 + "</p></main>"
SHOTS = [
    *(Shot(url=f"https://example.org/{path}", body=PAGE.format(path), source="example-org")
      for path in ("", "private")),
    *(Shot(url=f"https://example.org/{path}", body=PAGE.format(f"{path} anew"), source="example-org", execution=2,
           moment=BEGIN + timedelta(days=2)) for path in ("", "private")),
    *(Shot(url="https://hc.example/", body=PAGE.format(f"hc {number}"), source="hc", execution=number,
           moment=BEGIN + timedelta(days=number)) for number in range(3, 8)),
]  # fmt: skip
OUTSIDE = (
    "holdfast crawl https://example.org", "holdfast demo", "holdfast api", "holdfast worker start",
    "holdfast start-worker", "holdfast start-scheduler", "holdfast index --follow", "holdfast feed discover",
    "holdfast tool run", "holdfast run-job", "holdfast probe-browser-fetch", "holdfast check-archive-tool",
    "holdfast run-db-job", "holdfast tool attach-zim", "holdfast edition decide", "holdfast serve", "holdfast mcp",
    "holdfast webhook test", "holdfast user password", "holdfast live", "holdfast source survey",
)  # fmt: skip
"""They ask the web or a person, start a container, need a file, or do not end: only their words are read."""
_ADA = "user add ada --role operator"
_TOKEN = "token create ada backup"
_HOOK = "webhook add https://example.org/hook"
_EX = "source create ex --seed https://example.org/ --set feeds=true"
MADE_FIRST = {
    "holdfast source edit ex": [_EX],
    "holdfast source delete ex": [_EX],
    "holdfast feed add": [_EX],
    "holdfast feed poll --source ex": [_EX],
    "holdfast snapshot unhide": ["snapshot hide 4194305 --reason why"],
    "holdfast job resume 3": ["job pause 3"],
    "holdfast storage verify-manifest": ["storage consolidate --id 3 --apply"],
    "holdfast edition verify": ["edition freeze hc 2026"],
    "holdfast edition compare": [
        f"edition {line}"
        for year in (2025, 2026)
        for line in (f"report --year {year} --sources hc --apply", f"freeze hc {year}")
    ],
    "holdfast edition report": ["schedule-annual --year 2026 --sources phac --apply"],
    "holdfast edition ledger": ["edition report --year 2026 --apply"],
    **{f"holdfast user {word}": [_ADA] for word in ("role", "disable", "enable", "sign-out", "delete")},
    "holdfast token revoke": [_ADA, _TOKEN, f"{_TOKEN}-2", f"{_TOKEN}-3"],
    "holdfast token": [_ADA],
    **{
        f"holdfast webhook {word}": [_HOOK]
        for word in ("show", "edit", "enable", "disable", "remove", "rotate-secret", "deliveries", "redeliver")
    },
}
"""What is typed before an example."""


def _failed(session: Session) -> None:
    session.execute(update(Job).where(Job.id == 3).values(state="failed"))
    session.execute(update(Execution).where(Execution.id == 3).values(state="failed", index_state=None))


def _running(session: Session) -> None:
    """Leave a crawl of its own behind whose processes are gone; the run of a job is ended by its worker."""
    session.execute(update(Job).where(Job.id == 3).values(state=None, kind="adhoc"))
    session.execute(update(Execution).where(Execution.id == 3).values(state="running", index_state=None))


def _begun(session: Session) -> None:
    session.execute(update(Job).where(Job.id == 3).values(state="running"))
    session.execute(
        update(Execution)
        .where(Execution.id == 3)
        .values(state="running", index_state=None, started_at=SystemClock().now(), config={"backend": "native"})
    )


def _unread(session: Session) -> None:
    session.execute(delete(Snapshot).where(Snapshot.execution_id == 3))


def _signals(session: Session) -> None:
    url, now = parse_seed("https://example.org/"), SystemClock().now()
    session.add(Domain(id=1, name=url.domain, created_at=now))
    session.flush()
    session.add(Page(id=1, domain_id=1, url_hash=url.hash64, url=url.fetch, created_at=now))
    session.flush()
    session.add(SignalPage(page_id=1, source_id=1, execution_id=1, fetched_at=now, title="Example"))


def _domain(session: Session) -> None:
    session.add(Domain(id=1, name="example.org", created_at=SystemClock().now()))


def _report(session: Session) -> None:
    now, text = SystemClock().now(), "A picture is missing."
    session.add(IssueReport(id=7, category="broken", description=text, status="new", created_at=now, updated_at=now))


def _queued(session: Session) -> None:
    _domain(session)
    session.add(Queue(execution_id=3, domain_id=1, open=0, due_at=0))


def _delivery(session: Session) -> None:
    now = SystemClock().now()
    session.add(WebhookDelivery(id=17, webhook_id=1, event_key="job:1", message_id="msg_1", event="job.failed",
                                body="{}", state="failed", next_at=now, created_at=now, attempts=1))  # fmt: skip


def _operation(session: Session) -> None:
    now = SystemClock().now()
    session.add(Job(id=9, kind="verify", fingerprint="f", name="all WARC files", state="pending",
                    details={"actor": "ada"}, created_at=now))  # fmt: skip
    session.flush()
    session.add(Execution(id=9, job_id=9, number=1, state="queued", output_dir="", created_at=now, queued_at=now))


def _upload(session: Session) -> None:
    now = SystemClock().now()
    session.add(
        Upload(
            id=1,
            source_code="ex",
            name="crawl.warc.gz",
            metadata_text="",
            size=10,
            received=10,
            state="failed",
            actor="ada",
            created_at=now,
            updated_at=now,
            expires_at=now + timedelta(days=1),
        )
    )


ROWS = {
    **{f"holdfast operation {word}": _operation for word in ("list", "show", "cancel")},
    **{f"holdfast upload {word}": _upload for word in ("list", "show", "import", "end")},
    "holdfast frontier reset": _domain,
    "holdfast frontier requeue": _domain,
    **{f"holdfast domain {word}": _domain for word in ("show", "robots", "set", "pause", "resume", "refresh", "purge")},
    "holdfast webhook redeliver": _delivery,
    "holdfast frontier urls": _queued,
    "holdfast frontier discovered": _queued,
    "holdfast problem-report show": _report,
    "holdfast problem-report edit": _report,
    "holdfast retry-job": _failed,
    "holdfast patch-job-config": _failed,
    "holdfast stop 3": _running,
    "holdfast pause 3": _begun,
    "holdfast resume 3": _begun,
    "holdfast storage verify --id 3": _unread,
    "holdfast page show": _signals,
}
"""What is otherwise in the database where an example needs it."""
REFUSED = ("holdfast replay-generate-previews",)
"""Its help says that this version cannot do it yet."""


def _examples() -> Iterator[str]:
    for command in COMMANDS.values():
        made = runner.built(load(command.module))
        for one in (made, *(made.commands.values() if isinstance(made, TyperGroup) else ())):
            found = re.search(r"Example: (.*)$", " ".join((one.help or "").split()))
            assert found is not None
            yield found[1]


EXAMPLES = sorted(set(_examples()))


def _type(line: str) -> int:
    """Run a command as a shell would, up to the first sign that is the shell's own; return its exit code."""
    words = shlex.split(re.split(r" (?:>|&&|[|]) ", line)[0].removeprefix("holdfast "))
    command = COMMANDS[words[0]]
    app = load(command.module)
    with pytest.raises(SystemExit) as ended:
        runner.run(app, f"holdfast {words[0]}", words[1:], subcommand=command.subcommand)
    return ended.value.code if isinstance(ended.value.code, int) else 0


@pytest.fixture(scope="module")
def _whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place with a data directory and the files that examples name."""
    place = tmp_path_factory.mktemp("examples") / "place"
    home = place / "holdfast-home"
    with open_jobs(config.load(home=home)) as jobs, jobs.database.write() as session:
        seed_presets(session, jobs.clock)
    archive = build_archive(home, SHOTS)
    with closing(archive.database) as database:
        adopt(archive, "hc", 2025, executions=("hc-4",), seeds=("https://hc.example/",))
        adopt(archive, "hc", 2026, executions=("hc-5", "hc-6", "hc-7"), seeds=("https://hc.example/",))
        with database.write() as session:
            _rows(session, home.resolve())
    (place / "crawls").mkdir()
    shutil.copy(next(home.glob("warcs/hc/*/*.warc.gz")), place / "crawls")
    shutil.copytree(place / "crawls", place / "srv" / "jobs" / "hc-20260101" / "warcs")
    (place / "srv" / "lib" / "node_exporter").mkdir(parents=True)
    shutil.copytree(place / "crawls", next(home.glob("warcs/hc/execution-3")) / ".tmp1" / "archive")
    (place / "robots.txt").write_text("User-agent: *\nDisallow: /private/\n")
    (place / "sources.yaml").write_text("sources:\n- {code: other, config: {seeds: ['https://other.example/']}}\n")
    return place


def _rows(session: Session, home: Path) -> None:
    """Let job 3 be the crawl job of its source, and let there be three feeds."""
    now = SystemClock().now()
    session.execute(update(Job).where(Job.id == 3).values(
        kind="crawl", state="scheduled", interval_minutes=6, interval_type="hours", schedule_enabled=True,
        url="https://hc.example/", next_run_at=now + timedelta(hours=3), fingerprint="",
    ))  # fmt: skip
    session.execute(update(Execution).values(index_state="indexed"))
    session.execute(update(Execution).where(Execution.id == 3).values(config={"backend": "zimit"}))
    for (execution,) in session.execute(select(Execution.id)).all():
        folder = next(home.glob(f"warcs/*/execution-{execution}"))
        session.execute(update(Execution).where(Execution.id == execution).values(output_dir=str(folder)))
    for number in range(3):
        session.add(Feed(source_id=1, url=f"https://hc.example/{number}.rss", url_hash=number, kind="feed",
                         origin="configured", created_at=now, next_poll_at=now))  # fmt: skip


def _look(place: Path) -> dict[str, tuple[int, int]]:
    """Return what lies there; a database that was only read leaves an empty log, or none."""
    found = {str(path.relative_to(place)): path.stat() for path in place.rglob("*") if path.is_file()}
    return {name: (file.st_mtime_ns, file.st_size) for name, file in found.items() if not name.endswith("-shm")}


@pytest.fixture
def place(_whole: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The place as it was, made the working directory; what an example changes there is undone."""
    kept = _whole.parent / "kept"
    if not kept.exists():
        shutil.copytree(_whole, kept)
    monkeypatch.chdir(_whole)
    monkeypatch.setenv("PATH", f"{STANDINS}{os.pathsep}{os.environ['PATH']}")
    yield _whole
    if _look(_whole) != _look(kept):
        shutil.rmtree(_whole)
        shutil.copytree(kept, _whole)


@pytest.mark.parametrize("example", [one for one in EXAMPLES if not one.startswith(OUTSIDE)])
def test_an_example_works_when_it_is_typed(place: Path, example: str, capsys: pytest.CaptureFixture[str]) -> None:
    line = re.sub(r" /(?:srv|var)/", f" {place}/srv/", example)
    for first in next((lines for known, lines in MADE_FIRST.items() if example.startswith(known)), ()):
        assert _type(first) == 0, capsys.readouterr()
    if (change := next((change for known, change in ROWS.items() if example.startswith(known)), None)) is not None:
        with closing(Database(config.load().database)) as database, database.write() as session:
            change(session)

    capsys.readouterr()
    code = _type(line)

    said = capsys.readouterr()
    assert code == (1 if example.startswith(REFUSED) else 0), f"{example}\n{said.err}{said.out}"
    assert said.out or said.err or "-o " in example or "--out" in example, "it says what came of it"


@pytest.mark.parametrize("example", [one for one in EXAMPLES if one.startswith(OUTSIDE)])
def test_an_example_that_leaves_the_house_can_be_read(example: str) -> None:
    words = shlex.split(example)[1:]
    command = COMMANDS[words[0]]
    made: Any = runner.built(load(command.module), command.subcommand)
    if isinstance(made, TyperGroup):
        made = made.commands[words.pop(1)]

    assert made.make_context("holdfast", words[1:]).params
