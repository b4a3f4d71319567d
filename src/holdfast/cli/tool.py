"""`holdfast tool`: use `archive-tool` manually: check it, crawl without a job, run a job, register a directory."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast import config
from holdfast.cli.formatting import dumps, table
from holdfast.cli.parameters import (
    Apply,
    AsJson,
    Contact,
    Home,
    Networks,
    SourceCode,
    command_group,
    read_assignments,
)
from holdfast.cli.printing import described, picked
from holdfast.cli.resource import Done, Writing, command
from holdfast.cli.runner import example
from holdfast.cli.seeds import check_reachable, find_contact
from holdfast.clock import SystemClock
from holdfast.config import Settings
from holdfast.crawl.probing import Look, ask_plainly, find_browser, plain_look, probe
from holdfast.crawl.stopping import obeying_signals
from holdfast.errors import Conflict, Invalid, NotFound
from holdfast.jobs.administration.maintenance import attach_zim, make_due
from holdfast.jobs.imports import register_directory
from holdfast.jobs.specs import JobSpec
from holdfast.jobs.store import JobNotFound
from holdfast.jobs.views.listing import execution as one_execution
from holdfast.sources.config import read_config
from holdfast.sources.plan import CrawlPlan
from holdfast.sources.queries import find_source
from holdfast.sources.registry import config_of
from holdfast.types import FetchFailed
from holdfast.urls import parse_seed
from holdfast.wiring.jobs import Jobs, demand_accepted, open_jobs, tool_config
from holdfast.worker.after_crawl import AfterCrawl
from holdfast.worker.loop import RUNNERS, RunnerTable, WorkerOptions, work
from holdfast.worker.zimit import environment_of
from holdfast.zimit.docker import Docker, Times, ask, find_program
from holdfast.zimit.errors import DockerMissing, ToolMissing
from holdfast.zimit.flags import read_name, tool_command
from holdfast.zimit.output_directory import holder_of, last_end
from holdfast.zimit.passthrough import strip_separator
from holdfast.zimit.warc_files import discover_warcs, source_of

app_command = command_group("archive-tool by hand. Example: holdfast tool run --name test --seeds https://example.org")
_job_command = partial(command, app_command, opened=open_jobs)
_command = partial(command, app_command, opened=nullcontext)
"""Of a function that takes the settings."""
_ANSWER_S = 60.0
_LINES = 3


@_command("probe", is_quiet=True, example="probe-browser-fetch https://example.org/")
def probe_browser_fetch(
    settings: Settings,
    address: Annotated[str, typer.Argument(help="The page.", metavar="URL")],
    program: Annotated[str | None, typer.Option(help="The browser; chromium if it is found.")] = None,
    allow_network: Networks = None,
    contact: Contact = None,
) -> Done:
    """Fetch one page with our own client and with a browser, and compare; exit 1 if the browser does not get it.

    It distinguishes a site that rejects crawlers from one that is down, before a source is switched to zimit. The
    browser reaches no host but the page's own, so pictures from other hosts are missing.
    """
    browser = find_browser(program)
    # Use the guard of a crawl: a probe must not reach into a private network either.
    networks = check_reachable(settings, [address], allow_network)
    url, who = parse_seed(address), find_contact(settings, contact)
    answer = asyncio.run(ask_plainly(settings, url, contact=who, networks=networks))
    plain = plain_look(answer)
    # The browser is pinned to the address that our own client reached: without one, do not start it.
    if isinstance(answer, FetchFailed):
        seen = Look(ok=False, seconds=0.0, error="not requested: our own client reached no address")
    else:
        agent = CrawlPlan(seeds=(url.fetch,), contact=who).agent()
        seen = probe(settings, answer.url, answer, browser, SystemClock(), agent=agent)
    rows = [
        (name, "yes" if one.ok else "NO", one.status, one.bytes, f"{one.seconds:.1f}", one.title, one.error)
        for name, one in (("our client", plain), ("browser", seen))
    ]
    facts = {"url": url.fetch, "program": browser, "plain": plain, "browser": seen}
    return Done(facts, table(("", "got it", "status", "bytes", "seconds", "title", "trouble"), rows), seen.ok)


@_command(example="check-archive-tool")
def check(settings: Settings) -> Done:
    """Check whether archive-tool can be started, and whether docker responds; exit 1 if the tool cannot."""
    program = find_program(settings.zimit.command)
    try:
        asked = ask([*program, "--help"], os.environ, _ANSWER_S)
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise ToolMissing(settings.zimit.command, str(exc)) from exc
    try:
        docker = f"{Docker(Times()).check()}, engine {Docker(Times()).daemon()}"
    except DockerMissing as exc:
        docker = str(exc)
    facts = {
        "command": settings.zimit.command,
        "program": program[0],
        "exit_code": asked.returncode,
        "image": settings.zimit.image,
        "docker": docker,
    }
    is_success = asked.returncode == 0
    return Done(facts, None, is_success, () if is_success else asked.stderr.strip().splitlines()[-_LINES:])


@app_command.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
@example("run-job --name test --seeds https://example.org -- --scopeType host --pageLimit 10")
def run(
    context: typer.Context,
    name: Annotated[str, typer.Option(help="Name of the crawl and of its ZIM file.")],
    seeds: Annotated[list[str], typer.Option(help="Where it begins; several, or repeated.", metavar="URL")],
    output_dir: Annotated[Path | None, typer.Option(help="Where it writes; new if left out.")] = None,
    initial_workers: Annotated[int, typer.Option(min=1, help="Browser workers.")] = 1,
    option: Annotated[list[str] | None, typer.Option("--tool-option", help="NAME=VALUE; repeatable.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the tool's plan, start nothing.")] = False,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Run archive-tool now, without a job; other flags go to zimit, after `--` or not. Exits with the tool's code.

    It obeys robots.txt and waits a second between pages, unless its flags say otherwise. Register its captures
    with: holdfast tool register
    """
    settings = config.load(home=home)
    demand_accepted(settings)
    options = {
        "initial_workers": initial_workers,
        "skip_final_build": True,
        **read_assignments(option or [], "--tool-option"),
    }
    host, (more, given) = settings.zimit, _split(context.args)
    content = {"seeds": [*seeds, *more], "zimit": {"passthrough_args": given, "tool_options": options}}
    made = tool_config(read_config(content), settings, scoped=False)
    stamp = f"{SystemClock().now():%Y%m%dT%H%M%SZ}"
    folder = (output_dir or settings.home.resolve() / "jobs" / f"{stamp}__{read_name(name)}").resolve()
    if not dry_run:
        folder.parent.mkdir(parents=True, exist_ok=True)
    program = find_program(host.command)
    command = tool_command(made, host, name=name, output_dir=folder, program=program)
    command += ["--dry-run"] if dry_run else []
    print(f"output directory: {folder}", file=sys.stderr)
    # Run it in our own process group: Ctrl-C then reaches the tool, which stops its container and keeps its files.
    out = sys.stderr if json else None
    with subprocess.Popen(command, env=environment_of(settings, os.environ), stdout=out) as process:
        while True:
            try:
                code = process.wait()
                break
            except KeyboardInterrupt:
                continue
    if json:
        end = last_end(folder)
        print(dumps({"exit_code": code, "output_dir": folder, "state": end and end[0]}))
    raise typer.Exit(code if code >= 0 else 1)


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    """Return additional seeds (`--seeds A B`, which archive-tool itself accepts), and the words for zimit."""
    count = next((at for at, word in enumerate(words) if word.startswith("-")), len(words))
    return words[:count], strip_separator(words[count:])


