"""`holdfast source`: the websites to archive. Changes are validated and audited; an error names the invalid field."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from holdfast.cli.formatting import counted, dumps, duration, fields, text
from holdfast.cli.parameters import Code, Contact, command_group, leaves, one_of, read_assignments
from holdfast.cli.resource import Done, Listing, Reading, Rows, Writing, command
from holdfast.cli.seeds import find_contact
from holdfast.config import Settings
from holdfast.crawl.survey import SiteSurvey, survey_site
from holdfast.errors import Invalid
from holdfast.jobs.administration import source_jobs
from holdfast.sources import registry
from holdfast.sources.config import SourceConfig, SourceRefused
from holdfast.sources.files import FORMS, MAX_BYTES, read_text, write_text
from holdfast.sources.members_file import write_noting
from holdfast.sources.queries import SiteSource, find_source, site_of, source_to_edit, sources
from holdfast.sources.records import SourceRecord
from holdfast.sources.registry import PRESETS
from holdfast.wiring.jobs import Jobs, check_backend, open_jobs
from holdfast.withdrawals.viewers import Visibility
from holdfast.zimit.errors import ToolConfigRefused

app_command = command_group(
    "Websites to archive, and how. Example: holdfast source create ex --seed https://example.org/"
)
_SOURCES = Listing(
    "sources",
    "code enabled visibility backend base_url name",
    "no sources yet; make one with: holdfast source create\nor take those that ship with it: holdfast seed-sources",
)
_command = partial(command, app_command, opened=nullcontext)
"""For a function that takes the settings."""
_job_command = partial(command, app_command, opened=open_jobs)

When = Annotated[
    str | None,
    typer.Option("--schedule", help="When it is crawled, as 'yearly on 1 January at 03:00'; once: when you start it."),
]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", help="A field of its configuration, e.g. max_depth=5 or storage=signals; repeatable."),
]
SourceFile = Annotated[Path, typer.Argument(help="A YAML or TOML file with a list `sources`.", metavar="FILE")]


@_job_command("seed", example="seed-sources")
def seed_sources(jobs: Jobs, session: Writing) -> Done:
    """Add the sources that ship with holdfast if they are missing, with options for crawls of several weeks.

    Their unconfirmed settings are listed: check them before a campaign.

    Acts at once: it only adds missing rows.
    """
    added = registry.seed_presets(session, jobs.clock)
    # Leave a source with an operator's settings unchanged, and name it.
    there = [preset.code for preset in PRESETS if preset.code not in added]
    unconfirmed = {preset.code: preset.unconfirmed for preset in PRESETS if preset.code in added}
    printed = [f"added: {', '.join(added) or 'none'}; there already: {', '.join(there) or 'none'}"]
    for code, notes in unconfirmed.items():
        printed.append(f"{code}: check it before a campaign (holdfast source show {code}); not confirmed:")
        printed += [f"  {one}" for one in notes]
    return Done({"added": added, "there": there, "unconfirmed": unconfirmed}, printed)


@_job_command("list", listing=_SOURCES, example="source list --enabled")
def list_sources(
    session: Reading,
    enabled: Annotated[bool | None, typer.Option("--enabled/--disabled", help="Only those.")] = None,
) -> Rows:
    """List the sources by code."""
    rows = source_jobs.source_records(session, sources(session, enabled=enabled, limit=100_000))
    return Rows(rows, {"total": len(rows)})


@_job_command(example="source show hc")
def show(session: Reading, code: Code) -> Done:
    """Show a source with its complete configuration and its warnings."""
    return _done(source_jobs.source_record(session, find_source(session, code)))


class SourceFields(NamedTuple):
    """The fields of a source, as they were typed."""

    seed: Annotated[list[str] | None, typer.Option(help="An address to begin at; repeatable.", metavar="URL")] = None
    name: Annotated[str | None, typer.Option(help="What people call it.")] = None
    base_url: Annotated[str | None, typer.Option(help="Its front page; the first seed if left out.")] = None
    description: Annotated[str | None, typer.Option(help="A sentence about it.")] = None
    visibility: Annotated[Visibility | None, typer.Option(help="Who may see its captures.")] = None
    schedule: When = None
    sets: Sets = None

    def content(self) -> dict[str, Any]:
        config = {**({"seeds": self.seed} if self.seed else {}), **read_assignments(self.sets or ())}
        names = ("name", "base_url", "description", "visibility")
        return {**{name: getattr(self, name) for name in names}, "config": config}


@_command(example='source create ex --seed https://example.org/ --schedule "weekly on Monday at 03:00"')
def create(
    settings: Settings,
    wanted: SourceFields,
    code: Annotated[
        str | None, typer.Argument(help="Its code; made from the name or the first seed if left out.", metavar="CODE")
    ] = None,
    disabled: Annotated[bool, typer.Option("--disabled", help="Keep it out of schedules for now.")] = False,
) -> Done:
    """Add a source."""
    content = {**wanted.content(), "code": code, "enabled": not disabled, "schedule": wanted.schedule}
    # Check before opening the database: a wrong field costs nothing.
    _demand_runnable(settings, registry.read_spec({**content, "code": code or "new"}).config)
    with open_jobs(settings) as jobs, write_noting(jobs.database, settings.home) as session:
        return _done(
            source_jobs.source_record(session, source_jobs.add_source(session, jobs.clock, jobs.actions, content))
        )


@_command(example="source survey example.org", is_quiet=True)
def survey(
    settings: Settings,
    url: Annotated[str, typer.Argument(help="The website, as you would type it.", metavar="URL")],
    sets: Sets = None,
    contact: Contact = None,
) -> Done:
    """Survey a website before crawling it: robots.txt, sitemaps, the first page, and what would be crawled.

    Stores nothing except the contact, if you give one. Stops after 25 s, 8 sitemaps or 100,000 URLs.
    """
    if contact is None:
        find_contact(settings)
    with open_jobs(settings) as jobs:

        def found_site(front_page: str) -> SiteSource:
            with jobs.database.read() as session:
                return site_of(session, front_page)

        found = survey_site(settings, url, site_of=found_site, contact=contact, config=read_assignments(sets or ()))
    return Done(found, _survey_lines(found))


def _survey_lines(found: SiteSurvey) -> Iterator[str]:
    count = "unknown: no sitemap" if found.page_count is None else f"{found.page_count:,}"
    if found.page_count is not None and not found.page_count_is_exact:
        count = f"at least {count}"
    robots = found.robots
    yield fields(
        [
            ("address", found.final_url),
            ("title", found.title),
            ("code", found.code),
            ("contact", found.contact),
            ("pages", count),
            ("links", f"{found.linked_pages:,} on the first page"),
            ("delay", f"{found.delay_s:g} s"),
            ("time", None if found.estimated_s is None else f"{duration(found.estimated_s)} for the pages alone"),
            ("robots.txt", f"forbids {robots.forbidden:,} of {counted(robots.judged, 'known page')}"),
            *(("sitemap", f"{one.url}  {one.problem or f'{one.entries:,} entries'}") for one in found.sitemaps),
        ]
    )
    for one in found.addresses:
        word = "yes" if one.in_scope and one.allowed is not False else "no"
        yield f"  {word:<4}{text(one.url)}  ({text(one.reason)})"
    for warning in found.warnings:
        yield f"warning: {text(warning)}"


@_job_command(example='source edit ex --name "Example" --set delay_s=5')
def edit(
    jobs: Jobs,
    code: Code,
    wanted: SourceFields,
    new_code: Annotated[
        str | None, typer.Option("--code", help="Another code, as long as the source has not run.", metavar="CODE")
    ] = None,
) -> Done:
    """Change the named fields of a source; --set FIELD=null restores a field's default."""
    changes = {name: value for name, value in wanted.content().items() if value is not None and value != {}}
    if wanted == SourceFields() and new_code is None:
        raise typer.BadParameter("say what to change, for example --name or --set max_depth=5")
    with write_noting(jobs.database, jobs.settings.home) as session:
        row = source_to_edit(session, code)
        if new_code is not None:
            registry.rename(session, jobs.clock, row, new_code)
        if changes:
            registry.edit(session, jobs.clock, row.code, changes)
        if "config" in changes:
            # Check inside the transaction: a rejection rolls back the edit.
            _demand_runnable(jobs.settings, registry.config_of(row, needs_seeds=False))
        source_jobs.plan_source(session, jobs.clock, jobs.actions, row.code, wanted.schedule)
        return _done(source_jobs.source_record(session, row))


