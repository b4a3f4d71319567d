"""The logs of a crawl on disk: their names, last lines, and the progress and temporary directory they report."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import field
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from holdfast.values import dataclass
from holdfast.zimit.output_directory import is_temp_dir, json_object, temp_dirs_in

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
    *("pageStatus", "jsError", "behavior", "behaviorScript", "behaviorScriptCustom"),
    *("links", "fetch", "text"),
)
_LOUD = ("error", "warn", "warning", "fatal")
# zimit's own lines that report no problem.
_QUIET_LINE = re.compile(r"\[[\w.]{1,40}::[^\]]{1,40}\] (?:INFO|DEBUG):")


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    crawled: int
    total: int
    pending: int = -1
    failed: int = -1
    limit_hit: bool = False
    at: datetime | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    """`limit`, `backend`, `captureMode` and `lastPage`, where present."""

    @property
    def is_complete(self) -> bool:
        done = self.crawled + max(self.failed, 0)
        return self.crawled > 0 and self.pending == 0 and (done >= self.total or self.limit_hit)

    def as_json(self) -> dict[str, Any]:
        counts = {"crawled": self.crawled, "total": self.total, "pending": self.pending, "failed": self.failed}
        return {**{key: value for key, value in counts.items() if value >= 0}, **self.extra}


def read_statistics(line: bytes) -> Statistics | None:
    """Return the statistics that a line reports, or None; `crawled` and `total` must be present and plausible."""
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

    A crawler line counts if its level is error or warning. A line of any other program counts only if it names a
    known error, because a stack trace has many lines.
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
    details, said = _sentences(entry)
    status = _number(details.get("status", details.get("statusCode")))
    found = _class_of(" ".join(said))
    return found or ("http" if 400 <= status <= 599 else "other")


def may_quote_a_page(line: bytes) -> bool:
    """Return whether a line may contain text from a page: a low-level crawler entry, or a script error."""
    entry = _entry(line)
    if entry is None:
        return False
    return str(entry.get("logLevel", "")).lower() not in ("error", "fatal") or entry.get("context") in _PAGE_CONTEXTS


def sentence_of(line: bytes) -> str | None:
    """Return the human-readable message of a log line: an entry's message, else the line; or None."""
    entry = _entry(line)
    if entry is None:
        text = line[:_MAX_TEXT].decode("utf-8", "replace").strip()
        return text if text and not _QUIET_LINE.match(text) else None
    return ": ".join(one.strip() for one in _sentences(entry)[1] if one.strip()) or None


def _sentences(entry: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the details of a log entry, and its messages."""
    details = entry.get("details")
    details = details if isinstance(details, dict) else {}
    said = (entry.get("message"), details.get("msg"), details.get("message"), details.get("error"))
    return details, [one[:_MAX_TEXT] for one in said if isinstance(one, str)]


def _class_of(text: str) -> str | None:
    if _TIMEOUT.search(text):
        return "timeout"
    return "http" if _HTTP.search(text) else None


def _entry(line: bytes) -> dict[str, Any] | None:
    stripped = line.strip()
    if len(stripped) > MAX_LINE_BYTES or not stripped.startswith(b"{"):
        return None
    return json_object(stripped.decode("utf-8", "replace")) or None


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


def stage_log(output_dir: Path, stage: str, at: datetime) -> Path:
    """Return the name of a stage's combined log; two stages within one second get different names."""
    stem = f"archive_{stage.lower().replace(' ', '_')}_{at:%Y%m%d_%H%M%S}"
    name, number = stem, 1
    while (output_dir / f"{name}.combined.log").exists():
        number += 1
        name = f"{stem}_{number:02d}"
    return output_dir / f"{name}.combined.log"


def stream_log(combined: Path, stream: str) -> Path:
    """Return the name of the log of one output, `stdout` or `stderr`, beside the combined one."""
    return combined.with_name(combined.name.removesuffix("combined.log") + f"{stream}.log")


FINAL_BUILD = "Final Build"
"""The stage that builds the ZIM from WARC files; it sends no requests and reports no crawl statistics."""
_BUILD_LOGS = f"archive_{FINAL_BUILD.lower().replace(' ', '_')}_"


def newest_log(output_dir: Path, *, crawls_only: bool = False) -> Path | None:
    """Return the newest combined log, or None; builds of a ZIM may be left out, because they report no pages."""
    found = []
    try:
        for path in output_dir.glob("archive_*.combined.log"):
            if crawls_only and path.name.startswith(_BUILD_LOGS):
                continue
            # The container writes here: a link could name any file of the host.
            if path.is_file() and not path.is_symlink():
                found.append((path.stat().st_mtime_ns, path.name, path))
    except OSError:
        return None
    return max(found)[2] if found else None


def crawl_statistics(output_dir: Path) -> Statistics | None:
    log = newest_log(output_dir, crawls_only=True)
    return None if log is None else last_statistics(log)


def tail(path: Path, count: int) -> bytes:
    """Return the last `count` bytes of a file; empty if it cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - count))
            return file.read(count)
    except OSError:
        return b""


def lines_backwards(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file from its end; skip lines longer than a fixed limit."""
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


def read_progress(path: Path) -> tuple[int, datetime | None, float] | None:
    """Return the pages, when their number last changed (else the oldest event), and pages a minute."""
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
    return last.crawled, changed_at, rate


def _loud_lines(path: Path | None) -> list[bytes]:
    lines = [] if path is None else tail(path, FAILURE_BYTES).split(b"\n")
    return [line for line in lines if not may_quote_a_page(line)]


def failure_text(path: Path | None) -> str:
    """Return the end of a log without lines that may contain text from a page, to explain why a run failed."""
    return b"\n".join(_loud_lines(path)).decode("utf-8", "replace")


def last_loud_line(output_dir: Path) -> tuple[str, str] | None:
    """Return the name of the newest log and its last warning or error; None if it has none."""
    path = newest_log(output_dir)
    said = next((said for line in reversed(_loud_lines(path)) if (said := sentence_of(line)) is not None), None)
    return None if path is None or said is None else (path.name, said)


def announced_temp_dir(log: Path, output_dir: Path) -> Path | None:
    """Return the temporary directory that a log announces, else the newest existing one, else None."""
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
