"""`/replay-web-page/…` on the replay host: ReplayWeb.page as a second viewer of captures, if it is installed.

The operator installs its two files; without them, all routes here respond 404. It shows only public captures:
what it replays shares one origin and its storage, where a page could read what another one stored (decision
0049).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from fastapi import Request
from fastapi.responses import HTMLResponse
from starlette.responses import Response, StreamingResponse

from holdfast.api.dependencies import ArchiveDep, SessionDep
from holdfast.api.heavy import Streamed, export
from holdfast.api.middleware.request_ids import CAPABILITY
from holdfast.api.routes.replay import origins_here
from holdfast.api.routes.snapshots import SnapshotId, pack_capture
from holdfast.api.routing import LazyRouter
from holdfast.auth.roles import Permission
from holdfast.clock import digits14
from holdfast.errors import NotFound
from holdfast.exports.selection import SelectionTooLarge
from holdfast.replay.links import escape
from holdfast.replay.renderer import RENDERER_FILES, renderer_folder
from holdfast.wiring.archive import Archive
from holdfast.withdrawals.visibility import visible_snapshot

router = LazyRouter(prefix="/replay-web-page", tags=["replay"], include_in_schema=False, any_query=True)
# ReplayWeb.page loads a package of this size as a whole; a larger one it would request in ranges.
_MOST_BYTES: Final = 25_000_000
# It sets styles from its script, and compiles WebAssembly to decompress; frames, workers and responses are from this
# host.
_SOURCES: Final = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; frame-src 'self'; worker-src 'self'; "
    "base-uri 'none'; form-action 'none'"
)
# Place it inside the element: the browser shows it only until a script has defined the element.
_ABSENT: Final = (
    "ReplayWeb.page does not answer. Its files here (ui.js and sw.js) may be broken, or not its own; the archive's own "
    "view shows this capture, too."
)
# Set it on the page itself, too: in its own window it must not have more rights than in the viewer's frame.
_SANDBOX: Final = "sandbox allow-scripts allow-same-origin allow-forms allow-downloads"


def _demand_installed(request: Request, archive: Archive) -> Path:
    """Return the folder with the files; raise NotFound without them, and below the signed URL of a members'
    capture.
    """
    folder = renderer_folder(archive.settings)
    if folder is None or CAPABILITY in request.scope:
        raise NotFound("ReplayWeb.page is not installed here, or not for this; see HOLDFAST_REPLAY_RENDERER_DIR")
    return folder


@router.get("/", Permission.READ)
def renderer_index(request: Request, archive: ArchiveDep) -> HTMLResponse:
    """Return an empty page: a placeholder until the service worker of ReplayWeb.page responds instead."""
    _demand_installed(request, archive)
    # Name every page around it: ours on this host, and the viewer around that.
    policy = " ".join(("default-src 'none'; frame-ancestors 'self'", *origins_here(request, archive).viewers))
    return HTMLResponse("<!doctype html><title>ReplayWeb.page</title>", headers=_headers(policy))


@router.get("/open/{id}", Permission.READ)
def renderer_page(request: Request, archive: ArchiveDep, session: SessionDep, id: SnapshotId) -> HTMLResponse:
    """Return the page on which ReplayWeb.page shows a capture."""
    _demand_installed(request, archive)
    found = visible_snapshot(session, id)
    # In its own window nothing else shows which page it is and when it was captured.
    is_framed = request.headers.get("sec-fetch-dest") == "iframe"
    shown = {
        "source": f"/replay-web-page/captures/{found.id}.wacz",
        "url": found.url,
        "ts": digits14(found.captured_at),
        "embed": "replayonly" if is_framed else "default",
        "replaybase": "/replay-web-page/",
        "coll": f"capture-{found.id}",
    }
    attributes = " ".join(f'{name}="{escape(value)}"' for name, value in shown.items())
    html = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>ReplayWeb.page</title>'
        "<style>html, body { height: 100%; margin: 0 }</style>"
        f'<script src="/replay-web-page/ui.js"></script></head><body>'
        f"<replay-web-page {attributes}><p>{_ABSENT}</p></replay-web-page></body></html>"
    )
    viewers = " ".join(origins_here(request, archive).viewers) or "'none'"
    return HTMLResponse(html, headers=_headers(f"{_SANDBOX}; {_SOURCES}; frame-ancestors {viewers}"))


@router.head("/captures/{id}.wacz", Permission.READ, name="renderer_package_head")
def renderer_package_head(request: Request, archive: ArchiveDep, session: SessionDep, id: SnapshotId) -> Response:
    """Return that the package exists, without building it."""
    _demand_installed(request, archive)
    visible_snapshot(session, id)
    return Response(media_type="application/wacz", headers=_headers(_SOURCES))


@router.get("/captures/{id}.wacz", Permission.READ, response_class=StreamingResponse)
async def renderer_package(request: Request, archive: ArchiveDep, id: SnapshotId) -> Response:
    """Return the package from which ReplayWeb.page reads a capture; raises SelectionTooLarge."""

    def work() -> Streamed:
        _demand_installed(request, archive)
        packed = pack_capture(archive, id, _MOST_BYTES)
        size = int(packed.headers["Content-Length"])
        if size > _MOST_BYTES:
            raise SelectionTooLarge(f"this page takes {size:,} bytes, and ReplayWeb.page is given {_MOST_BYTES:,}")
        return packed

    return await export(request, work)


@router.get("/{file}", Permission.READ)
def renderer_file(request: Request, archive: ArchiveDep, file: str) -> Response:
    """Return a file of ReplayWeb.page."""
    folder = _demand_installed(request, archive)
    # Look the name up in our own list; never join a given name to a path.
    name = next((one for one in RENDERER_FILES if one == file), None)
    if name is None:
        raise NotFound(f"there is no {file[:60]!r} of ReplayWeb.page here")
    # A worker follows the policy of its own script: it may request only this host.
    return Response(
        (folder / name).read_bytes(), media_type="text/javascript; charset=utf-8", headers=_headers(_SOURCES)
    )


def _headers(policy: str) -> dict[str, str]:
    return {"Content-Security-Policy": policy, "Cache-Control": "no-cache"}
