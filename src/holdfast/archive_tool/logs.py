"""The logs of a crawl on disk: their names, their ends, what they say of progress and of the temporary directory."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.archive_tool.output_directory import is_temp_dir, temp_dirs_in

MAX_LINE_BYTES = 1024 * 1024
_MAX_COUNT = 2**53
_MAX_TEXT = 16 * 1024
_TIMEOUT = re.compile(
    r"navigation timeout|net::ERR_(?:TIMED_OUT|NAME_NOT_RESOLVED|DNS_TIMED_OUT|CONNECTION_TIMED_OUT)\b"
    r"|\bERR_TIMED_OUT\b",
    re.I,
)
_HTTP = re.compile(r"net::ERR_[A-Z0-9_]+|\bstatus(?: code)?\W{1,4}[45]\d\d\b|\bHTTP(?:/[\d.]+)? [45]\d\d\b", re.I)
_PAGE_CONTEXTS = (
    "pageStatus",
    "jsError",
    "behavior",
    "behaviorScript",
    "behaviorScriptCustom",
    "links",
    "fetch",
    "text",
)
_LOUD = ("error", "warn", "warning", "fatal")
# How zimit itself writes what is no trouble.
_QUIET_LINE = re.compile(r"\[[\w.]{1,40}::[^\]]{1,40}\] (?:INFO|DEBUG):")


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """How far a crawl says that it is. `pending` and `failed` are -1 where it does not say."""

    crawled: int
    total: int
    pending: int = -1
    failed: int = -1
    limit_hit: bool = False
    at: datetime | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    """`limit`, `backend`, `captureMode` and `lastPage`, where there are any."""

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to ask for: something was crawled, nothing is under way, nothing is queued."""
        done = self.crawled + max(self.failed, 0)
        return self.crawled > 0 and self.pending == 0 and (done >= self.total or self.limit_hit)

    def as_json(self) -> dict[str, Any]:
        """Return it as jobs keep it (`last_stats_json`)."""
        counts = {"crawled": self.crawled, "total": self.total, "pending": self.pending, "failed": self.failed}
        return {**{key: value for key, value in counts.items() if value >= 0}, **self.extra}


def read_statistics(line: bytes) -> Statistics | None:
    """Return the statistics that a line reports, or None; `crawled` and `total` must be there and make sense."""
    # Cheap first: a log of weeks has millions of lines, and few of them are statistics.
    if b'"Crawl statistics"' not in line:
        return None
    entry = _entry(line)
    if entry is None or entry.get("context") != "crawlStatus" or entry.get("message") != "Crawl statistics":
        return None
    details = entry.get("details")
    if not isinstance(details, dict):
        return None
    crawled, total = _number(details.get("crawled")), _number(details.get("total"))
    # Both must be there and make sense: the log is written inside the container, where a page may be quoted.
    if crawled < 0 or total < 0:
        return None
    limit = details.get("limit")
    return Statistics(
        crawled=crawled,
        total=total,
        pending=_number(details.get("pending")),
        failed=_number(details.get("failed")),
        limit_hit=isinstance(limit, dict) and limit.get("hit") is True,
        at=_moment(entry.get("timestamp")),
        extra={key: details[key] for key in ("limit", "backend", "captureMode", "lastPage") if key in details},
    )


def error_class(line: bytes) -> str | None:
    """Return `timeout`, `http` or `other` for a line that reports an error, else None.

    A line of the crawler counts if it is loud about it (error or warning); one of any other program only if it names a
    known error, for a stack trace is many lines.
    """
    # Outside text: no pattern is tried on more of it than this.
    if len(line) > MAX_LINE_BYTES:
        return None
    entry = _entry(line)
    if entry is None:
        text = line[:_MAX_TEXT].decode("utf-8", "replace")
        return _class_of(text)
    if str(entry.get("logLevel", entry.get("level", ""))).lower() not in _LOUD:
        return None
    details = entry.get("details")
    details = details if isinstance(details, dict) else {}
    status = _number(details.get("status", details.get("statusCode")))
    said = (entry.get("message"), details.get("msg"), details.get("message"), details.get("error"))
    found = _class_of(" ".join(one[:_MAX_TEXT] for one in said if isinstance(one, str)))
    return found or ("http" if 400 <= status <= 599 else "other")


