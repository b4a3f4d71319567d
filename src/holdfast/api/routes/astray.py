"""What lies beside `/web/` on the replay host: addresses that archived scripts made from the root of their own site."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response
from url import URL, URLError

from holdfast.api.deps import ArchiveDep
from holdfast.api.replaying import place_here, refuse, respond, target_behind
from holdfast.api.roles import PUBLIC
from holdfast.errors import Invalid
from holdfast.replay.address import Modifier, Wanted, read_path, replay_path
from holdfast.replay.answer import redirect
from holdfast.replay.place import Place
from holdfast.replay.policy import READABLE

router = APIRouter(tags=["replay"], dependencies=[PUBLIC])

_MODIFIERS = {
    "document": Modifier.PAGE,
    "iframe": Modifier.FRAME,
    "frame": Modifier.FRAMESET,
    "image": Modifier.IMAGE,
    "script": Modifier.SCRIPT,
    "style": Modifier.STYLE,
}


@router.api_route(
    "/{target:path}", methods=["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"], include_in_schema=False, name="astray"
)
def astray(request: Request, archive: ArchiveDep) -> Response:
    """Lead a request from the root of an archived site back into the archive, by the capture that its Referer names.

    A page in a sandbox sends none; its module scripts and style sheets do. Our own script (`replay/shim.js`) resolves
    what the others make before they ask.
    """
    place = place_here(request, archive)
    asker = _asker(request.headers.get("referer", ""), place)
    target = None if asker is None else _meant(asker, f"/{target_behind(request, '/')}")
    if asker is None or target is None:
        return refuse(404, "Not in this archive", "this address says neither which site it belongs to nor when")
    modifier = _MODIFIERS.get(request.headers.get("sec-fetch-dest", ""), Modifier.OBJECT)
    path = replay_path(asker.digits, modifier, target, site_pass=asker.site_pass)
    return respond(redirect(307, path, [READABLE, ("Vary", "referer, sec-fetch-dest")]))


def _asker(referer: str, place: Place) -> Wanted | None:
    """Return the capture that asks; None if the Referer names none of this archive."""
    start = f"{place.origin}/web/"
    if not referer.startswith(start):
        return None
    try:
        found = read_path(referer.removeprefix(start))
    except Invalid:
        return None
    return found if isinstance(found, Wanted) and found.digits else None


def _meant(asker: Wanted, path: str) -> str | None:
    try:
        return str(URL.parse(asker.url).join(path))
    except (URLError, ValueError):
        return None
