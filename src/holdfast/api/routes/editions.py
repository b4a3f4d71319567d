"""Annual editions: with their shards and gaps to accept below `/api/admin`, as readers see them at `/api/coverage`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated

from fastapi import Path, Query, Request
from pydantic import AfterValidator
from sqlalchemy.orm import Session
from starlette.responses import Response, StreamingResponse

from holdfast.api.dependencies import ArchiveDep, SessionDep, SourceCode, source_id_of, source_of
from holdfast.api.errors import FieldRefused, answers
from holdfast.api.heavy import Streamed, guarded, heavily
from holdfast.api.job_dependencies import AdminWriteDep, OperationsDep
from holdfast.api.late_routes import LateRouter
from holdfast.api.routes.operations import begin
from holdfast.api.schemas.archive import (
    AdminEdition,
    AdminEditionDetail,
    AdminEditionList,
    Coverage,
    CoverageAddress,
    EditionDifference,
    EditionListed,
    EditionShard,
)
from holdfast.api.schemas.base import RowId, checked_text
from holdfast.api.schemas.lists import DEFAULT_LIMIT, ListCursor, Listed, ListLimit, decode_cursor, encode_cursor
from holdfast.api.schemas.operations import OperationShown
from holdfast.api.schemas.operator import (
    CompareEditionsForm,
    EditionPlanEntry,
    EditionPlanForm,
    EditionPlanShown,
    EditionVerifyForm,
    FreezeForm,
    PageDecisionForm,
    ShardDecisionForm,
)
from holdfast.archive_tool.contract import Host
from holdfast.changes.site_comparison import SiteKind
from holdfast.db.audit_events import acting
from holdfast.db.models import Edition, Source
from holdfast.editions import queries
from holdfast.editions.campaign import CampaignRequest
from holdfast.editions.comparison import comparison_stem
from holdfast.editions.composition import shard_object
from holdfast.editions.decisions import LEAST_CHARS, MOST_CHARS, Decision, EditionDecisions
from holdfast.editions.edition_files import CSV
from holdfast.editions.edition_view import Acceptance, EditionNotFound, EditionView, view_edition
from holdfast.editions.ledger import LedgerOutcome
from holdfast.editions.publishing import (
    WITHDRAWN,
    TableStretch,
    compared_years,
    open_public,
    public_summary,
    table_rows,
)
from holdfast.editions.queries import edition as find_edition
from holdfast.editions.scheduling import Campaigns
from holdfast.operations.long_running import OperationKind, OperationWish
from holdfast.wiring.archive import Archive

admin_router = LateRouter(prefix="/api/admin/annual-editions", tags=["admin"])
EditionId = Annotated[RowId, Path(description="An edition's id.", examples=[1])]
JobId = Annotated[RowId, Path(description="The job of a shard.", examples=[1])]
Reason = Annotated[
    str,
    Query(min_length=LEAST_CHARS, max_length=MOST_CHARS, description="Why the gap is accepted.", examples=["closed"]),
    AfterValidator(checked_text),
]


@admin_router.get("", responses=answers(403, 422, 503))
def annual_editions(
    session: SessionDep,
    source: Annotated[
        str | None, Query(description="A source's code.", max_length=64, pattern="^[a-z0-9-]*$", examples=["example"])
    ] = None,
    year: Annotated[int | None, Query(ge=1970, le=9999, description="Of this year.", examples=[2026])] = None,
    limit: Annotated[int, Query(ge=1, le=500, description="Rows of a page.")] = 50,
    offset: Annotated[int, Query(ge=0, le=1_000_000, description="Rows to leave out first.")] = 0,
) -> AdminEditionList:
    """Return editions, the latest year first."""
    rows, total = queries.listed(session, source=source, year=year, limit=limit, offset=offset)
    items = [AdminEdition(**_fields(edition, kept)) for edition, kept in rows]
    return AdminEditionList(items=items, total=total, limit=limit, offset=offset)


@admin_router.get("/{id}", responses=answers(403, 404, 422, 503))
def annual_edition(session: SessionDep, id: EditionId) -> AdminEditionDetail:
    """Return one edition with its shards, as they stand now."""
    return _detail(view_edition(session, id))


@admin_router.post("/jobs/{job_id}/accept-gap", responses=answers(403, 404, 409, 422, 503))
def accept_shard_gap(archive: ArchiveDep, admin: AdminWriteDep, job_id: JobId, reason: Reason) -> AdminEditionDetail:
    """Accept what a shard did not bring: it no longer blocks its edition, and the report says why, and who said so."""
    # The audit log and the report name the operator behind the request, not the server.
    with acting(admin.actor):
        return _detail(_decisions(archive).decide_shard(job_id, Decision(Acceptance.ACCEPTED_GAP, reason)))


def _decisions(archive: Archive) -> EditionDecisions:
    return EditionDecisions(archive.database, archive.home, archive.clock)


@admin_router.put("/jobs/{job_id}/decision", responses=answers(403, 404, 409, 413, 415, 422, 503))
def decide_shard(
    archive: ArchiveDep, admin: AdminWriteDep, job_id: JobId, form: ShardDecisionForm
) -> AdminEditionDetail:
    """Accept a shard as it is, accept its gap, exclude it from its edition, or undo that (`pending`)."""
    with acting(admin.actor):
        return _detail(_decisions(archive).decide_shard(job_id, Decision(Acceptance(form.state), form.reason)))


@admin_router.put("/{id}/pages", responses=answers(403, 404, 409, 413, 415, 422, 503))
def decide_page(archive: ArchiveDep, admin: AdminWriteDep, id: EditionId, form: PageDecisionForm) -> AdminEditionDetail:
    """Accept that one address is missing, exclude it from the edition, or undo that (`pending`).

    The next report has the decision in its ledger; `coverageSummary.decisions` lists all of them.
    """
    with acting(admin.actor):
        return _detail(_decisions(archive).decide_page(id, form.url, Decision(Acceptance(form.state), form.reason)))


_STARTED = answers(403, 404, 409, 413, 415, 422, 503)


@admin_router.post("/plan", responses=_STARTED)
def plan_editions(archive: ArchiveDep, admin: AdminWriteDep, form: EditionPlanForm) -> EditionPlanShown:
    """Say which jobs a year's campaign makes, or make them; a plan with an error in it makes none."""
    service = admin.job_service
    campaigns = Campaigns(archive.database, service.actions, service.clock, Host.of(archive.settings.zimit))
    request = CampaignRequest(year=form.year, sources=tuple(form.sources), max_create=form.max_create, apply=form.apply)
    with acting(admin.actor):
        plan = campaigns.plan_shards(request) if form.shards else campaigns.schedule(request)
    return EditionPlanShown(
        year=plan.year,
        applied=plan.applied,
        created=len(plan.made),
        errors=len(plan.errors),
        entries=[
            EditionPlanEntry(
                source=one.source,
                action=one.step,
                reason=one.reason,
                name=one.name,
                shard_key=one.shard_key,
                seed=one.seed,
                queued_at=one.at,
                job_id=one.job_id,
                notes=list(one.notes),
            )
            for one in plan.entries
        ],
    )


