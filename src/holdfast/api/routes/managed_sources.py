"""`/api/v1/sources`: sources listed, made, changed, enabled, disabled, deleted, imported and exported."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from sqlalchemy.orm import Session

from holdfast.api.deps import SessionDep
from holdfast.api.errors import answers
from holdfast.api.hands import DeskDep, Hand, HandDep
from holdfast.api.roles import ADMIN
from holdfast.api.routes.jobs import Limit, Offset
from holdfast.api.schemas.forms import MAX_ID, Words
from holdfast.api.schemas.jobs import Message
from holdfast.api.schemas.managed_sources import (
    ImportedShown,
    ManagedSource,
    ManagedSourceList,
    SourceChanges,
    SourceForm,
    SwitchedSource,
)
from holdfast.db.models import Source
from holdfast.errors import Invalid
from holdfast.jobs.following import disable_source, enable_source, replace_source, take_in_sources
from holdfast.jobs.listing.values import DEFAULT_LIMIT, MAX_OFFSET, bounded_limit
from holdfast.sources import registry
from holdfast.sources.queries import listed_sources, source_by_id
from holdfast.sources.refusals import SourceNotFound, SourceRefused
from holdfast.sources.texts import FORMS, read_text, write_text

router = APIRouter(tags=["sources"], dependencies=[ADMIN])
_READ = answers(400, 403, 404, 503)
_CHANGED = answers(400, 403, 404, 413, 415, 503)
_IMPORTED = 500
"""Sources of one import: they are written in one transaction, which must stay short."""
_TYPES = {"yaml": "application/yaml", "toml": "application/toml", "json": "application/json"}
_EXAMPLE = {"sources": [{"code": "example", "name": "Example", "config": {"seeds": ["https://example.org/"]}}]}
_AS_JSON = {"type": "object", "examples": [_EXAMPLE]}
_TEXT: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {media: {"schema": _AS_JSON} if form == "json" else {} for form, media in _TYPES.items()},
        "description": "A file.",
    }
}
_FILE = {"requestBody": {"required": True, "content": {
    "application/json": {"schema": {**_AS_JSON, "required": ["sources"], "properties": {
        "sources": {"type": "array", "maxItems": _IMPORTED, "items": {"type": "object"}}}}},
    "application/yaml": {"schema": {"type": "string"}}, "application/toml": {"schema": {"type": "string"}},
}}}  # fmt: skip
SourceId = Annotated[int, Path(ge=0, le=MAX_ID, description="A source's id.", examples=[1])]


@router.get("/api/v1/sources", responses=_READ)
def list_sources(
    session: SessionDep,
    limit: Limit = DEFAULT_LIMIT,
    offset: Offset = 0,
    enabled: Annotated[bool | None, Query(description="Only those that are, or are not.", examples=[True])] = None,
    search: Annotated[Words, Query(description="A part of a code, a name or an address.")] = "",
) -> ManagedSourceList:
    """Return sources by code (NC-062)."""
    limit, offset = bounded_limit(limit), min(max(offset, 0), MAX_OFFSET)
    rows, total = listed_sources(session, enabled=enabled, search=search.strip(), limit=limit, offset=offset)
    return ManagedSourceList(sources=[ManagedSource(**_shape(row)) for row in rows], total=total, limit=limit,
                             offset=offset)  # fmt: skip


def _shape(source: Source) -> dict[str, Any]:
    try:
        warnings = list(registry.config_of(source).warnings())
    except Invalid as exc:
        warnings = [str(exc)]
    return {
        "id": source.id, "code": source.code, "name": source.name, "base_url": source.base_url,
        "description": source.description, "enabled": source.enabled, "config": source.config, "warnings": warnings,
        "created_at": source.created_at, "updated_at": source.updated_at,
    }  # fmt: skip


@router.post("/api/v1/sources", status_code=201, responses=_CHANGED)
def create_source(hand: HandDep, form: SourceForm) -> ManagedSource:
    """Add a source; the field that is wrong is named, and then nothing is written."""
    with hand.write() as session:
        source = registry.create(session, hand.desk.clock, registry.read_spec(form.model_dump(exclude_none=True)))
        hand.desk.check(registry.config_of(source))
        return ManagedSource(**_shape(source))


@router.get("/api/v1/sources/export", response_class=Response, responses=_TEXT | _READ)
def export_sources(
    session: SessionDep,
    format: Annotated[Literal["yaml", "toml", "json"], Query(description="Of the file.")] = "yaml",
    code: Annotated[
        list[Words] | None, Query(max_length=500, description="Of these only; repeatable.", examples=[["example"]])
    ] = None,
) -> Response:
    """Return sources as a file that the import takes: all of them, or those named."""
    text = write_text(registry.export(session, codes=code or ()), format)
    return Response(text, media_type=_TYPES[format],
                    headers={"Content-Disposition": f'attachment; filename="sources.{format}"'})  # fmt: skip


async def _file(request: Request) -> tuple[str, bytes]:
    """Return the form and the bytes of what was sent."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    form = next((form for form in FORMS if media.endswith(form)), "json")
    return form, await request.body()


