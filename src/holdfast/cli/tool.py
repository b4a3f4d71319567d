"""`holdfast tool`: `archive-tool` by hand: is it there, a crawl without a job, a run of a job, a directory taken in."""

from __future__ import annotations

import asyncio
import json as jsonlib
import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast import config
from holdfast.archive_tool.contract import (
    Host,
    ToolMissing,
    find_program,
    read_job_config,
    strip_separator,
    tool_command,
)
from holdfast.archive_tool.docker import Docker, DockerMissing, Times
from holdfast.archive_tool.options import read_name
from holdfast.archive_tool.output_directory import holder_of, last_end
from holdfast.archive_tool.warc_files import discover_warcs
from holdfast.archive_tool.zimit_flags import politeness_flags, with_robots
from holdfast.cli.formatting import table
from holdfast.cli.parameters import Apply, AsJson, Home, configure_log, read_assignments, read_network
from holdfast.cli.seeds import check_seed, find_contact
from holdfast.cli.storage import tell
from holdfast.clock import SystemClock
from holdfast.config import Settings
from holdfast.crawl.plan import CrawlPlan
from holdfast.crawl_process.stopping import obeying_signals
from holdfast.errors import Conflict, Invalid, NotFound
from holdfast.fetch.guard import AddressGuard
from holdfast.jobs.administration.maintenance import attach_zim, make_due, register_directory
from holdfast.jobs.specs import JobSpec
from holdfast.jobs.store import JobNotFound
from holdfast.jobs.views.listing import execution as one_execution
from holdfast.operations.probing import Look, ask_plainly, find_browser, plain_look, probe
from holdfast.sources.config import read_config
from holdfast.sources.queries import find_source
from holdfast.sources.registry import config_of
from holdfast.types import FetchFailed
from holdfast.urls import parse_seed
from holdfast.wiring.jobs import demand_accepted, open_jobs
from holdfast.worker.after_crawl import AfterCrawl
from holdfast.worker.loop import RUNNERS, RunnerTable, WorkerOptions, work
from holdfast.worker.zimit import environment_of


