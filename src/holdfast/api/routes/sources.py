"""`/api/sources` for readers, with the editions of a source; `/api/v1/sources` for operators to manage them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Depends, Path, Query, Request, Response
from pydantic import Field, StringConstraints, model_validator
from sqlalchemy.orm import Session

from holdfast.api.dependencies import (
    AdminWrite,
    AdminWriteDep,
    ArchiveDep,
    JobServiceDep,
    SessionDep,
    TotalsDep,
    source_of,
)
from holdfast.api.heavy import heavily, heavy_result
from holdfast.api.record_answers import record_response
from holdfast.api.routes.jobs import Limit, Offset
from holdfast.api.routing import LazyRouter
from holdfast.api.schemas.base import MAX_ID, RequestForm, RowId, Words, check_fields, check_values
from holdfast.api.schemas.source_config import SourceConfiguration
from holdfast.auth.roles import Permission
from holdfast.changes.site_comparison import asked_for_all
from holdfast.db.models import Snapshot, Source
from holdfast.errors import NotFound
from holdfast.index.capture_queries import (
    CaptureExtent,
    CrawlSummary,
    crawls,
    ends_of_execution,
    entry_of_crawl,
    extent_of_execution,
    newest_crawls,
    showing,
)
from holdfast.jobs.administration.source_jobs import (
    add_source,
    file_entries,
    plan_source,
    replace_source,
    source_record,
    source_records,
    switch_source,
    take_in_sources,
)
from holdfast.jobs.administration.source_preview import MOST_URLS, SourcePreview, preview_source
from holdfast.jobs.imports import job_names, run_endings
from holdfast.jobs.kinds import FEED
from holdfast.jobs.records import Message
from holdfast.jobs.specs import JobSpec
from holdfast.jobs.store import execution_name, schedules_of_sources
from holdfast.jobs.views.listing import DEFAULT_LIMIT, MAX_OFFSET, bounded_limit
from holdfast.records import Spelling, from_row
from holdfast.replay.origins import browse_url
from holdfast.sources import registry
from holdfast.sources.config import SourceRefused
from holdfast.sources.files import FORMS, read_text, write_text
from holdfast.sources.queries import SourceNotFound, listed_sources, names_of_sources, source_by_id
from holdfast.sources.records import (
    EditionSummary,
    SourceImport,
    SourceList,
    SourceName,
    SourceRecord,
    SourceSummary,
    SwitchedSource,
)
from holdfast.sources.schedule import schedule_of, words_of
from holdfast.urls.scope import EXCLUDE_PRESETS
from holdfast.wiring.archive import Archive
from holdfast.wiring.jobs import JobService
from holdfast.withdrawals.hidden_captures import hidden_counts
from holdfast.withdrawals.viewers import Visibility
from holdfast.withdrawals.visibility import members_among

router = LazyRouter(tags=["sources"])
# Records that one response reads, over all its crawls: if a part of a crawl was taken down, the dates of the rest are
# looked up. Beyond this number, crawls keep their recorded dates, and only the count leaves that part out.
_FEW_RECORDS = 10_000
# Most crawls of one response: each takes a few seeks.
_MOST = 200
Code = Annotated[str, Path(description="A source's code.", max_length=64, examples=["example-org"])]
Language = Annotated[
    str | None, Query(pattern="^[a-z]{2,3}$", description="Which language's entry page to name.", examples=["fr"])
]


@router.get("/api/sources", Permission.READ)
def sources(archive: ArchiveDep, session: SessionDep, totals: TotalsDep, lang: Language = None) -> list[SourceSummary]:
    """Return every source that has captures, by code."""
    kept = totals.read(session)
    candidates = [
        number
        for one in kept.representatives.values()
        for number in (*one.newest, *one.entry, *one.languages.get(lang or "", ()))
    ]
    shown = showing(session, candidates)
    led = members_among(session, shown)
    found = []
    for total in kept.listed:
        of_source = kept.representatives[total.source_id]
        newest = next((number for number in of_source.newest if number in shown), None)
        entry = next((shown[number] for number in of_source.entry if number in shown), None)
        topmost = of_source.languages.get(lang or "", ())
        entry = next((shown[number] for number in topmost if number in shown), None) or entry
        found.append(
            SourceSummary(
                source_code=total.code,
                source_name=total.name,
                base_url=total.base_url,
                description=total.description,
                visibility=Visibility(total.visibility),
                record_count=total.snapshots,
                first_capture=total.first.date(),
                last_capture=total.last.date(),
                latest_record_id=newest,
                entry_record_id=entry.id if entry else None,
                entry_browse_url=_browse(archive, entry, led),
                entry_preview_url=None,
            )
        )
    return found


def _browse(archive: Archive, entry: Snapshot | None, led: set[int]) -> str | None:
    return None if entry is None else browse_url(archive.settings, entry, for_members=entry.id in led)


@router.get("/api/sources/{code}/editions", Permission.READ, errors=(404,))
def editions(
    archive: ArchiveDep,
    session: SessionDep,
    code: Code,
    limit: Annotated[int, Query(ge=1, le=_MOST, description="Crawls of an answer.")] = _MOST,
    offset: Annotated[int, Query(ge=0, le=10_000, description="Newer crawls to leave out.")] = 0,
) -> list[EditionSummary]:
    """Return the most recently indexed crawls of a source, newest capture first."""
    source = source_of(session, code)
    ids = newest_crawls(session, source_id=source.id, limit=offset + limit)[offset:]
    hidden = hidden_counts(session, source_id=source.id, executions=ids)
    found = []
    budget = _FEW_RECORDS
    names, endings = job_names(session, ids), run_endings(session, ids)
    for crawl in crawls(session, ids):
        # If nothing of a crawl is withdrawn, the dates that the index recorded are correct.
        withdrawn = hidden.get(crawl.execution_id, 0)
        is_looked_at = withdrawn > 0 and crawl.records <= budget
        budget -= crawl.records if is_looked_at else 0
        extent = (
            extent_of_execution(session, crawl.execution_id)
            if is_looked_at
            else _noted_extent(session, crawl, withdrawn)
        )
        # All of it is withdrawn, or it has no pages: do not show its existence.
        if extent is None:
            continue
        pages, first, last = extent
        entry = entry_of_crawl(session, source.base_url, crawl.execution_id) if source.base_url else None
        found.append(
            (
                last,
                EditionSummary(
                    job_id=crawl.execution_id,
                    job_name=execution_name(source.code, crawl.execution_id, names.get(crawl.execution_id)),
                    record_count=pages,
                    first_capture=first.date(),
                    last_capture=last.date(),
                    last_captured_at=last if is_looked_at or not withdrawn else None,
                    is_poll=endings[crawl.execution_id][0] == FEED,
                    is_whole=asked_for_all(*endings[crawl.execution_id]),
                    entry_browse_url=_browse(archive, entry, members_among(session, [entry.id] if entry else ())),
                ),
            )
        )
    return [edition for _, edition in sorted(found, key=lambda row: (row[0], row[1].job_id), reverse=True)]


def _noted_extent(session: Session, crawl: CrawlSummary, hidden: int) -> CaptureExtent | None:
    """Return what may be shown of a crawl, as recorded by the index, minus pages taken down since."""
    noted = [moment for moment in (crawl.first, crawl.last) if moment is not None]
    moments, pages = noted or ends_of_execution(session, crawl.execution_id), crawl.pages - hidden
    return (pages, min(moments), max(moments)) if moments and pages > 0 else None


@router.get("/api/sources/{code}/preview", Permission.READ, errors=(404,))
def preview(
    session: SessionDep,
    code: Code,
    job_id: Annotated[RowId | None, Query(alias="jobId", description="Of this crawl.")] = None,
    lang: Annotated[str | None, Query(description="In this language.", max_length=35)] = None,
) -> None:
    """Return a picture of a source's first page. Not implemented (no browser captures): always 404."""
    source_of(session, code)
    raise NotFound(f"there is no preview of {code}: previews come with browser capture")


