"""`holdfast edition`: annual campaigns and their results. Plans change nothing without --apply."""

from __future__ import annotations

import shutil
import sys
from contextlib import AbstractContextManager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast.cli.formatting import counted, fields, table, text
from holdfast.cli.parameters import Apply, Code, command_group, read_codes
from holdfast.cli.printing import rows_table
from holdfast.cli.progress import ProgressLine
from holdfast.cli.resource import Done, Listing, Reading, Rows, command
from holdfast.config import Settings
from holdfast.db.models import Edition, Source
from holdfast.editions import queries
from holdfast.editions.campaign import CampaignRequest, Plan, campaign_year, in_order
from holdfast.editions.comparison import write_comparison
from holdfast.editions.decisions import EditionDecisions
from holdfast.editions.edition_files import CSV, LEDGER, ArtefactNotFound, edition_folder
from holdfast.editions.edition_view import Acceptance, EditionView, find_edition, view_edition
from holdfast.editions.freezing import freeze as freeze_edition
from holdfast.editions.freezing import verify_frozen
from holdfast.editions.records import edition_detail, edition_record
from holdfast.editions.report import write_report
from holdfast.editions.scheduling import Campaigns, annual_status
from holdfast.errors import Invalid
from holdfast.records import Spelling, encode
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
OneYear = Annotated[int, typer.Argument(min=1, max=9999, help="The edition's year.", metavar="YEAR")]


def _open(settings: Settings) -> AbstractContextManager[Jobs]:
    # Run the backend's check: an annual job that zimit would reject in January is rejected now.
    return open_jobs(settings, backend_check=check_backend(settings))


_command = partial(command, app_command, opened=_open)
_EDITIONS = Listing(
    "editions",
    "source_code year status intended_url_count captured_url_count failed_url_count missing_url_count "
    "excluded_url_count is_frozen",
    "no editions yet; plan a campaign with: holdfast edition schedule --year YEAR",
)


@_command(example="edition schedule --year 2027 --apply")
def schedule(
    jobs: Jobs,
    year: MaybeYear = None,
    sources: Sources = None,
    max_create_per_run: Most = None,
    apply: Apply = False,
) -> Done:
    """Create every source's crawl of the year, a second apart: presets first, then by code. Never before its date."""
    request = CampaignRequest(year=year, sources=read_codes(sources), max_create=max_create_per_run, apply=apply)
    return _planned(_campaigns(jobs).schedule(request))


def _campaigns(jobs: Jobs) -> Campaigns:
    return Campaigns(jobs.database, jobs.actions, jobs.clock, jobs.settings.zimit)


