"""The registry of sources: create, edit, enable, disable, delete, import and export.

Every change is checked before it is written, and audited. The code that opens the session ends it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace as dataclass_replace
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from holdfast import audit
from holdfast.clock import Clock
from holdfast.db.audit_events import AuditAction
from holdfast.db.models import Source
from holdfast.errors import Conflict, Invalid, UrlRefused
from holdfast.sources import queries
from holdfast.sources.codes import CODE_CHARS
from holdfast.sources.config import Fields, SourceConfig, SourceRefused, merge_fields, read_config
from holdfast.sources.members_file import mark_changed
from holdfast.sources.queries import find_source, source_to_edit
from holdfast.sources.records import SourceImport
from holdfast.sources.schedule import ScheduleRefused, read_schedule
from holdfast.urls import parse_seed
from holdfast.values import dataclass
from holdfast.withdrawals.hiding import tell_search
from holdfast.withdrawals.viewers import Visibility
from holdfast.withdrawals.visibility import is_for_members


class SourceTaken(Conflict):
    """Another source already has this code."""

    code = "source_taken"

    def __init__(self, code: str) -> None:
        super().__init__(f"there is a source {code!r} already; edit it, or choose another code")
        self.field = "code"


class SourceInUse(Conflict):
    """A source with jobs, captures or editions cannot be deleted."""

    code = "source_in_use"

    def __init__(self, code: str, what: str) -> None:
        super().__init__(
            f"the source {code!r} has {what}, which stay; disable it instead: holdfast source disable {code}"
        )


# A crawl of the year runs for weeks unattended: 20 restarts, 50 errors before one, 2 minutes between them.
RESILIENT: Final[dict[str, Any]] = {
    "cleanup": False,
    "overwrite": False,
    "skip_final_build": True,
    "enable_monitoring": True,
    "enable_adaptive_workers": True,
    "enable_adaptive_restart": True,
    "enable_vpn_rotation": False,
    "initial_workers": 2,
    "log_level": "INFO",
    "stall_timeout_minutes": 60,
    "docker_shm_size": "1g",
    "error_threshold_timeout": 50,
    "error_threshold_http": 50,
    "max_container_restarts": 20,
    "backoff_delay_minutes": 2,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A source that ships with the product."""

    code: str
    name: str
    base_url: str
    description: str
    config: dict[str, Any]
    unconfirmed: tuple[str, ...]
    """Settings that an operator must check before a campaign; changed with `holdfast source edit`."""


def _preset_config(seeds: list[str], include: list[str], *, scope: str = "page") -> dict[str, Any]:
    """Return a configuration without caps on pages or depth: only scope rules bound an annual crawl."""
    return {
        "seeds": seeds,
        "scope": scope,
        "include": include,
        "max_depth": -1,
        "name_template": "{code}-{date:%Y%m%d}",
        "schedule_hint": "annual",
        "zimit": {"tool_options": dict(RESILIENT)},
    }


# In the queueing order of an annual campaign. Presets are data: no code refers to one by name.
PRESETS: Final = (
    Preset(
        code="hc",
        name="Health Canada",
        base_url="https://www.canada.ca/en/health-canada.html",
        description="Federal health department of Canada, in English and French.",
        config=_preset_config(
            ["https://www.canada.ca/en/health-canada.html", "https://www.canada.ca/fr/sante-canada.html"],
            [r"^https?://www\.canada\.ca/(en/health-canada|fr/sante-canada)(/|\.html|$)"],
        ),
        unconfirmed=("the French seed", "the scope rules"),
    ),
    Preset(
        code="phac",
        name="Public Health Agency of Canada",
        base_url="https://www.canada.ca/en/public-health.html",
        description="Federal public health agency of Canada, in English and French.",
        config=_preset_config(
            ["https://www.canada.ca/en/public-health.html", "https://www.canada.ca/fr/sante-publique.html"],
            [r"^https?://www\.canada\.ca/(en/public-health|fr/sante-publique)(/|\.html|$)"],
        ),
        unconfirmed=("the addresses of both seeds", "the scope rules"),
    ),
    Preset(
        code="cihr",
        name="Canadian Institutes of Health Research",
        base_url="https://cihr-irsc.gc.ca/e/193.html",
        description="Federal funding agency for health research in Canada, in English and French.",
        config=_preset_config(
            ["https://cihr-irsc.gc.ca/e/193.html", "https://cihr-irsc.gc.ca/f/193.html"], [], scope="host"
        ),
        unconfirmed=("both seeds", "the scope: the whole host", "all but the code and the place in the order"),
    ),
)


# Language names in the first path segment of the presets' sites, and our codes. Other sites get one shard per seed;
# another language is another entry.
LANGUAGE_PATHS: Final = {"en": "en", "e": "en", "eng": "en", "fr": "fr", "f": "fr", "fra": "fr"}