admin_router = LazyRouter(tags=["sources"])
# Most sources of one import: one transaction writes them, and must stay short.
_IMPORTED = 500
_TYPES = {"yaml": "application/yaml", "toml": "application/toml", "json": "application/json"}
_EXAMPLE = {"sources": [{"code": "example", "name": "Example", "config": {"seeds": ["https://example.org/"]}}]}
_AS_JSON = {"type": "object", "examples": [_EXAMPLE]}
_TEXT: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {media: {"schema": _AS_JSON} if form == "json" else {} for form, media in _TYPES.items()},
        "description": "A file.",
    }
}
_FILE = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    **_AS_JSON,
                    "required": ["sources"],
                    "properties": {"sources": {"type": "array", "maxItems": _IMPORTED, "items": {"type": "object"}}},
                }
            },
            "application/yaml": {"schema": {"type": "string"}},
            "application/toml": {"schema": {"type": "string"}},
        },
    }
}
SourceId = Annotated[int, Path(ge=0, le=MAX_ID, description="A source's id.", examples=[1])]


@admin_router.get("/api/v1/sources/exclude-presets", Permission.WATCH)
def exclude_presets() -> Annotated[dict[str, str], Field(examples=[{"shops": "/(cart|checkout)/"}])]:
    """Return the rules that `exclude` and `include` can name as `preset:NAME`, each with its regular expression."""
    return EXCLUDE_PRESETS


