"""The password of the database is told to nobody: not by arguments of processes, not by logs, output or errors."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import monotonic, sleep

import httpx
import pytest

from tests import forked
from tests.archive import Shot, build_archive
from tests.client import ADMIN, WITH_TOKEN
from tests.patience import deadline
from tests.postgres import Postgres

_SECRET = "pa55-of-the-database"


def _with_password(url: str) -> str:
    """Return an address with a password; the test's server believes any."""
    scheme, _, rest = url.partition("://")
    user, _, place = rest.rpartition("@")
    return f"{scheme}://{user.partition(':')[0] or 'holdfast'}:{_SECRET}@{place}"


def _descendants(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            found += [int(child), *_descendants(int(child))]
    return found


def _arguments(pid: int) -> str:
    """Return the arguments of a process and of all that it started, as `ps` shows them to every user."""
    shown = []
    for one in (pid, *_safely(pid)):
        try:
            shown.append(Path(f"/proc/{one}/cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return "\n".join(shown)


def _safely(pid: int) -> list[int]:
    try:
        return _descendants(pid)
    except OSError:  # it ended while we looked
        return []


def _run(
    home: Path, url: str, *arguments: str, started_by: type[subprocess.Popen[str]] = subprocess.Popen
) -> tuple[str, set[str]]:
    """Run a command at the highest level of logging; return all that it wrote, and all arguments that were seen."""
    variables = {**os.environ, "HOLDFAST_HOME": str(home), "HOLDFAST_DATABASE_URL": url, "HOLDFAST_LOG_LEVEL": "DEBUG"}
    with tempfile.TemporaryFile("w+") as out:
        process = started_by(
            [sys.executable, "-m", "holdfast.cli.main", *arguments], stdout=out, stderr=out, text=True, env=variables
        )
        seen, until = set[str](), monotonic() + deadline(120)
        while process.poll() is None and monotonic() < until:
            seen.add(_arguments(process.pid))
            # An interpreter takes ten times as long to start: none comes and goes unseen.
            sleep(0.01)
        process.kill()
        process.wait()
        out.seek(0)
        return out.read(), seen


_COMMANDS = [
    ("settings",), ("settings", "--json"), ("check-env",), ("migrate", "status"), ("migrate", "up"), ("status",),
    ("search", "words"), ("source", "list"), ("job", "list"), ("database", "--help"),
]  # fmt: skip


def test_no_command_shows_it_while_it_migrates_runs_and_logs(tmp_path: Path, postgres: Postgres) -> None:
    url = _with_password(postgres.bare())
    fresh = _run(tmp_path / "fresh", url, "migrate", "up")
    build_archive(tmp_path / "home", [Shot(url="https://example.org/")], database_url=url).database.close()

    told = {command: _run(tmp_path / "home", url, *command) for command in _COMMANDS} | {("first",): fresh}

    for command, (output, arguments) in told.items():
        assert output, command
        assert _SECRET not in output, command
        assert not any(_SECRET in one for one in arguments), command
    assert any("holdfast.db.migrate" in one for one in fresh[1]), "the process that migrates was looked at"
    assert "***" in told["settings",][0]


@pytest.mark.parametrize(
    "url",
    [f"postgresql://holdfast:{_SECRET}@127.0.0.1:1/nothing", f"postgresql://holdfast:{_SECRET}@no.such.host/x",
     f"postgresql://holdfast:{_SECRET}@127.0.0.1:notaport/x", f"mysql://holdfast:{_SECRET}@127.0.0.1/x",
     f"postgresql:///x?host=127.0.0.1&port=1&password={_SECRET}"],
    ids=["refused", "no host", "no port", "no dialect", "in the query"],
)  # fmt: skip
@pytest.mark.parametrize("command", [("status",), ("api", "--port", "0"), ("migrate", "up")], ids=lambda one: one[0])
def test_no_error_shows_it(tmp_path: Path, url: str, command: tuple[str, ...]) -> None:
    # Its own arguments are those that it is given here; what it starts is seen as ever.
    output, arguments = _run(tmp_path, url, *command, started_by=forked.Popen)

    assert output
    assert _SECRET not in output
    assert not any(_SECRET in one for one in arguments)


def test_the_server_shows_it_nowhere_also_when_its_database_goes(tmp_path: Path, postgres: Postgres) -> None:
    plain = postgres.fresh()
    url = _with_password(plain)
    build_archive(tmp_path, [Shot(url="https://example.org/")], database_url=url).database.close()
    variables = {**os.environ, "HOLDFAST_DATABASE_URL": url, "HOLDFAST_LOG_LEVEL": "DEBUG", **WITH_TOKEN}
    process = subprocess.Popen(
        [sys.executable, "-m", "holdfast.cli.main", "api", "--port", "0", "--home", str(tmp_path)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=variables,
    )  # fmt: skip
    assert process.stdout is not None
    lines: list[str] = []
    while not lines or not lines[-1].startswith("serving "):
        lines.append(process.stdout.readline())
        assert lines[-1], lines
    address = lines[-1].split()[1]
    paths = ("/api/health?details=1", "/api/stats", "/api/search?q=words", "/metrics", "/api/v1/jobs")
    try:
        answers = [httpx.get(f"{address}{path}", headers=ADMIN, timeout=deadline(60)) for path in paths]
        arguments = _arguments(process.pid)
        postgres.drop(plain)
        answers += [httpx.get(f"{address}{path}", headers=ADMIN, timeout=deadline(60)) for path in paths]
    finally:
        process.terminate()
        rest, _ = process.communicate(timeout=deadline(60))

    assert {answer.status_code for answer in answers[: len(paths)]} == {200}
    assert not any(_SECRET in answer.text for answer in answers)
    assert _SECRET not in arguments
    assert _SECRET not in "".join(lines) + rest