def _wish(kind: OperationKind, view: EditionView, verb: str, **parameters: object) -> OperationWish:
    """Return the wish for an operation on an edition: one at a time, whatever it does to it."""
    named = f"{view.source.code} {view.edition.year}"
    return OperationWish(
        kind=kind,
        flight=f"edition {view.edition.id}",
        subject=f"{verb} {named}",
        parameters={"edition": view.edition.id, **parameters},
    )


@admin_router.post("/{id}/report", status_code=202, responses=_STARTED)
def report_edition(
    admin: AdminWriteDep, operations: OperationsDep, response: Response, id: EditionId
) -> OperationShown:
    """Account for every address that was meant to be kept: ledger, manifest and report are written anew."""
    with admin.write() as session:
        wish = _wish(OperationKind.REPORT_EDITION, view_edition(session, id), "report of")
    return begin(admin, operations, response, wish)


@admin_router.post("/{id}/freeze", status_code=202, responses=_STARTED)
def freeze_edition(
    admin: AdminWriteDep,
    operations: OperationsDep,
    response: Response,
    id: EditionId,
    form: FreezeForm,
) -> OperationShown:
    """Freeze an edition into a list of its captures that can be cited by its digest."""
    with admin.write() as session:
        wish = _wish(OperationKind.FREEZE_EDITION, view_edition(session, id), "freezing", again=form.again)
    return begin(admin, operations, response, wish)