@admin_router.get("/api/v1/sources/names", Permission.WATCH, errors=(404,))
def source_names(session: SessionDep) -> list[SourceName]:
    """Return the names of all sources by code, at most 10,000, for selection lists."""
    rows = names_of_sources(session)
    schedules = schedules_of_sources(session, [row.id for row in rows])
    return [
        from_row(
            SourceName, row, is_yearly=row.hint == "annual" or words_of(schedules.get(row.id)).startswith("yearly")
        )
        for row in rows
    ]


@admin_router.get("/api/v1/sources", Permission.WATCH, errors=(404,))
def list_sources(
    session: SessionDep,
    limit: Limit = DEFAULT_LIMIT,
    offset: Offset = 0,
    enabled: Annotated[bool | None, Query(description="Only those that are, or are not.", examples=[True])] = None,
    search: Annotated[Words, Query(description="A part of a code, a name or an address.")] = "",
) -> SourceList:
    """Return sources by code."""
    limit, offset = bounded_limit(limit), min(max(offset, 0), MAX_OFFSET)
    rows, total = listed_sources(session, enabled=enabled, search=search.strip(), limit=limit, offset=offset)
    return SourceList(sources=source_records(session, rows), total=total, limit=limit, offset=offset)


_SHOWN_ONLY = ("id", "created_at", "updated_at", "warnings", "has_run")


class _Writing(RequestForm):
    @model_validator(mode="before")
    @classmethod
    def _plain(cls, content: Any) -> Any:
        """Accept a source as this API returned it; read-only fields are ignored."""
        check_values(check_fields(content))
        if isinstance(content, dict):
            # A client reads a source, changes a field and sends it back: do not reject the fields that only the server
            # writes.
            return {name: value for name, value in content.items() if name not in _SHOWN_ONLY}
        return content


class SourceChanges(_Writing, example={"config": {"delay_s": 5}}):
    """Changes of a source; other fields keep their values, inside `config` too, and null restores the default."""

    code: str | None = Field(
        None,
        max_length=64,
        description="1 to 40 lower-case letters, digits and hyphens; a new source's is made from its name if left out. "
        "Fixed once it ran.",
    )
    name: str | None = Field(None, max_length=200, description="Its code if it has none.")
    base_url: str | None = Field(None, max_length=8192, description="Its first page; the first seed if it has none.")
    description: str | None = Field(None, max_length=4000, description="For readers.")
    enabled: bool | None = Field(None, description="Its jobs wait or go on, as with enable and disable.")
    visibility: Visibility | None = Field(
        None,
        strict=False,
        description="Who may see its captures; left out, a new source is public and another stays as it is.",
    )
    schedule: str | None = Field(
        None,
        max_length=200,
        description="When it is crawled, in words: once, every 6 hours, daily at 03:00, weekly on Monday at 03:00 "
        "Europe/Paris, monthly on day 31 at 03:00, yearly on 1 January at 03:00. Left out, it stays as it is.",
    )
    config: SourceConfiguration | None = Field(None, description="The fields to change.")


class SourceForm(
    SourceChanges,
    example={"code": "example", "name": "Example", "config": {"seeds": ["https://example.org/"], "max_depth": 5}},
):
    """A complete source."""

    enabled: bool = Field(True, description="Whether its jobs run.")
    config: SourceConfiguration = Field(default_factory=dict, description="How it is crawled.")


