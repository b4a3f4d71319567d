"""Runs an execution with our own crawler: turns the source's configuration into a plan, and supervises the crawl."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from holdfast import log
from holdfast.clock import Clock
from holdfast.config import Settings
from holdfast.crawl.credentials import Credentials
from holdfast.crawl.recovery import discard, open_store, recover
from holdfast.crawl.stopping import Stops
from holdfast.crawl.supervisor import Conclusion, Cost, Supervisor
from holdfast.db.engine import Database
from holdfast.errors import Unavailable
from holdfast.frontier import Summary
from holdfast.frontier.queries import failures, has_frontier, summary
from holdfast.jobs import execution_queries
from holdfast.jobs.endings import Counts, FailureCause, Retry, RunEnding, RunReading, RunResult, Shortfall, StartPage
from holdfast.jobs.execution_queries import from_json
from holdfast.jobs.executions import StartedRun, files_are_away, read_ending
from holdfast.jobs.leases import ExecutionLease, start_etag, start_page
from holdfast.jobs.specs import job_config, start_url
from holdfast.jobs.views.status import ExecutionStatus, read_status
from holdfast.processes.disk import MountIdentity, storage_trouble
from holdfast.sources.contact import contact_of
from holdfast.sources.plan import CrawlDefaults, CrawlPlan, crawl_plan
from holdfast.types import Outcome, UrlKind
from holdfast.warc import queries as files
from holdfast.wiring import Runtime, open_runtime
from holdfast.worker.runner import GrowingLog, RunnerHolding, StopReason, audit_ignored_robots, read_event, tail

_TOP: Final = 10
_CAPTURED: Final = (Outcome.SUCCESS.value,)
_RULED_OUT: Final = (Outcome.EXCLUDED.value, Outcome.BLOCKED_ROBOTS.value)
# The reason for a response that a source without bodies skips.
_UNSUPPORTED: Final = "unsupported_type"


def counts_of(outcomes: Mapping[str, int], *, pages: int, queue: int) -> Counts:
    failed = sum(count for word, count in outcomes.items() if word not in (*_CAPTURED, *_RULED_OUT))
    return Counts(items_crawled=pages, items_failed=failed, items_total=sum(outcomes.values()) + queue)


def counted(summary: Summary) -> Counts:
    """Return the final counts of an execution from its rows: a killed process may have reported too many."""
    crawled = summary.kinds.get((UrlKind.PAGE.value, Outcome.SUCCESS.value), 0) - summary.redirects
    return counts_of(summary.outcomes, pages=crawled, queue=summary.open)


def crawl_metrics(summary: Summary, *, requests: int) -> dict[str, Any]:
    failed: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for (outcome, reason), count in summary.reasons.items():
        if outcome not in (*_CAPTURED, *_RULED_OUT, "open"):
            failed[outcome] += count
            reasons[reason] += count
    too_deep = sum(count for (rule, _host), count in summary.exclusions.items() if rule == "max_depth")
    robots = summary.outcomes.get(Outcome.BLOCKED_ROBOTS.value, 0)
    # A captured page was not skipped, whatever its type: only a source without bodies skips types.
    other = sum(count for (_outcome, reason), count in summary.reasons.items() if reason == _UNSUPPORTED)
    return {
        "status_codes": {str(code): count for code, count in sorted(summary.statuses.items())},
        "requests_total": requests,
        "requests_failed": failed.total(),
        "bytes_downloaded": summary.wire_bytes,
        "rate_limits": summary.statuses.get(429, 0),
        "error_categories": dict(failed),
        "top_errors": [{"message": reason, "count": count} for reason, count in reasons.most_common(_TOP)],
        "response_time": dict(zip(("avg_ms", "min_ms", "max_ms"), summary.response_ms, strict=True)),
        "skipped": {"non_html": other, "max_depth": too_deep, "robots_txt": robots},
    }


_METRICS_S: Final = 30.0
_RATE_EVENTS: Final = ("crawl.retry_after_clamped", "robots.delay_capped", "crawl.domain_waits")
_QUEUE_EVENTS: Final = ("crawl.lease_expires", "crawl.lease_over", "crawl.stray_leases", "crawl.release_later")
_TROUBLE: Final = ("failed", "timeout", "blocked_4xx", "blocked_5xx", "blocked_robots")


class CrawlWatch:
    """Reports the supervisor's status and the crawl processes' log; used by the runner's thread."""

    def __init__(self, holding: RunnerHolding, log_path: Path, *, now: float) -> None:
        self._holding, self._log = holding, GrowingLog(log_path, _size(log_path))
        self._outcomes: dict[str, int] = {}
        self._slow: set[str] = set()
        self._condition = "running"
        self._metrics_at = now

    def look(self, status: ExecutionStatus, cost: Cost, *, now: float) -> None:
        self.read_log()
        if status.condition != self._condition:
            self._condition = status.condition
            level = "error" if status.condition == "no_space" else "info"
            trouble = f": {status.trouble}" if status.trouble else ""
            self._holding.note(level, "lifecycle", f"the crawl is {status.condition}{trouble}")
        worse = {word: status.outcomes.get(word, 0) - self._outcomes.get(word, 0) for word in _TROUBLE}
        if new := {word: count for word, count in worse.items() if count > 0}:
            self._holding.note("warning", "fetch", "pages that could not be captured", **new)
        self._outcomes = dict(status.outcomes)
        self._note_slow(status)
        if now - self._metrics_at >= _METRICS_S:
            self._metrics_at = now
            self.note_metrics(status)
        self._holding.progress(with_cost(status, cost))

    def note_metrics(self, status: ExecutionStatus) -> None:
        self._holding.note(
            "info",
            "metrics",
            "totals so far",
            pages=status.pages,
            requests=status.requests,
            bytes=status.bytes,
            pages_s=round(status.pages_s, 2),
            outcomes=status.outcomes,
        )
        self._holding.note("info", "queue", "queue", open=status.queue, active_domains=status.active_domains)

    def _note_slow(self, status: ExecutionStatus) -> None:
        slow = {str(row["domain"]): row for row in status.slow}
        for domain in sorted(slow.keys() - self._slow):
            row = slow[domain]
            self._holding.note("info", "rate_limit", f"{domain}: {row['why']}", domain=domain, seconds=row["seconds"])
        self._slow = set(slow)

    def read_log(self) -> None:
        """Pass on new events from the processes' logs."""
        for line in self._log.new_lines():
            if (event := read_event(line)) is not None:
                self._pass_on(*event)

    def _pass_on(self, level: str, name: str, fields: Mapping[str, Any]) -> None:
        if name in _RATE_EVENTS:
            category = "rate_limit"
        elif name in _QUEUE_EVENTS:
            category = "queue"
        elif level == "error":
            category = "error"
        else:
            category = "fetch" if name.startswith(("robots.", "crawl.seed", "crawl.domain")) else "lifecycle"
        self._holding.note(level, category, name, **{"event_fields": fields} if fields else {})