_CODE_RULE: Final = f"write 1 to {CODE_CHARS} lower-case letters, digits and hyphens"
# Maximum length of a source's texts, whatever their origin.
_LIMITS = {"name": 200, "base_url": 2048, "description": 4000}


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSpec:
    """A checked source from a request or a file."""

    code: str
    name: str
    base_url: str | None
    description: str | None
    enabled: bool
    config: SourceConfig
    visibility: Visibility | None = None
    """None if it is missing: a new source is public, an existing one is unchanged. Older files, which lack this
    field, must not open a members' source.
    """
    schedule: str | None = None
    """The schedule in the words of `holdfast.sources.schedule`; None leaves the job's schedule unchanged."""


def read_spec(content: Mapping[str, Any], *, needs_seeds: bool = True) -> SourceSpec:
    """Return a checked source from a request or file entry; raise SourceRefused with the invalid field."""
    given = Fields(content)
    code = given.text("code", limit=CODE_CHARS)
    if code is None or not queries.is_code(code):
        raise given.refuse("code", _CODE_RULE)
    name, base_url = given.text("name", limit=_LIMITS["name"]) or code, _address(given.text("base_url"))
    spec = SourceSpec(
        code=code,
        name=name,
        base_url=base_url,
        description=given.text("description", limit=_LIMITS["description"]),
        enabled=given.switch("enabled", True),
        config=_config({**_front(base_url), **given.mapping("config")}, needs_seeds=needs_seeds),
        visibility=_visibility(given),
        schedule=_schedule(given),
    )
    given.done()
    return spec


