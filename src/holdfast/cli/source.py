"""`holdfast source`: what is kept. Every change is checked first and audited; a wrong field is named, nothing else."""

from __future__ import annotations

import json as jsonlib
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from sqlalchemy.orm import Session

from holdfast import config
from holdfast.archive_tool.errors import ToolConfigRefused
from holdfast.cli.formatting import counted, dumps, duration, fields, table, text
from holdfast.cli.parameters import AsJson, Home, command_group, configure_log, leaves, read_assignments
from holdfast.cli.seeds import find_contact
from holdfast.config import Settings
from holdfast.db.models import Source
from holdfast.errors import Invalid
from holdfast.jobs.administration.source_jobs import (
    add_source,
    disable_source,
    enable_source,
    file_entries,
    plan_source,
    take_in_sources,
)
from holdfast.jobs.store import schedules_of_sources
from holdfast.operations.survey import SiteSurvey, survey_site
from holdfast.sources import registry
from holdfast.sources.config import SourceConfig, SourceRefused
from holdfast.sources.files import FORMS, MAX_BYTES, read_text, write_text
from holdfast.sources.members_file import write_noting
from holdfast.sources.queries import SiteSource, find_source, site_of, source_to_edit, sources
from holdfast.sources.registry import PRESETS
from holdfast.sources.schedule import words_of
from holdfast.wiring.jobs import check_backend, open_jobs
from holdfast.withdrawals.viewers import Visibility


def seed_sources(json: AsJson = False, home: Home = None) -> None:
    """Add the sources that ship with holdfast, with options for a crawl of weeks, where they are missing.

    What is not confirmed about them is listed: look at it before a campaign.

    Acts at once: it only adds what is missing.
    Example: holdfast seed-sources
    """
    with open_jobs(config.load(home=home)) as jobs, jobs.database.write() as session:
        added = registry.seed_presets(session, jobs.clock)
    # One with settings of its keeper is left alone, and named.
    there = [preset.code for preset in PRESETS if preset.code not in added]
    unconfirmed = {preset.code: preset.unconfirmed for preset in PRESETS if preset.code in added}
    if json:
        print(jsonlib.dumps({"added": added, "there": there, "unconfirmed": unconfirmed}))
        return
    print(f"added: {', '.join(added) or 'none'}; there already: {', '.join(there) or 'none'}")
    for code, notes in unconfirmed.items():
        print(f"{code}: look at it before a campaign (holdfast source show {code}); not confirmed:")
        print("\n".join(f"  {one}" for one in notes))


app_command = command_group(
    "Sources: what is kept, and how. Example: holdfast source create ex --seed https://example.org/"
)
app_command.command(name="seed")(seed_sources)

Code = Annotated[str, typer.Argument(help="The source's code.", metavar="CODE")]
NewCode = Annotated[
    str | None, typer.Argument(help="Its code; made from the name or the first seed if left out.", metavar="CODE")
]
When = Annotated[
    str | None,
    typer.Option("--schedule", help="When it is crawled, as 'yearly on 1 January at 03:00'; once: when you start it."),
]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", help="A field of its configuration, e.g. max_depth=5 or storage=signals; repeatable."),
]
Name = Annotated[str | None, typer.Option("--name", help="What people call it.")]
Base = Annotated[str | None, typer.Option("--base-url", help="Its front page; the first seed if left out.")]
About = Annotated[str | None, typer.Option("--description", help="A sentence about it.")]
Shown = Annotated[
    Visibility | None, typer.Option("--visibility", help="Who may see what was captured of it; public if left out.")
]
Seeds = Annotated[list[str] | None, typer.Option("--seed", help="An address to begin at; repeatable.", metavar="URL")]
SourceFile = Annotated[Path, typer.Argument(help="A YAML or TOML file with a list `sources`.", metavar="FILE")]


