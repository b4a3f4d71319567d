"""Runs an execution with our own crawler: the source's configuration becomes a plan, and a supervisor crawls it."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace

from holdfast import log
from holdfast.clock import Clock
from holdfast.config import Settings
from holdfast.crawl.credentials import Credentials
from holdfast.crawl.plan import CrawlPlan
from holdfast.db.audits import append_event
from holdfast.db.engine import Database
from holdfast.errors import Invalid, Unavailable
from holdfast.frontier.queries import summary
from holdfast.jobs.adaptive import StartPage
from holdfast.jobs.endings import Ending, Result
from holdfast.jobs.executions import Begun, files_are_away, read_ending
from holdfast.jobs.leases import Lease, start_etag, start_page
from holdfast.jobs.live import queries
from holdfast.jobs.live.queries import from_json
from holdfast.jobs.plans import House, crawl_plan, job_config, start_url
from holdfast.jobs.reading import Reading, Retry, Shortfall
from holdfast.jobs.retries import Failure
from holdfast.jobs.status import Status, read_status
from holdfast.jobs.tally import Timing, counted, crawl_metrics
from holdfast.types import Outcome
from holdfast.warc import queries as files
from holdfast.wiring import Ground, open_ground
from holdfast.worker.blame import Footing, storage_trouble, tail
from holdfast.worker.discard import discard
from holdfast.worker.recovery import recover
from holdfast.worker.running import Holding, Progress, Stop
from holdfast.worker.stops import Stops
from holdfast.worker.store import open_store
from holdfast.worker.supervisor import Conclusion, Supervisor
from holdfast.worker.watch import Watch, with_cost

_log = log.get()
_LOOK_S = 0.25
_LISTED = 100
"""Addresses that could not be captured and are named in the log; the report has them all."""


class LeaseStops(Stops):
    """What a supervisor hears, from the words of its worker."""

    def __init__(self, holding: Holding, footing: Footing, clock: Clock) -> None:
        super().__init__()
        self._holding, self._footing, self._clock = holding, footing, clock
        self._looked_at = 0.0
        self.has_vanished = False
        """Whether the place that is written to is gone: then nothing waits."""

    @property
    def count(self) -> int:
        """Once for a word that drains, twice for one that does not wait."""
        word, now = self._holding.stop, self._clock.monotonic()
        if not self.has_vanished and now - self._looked_at >= _LOOK_S:
            self._looked_at, self.has_vanished = now, not self._footing.is_firm
        said = 2 if self.has_vanished else 0 if word is None else 2 if word >= Stop.NOW else 1
        return max(said, self._asked)

    @property
    def abandoned(self) -> bool:
        """Whether the lease is lost."""
        return self._holding.stop is Stop.LOST


class NativeRunner:
    """One run of one execution."""

    def __init__(self, settings: Settings, *, plan: CrawlPlan | None = None) -> None:
        """Take a plan of another's making (a poll of feeds), or make one from the source's configuration."""
        self._settings, self._given = settings, plan
        self._etag: str | None = None

    def run(self, lease: Lease, holding: Holding) -> Ending | None:
        """Crawl, as `Runner` has it."""
        plan, self._etag = self._given or plan_of(self._settings, lease), self._known_etag(lease)
        with open_ground(self._settings) as ground:
            recover(ground)
            if (trouble := _prepared(ground, lease)) is not None:
                return _infra(trouble)
            stops = LeaseStops(holding, Footing(lease.output_dir), ground.clock)
            begun = _begin(ground, lease, plan, resumes=self._given is None)
            watch = Watch(holding, lease.output_dir / "crawl.log", now=ground.clock.monotonic())
            supervisor = Supervisor(
                ground, begun, plan, workers=self._settings.worker.processes,
                show=lambda status: watch.look(status, supervisor.cost, now=ground.clock.monotonic()),
            )  # fmt: skip
            conclusion = supervisor.crawl(stops, epoch=lease.claim.epoch)
            watch.read_log()
            if holding.stop is Stop.LOST:
                return None
            if stops.has_vanished:
                return _infra(f"{lease.output_dir} has vanished while it was written to: is its storage mounted?")
            if conclusion.reading.reason == Shortfall.CRASHED and (trouble := storage_trouble(lease.output_dir)):
                return _infra(trouble, stack=tail(lease.output_dir / "crawl.log"))
            status = read_status(ground.hot, ground.clock, lease.execution_id)
            watch.look(status, conclusion.cost, now=ground.clock.monotonic())
            watch.note_metrics(status)
            return self._ending(ground, lease, holding, conclusion, status)

    def _ending(self, ground: Ground, lease: Lease, holding: Holding, conclusion: Conclusion,
                status: Status) -> Ending | None:  # fmt: skip
        """Return how it went: what was drained for the worker's sake is to be continued, the rest is over."""
        reading, counts = conclusion.reading, with_cost(status, conclusion.cost)
        if conclusion.state == "cancelled":
            return Ending(result=Result.CANCELLED, reason="discarded")
        if conclusion.state == "stopped":
            word = holding.hear()
            if word not in (Stop.FINISH, Stop.CANCEL, Stop.DISCARD):
                holding.tell(Progress(counts=counts))
                return None
            if word is Stop.DISCARD:
                _close_rest(ground, status.frontier_id, "cancelled")
                discard(ground, lease.execution_id)
                return Ending(result=Result.CANCELLED, reason="discarded")
            reading = _given_up(ground, status, word)
        stack = tail(lease.output_dir / "crawl.log") if reading.reason == Shortfall.CRASHED else None
        ending = Ending.of(reading, counts=counts, error=conclusion.error, stack=stack)
        _note_failures(ground, status.frontier_id, holding)
        return self._complete(ground, lease, status, ending)

    def _complete(self, ground: Ground, lease: Lease, status: Status, ending: Ending) -> Ending:
        """Return the ending with its metrics, its start page, and whether there is something to index."""
        with ground.hot.read() as tx:
            timing = Timing(*queries.timing(tx, execution_id=status.frontier_id))
            has_files = bool(files.files_of(tx, execution_id=lease.execution_id))
        found = summary(ground.hot, status.frontier_id)
        metrics = crawl_metrics(found, timing, requests=status.requests)
        costs = ending.counts
        ending = replace(ending, counts=replace(
            counted(found), cpu_ms=costs.cpu_ms, peak_memory_bytes=costs.peak_memory_bytes))  # fmt: skip
        if ending.reason in (Shortfall.NO_SERVER, Shortfall.NOTHING_CAPTURED):
            ending = replace(ending, error=f"nothing could be captured: {_worst(metrics)}; {ending.error}")
        if ending.rule.retry is Retry.YES:
            ending = replace(ending, not_before=ground.frontier.reachable_at(status.frontier_id))
        over = ending.result is not Result.FAILED and has_files
        start = self._start_page(lease, status.frontier_id)
        return replace(ending, metrics=metrics, start=start, index_state="pending" if over else None)

    def _start_page(self, lease: Lease, frontier_id: int) -> StartPage:
        if (url := start_url(lease.job, lease.source)) is None:
            return StartPage()
        with closing(Database(self._settings.database)) as database, database.read() as session:
            return start_page(session, execution_id=frontier_id, url=url, etag=self._etag)

    def _known_etag(self, lease: Lease) -> str | None:
        """Return the start page's ETag of earlier runs; nothing if this one may have seen the page already."""
        if (url := start_url(lease.job, lease.source)) is None or lease.resumed:
            return None
        with closing(Database(self._settings.database)) as database, database.read() as session:
            return start_etag(session, url=url)


