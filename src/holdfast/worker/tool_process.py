"""A running `archive-tool` as a worker controls it: started by this worker, or left behind by an earlier one.

Either writes to files in the output directory, never to a pipe: a tool outlives the worker that started it.
"""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Self
from urllib.parse import urljoin

from holdfast.clock import Clock
from holdfast.crawl.outcomes import MAX_REDIRECTS, is_redirect
from holdfast.db.engine import Database
from holdfast.errors import HoldfastError, UrlRefused
from holdfast.imports.importer import KEPT, ImportedFile, Importer
from holdfast.imports.placing import Keeping
from holdfast.index.indexer import Indexer
from holdfast.jobs.endings import Counts, StartPage
from holdfast.jobs.imports import ImportOptions
from holdfast.processes.child_process import STOPS, ChildProcess
from holdfast.steps import FileStep
from holdfast.urls import parse
from holdfast.warc.reader import Record, read_records
from holdfast.wiring import Runtime
from holdfast.worker.runner import LEAVING, GrowingLog, RunnerHolding, read_event
from holdfast.zimit.errors import ToolMissing
from holdfast.zimit.logs import FAILURE_BYTES, Statistics, last_statistics, newest_log, tail
from holdfast.zimit.output_directory import hold_output, holder_of, last_end
from holdfast.zimit.warc_files import consolidate, discover_warcs, temp_warcs

KILLED = -signal.SIGKILL
"""The exit code of a tool that recorded no exit code."""
_GUARD_S = 0.2


class StartedTool(ChildProcess):
    """A tool in a session of its own: it survives Ctrl-C at the worker's terminal and the end of its service."""

    def __init__(self, command: Sequence[str], output_dir: Path, environment: Mapping[str, str], now: datetime) -> None:
        """Start it; raise ToolMissing if the program cannot start, OSError if no log can be created."""
        self.log_path: Path | None = output_dir / f"tool_{now:%Y%m%dT%H%M%S%fZ}.log"
        # Log to a file, not a pipe: the next line would kill a tool whose reader died, and a full pipe would block it.
        with self.log_path.open("xb") as log:
            try:
                super().__init__(command, environment, stdout=log, stderr=subprocess.STDOUT)
            except (FileNotFoundError, PermissionError) as exc:
                raise ToolMissing(command[0], exc.strerror or str(exc)) from exc


class AdoptedTool:
    """A tool that another worker started, known by its lock on the directory, which also records its exit."""

    def __init__(self, output_dir: Path, pid: int) -> None:
        self._output_dir, self._pid, self._asked = output_dir, pid, 0
        self.log_path = newest_tool_log(output_dir)

    def poll(self) -> int | None:
        """Return the exit code, None while it runs; KILLED if it recorded none."""
        # The directory's lock shows whether the tool lives: it is not our child, so we cannot wait for its exit code.
        if holder_of(self._output_dir) is not None:
            return None
        end = last_end(self._output_dir)
        return KILLED if end is None else end[1]

    def ask_to_end(self, times: int = 1) -> None:
        for number in STOPS[self._asked : times]:
            signal_holder(self._output_dir, self._pid, number)
        self._asked = max(self._asked, times)

    def kill(self) -> None:
        signal_holder(self._output_dir, self._pid, signal.SIGKILL)


Tool = StartedTool | AdoptedTool
"""The second request to end takes its container's grace period away. The next run in the same directory stops the
container of one that was killed."""