@_job_command(example="source enable hc")
def enable(jobs: Jobs, session: Writing, code: Code) -> Done:
    """Enable a source; jobs that were paused by disabling it resume."""
    count = source_jobs.enable_source(session, jobs.clock, jobs.actions, code)
    return Done({"code": code, "enabled": True, "jobs": count}, f"{code}: enabled; {counted(count, 'job')} resumed")


@_job_command(example="source disable hc")
def disable(jobs: Jobs, session: Writing, code: Code) -> Done:
    """Disable a source; its scheduled jobs are paused, and running ones continue to their end."""
    count = source_jobs.disable_source(session, jobs.clock, code)
    return Done({"code": code, "enabled": False, "jobs": count}, f"{code}: disabled; {counted(count, 'job')} paused")


@_job_command(example="source delete ex")
def delete(jobs: Jobs, code: Code) -> Done:
    """Delete a source that has no jobs, captures or editions; otherwise disable it."""
    with write_noting(jobs.database, jobs.settings.home) as session:
        registry.delete(session, jobs.clock, code)
    return Done({"code": code, "deleted": True}, f"{code}: deleted")


@_command("import", example="source import sources.yaml --dry-run")
def take_in(
    settings: Settings,
    file: SourceFile,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would change, and change nothing.")] = False,
) -> Done:
    """Create and update sources from a file: all of them, or none if one is invalid.

    Acts at once; --dry-run shows what it would do.
    """
    specs = _read_specs(settings, file)
    with open_jobs(settings) as jobs, write_noting(jobs.database, settings.home) as session:
        done = source_jobs.take_in_sources(session, jobs.clock, jobs.actions, specs, apply=not dry_run)
    notes = [("created", done.created), ("updated", done.updated), ("unchanged", done.unchanged)]
    printed = [f"{word}: {', '.join(codes)}" for word, codes in notes if codes] or ["no sources in this file"]
    if dry_run:
        printed.append("nothing was written; leave out --dry-run to do so")
    return Done(done, printed)