def with_code(session: Session, content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content with a code; a missing one is generated from its name or its first seed."""
    if content.get("code"):
        return dict(content)
    config = content.get("config")
    seeds = config.get("seeds") if isinstance(config, Mapping) else None
    first = seeds[0] if isinstance(seeds, list | tuple) and seeds else content.get("base_url")
    name = content.get("name")
    made = queries.new_code(
        session, name=name if isinstance(name, str) else None, seed=first if isinstance(first, str) else None
    )
    return {**content, "code": made}


# Whether a text is a schedule does not depend on the time.
_ANY_MOMENT: Final = datetime(2000, 1, 1, tzinfo=UTC)


def _schedule(given: Fields) -> str | None:
    words = given.text("schedule", limit=200)
    try:
        if words is not None:
            read_schedule(words, now=_ANY_MOMENT)
    except ScheduleRefused as exc:
        raise given.refuse("schedule", exc.reason) from exc
    return words


def _visibility(given: Fields) -> Visibility | None:
    word = given.choice("visibility", [one.value for one in Visibility], "")
    return Visibility(word) if word else None


def _front(base_url: str | None) -> dict[str, Any]:
    return {"seeds": [base_url]} if base_url else {}


def _config(content: Mapping[str, Any], *, needs_seeds: bool) -> SourceConfig:
    try:
        return read_config(content, needs_seeds=needs_seeds)
    except SourceRefused as exc:
        raise SourceRefused(f"config.{exc.field}", exc.reason) from exc


def _address(text: str | None) -> str | None:
    try:
        return None if text is None else parse_seed(text).fetch
    except UrlRefused as exc:
        raise SourceRefused("base_url", str(exc)) from exc


def create(session: Session, clock: Clock, spec: SourceSpec) -> Source:
    """Add a source; raise SourceTaken if its code is in use."""
    if queries.source_by_code(session, spec.code) is not None:
        raise SourceTaken(spec.code)
    try:
        source = _new_row(session, clock, spec)
        session.add(source)
        session.flush()
        return source
    # Two concurrent requests with one code both find it free above; the unique constraint decides.
    except IntegrityError as exc:
        raise SourceTaken(spec.code) from exc


def _new_row(session: Session, clock: Clock, spec: SourceSpec) -> Source:
    now = clock.now()
    source = Source(
        code=spec.code,
        name=spec.name,
        base_url=spec.base_url or spec.config.seeds[0],
        description=spec.description,
        enabled=spec.enabled,
        config=spec.config.stored(),
        visibility=(spec.visibility or Visibility.PUBLIC).value,
        created_at=now,
        updated_at=now,
    )
    if is_for_members(source):
        mark_changed(session, source.code, is_for_members=True)
    _audit(session, clock, "source.created", source, spec.config)
    return source


def edit(session: Session, clock: Clock, code: str, changes: Mapping[str, Any]) -> Source:
    """Change the named fields of a source; below `config` and in its groups only the named ones; null resets one.

    Raise SourceNotFound, or SourceRefused with the invalid field, changing nothing. `rename` changes its code.
    """
    source = source_to_edit(session, code)
    given = Fields(changes)
    fresh = {name: given.text(name, limit=limit) for name, limit in _LIMITS.items() if name in changes}
    config = given.mapping("config")
    visibility = _visibility(given)
    given.done()
    if "base_url" in fresh:
        fresh["base_url"] = _address(fresh["base_url"])
    if "name" in fresh and fresh["name"] is None:
        raise given.refuse("name", "a source has a name")
    # Validate everything before setting anything: the session must not flush half an edit.
    checked = _config(merge_fields(content_of(source), config), needs_seeds=has_seeds(source)) if config else None
    for name, value in fresh.items():
        setattr(source, name, value)
    if checked is not None:
        source.config = checked.stored()
    _show_to(session, clock, source, visibility)
    source.updated_at = clock.now()
    _audit(session, clock, "source.edited", source, checked)
    return source


def rename(session: Session, clock: Clock, source: Source, code: str) -> None:
    """Change the code of a source that has not run; raise SourceRefused or SourceTaken."""
    if code == source.code:
        return
    if not queries.is_code(code):
        raise SourceRefused("code", _CODE_RULE)
    if queries.started_among(session, [source.id]):
        raise SourceRefused(
            "code",
            f"it is {source.code!r} since the first run: links and files carry it; create another source instead",
        )
    if queries.source_by_code(session, code) is not None:
        raise SourceTaken(code)
    before, source.code, source.updated_at = source.code, code, clock.now()
    if is_for_members(source):
        mark_changed(session, before, is_for_members=False)
        mark_changed(session, code, is_for_members=True)
    try:
        session.flush()
    # Another request may have taken the code since the check.
    except IntegrityError as exc:
        raise SourceTaken(code) from exc
    audit.record(session, clock, action="source.renamed", subject=f"source {code}", detail={"from": before, "to": code})


def _show_to(session: Session, clock: Clock, source: Source, visibility: Visibility | None) -> None:
    """Change a source's visibility with the commit; None leaves it unchanged."""
    if visibility is None or visibility == source.visibility:
        return
    detail = {"from": source.visibility, "to": visibility.value}
    source.visibility = visibility.value
    tell_search(session, clock, source.id)
    mark_changed(session, source.code, is_for_members=is_for_members(source))
    audit.record(session, clock, action="source.visibility", subject=f"source {source.code}", detail=detail)


def switch(session: Session, clock: Clock, code: str, *, enabled: bool) -> bool:
    """Enable or disable a source; return False if nothing changed. `jobs.administration` adjusts its jobs."""
    source = source_to_edit(session, code)
    if source.enabled == enabled:
        return False
    source.enabled, source.updated_at = enabled, clock.now()
    _audit(session, clock, "source.enabled" if enabled else "source.disabled", source, None)
    return True


def delete(session: Session, clock: Clock, code: str) -> None:
    """Delete a source; raise SourceInUse if something belongs to it."""
    source = find_source(session, code)
    # No cascade: captures must survive a removed source or a mistyped code.
    belongs = queries.belongings(session, source_id=source.id)
    if belongs is not None:
        raise SourceInUse(code, belongs)
    if is_for_members(source):
        mark_changed(session, source.code, is_for_members=False)
    _audit(session, clock, "source.deleted", source, None)
    session.delete(source)
    session.flush()


def config_of(source: Source, *, needs_seeds: bool = True) -> SourceConfig:
    """Return a source's checked configuration; those from ad-hoc crawls and imports have the base URL as seed."""
    return read_config(content_of(source), needs_seeds=needs_seeds)


def has_seeds(source: Source) -> bool:
    """Return whether a source can be crawled at all. Sources that only group imported files have no seeds."""
    return bool(content_of(source).get("seeds"))


def warnings_of(source: Source) -> list[str]:
    """Return warnings about the configuration, also for one that a stricter version rejects, so it can be fixed."""
    try:
        return list(config_of(source, needs_seeds=False).warnings())
    except Invalid as exc:
        return [str(exc)]


def content_of(source: Source) -> dict[str, Any]:
    """Return a source's stored configuration, unchecked, with its front page as the default seed."""
    return {**_front(source.base_url), **source.config}


def export(session: Session, *, codes: Iterable[str] = ()) -> list[dict[str, Any]]:
    """Return sources as file entries: those named, or all that can be crawled; raise SourceNotFound."""
    rows = [find_source(session, code) for code in codes]
    # A source without seeds could not be imported again.
    rows = rows or [row for row in queries.sources(session, limit=100_000) if has_seeds(row)]
    return [
        {name: value for name, value in {"code": row.code, **_values_of_row(row)}.items() if value is not None}
        for row in rows
    ]


def read_specs(entries: Iterable[Any]) -> list[SourceSpec]:
    """Return the checked sources of a file; raise SourceRefused with the first invalid entry and field."""
    specs: dict[str, SourceSpec] = {}
    for number, entry in enumerate(entries):
        try:
            spec = read_spec(entry)
        except SourceRefused as exc:
            raise SourceRefused(f"sources[{number}].{exc.field}", exc.reason) from exc
        # Reject it: the second entry would silently win, and its author would search the first for the mistake.
        if spec.code in specs:
            raise SourceRefused(f"sources[{number}].code", f"{spec.code!r} stands twice in this file")
        specs[spec.code] = spec
    return list(specs.values())


def import_specs(session: Session, clock: Clock, specs: Sequence[SourceSpec], *, apply: bool = True) -> SourceImport:
    """Create and update sources checked by `read_specs`; return the result, or that of a dry run.

    Does little more than write rows, so that hundreds are one short transaction.
    """
    found = queries.sources_by_code(session, [spec.code for spec in specs], to_edit=apply)
    results: dict[str, list[str]] = {"created": [], "updated": [], "unchanged": []}
    for spec in specs:
        results[_import_one(session, clock, spec, found.get(spec.code), apply=apply)].append(spec.code)
    return SourceImport(**results, dry_run=not apply)


def _import_one(session: Session, clock: Clock, spec: SourceSpec, source: Source | None, *, apply: bool) -> str:
    if source is None:
        if apply:
            session.add(_new_row(session, clock, spec))
        return "created"
    if _values_of_spec(source, spec) == _values_of_row(source):
        return "unchanged"
    if apply:
        _write(session, clock, source, spec, action="source.imported")
    return "updated"


def replace(session: Session, clock: Clock, spec: SourceSpec) -> bool:
    """Replace a source; return False if nothing changed. Raise SourceNotFound."""
    source = source_to_edit(session, spec.code)
    if _values_of_spec(source, spec) == _values_of_row(source):
        return False
    _write(session, clock, source, spec, action="source.edited")
    return True


def _write(session: Session, clock: Clock, source: Source, spec: SourceSpec, *, action: AuditAction) -> None:
    for name, value in _values_of_spec(source, spec).items():
        if name != "visibility":
            setattr(source, name, value)
    _show_to(session, clock, source, spec.visibility)
    source.updated_at = clock.now()
    _audit(session, clock, action, source, spec.config)


def _values_of_spec(source: Source, spec: SourceSpec) -> dict[str, Any]:
    config, base_url = spec.config.stored(), spec.base_url or source.base_url
    # Otherwise importing an export would report every ad-hoc source as changed.
    if "seeds" not in source.config and config.get("seeds") == [base_url]:
        del config["seeds"]
    return {
        "name": spec.name,
        "base_url": base_url,
        "description": spec.description,
        "enabled": spec.enabled,
        "visibility": source.visibility if spec.visibility is None else spec.visibility.value,
        "config": config,
    }


def _values_of_row(source: Source) -> dict[str, Any]:
    names = ("name", "base_url", "description", "enabled", "visibility", "config")
    return {name: getattr(source, name) for name in names}


def seed_presets(session: Session, clock: Clock) -> tuple[str, ...]:
    """Add the sources that ship with the product, in order; return the codes that were new (`seed-sources`).

    An existing one is unchanged, unless it is bare (`is_bare`).
    """
    added = []
    for preset in PRESETS:
        spec = SourceSpec(
            code=preset.code,
            name=preset.name,
            base_url=preset.base_url,
            description=preset.description,
            enabled=True,
            config=read_config(preset.config),
        )
        there = queries.source_by_code(session, preset.code)
        if there is None:
            create(session, clock, spec)
        # `import` or `register-job-dir` created it before the preset: it has no seeds, and a campaign would silently
        # skip it.
        elif is_bare(there):
            name = spec.name if there.name == there.code else there.name
            _write(
                session, clock, there, dataclass_replace(spec, name=name, enabled=there.enabled), action="source.seeded"
            )
        else:
            continue
        added.append(preset.code)
    return tuple(added)


def is_bare(source: Source) -> bool:
    """Return whether a source has only a code and a name: files were imported into it, and it was never edited."""
    return not source.config and source.base_url is None


def _audit(session: Session, clock: Clock, action: AuditAction, source: Source, config: SourceConfig | None) -> None:
    detail: dict[str, Any] = {"code": source.code, "name": source.name, "visibility": source.visibility}
    # The reason for ignoring robots.txt stays in the log even if the source is edited or deleted later.
    if config is not None and config.robots == "ignore":
        detail["robots_ignored"] = config.robots_reason
    audit.record(session, clock, action=action, subject=f"source {source.code}", detail=detail)
