"""`/report`: the form behind the bar's "Report a problem", for readers without a program. What it sends is a report."""

from __future__ import annotations

from html import escape
from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import ValidationError

from holdfast.api.deps import ArchiveDep, UsageDep
from holdfast.api.middleware.origins import is_own_origin
from holdfast.api.pages import STYLE, page
from holdfast.api.problems import OriginRefused
from holdfast.api.roles import PUBLIC
from holdfast.api.routes.reports import keep_report
from holdfast.api.schemas.reports import ReportForm

router = APIRouter(tags=["reports"], dependencies=[PUBLIC], include_in_schema=False)
_CATEGORIES = {
    "broken_snapshot": "The page is shown wrongly", "incorrect_metadata": "Its title, date or language is wrong",
    "missing_snapshot": "A page is missing", "takedown": "The page should not be shown",
    "general_feedback": "Something else",
}  # fmt: skip
_FIELDS = ("category", "description", "snapshotId", "originalUrl", "reporterEmail", "pageUrl", "website")
_MAX_FIELDS = 20


@router.get("/style.css")
def style() -> Response:
    """Return the style sheet of the pages of this host."""
    return Response(STYLE, media_type="text/css", headers={"Cache-Control": "public, max-age=3600"})


@router.get("/report")
def report_form(
    snapshot_id: Annotated[int | None, Query(alias="snapshotId", ge=0, lt=1 << 63)] = None,
    url: Annotated[str | None, Query(max_length=2048)] = None,
) -> HTMLResponse:
    """Show the form, filled with the capture that it is about."""
    given = {"snapshotId": "" if snapshot_id is None else str(snapshot_id), "originalUrl": url or ""}
    return HTMLResponse(_form(given, problem=None))


async def _sent(request: Request) -> dict[str, str]:
    """Return the fields of a form; OriginRefused if a page of another origin sent it."""
    origin = request.headers.get("origin")
    if origin is not None and not is_own_origin(origin, request.headers):  # `null` too: an archived page is sandboxed
        raise OriginRefused
    body = (await request.body()).decode("utf-8", "replace")
    try:
        fields = dict(parse_qsl(body, max_num_fields=_MAX_FIELDS))
    except ValueError:
        fields = {}
    return {name: fields[name].strip() for name in _FIELDS if fields.get(name, "").strip()}


@router.post("/report")
def send_form(archive: ArchiveDep, usage: UsageDep, fields: Annotated[dict[str, str], Depends(_sent)]) -> HTMLResponse:
    """Keep what was sent and say thank you, or show the form again with what is wrong."""
    try:
        form = ReportForm.model_validate(fields)
    except ValidationError as exc:
        return HTMLResponse(_form(fields, problem=_told(exc.errors()[0])), status_code=422)
    receipt = keep_report(archive, usage, form)
    number = "" if receipt.report_id is None else f" It has the number {receipt.report_id}."
    back = f'<p><a href="/api/snapshots/raw/{form.snapshot_id}">Back to the capture</a></p>' if form.snapshot_id else ""
    return HTMLResponse(page("Thank you", f"<h1>Thank you</h1><p>Your report was received.{number}</p>{back}"))


def _told(error: Any) -> str:
    field = str(error["loc"][0]) if error["loc"] else "form"
    words = {"description": "Please describe the problem in 20 to 4,000 characters.",
             "category": "Please choose what the problem is.",
             "reporterEmail": "This is no e-mail address; it may be left empty."}  # fmt: skip
    return words.get(field, "Some of this cannot be used; please check it.")


def _form(given: dict[str, str], *, problem: str | None) -> str:
    options = "".join(
        f'<option value="{name}"{" selected" if given.get("category") == name else ""}>{escape(told)}</option>'
        for name, told in _CATEGORIES.items()
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
