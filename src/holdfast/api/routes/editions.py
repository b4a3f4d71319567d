"""Annual editions: for operators with shards and gaps below `/api/admin`, for readers at `/api/coverage`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal

from fastapi import Path, Query, Request
from pydantic import AfterValidator, Field
from sqlalchemy.orm import Session
from starlette.responses import Response, StreamingResponse

from holdfast.api.dependencies import (
    AdminWriteDep,
    ArchiveDep,
    SessionDep,
    SourceCode,
    source_id_of,
    source_of,
)
from holdfast.api.errors import FieldRefused
from holdfast.api.heavy import Streamed, guarded, heavily
from holdfast.api.record_answers import record_response
from holdfast.api.routes.operations import begin
from holdfast.api.routing import LazyRouter
from holdfast.api.schemas.base import RequestForm, RowId, checked_text
from holdfast.api.schemas.lists import (
    DEFAULT_LIMIT,
    ListCursor,
    ListLimit,
    Piece,
    decode_cursor,
    decode_id,
    encode_cursor,
)
from holdfast.auth.roles import Permission
from holdfast.changes.site_comparison import SiteKind
from holdfast.db.audit_events import acting
from holdfast.db.models import Edition, Source
from holdfast.editions import queries
from holdfast.editions.campaign import CampaignRequest, Plan
from holdfast.editions.comparison import comparison_stem
from holdfast.editions.decisions import LEAST_CHARS, MOST_CHARS, EditionDecisions
from holdfast.editions.edition_files import CSV
from holdfast.editions.edition_view import Acceptance, EditionNotFound, EditionView, view_edition
from holdfast.editions.ledger import LedgerOutcome
from holdfast.editions.publishing import (
    WITHDRAWN,
    compared_years,
    open_public,
    public_summary,
    table_rows,
)
from holdfast.editions.queries import edition as find_edition
from holdfast.editions.records import (
    AdminEditionDetail,
    AdminEditionList,
    Coverage,
    CoverageAddress,
    EditionDifference,
    EditionRecord,
    admin_edition,
    coverage_address,
    coverage_record,
    edition_detail,
    edition_difference,
    edition_record,
)
from holdfast.editions.scheduling import Campaigns
from holdfast.jobs.kinds import OperationKind
from holdfast.operations.long_running import OperationRequest
from holdfast.operations.records import OperationRecord
from holdfast.wiring.archive import Archive

admin_router = LazyRouter(prefix="/api/admin/annual-editions", tags=["admin"])
EditionId = Annotated[RowId, Path(description="An edition's id.", examples=[1])]
JobId = Annotated[RowId, Path(description="The job of a shard.", examples=[1])]
Reason = Annotated[
    str,
    Query(min_length=LEAST_CHARS, max_length=MOST_CHARS, description="Why the gap is accepted.", examples=["closed"]),
    AfterValidator(checked_text),
]


@admin_router.get("", Permission.WATCH)
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
    items = [admin_edition(*row) for row in rows]
    return AdminEditionList(items=items, total=total, limit=limit, offset=offset)


@admin_router.get("/{id}", Permission.WATCH, errors=(404,))
def annual_edition(session: SessionDep, id: EditionId) -> AdminEditionDetail:
    """Return one edition with the current state of its shards."""
    return edition_detail(view_edition(session, id))


@admin_router.post("/jobs/{job_id}/accept-gap", Permission.OPERATE, errors=(404, 409))
def accept_shard_gap(archive: ArchiveDep, admin: AdminWriteDep, job_id: JobId, reason: Reason) -> AdminEditionDetail:
    """Accept the gap of a shard: it no longer blocks its edition; the report names the reason and the operator."""
    # The audit log and the report name the operator behind the request, not the server.
    with acting(admin.actor):
        return edition_detail(_decisions(archive).decide_shard(job_id, Acceptance.ACCEPTED_GAP, reason))


def _decisions(archive: Archive) -> EditionDecisions:
    return EditionDecisions(archive.database, archive.home, archive.clock)


class ShardDecisionForm(RequestForm, example={"state": "excluded", "reason": "replaced on 2 March"}):
    """A decision about a shard."""

    state: Literal["accepted", "accepted_gap", "excluded", "pending"] = Field(description="`pending` undoes it.")
    reason: str = Field(min_length=3, max_length=2000, description="Why; the report shows it.")


@admin_router.put("/jobs/{job_id}/decision", Permission.OPERATE, errors=(404, 409, 413, 415))
def decide_shard(
    archive: ArchiveDep, admin: AdminWriteDep, job_id: JobId, form: ShardDecisionForm
) -> AdminEditionDetail:
    """Accept a shard as it is, accept its gap, exclude it from its edition, or undo that (`pending`)."""
    with acting(admin.actor):
        return edition_detail(_decisions(archive).decide_shard(job_id, Acceptance(form.state), form.reason))


class PageDecisionForm(RequestForm, example={"url": "https://example.org/old", "state": "accepted", "reason": "gone"}):
    """A decision about one URL of an edition."""

    url: str = Field(max_length=8192, description="The address, as the ledger has it.")
    state: Literal["accepted", "excluded", "pending"] = Field(description="`pending` undoes it.")
    reason: str = Field(min_length=3, max_length=2000, description="Why; the ledger shows it.")


@admin_router.put("/{id}/pages", Permission.OPERATE, errors=(404, 409, 413, 415))
def decide_page(archive: ArchiveDep, admin: AdminWriteDep, id: EditionId, form: PageDecisionForm) -> AdminEditionDetail:
    """Accept that one URL is missing, exclude it from the edition, or undo that (`pending`).

    The next report lists the decision in its ledger; `coverageSummary.decisions` lists all of them.
    """
    with acting(admin.actor):
        return edition_detail(_decisions(archive).decide_page(id, form.url, Acceptance(form.state), form.reason))


class EditionPlanForm(RequestForm, example={"year": 2026, "sources": ["example"]}):
    """A year's campaign to plan or apply."""

    year: int = Field(ge=1970, le=9999)
    sources: list[str] = Field(default_factory=list, max_length=1000, description="Codes; all annual ones if empty.")
    shards: bool = Field(
        False, description="Give each seed a shard of its own where the report shows gaps, instead of yearly crawls."
    )
    max_create: int | None = Field(None, ge=0, le=100_000, description="Jobs to make at most.")
    apply: bool = Field(False, description="Make the jobs; otherwise only say what would be made.")


