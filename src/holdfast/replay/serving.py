"""Replay responses: finds, opens and rewrites a capture, and never gives it any authority."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from sqlalchemy.orm import Session

from holdfast.clock import Clock, digits14
from holdfast.db.engine import Database
from holdfast.db.models import Snapshot
from holdfast.errors import Invalid, NotFound
from holdfast.index.queries import StoredRecord, document_of, open_stored
from holdfast.replay.address import Modifier, WantedAddress, day_in_words, raw_path, replay_path
from holdfast.replay.body import Additions, HeldBody, ReplayBody, RewrittenPages, Rules, body_of, stated_length
from holdfast.replay.capabilities import ReplayKeys
from holdfast.replay.finding import CaptureNeighbours, FoundCapture, candidates, is_lost, neighbours
from holdfast.replay.headers import (
    GUARDS,
    NOTE,
    ORIGINAL_PREFIX,
    OWN_PAGE_POLICY,
    READABLE,
    connections,
    is_code,
    partial_content,
    replay_policy,
    replayed_headers,
)
from holdfast.replay.links import Links, escape
from holdfast.replay.memento import gate, gate_headers, memento_headers
from holdfast.replay.origins import ReplayOrigins, SitePasses, site_of
from holdfast.replay.pages import framed, html_document, page, raw_bar, replay_bar, shim_for
from holdfast.values import dataclass
from holdfast.warc.reader import DamagedWarc
from holdfast.withdrawals.viewers import viewer
from holdfast.withdrawals.visibility import is_any_for_members, members_source, visible_snapshot

Headers = list[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayAnswer:
    status: int
    headers: Headers
    body: bytes | Iterator[bytes] = b""


class ReplayRequest(NamedTuple):
    origins: ReplayOrigins
    accepts_gzip: bool = False
    if_none_match: str = ""
    byte_range: str = ""
    if_range: str = ""
    sent: str = ""
    """Data of a request other than GET and HEAD, encoded as part of its key (`index.capture.request_data`)."""
    mode: str = ""
    destination: str = ""
    """Sec-Fetch-Mode and Sec-Fetch-Dest: how a browser uses the response; empty if not sent."""
    is_led: bool = False
    """Whether the reader followed a link, by Sec-Fetch-Site; false for a typed address."""

    @property
    def is_framed(self) -> bool:
        return self.destination in ("iframe", "frame", "embed", "object")


def own_page(body: bytes, status: int = 200, extra: Headers | None = None) -> ReplayAnswer:
    headers = [
        ("Content-Type", "text/html; charset=utf-8"),
        ("Content-Security-Policy", OWN_PAGE_POLICY),
        ("Cache-Control", "no-cache"),
        *GUARDS,
        *(extra or []),
    ]
    return ReplayAnswer(status=status, headers=headers, body=body)


def redirect(status: int, location: str, headers: Headers) -> ReplayAnswer:
    return ReplayAnswer(
        status=status,
        headers=[
            ("Location", location),
            ("Content-Security-Policy", OWN_PAGE_POLICY),
            ("Cache-Control", "no-cache"),
            *GUARDS,
            *headers,
        ],
    )


def ranged(
    content: bytes | Iterator[bytes], size: int | None, headers: Headers, request: ReplayRequest
) -> ReplayAnswer:
    """Return the requested range (206), everything without a range, or 416 if the range is beyond the end.

    `size` is None if unknown; then there are no ranges.
    """
    if size is None:
        return ReplayAnswer(status=200, headers=headers, body=content)
    part = partial_content(request.byte_range, size, if_range=request.if_range, etag=dict(headers).get("ETag", ""))
    headers = [*headers, ("Accept-Ranges", "bytes")]
    if part.content_range is not None:
        headers.append(("Content-Range", part.content_range))
    if part.status == 416:
        return ReplayAnswer(status=416, headers=headers)
    if part.status == 200:
        # Other streamed bodies have the length stated by their server, which may be wrong.
        held = [("Content-Length", str(size))] if isinstance(content, HeldBody) else []
        return ReplayAnswer(status=200, headers=[*headers, *held], body=content)
    if isinstance(content, bytes):
        return ReplayAnswer(status=206, headers=headers, body=content[part.start : part.end])
    return ReplayAnswer(status=206, headers=headers, body=_cut(content, part.start, part.end))


def _cut(pieces: Iterator[bytes], start: int, end: int) -> Iterator[bytes]:
    at = 0
    for piece in pieces:
        if at + len(piece) > start:
            yield piece[max(0, start - at) : end - at]
        at += len(piece)
        if at >= end:
            return


REWRITER_VERSION = 5
"""Incremented with any change of the output for the same capture: browsers then fetch it again."""
# Limit of captures tried per response if their records are damaged.
_TRIED = 3
_BODILESS = (204, 205, 304)
# A server that is not a proxy must not request proxy credentials: browsers show their own error.
_UNSENDABLE = {407: 403}
# Types that browsers run like pages, without a place for our bar.
_MARKED_UP = re.compile(r"image/svg\+xml|(?:text|application)/(?:[a-z0-9.+-]{1,64}\+)?xml")
# Types that browsers show; they download anything else.
_SHOWN = re.compile(
    r"(?:text|image|audio|video)/|application/(?:pdf|json|(?:[a-z0-9.+-]{1,64}\+)?(?:xml|json)|javascript)"
)
_VARY = "accept-encoding, origin, sec-fetch-dest, sec-fetch-mode, sec-fetch-site"


class CaptureLost(NotFound):
    """The index has this capture, but its record cannot be read."""

    code = "capture_lost"

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"the record of {url[:500]} cannot be read ({reason}); run: holdfast verify")


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """Serves captures; holds no session, and reads files."""

    database: Database
    home: Path
    clock: Clock
    passes: SitePasses
    """Passes for content that scripts may read."""
    keys: ReplayKeys
    """Keys that sign URLs of members' captures."""
    rewritten: RewrittenPages
    scripts: bool = True
    """Whether archived scripts may run, in their sandbox."""
    rewrite_s: float = 3.0

    def capture(self, wanted: WantedAddress, request: ReplayRequest) -> ReplayAnswer:
        """Return the best capture; raise NotCaptured or CaptureLost, which are both NotFound.

        A reader who navigates is redirected to the exact time (302); embedded content, raw bytes and responses to POST
        are returned directly, with Content-Location.
        """
        with ExitStack() as stack:
            with self.database.read() as session:
                found = candidates(session, wanted.url, wanted.digits, sent=request.sent)
                best = found[0]
                digits = digits14(best.captured_at)
                is_navigated = wanted.modifier in (Modifier.PAGE, Modifier.MAIN) and not wanted.site_pass
                # The browser's address then identifies the shown capture and can be cited.
                if digits != wanted.digits and is_navigated and not request.sent:
                    target = request.origins.prefix + replay_path(digits, wanted.modifier, best.url)
                    return redirect(302, target, [])
                # If a record is damaged, the next best capture is used; each try opens a file, so there are few.
                snapshot, stored = self._open_first(session, stack, [one.id for one in found[:_TRIED]])
                has_neighbours = wanted.modifier.is_page and not request.sent
                around = _around(session, snapshot) if has_neighbours else None
            view = _View(self, snapshot, stored, wanted, request, around)
            return view.answer(stack)

    def raw(self, snapshot_id: int, request: ReplayRequest) -> ReplayAnswer:
        """Return a snapshot with the raw view's toolbar; raise NotFound if the snapshot, its file or record is missing.

        On the application's host, a browser is redirected to the replay host. A program gets the response there too,
        under a policy that lets nothing in it run.
        """
        with ExitStack() as stack:
            with self.database.read() as session:
                snapshot, stored = self._open_first(session, stack, [snapshot_id], allow_lost=True)
                document = document_of(session, snapshot)
                title = document.title if document is not None else None
                request = request._replace(origins=self._origins(session, snapshot, request.origins))
            # On the application's host `'self'` would be the API: an archived script could read all of it.
            if request.mode == "navigate" and not request.origins.is_replay:
                return redirect(307, request.origins.prefix + raw_path(snapshot.id), [])
            wanted = WantedAddress(digits14(snapshot.captured_at), Modifier.PAGE, snapshot.url)
            view = _View(self, snapshot, stored, wanted, request, None)
            return view.raw(stack, title)

    def memento(self, wanted: WantedAddress, request: ReplayRequest) -> str:
        """Return a capture's URL on the replay host, with a capability for viewers of members' captures."""
        origins = request.origins
        # Look up the capture only for these viewers: others are redirected whether it exists or not.
        if viewer().sees_members:
            with suppress(NotFound, Invalid), self.database.read() as session:
                best = candidates(session, wanted.url, wanted.digits, sent=request.sent)[0]
                origins = self._origins(session, best, origins)
        return origins.memento(wanted.digits, wanted.modifier, wanted.url)

    def gate(self, url: str, moment: datetime | None, origins: ReplayOrigins) -> ReplayAnswer:
        """Return a TimeGate's response: the capture nearest to a time, or the newest; raise NotCaptured."""
        with self.database.read() as session:
            chosen, ends = gate(session, url, moment)
            listed = listing_origins(session, origins)
            origins = self._origins(session, chosen, origins)
        target = origins.memento(digits14(chosen.captured_at), "", chosen.url)
        return redirect(302, target, gate_headers(url, listed, ends))

    def _origins(self, session: Session, capture: Snapshot | FoundCapture, origins: ReplayOrigins) -> ReplayOrigins:
        """Return the origins for a capture, with a capability if only members may see it."""
        source_id = None if origins.is_replay else members_source(session, capture.source_id, capture.original_id)
        return origins if source_id is None else origins._replace(root=self.keys.root(source_id))

    def _open_first(
        self, session: Session, stack: ExitStack, ids: list[int], *, allow_lost: bool = False
    ) -> tuple[Snapshot, StoredRecord]:
        """Return the first readable capture; `allow_lost` accepts a revisit without its original."""
        lost: CaptureLost | None = None
        for snapshot_id in ids:
            found = visible_snapshot(session, snapshot_id)
            try:
                stored = stack.enter_context(open_stored(session, self.home, found))
                if is_lost(found.record_type, found.original_id, found.status) and not allow_lost:
                    raise NotFound("it refers to an earlier capture, which is not here")
                # A 304 without its original has headers and no body: nothing to show.
                if stored.status == 304:
                    raise NotFound("its original is not here")
            except (NotFound, DamagedWarc) as exc:
                lost = CaptureLost(found.url, str(exc))
                continue
            return found, stored
        assert lost is not None
        raise lost