def probe_browser_fetch(
    address: Annotated[str, typer.Argument(help="The page.", metavar="URL")],
    program: Annotated[str | None, typer.Option("--program", help="The browser; chromium if it is found.")] = None,
    allow_network: Annotated[list[str] | None, typer.Option(help="Private network (CIDR) that may be asked.")] = None,
    contact: Annotated[str | None, typer.Option(help="E-mail or web address that site owners can reach.")] = None,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Ask for one page with our own client and with a browser, and compare; exit 1 if the browser does not get it.

    It tells a site that refuses crawlers from one that is down, before a source is switched to zimit. The browser
    reaches no host but the page's own, so pictures from elsewhere are missing.

    Example: holdfast probe-browser-fetch https://example.org/
    """
    settings = config.load(home=home)
    configure_log(settings, unless_set="ERROR")
    browser = find_browser(program)
    networks = [*map(str, settings.allow_networks), *map(read_network, allow_network or [])]
    # The same guard as a crawl's: a probe must not reach into a private network either.
    check_seed(address, AddressGuard(tuple(map(ip_network, networks))))
    url, who = parse_seed(address), find_contact(settings, contact)
    answer = asyncio.run(ask_plainly(settings, url, contact=who, networks=networks))
    plain = plain_look(answer)
    # The browser is pinned to the address that our own client reached: without one it is not started.
    if isinstance(answer, FetchFailed):
        seen = Look(ok=False, seconds=0.0, error="not asked: our own client reached no address")
    else:
        agent = CrawlPlan(seeds=(url.fetch,), contact=who).agent()
        seen = probe(settings, answer.url, answer, browser, SystemClock(), agent=agent)
    if json:
        print(jsonlib.dumps({"url": url.fetch, "program": browser, "plain": asdict(plain), "browser": asdict(seen)}))
    else:
        rows = [
            (name, "yes" if one.ok else "NO", one.status, one.bytes, f"{one.seconds:.1f}", one.title, one.error)
            for name, one in (("our client", plain), ("browser", seen))
        ]
        print(table(("", "got it", "status", "bytes", "seconds", "title", "trouble"), rows))
    if not seen.ok:
        raise typer.Exit(1)


app_command = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="archive-tool by hand. Example: holdfast tool run --name test --seeds https://example.org",
)
app_command.command(name="probe")(probe_browser_fetch)
_ANSWER_S = 60.0
_LINES = 3


@app_command.command()
def check(json: AsJson = False, home: Home = None) -> None:
    """Ask whether archive-tool can be started, and whether docker answers; exit 1 if the tool cannot.

    Example: holdfast check-archive-tool
    """
    settings = config.load(home=home)
    program = find_program(settings.zimit.command)
    try:
        asked = subprocess.run(
            [*program, "--help"],
            capture_output=True,
            text=True,
            timeout=_ANSWER_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
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
    tell(facts, json=json)
    if asked.returncode:
        print("\n".join(asked.stderr.strip().splitlines()[-_LINES:]), file=sys.stderr)
        raise typer.Exit(1)


@app_command.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def run(
    context: typer.Context,
    name: Annotated[str, typer.Option("--name", help="Name of the crawl and of its ZIM file.")],
    seeds: Annotated[list[str], typer.Option("--seeds", help="Where it begins; several, or repeated.", metavar="URL")],
    output_dir: Annotated[Path | None, typer.Option("--output-dir", help="Where it writes; new if left out.")] = None,
    initial_workers: Annotated[int, typer.Option("--initial-workers", min=1, help="Browser workers.")] = 1,
    option: Annotated[list[str] | None, typer.Option("--tool-option", help="NAME=VALUE; repeatable.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the tool's plan, start nothing.")] = False,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Run archive-tool at once, without a job; other flags go to zimit, behind `--` or not. Its exit code is ours.

    robots.txt and a second between pages are kept, unless its flags say otherwise. Take in what it captured with:
    holdfast tool register

    Example: holdfast run-job --name test --seeds https://example.org -- --scopeType host --pageLimit 10
    """
    settings = config.load(home=home)
    demand_accepted(settings)
    options = {
        "initial_workers": initial_workers,
        "skip_final_build": True,
        "relax_perms": not settings.api.strict,
        **read_assignments(option or [], "--tool-option"),
    }
    host, (more, given) = Host.of(settings.zimit), _split(context.args)
    polite = read_config({"seeds": [*seeds, *more], "zimit": {"passthrough_args": given, "tool_options": options}})
    flags = politeness_flags(polite, host.extra_flags, delay_s=settings.politeness.delay_s)
    made = read_job_config(
        {
            "seeds": list(polite.seeds),
            "tool_options": with_robots(polite, options),
            "zimit_passthrough_args": [*flags, *given],
        },
        host,
    )
    folder = output_dir or _new_folder(settings, read_name(name))
    if not dry_run:
        folder.parent.mkdir(parents=True, exist_ok=True)
    command = tool_command(made, host, name=name, output_dir=folder.resolve())
    command = [*find_program(host.command), *command[command.index("--seeds") :], *(["--dry-run"] if dry_run else [])]
    print(f"output directory: {folder.resolve()}", file=sys.stderr)
    # In our own process group: Ctrl-C reaches the tool, which stops its container and keeps what there is.
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
        print(jsonlib.dumps({"exit_code": code, "output_dir": str(folder.resolve()), "state": end and end.state}))
    raise typer.Exit(code if code >= 0 else 1)


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    """Return further seeds (`--seeds A B`, as archive-tool itself takes them), and what is for zimit."""
    count = next((at for at, word in enumerate(words) if word.startswith("-")), len(words))
    return words[:count], strip_separator(words[count:])


def _new_folder(settings: Settings, name: str) -> Path:
    return settings.home.resolve() / "jobs" / f"{SystemClock().now():%Y%m%dT%H%M%SZ}__{name}"


@app_command.command("attach-zim")
def attach(
    file: Annotated[Path, typer.Argument(help="The ZIM file; it stays where it is.", metavar="FILE")],
    execution: Annotated[int | None, typer.Option("--execution", help="Of this run.", min=0)] = None,
    source: Annotated[str | None, typer.Option("--source", "-s", help="Of this source's newest run.")] = None,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Name a ZIM file that was made by hand as the one of a run, or of a source's newest run.

    Example: holdfast tool attach-zim town-2026.zim --source town
    """
    if (execution is None) == (source is None):
        raise Invalid("name either a run with --execution, or a source with --source")
    with open_jobs(config.load(home=home)) as jobs, jobs.database.write() as session:
        done = attach_zim(session, jobs.clock, file, execution_id=execution, source=source)
    facts = {"execution": done, "path": str(file.resolve())}
    print(jsonlib.dumps(facts) if json else f"execution {done}: {file.resolve()}")


@app_command.command("run-job")
def run_one(
    job_id: Annotated[int, typer.Option("--id", help="The job's number.")],
    no_index: Annotated[bool, typer.Option("--no-index", help="Leave indexing to a worker.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Although an annual job's date has not come.")] = False,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Run one execution of a job that waits, here and now, and index what it captured; exit 1 unless both went well.

    Example: holdfast run-db-job --id 3
    """
    settings = config.load(home=home)
    configure_log(settings, as_json=False)
    # Only our own crawler needs a contact; without one it refuses when the run begins.
    with suppress(Invalid):
        settings = config.load(home=home, contact=find_contact(settings, has_option=False))
    with open_jobs(settings) as jobs:
        try:
            with jobs.database.write() as session:
                make_due(session, jobs.clock, job_id, force=force)
        except JobNotFound as exc:
            raise NotFound(f"there is no job {job_id} that can be run; see them with: holdfast job list") from exc
    # A whole worker for one job: leases, heartbeat and settling are the same as for any other.
    options = WorkerOptions(once=True, poll_s=0.5, job_id=job_id)
    with obeying_signals() as stops:
        report = work(settings, options, stops, RunnerTable(RUNNERS, () if no_index else (AfterCrawl,)))
    if not report.executions:
        # Between `make_due` and the lease another worker may have taken it.
        waits = "there is too little room on the disk" if report.low_disk else "another worker took it"
        raise Conflict(f"job {job_id} was not run: {waits}")
    with open_jobs(settings) as jobs, jobs.database.read() as session:
        done = one_execution(session, report.executions[0])
    assert done is not None
    facts: dict[str, Any] = {
        "job": job_id,
        "execution": done.id,
        "state": done.state,
        "reason": done.reason,
        "failure": done.failure,
        "stage": done.stage,
        "exit_code": done.exit_code,
        "pages": done.items_crawled,
        "index": done.index_state,
        "output_dir": done.output_dir,
        "error": done.error,
    }
    tell(facts, json=json)
    if done.state != "completed" or done.index_state == "index_failed":
        raise typer.Exit(1)


@app_command.command()
def register(
    source: Annotated[str, typer.Option("--source", help="Code of the source; made if it is new.")],
    output_dir: Annotated[Path, typer.Option("--output-dir", help="What an archive-tool filled.")],
    name: Annotated[str | None, typer.Option("--name", help="Name of the job.")] = None,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Take in a directory that archive-tool filled elsewhere: it becomes a completed execution, which a worker indexes.

    Example: holdfast register-job-dir --source hc --output-dir /srv/jobs/hc-20260101
    """
    folder = output_dir.resolve()
    if not folder.is_dir():
        raise NotFound(f"there is no directory {folder}")
    # Files that are still written would be registered with half of their records.
    if holder_of(folder) is not None:
        raise Conflict(f"an archive-tool works in {folder}; wait for its end")
    found = discover_warcs(folder)
    if not found.files:
        raise Invalid(f"there are no WARC files in {folder}, neither in warcs/ nor in temporary directories")
    with open_jobs(config.load(home=home)) as jobs, jobs.database.write() as session:
        made = register_directory(session, jobs.clock, source=source, name=name, output_dir=str(folder))
        facts = {
            "job": made.job_id,
            "execution": made.id,
            "source": source,
            "output_dir": str(folder),
            "warcs": len(found.files),
            "found": found.source,
        }
    tell(facts, json=json)
    if not json:
        print(f"a worker indexes it; or now: holdfast index-job --id {made.job_id}")


@app_command.command()
def canary(
    source: Annotated[str, typer.Option("--source", help="Code of the source.", metavar="CODE")],
    pages: Annotated[int, typer.Option("--pages", min=1, max=100, help="Pages to capture.")] = 5,
    apply: Apply = False,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Make a small job that runs once and shows that everything works, from the crawl to the index.

    Example: holdfast create-canary-job --source hc --apply
    """
    with open_jobs(config.load(home=home)) as jobs, jobs.database.write() as session:
        row = find_source(session, source)
        whole, now = config_of(row), jobs.clock.now()
        overrides: dict[str, Any] = {"seeds": [whole.seeds[0]], "max_depth": 1, "max_pages": pages}
        if whole.backend == "zimit":
            overrides["zimit"] = {
                "passthrough_args": ["--pageLimit", str(pages), "--depth", "1"],
                "tool_options": {"skip_final_build": True},
            }
        name = f"{source}-canary-{now:%Y%m%dT%H%M%SZ}"
        job_id = None
        if apply:
            # No retry: what a canary has to show is the first run.
            spec = JobSpec(source_id=row.id, name=name, config=overrides, max_retries=0)
            job_id = jobs.actions.add(session, spec, kind="canary", at=now).job.id
    facts = {
        "job": job_id,
        "name": name,
        "source": source,
        "backend": whole.backend,
        "config": overrides,
        "applied": apply,
    }
    if json:
        print(jsonlib.dumps(facts))
        return
    tell(facts, json=False)
    print(f"run it with: holdfast run-db-job --id {job_id}" if apply else "dry run: make it with --apply")