def with_cost(status: ExecutionStatus, cost: Cost) -> Counts:
    counts = counts_of(status.outcomes, pages=status.pages, queue=status.queue)
    cpu_s, peak_bytes = cost
    return replace(counts, cpu_ms=round(cpu_s * 1000), peak_memory_bytes=peak_bytes or None)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


_log = log.get()
_LOOK_S = 0.25
# Limit of failed URLs in the log; the report has all of them.
_LISTED = 100


class LeaseStops(Stops):
    """Stop requests for a supervisor, from the stop reason of its run."""

    def __init__(self, holding: RunnerHolding, mount: MountIdentity, clock: Clock) -> None:
        super().__init__()
        self._holding, self._mount, self._clock = holding, mount, clock
        self._looked_at = 0.0
        self.has_vanished = False
        """Whether the place that is written to is gone: then nothing waits."""

    @property
    def count(self) -> int:
        """1 for a reason that drains, 2 for one that does not wait."""
        word, now = self._holding.stop, self._clock.monotonic()
        if not self.has_vanished and now - self._looked_at >= _LOOK_S:
            self._looked_at, self.has_vanished = now, not self._mount.is_same
        # Stop at once if the directory is gone: writes would only fail, or fill the disk below the mount.
        requests = 2 if self.has_vanished else 0 if word is None else 2 if word >= StopReason.NOW else 1
        return max(requests, self._asked)

    @property
    def abandoned(self) -> bool:
        return self._holding.stop is StopReason.LOST