def listing_origins(session: Session, origins: ReplayOrigins) -> ReplayOrigins:
    """Return the origins for a list of captures, some of which may be for members.

    On the application's host such a list links to captures on that host, which knows the user and redirects.
    """
    if origins.is_replay or not viewer().sees_members or not is_any_for_members(session):
        return origins
    return origins._replace(origin=origins.here)


def _around(session: Session, snapshot: Snapshot) -> CaptureNeighbours:
    return neighbours(session, snapshot.url_key, snapshot.captured_at, snapshot.id)


@dataclass(slots=True)
class _View:
    replay: Replay
    snapshot: Snapshot
    stored: StoredRecord
    wanted: WantedAddress
    """Has the digits of the request: resources of a page are searched near the page's time, not their own."""
    request: ReplayRequest
    around: CaptureNeighbours | None

    @property
    def origins(self) -> ReplayOrigins:
        return self.request.origins

    @property
    def modifier(self) -> Modifier:
        return self.wanted.modifier

    def answer(self, stack: ExitStack) -> ReplayAnswer:
        status = self.stored.status or 200
        if (download := self._download_page(status)) is not None:
            return download
        links = self._links()
        wants_bar = self.modifier is Modifier.PAGE and not 300 <= status < 400 and not self.request.is_framed
        bar = replay_bar(self.snapshot, self.around, self.origins) if wants_bar else ""
        tag = self._tag(bar)
        if status == 200:
            # A page sent without scripts has its own ETag: a 304 must not restore the policy with scripts.
            for known, nojs in ((tag, False), (f"{tag}-n", True)):
                if f'"{known}"' in self.request.if_none_match:
                    return ReplayAnswer(status=304, headers=[*self._guards(nojs=nojs), ("ETag", f'"{known}"')])
        key = tag, links.site_pass, self.origins, self.request.accepts_gzip
        body = self.replay.rewritten.get(key, lambda: self._body(links, bar))
        headers = self._headers(links, body)
        if status == 200:
            headers.append(("ETag", f'"{tag}-n"' if body.nojs else f'"{tag}"'))
        status = _UNSENDABLE.get(status, status if 200 <= status <= 599 else 200)
        # HTTP allows no body with these, and the server would abort the response.
        if status in _BODILESS:
            return ReplayAnswer(status=status, headers=headers)
        content = _held(body.content, stack)
        if status == 200 and body.coding is None:
            return ranged(content, self._size(content), headers, self.request)
        return ReplayAnswer(status=status, headers=headers, body=content)

    def _links(self) -> Links:
        return Links(
            self.snapshot.url,
            digits=self.wanted.digits,
            modifier=self.modifier,
            prefix=self.origins.prefix,
            # Without scripts no pass is needed, and a page cannot leak a pass that it does not contain.
            site_pass=self.replay.passes.of(self.snapshot.url) if self._runs_scripts else "",
        )

    @property
    def _runs_scripts(self) -> bool:
        """Whether archived scripts run in this response: never on the application's host, whose API they could use.

        With a capability only inside another page: without Connection-Allowlist support in the browser, a script of a
        top-level page could send its own URL, capability included, to the live web.
        """
        is_inside = self.request.destination not in ("", "document")
        return self.replay.scripts and self.origins.is_replay and (is_inside or not self.origins.root)

    def _tag(self, bar: str) -> str:
        """Return the cache tag of this response: the capture, and everything that we add to it."""
        # Include the neighbours: a cached bar must not link to a capture that was taken down.
        around = repr([one and (one.id, one.captured_at, one.url) for one in self.around or ()])
        policy = replay_policy(nojs=not self._runs_scripts)
        ours = (bar, around, policy, self.wanted.site_pass, self.origins.root)
        digest = sha256("\0".join(ours).encode("utf-8", "replace")).hexdigest()[:16]
        return f"{self.snapshot.id}-{REWRITER_VERSION}-{self.modifier}{self.wanted.digits}-{digest}"

    def _size(self, content: bytes | Iterator[bytes]) -> int | None:
        """Return the length of a body; if it streams, the length that its server stated."""
        if isinstance(content, bytes):
            return len(content)
        if isinstance(content, HeldBody):
            return content.size
        return stated_length(self.stored) if self.snapshot.truncated is None else None

    def _download_page(self, status: int) -> ReplayAnswer | None:
        """Return a page that offers a file for download, if the reader followed a link; None otherwise."""
        # A sandbox downloads nothing, because its scripts could start that. From our own page a reader may.
        request, head = self.request, self.stored.head
        if (
            status != 200
            or self.modifier is not Modifier.PAGE
            or not request.is_led
            or request.destination != "document"
        ):
            return None
        disposition = (head.get("content-disposition") or "") if head is not None else ""
        is_file = disposition.strip().lower().startswith("attachment")
        media_type = self.stored.media_type or "text/html"
        if not is_file and (_SHOWN.match(media_type) or "html" in media_type):
            return None
        digits = digits14(self.snapshot.captured_at)
        address = self.origins.prefix + replay_path(digits, Modifier.RAW, self.snapshot.url)
        url = escape(self.snapshot.url)
        text = (
            f'<h1>A file</h1>\n<p class="url">{url}</p>\n<p>It is of the type {escape(media_type[:80])}, captured on '
            f"{day_in_words(self.snapshot.captured_at)}.</p>\n"
            f'<p><a href="{escape(address)}" download>Download it</a></p>'
        )
        extra = memento_headers(self.snapshot.url, self.snapshot.captured_at, self.origins, self.around)
        return own_page(page("A file of this archive", text), 200, [*extra, ("Vary", _VARY)])

    def raw(self, stack: ExitStack, title: str | None) -> ReplayAnswer:
        """Return the view of one snapshot with status 200; a header has its original status."""
        links = self._links()
        bar = raw_bar(self.snapshot, title, self.origins)
        body = self._body(links, bar)
        # The raw view shows a redirect and does not follow it.
        headers = [pair for pair in self._headers(links, body) if pair[0] not in ("Location", "Refresh")]
        heading = escape(title or self.snapshot.url)
        lost = is_lost(self.snapshot.record_type, self.snapshot.original_id, self.snapshot.status)
        if lost or body.content in (b"", bar.encode()):
            reason = "It refers to an earlier capture, which is not here." if lost else ""
            message = (
                f"<p>This capture has no body. Its status was {self.stored.status or 'not recorded'}. {reason}</p>"
            )
            return _page(headers, html_document(heading, bar + message))
        if _MARKED_UP.match(body.content_type):
            return _page(headers, framed(heading, bar, self._framed_at()))
        return ReplayAnswer(status=200, headers=headers, body=_held(body.content, stack))

    def _framed_at(self) -> str:
        return self.origins.memento(digits14(self.snapshot.captured_at), Modifier.FRAMESET, self.snapshot.url)

    def _body(self, links: Links, bar: str) -> ReplayBody:
        replay, url = self.replay, self.snapshot.url
        shim = shim_for(url, links, self.origins, site_of(url)) if self._runs_scripts else ""
        additions = Additions(bar=bar, shim=shim, framed_at=self._framed_at())
        # Decode truncated bodies here: a browser shows nothing of a gzip stream without its end.
        accepts_gzip = self.request.accepts_gzip and self.snapshot.truncated is None
        rules = Rules(self.modifier, links, additions, accepts_gzip, replay.clock, replay.rewrite_s)
        try:
            return body_of(self.stored, rules)
        except DamagedWarc as exc:
            raise CaptureLost(url, str(exc)) from exc

    def _guards(self, *, nojs: bool, content_type: str = "") -> Headers:
        """Return the headers of every response: the sandbox, Memento headers, and whether scripts may read it."""
        snapshot, origins = self.snapshot, self.origins
        source = "'self'" if origins.is_replay else origins.origin
        # Only the raw view's bar links to the application.
        is_raw_view = self.around is None and self.modifier is Modifier.PAGE and not self.request.sent
        reachable = [
            origin for origin in (origins.origin, origins.app if is_raw_view else None) if origin != origins.here
        ]
        is_readable = self.replay.passes.admits(self.wanted.site_pass, snapshot.url)
        return [
            ("Content-Security-Policy", replay_policy(source, nojs=nojs or not self._runs_scripts)),
            # Keeps `location = …` and WebRTC inside, in browsers that support it (decision 0010).
            ("Connection-Allowlist", connections(*filter(None, reachable))),
            ("Cache-Control", "no-cache"),
            ("Vary", _VARY),
            *GUARDS,
            *([READABLE] if is_readable or is_code(content_type, self.request.destination) else []),
            *memento_headers(snapshot.url, snapshot.captured_at, self.origins, self.around),
        ]

    def _headers(self, links: Links, body: ReplayBody) -> Headers:
        snapshot = self.snapshot
        digits = digits14(snapshot.captured_at)
        headers: Headers = [
            ("Content-Type", body.content_type),
            *self._guards(nojs=body.nojs, content_type=body.content_type),
            *replayed_headers(self.stored.head, links, readable=bool(self.wanted.site_pass)),
            ("Content-Location", self.origins.prefix + replay_path(digits, self.modifier, snapshot.url)),
            (f"{ORIGINAL_PREFIX}Status", str(self.stored.status or "unknown")),
        ]
        if body.coding is not None:
            headers.append(("Content-Encoding", body.coding))
        if body.note:
            headers.append((NOTE, body.note))
        return headers


def _page(headers: Headers, text: str) -> ReplayAnswer:
    kept = [pair for pair in headers if pair[0] not in ("Content-Type", "Content-Encoding", "Content-Disposition")]
    return ReplayAnswer(status=200, headers=[*kept, ("Content-Type", "text/html; charset=utf-8")], body=text.encode())


def _held(content: bytes | Iterator[bytes], stack: ExitStack) -> bytes | Iterator[bytes]:
    """Return the body; one that streams holds its files open until it ends."""
    # A held body is already read and keeps its size: the server's stated size is not that of a rewritten page.
    if isinstance(content, bytes | HeldBody):
        return content
    return _streamed(content, stack.pop_all())


def _streamed(content: Iterator[bytes], stack: ExitStack) -> Iterator[bytes]:
    with stack:
        yield from content