@admin_router.post("/api/v1/sources", Permission.OPERATE, errors=(404, 413, 415), status_code=201)
def create_source(admin: AdminWriteDep, form: SourceForm) -> SourceRecord:
    """Create a source; if a field is invalid, the error names it and nothing is written."""
    with admin.write() as session:
        service = admin.job_service
        source = add_source(session, service.clock, service.actions, form.model_dump(exclude_none=True))
        service.check(registry.config_of(source))
        return source_record(session, source)


@admin_router.get("/api/v1/sources/export", Permission.WATCH, errors=(404,), response_class=Response, responses=_TEXT)
async def export_sources(
    request: Request,
    archive: ArchiveDep,
    format: Annotated[Literal["yaml", "toml", "json"], Query(description="Of the file.")] = "yaml",
    code: Annotated[
        list[Words] | None, Query(max_length=500, description="Of these only; repeatable.", examples=[["example"]])
    ] = None,
) -> Response:
    """Return all sources, or the named ones, as a file that can be imported."""

    def work() -> Response:
        with archive.database.read() as session:
            text = write_text(file_entries(session, code or ()), format)
        headers = {"Content-Disposition": f'attachment; filename="sources.{format}"'}
        return Response(text, media_type=_TYPES[format], headers=headers)

    return await heavily(request, work)


class SourcePreviewForm(
    SourceForm,
    example={
        "code": "example",
        "config": {"seeds": ["https://example.org/"], "exclude": ["/calendar/"]},
        "urls": ["https://example.org/news", "https://other.example/"],
        "schedule": "every 6 hours",
    },
):
    """An unsaved source, and the URLs to check against its scope."""

    urls: list[Annotated[str, StringConstraints(max_length=8192)]] = Field(
        default_factory=list, max_length=MOST_URLS, description="Addresses to judge."
    )
    interval_minutes: int | None = Field(None, description="In units of `interval_type`; `schedule` counts before it.")
    interval_type: str = Field("minutes", description="minutes, hours or days.")


@admin_router.post("/api/v1/sources/preview", Permission.OPERATE, errors=(413, 415), response_model=SourcePreview)
async def preview_of_source(
    request: Request, archive: ArchiveDep, job_service: JobServiceDep, form: SourcePreviewForm
) -> Response:
    """Preview a source without saving it: which URLs are in scope and by which rule, and its next runs."""

    def work() -> Response:
        # Use a thread for heavy work: a form requests this while it is filled in, and YAML of many thousand seeds takes
        # seconds.
        return record_response(_previewed(archive, job_service, form), spelling=Spelling.SNAKE)

    return await heavily(request, work)


def _previewed(archive: Archive, job_service: JobService, form: SourcePreviewForm) -> SourcePreview:
    content = form.model_dump(exclude_none=True, exclude={"urls", "interval_minutes", "interval_type"})
    # Reject it, naming its field, before creating anything.
    JobSpec(source_id=0, interval_minutes=form.interval_minutes, interval_type=form.interval_type).check()
    every = schedule_of(form.interval_minutes, form.interval_type, None)
    with archive.database.read() as session:
        job_service.look(session)
        return preview_source(
            session, content, urls=form.urls, every=every, now=job_service.clock.now(), check=job_service.check
        )


async def _file(request: Request) -> tuple[str, bytes]:
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    # curl sends application/x-www-form-urlencoded by default: parse it as JSON, so that the error has a reason.
    form = next((form for form in FORMS if media.endswith(form)), "json")
    return form, await request.body()


async def read_file(
    request: Request, sent: Annotated[tuple[str, bytes], Depends(_file)], job_service: JobServiceDep
) -> list[registry.SourceSpec]:
    """Return the sources of a file after validating all of them, on a heavy-work thread and before the write turn."""

    def read() -> list[registry.SourceSpec]:
        specs = registry.read_specs(_entries(*sent))
        for spec in specs:
            job_service.check(spec.config)
        return specs

    # A megabyte of YAML takes seconds: it gets one of the few places for heavy work, or a 503.
    return await heavy_result(request, read)


@admin_router.post("/api/v1/sources/import", Permission.OPERATE, errors=(404, 413, 415), openapi_extra=_FILE)
def import_sources(
    specs: Annotated[list[registry.SourceSpec], Depends(read_file)],
    admin: AdminWriteDep,  # after parsing the file: others may write while a long one is parsed
    dry_run: Annotated[bool, Query(description="Say what would change, and change nothing.")] = False,
) -> SourceImport:
    """Create and update sources from YAML, TOML or JSON: all of them, or none if one is invalid (the error names
    it).
    """
    with admin.write() as session:
        return take_in_sources(session, admin.clock, admin.actions, specs, apply=not dry_run)


