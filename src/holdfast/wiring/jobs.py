"""Opens the management, scheduling and execution of jobs, with one clock that decides about leases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from functools import partial
from threading import Lock

from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from holdfast.clock import Clock, SystemClock
from holdfast.config import Settings
from holdfast.db import connect
from holdfast.db.audit_events import acting
from holdfast.db.engine import Database, SessionClock
from holdfast.db.raw import DatabaseClock
from holdfast.errors import Conflict, Invalid, Unavailable
from holdfast.fetch.guard import AddressGuard
from holdfast.frontier.added_urls import AddingUrls
from holdfast.jobs.administration.actions import JobActions
from holdfast.jobs.administration.adhoc_crawls import crawl_once
from holdfast.jobs.leases import ExecutionLeases
from holdfast.jobs.scheduler import Scheduler
from holdfast.jobs.settling import RunSettler
from holdfast.jobs.slots import Placement
from holdfast.jobs.specs import BackendCheck
from holdfast.sources.config import SourceConfig
from holdfast.sources.contact import known_contact
from holdfast.sources.members_file import write_noting
from holdfast.values import dataclass
from holdfast.wiring import Runtime, open_runtime, prepare
from holdfast.zimit.errors import ToolConfigRefused
from holdfast.zimit.flags import Backend, annual_caps, backend_of, check_job_config
from holdfast.zimit.passthrough import crawl_flags, with_robots


@contextmanager
def open_heartbeat(settings: Settings) -> Iterator[tuple[Runtime, ExecutionLeases]]:
    """Open the database objects of a worker's heartbeat, for its own row and its leases; for one thread."""
    with open_runtime(settings) as runtime, closing(Database(settings.database)) as database:
        settler = RunSettler(settings, Placement())
        yield runtime, ExecutionLeases(database, runtime.clock, settler, home=settings.home)


class ZimitUnguarded(Invalid):
    """zimit may not crawl in a strict environment, unless a setting accepts the risks."""

    code = "zimit_unguarded"

    def __init__(self) -> None:
        super().__init__(
            "zimit crawls without an address guard and without a pace for each request, and goes on where robots.txt "
            "cannot be fetched; crawl with the native backend, or accept that: HOLDFAST_ZIMIT_ACCEPT_UNGUARDED=true",
            field="backend",
        )


def demand_accepted(settings: Settings) -> None:
    """Raise ZimitUnguarded unless zimit may crawl here."""
    if settings.api.strict and not settings.zimit.accept_unguarded:
        raise ZimitUnguarded


def tool_config(
    config: SourceConfig,
    settings: Settings,
    *,
    most_s: float | None = None,
    contact: str | None = None,
    scoped: bool = True,
) -> SourceConfig:
    """Return the validated configuration of a zimit crawl, with the source's fields as zimit's flags (`crawl_flags`).

    Robots.txt becomes a setting of zimit's browser. Permissions are loosened unless the source configures otherwise or
    the environment is strict.
    """
    host, delay_s = settings.zimit, settings.politeness.delay_s
    flags = crawl_flags(config, host.flags, delay_s=delay_s, most_s=most_s, contact=contact, scoped=scoped)
    options = with_robots(config, {"relax_perms": not settings.api.strict, **config.zimit.tool_options})
    zimit = replace(config.zimit, passthrough_args=tuple(flags), tool_options=options)
    return check_job_config(replace(config, zimit=zimit), host)


def zimit_config(config: SourceConfig, settings: Settings) -> SourceConfig:
    """Return the validated configuration of a job's zimit crawl; raise ToolConfigRefused naming the invalid field.

    No run exceeds a worker's time limit, whatever the source configures. Raise ZimitUnguarded if the environment is
    strict and no setting accepts the risks.
    """
    try:
        # A source must not occupy a worker longer than its operator allows.
        job = tool_config(config, settings, most_s=settings.worker.max_time_s or None, contact=known_contact(settings))
        # The other backends use our own client.
        if backend_of(job.zimit.execution_policy) == Backend.BROWSERTRIX.value:
            demand_accepted(settings)
        return job
    except ToolConfigRefused as exc:
        raise exc.below("zimit") from exc


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs:
    """Open job services of one installation; for one thread."""

    settings: Settings
    database: Database
    clock: Clock
    """The database's clock."""
    placement: Placement
    actions: JobActions
    scheduler: Scheduler
    leases: ExecutionLeases


