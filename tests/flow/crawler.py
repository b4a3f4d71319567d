"""A real `holdfast` in a real process, as tests drive it, and the audit that every crawl must pass."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.db import connect
from holdfast.db.raw import RawDatabase
from holdfast.series.counting import OUTCOMES
from holdfast.warc.manifest import read_manifest
from holdfast.warc.verify import verify_file
from tests import forked, patience
from tests.frontier_audit import account, audit

_LEASE_S, _RENEW_S, _FETCH_S, _CONNECT_S, _AWAY_S = map(patience.period, (2.0, 0.5, 3.0, 2.0, 5.0))
FAST = {
    "HOLDFAST_TIMINGS_LEASE_SECONDS": str(_LEASE_S), "HOLDFAST_TIMINGS_LEASE_RENEW_S": str(_RENEW_S),
    "HOLDFAST_FETCH_DEADLINE_S": str(_FETCH_S), "HOLDFAST_TIMINGS_CRAWL_CONNECT_S": str(_CONNECT_S),
    "HOLDFAST_TIMINGS_CRAWL_RETRY_BASE_S": "0.1", "HOLDFAST_TIMINGS_CRAWL_SETTLE_S": "0.1",
    "HOLDFAST_TIMINGS_CRAWL_CIRCUIT_RESET_S": "1", "HOLDFAST_TIMINGS_CRAWL_UNREACHABLE_S": str(_AWAY_S),
    "HOLDFAST_DISK_FREE_BYTES": "0", "HOLDFAST_DISK_FREE_PERCENT": "0", "HOLDFAST_CONTACT": "tests@example.org",
}  # fmt: skip
"""Leases of two seconds and deadlines of three, so that what takes minutes in life takes seconds here."""


@dataclass(slots=True)
class Crawler:
    """One data directory and the commands that work on it."""

    home: Path
    database_url: str | None = None
    environment: dict[str, str] = field(default_factory=dict)
    started: subprocess.Popen[str] | None = None
    """The crawl that was started last."""

    def command(self, name: str, *arguments: str) -> list[str]:
        """Return the argument list of a command."""
        return [sys.executable, "-m", "holdfast.cli.main", name, *arguments, "--home", str(self.home)]

    @property
    def variables(self) -> dict[str, str]:
        """The environment in which commands and processes run."""
        # Compiled modules are kept: a test starts dozens of processes, and compiling is a fifth of a start.
        unwanted = ("HOLDFAST_", "PYTHONDONTWRITEBYTECODE")
        base = {key: value for key, value in os.environ.items() if not key.startswith(unwanted)}
        chosen = {"HOLDFAST_DATABASE_URL": self.database_url} if self.database_url else {}
        return {**base, **FAST, **chosen, **self.environment}

    def start(self, *arguments: str, **extra: str) -> subprocess.Popen[str]:
        """Start a crawl of loopback addresses in a process group of its own; its result is JSON on standard output."""
        self.started = forked.Popen(
            self.command("crawl", *arguments, "--allow-network", "127.0.0.0/8", "--json"), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**self.variables, **extra}, start_new_session=True,
        )  # fmt: skip
        return self.started

    def demand_begun(self) -> None:
        """Fail with its own words if the crawl that was started last could not even begin."""
        if self.started is not None and self.started.poll() == 1 and self.started.stderr is not None:
            raise AssertionError(f"the crawl could not begin: {self.started.stderr.read()}")

    def crawl(self, *arguments: str, timeout_s: float = 60.0, **extra: str) -> dict[str, Any]:
        """Crawl to the end and return the final object; a crawl that fails or hangs fails the test."""
        return self.finish(self.start(*arguments, **extra), timeout_s=timeout_s)

    def finish(self, process: subprocess.Popen[str], *, timeout_s: float = 60.0) -> dict[str, Any]:
        """Wait for a crawl that was started and return its final object."""
        try:
            out, err = process.communicate(timeout=patience.deadline(timeout_s))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise AssertionError(f"the crawl did not end within {timeout_s} s: {self.log()[-3000:]}") from None
        assert process.returncode == 0, f"exit {process.returncode}: {err}\n{self.log()[-3000:]}"
        result: dict[str, Any] = json.loads(out.splitlines()[-1])
        return result

    def run(self, name: str, *arguments: str, timeout_s: float = 60.0) -> subprocess.CompletedProcess[str]:
        """Run another command and return how it ended."""
        return forked.run(
            self.command(name, *arguments),
            capture_output=True,
            text=True,
            env=self.variables,
            timeout=patience.deadline(timeout_s),
            check=False,
        )

    def log(self) -> str:
        """Return what the crawl processes logged."""
        return "".join(path.read_text() for path in sorted(self.home.rglob("crawl.log")))

    def raw_db(self) -> RawDatabase:
        """Open the database."""
        return connect(self.database_url or f"sqlite:///{(self.home / 'holdfast.db').resolve()}")

    def warcs(self) -> list[Path]:
        """Return the sealed files."""
        return sorted(self.home.rglob("*.warc.gz"))

    def processes(self) -> list[int]:
        """Return the crawl processes that work on this directory now."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    command = (entry / "cmdline").read_bytes()
                    environment = (entry / "environ").read_bytes()
                except OSError:
                    continue
                home = f"HOLDFAST_HOME={self.home.resolve()}\0".encode()
                if b"holdfast.crawl.process" in command and home in environment:
                    found.append(int(entry.name))
        return found

    def outcomes(self, execution_id: int = 1) -> dict[str, tuple[str, str]]:
        """Return the current outcome and reason of every URL of an execution."""
        with closing(self.raw_db()) as raw_db:
            rows = list(account(raw_db, execution_id))
        return {row.url: (row.outcome.value if row.outcome else "open", row.reason or "") for row in rows}

    def faults(self, execution_id: int = 1) -> list[str]:
        """Return what is wrong with this archive: the audit that ends every flow test. An empty list is a pass."""
        problems = [f"process {pid} is still there" for pid in self.processes()]
        problems += [f"{path.name} was left open" for path in self.home.rglob("*.open")]
        listed = {path.parent: {one.path.name for one in read_manifest(path.parent).values()} for path in self.warcs()}
        for path in self.warcs():
            problems += [f"the manifest lacks {path.name}"] if path.name not in listed[path.parent] else []
            problems += [f"{path.name}: {problem}" for problem in verify_file(path).problems]
        with closing(self.raw_db()) as raw_db:
            problems += audit(raw_db, execution_id)
            with raw_db.read() as tx:
                problems += _dangling(tx, self.home) + _miscounted(tx, execution_id)
                # A dead owner stays named after its lease was freed, so that the next one waits a full delay.
                held = tx.execute("SELECT count(*) FROM domains WHERE lease_expires_at > 0")[0][0]
                owners = tx.execute("SELECT count(*) FROM owners WHERE ended_at IS NULL")[0][0]
        problems += [f"{held} domains are still leased"] if held else []
        problems += [f"{owners} owners have not said goodbye"] if owners else []
        if self.database_url is None:
            with closing(sqlite3.connect(self.home / "holdfast.db")) as database:
                state = database.execute("PRAGMA integrity_check").fetchone()[0]
            problems += [f"SQLite says {state}"] if state != "ok" else []
        return problems