@_job_command(example="source export hc phac --format toml -o canada.toml")
def export(
    jobs: Jobs,
    codes: Annotated[list[str] | None, typer.Argument(help="Codes; all sources if left out.", metavar="CODE")] = None,
    form: Annotated[str, typer.Option("--format", help="yaml or toml.")] = "yaml",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
) -> None:
    """Write sources as a file for `source import`."""
    one_of(form, FORMS, "--format")
    with jobs.database.read() as session:
        entries = source_jobs.file_entries(session, codes or ())
    written = f"{dumps({'sources': entries})}\n" if json else write_text(entries, form)
    if output is None:
        print(written, end="")
        return
    try:
        output.write_text(written, encoding="utf-8")
    except OSError as exc:
        raise Invalid(f"cannot write {output}: {exc.strerror}") from exc
    if not json:
        print(f"{output}: {counted(len(entries), 'source')}, {len(written.encode()):,} bytes", file=sys.stderr)


@_command(example="source validate sources.yaml")
def validate(settings: Settings, file: SourceFile) -> Done:
    """Validate a file of sources without changing anything; exit 1 names the first invalid field."""
    specs = _read_specs(settings, file)
    warnings = {spec.code: list(spec.config.warnings()) for spec in specs}
    codes = [spec.code for spec in specs]
    printed = [f"{counted(len(specs), 'source')} {'is' if len(specs) == 1 else 'are'} valid: {', '.join(codes)}"]
    printed += [f"{code}: warning: {text(warning)}" for code, notes in warnings.items() for warning in notes]
    return Done({"valid": True, "sources": codes, "warnings": warnings}, printed)


def _read_specs(settings: Settings, file: Path) -> list[registry.SourceSpec]:
    specs = registry.read_specs(read_file(file))
    for number, spec in enumerate(specs):
        _demand_runnable(settings, spec.config, where=f"sources[{number}].")
    return specs


def _demand_runnable(settings: Settings, whole: SourceConfig, *, where: str = "") -> None:
    """Reject a configuration that its backend cannot run here; names the invalid field, like the API."""
    try:
        check_backend(settings)(whole)
    except ToolConfigRefused as exc:
        raise SourceRefused(f"{where}config.{exc.field}", exc.reason) from exc


def read_file(file: Path) -> list[Any]:
    """Return the entries of a file; raise Invalid if it is unreadable, SourceRefused if it is not a list of
    sources.
    """
    try:
        with file.open("rb") as opened:
            # A device or a pipe has no size to check first: /dev/zero took all memory.
            data = opened.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise Invalid(f"{file} is longer than {MAX_BYTES} bytes")
        text = data.decode()
    except (OSError, UnicodeDecodeError) as exc:
        raise Invalid(f"cannot read {file}: {getattr(exc, 'strerror', None) or 'it is no UTF-8 text'}") from exc
    return read_text(text, "toml" if file.suffix.lower() == ".toml" else "yaml")


def _done(shown: SourceRecord) -> Done:
    config = dict(shown.config)
    seeds = config.pop("seeds", None) or ([shown.base_url] if shown.base_url else [])
    names = ("code", "name", "base_url", "enabled", "visibility", "schedule")
    printed = fields(
        [
            *((name.replace("_", " "), getattr(shown, name)) for name in names),
            ("about", shown.description),
            *(("seed", seed) for seed in seeds),
            ("changed", shown.updated_at),
        ]
    )
    settings = [f"  {text(name)} = {text(dumps(value))}" for name, value in leaves(config)]
    warnings = [f"warning: {text(warning)}" for warning in shown.warnings]
    return Done(shown, [printed, *settings, *warnings])