def plan_of(settings: Settings, lease: Lease) -> CrawlPlan:
    """Return the plan of a leased execution; Invalid if its source cannot be crawled as it is configured."""
    if not settings.contact:
        raise Invalid("no contact, so nothing is crawled; give one with HOLDFAST_CONTACT")
    networks, most_s = tuple(map(str, settings.allow_networks)), settings.worker.max_time_s or None
    house = House(settings.contact, settings.user_agent, networks, most_s)
    plan = crawl_plan(job_config(lease.job, lease.source), house, number=lease.number)
    plan.build_scope()
    Credentials(plan)
    return plan


def _prepared(ground: Ground, lease: Lease) -> str | None:
    """Make the output directory and return what is wrong with it; one that holds files is never made again."""
    folder, home = lease.output_dir, ground.settings.home
    with ground.hot.read() as tx:
        ids = [lease.execution_id, *queries.runs_before(tx, execution_id=lease.execution_id)]
        is_away = files_are_away(tx, home, ids)
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


def _infra(trouble: str, *, stack: str | None = None) -> Ending:
    return Ending(
        result=Result.FAILED,
        failure=Failure.INFRA,
        reason=Shortfall.STORAGE.value,
        shortfalls={Shortfall.STORAGE.value: 1},
        error=trouble,
        stack=stack,
    )


