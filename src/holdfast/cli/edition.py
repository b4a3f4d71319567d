"""`holdfast edition`: annual campaigns and what came of them. Plans change nothing without --apply."""

from __future__ import annotations

import json as jsonlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast import config
from holdfast.archive_tool.contract import Host
from holdfast.cli.formatting import counted, fields, table, text
from holdfast.cli.parameters import Apply, AsJson, Home, command_group
from holdfast.cli.progress import ProgressLine
from holdfast.db.models import Edition, Source
from holdfast.editions import queries
from holdfast.editions.campaign import CampaignRequest, Plan, campaign_year, in_order
from holdfast.editions.comparison import write_comparison
from holdfast.editions.composition import shard_object
from holdfast.editions.decisions import Decision, EditionDecisions
from holdfast.editions.edition_files import CSV, LEDGER, ArtefactNotFound, edition_folder
from holdfast.editions.edition_view import Acceptance, EditionView, find_edition, view_edition
from holdfast.editions.freezing import freeze as freeze_edition
from holdfast.editions.freezing import verify_frozen
from holdfast.editions.report import EditionReport, write_report
from holdfast.editions.scheduling import Campaigns, annual_status
from holdfast.errors import Invalid
from holdfast.sources.queries import find_source
from holdfast.wiring.jobs import Jobs, check_backend, open_jobs

app_command = command_group(
    "Annual editions: plan, watch, account for, freeze and compare. Example: holdfast edition status --year 2026"
)

Year = Annotated[int, typer.Option("--year", min=1, max=9999, help="The campaign's year.")]
MaybeYear = Annotated[
    int | None, typer.Option("--year", min=1, max=9999, help="The campaign's year; may be left out on 1 January.")
]
Sources = Annotated[
    list[str] | None,
    typer.Option("--sources", "-s", help="Codes, comma-separated or repeated; all annual ones if left out."),
]
Most = Annotated[int | None, typer.Option("--max-create-per-run", min=0, help="Jobs to make at most.", metavar="N")]
Code = Annotated[str, typer.Argument(help="The source's code.", metavar="CODE")]
OneYear = Annotated[int, typer.Argument(min=1, max=9999, help="The edition's year.", metavar="YEAR")]
_NOTHING = "nothing was changed; do it with --apply"
_NONE_YET = "no editions yet; plan a campaign with: holdfast edition schedule --year YEAR"


@contextmanager
def _open(home: Path | None) -> Iterator[Jobs]:
    settings = config.load(home=home)
    # With the check of the backend: an annual job that zimit would refuse in January is refused now.
    with open_jobs(settings, backend_check=check_backend(settings)) as jobs:
        yield jobs


def _codes(given: list[str] | None) -> tuple[str, ...]:
    return tuple(code.strip() for part in given or () for code in part.split(",") if code.strip())