def read_file(sent: Annotated[tuple[str, bytes], Depends(_file)], desk: DeskDep) -> list[registry.SourceSpec]:
    """Return the sources of a file, all of them checked: on a thread, and before anybody's turn at the desk."""
    specs = registry.read_specs(_entries(*sent))
    for spec in specs:
        desk.check(spec.config)
    return specs


@router.post("/api/v1/sources/import", responses=_CHANGED, openapi_extra=_FILE)
def import_sources(
    specs: Annotated[list[registry.SourceSpec], Depends(read_file)],
    hand: HandDep,  # after the file: a long one is read while others write
    dry_run: Annotated[bool, Query(description="Say what would change, and change nothing.")] = False,
) -> ImportedShown:
    """Create and update sources from YAML, TOML or JSON: all of them, or none if one is wrong (it is named)."""
    with hand.write() as session:
        done = take_in_sources(session, hand.desk.clock, hand.desk.board, specs, apply=not dry_run)
    return ImportedShown(created=list(done.created), updated=list(done.updated), unchanged=list(done.unchanged),
                         dry_run=dry_run)  # fmt: skip


def _entries(form: str, content: bytes) -> list[Any]:
    try:
        entries = read_text(content.decode(), form)
    except UnicodeDecodeError as exc:
        raise SourceRefused("file", "it is no UTF-8 text") from exc
    if len(entries) > _IMPORTED:
        raise SourceRefused("sources", f"{len(entries)} at once are more than {_IMPORTED}; send them in portions")
    return entries


@router.get("/api/v1/sources/{id}", responses=_READ)
def source_detail(session: SessionDep, id: SourceId) -> ManagedSource:
    """Return one source."""
    return ManagedSource(**_shape(_source(session, id)))


def _source(session: Session, source_id: int) -> Source:
    found = source_by_id(session, source_id)
    if found is None:
        raise SourceNotFound(str(source_id))
    return found


@router.put("/api/v1/sources/{id}", responses=_CHANGED)
def write_source(hand: HandDep, id: SourceId, form: SourceForm) -> ManagedSource:
    """Write a source anew: what is left out has its default again. Its code stays."""
    with hand.write() as session:
        source = _source(session, id)
        _demand_code(source, form.code)
        entry = form.model_dump(exclude_none=True) | {"code": source.code}
        replace_source(session, hand.desk.clock, hand.desk.board, registry.read_spec(entry))
        return _checked(hand, source)


@router.patch("/api/v1/sources/{id}", responses=_CHANGED)
def edit_source(hand: HandDep, id: SourceId, form: SourceChanges) -> ManagedSource:
    """Change the named fields of a source, below `config` too; null means the default again."""
    with hand.write() as session:
        source = _source(session, id)
        _demand_code(source, form.code)
        changes = form.model_dump(include=form.model_fields_set - {"code", "enabled"})
        if changes.get("config", {}) is None:
            raise SourceRefused("config", "write the fields that are to change")
        if changes:
            registry.edit(session, hand.desk.clock, source.code, changes)
        if form.enabled is not None and form.enabled != source.enabled:
            _switch(hand, session, source, enabled=form.enabled)
        return _checked(hand, source)


def _demand_code(source: Source, code: str | None) -> None:
    if code not in (None, source.code):
        raise SourceRefused("code", f"it is {source.code!r} for ever; make another source instead")


def _checked(hand: Hand, source: Source) -> ManagedSource:
    hand.desk.check(registry.config_of(source))
    return ManagedSource(**_shape(source))


def _switch(hand: Hand, session: Session, source: Source, *, enabled: bool) -> int:
    if enabled:
        return enable_source(session, hand.desk.clock, hand.desk.board, source.code)
    return disable_source(session, hand.desk.clock, source.code)


@router.post("/api/v1/sources/{id}/enable", responses=_CHANGED)
def enable(hand: HandDep, id: SourceId) -> SwitchedSource:
    """Enable a source; the jobs that its absence had paused go on, in the emptiest slots."""
    with hand.write() as session:
        source = _source(session, id)
        return SwitchedSource(jobs=_switch(hand, session, source, enabled=True), **_shape(source))


@router.post("/api/v1/sources/{id}/disable", responses=_CHANGED)
def disable(hand: HandDep, id: SourceId) -> SwitchedSource:
    """Disable a source: what is scheduled is paused, what runs goes on to its end."""
    with hand.write() as session:
        source = _source(session, id)
        return SwitchedSource(jobs=_switch(hand, session, source, enabled=False), **_shape(source))


@router.delete("/api/v1/sources/{id}", responses=_CHANGED)
def delete_source(hand: HandDep, id: SourceId) -> Message:
    """Remove a source that nothing belongs to. One with captures, editions, jobs or feeds stays: disable it instead."""
    with hand.write() as session:
        registry.delete(session, hand.desk.clock, _source(session, id).code)
    return Message(message="Source deleted")