@admin_router.post("/plan", Permission.OPERATE, errors=(404, 409, 413, 415))
def plan_editions(archive: ArchiveDep, admin: AdminWriteDep, form: EditionPlanForm) -> Plan:
    """Plan the jobs of a year's campaign, or create them; a plan with an error creates none."""
    service = admin.job_service
    campaigns = Campaigns(archive.database, service.actions, service.clock, archive.settings.zimit)
    request = CampaignRequest(year=form.year, sources=tuple(form.sources), max_create=form.max_create, apply=form.apply)
    with acting(admin.actor):
        return campaigns.plan_shards(request) if form.shards else campaigns.schedule(request)


def _begin(
    admin: AdminWriteDep, response: Response, view: EditionView, kind: OperationKind, verb: str, **parameters: object
) -> OperationRecord:
    """Start an operation on an edition; only one of them runs at a time."""
    wanted = OperationRequest(
        kind,
        flight=f"edition {view.edition.id}",
        subject=f"{verb} {view.source.code} {view.edition.year}",
        parameters={"edition": view.edition.id, **parameters},
    )
    return begin(admin, response, wanted)


def _view(admin: AdminWriteDep, edition_id: int) -> EditionView:
    with admin.write() as session:
        return view_edition(session, edition_id)


@admin_router.post("/{id}/report", Permission.OPERATE, errors=(404, 409, 413, 415), status_code=202)
def report_edition(admin: AdminWriteDep, response: Response, id: EditionId) -> OperationRecord:
    """Account for every intended URL: rewrites ledger, manifest and report."""
    return _begin(admin, response, _view(admin, id), OperationKind.REPORT_EDITION, "report of")