def _miscounted(tx: Any, execution_id: int) -> list[str]:
    """Return where the series, by the minute and in all, does not say what the attempts do: each counts once."""
    settled = " + ".join(("retries", *OUTCOMES))
    (closed,) = tx.execute(
        "SELECT count(*), sum(coalesce(wire_bytes, 0)), sum(coalesce(requests, 0)) FROM page_crawls"
        " WHERE execution_id = ? AND outcome IS NOT NULL",
        (execution_id,),
    )
    (left,) = tx.execute("SELECT count(*) FROM page_crawls WHERE execution_id = ? AND outcome IS NULL", (execution_id,))
    problems = []
    for step_s in (60, 0):
        (told,) = tx.execute(
            f"SELECT sum({settled}), sum(bytes), sum(requests), sum(queue) FROM series"
            " WHERE execution_id = ? AND step_s = ?",
            (execution_id, step_s),
        )
        said, true = [int(number or 0) for number in told], [int(number or 0) for number in (*closed, *left)]
        problems += [f"the series (step {step_s}) says {said}, the attempts {true}"] if said != true else []
    return problems


def _dangling(tx: Any, home: Path) -> list[str]:
    """Return the settled attempts that point at bytes which are not there."""
    sizes = {
        file_id: (home.resolve() / path).stat().st_size if (home.resolve() / path).is_file() else -1
        for file_id, path in tx.execute(
            "SELECT f.id, COALESCE(s.location || '/', '') || f.key FROM warc_files f"
            " LEFT JOIN stores s ON s.name = f.store WHERE f.state <> 'discarded'"
        )
    }
    rows = tx.execute(
        "SELECT c.id, c.warc_file_id, c.warc_offset, c.warc_length FROM page_crawls c"
        " JOIN executions e ON e.id = c.execution_id WHERE c.warc_file_id IS NOT NULL AND e.state <> 'cancelled'"
    )
    wrong = [row[0] for row in rows if row[2] + row[3] > sizes.get(row[1], -1)]
    return [f"attempts {wrong[:5]} point at missing bytes"] if wrong else []


def fetched(entries: Any) -> Counter[str]:
    """Return how often each page was asked for, by the site's own log (robots.txt left out)."""
    return Counter(f"{entry.host}{entry.path}" for entry in entries if entry.path != "/robots.txt")
