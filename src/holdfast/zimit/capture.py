"""Capture backends other than zimit. `http_warc` runs Holdfast's own crawler; there is no browser backend yet.

Holdfast's crawler brings robots.txt handling, politeness, the address guard, retries and resuming after a kill.
"""

from __future__ import annotations

import json
import subprocess
from collections import deque
from pathlib import Path
from typing import Any

from holdfast import log
from holdfast.clock import Clock
from holdfast.errors import HoldfastError
from holdfast.processes.runfile import own_command
from holdfast.sources.config import HTTP_WARC_OPTIONS
from holdfast.warc.reader import read_records
from holdfast.zimit.docker import ask, crawl_environment
from holdfast.zimit.errors import CaptureUnavailable
from holdfast.zimit.flags import Backend, Options
from holdfast.zimit.outcome import EndState
from holdfast.zimit.output_directory import json_object
from holdfast.zimit.passthrough import zimit_flags
from holdfast.zimit.stage import StageLog, Tools
from holdfast.zimit.warc_files import FALLBACK_NAMES, consolidate, warcs_in

_SCOPES = {"page-spa": "page", "custom": "page"}
_ANSWER_S = 30.0


def crawl_command(options: Options) -> list[str]:
    """Return the command of Holdfast's own crawler for these zimit options.

    With include patterns, only matching URLs and the seeds are in scope; exclude patterns always win.
    """
    folder = options.output_dir / FALLBACK_NAMES[0]
    words = ["crawl", *options.seeds, "--json", "--home", str(folder / "home"), "--output", str(folder / "archive")]
    given = {flag.name: flag.value or "" for flag in options.zimit}
    has_includes = not zimit_flags("--include").isdisjoint(given)
    scope = given.get("--scopeType", "prefix")
    words += ["--scope", "page" if has_includes else _SCOPES.get(scope, scope), "--depth", given.get("--depth", "-1")]
    for flag in options.zimit:
        option, value = HTTP_WARC_OPTIONS.get(flag.name, "--scope"), flag.value or ""
        is_limit = option not in ("--include", "--exclude")
        # These values mean no limit.
        if option not in ("--scope", "--depth") and not (is_limit and value in ("0", "-1")):
            words += [option, value]
    return [*own_command(*words)]


def capture(tools: Tools, backend: Backend) -> EndState:
    """Capture without zimit and give the WARC files their stable names.

    Succeeds if at least one page was fetched and at least one response is HTML. Raise `CaptureUnavailable` for a
    backend that cannot run here.
    """
    if backend is not Backend.HTTP_WARC:
        raise CaptureUnavailable(
            f"the capture backend {backend.value} is not available here yet; use http_warc, or zimit itself"
        )
    # They only affect zimit's browser or its ZIM.
    if ignored := sorted({flag.name for flag in tools.options.zimit} - HTTP_WARC_OPTIONS.keys()):
        log.get().warning("capture.flags_unheeded", backend=backend.value, flags=ignored)
    folder = tools.options.output_dir / FALLBACK_NAMES[0]
    last_lines = deque[bytes](maxlen=1)
    output = tools.create_logs(
        "http_warc_capture", lambda line: last_lines.append(line) if line.startswith(b'{"execution"') else None
    )
    folder.mkdir(exist_ok=True)
    tools.state.update()
    crawl, asked = output.start(crawl_command(tools.options), crawl_environment()), 0
    while not output.is_over:
        # A second request goes on to the crawl as well: it then hands back at once.
        asked = tools.stop_request.requests
        crawl.ask_to_end(asked)
        if not tools.stop_request.wait(tools.times.status_every):
            _note_statistics(output, tools.clock, _status(folder))
    code = crawl.wait()
    pages = _note_statistics(output, tools.clock, json_object(last_lines[-1]) if last_lines else {})
    output.close(_ANSWER_S)
    # Also after a failure: captured files get their stable names, whatever the exit code.
    captured = warcs_in([folder / "archive"])
    consolidate(tools.options.output_dir, captured, tools.clock)
    log.get().info("capture.ended", exit_code=code, pages=pages, files=len(captured))
    if asked:
        return EndState.STOPPED
    # A site that answers every request with an error page is not captured.
    good = code == 0 and pages > 0 and any(has_html(file.path) for file in captured)
    return EndState.SUCCESS if good else EndState.FAILED


def _status(folder: Path) -> Any:
    """Return the running crawl's own status; None if it does not answer."""
    command = own_command("status", "--json", "--home", str(folder / "home"))
    try:
        return json_object(ask(command, crawl_environment(), _ANSWER_S).stdout)["executions"][0]
    except (OSError, KeyError, IndexError, TypeError, subprocess.TimeoutExpired):
        return None


def _note_statistics(output: StageLog, clock: Clock, found: Any) -> int:
    """Log a status of our own crawler like zimit's statistics; return its pages, 0 if it is no status."""
    try:
        pages, queue = int(found["pages"]), int(found["queue"])
        bad = sum(count for word, count in dict(found["outcomes"]).items() if word not in ("success", "excluded"))
        hit = found.get("reason") in ("max_pages", "max_bytes", "max_time")
    except (ValueError, KeyError, TypeError, AttributeError):
        return 0
    details = {
        "crawled": pages,
        "total": pages + queue + bad,
        "pending": queue,
        "failed": bad,
        "limit": {"max": 0, "hit": hit},
        "pendingPages": [],
        "backend": Backend.HTTP_WARC.value,
        "captureMode": "http",
    }
    said = {"logLevel": "info", "context": "crawlStatus", "message": "Crawl statistics", "details": details}
    output.note(json.dumps({"timestamp": clock.now().isoformat(), **said}))
    return pages


def has_html(path: Path) -> bool:
    """Return whether a WARC file contains at least one successful HTML response."""
    try:
        for record in read_records(path, on_damage=lambda damage: None):
            if record.head.type == "response":
                head, _ = record.http()
                if 0 < head.status < 400 and "html" in (head.media_type or ""):
                    return True
            record.drain()
    except HoldfastError:
        return False
    return False