class NativeRunner:
    def __init__(self, settings: Settings, *, plan: CrawlPlan | None = None) -> None:
        """Use a given plan (a poll of feeds), or by default one from the source's configuration."""
        self._settings, self._given = settings, plan
        self._etag: str | None = None

    def run(self, lease: ExecutionLease, holding: RunnerHolding) -> RunEnding | None:
        plan, self._etag = self._given or plan_of(self._settings, lease), self._known_etag(lease)
        # A runner has its own thread, so it needs its own connections.
        with open_runtime(self._settings) as runtime:
            # A process of an earlier holder may have left open files and leased domains.
            recover(runtime)
            if (trouble := _prepared(runtime, lease)) is not None:
                return _infra(trouble)
            stops = LeaseStops(holding, MountIdentity(lease.output_dir), runtime.clock)
            started = _begin(runtime, lease, plan, resumes=self._given is None)
            watch = CrawlWatch(holding, lease.output_dir / "crawl.log", now=runtime.clock.monotonic())
            supervisor = Supervisor(
                runtime,
                started,
                plan,
                workers=self._settings.worker.processes,
                show=lambda status: watch.look(status, supervisor.cost, now=runtime.clock.monotonic()),
            )
            conclusion = supervisor.crawl(stops, epoch=lease.claim.epoch)
            watch.read_log()
            # Another worker holds the rows now: read and return nothing.
            if holding.stop is StopReason.LOST:
                return None
            if stops.has_vanished:
                return _infra(f"{lease.output_dir} has vanished while it was written to: is its storage mounted?")
            # Processes that keep dying on a broken disk are the machine's fault: no retry is used up.
            if conclusion.reading.reason == Shortfall.CRASHED and (trouble := storage_trouble(lease.output_dir)):
                return _infra(trouble, stack=tail(lease.output_dir / "crawl.log"))
            status = read_status(runtime.raw_db, runtime.clock, lease.execution_id)
            watch.look(status, conclusion.cost, now=runtime.clock.monotonic())
            watch.note_metrics(status)
            return self._ending(runtime, lease, holding, conclusion, status)

    def _ending(
        self,
        runtime: Runtime,
        lease: ExecutionLease,
        holding: RunnerHolding,
        conclusion: Conclusion,
        status: ExecutionStatus,
    ) -> RunEnding | None:
        """Return the ending; None for a run drained because the worker ends, which will continue."""
        reading, counts = conclusion.reading, with_cost(status, conclusion.cost)
        if conclusion.state == "cancelled":
            return RunEnding(result=RunResult.CANCELLED, reason="discarded")
        if conclusion.state == "stopped":
            # Poll once more: an operator's latest stop must not be taken for the worker's own drain.
            word = holding.poll_signals()
            if word not in (StopReason.FINISH, StopReason.CANCEL, StopReason.DISCARD):
                holding.tell(counts)
                return None
            if word is StopReason.DISCARD:
                runtime.frontier.close_all(status.frontier_id, "cancelled")
                discard(runtime, lease.execution_id)
                return RunEnding(result=RunResult.CANCELLED, reason="discarded")
            reading = _given_up(runtime, status, word)
        stack = tail(lease.output_dir / "crawl.log") if reading.reason == Shortfall.CRASHED else None
        ending = RunEnding.of(reading, counts=counts, error=conclusion.error, stack=stack)
        _note_failures(runtime, status.frontier_id, holding)
        return self._complete(runtime, lease, status, ending)

    def _complete(
        self, runtime: Runtime, lease: ExecutionLease, status: ExecutionStatus, ending: RunEnding
    ) -> RunEnding:
        with runtime.raw_db.read() as tx:
            has_files = bool(files.files_of(tx, execution_id=lease.execution_id))
        found = summary(runtime.raw_db, status.frontier_id)
        metrics = crawl_metrics(found, requests=status.requests)
        costs = ending.counts
        ending = replace(
            ending, counts=replace(counted(found), cpu_ms=costs.cpu_ms, peak_memory_bytes=costs.peak_memory_bytes)
        )
        if ending.reason in (Shortfall.NO_SERVER, Shortfall.NOTHING_CAPTURED):
            ending = replace(ending, error=f"nothing could be captured: {_worst(metrics)}; {ending.error}")
        # A retry before the hosts may be requested again would occupy a worker for up to an hour without a request.
        if ending.rule.retry is Retry.YES:
            ending = replace(ending, not_before=runtime.frontier.reachable_at(status.frontier_id))
        over = ending.result is not RunResult.FAILED and has_files
        start = self._start_page(lease, status.frontier_id)
        return replace(ending, metrics=metrics, start=start, index_state="pending" if over else None)

    def _start_page(self, lease: ExecutionLease, frontier_id: int) -> StartPage:
        if (url := start_url(lease.job, lease.source)) is None:
            return StartPage()
        with closing(Database(self._settings.database)) as database, database.read() as session:
            return start_page(session, execution_id=frontier_id, url=url, etag=self._etag)

    def _known_etag(self, lease: ExecutionLease) -> str | None:
        """Return the start page's ETag of earlier runs; None for a resumed run, which may have fetched it itself."""
        if (url := start_url(lease.job, lease.source)) is None or lease.resumed:
            return None
        with closing(Database(self._settings.database)) as database, database.read() as session:
            return start_etag(session, url=url)