def may_quote_a_page(line: bytes) -> bool:
    """Return whether a page's own words may stand in a line: quiet talk of the crawler, or an error of a script."""
    entry = _entry(line)
    if entry is None:
        return False
    return str(entry.get("logLevel", "")).lower() not in ("error", "fatal") or entry.get("context") in _PAGE_CONTEXTS


def sentence_of(line: bytes) -> str | None:
    """Return what a line of a log says to a person: an entry's words, else the line; or None."""
    entry = _entry(line)
    if entry is None:
        text = line[:_MAX_TEXT].decode("utf-8", "replace").strip()
        return text if text and not _QUIET_LINE.match(text) else None
    details = entry.get("details")
    details = details if isinstance(details, dict) else {}
    said = [entry.get("message"), details.get("msg"), details.get("message"), details.get("error")]
    return ": ".join(one[:_MAX_TEXT].strip() for one in said if isinstance(one, str) and one.strip()) or None


def _class_of(text: str) -> str | None:
    if _TIMEOUT.search(text):
        return "timeout"
    return "http" if _HTTP.search(text) else None


def _entry(line: bytes) -> dict[str, Any] | None:
    stripped = line.strip()
    if len(stripped) > MAX_LINE_BYTES or not stripped.startswith(b"{"):
        return None
    try:
        entry = json.loads(stripped.decode("utf-8", "replace"))
    # Nested so deep that the parser gives up: it is no entry of the crawler.
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def _number(value: object) -> int:
    # A database column takes no number of a thousand digits.
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MAX_COUNT:
        return -1
    return value