class FreezeForm(RequestForm, example={"again": False}):
    """How an edition is frozen."""

    again: bool = Field(False, description="Freeze it again; the earlier list is kept.")


@admin_router.post("/{id}/freeze", Permission.OPERATE, errors=(404, 409, 413, 415), status_code=202)
def freeze_edition(admin: AdminWriteDep, response: Response, id: EditionId, form: FreezeForm) -> OperationRecord:
    """Freeze an edition into a list of its captures, which can be cited by its digest."""
    return _begin(admin, response, _view(admin, id), OperationKind.FREEZE_EDITION, "freezing", again=form.again)


class EditionVerifyForm(RequestForm, example={"quick": True}):
    """How thoroughly a frozen edition is verified."""

    quick: bool = Field(False, description="Look at the sizes of WARC files, do not read them.")


@admin_router.post("/{id}/verify", Permission.OPERATE, errors=(404, 409, 413, 415), status_code=202)
def verify_edition(admin: AdminWriteDep, response: Response, id: EditionId, form: EditionVerifyForm) -> OperationRecord:
    """Check that the archive still has everything on an edition's frozen list, down to the WARC files."""
    return _begin(admin, response, _view(admin, id), OperationKind.VERIFY_EDITION, "verification of", quick=form.quick)


class CompareEditionsForm(RequestForm, example={"earlierYear": 2025}):
    """The edition to compare with."""

    earlier_year: int = Field(ge=1970, le=9999, alias="earlierYear", description="Of the same source.")


@admin_router.post("/{id}/compare", Permission.OPERATE, errors=(404, 409, 413, 415), status_code=202)
def compare_editions(
    admin: AdminWriteDep, response: Response, id: EditionId, form: CompareEditionsForm
) -> OperationRecord:
    """Compare an edition with an earlier one of its source: new, gone, changed, unchanged, moved."""
    with admin.write() as session:
        view = view_edition(session, id)
        if form.earlier_year >= view.edition.year:
            raise FieldRefused("earlierYear", f"it must be before {view.edition.year}")
        earlier, _ = edition_of(session, view.source.code, form.earlier_year)
    both = {"earlier": earlier.id, "later": view.edition.id}
    verb = f"comparison of {form.earlier_year} with"
    return _begin(admin, response, view, OperationKind.COMPARE_EDITIONS, verb, **both)


router = LazyRouter(tags=["sources"])
Code = Annotated[str, Path(description="A source's code.", max_length=64, examples=["example-org"])]
Year = Annotated[int, Path(ge=1970, le=9999, examples=[2026])]
_FILES = "coverage-report.json, coverage.csv, frozen.jsonl, comparison-<year>.json or comparison-<year>.csv."


@router.get("/api/coverage", Permission.READ, errors=(404,))
def readable_editions(
    session: SessionDep, source: SourceCode = None, limit: ListLimit = DEFAULT_LIMIT, cursor: ListCursor = None
) -> Piece[EditionRecord]:
    """Return the annual editions that the caller may read, latest year first."""
    place = decode_cursor(cursor, int, str)
    before = None if place is None else (int(place[0]), str(place[1]))
    source_id = source_id_of(session, source)
    rows = queries.readable_editions(session, source_id=source_id, before=before, limit=limit + 1)
    shown = rows[:limit]
    last = shown[-1] if len(rows) > limit else None
    return Piece(
        items=[edition_record(*row) for row in shown],
        next=None if last is None else encode_cursor(last[0].year, last[1].code),
        limit=limit,
    )


@router.get("/api/coverage/{source}/{year}", Permission.READ, errors=(404,))
def coverage(archive: ArchiveDep, session: SessionDep, source: Code, year: Year) -> Coverage:
    """Return how much of a source was captured in a year, out of all intended URLs."""
    row, kept = edition_of(session, source, year)
    # Do not use the row's own summary: it names seeds that may have been taken down since.
    return coverage_record(row, kept, public_summary(session, row), compared_years(archive.home, kept, row.year))