@admin_router.post("/{id}/verify", status_code=202, responses=_STARTED)
def verify_edition(
    admin: AdminWriteDep,
    operations: OperationsDep,
    response: Response,
    id: EditionId,
    form: EditionVerifyForm,
) -> OperationShown:
    """Say whether the archive still holds what an edition's frozen list names, down to the WARC files."""
    with admin.write() as session:
        wish = _wish(OperationKind.VERIFY_EDITION, view_edition(session, id), "verification of", quick=form.quick)
    return begin(admin, operations, response, wish)


@admin_router.post("/{id}/compare", status_code=202, responses=_STARTED)
def compare_editions(
    admin: AdminWriteDep,
    operations: OperationsDep,
    response: Response,
    id: EditionId,
    form: CompareEditionsForm,
) -> OperationShown:
    """Compare an edition with an earlier one of its source: new, gone, changed, unchanged, moved."""
    with admin.write() as session:
        view = view_edition(session, id)
        if form.earlier_year >= view.edition.year:
            raise FieldRefused("earlierYear", f"it must be before {view.edition.year}")
        earlier, _ = edition_of(session, view.source.code, form.earlier_year)
        wish = _wish(
            OperationKind.COMPARE_EDITIONS,
            view,
            f"comparison of {form.earlier_year} with",
            earlier=earlier.id,
            later=view.edition.id,
        )
    return begin(admin, operations, response, wish)


def _detail(view: EditionView) -> AdminEditionDetail:
    return AdminEditionDetail(
        **_fields(view.edition, view.source),
        shards=[EditionShard(**shard_object(shard)) for shard in view.shards],
        missing_seeds=view.edition.coverage_summary.get("missing_seeds", []),
    )


_COLUMNS = (
    "year",
    "status",
    "search_ready",
    "research_ready",
    "intended_url_count",
    "captured_url_count",
    "failed_url_count",
    "missing_url_count",
    "excluded_url_count",
    "fallback_url_count",
    "shard_count",
    "indexed_shard_count",
    "needs_review_shard_count",
    "backend_counts",
    "coverage_summary",
    "generated_at",
    "target_ledger_path",
    "capture_manifest_path",
    "coverage_report_json_path",
    "coverage_report_md_path",
    "frozen_at",
    "frozen_digest",
    "frozen_count",
    "frozen_path",
    "created_at",
)


def _fields(edition: Edition, source: Source) -> dict[str, object]:
    shown = {name: getattr(edition, name) for name in _COLUMNS}
    return {"edition_id": edition.id, "source_code": source.code, "source_name": source.name, **shown}


router = LateRouter(tags=["sources"])
Code = Annotated[str, Path(description="A source's code.", max_length=64, examples=["example-org"])]
Year = Annotated[int, Path(ge=1970, le=9999, examples=[2026])]
_FILES = "coverage-report.json, coverage.csv, frozen.jsonl, comparison-<year>.json or comparison-<year>.csv."


@router.get("/api/coverage", responses=answers(404, 422, 503))
def readable_editions(
    session: SessionDep, source: SourceCode = None, limit: ListLimit = DEFAULT_LIMIT, cursor: ListCursor = None
) -> Listed[EditionListed]:
    """Return the annual editions that may be read, the latest year first."""
    place = decode_cursor(cursor, int, str)
    before = None if place is None else (int(place[0]), str(place[1]))
    source_id = source_id_of(session, source)
    rows = queries.readable_editions(session, source_id=source_id, before=before, limit=limit + 1)
    shown = rows[:limit]
    last = shown[-1] if len(rows) > limit else None
    return Listed[EditionListed](
        items=[_listed(edition, kept) for edition, kept in shown],
        next=None if last is None else encode_cursor(last[0].year, last[1].code),
        limit=limit,
    )


