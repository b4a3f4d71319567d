"""`/web/…`: captures, TimeGates, TimeMaps and calendars. Captures themselves are shown on the replay host only."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from holdfast.api.deps import ArchiveDep
from holdfast.api.replaying import asking_of, place_here, refuse, replay_of, respond, send_text, target_behind
from holdfast.api.roles import PUBLIC
from holdfast.errors import Invalid, NotFound
from holdfast.replay import browse, memento
from holdfast.replay.address import Listing, Modifier, Wanted, archived_url, read_path, replay_path
from holdfast.replay.answer import own_page, redirect
from holdfast.replay.moments import parse_http_date, timestamp
from holdfast.replay.place import Place
from holdfast.wiring.archive import Archive

router = APIRouter(tags=["replay"], dependencies=[PUBLIC])


@router.head("/web/{target:path}", include_in_schema=False, name="web_head")
@router.get("/web/{target:path}", response_class=HTMLResponse)
def web(request: Request, archive: ArchiveDep) -> Response:
    """Show a capture (`/web/<digits><modifier>/<address>`) or choose one (`/web/<address>` with Accept-Datetime).

    `/web/timemap/{link,json,cdxj}/<address>` lists all captures, `/web/*/<address>` is a calendar, `/web/*/<address>*`
    lists the addresses that begin alike.
    """
    place = place_here(request, archive)
    target = target_behind(request, "/web/")
    try:
        if target.startswith("timemap/"):
            return _time_map(archive, place, target.removeprefix("timemap/"))
        wanted = read_path(target)
        if isinstance(wanted, Listing):
            with archive.database.read() as session:
                return respond(own_page(browse.listing(session, wanted, place)))
        if not wanted.digits:
            return _time_gate(request, archive, place, wanted.url)
        return _capture(request, archive, place, wanted)
    except NotFound as exc:
        return _missing(exc, place, target)
    except Invalid as exc:
        return refuse(400, "This address cannot be used", str(exc))


def _capture(request: Request, archive: Archive, place: Place, wanted: Wanted) -> Response:
    if not place.is_replay:
        return respond(redirect(307, place.memento(wanted.digits, wanted.modifier, wanted.url), []))
    return respond(replay_of(archive).capture(wanted, asking_of(request, archive)))


def _time_gate(request: Request, archive: Archive, place: Place, url: str) -> Response:
    accepted = request.headers.get("accept-datetime")
    moment = parse_http_date(accepted) if accepted is not None else None
    with archive.database.read() as session:
        chosen, ends = browse.gate(session, url, moment)
    target = place.memento(timestamp(chosen.captured_at), "", chosen.url)
    return respond(redirect(302, target, memento.gate_headers(url, place, ends)))


def _time_map(archive: Archive, place: Place, path: str) -> Response:
    form, page, text = browse.read_map_path(path)
    with archive.database.read() as session:
        found = browse.time_map(session, archived_url(text), form, page)
    return send_text(memento.render(found, place), memento.TYPES[form])


def _missing(exc: NotFound, place: Place, target: str) -> Response:
    """Return the page for what is not here; inside a page only its status is seen."""
    try:
        wanted = read_path(target)
    except Invalid:
        return refuse(404, "Not in this archive", str(exc))
    if isinstance(wanted, Wanted) and not wanted.modifier.is_page and wanted.modifier is not Modifier.RAW:
        return refuse(404, "Not in this archive", str(exc))
    calendar = replay_path("*", "", wanted.url)
    return refuse(
        404, "Not in this archive", str(exc), ("All captures of this address", calendar),
        ("Addresses that begin like it", f"{calendar}*"),
    )  # fmt: skip