@router.get(
    "/api/coverage/{source}/{year}/addresses", Permission.READ, errors=(404,), response_model=Piece[CoverageAddress]
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
    """Return the URLs behind the figures of an edition, optionally of one outcome and reason."""

    # Use a thread for heavy work: the table of an edition may have millions of rows.
    def work() -> Response:
        named = {"outcome": None if outcome is None else outcome.value, "reason": reason}
        wanted = {name: [value] for name, value in named.items() if value is not None}
        rows, following = _rows_of(archive, (source, year), CSV, wanted, cursor, limit)
        return _piece([coverage_address(one) for one in rows], following, limit)

    return await heavily(request, work)


def _rows_of(
    archive: Archive,
    edition: tuple[str, int],
    name: str,
    wanted: Mapping[str, Collection[str]],
    cursor: str | None,
    limit: int,
) -> tuple[list[dict[str, str]], int | None]:
    """Return the next rows of a table, and the row to continue with; None at the end."""
    with archive.database.read() as session:
        row, kept = edition_of(session, *edition)
    most = archive.settings.exports.cache_bytes
    _, _, table = open_public(archive.database, archive.home, row, kept, name, cache_bytes=most)
    return table_rows(table, wanted, start=max(0, decode_id(cursor) or 0), limit=limit)


def _piece(items: list[Any], following: int | None, limit: int) -> Response:
    cursor = None if following is None else encode_cursor(following)
    return record_response(Piece(items=items, next=cursor, limit=limit))


@router.get(
    "/api/coverage/{source}/{year}/comparison/{earlier}",
    Permission.READ,
    errors=(404,),
    response_model=Piece[EditionDifference],
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
    """Return what became of each page from an earlier edition to this one, in URL order.

    An operator must have compared the two before; `comparedYears` of the edition lists the years.
    """
    kinds = [kind.value] if kind is not None else [one.value for one in SiteKind if one != SiteKind.UNCHANGED]

    # Use a thread for heavy work: the table of a comparison may have millions of rows.
    def work() -> Response:
        name = f"{comparison_stem(earlier)}.csv"
        rows, following = _rows_of(archive, (source, year), name, {"kind": kinds}, cursor, limit)
        return _piece([_difference(one) for one in rows], following, limit)

    return await heavily(request, work)


def _difference(row: dict[str, str]) -> EditionDifference:
    # Pages taken down after the comparison keep their row, without an address, like those taken down before it.
    is_taken_down = row["kind"] == SiteKind.WITHDRAWN or WITHDRAWN in (row["url"], row["from_url"])
    return edition_difference(row, is_taken_down=is_taken_down)


@router.get("/api/coverage/{source}/{year}/{file}", Permission.READ, errors=(404,), response_class=StreamingResponse)
async def coverage_file(
    request: Request,
    archive: ArchiveDep,
    source: Code,
    year: Year,
    file: Annotated[str, Path(max_length=64, description=_FILES, examples=["coverage.csv"])],
) -> Response:
    """Return a file of an edition; captures taken down since it was written are left out."""

    # Use a thread for heavy work: the first reader after a takedown waits for a copy to be written.
    def work() -> Streamed:
        with archive.database.read() as session:
            row, kept = edition_of(session, source, year)
        most = archive.settings.exports.cache_bytes
        shown, form, chunks = open_public(archive.database, archive.home, row, kept, file, cache_bytes=most)
        # Captures that were taken down must not stay in caches between us and the reader.
        headers = {"Content-Disposition": f'attachment; filename="{shown}"', "Cache-Control": "no-cache"}
        return Streamed(chunks, form.value, headers)

    return await heavily(request, guarded(request, work))


def edition_of(session: Session, code: str, year: int) -> tuple[Edition, Source]:
    """Return an edition and its source; raise NotFound if there is no such edition."""
    kept = source_of(session, code)
    found = find_edition(session, source_id=kept.id, year=year)
    if found is None:
        raise EditionNotFound(
            f"there is no edition of {code} for {year}; its crawls are at /api/sources/{code}/editions"
        )
    return found, kept