@_command(example="edition status --year 2026 --json")
def status(jobs: Jobs, session: Reading, year: Year, sources: Sources = None) -> Done:
    """Show the campaign of a year, source by source."""
    found = annual_status(session, year, read_codes(sources))
    summary = found["summary"]
    printed = (
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
    head = ("source", "state", "job", "operator state", "acceptance", "edition", "error")
    return Done(found, f"{printed}\n{table(head, rows)}" if rows else printed)


@_command(example="edition salvage --year 2026 --apply --report")
def salvage(
    jobs: Jobs,
    year: Year,
    sources: Sources = None,
    apply: Apply = False,
    report: Annotated[bool, typer.Option("--report", help="Write the reports too.")] = False,
) -> Done:
    """Attach jobs of the year that have no edition to one, unchanged."""
    plan = _campaigns(jobs).salvage(CampaignRequest(year=year, sources=read_codes(sources), apply=apply))
    if report and plan.applied:
        # Do this after the commit of the plan: a report reads the rows of its shards.
        for code in in_order(entry.source for entry in plan.made):
            _write_report(jobs, code, year)
    return _planned(plan)


@_command(example="edition plan --year 2026 --sources hc --apply")
def plan(
    jobs: Jobs,
    year: Year,
    sources: Sources = None,
    max_create_per_run: Most = None,
    apply: Apply = False,
    shard_target_url_cap: Annotated[
        int, typer.Option(min=1, help="Planned size of a shard; never a limit on the crawl.")
    ] = 5000,
) -> Done:
    """Create a shard for each seed for which the report shows missing pages."""
    request = CampaignRequest(
        year=year, sources=read_codes(sources), max_create=max_create_per_run, apply=apply, url_cap=shard_target_url_cap
    )
    return _planned(_campaigns(jobs).plan_shards(request))


@_command(example="edition report --year 2026 --sources hc,phac --apply")
def report(jobs: Jobs, year: Year, sources: Sources = None, apply: Apply = False) -> Done:
    """Account for every intended URL; with --apply, write ledger, manifest and report."""
    year = campaign_year(year, now=jobs.clock.now())
    with jobs.database.read() as session:
        every = [source.code for _, source in queries.listed(session, year=year, limit=100_000)[0]]
    written = [_write_report(jobs, code, year, apply=apply) for code in in_order(read_codes(sources) or every)]
    content = {"year": year, "reports": [one for one, _ in written]}
    missing = f"there is no edition of {year}; make one with: holdfast edition schedule --year {year} --apply"
    return Done(content, "\n".join(_report_text(one, folder if apply else None) for one, folder in written) or missing)


def _write_report(jobs: Jobs, code: str, year: int, *, apply: bool = True) -> tuple[dict[str, Any], Path]:
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


def _report_text(content: dict[str, Any], folder: Path | None) -> str:
    printed = [f"{content['source']} {content['year']}: {content['status']}"]
    printed.append(fields([(name.replace("_", " "), f"{count:,}") for name, count in content["counts"].items()]))
    for seed in content["missing_seeds"][:10]:
        accepted = " (accepted)" if seed["accepted"] else ""
        printed.append(text(f"missing seed  {seed['url']}  {seed['outcome']}: {seed['reason']}{accepted}"))
    return "\n".join([*printed, *([f"written to {folder}\n"] if folder else ())])


@_command("accept-gap", example='edition accept-gap --job-id 7 --reason "the site was closed in March" --apply')
def accept_gap_command(
    jobs: Jobs,
    job_id: Annotated[int, typer.Option(help="The shard's job.", min=0)],
    reason: Annotated[str, typer.Option(help="Why, in at least 3 characters; kept in the report.")],
    apply: Apply = False,
) -> Done:
    """Accept the gap of a shard, so that it no longer blocks its edition."""
    return _shown(_decisions(jobs).decide_shard(job_id, Acceptance.ACCEPTED_GAP, reason, apply=apply))


def _decisions(jobs: Jobs) -> EditionDecisions:
    return EditionDecisions(jobs.database, jobs.settings.home, jobs.clock)


@_command(example='edition decide --page hc 2026 https://example.org/old --state accepted --reason "gone" --apply')
def decide(
    jobs: Jobs,
    state: Annotated[Acceptance, typer.Option(help="`pending` undoes; `accepted_gap` is for shards.")],
    reason: Annotated[str, typer.Option(help="Why, in at least 3 characters; kept in the report.")],
    page: Annotated[
        tuple[str, int, str] | None, typer.Option(help="One address of an edition.", metavar="CODE YEAR URL")
    ] = None,
    job_id: Annotated[int | None, typer.Option(help="A shard's job.", min=0)] = None,
    apply: Apply = False,
) -> Done:
    """Accept or exclude a shard, or one URL of an edition; or undo an earlier decision."""
    if state is Acceptance.NEEDS_REVIEW or (page is not None and state is Acceptance.ACCEPTED_GAP):
        raise Invalid(f"--state {state.value} cannot be set here; use accepted, excluded or pending")
    if job_id is not None and page is None:
        return _shown(_decisions(jobs).decide_shard(job_id, state, reason, apply=apply))
    if page is not None and job_id is None:
        edition, _ = _find(jobs, page[0], page[1])
        return _shown(_decisions(jobs).decide_page(edition.id, page[2], state, reason, apply=apply))
    raise Invalid("name either a shard with --job-id, or an address with --page CODE YEAR URL")


@_command(example="edition freeze hc 2026")
def freeze(
    jobs: Jobs,
    code: Code,
    year: OneYear,
    again: Annotated[bool, typer.Option("--again", help="Freeze it again; the earlier list is kept.")] = False,
) -> Done:
    """Freeze an edition into a list of its captures, which can be cited by its digest."""
    edition, _ = _find(jobs, code, year)
    done = freeze_edition(jobs.database, jobs.settings.home, jobs.clock, edition.id, again=again)
    digest, count, file = (
        done.frozen_digest,
        done.frozen_count or 0,
        jobs.settings.home.resolve() / str(done.frozen_path),
    )
    content = {"edition_id": done.id, "digest": digest, "frozen_at": done.frozen_at, "captures": count, "file": file}
    return Done(content, f"{code} {year}: {counted(count, 'capture')}, {digest}\n{file}")


@_command(example="edition verify hc 2026")
def verify(
    jobs: Jobs,
    code: Code,
    year: OneYear,
    quick: Annotated[bool, typer.Option("--quick", help="Look at the sizes of WARC files, do not read them.")] = False,
) -> Done:
    """Check that the archive still has everything on an edition's frozen list, down to the WARC files."""
    edition, _ = _find(jobs, code, year)
    line = ProgressLine(jobs.clock)
    found = verify_frozen(
        jobs.database, jobs.settings.home, edition.id, quick=quick, on_file=lambda path: line.say(f"reading {path}")
    )
    line.clear()
    content = {"holds": found.holds, **asdict(found)}
    counts = fields([(name.replace("_", " "), value) for name, value in content.items() if name != "examples"])
    # Return an error to scripts: an archive that lost something must not look like success.
    return Done(content, [counts, *(f"  {text(one)}" for one in found.examples)], is_success=found.holds)


@_command(example="edition compare hc 2025 2026")
def compare(
    jobs: Jobs,
    code: Code,
    earlier: Annotated[int, typer.Argument(min=1, max=9999, help="The earlier year.", metavar="EARLIER")],
    later: Annotated[int, typer.Argument(min=1, max=9999, help="The later year.", metavar="LATER")],
) -> Done:
    """Compare two editions of a source: new, gone, changed, unchanged, moved; stores the result with the later one."""
    before, after = _find(jobs, code, earlier)[0], _find(jobs, code, later)[0]
    content, file = write_comparison(jobs.database, jobs.settings.home, jobs.clock, before.id, after.id)
    counts = fields([(kind, f"{count:,}") for kind, count in content["counts"].items()])
    return Done(content, f"{counts}\nwritten to {file}, .md, .csv and .jsonl")


@_command("list", listing=_EDITIONS, example="edition list --sources hc")
def list_editions(session: Reading, year: MaybeYear = None, sources: Sources = None) -> Rows:
    """List the editions, the latest year first."""
    wanted = read_codes(sources)
    # An unknown source code is an error; a source without editions gives an empty list.
    for code in wanted:
        find_source(session, code)
    rows, _ = queries.listed(session, year=year, limit=100_000)
    shown = [edition_record(*row) for row in rows if not wanted or row[1].code in wanted]
    return Rows(shown, {"total": len(shown)}, "no such editions" if rows or wanted or year else None)


@_command(example="edition show hc 2026")
def show(jobs: Jobs, code: Code, year: OneYear) -> Done:
    """Show an edition with its shards."""
    edition, _ = _find(jobs, code, year)
    with jobs.database.read() as session:
        return _shown(view_edition(session, edition.id))


@_command(example='edition ledger hc 2026 | grep \'"outcome": "failed"\'')
def ledger(
    jobs: Jobs,
    code: Code,
    year: OneYear,
    csv: Annotated[bool, typer.Option("--csv", help="As a table, with the public columns.")] = False,
) -> None:
    """Print the last written coverage ledger, one JSON object per line."""
    _, source = _find(jobs, code, year)
    path = edition_folder(jobs.settings.home, source.code, year) / (CSV if csv else LEDGER)
    try:
        with path.open("rb") as file:
            # Copy bytes: a ledger may have gigabytes, and its digest is in the report.
            shutil.copyfileobj(file, sys.stdout.buffer, 1 << 20)
    except FileNotFoundError as exc:
        raise ArtefactNotFound(
            f"no report of {code} {year} was written yet; do so with: holdfast edition report --year {year} --apply"
        ) from exc
    sys.stdout.buffer.flush()


def _find(jobs: Jobs, code: str, year: int) -> tuple[Edition, Source]:
    with jobs.database.read() as session:
        source = find_source(session, code)
        return find_edition(session, source, campaign_year(year, now=jobs.clock.now())), source


def _shown(view: EditionView) -> Done:
    """Return an edition with its shards."""
    content: dict[str, Any] = encode(edition_detail(view), spelling=Spelling.COMMAND)
    printed = [fields([(name, value) for name, value in content.items() if not isinstance(value, dict | list)])]
    if shards := edition_detail(view).shards:
        printed += ["", rows_table(_SHARD_COLUMNS.split(), shards)]
    return Done(content, printed)


_SHARD_COLUMNS = "job_id shard_key status acceptance_state capture_backend pages_crawled pages_failed acceptance_reason"


def _planned(plan: Plan) -> Done:
    columns = ("source", "action", "name", "due", "reason")
    printed = [table(columns, [(one.source, one.step.value, one.name, one.at, one.reason) for one in plan.entries])]
    printed += [f"  {entry.source}: {text(note)}" for entry in plan.entries for note in entry.notes]
    errors = ["nothing was changed: fix the errors first"] if plan.refused else []
    return Done(plan, printed, not plan.refused, errors)
