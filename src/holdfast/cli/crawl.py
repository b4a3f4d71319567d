"""`holdfast crawl`: from seeds to sealed WARC files."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from holdfast.cli.display import Display, followed
from holdfast.cli.formatting import counted, dumps, duration, outcomes, size, text
from holdfast.cli.parameters import (
    AsJson,
    Contact,
    ExecutionId,
    Networks,
    configure_log,
    read_cookies,
    read_header,
    read_network,
    read_size,
    read_time,
)
from holdfast.cli.printing import Done, picked, runnable
from holdfast.cli.seeds import find_contact, read_seeds
from holdfast.clock import SystemClock
from holdfast.config import Settings
from holdfast.crawl.credentials import Credentials
from holdfast.crawl.recovery import RecoveryReport, open_store, recover
from holdfast.crawl.stopping import ask_to_stop, still_held
from holdfast.crawl.supervisor import Supervisor
from holdfast.errors import Invalid, Unavailable
from holdfast.frontier.politeness import MIN_DELAY_S
from holdfast.jobs import executions
from holdfast.jobs.endings import ending_text, ending_word
from holdfast.jobs.views.status import ExecutionStatus, read_status
from holdfast.processes.owners import is_working
from holdfast.sources.plan import CrawlPlan
from holdfast.storage.roots import full_path
from holdfast.urls import ScopeKind
from holdfast.warc import queries as files
from holdfast.wiring import Runtime, open_runtime


@runnable(opened=nullcontext, example="crawl https://example.org --contact you@example.org --max-pages 100")
def crawl(
    settings: Settings,
    seeds: Annotated[list[str] | None, typer.Argument(help="URLs, seed files, or - for standard input.")] = None,
    seeds_file: Annotated[list[Path] | None, typer.Option("--seeds", help="File with one URL a line.")] = None,
    scope: Annotated[ScopeKind, typer.Option(help="How far links are followed from the seeds.")] = ScopeKind.HOST,
    include: Annotated[list[str] | None, typer.Option(help="RE2 pattern of URLs to add to the scope.")] = None,
    exclude: Annotated[list[str] | None, typer.Option(help="RE2 pattern of URLs to leave out; always wins.")] = None,
    depth: Annotated[int, typer.Option(min=-1, help="Links away from a seed; -1 is unlimited.")] = 10,
    max_pages: Annotated[int | None, typer.Option(min=1, help="Stop after this many pages.")] = None,
    max_bytes: Annotated[str | None, typer.Option(help="Stop after this much, for example 500MB.")] = None,
    max_time: Annotated[str | None, typer.Option(help="Stop after this long, for example 90s, 30m, 2h.")] = None,
    delay: Annotated[float | None, typer.Option(min=0.0, help="Seconds between requests to one domain.")] = None,
    per_ip_rate: Annotated[
        float | None, typer.Option(min=0.0, help="Requests a second to one IP address; 0 is no limit.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, max=64, help="Processes to crawl with; by default as many as can be busy.")
    ] = None,
    user_agent: Annotated[str | None, typer.Option(help="Own user agent; our token and contact are added.")] = None,
    contact: Contact = None,
    sitemaps: Annotated[bool, typer.Option("--sitemaps/--no-sitemaps", help="Read sitemaps for links.")] = True,
    requisites: Annotated[bool, typer.Option("--requisites/--no-requisites", help="Fetch what pages embed.")] = True,
    header: Annotated[list[str] | None, typer.Option(help="Header for the seeds' origins, 'Name: value'.")] = None,
    cookie_file: Annotated[Path | None, typer.Option(help="Cookies in Netscape format (cookies.txt).")] = None,
    robots: Annotated[Literal["obey", "ignore"], typer.Option(help="To ignore needs a --reason (audited).")] = "obey",
    reason: Annotated[str | None, typer.Option(help="Why robots.txt is ignored.")] = None,
    allow_network: Networks = None,
    allow_invalid_tls: Annotated[bool, typer.Option(help="Accept invalid certificates; noted in the WARC.")] = False,
    allow_port: Annotated[
        list[int] | None, typer.Option(min=1, max=65535, help="Port to allow besides the usual ones.")
    ] = None,
    strip_trailing_slash: Annotated[bool, typer.Option(help="Treat /a/ and /a as one page.")] = False,
    force_https: Annotated[bool, typer.Option(help="Treat http and https as one page.")] = False,
    tracking: Annotated[
        list[str] | None, typer.Option(help="Query parameter to ignore instead of the usual ones.")
    ] = None,
    storage: Annotated[
        Literal["warc", "signals"], typer.Option(help="Store everything, or only keywords and links.")
    ] = "warc",
    output: Annotated[Path | None, typer.Option(help="Folder for the WARC files.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Only resume; never start a new crawl.")] = False,
    index: Annotated[bool, typer.Option("--index/--no-index", help="Index each file as it is sealed.")] = False,
    dry: Annotated[bool, typer.Option("--dry-run", help="Show what would be crawled first, and why.")] = False,
    json: AsJson = False,
) -> Done | None:
    """Crawl websites into sealed WARC files, politely. Run the same command again to resume an unfinished crawl."""
    # Events go to each process's log, beside its files; a person at the terminal reads sentences here, or a live
    # display that other lines would break.
    configure_log(settings, unless_set="ERROR" if sys.stderr.isatty() else "WARNING")
    if robots == "ignore" and not (reason or "").strip():
        raise Invalid("--robots ignore needs --reason TEXT, which is kept in the audit log")
    networks = [*map(str, settings.allow_networks), *map(read_network, allow_network or [])]
    plan = CrawlPlan(
        seeds=tuple(read_seeds(seeds or [], seeds_file or [], networks, allow_port or ())),
        contact=find_contact(settings, contact),
        scope=scope.value,
        include=tuple(include or ()),
        exclude=tuple(exclude or ()),
        max_depth=None if depth < 0 else depth,
        max_pages=max_pages,
        max_bytes=read_size(max_bytes),
        max_time_s=read_time(max_time),
        delay_s=settings.politeness.delay_s if delay is None else delay,
        per_ip_rate=per_ip_rate,
        user_agent=user_agent or settings.user_agent,
        sitemaps=sitemaps,
        requisites=requisites,
        headers=tuple(map(read_header, header or [])),
        cookies=read_cookies(cookie_file),
        robots=robots,
        robots_reason=reason,
        allow_networks=tuple(networks),
        allow_invalid_tls=allow_invalid_tls,
        storage=storage,
        strip_trailing_slash=strip_trailing_slash,
        force_https=force_https,
        tracking=tuple(tracking) if tracking else None,
        allow_ports=tuple(allow_port or ()),
    )
    # Check before writing: a pattern that RE2 rejects would create an execution that can never run.
    plan.check_scope()
    Credentials(plan)
    if plan.delay_s < MIN_DELAY_S:
        print(f"holdfast: a delay under {MIN_DELAY_S:g} s holds in allowed private networks only", file=sys.stderr)
    if dry:
        # Import it by name: it loads the whole fetcher and parser, which only the crawl processes need.
        found = importlib.import_module("holdfast.crawl.probing").dry_run(plan, settings)
        return Done(found, _dry_lines(found))
    with open_runtime(settings) as runtime, followed(settings) if index else nullcontext() as files:
        processes = workers or plan.busy_processes()
        status = run(runtime, plan, output=output, resume=resume, workers=processes, as_json=json, indexes=index)
    if files is not None and not json:
        print(
            f"indexed: {counted(len(files), 'file')}, {counted(sum(file['snapshots'] for file in files), 'snapshot')}"
            f"   ·   next: holdfast search WORDS"
        )
    if status.rule.exit_code:
        raise typer.Exit(status.rule.exit_code)
    return None


def run(
    runtime: Runtime, plan: CrawlPlan, *, output: Path | None, resume: bool, workers: int, as_json: bool, indexes: bool
) -> ExecutionStatus:
    """Crawl a plan to its end and print the summary; with `indexes`, the caller indexes its files."""
    # Do this first: it seals the files of a killed crawl and releases its domains before this one starts.
    recovery = recover(runtime)
    home = runtime.settings.home
    started = executions.begin(
        runtime.raw_db,
        runtime.clock,
        plan,
        executions.ExecutionOptions(home, output, resume, lambda code: open_store(home, code)),
        is_working=lambda execution_id: is_working(
            runtime.raw_db, runtime.clock, execution_id=execution_id, kind="supervisor", folder=runtime.run_folder
        ),
    )
    if started.resumed:
        print(f"resuming execution {started.execution_id}", file=sys.stderr)
    display = Display(runtime.clock, plan=plan)
    with display.running():
        status = Supervisor(runtime, started, plan, workers=workers, show=display.show).run()
    _summarise(runtime, status, recovery, resumed=started.resumed, as_json=as_json, indexes=indexes)
    return status


def _summarise(
    runtime: Runtime, status: ExecutionStatus, recovery: RecoveryReport, *, resumed: bool, as_json: bool, indexes: bool
) -> None:
    with runtime.raw_db.read() as tx:
        rows = files.files_of(tx, execution_id=status.execution_id)
    paths = [str(full_path(runtime.settings.home, row.file_key)) for row in rows]
    if as_json:
        print(dumps(as_object(status, paths, recovery, resumed=resumed)))
        return
    print(f"{status.source}: execution {status.execution_id} {ending_text(status.state, status.reason)}")
    if status.shortfalls:
        print(f"  {text(status.error or status.sentence)}")
    rate = status.pages / status.run_seconds if status.run_seconds else 0.0
    print(
        f"  {counted(status.pages, 'page')}, {counted(status.requests, 'request')}, {size(status.bytes)} in "
        f"{duration(status.run_seconds)} ({rate:.1f} pages/s)"
    )
    print(f"  {outcomes(status)}")
    if recovery.owners:
        dead = "1 dead process" if recovery.owners == 1 else f"{recovery.owners:,} dead processes"
        print(
            f"  cleaned up after {dead}: {counted(len(recovery.repaired), 'file')} sealed, "
            f"{counted(recovery.orphans, 'record')} kept that will be fetched again"
        )
    # Crawls share a domain's politeness state: if another crawl found it unreachable, this one waits, too.
    for away in runtime.frontier.unreachable(status.execution_id):
        when = f"since {away.since:%H:%M} UTC and is not tried before {away.next_try_at:%H:%M}"
        print(f"  {away.domain} is unreachable {when}; to try now: holdfast frontier reset {away.domain}")
    if status.queue:
        print(f"  {status.queue:,} still queued: the same command again resumes")
    for row, path in zip(rows, paths, strict=True):
        print(f"  {path}  {size(row.size or 0)}, {counted(row.record_count or 0, 'record')}")
    if status.config.get("storage") == "signals":
        print(f"no bodies are kept   ·   next: holdfast page search WORDS   ·   holdfast report {status.execution_id}")
    elif paths:
        # Search, replay and exports do not see a crawl until its files are indexed.
        first = "" if indexes else "holdfast index   ·   "
        print(f"next: {first}holdfast report {status.execution_id}   ·   holdfast verify {status.output_dir}")
    else:
        print(f"nothing was captured; see why with: holdfast report {status.execution_id} --urls")


def as_object(status: ExecutionStatus, paths: list[str], recovery: RecoveryReport, *, resumed: bool) -> dict[str, Any]:
    """Return the final object of `--json`."""
    names = "execution=execution_id source state reason shortfalls sentence error pages requests bytes queue outcomes"
    return {
        **picked(status, names),
        "ending": ending_word(status.state, status.reason),
        "research_ready": status.rule.is_ready,
        "resumed": resumed,
        "seconds": round(status.run_seconds, 3),
        "pages_per_s": round(status.pages / status.run_seconds, 2) if status.run_seconds else 0.0,
        "warc_files": paths,
        "output_dir": str(status.output_dir),
        "recovered": {"processes": recovery.owners, "files": recovery.repaired, "orphan_records": recovery.orphans},
    }


def _dry_lines(found: Any) -> Iterator[str]:
    for step in found.first:
        yield f"{step.order:>4}  priority {step.priority}  depth {step.depth}  {step.kind:<9}  {text(step.url)}"
        yield f"      {text(step.why)}"
    for one in found.excluded:
        yield f"      left out: {counted(one.count, 'link')} to {text(one.host)} ({one.rule})"


@runnable(opened=open_runtime, example="stop 3")
def stop(
    runtime: Runtime,
    execution: ExecutionId = None,
    cancel: Annotated[bool, typer.Option("--cancel", help="Discard the captures.")] = False,
    wait: Annotated[float, typer.Option(min=0.0, help="Seconds to wait for the end.")] = 60.0,
) -> Done:
    """Ask running crawls to stop: they finish running requests and seal their files. `--cancel` discards instead.

    A crawl ends where it runs, on whatever machine: this command marks its row, and waits.
    """
    states = _wait(runtime, ask_to_stop(runtime, execution_id=execution, cancel=cancel), wait)
    lines = [f"execution {execution_id}: {state}" for execution_id, state in states.items()]
    return Done({"executions": states}, lines)


def _wait(runtime: Runtime, ids: list[int], seconds: float) -> dict[int, str]:
    """Return the states of the executions once all have ended; Unavailable names the process that ends the others."""
    clock = SystemClock()
    until = clock.monotonic() + seconds
    while held := still_held(runtime, ids):
        # Waiting for a silent process would never end: the sentence says who has to act.
        may_end = any(one.holder is not None and not one.is_silent for one in held)
        if not may_end or clock.monotonic() >= until:
            raise Unavailable("; ".join(one.sentence() for one in held))
        time.sleep(0.2)
    return {one: read_status(runtime.raw_db, runtime.clock, one).state for one in ids}
