"""Problem reports: `POST /api/reports`, the form at `/report`, and operators' list and triage.

These are the only public routes that store something.
"""

from __future__ import annotations

import re
from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import Depends, Path, Query, Request
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from holdfast import feedback
from holdfast.api.dependencies import AdminWriteDep, ArchiveDep, SessionDep, UsageDep
from holdfast.api.routes.archive import page
from holdfast.api.routing import LazyRouter, demand_own_origin
from holdfast.api.schemas.base import RequestForm, RowId, Words, check_fields
from holdfast.api.schemas.lists import DEFAULT_LIMIT, ListCursor, ListLimit, decode_id, encode_cursor
from holdfast.auth.roles import Permission
from holdfast.feedback import (
    Category,
    Report,
    ReportList,
    ReportReceipt,
    ReportStatus,
    UsageTally,
    Use,
    find_report,
    submit,
    triage,
)
from holdfast.records import from_row
from holdfast.replay.address import raw_path
from holdfast.replay.links import escape
from holdfast.wiring.archive import Archive

router = LazyRouter(tags=["reports"])


_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_EMAIL = r"^[^@\s<>\x00-\x1f]{1,64}@[^@\s<>\x00-\x1f]{1,190}$"


def _without_controls(text: object) -> object:
    return _CONTROLS.sub("", text) if isinstance(text, str) else text


Line = Annotated[str, StringConstraints(strip_whitespace=True, max_length=2048), BeforeValidator(_without_controls)]
Email = Annotated[
    str, StringConstraints(strip_whitespace=True, max_length=254, pattern=_EMAIL), BeforeValidator(_without_controls)
]
Sentences = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=20, max_length=4000), BeforeValidator(_without_controls)
]


class ReportForm(BaseModel):
    """A problem that a reader reports."""

    # Build it with its class: FastAPI warns about a request body whose model is built later.
    model_config = ConfigDict(
        defer_build=False,
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "category": "broken_snapshot",
                    "description": "The images of this page are missing in the archive.",
                    "snapshotId": 4194305,
                }
            ]
        },
    )

    @model_validator(mode="before")
    @classmethod
    def _few(cls, content: Any) -> Any:
        return check_fields(content)

    category: Category
    description: Sentences
    snapshot_id: RowId | None = None
    original_url: Line | None = None
    reporter_email: Email | None = None
    page_url: Line | None = None
    # People do not see this field, so a filled one shows a program.
    website: str | None = Field(None, max_length=2048, description="Leave empty: only programs fill it.")


@router.post("/api/reports", Permission.READ, errors=(413, 415), status_code=201)
def send_report(archive: ArchiveDep, usage: UsageDep, form: ReportForm) -> ReportReceipt:
    """Store a report. If `website` is filled in, the response is the same, but the report is dropped."""
    return keep_report(archive, usage, form)


def keep_report(archive: Archive, usage: UsageTally, form: ReportForm) -> ReportReceipt:
    receipt = submit(archive.database, archive.clock, **form.model_dump(by_alias=False))
    if receipt.report_id is not None and archive.settings.api.usage:
        usage.count(Use.REPORT)
    return receipt


admin_router = LazyRouter(prefix="/api/admin/reports", tags=["admin"])
ReportId = Annotated[RowId, Path(description="A report's id.", examples=[1])]


@admin_router.get("", Permission.OPERATE)
def list_reports(
    session: SessionDep,
    status: Annotated[ReportStatus | None, Query(description="Only these.", examples=["new"])] = None,
    category: Annotated[Category | None, Query(description="Only these.", examples=["takedown"])] = None,
    search: Annotated[Words | None, Query(description="A part of the description, the notes or the address.")] = None,
    snapshot_id: Annotated[RowId | None, Query(alias="snapshotId", description="About this capture.")] = None,
    cursor: ListCursor = None,
    limit: ListLimit = DEFAULT_LIMIT,
    offset: Annotated[int, Query(ge=0, le=1_000_000, description="Reports to skip.")] = 0,
) -> ReportList:
    """Return reports, newest first; repeat with `cursor` set to `next` until that is null."""
    rows, total = feedback.reports(
        session,
        status=status,
        category=category,
        search=search,
        snapshot_id=snapshot_id,
        before=decode_id(cursor),
        limit=limit + 1,
        offset=offset,
    )
    after = encode_cursor(rows[limit - 1].id) if len(rows) > limit else None
    items = [from_row(Report, row) for row in rows[:limit]]
    return ReportList(items=items, next=after, limit=limit, total=total, offset=offset)


@admin_router.get("/{id}", Permission.OPERATE, errors=(404,))
def report_detail(session: SessionDep, id: ReportId) -> Report:
    """Return one report."""
    return from_row(Report, find_report(session, id))