def _listed(edition: Edition, source: Source) -> EditionListed:
    return EditionListed(
        source_code=source.code,
        source_name=source.name,
        year=edition.year,
        status=edition.status,
        intended_url_count=edition.intended_url_count,
        captured_url_count=edition.captured_url_count,
        failed_url_count=edition.failed_url_count,
        missing_url_count=edition.missing_url_count,
        excluded_url_count=edition.excluded_url_count,
        generated_at=edition.generated_at,
        frozen_at=edition.frozen_at,
        frozen_digest=edition.frozen_digest,
    )


@router.get("/api/coverage/{source}/{year}", responses=answers(404, 422, 503))
def coverage(archive: ArchiveDep, session: SessionDep, source: Code, year: Year) -> Coverage:
    """Return how much of a source was kept in a year, of all that was meant to be."""
    row, kept = edition_of(session, source, year)
    return Coverage(
        edition_id=row.id,
        source_code=kept.code,
        source_name=kept.name,
        year=row.year,
        status=row.status,
        search_ready=row.search_ready,
        research_ready=row.research_ready,
        intended_url_count=row.intended_url_count,
        captured_url_count=row.captured_url_count,
        failed_url_count=row.failed_url_count,
        missing_url_count=row.missing_url_count,
        excluded_url_count=row.excluded_url_count,
        fallback_url_count=row.fallback_url_count,
        shard_count=row.shard_count,
        indexed_shard_count=row.indexed_shard_count,
        needs_review_shard_count=row.needs_review_shard_count,
        backend_counts=row.backend_counts,
        # Not the row's own: it names seeds that may have been withdrawn since.
        coverage_summary=public_summary(session, row),
        generated_at=row.generated_at,
        compared_years=compared_years(archive.home, kept, row.year),
    )


@router.get(
    "/api/coverage/{source}/{year}/addresses",
    responses=answers(404, 422, 503),
    response_model=Listed[CoverageAddress],
)
async def coverage_addresses(
    request: Request,
    archive: ArchiveDep,
    source: Code,
    year: Year,
    outcome: Annotated[LedgerOutcome | None, Query(description="What became of them.")] = None,
    reason: Annotated[str | None, Query(max_length=200, examples=["http_404"])] = None,
    limit: ListLimit = DEFAULT_LIMIT,
    cursor: ListCursor = None,
) -> Response:
    """Return the addresses behind the figures of an edition, those of one outcome and reason if these are named."""

    # On a thread for heavy work: the table of an edition may have millions of rows.
    def work() -> Response:
        named = {"outcome": None if outcome is None else outcome.value, "reason": reason}
        wanted = {name: [value] for name, value in named.items() if value is not None}
        found = _rows_of(archive, (source, year), CSV, wanted, cursor, limit)
        listed = Listed[CoverageAddress](
            items=[_address(one) for one in found.rows],
            next=None if found.following is None else encode_cursor(found.following),
            limit=limit,
        )
        return Response(listed.model_dump_json(by_alias=True), media_type="application/json")

    return await heavily(request, work)


def _rows_of(
    archive: Archive,
    edition: tuple[str, int],
    name: str,
    wanted: Mapping[str, Collection[str]],
    cursor: str | None,
    limit: int,
) -> TableStretch:
    """Return the next rows of a table of an edition, as the public may read them."""
    place = decode_cursor(cursor, int)
    with archive.database.read() as session:
        row, kept = edition_of(session, *edition)
    most = archive.settings.exports.cache_bytes
    table = open_public(archive.database, archive.home, row, kept, name, cache_bytes=most)
    return table_rows(table, wanted, start=max(0, int(place[0])) if place else 0, limit=limit)


