"""`/`: a plain page that says what is kept here and where to look; without script, and for people."""

from __future__ import annotations

from html import escape

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from holdfast.api import queries
from holdfast.api.addresses import browse_url
from holdfast.api.deps import ArchiveDep, SessionDep, TotalsDep
from holdfast.api.pages import page
from holdfast.api.roles import PUBLIC

router = APIRouter(tags=["archive"], dependencies=[PUBLIC], include_in_schema=False)
_SHOWN = 200


@router.get("/")
def home(archive: ArchiveDep, session: SessionDep, totals: TotalsDep) -> HTMLResponse:
    """Show the sources with the newest capture of each one's first page."""
    kept = totals.read(session)
    listed = kept.listed[:_SHOWN]
    shown = queries.snapshots_by_id(session, [one for total in listed for one in kept.faces[total.source_id].entry])
    rows = []
    for total in listed:
        entry = next((shown[one] for one in kept.faces[total.source_id].entry if one in shown), None)
        name = escape(total.name)
        if entry is not None:
            link = browse_url(archive.settings, url=entry.url, captured_at=entry.captured_at, snapshot_id=entry.id)
            name = f'<a href="{escape(link)}">{name}</a>'
        rows.append(
            f"<li>{name}: {_counted(total.snapshots, 'capture')}, {total.first:%Y-%m-%d} to {total.last:%Y-%m-%d}"
        )
    captures, pages = sum(one.snapshots for one in kept.listed), sum(one.pages for one in kept.listed)
    about = "" if archive.settings.api.strict else ' · <a href="/docs">all routes</a>'
    return HTMLResponse(
        page(
            "Holdfast",
            "<h1>Holdfast</h1>"
            f"<p>{_counted(captures, 'capture')} of {_counted(pages, 'page')} "
            f"from {_counted(len(kept.listed), 'source')}.</p>"
            "<form action=/api/search><label for=q>Search</label> <input id=q name=q required maxlength=256> "
            f"<button>Find</button></form><ul>{''.join(rows)}</ul>"
            f"<p><a href=/api/stats>figures</a> · <a href=/api/sources>sources</a>{about} · "
            "<a href=/report>report a problem</a></p>",
        )
    )


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun if number == 1 else noun + 's'}"