@app_command.command()
def schedule(
    year: MaybeYear = None,
    sources: Sources = None,
    max_create_per_run: Most = None,
    apply: Apply = False,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Give every source its crawl of the year, a second apart: presets first, then by code. Never before its date.

    Example: holdfast edition schedule --year 2027 --apply
    """
    with _open(home) as jobs:
        request = CampaignRequest(year=year, sources=_codes(sources), max_create=max_create_per_run, apply=apply)
        plan = Campaigns(jobs.database, jobs.actions, jobs.clock, Host.of(jobs.settings.zimit)).schedule(request)
    _show_plan(plan, json=json, wanted=apply)


@app_command.command()
def status(year: Year, sources: Sources = None, json: AsJson = False, home: Home = None) -> None:
    """Show how the campaign of a year stands, source by source.

    Example: holdfast edition status --year 2026 --json
    """
    with _open(home) as jobs, jobs.database.read() as session:
        found = annual_status(session, year, _codes(sources))
    if json:
        print(jsonlib.dumps(found, ensure_ascii=False))
        return
    summary = found["summary"]
    print(
        f"campaign {found['campaignYear']}: {summary['indexed']} of {summary['totalSources']} indexed, "
        f"{summary['inProgress']} in progress, {summary['failed']} failed, {summary['missing']} missing"
    )
    rows = [
        (
            row["sourceCode"],
            row["state"],
            job.get("name"),
            job.get("operatorState"),
            job.get("acceptanceState"),
            (row.get("edition") or {}).get("status"),
            row.get("error"),
        )
        for row in found["sources"]
        for job in row["jobs"] or [{}]
    ]
    if rows:
        print(table(("source", "state", "job", "operator state", "acceptance", "edition", "error"), rows))


@app_command.command()
def salvage(
    year: Year,
    sources: Sources = None,
    apply: Apply = False,
    report: Annotated[bool, typer.Option("--report", help="Write the reports too.")] = False,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Make jobs of the year that belong to no edition parts of one, as they are.

    Example: holdfast edition salvage --year 2026 --apply --report
    """
    with _open(home) as jobs:
        request = CampaignRequest(year=year, sources=_codes(sources), apply=apply)
        plan = Campaigns(jobs.database, jobs.actions, jobs.clock, Host.of(jobs.settings.zimit)).salvage(request)
        if report and plan.applied:
            # After the plan is committed: a report reads the rows of its shards.
            for code in in_order(entry.source for entry in plan.made):
                _write_report(jobs, code, year)
    _show_plan(plan, json=json, wanted=apply)


@app_command.command()
def plan(
    year: Year,
    sources: Sources = None,
    max_create_per_run: Most = None,
    apply: Apply = False,
    shard_target_url_cap: Annotated[
        int, typer.Option(min=1, help="Size that a shard is meant to have; never a limit on the crawl.")
    ] = 5000,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Give each seed a shard of its own, where the report shows that something is missing.

    Example: holdfast edition plan --year 2026 --sources hc --apply
    """
    with _open(home) as jobs:
        request = CampaignRequest(
            year=year, sources=_codes(sources), max_create=max_create_per_run, apply=apply, url_cap=shard_target_url_cap
        )
        planned = Campaigns(jobs.database, jobs.actions, jobs.clock, Host.of(jobs.settings.zimit)).plan_shards(request)
    _show_plan(planned, json=json, wanted=apply)


@app_command.command()
def report(year: Year, sources: Sources = None, apply: Apply = False, json: AsJson = False, home: Home = None) -> None:
    """Account for every address that was meant to be kept; with --apply write ledger, manifest and report.

    Example: holdfast edition report --year 2026 --sources hc,phac --apply
    """
    with _open(home) as jobs:
        year = campaign_year(year, now=jobs.clock.now())
        with jobs.database.read() as session:
            every = [source.code for _, source in queries.listed(session, year=year, limit=100_000)[0]]
        written = [_write_report(jobs, code, year, apply=apply) for code in in_order(_codes(sources) or every)]
    if json:
        content = {"year": year, "applied": apply, "reports": [one.content for one in written]}
        print(jsonlib.dumps(content, ensure_ascii=False))
        return
    for one in written:
        _print_report(one, applied=apply)
    if not written:
        print(f"there is no edition of {year}; make one with: holdfast edition schedule --year {year} --apply")


def _write_report(jobs: Jobs, code: str, year: int, *, apply: bool = True) -> EditionReport:
    with jobs.database.read() as session:
        edition = find_edition(session, find_source(session, code), year)
    line = ProgressLine(jobs.clock)
    try:
        return write_report(
            jobs.database,
            jobs.settings.home,
            jobs.clock,
            edition.id,
            apply=apply,
            on_row=lambda count: line.say(f"{code} {year}: {count:,} rows read"),
        )
    finally:
        line.clear()


def _print_report(one: EditionReport, *, applied: bool) -> None:
    content, counts = one.content, one.content["counts"]
    print(f"{content['source']} {content['year']}: {content['status']}")
    print(fields([(name.replace("_", " "), f"{count:,}") for name, count in counts.items()]))
    for seed in content["missing_seeds"][:10]:
        accepted = " (accepted)" if seed["accepted"] else ""
        print(text(f"missing seed  {seed['url']}  {seed['outcome']}: {seed['reason']}{accepted}"))
    print(f"written to {one.folder}\n" if applied else f"{_NOTHING}\n")


@app_command.command(name="accept-gap")
def accept_gap_command(
    job_id: Annotated[int, typer.Option("--job-id", help="The shard's job.", min=0)],
    reason: Annotated[str, typer.Option("--reason", help="Why, in at least 3 characters; kept in the report.")],
    apply: Apply = False,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Accept what a shard did not bring, so that it no longer blocks its edition.

    Example: holdfast edition accept-gap --job-id 7 --reason "the site was closed in March" --apply
    """
    with _open(home) as jobs:
        decision = Decision(Acceptance.ACCEPTED_GAP, reason)
        view = _decisions(jobs).decide_shard(job_id, decision, apply=apply)
    _show_edition(view, json=json, applied=apply)
    if not apply and not json:
        print(_NOTHING)


def _decisions(jobs: Jobs) -> EditionDecisions:
    return EditionDecisions(jobs.database, jobs.settings.home, jobs.clock)


@app_command.command()
def decide(
    state: Annotated[Acceptance, typer.Option("--state", help="`pending` undoes; `accepted_gap` is for shards.")],
    reason: Annotated[str, typer.Option("--reason", help="Why, in at least 3 characters; kept in the report.")],
    page: Annotated[
        tuple[str, int, str] | None, typer.Option("--page", help="One address of an edition.", metavar="CODE YEAR URL")
    ] = None,
    job_id: Annotated[int | None, typer.Option("--job-id", help="A shard's job.", min=0)] = None,
    apply: Apply = False,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Accept or exclude a shard, or one address of an edition; or undo an earlier decision.

    Example: holdfast edition decide --page hc 2026 https://example.org/old --state accepted --reason "gone" --apply
    """
    decision = Decision(state, reason)
    if (page is None) == (job_id is None):
        raise Invalid("name either a shard with --job-id, or an address with --page CODE YEAR URL")
    if state is Acceptance.NEEDS_REVIEW or (page is not None and state is Acceptance.ACCEPTED_GAP):
        raise Invalid(f"--state {state.value} cannot be set here; use accepted, excluded or pending")
    with _open(home) as jobs:
        if job_id is not None:
            view = _decisions(jobs).decide_shard(job_id, decision, apply=apply)
        elif page is not None:
            edition, _ = _find(jobs, page[0], page[1])
            view = _decisions(jobs).decide_page(edition.id, page[2], decision, apply=apply)
    _show_edition(view, json=json, applied=apply)
    if not apply and not json:
        print(_NOTHING)


@app_command.command()
def freeze(
    code: Code,
    year: OneYear,
    again: Annotated[bool, typer.Option("--again", help="Freeze it anew; the earlier list is kept.")] = False,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Freeze an edition into a list of its captures that can be cited by its digest.

    Example: holdfast edition freeze hc 2026
    """
    with _open(home) as jobs:
        edition, _ = _find(jobs, code, year)
        done = freeze_edition(jobs.database, jobs.settings.home, jobs.clock, edition.id, again=again)
    if json:
        print(
            jsonlib.dumps(
                {
                    "edition_id": done.edition_id,
                    "digest": done.digest,
                    "captures": done.count,
                    "frozen_at": done.frozen_at.isoformat(),
                    "file": str(done.path),
                }
            )
        )
    else:
        print(f"{code} {year}: {counted(done.count, 'capture')}, {done.digest}\n{done.path}")


@app_command.command()
def verify(
    code: Code,
    year: OneYear,
    quick: Annotated[bool, typer.Option("--quick", help="Look at the sizes of WARC files, do not read them.")] = False,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Say whether the archive still holds what the frozen list of an edition names, down to the WARC files.

    Example: holdfast edition verify hc 2026
    """
    with _open(home) as jobs:
        edition, _ = _find(jobs, code, year)
        line = ProgressLine(jobs.clock)
        found = verify_frozen(
            jobs.database, jobs.settings.home, edition.id, quick=quick, on_file=lambda path: line.say(f"reading {path}")
        )
        line.clear()
    content = {
        "holds": found.holds,
        "digest_matches": found.digest_matches,
        "listed": found.listed,
        "missing": found.missing,
        "changed": found.changed,
        "withdrawn": found.withdrawn,
        "files": found.files,
        "files_missing": found.files_missing,
        "files_damaged": found.files_damaged,
    }
    if json:
        print(jsonlib.dumps({**content, "examples": found.examples}))
    else:
        print(fields([(name.replace("_", " "), value) for name, value in content.items()]))
        for example in found.examples:
            print(f"  {text(example)}")
    # For scripts: an archive that lost something must not look like success.
    if not found.holds:
        sys.exit(1)


@app_command.command()
def compare(
    code: Code,
    earlier: Annotated[int, typer.Argument(min=1, max=9999, help="The earlier year.", metavar="EARLIER")],
    later: Annotated[int, typer.Argument(min=1, max=9999, help="The later year.", metavar="LATER")],
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Compare two editions of a source: new, gone, changed, unchanged, moved; written beside the later one.

    Example: holdfast edition compare hc 2025 2026
    """
    with _open(home) as jobs:
        before, after = _find(jobs, code, earlier)[0], _find(jobs, code, later)[0]
        done = write_comparison(jobs.database, jobs.settings.home, jobs.clock, before.id, after.id)
    if json:
        print(jsonlib.dumps(done.content, ensure_ascii=False))
    else:
        print(fields([(kind, f"{count:,}") for kind, count in done.content["counts"].items()]))
        print(f"written to {done.folder / done.stem}.json, .md, .csv and .jsonl")


@app_command.command(name="list")
def list_editions(year: MaybeYear = None, sources: Sources = None, json: AsJson = False, home: Home = None) -> None:
    """List the editions, the latest year first.

    Example: holdfast edition list --sources hc
    """
    wanted = _codes(sources)
    with _open(home) as jobs, jobs.database.read() as session:
        # A code that no source has is an error; one without editions is an empty list.
        for code in wanted:
            find_source(session, code)
        rows, _ = queries.listed(session, year=year, limit=100_000)
    shown = [(edition, source) for edition, source in rows if not wanted or source.code in wanted]
    if json:
        print(jsonlib.dumps({"editions": [edition_object(*row) for row in shown], "total": len(shown)}))
    elif not shown:
        print("no such editions" if rows or wanted or year else _NONE_YET)
    else:
        print(
            table(
                ("source", "year", "status", "intended", "captured", "failed", "missing", "excluded", "frozen"),
                [
                    (
                        source.code,
                        row.year,
                        row.status,
                        row.intended_url_count,
                        row.captured_url_count,
                        row.failed_url_count,
                        row.missing_url_count,
                        row.excluded_url_count,
                        row.frozen_at is not None,
                    )
                    for row, source in shown
                ],
            )
        )


def edition_object(row: Edition, source: Source) -> dict[str, Any]:
    """Return an edition for `--json`."""
    return {
        "edition_id": row.id,
        "source": source.code,
        "year": row.year,
        "status": row.status,
        "search_ready": row.search_ready,
        "research_ready": row.research_ready,
        "intended_urls": row.intended_url_count,
        "captured_urls": row.captured_url_count,
        "failed_urls": row.failed_url_count,
        "missing_urls": row.missing_url_count,
        "excluded_urls": row.excluded_url_count,
        "shards": row.shard_count,
        "frozen_digest": row.frozen_digest,
        "generated_at": row.generated_at.isoformat() if row.generated_at else None,
        "frozen_at": row.frozen_at.isoformat() if row.frozen_at else None,
    }


@app_command.command()
def show(code: Code, year: OneYear, json: AsJson = False, home: Home = None) -> None:
    """Show an edition with its shards.

    Example: holdfast edition show hc 2026
    """
    with _open(home) as jobs:
        edition, _ = _find(jobs, code, year)
        with jobs.database.read() as session:
            view = view_edition(session, edition.id)
    _show_edition(view, json=json)


@app_command.command()
def ledger(
    code: Code,
    year: OneYear,
    csv: Annotated[bool, typer.Option("--csv", help="As a table, with the public columns.")] = False,
    home: Home = None,
) -> None:
    """Print the coverage ledger as it was written last, a JSON object a line.

    Example: holdfast edition ledger hc 2026 | grep '"outcome": "failed"'
    """
    with _open(home) as jobs:
        _, source = _find(jobs, code, year)
        path = edition_folder(jobs.settings.home, source.code, year) / (CSV if csv else LEDGER)
    try:
        with path.open("rb") as file:
            # As bytes, as it lies: a ledger may have gigabytes, and its digest is in the report.
            while chunk := file.read(1 << 20):
                sys.stdout.buffer.write(chunk)
    except FileNotFoundError as exc:
        raise ArtefactNotFound(
            f"no report of {code} {year} was written yet; do so with: holdfast edition report --year {year} --apply"
        ) from exc
    sys.stdout.buffer.flush()


def _find(jobs: Jobs, code: str, year: int) -> tuple[Edition, Source]:
    with jobs.database.read() as session:
        source = find_source(session, code)
        return find_edition(session, source, campaign_year(year, now=jobs.clock.now())), source


def _show_edition(view: EditionView, *, json: bool, applied: bool | None = None) -> None:
    shown = edition_object(view.edition, view.source)
    if json and applied is not None:
        shown["applied"] = applied
    shards = [shard_object(shard) for shard in view.shards]
    if json:
        print(jsonlib.dumps({**shown, "shard_list": shards}, ensure_ascii=False))
        return
    print(fields(list(shown.items())))
    if shards:
        print()
        columns = (
            "jobId",
            "shardKey",
            "status",
            "acceptanceState",
            "captureBackend",
            "pagesCrawled",
            "pagesFailed",
            "acceptanceReason",
        )
        head = ("job", "shard", "status", "acceptance", "backend", "crawled", "failed", "reason")
        print(table(head, [[one[name] for name in columns] for one in shards]))


def _show_plan(plan: Plan, *, json: bool, wanted: bool) -> None:
    """Print a plan; exit 1 if an error keeps it from being applied."""
    if json:
        print(jsonlib.dumps(plan.as_object(), ensure_ascii=False))
    else:
        print(
            table(
                ("source", "action", "name", "due", "reason"),
                [(one.source, one.step.value, one.name, one.at, one.reason) for one in plan.entries],
            )
        )
        for entry in plan.entries:
            for note in entry.notes:
                print(f"  {entry.source}: {text(note)}")
        if plan.errors:
            print("nothing was changed: mend the errors first", file=sys.stderr)
        elif not wanted:
            print(_NOTHING)
    if plan.errors:
        sys.exit(1)