def plan_of(settings: Settings, lease: ExecutionLease) -> CrawlPlan:
    """Return the plan of a leased execution; raise Invalid if its source cannot be crawled as configured."""
    networks, most_s = tuple(map(str, settings.allow_networks)), settings.worker.max_time_s or None
    defaults = CrawlDefaults(contact_of(settings), settings.user_agent, networks, most_s, settings.politeness.delay_s)
    plan = crawl_plan(job_config(lease.job, lease.source), defaults, number=lease.number)
    plan.build_scope()
    # An invalid header or cookie fails the run here as a configuration error, instead of failing every page.
    Credentials(plan)
    return plan


def _prepared(runtime: Runtime, lease: ExecutionLease) -> str | None:
    """Create the output directory, or return an error; never recreates one that had files."""
    folder, home = lease.output_dir, runtime.settings.home
    with runtime.raw_db.read() as tx:
        ids = [lease.execution_id, *execution_queries.runs_before(tx, execution_id=lease.execution_id)]
        is_away = files_are_away(tx, home, ids, folder=folder)
    # A crawl would write a second copy of everything into the empty directory below a lost mount.
    if is_away:
        return f"{folder} has none of the files that were written there: is its storage mounted?"
    try:
        open_store(home, lease.source.code)
        folder.mkdir(parents=True, exist_ok=True)
    except Unavailable as exc:
        return str(exc)
    except OSError as exc:
        return f"{folder} cannot be made: {exc.strerror or exc}"
    return storage_trouble(folder)


def _infra(trouble: str, *, stack: str | None = None) -> RunEnding:
    return RunEnding(
        result=RunResult.FAILED,
        failure=FailureCause.INFRA,
        reason=Shortfall.STORAGE.value,
        shortfalls={Shortfall.STORAGE.value: 1},
        error=trouble,
        stack=stack,
    )