@_job_command("attach-zim", example="tool attach-zim town-2026.zim --source town")
def attach(
    jobs: Jobs,
    session: Writing,
    file: Annotated[Path, typer.Argument(help="The ZIM file; it stays where it is.", metavar="FILE")],
    execution: Annotated[int | None, typer.Option(help="Of this run.", min=0)] = None,
    source: Annotated[str | None, typer.Option("--source", "-s", help="Of this source's newest run.")] = None,
) -> Done:
    """Assign a manually created ZIM file to a run, or to a source's newest run."""
    if (execution is None) == (source is None):
        raise Invalid("name either a run with --execution, or a source with --source")
    done = attach_zim(session, jobs.clock, file, execution_id=execution, source=source)
    return Done({"execution": done, "path": str(file.resolve())}, f"execution {done}: {file.resolve()}")


@_command("run-job", example="run-db-job --id 3")
def run_one(
    settings: Settings,
    job_id: Annotated[int, typer.Option("--id", help="The job's number.")],
    no_index: Annotated[bool, typer.Option("--no-index", help="Leave indexing to a worker.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Although an annual job's date has not come.")] = False,
) -> Done:
    """Run one waiting execution of a job in this process and index its captures; exit 1 unless both succeed."""
    # Only our own crawler needs a contact; without one it rejects the run at its start.
    with suppress(Invalid):
        settings = config.load(home=settings.home, contact=find_contact(settings, has_option=False))
    with open_jobs(settings) as jobs:
        try:
            with jobs.database.write() as session:
                make_due(session, jobs.clock, job_id, force=force)
        except JobNotFound as exc:
            raise NotFound(f"there is no job {job_id} that can be run; see them with: holdfast job list") from exc
    # Use a whole worker for one job, with the same leases, heartbeat and settling as any other.
    options = WorkerOptions(once=True, poll_s=0.5, job_id=job_id)
    with obeying_signals() as stops:
        report = work(settings, options, stops, RunnerTable(RUNNERS, () if no_index else (AfterCrawl,)))
    if not report.executions:
        # Another worker may have leased it after `make_due`.
        waits = "there is too little room on the disk" if report.low_disk else "another worker took it"
        raise Conflict(f"job {job_id} was not run: {waits}")
    with open_jobs(settings) as jobs, jobs.database.read() as session:
        done = one_execution(session, report.executions[0])
    assert done is not None
    facts = {
        "job": job_id,
        "execution": done.id,
        **picked(done, "state reason failure stage exit_code"),
        "pages": done.items_crawled,
        "index": done.index_state,
        **picked(done, "output_dir error"),
    }
    return Done(facts, None, done.state == "completed" and done.index_state != "index_failed")