@app_command.command(name="list")
def list_sources(
    enabled: Annotated[bool | None, typer.Option("--enabled/--disabled", help="Only those.")] = None,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """List the sources by code.

    Example: holdfast source list --enabled
    """
    with open_jobs(config.load(home=home)) as jobs, jobs.database.read() as session:
        rows = sources(session, enabled=enabled, limit=100_000)
    if json:
        print(jsonlib.dumps({"sources": [as_object(row) for row in rows], "total": len(rows)}, ensure_ascii=False))
    elif not rows:
        print("no sources yet; make one with: holdfast source create")
        print("or take those that ship with it: holdfast seed-sources")
    else:
        print(
            table(
                ("code", "enabled", "visibility", "backend", "base url", "name"),
                [
                    (
                        row.code,
                        row.enabled,
                        row.visibility,
                        row.config.get("backend", "native"),
                        row.base_url,
                        row.name,
                    )
                    for row in rows
                ],
            )
        )


@app_command.command()
def show(code: Code, json: AsJson = False, home: Home = None) -> None:
    """Show a source with its whole configuration, and what is worth a second look.

    Example: holdfast source show hc
    """
    with open_jobs(config.load(home=home)) as jobs, jobs.database.read() as session:
        row = find_source(session, code)
        planned = _planned(session, row)
    _print(row, planned, json=json)


@app_command.command()
def create(
    code: NewCode = None,
    seed: Seeds = None,
    name: Name = None,
    base_url: Base = None,
    description: About = None,
    visibility: Shown = None,
    schedule: When = None,
    sets: Sets = None,
    disabled: Annotated[bool, typer.Option("--disabled", help="Keep it out of schedules for now.")] = False,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Add a source.

    Example: holdfast source create ex --seed https://example.org/ --schedule "weekly on Monday at 03:00"
    """
    content = {
        "code": code,
        "name": name,
        "base_url": base_url,
        "description": description,
        "enabled": not disabled,
        "visibility": visibility,
        "schedule": schedule,
        "config": _fields(seed, sets),
    }
    settings = config.load(home=home)
    # Before the database is opened: a wrong field costs nothing.
    _demand_runnable(settings, registry.read_spec({**content, "code": code or "new"}).config)
    with open_jobs(settings) as jobs, write_noting(jobs.database, settings.home) as session:
        row = add_source(session, jobs.clock, jobs.actions, content)
        planned = _planned(session, row)
    _print(row, planned, json=json)


@app_command.command()
def survey(
    url: Annotated[str, typer.Argument(help="The website, as you would type it.", metavar="URL")],
    sets: Sets = None,
    contact: Annotated[str | None, typer.Option(help="E-mail or web address that site owners can reach.")] = None,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Look at a website before it is crawled: robots.txt, sitemaps, the first page, and what would be crawled.

    Stores nothing but a contact that is given. 25 s, 8 sitemaps and 100,000 addresses at most.
    Example: holdfast source survey example.org
    """
    settings = config.load(home=home)
    configure_log(settings, unless_set="ERROR")
    if contact is None:
        find_contact(settings)
    with open_jobs(settings) as jobs:

        def found_site(front_page: str) -> SiteSource:
            with jobs.database.read() as session:
                return site_of(session, front_page)

        found = survey_site(settings, url, site_of=found_site, contact=contact, config=read_assignments(sets or ()))
    if json:
        print(dumps(asdict(found)))
    else:
        _print_survey(found)


def _print_survey(found: SiteSurvey) -> None:
    known = found.page_count is not None
    count = (
        f"{'' if found.page_count_is_exact else 'at least '}{found.page_count:,}" if known else "unknown: no sitemap"
    )
    robots = found.robots
    print(
        fields(
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
    )
    for one in found.addresses:
        word = "yes" if one.in_scope and one.allowed is not False else "no"
        print(f"  {word:<4}{text(one.url)}  ({text(one.reason)})")
    for warning in found.warnings:
        print(f"warning: {text(warning)}")


@app_command.command()
def edit(
    code: Code,
    seed: Seeds = None,
    name: Name = None,
    base_url: Base = None,
    description: About = None,
    visibility: Annotated[Visibility | None, typer.Option("--visibility", help="Who may see its captures.")] = None,
    schedule: When = None,
    new_code: Annotated[
        str | None, typer.Option("--code", help="Another code, as long as the source has not run.", metavar="CODE")
    ] = None,
    sets: Sets = None,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Change the named fields of a source; --set FIELD=null gives a field its default again.

    Example: holdfast source edit ex --name "Example" --set delay_s=5
    """
    given = {
        "name": name,
        "base_url": base_url,
        "description": description,
        "visibility": visibility,
        "config": _fields(seed, sets) or None,
    }
    changes: dict[str, Any] = {field: value for field, value in given.items() if value is not None}
    if not changes and schedule is None and new_code is None:
        raise typer.BadParameter("say what to change, for example --name or --set max_depth=5")
    settings = config.load(home=home)
    with open_jobs(settings) as jobs, write_noting(jobs.database, settings.home) as session:
        row = source_to_edit(session, code)
        if new_code is not None:
            registry.rename(session, jobs.clock, row, new_code)
        if changes:
            registry.edit(session, jobs.clock, row.code, changes)
        if "config" in changes:
            # Inside the transaction: refused, the edit is rolled back.
            _demand_runnable(settings, registry.config_of(row, needs_seeds=False))
        plan_source(session, jobs.clock, jobs.actions, row.code, schedule)
        planned = _planned(session, row)
    _print(row, planned, json=json)


@app_command.command()
def enable(code: Code, json: AsJson = False, home: Home = None) -> None:
    """Enable a source; the jobs that its absence had paused go on.

    Example: holdfast source enable hc
    """
    with open_jobs(config.load(home=home)) as jobs, jobs.database.write() as session:
        count = enable_source(session, jobs.clock, jobs.actions, code)
    _switched(code, "enabled", count, ("goes on", "go on"), json=json)


@app_command.command()
def disable(code: Code, json: AsJson = False, home: Home = None) -> None:
    """Disable a source; its scheduled jobs are paused, what runs goes on to its end.

    Example: holdfast source disable hc
    """
    with open_jobs(config.load(home=home)) as jobs, jobs.database.write() as session:
        count = disable_source(session, jobs.clock, code)
    _switched(code, "disabled", count, ("waits", "wait"), json=json)


@app_command.command()
def delete(code: Code, json: AsJson = False, home: Home = None) -> None:
    """Remove a source that has no jobs, captures or editions; otherwise disable it.

    Example: holdfast source delete ex
    """
    settings = config.load(home=home)
    with open_jobs(settings) as jobs, write_noting(jobs.database, settings.home) as session:
        registry.delete(session, jobs.clock, code)
    print(jsonlib.dumps({"code": code, "deleted": True}) if json else f"{code}: deleted")


@app_command.command(name="import")
def take_in(
    file: SourceFile,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would change, and change nothing.")] = False,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Create and update sources from a file: all of it, or nothing if one entry is wrong.

    Acts at once; --dry-run shows what it would do.
    Example: holdfast source import sources.yaml --dry-run
    """
    settings = config.load(home=home)
    specs = _read_specs(settings, file)
    with open_jobs(settings) as jobs, write_noting(jobs.database, settings.home) as session:
        done = take_in_sources(session, jobs.clock, jobs.actions, specs, apply=not dry_run)
    if json:
        print(
            jsonlib.dumps(
                {"created": done.created, "updated": done.updated, "unchanged": done.unchanged, "dry_run": dry_run}
            )
        )
        return
    notes = [("created", done.created), ("updated", done.updated), ("unchanged", done.unchanged)]
    print("\n".join(f"{word}: {', '.join(codes)}" for word, codes in notes if codes) or "no sources in this file")
    if dry_run:
        print("nothing was written; leave out --dry-run to do so")


@app_command.command()
def export(
    codes: Annotated[list[str] | None, typer.Argument(help="Codes; all sources if left out.", metavar="CODE")] = None,
    form: Annotated[str, typer.Option("--format", help="yaml or toml.")] = "yaml",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
    home: Home = None,
) -> None:
    """Write sources as a file that `source import` takes.

    Example: holdfast source export hc phac --format toml -o canada.toml
    """
    if form not in FORMS:
        raise typer.BadParameter(f"write one of {', '.join(FORMS)}", param_hint="--format")
    with open_jobs(config.load(home=home)) as jobs, jobs.database.read() as session:
        entries = file_entries(session, codes or ())
    written = jsonlib.dumps({"sources": entries}, ensure_ascii=False) + "\n" if json else write_text(entries, form)
    if output is None:
        print(written, end="")
        return
    try:
        output.write_text(written, encoding="utf-8")
    except OSError as exc:
        raise Invalid(f"cannot write {output}: {exc.strerror}") from exc
    if not json:
        size = len(written.encode())
        print(f"{output}: {counted(len(entries), 'source')}, {size:,} bytes", file=sys.stderr)


@app_command.command()
def validate(file: SourceFile, json: AsJson = False, home: Home = None) -> None:
    """Check a file of sources without touching anything; exit 1 names the first field that is wrong.

    Example: holdfast source validate sources.yaml
    """
    specs = _read_specs(config.load(home=home), file)
    warnings = {spec.code: list(spec.config.warnings()) for spec in specs}
    if json:
        print(jsonlib.dumps({"valid": True, "sources": [spec.code for spec in specs], "warnings": warnings}))
        return
    verb = "is" if len(specs) == 1 else "are"
    print(f"{counted(len(specs), 'source')} {verb} valid: {', '.join(spec.code for spec in specs)}")
    for code, notes in warnings.items():
        for warning in notes:
            print(f"{code}: warning: {text(warning)}")


def _read_specs(settings: Settings, file: Path) -> list[registry.SourceSpec]:
    """Return the sources of a file, all of them fit to run here."""
    specs = registry.read_specs(read_file(file))
    for number, spec in enumerate(specs):
        _demand_runnable(settings, spec.config, where=f"sources[{number}].")
    return specs


def _demand_runnable(settings: Settings, whole: SourceConfig, *, where: str = "") -> None:
    """Refuse a configuration that its backend could not run here, by the field that is wrong, as the API does."""
    try:
        check_backend(settings)(whole)
    except ToolConfigRefused as exc:
        raise SourceRefused(f"{where}config.{exc.field}", exc.reason) from exc


def read_file(file: Path) -> list[Any]:
    """Return the entries of a file; Invalid if it cannot be read, SourceRefused if it is no list of sources."""
    try:
        with file.open("rb") as opened:
            # A device or a pipe has no size to ask for first: /dev/zero took all memory.
            data = opened.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise Invalid(f"{file} is longer than {MAX_BYTES} bytes")
        text = data.decode()
    except (OSError, UnicodeDecodeError) as exc:
        raise Invalid(f"cannot read {file}: {getattr(exc, 'strerror', None) or 'it is no UTF-8 text'}") from exc
    return read_text(text, "toml" if file.suffix.lower() == ".toml" else "yaml")


def as_object(row: Source) -> dict[str, Any]:
    """Return a source for `--json`, with the configuration that is kept."""
    moments = {"created_at": row.created_at.isoformat(), "updated_at": row.updated_at.isoformat()}
    return {**registry.source_object(row), **moments}


def _fields(seeds: list[str] | None, sets: list[str] | None) -> dict[str, Any]:
    return {**({"seeds": seeds} if seeds else {}), **read_assignments(sets or ())}


def _planned(session: Session, row: Source) -> str:
    return words_of(schedules_of_sources(session, [row.id]).get(row.id))


def _print(row: Source, schedule: str, *, json: bool) -> None:
    warnings = registry.warnings_of(row)
    if json:
        print(jsonlib.dumps({**as_object(row), "schedule": schedule, "warnings": warnings}, ensure_ascii=False))
        return
    print(
        fields(
            [
                ("code", row.code),
                ("name", row.name),
                ("base url", row.base_url),
                ("enabled", row.enabled),
                ("visibility", row.visibility),
                ("schedule", schedule),
                ("about", row.description),
                *(("seed", seed) for seed in registry.content_of(row).get("seeds") or ()),
                ("changed", row.updated_at),
            ]
        )
    )
    for name, value in leaves({name: value for name, value in row.config.items() if name != "seeds"}):
        print(f"  {text(name)} = {text(jsonlib.dumps(value, ensure_ascii=False))}")
    for warning in warnings:
        print(f"warning: {text(warning)}")


def _switched(code: str, word: str, count: int, verbs: tuple[str, str], *, json: bool) -> None:
    if json:
        print(jsonlib.dumps({"code": code, "enabled": word == "enabled", "jobs": count}))
    else:
        print(f"{code}: {word}; {counted(count, 'job')} {verbs[count != 1]}")