def check_backend(settings: Settings) -> BackendCheck:
    """Return a check that raises Invalid for a configuration that its backend could not run on this machine."""

    def check(config: SourceConfig) -> None:
        if config.backend == "zimit":
            zimit_config(config, settings)

    return check


def check_annual(settings: Settings) -> BackendCheck:
    """Return a check that raises Invalid for tool flags that would limit an annual crawl by pages or depth."""

    def check(config: SourceConfig) -> None:
        if config.backend != "zimit":
            return
        if caps := annual_caps(zimit_config(config, settings), settings.zimit):
            raise Invalid(f"an annual job has no caps: take away {', '.join(caps)}")

    return check


@contextmanager
def _one_first() -> Iterator[None]:
    """Raise Conflict instead of IntegrityError when another process was faster."""
    try:
        yield
    except IntegrityError as exc:
        raise Conflict("somebody else changed the same thing at this moment; look again, then repeat it") from exc


@contextmanager
def open_jobs(
    settings: Settings, *, backend_check: BackendCheck | None = None, directory: str | None = None
) -> Iterator[Jobs]:
    """Open the data directory and its database, migrated if that is necessary and safe.

    A worker passes the id of its data directory, and skips runs whose files are in another one.

    Configurations are checked with `check_backend` before anything is queued, unless `backend_check` is given. If
    two processes compete for a unique key, the block of the second raises Conflict.
    """
    prepare(settings)
    with closing(connect(settings.database)) as raw_db, closing(Database(settings.database)) as database, _one_first():
        clock = DatabaseClock(raw_db)
        placement = Placement()
        settler = RunSettler(settings, placement)
        yield Jobs(
            settings=settings,
            database=database,
            clock=clock,
            placement=placement,
            actions=JobActions(
                clock,
                placement,
                backend_check=backend_check or check_backend(settings),
                annual_check=check_annual(settings),
            ),
            scheduler=Scheduler(database, clock, settings, placement),
            leases=ExecutionLeases(database, clock, settler, home=settings.home, directory=directory),
        )


def adding_urls(
    runtime: Runtime,
    actions: JobActions,
    *,
    read: Callable[[], AbstractContextManager[Session]],
    write: Callable[[], AbstractContextManager[Session]],
) -> AddingUrls:
    """Return the object that adds URLs by hand; URLs that no run would take get a job."""
    return AddingUrls(
        runtime.frontier,
        runtime.clock,
        partial(crawl_once, actions, runtime.clock),
        read=read,
        write=write,
        guard=AddressGuard(runtime.settings.allow_networks),
    )


_WAIT_S = 10.0


class JobService:
    """Job actions of one server process; thread-safe, one caller at a time."""

    def __init__(self, database: Database, clock: Clock, settings: Settings) -> None:
        self.settings, self.database = settings, database
        # The database's clock replaces the machine's, but not a test's manual clock.
        self._server = SessionClock(clock) if isinstance(clock, SystemClock) else None
        self.clock: Clock = self._server or clock
        self._check = check_backend(settings)
        self.actions = JobActions(
            self.clock, Placement(), backend_check=self._check, annual_check=check_annual(settings)
        )
        self._lock = Lock()

    @contextmanager
    def write(self, actor: str) -> Iterator[Session]:
        """Open a short transaction in a client's name; raise Conflict if another process made the same change."""
        # Serialise calls: this process's threads share its placement and clock.
        if not self._lock.acquire(timeout=_WAIT_S):
            raise Unavailable("other changes are still being written; try again in a moment")
        try:
            with _one_first(), acting(actor), write_noting(self.database, self.settings.home) as session:
                self.look(session)
                yield session
        finally:
            self._lock.release()

    def look(self, session: Session) -> None:
        """Synchronise this process's clock with the database's, in this transaction."""
        if self._server is not None:
            self._server.look(session)

    def check(self, config: SourceConfig) -> None:
        """Raise Invalid for a configuration that its backend could not run here."""
        self._check(config)