@_job_command(example="register-job-dir --source hc --output-dir /srv/jobs/hc-20260101")
def register(
    jobs: Jobs,
    source: Annotated[str, typer.Option(help="Code of the source; made if it is new.")],
    output_dir: Annotated[Path, typer.Option(help="What an archive-tool filled.")],
    name: Annotated[str | None, typer.Option(help="Name of the job.")] = None,
) -> Done:
    """Register a directory that archive-tool filled elsewhere as a completed execution, which a worker then indexes."""
    folder = output_dir.resolve()
    if not folder.is_dir():
        raise NotFound(f"there is no directory {folder}")
    # Files that are still being written would be registered with half of their records.
    if holder_of(folder) is not None:
        raise Conflict(f"an archive-tool works in {folder}; wait for its end")
    files = discover_warcs(folder)
    if not files:
        raise Invalid(f"there are no WARC files in {folder}, neither in warcs/ nor in temporary directories")
    with jobs.database.write() as session:
        made = register_directory(session, jobs.clock, source=source, name=name, output_dir=str(folder))
        run = {"job": made.job_id, "execution": made.id, "source": source, "output_dir": str(folder)}
    facts = {**run, "warcs": len(files), "found": source_of(folder, files)}
    return Done(facts, f"{described(facts)}\na worker indexes it; or now: holdfast index-job --id {run['job']}")


@_job_command(example="create-canary-job --source hc --apply")
def canary(
    jobs: Jobs,
    session: Writing,
    source: SourceCode,
    pages: Annotated[int, typer.Option(min=1, max=100, help="Pages to capture.")] = 5,
    apply: Apply = False,
) -> Done:
    """Create a small one-time job that tests everything, from the crawl to the index."""
    row = find_source(session, source)
    whole, now = config_of(row), jobs.clock.now()
    overrides: dict[str, Any] = {"seeds": [whole.seeds[0]], "max_depth": 1, "max_pages": pages}
    if whole.backend == "zimit":
        flags = ["--pageLimit", str(pages), "--depth", "1"]
        overrides["zimit"] = {"passthrough_args": flags, "tool_options": {"skip_final_build": True}}
    name, job_id = f"{source}-canary-{now:%Y%m%dT%H%M%SZ}", None
    if apply:
        # Do not retry: a canary must show the first run.
        spec = JobSpec(source_id=row.id, name=name, config=overrides, max_retries=0)
        job_id = jobs.actions.add(session, spec, kind="canary", at=now).id
    facts = {"job": job_id, "name": name, "source": source, "backend": whole.backend, "config": overrides}
    return Done(facts, described(facts) + (f"\nrun it with: holdfast run-db-job --id {job_id}" if apply else ""))