def _moment(value: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return moment if moment is not None and moment.tzinfo is not None else None


STATISTICS_BYTES = 1024 * 1024
POISON_BYTES = 128 * 1024
FAILURE_BYTES = 64 * 1024
_EDGE_BYTES = 15 * 1024
_BLOCK_BYTES = 1024 * 1024
_SKIP_BYTES = 1024 * 1024 * 1024
_TEMP_LINE = re.compile(rb"output to tempdir:?\s*[\"']?/?output/(\.tmp[A-Za-z0-9_.-]{1,100})", re.I)


class StageLogFile(NamedTuple):
    """The three files of one stage."""

    combined: Path
    stdout: Path
    stderr: Path


def stage_log(output_dir: Path, stage: str, at: datetime) -> StageLogFile:
    """Return the names of a stage's logs; two stages of one second get different ones."""
    stem = f"archive_{stage.lower().replace(' ', '_')}_{at:%Y%m%d_%H%M%S}"
    name, number = stem, 1
    while (output_dir / f"{name}.combined.log").exists():
        number += 1
        name = f"{stem}_{number:02d}"
    return StageLogFile(*(output_dir / f"{name}.{kind}.log" for kind in ("combined", "stdout", "stderr")))


FINAL_BUILD = "Final Build"
"""The stage that makes the ZIM from WARC files; it asks the site nothing and reports no crawl statistics."""
_BUILD_LOGS = f"archive_{FINAL_BUILD.lower().replace(' ', '_')}_"


def newest_log(output_dir: Path) -> Path | None:
    """Return the combined log that was written last, or None."""
    return _newest(output_dir, "")


def newest_crawl_log(output_dir: Path) -> Path | None:
    """Return the combined log that a crawl wrote last, or None: a build's log says nothing of pages."""
    return _newest(output_dir, _BUILD_LOGS)


def _newest(output_dir: Path, but_for: str) -> Path | None:
    found = []
    try:
        for path in output_dir.glob("archive_*.combined.log"):
            if but_for and path.name.startswith(but_for):
                continue
            # The container writes here: a link could name any file of the host.
            if path.is_file() and not path.is_symlink():
                found.append((path.stat().st_mtime_ns, path.name, path))
    except OSError:
        return None
    return max(found)[2] if found else None


def tail(path: Path, count: int) -> bytes:
    """Return the last bytes of a file; nothing if it cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - count))
            return file.read(count)
    except OSError:
        return b""


def lines_backwards(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file from its end; one that is longer than a bound is passed over, whatever its length."""
    with path.open("rb") as file:
        at = os.fstat(file.fileno()).st_size
        # From the end, and no further back than a gigabyte: a log grows for weeks.
        floor = max(0, at - _SKIP_BYTES)
        rest, skipping = b"", False
        while at > floor:
            begin = max(floor, at - _BLOCK_BYTES)
            file.seek(begin)
            block = file.read(at - begin)
            at = begin
            if skipping and b"\n" not in block:
                continue
            if skipping:
                block, skipping = block[: block.rindex(b"\n")], False
            parts = (block + rest).split(b"\n")
            rest = parts[0]
            yield from (part for part in reversed(parts[1:]) if len(part) <= MAX_LINE_BYTES)
            if len(rest) > MAX_LINE_BYTES:
                rest, skipping = b"", True
        if floor == 0 and not skipping:
            yield rest


def last_statistics(path: Path) -> Statistics | None:
    """Return the newest statistics that make sense, from the last megabyte of lines; None if there are none."""
    return next(_statistics(path), None)


def _statistics(path: Path) -> Iterator[Statistics]:
    seen = 0
    try:
        for line in lines_backwards(path):
            found = read_statistics(line)
            if found is not None:
                yield found
            seen += len(line) + 1
            if seen > STATISTICS_BYTES:
                return
    except OSError:
        return


class LogProgress(NamedTuple):
    """How a crawl moves, as its log shows."""

    last: Statistics
    changed_at: datetime | None
    """When `crawled` last changed; the oldest visible event if it never did."""
    pages_per_minute: float


def read_progress(path: Path) -> LogProgress | None:
    """Return how the crawl of a log moves; None if no statistics can be seen."""
    events = list(_statistics(path))
    if not events:
        return None
    last, first = events[0], events[-1]
    changed_at = first.at
    for newer, older in pairwise(events):
        if newer.crawled != older.crawled:
            changed_at = newer.at
            break
    seconds = (last.at - first.at).total_seconds() if last.at and first.at else 0.0
    rate = (last.crawled - first.crawled) / seconds * 60 if seconds > 0 else 0.0
    return LogProgress(last, changed_at, rate)


def failure_text(output_dir: Path) -> str:
    """Return the end of the newest log without the crawler's quiet talk: what says why a run failed."""
    path = newest_log(output_dir)
    return "" if path is None else loud_text(tail(path, FAILURE_BYTES))


def last_loud_line(output_dir: Path) -> tuple[str, str] | None:
    """Return the name of the newest log and the last thing that it says loudly; None if there is no such thing."""
    path = newest_log(output_dir)
    if path is None:
        return None
    for line in reversed(tail(path, FAILURE_BYTES).split(b"\n")):
        if not may_quote_a_page(line) and (said := sentence_of(line)) is not None:
            return path.name, said
    return None


def loud_text(data: bytes) -> str:
    """Return those lines that a page cannot have written."""
    kept = [line for line in data.split(b"\n") if not may_quote_a_page(line)]
    return b"\n".join(kept).decode("utf-8", "replace")


def announced_temp_dir(log: Path, output_dir: Path) -> Path | None:
    """Return the temporary directory that a log announces, else the newest there is; None if there is none."""
    try:
        with log.open("rb") as file:
            edges = file.read(_EDGE_BYTES) + b"\n" + tail(log, _EDGE_BYTES)
    except OSError:
        edges = b""
    for match in reversed(list(_TEMP_LINE.finditer(edges))):
        path = output_dir / match.group(1).decode()
        # What a log announces is outside text: only a directory of this crawl counts.
        if is_temp_dir(path, output_dir):
            return path
    found = temp_dirs_in(output_dir)
    return found[-1] if found else None