def _begin(runtime: Runtime, lease: ExecutionLease, plan: CrawlPlan, *, resumes: bool) -> StartedRun:
    """Write the plan into the execution, including earlier landings of its seeds; audit if it ignores robots.txt."""
    frontier_id = frontier_for(runtime, lease.execution_id) if resumes else lease.execution_id
    with runtime.raw_db.write() as tx:
        row = execution_queries.execution(tx, lease.execution_id)
        assert row is not None
        known = execution_queries.execution(tx, frontier_id) if frontier_id != row.id else row
        own, before = from_json(row.config), from_json(known.config) if known is not None else {}
        # The scope includes where seeds redirected: a retry without that would skip what the first run followed, and
        # one without the added rules would request what an operator excluded.
        landing = tuple(own.get("landing", ())) or tuple(before.get("landing", ())) or plan.landing
        exclusions = own.get("exclusions") or before.get("exclusions") or []
        added = {"landing": list(landing), **({"exclusions": exclusions} if exclusions else {})}
        execution_queries.store_config(tx, execution_id=row.id, config=json.dumps({**plan.public(), **added}))
        log_path = str(lease.output_dir / "crawl.log")
        execution_queries.note_artifacts(tx, execution_id=row.id, found={"combined_log": log_path})
        audit_ignored_robots(tx, runtime.clock, row.id, plan)
    return StartedRun(
        execution_id=row.id,
        source_code=lease.source.code,
        output_dir=lease.output_dir,
        resumed=lease.resumed,
        run_seconds=row.run_seconds,
        landing=landing,
        goes_on_with=frontier_id if frontier_id != row.id else None,
    )


def frontier_for(runtime: Runtime, execution_id: int) -> int:
    """Return whose frontier a run uses: a retry continues that of the last run before it that had one.

    A run whose storage was unreachable had none. Captured URLs are not requested again; open and failed ones are.
    If files with captures were discarded (for example quarantined), everything is requested again.
    """
    with runtime.raw_db.read() as tx:
        known = execution_queries.frontier_of(tx, execution_id)
        if known != execution_id:
            return known
        chain = execution_queries.runs_before(tx, execution_id=execution_id)
        rows = (execution_queries.execution(tx, before) for before in chain)
        earlier = next((row for row in rows if row and has_frontier(tx, execution_id=row.frontier_id)), None)
        if earlier is None or execution_queries.has_lost_captures(
            tx, frontier_id=earlier.frontier_id, execution_ids=chain
        ):
            return execution_id
    root = earlier.frontier_id
    whole = earlier.reason in (Shortfall.NO_SERVER, Shortfall.NOTHING_CAPTURED)
    reopened = runtime.frontier.reopen(root, every_domain=whole)
    if earlier.reason == Shortfall.STOPPED:
        reopened += runtime.frontier.reopen_left_over(root)
    # Write this last: if this process dies before, the next one reopens the rest.
    with runtime.raw_db.write() as tx:
        execution_queries.go_on_with(tx, execution_id=execution_id, frontier_id=root)
    _log.info("crawl.frontier_resumed", execution=execution_id, frontier=root, reopened=reopened)
    return root


def _given_up(runtime: Runtime, status: ExecutionStatus, word: StopReason) -> RunReading:
    """Close the remaining URLs because a person wants this run to end; return its reading."""
    left = runtime.frontier.open_count(status.frontier_id) + runtime.frontier.reread_count(status.frontier_id)
    if word is StopReason.CANCEL:
        runtime.frontier.close_all(status.frontier_id, "cancelled")
        return RunReading("cancelled", "cancelled", {})
    runtime.frontier.close_all(status.frontier_id, Shortfall.STOPPED.value)
    return read_ending(runtime.raw_db, runtime.settings.home, execution_id=status.execution_id, stopped=left)


def _note_failures(runtime: Runtime, frontier_id: int, holding: RunnerHolding) -> None:
    rows = failures(runtime.raw_db, execution_id=frontier_id, limit=_LISTED)
    for url, outcome, reason, status, message in rows:
        holding.note("warning", "fetch", f"{url}: {reason}", url=url, outcome=outcome, status=status, detail=message)


def _worst(metrics: dict[str, object]) -> str:
    errors = metrics["top_errors"]
    assert isinstance(errors, list)
    return ", ".join(f"{one['message']} ({one['count']})" for one in errors[:3]) or "no page answered"
