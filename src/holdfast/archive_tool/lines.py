"""One line of a crawl's log: statistics, an error of some class, or nothing that matters here.

What a page says can stand inside a line (its title, its console). A line counts only by the structure around that, and
one that is longer than a bound is not looked at.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

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
_QUIET_LINE = re.compile(r"\[[\w.]{1,40}::[^\]]{1,40}\] (?:INFO|DEBUG):")
"""How zimit itself writes what is no trouble."""


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
    if b'"Crawl statistics"' not in line:
        return None
    entry = _entry(line)
    if entry is None or entry.get("context") != "crawlStatus" or entry.get("message") != "Crawl statistics":
        return None
    details = entry.get("details")
    if not isinstance(details, dict):
        return None
    crawled, total = _number(details.get("crawled")), _number(details.get("total"))
    if crawled < 0 or total < 0:
        return None
    limit = details.get("limit")
    return Statistics(
        crawled=crawled, total=total, pending=_number(details.get("pending")), failed=_number(details.get("failed")),
        limit_hit=isinstance(limit, dict) and limit.get("hit") is True, at=_moment(entry.get("timestamp")),
        extra={key: details[key] for key in ("limit", "backend", "captureMode", "lastPage") if key in details},
    )  # fmt: skip


def error_class(line: bytes) -> str | None:
    """Return `timeout`, `http` or `other` for a line that reports an error, else None.

    A line of the crawler counts if it is loud about it (error or warning); one of any other program only if it names a
    known error, for a stack trace is many lines.
    """
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
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def _number(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MAX_COUNT:
        return -1
    return value


def _moment(value: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return moment if moment is not None and moment.tzinfo is not None else None