def _address(row: dict[str, str]) -> CoverageAddress:
    number = row.get("snapshot_id", "")
    named = ("url", "origin", "outcome", "reason", "detail", "http_status", "via", "redirected_to")
    return CoverageAddress(
        **{name: row.get(name, "") for name in named}, snapshot_id=int(number) if number.isdecimal() else None
    )


@router.get(
    "/api/coverage/{source}/{year}/comparison/{earlier}",
    responses=answers(404, 422, 503),
    response_model=Listed[EditionDifference],
)
async def edition_differences(
    request: Request,
    archive: ArchiveDep,
    source: Code,
    year: Year,
    earlier: Annotated[int, Path(ge=1970, le=9999, description="The year of the earlier edition.", examples=[2025])],
    kind: Annotated[SiteKind | None, Query(description="What became of them; all but unchanged if not named.")] = None,
    limit: ListLimit = DEFAULT_LIMIT,
    cursor: ListCursor = None,
) -> Response:
    """Return what became of each page from an earlier edition to this one, in the order of the addresses.

    The two have been compared by an operator before; `comparedYears` of the edition says with which years.
    """
    kinds = [kind.value] if kind is not None else [one.value for one in SiteKind if one != SiteKind.UNCHANGED]

    # On a thread for heavy work: the table of a comparison may have millions of rows.
    def work() -> Response:
        name = f"{comparison_stem(earlier)}.csv"
        found = _rows_of(archive, (source, year), name, {"kind": kinds}, cursor, limit)
        listed = Listed[EditionDifference](
            items=[_difference(one) for one in found.rows],
            next=None if found.following is None else encode_cursor(found.following),
            limit=limit,
        )
        return Response(listed.model_dump_json(by_alias=True), media_type="application/json")

    return await heavily(request, work)


def _difference(row: dict[str, str]) -> EditionDifference:
    # What was withdrawn since the two were compared is told like what was withdrawn before: that there is a row.
    if row["kind"] == SiteKind.WITHDRAWN or WITHDRAWN in (row["url"], row["from_url"]):
        return EditionDifference(
            type=SiteKind.WITHDRAWN, url=None, from_url=None, from_snapshot_id=None, to_snapshot_id=None
        )
    return EditionDifference(
        type=SiteKind(row["kind"]),
        url=row["url"],
        from_url=row["from_url"] or None,
        from_snapshot_id=_capture_number(row["from_snapshot_id"]),
        to_snapshot_id=_capture_number(row["to_snapshot_id"]),
    )


def _capture_number(cell: str) -> int | None:
    return int(cell) if cell.isdecimal() else None


@router.get("/api/coverage/{source}/{year}/{file}", responses=answers(404, 422, 503), response_class=StreamingResponse)
async def coverage_file(
    request: Request,
    archive: ArchiveDep,
    source: Code,
    year: Year,
    file: Annotated[str, Path(max_length=64, description=_FILES, examples=["coverage.csv"])],
) -> Response:
    """Return a file of an edition; what was withdrawn since it was written is taken out as it is read."""

    # On a thread for heavy work: the first reader after a withdrawal waits for a copy to be written.
    def work() -> Streamed:
        with archive.database.read() as session:
            row, kept = edition_of(session, source, year)
        most = archive.settings.exports.cache_bytes
        opened = open_public(archive.database, archive.home, row, kept, file, cache_bytes=most)
        # What is withdrawn must not stay in caches between us and the reader.
        headers = {"Content-Disposition": f'attachment; filename="{opened.name}"', "Cache-Control": "no-cache"}
        return Streamed(iter(opened.chunks), opened.form.value, headers)

    return await heavily(request, guarded(request, work))


def edition_of(session: Session, code: str, year: int) -> tuple[Edition, Source]:
    """Return an edition and its source by code and year; NotFound."""
    kept = source_of(session, code)
    found = find_edition(session, source_id=kept.id, year=year)
    if found is None:
        raise EditionNotFound(
            f"there is no edition of {code} for {year}; its crawls are at /api/sources/{code}/editions"
        )
    return found, kept