def _entries(form: str, content: bytes) -> list[Any]:
    try:
        entries = read_text(content.decode(), form)
    except UnicodeDecodeError as exc:
        raise SourceRefused("file", "it is no UTF-8 text") from exc
    if len(entries) > _IMPORTED:
        raise SourceRefused("sources", f"{len(entries)} at once are more than {_IMPORTED}; send them in portions")
    return entries


@admin_router.get("/api/v1/sources/{id}", Permission.WATCH, errors=(404,))
def source_detail(session: SessionDep, id: SourceId) -> SourceRecord:
    """Return one source."""
    return source_record(session, _managed_source(session, id))


def _managed_source(session: Session, source_id: int) -> Source:
    found = source_by_id(session, source_id)
    if found is None:
        raise SourceNotFound(str(source_id))
    return found


@admin_router.put("/api/v1/sources/{id}", Permission.OPERATE, errors=(404, 413, 415))
def write_source(admin: AdminWriteDep, id: SourceId, form: SourceForm) -> SourceRecord:
    """Replace a source: omitted fields get their defaults, except its code, visibility and schedule.

    The code can be changed as long as the source has not run.
    """
    with admin.write() as session:
        source = _managed_source(session, id)
        registry.rename(session, admin.clock, source, form.code or source.code)
        entry = form.model_dump(exclude_none=True) | {"code": source.code}
        spec = registry.read_spec(entry, needs_seeds=registry.has_seeds(source))
        replace_source(session, admin.clock, admin.actions, spec)
        return _checked(session, admin, source)


@admin_router.patch("/api/v1/sources/{id}", Permission.OPERATE, errors=(404, 413, 415))
def edit_source(admin: AdminWriteDep, id: SourceId, form: SourceChanges) -> SourceRecord:
    """Change the named fields of a source, including those inside `config`; null restores the default."""
    with admin.write() as session:
        source = _managed_source(session, id)
        registry.rename(session, admin.clock, source, form.code or source.code)
        changes = form.model_dump(include=form.model_fields_set - {"code", "enabled", "schedule"})
        # null for the whole configuration would mean a source without seeds.
        if changes.get("config", {}) is None:
            raise SourceRefused("config", "write the fields that are to change")
        if changes:
            registry.edit(session, admin.clock, source.code, changes)
        if form.enabled is not None and form.enabled != source.enabled:
            switch_source(session, admin.clock, admin.actions, source.code, enabled=form.enabled)
        plan_source(session, admin.clock, admin.actions, source.code, form.schedule or None)
        return _checked(session, admin, source) if "config" in changes else source_record(session, source)


def _checked(session: Session, admin: AdminWrite, source: Source) -> SourceRecord:
    admin.job_service.check(registry.config_of(source, needs_seeds=False))
    return source_record(session, source)


def _switched(admin: AdminWrite, source_id: int, *, enabled: bool) -> SwitchedSource:
    with admin.write() as session:
        source = _managed_source(session, source_id)
        count = switch_source(session, admin.clock, admin.actions, source.code, enabled=enabled)
        return from_row(SwitchedSource, source_record(session, source), jobs=count)


@admin_router.post("/api/v1/sources/{id}/enable", Permission.OPERATE, errors=(404, 413, 415))
def enable(admin: AdminWriteDep, id: SourceId) -> SwitchedSource:
    """Enable a source; jobs that were paused because it was disabled resume in the least busy slots."""
    return _switched(admin, id, enabled=True)


@admin_router.post("/api/v1/sources/{id}/disable", Permission.OPERATE, errors=(404, 413, 415))
def disable(admin: AdminWriteDep, id: SourceId) -> SwitchedSource:
    """Disable a source: scheduled jobs are paused, running ones continue to their end."""
    return _switched(admin, id, enabled=False)


@admin_router.delete("/api/v1/sources/{id}", Permission.OPERATE, errors=(404, 413, 415))
def delete_source(admin: AdminWriteDep, id: SourceId) -> Message:
    """Delete a source without captures, editions, jobs or feeds; disable any other source instead."""
    with admin.write() as session:
        registry.delete(session, admin.clock, _managed_source(session, id).code)
    return Message(message="Source deleted")
