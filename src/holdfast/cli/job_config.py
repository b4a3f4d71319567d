"""`validate-job-config`, `patch-job-config`, `reset-retry-count`: careful work on jobs by hand, dry unless --apply."""

from __future__ import annotations

import json as jsonlib
import shlex
from pathlib import Path
from typing import Annotated

import typer

from holdfast import config
from holdfast.archive_tool.contract import Host, annual_caps, tool_command
from holdfast.archive_tool.patches import read_patch
from holdfast.cli.job_naming import naming
from holdfast.cli.job_words import JobArgument, JobOption, find_job, job_number
from holdfast.cli.options import Apply, AsJson, Home
from holdfast.cli.wording import counted
from holdfast.errors import Invalid
from holdfast.jobs.board.queries import UNCAPPED
from holdfast.jobs.operating import queries
from holdfast.jobs.operating.configuring import effective, patch_zimit
from holdfast.jobs.operating.repair import Reset
from holdfast.jobs.operating.repair import reset_retries as reset
from holdfast.jobs.states import State
from holdfast.sources.registry import find
from holdfast.wiring.jobs import check_backend, open_jobs
from holdfast.wiring.zimit import zimit_config


def validate_config(job: JobArgument = None, job_id: JobOption = None, json: AsJson = False, home: Home = None) -> None:
    """Check a job's configuration as it would run, its row untouched; exit 1 names the field that is wrong.

    Example: holdfast validate-job-config --id 3
    """
    settings = config.load(home=home)
    with open_jobs(settings) as jobs:
        found = find_job(jobs.database, job_number(job, job_id))
    whole = effective(found.job, found.source, check=check_backend(settings))
    if found.job.kind in UNCAPPED and (whole.max_pages is not None or whole.max_depth >= 0):
        raise Invalid("an annual job has no cap on pages or depth: set max_pages=null and max_depth=-1")
    warnings, command = list(whole.warnings()), None
    if whole.backend == "zimit":
        checked, host = zimit_config(whole, settings), Host.of(settings.zimit)
        command = shlex.join(tool_command(checked, host, name=found.source.code, output_dir=Path("OUTPUT")))
        if found.job.kind in UNCAPPED and (caps := annual_caps(checked, host)):
            raise Invalid(f"an annual job has no caps: take away {', '.join(caps)}")
    if json:
        print(jsonlib.dumps({"id": found.job.id, "valid": True, "backend": whole.backend, "config": whole.stored(),
                             "command": command, "warnings": warnings}, ensure_ascii=False))  # fmt: skip
        return
    print(f"job {found.job.id}: valid, {counted(len(whole.seeds), 'seed')}, backend {whole.backend}")
    if command:
        print(f"it would run: {command}")
    for warning in warnings:
        print(f"warning: {warning}")


def patch_config(
    job: JobArgument = None,
    job_id: JobOption = None,
    options: Annotated[
        list[str] | None, typer.Option("--set-tool-option", help="A tool option; repeatable.", metavar="KEY=VALUE")
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option("--set-execution-policy", help="A value of the policy; repeatable.", metavar="KEY=VALUE"),
    ] = None,
    apply: Apply = False,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Change tool options and execution policy of a job that is queued, retryable or failed.

    Example: holdfast patch-job-config --id 3 --set-tool-option initial_workers=4 --apply
    """
    number, settings = job_number(job, job_id), config.load(home=home)
    wanted = read_patch(options or (), policy or ())
    changes = {group: given for group, given in wanted._asdict().items() if given}
    if not changes:
        raise Invalid("nothing to set: name --set-tool-option or --set-execution-policy, as KEY=VALUE")
    with open_jobs(settings) as jobs, naming(jobs.database, number), jobs.database.write() as session:
        done = patch_zimit(session, jobs.clock, number, changes, check=check_backend(settings), apply=apply)
        found = find_job(jobs.database, number)
    backend = effective(found.job, found.source).backend
    if json:
        print(jsonlib.dumps({"id": number, "applied": apply, "backend": backend, "before": done.before,
                             "after": done.after}))  # fmt: skip
        return
    for group, given in changes.items():
        for name in given:
            before, after = (side[group].get(name) for side in done)
            print(f"{group}.{name}: {jsonlib.dumps(before)} -> {jsonlib.dumps(after)}")
    if backend != "zimit":
        print(f"it crawls with backend {backend}, which knows none of these; see: holdfast job edit {number} --set")
    print(f"job {number}: changed" if apply else "nothing was written; add --apply to do so")


def reset_retries(
    ids: Annotated[list[int] | None, typer.Option("--id", help="A job; repeatable, then with --reason.")] = None,
    source: Annotated[str | None, typer.Option("--source", help="All of this source's.", metavar="CODE")] = None,
    state: Annotated[list[str] | None, typer.Option("--state", help="All in this state; repeatable.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, max=10_000, help="Most jobs of a bulk.")] = None,
    reason: Annotated[str | None, typer.Option("--reason", help="Why; it lands in the audit log.")] = None,
    apply: Apply = False,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Give jobs their whole retry budget back; those that somebody works on are skipped.

    Several jobs need --reason, and a bulk (--source, --state) needs --limit too.
    Example: holdfast reset-retry-count --id 3 --apply
    """
    bulk = source is not None or bool(state)
    if bool(ids) == bulk:
        raise typer.BadParameter("name jobs with --id, or many with --source or --state")
    if bulk and limit is None:
        raise typer.BadParameter("many at once need a limit, for example --limit 20", param_hint="--limit")
    if (bulk or len(set(ids or ())) > 1) and not (reason or "").strip():
        raise typer.BadParameter("several jobs need a reason; it lands in the audit log", param_hint="--reason")
    for one in state or ():
        if one not in tuple(State):
            raise typer.BadParameter(f"{one[:40]!r} is none of {', '.join(State)}", param_hint="--state")
    with open_jobs(config.load(home=home)) as jobs, jobs.database.write() as session:
        chosen = list(ids or ())
        if bulk:
            source_id = find(session, source).id if source is not None else None
            chosen = queries.retried_ids(session, source_id=source_id, states=state or (), limit=limit or 1)
        done = reset(session, jobs.clock, chosen, reason=reason, apply=apply)
    _print_reset(done, apply=apply, json=json)


def _print_reset(done: Reset, *, apply: bool, json: bool) -> None:
    if json:
        print(jsonlib.dumps({"applied": apply, "reset": done.reset, "unchanged": done.unchanged,
                             "locked": done.locked, "missing": done.missing}))  # fmt: skip
    else:
        told = [("reset" if apply else "would be reset", done.reset), ("nothing to reset", done.unchanged),
                ("skipped, somebody works on it", done.locked), ("not found", done.missing)]  # fmt: skip
        print("\n".join(f"{word}: {', '.join(map(str, found))}" for word, found in told if found) or "no such jobs")
        if done.reset and not apply:
            print("nothing was written; add --apply to do so")
    if done.missing:
        raise typer.Exit(1)