class ReportChanges(RequestForm, example={"status": "resolved", "notes": "Captured again."}):
    """The status of a report and notes on it; other fields keep their values."""

    status: Annotated[ReportStatus | None, Field(strict=False, description="new, triaged or resolved.")] = None
    notes: Annotated[
        str | None, Field(max_length=4000, description="For operators of the archive; empty removes them.")
    ] = None


@admin_router.patch("/{id}", Permission.OPERATE, errors=(404, 413, 415))
def triage_report(admin: AdminWriteDep, id: ReportId, form: ReportChanges) -> Report:
    """Change the status and the notes of a report; the audit log records who did it."""
    with admin.write() as session:
        return from_row(Report, triage(session, admin.clock, id, **form.model_dump()))


form_router = LazyRouter(tags=["reports"], include_in_schema=False, any_query=True)
_CATEGORIES = {
    "broken_snapshot": "The page is shown wrongly",
    "incorrect_metadata": "Its title, date or language is wrong",
    "missing_snapshot": "A page is missing",
    "takedown": "The page should not be shown",
    "general_feedback": "Something else",
}
_FIELDS = ("category", "description", "snapshotId", "originalUrl", "reporterEmail", "pageUrl", "website")
_MAX_FIELDS = 20


@form_router.get("/report", Permission.READ)
def report_form(
    snapshot_id: Annotated[RowId | None, Query(alias="snapshotId")] = None,
    url: Annotated[str | None, Query(max_length=2048)] = None,
) -> HTMLResponse:
    """Show the form, filled in with the capture that it is about."""
    given = {"snapshotId": "" if snapshot_id is None else str(snapshot_id), "originalUrl": url or ""}
    return HTMLResponse(_form(given, problem=None))


async def _sent(request: Request) -> dict[str, str]:
    """Return the fields of a form; raise OriginRefused if a page of another origin sent it."""
    # `null` too: an archived page is sandboxed.
    demand_own_origin(request)
    body = (await request.body()).decode("utf-8", "replace")
    try:
        # Limit the fields: a form of a million fields would be parsed into a million pairs.
        fields = dict(parse_qsl(body, max_num_fields=_MAX_FIELDS))
    except ValueError:
        fields = {}
    return {name: fields[name].strip() for name in _FIELDS if fields.get(name, "").strip()}


@form_router.post("/report", Permission.READ)
def send_form(archive: ArchiveDep, usage: UsageDep, fields: Annotated[dict[str, str], Depends(_sent)]) -> HTMLResponse:
    """Store a report and thank the reader, or show the form again with the error."""
    try:
        form = ReportForm.model_validate(fields)
    except ValidationError as exc:
        return HTMLResponse(_form(fields, problem=_message(exc.errors()[0])), status_code=422)
    receipt = keep_report(archive, usage, form)
    # Thank for a report with a filled honeypot, too: a program must not learn that it was caught.
    number = "" if receipt.report_id is None else f" Its number is {receipt.report_id}."
    back = f'<p><a href="{raw_path(form.snapshot_id)}">Back to the capture</a></p>' if form.snapshot_id else ""
    return HTMLResponse(page("Thank you", f"<h1>Thank you</h1><p>Your report was received.{number}</p>{back}"))


def _message(error: Any) -> str:
    field = str(error["loc"][0]) if error["loc"] else "form"
    words = {
        "description": "Please describe the problem in 20 to 4,000 characters.",
        "category": "Please choose what the problem is.",
        "reporterEmail": "This is not an e-mail address; you can leave it empty.",
    }
    return words.get(field, "Some of these entries are invalid; please check them.")


def _form(given: dict[str, str], *, problem: str | None) -> str:
    options = "".join(
        f'<option value="{name}"{" selected" if given.get("category") == name else ""}>{escape(label)}</option>'
        for name, label in _CATEGORIES.items()
    )
    about = given.get("originalUrl") or (f"snapshot {given['snapshotId']}" if given.get("snapshotId") else "")
    hidden = "".join(
        f'<input type=hidden name={name} value="{escape(given.get(name, ""))}">'
        for name in ("snapshotId", "originalUrl")
    )
    return page(
        "Report a problem",
        "<h1>Report a problem</h1>"
        + (f"<p class=url>About: <code>{escape(about)}</code></p>" if about else "")
        + (f"<p role=alert><strong>{escape(problem)}</strong></p>" if problem else "")
        + f"<form method=post action=/report>{hidden}"
        f"<label for=category>What is wrong?</label><select id=category name=category>{options}</select>"
        "<label for=description>What did you see, and what did you expect?</label><textarea id=description "
        f"name=description required minlength=20 maxlength=4000>{escape(given.get('description', ''))}</textarea>"
        "<label for=email>Your e-mail address, if you want an answer</label>"
        f'<input id=email name=reporterEmail type=email maxlength=254 value="{escape(given.get("reporterEmail", ""))}">'
        "<div class=trap aria-hidden=true><label for=website>Leave this empty</label>"
        "<input id=website name=website tabindex=-1 autocomplete=off></div>"
        "<p><button>Send</button></p></form>",
    )