def _begin(ground: Ground, lease: Lease, plan: CrawlPlan, *, resumes: bool) -> Begun:
    """Write the plan into the execution, with where its seeds landed before; ignoring robots.txt lands in the audit."""
    frontier_id = frontier_for(ground, lease.execution_id) if resumes else lease.execution_id
    with ground.hot.write() as tx:
        row = queries.execution(tx, lease.execution_id)
        assert row is not None
        known = queries.execution(tx, frontier_id) if frontier_id != row.id else row
        before = from_json(known.config).get("landing", ()) if known is not None else ()
        landing = tuple(from_json(row.config).get("landing", ())) or tuple(before) or plan.landing
        queries.store_config(tx, execution_id=row.id, config=json.dumps({**plan.public(), "landing": list(landing)}))
        if plan.robots == "ignore":
            append_event(tx, ground.clock, action="robots.ignored", subject=f"execution {row.id}",
                         detail={"reason": plan.robots_reason, "seeds": list(plan.seeds)})  # fmt: skip
    return Begun(
        execution_id=row.id, source_code=lease.source.code, output_dir=lease.output_dir, resumed=lease.resumed,
        run_seconds=row.run_seconds, landing=landing, goes_on_with=frontier_id if frontier_id != row.id else None,
    )  # fmt: skip


def frontier_for(ground: Ground, execution_id: int) -> int:
    """Return whose frontier a run works on: a retry goes on with that of the last run before it that had one.

    A run whose storage was away had none. What was captured is not asked again; what was left open, and what was given
    up, is. Where files with captures were struck out (quarantined, discarded), everything is asked for again.
    """
    with ground.hot.read() as tx:
        known = queries.frontier_of(tx, execution_id)
        if known != execution_id:
            return known
        chain = queries.runs_before(tx, execution_id=execution_id)
        rows = (queries.execution(tx, before) for before in chain)
        earlier = next((row for row in rows if row and queries.has_frontier(tx, execution_id=row.frontier_id)), None)
        if earlier is None or queries.has_lost_captures(tx, frontier_id=earlier.frontier_id, execution_ids=chain):
            return execution_id
    root = earlier.frontier_id
    whole = earlier.reason in (Shortfall.NO_SERVER, Shortfall.NOTHING_CAPTURED)
    reopened = ground.frontier.reopen(root, every_domain=whole)
    # Said last: if this process dies before, the next one reopens what is still closed.
    with ground.hot.write() as tx:
        queries.go_on_with(tx, execution_id=execution_id, frontier_id=root)
    _log.info("crawl.frontier_resumed", execution=execution_id, frontier=root, reopened=reopened)
    return root


def _given_up(ground: Ground, status: Status, word: Stop) -> Reading:
    """Close what will not be asked any more, because a person wants this run to end; return what it is."""
    left = ground.frontier.open_count(status.frontier_id) + ground.frontier.reread_count(status.frontier_id)
    if word is Stop.CANCEL:
        _close_rest(ground, status.frontier_id, "cancelled")
        return Reading("cancelled", "cancelled", {})
    _close_rest(ground, status.frontier_id, Shortfall.STOPPED.value)
    return read_ending(ground.hot, frontier_id=status.frontier_id, stopped=left)


def _close_rest(ground: Ground, frontier_id: int, reason: str) -> None:
    while ground.frontier.close_rest(frontier_id, outcome=Outcome.EXCLUDED, reason=reason):
        pass


def _note_failures(ground: Ground, frontier_id: int, holding: Holding) -> None:
    with ground.hot.read() as tx:
        rows = queries.failures(tx, execution_id=frontier_id, limit=_LISTED)
    for url, outcome, reason, status, message in rows:
        holding.note("warning", "fetch", f"{url}: {reason}", url=url, outcome=outcome, status=status, detail=message)


def _worst(metrics: dict[str, object]) -> str:
    errors = metrics["top_errors"]
    assert isinstance(errors, list)
    return ", ".join(f"{one['message']} ({one['count']})" for one in errors[:3]) or "no page answered"