class ToolGuard:
    """Ends a tool before the leases of its hosts can expire: another crawl may fetch from them afterwards.

    Runs on its own thread without the database: the tool ends even if lease renewal hangs.
    """

    def __init__(self, tool: Tool, good_until: Callable[[], float], clock: Clock, *, gently_s: float) -> None:
        """`good_until` returns when (monotonic) our leases expire; `gently_s` before that the tool must end."""
        self._tool, self._good_until, self._clock, self._gently_s = tool, good_until, clock, gently_s
        self._lock, self._over = threading.Lock(), threading.Event()
        self.lapsed = False
        """Whether the tool was asked to end because its hosts cannot be relied on for much longer."""
        self._thread = threading.Thread(target=self._run, name="tool guard", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def ask_to_end(self, times: int = 1) -> None:
        """Request the tool to end; one at a time, because two threads would count as two requests."""
        with self._lock:
            self._tool.ask_to_end(times)

    def _run(self) -> None:
        while not self._over.wait(_GUARD_S):
            left_s = self._good_until() - self._clock.monotonic()
            if left_s <= self._gently_s:
                self.lapsed = True
                self.ask_to_end()
            if left_s <= 0.0:
                # Skip the grace period: the tool fetches its pages again when it resumes.
                self.ask_to_end(2)
                return


def signal_holder(output_dir: Path, pid: int, number: signal.Signals) -> bool:
    """Send a signal to the tool that holds a directory; return False if it is not here, or is another program."""
    # A process id may belong to another program by now, so the process must also have this output directory. 0 means
    # unknown, or on another machine.
    if not pid or not _works_in(pid, output_dir):
        return False
    with suppress(ProcessLookupError):
        os.kill(pid, number)
        return True
    return False


def hurry_tools(output_dir: Path) -> int:
    """Request all tools that write to this directory to end immediately; return how many there were.

    Does not access the directory itself: on broken storage, that could hang forever.
    """
    asked = 0
    for entry in Path("/proc").iterdir():
        # Check the command line, not the lock file: access to a dead mount may block forever.
        if entry.name.isdigit() and int(entry.name) != os.getpid() and _works_in(int(entry.name), output_dir):
            with suppress(ProcessLookupError, PermissionError):
                for number in STOPS:
                    os.kill(int(entry.name), number)
                asked += 1
    return asked


def _works_in(pid: int, output_dir: Path) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return (b"--output-dir", os.fsencode(output_dir)) in pairwise(words)


def newest_tool_log(output_dir: Path) -> Path | None:
    return max(output_dir.glob("tool_*.log"), default=None)


def end_of_log(output_dir: Path, log_path: Path | None) -> str:
    """Return the end of a tool's log, followed by the recorded exit of the last run, if any."""
    text = "" if log_path is None else tail(log_path, FAILURE_BYTES).decode("utf-8", "replace")
    end = last_end(output_dir)
    return text if end is None else f"{text}\narchive-tool: {end[0]}\n"


def keep_files(
    runtime: Runtime, database: Database, execution_id: int, output_dir: Path, holding: RunnerHolding
) -> tuple[int, list[str]]:
    """Register every WARC file of a directory with an execution; idempotent.

    Return how many were registered, and an error for each file without a readable record, which stays where it is.

    Raise OutputBusy if a tool works there, Interrupted if the worker ends, NoSpace or Unavailable for disk
    errors.
    """
    with hold_output(output_dir):
        # Give the files stable names first: deleting temporary directories then never deletes a registered file.
        consolidate(output_dir, temp_warcs(output_dir), runtime.clock, allow_copy=True)
        paths = [file.path for file in discover_warcs(output_dir)]
        if not paths:
            return 0, []
        folder = output_dir / KEPT
        folder.mkdir(exist_ok=True)
        with closing(Indexer(runtime.raw_db, runtime.clock, runtime.settings.home)) as indexer:
            request = ImportOptions(source="", name=None, home=runtime.settings.home, config={})
            importer = Importer(database, runtime.raw_db, runtime.clock, indexer, request)
            importer.group, importer.only_register = (execution_id, folder), True
            # The tool owns the folder and never changes a sealed file.
            importer.keeping, importer.is_crawl = Keeping.LINK, True

            def on_step(_step: FileStep) -> None:
                indexer.stopping = holding.stop in LEAVING

            importer.on_step = on_step
            done = [_noted(one, holding) for one in importer.run(paths)]
    errors = [one.error for one in done if one.error is not None]
    return len(done) - len(errors), errors


# Limit of records searched for the start page: a crawler captures its seeds first.
_LOOKED_AT = 5_000


def start_page_in(paths: Sequence[Path], url: str) -> StartPage:
    """Return another program's capture of its start URL, following redirects inside its own captures.

    Unknown if it is not among the first records of the first files.
    """
    seen = dict(_first_answers(paths))
    for _ in range(MAX_REDIRECTS + 1):
        found = seen.get(_page(url))
        if found is None or found[1] is None:
            return StartPage(content_hash=found[0] if found else None)
        url = found[1]
    return StartPage()


def _first_answers(paths: Sequence[Path]) -> Iterator[tuple[int | None, tuple[str | None, str | None]]]:
    """Return the first captured URLs, each with the hash of its body and the target of its redirect."""
    left = _LOOKED_AT
    for path in paths:
        try:
            for record in read_records(path, on_damage=lambda damage: None):
                left -= 1
                if left < 0:
                    return
                address = record.head.get("WARC-Target-URI") or ""
                if record.head.type == "response" and (page := _page(address)) is not None:
                    yield page, _answer(record, address)
                record.drain()
        except (HoldfastError, OSError):
            # `keep_files` reports unreadable files.
            continue


def _answer(record: Record, address: str) -> tuple[str | None, str | None]:
    head, body = record.http()
    location = head.get("location") if is_redirect(head.status) else None
    hasher = hashlib.sha256()
    for chunk in body if head.status < 300 else ():
        hasher.update(chunk)
    content_hash = f"sha256:{hasher.hexdigest()}" if 200 <= head.status < 300 else None
    return content_hash, urljoin(address, location) if location else None


def _page(url: str) -> int | None:
    try:
        return parse(url.strip("<>")).hash64
    except UrlRefused:
        return None


def _noted(one: ImportedFile, holding: RunnerHolding) -> ImportedFile:
    name = Path(one.origin).name
    if one.error is not None:
        holding.note("warning", "error", "a WARC file cannot be used", file=name, error=one.error)
    else:
        facts = {"id": one.warc_file_id, "how": one.how, "records": one.records, "damaged": one.damaged}
        holding.note("info", "lifecycle", "a WARC file is registered", file=name, **facts)
    return one


# How often statistics are logged; progress is reported more often, and its receiver limits it.
_STATISTICS_S = 30.0


class ToolFollower:
    def __init__(self, output_dir: Path, log_path: Path | None, holding: RunnerHolding, clock: Clock) -> None:
        self._output_dir, self._holding, self._clock = output_dir, holding, clock
        self._events = None if log_path is None else GrowingLog(log_path)
        self._log: Path | None = None
        self._last: Statistics | None = None
        self._reported_at: float | None = None

    def look(self) -> None:
        for line in self._events.new_lines() if self._events is not None else ():
            self._pass_on(line)
        newest = newest_log(self._output_dir)
        if newest is None:
            return
        if newest != self._log:
            self._log, self._reported_at = newest, None
            self._holding.note("info", "lifecycle", "a stage writes its log", log=newest.name)
        found = last_statistics(newest)
        if found is None or found == self._last:
            return
        self._last = found
        self._holding.progress(counts_of(found), found.as_json())
        now = self._clock.monotonic()
        if self._reported_at is None or now - self._reported_at >= _STATISTICS_S:
            self._reported_at = now
            self._holding.note("info", "metrics", "crawl statistics", **found.as_json())

    def _pass_on(self, line: bytes) -> None:
        if (event := read_event(line)) is not None:
            level, name, fields = event
            category = "error" if level in ("error", "critical") else "lifecycle"
            self._holding.note(level, category, name, **{f"tool_{key}": value for key, value in fields.items()})
        elif text := line.decode("utf-8", "replace").strip():
            self._holding.note("info", "lifecycle", text)


def counts_of(found: Statistics | None) -> Counts:
    if found is None:
        return Counts()
    return Counts(items_crawled=found.crawled, items_failed=max(found.failed, 0), items_total=found.total)
