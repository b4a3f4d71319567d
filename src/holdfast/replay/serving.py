"""From an address and a moment to the answer a browser gets: found, opened, rewritten, and never with any authority."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from sqlalchemy.orm import Session

from holdfast.clock import Clock
from holdfast.db.engine import Database
from holdfast.db.models import Snapshot
from holdfast.errors import NotFound
from holdfast.index.queries import StoredRecord, document_of, open_stored
from holdfast.replay.address import Modifier, WantedAddress, day_in_words, replay_path, timestamp
from holdfast.replay.answer import Headers, ReplayAnswer, ReplayRequest, own_page, ranged, redirect
from holdfast.replay.banner import ShownCapture, raw_bar, replay_bar, shim_for
from holdfast.replay.body import HeldBody, ReplayBody, Rules, body_of, stated_length
from holdfast.replay.browse import page
from holdfast.replay.documents import Additions, framed
from holdfast.replay.finding import CaptureNeighbours, candidates, is_lost, neighbours
from holdfast.replay.headers import (
    GUARDS,
    NOTE,
    ORIGINAL_PREFIX,
    READABLE,
    connections,
    is_code,
    replay_policy,
    replayed_headers,
)
from holdfast.replay.links import Links, escape
from holdfast.replay.markup import Bar
from holdfast.replay.memento import memento_headers
from holdfast.replay.origins import ReplayOrigins, SitePasses, site_of
from holdfast.warc.reader import DamagedWarc
from holdfast.withdrawals.visibility import visible_snapshot

REWRITER_VERSION = 3
"""Raised with any change of what is sent for the same capture: browsers then ask again."""
_TRIED = 3
"""Captures that are opened before an answer is given up, if their records are damaged."""
_BODILESS = (204, 205, 304)
# A server that is no proxy may not ask for proxy credentials: browsers show an error of their own.
_UNSENDABLE = {407: 403}
_MARKED_UP = re.compile(r"image/svg\+xml|(?:text|application)/(?:[a-z0-9.+-]{1,64}\+)?xml")
"""Types that browsers run like pages, and that have no place for our bar."""
_SHOWN = re.compile(
    r"(?:text|image|audio|video)/|application/(?:pdf|json|(?:[a-z0-9.+-]{1,64}\+)?(?:xml|json)|javascript)"
)
"""Types that browsers show; anything else they would download."""
_VARY = "accept-encoding, origin, sec-fetch-dest, sec-fetch-mode, sec-fetch-site"


class CaptureLost(NotFound):
    """The index knows this capture, and its record cannot be read."""

    code = "capture_lost"

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"the record of {url[:500]} cannot be read ({reason}); run: holdfast verify")


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What serves captures: it holds no session, and reads files."""

    database: Database
    home: Path
    clock: Clock
    passes: SitePasses
    """What scripts may read by."""
    scripts: bool = True
    """Whether archived scripts may run, in their sandbox."""
    rewrite_s: float = 3.0

    def capture(self, wanted: WantedAddress, asking: ReplayRequest) -> ReplayAnswer:
        """Return the capture nearest to what is wanted; NotCaptured or CaptureLost, which are both NotFound.

        A reader who navigates is sent to the exact moment (302); anything embedded, raw bytes, and the answers to what
        was posted, come at once with Content-Location.
        """
        with ExitStack() as stack:
            with self.database.read() as session:
                found = candidates(session, wanted.url, wanted.digits, sent=asking.sent)
                best = found[0]
                digits = timestamp(best.captured_at)
                is_navigated = wanted.modifier in (Modifier.PAGE, Modifier.MAIN) and not wanted.site_pass
                if digits != wanted.digits and is_navigated and not asking.sent:
                    target = asking.place.prefix + replay_path(digits, wanted.modifier, best.url)
                    return redirect(302, target, [])
                snapshot, stored = self._open_first(session, stack, [one.id for one in found[:_TRIED]])
                has_neighbours = wanted.modifier.is_page and not asking.sent
                around = _around(session, snapshot) if has_neighbours else None
            view = _View(self, snapshot, stored, wanted, asking, around)
            return view.answer(stack)

    def raw(self, snapshot_id: int, asking: ReplayRequest) -> ReplayAnswer:
        """Return a snapshot with the bar of the raw view; NotFound if snapshot, file or record is missing.

        A browser that comes to the application's host is sent to the replay host. For a program the answer is given
        there, too, under a policy that lets nothing in it run.
        """
        with ExitStack() as stack:
            with self.database.read() as session:
                snapshot, stored = self._open_first(session, stack, [snapshot_id], allow_lost=True)
                document = document_of(session, snapshot)
                title = document.title if document is not None else None
            if asking.mode == "navigate" and not asking.place.is_replay:
                return redirect(307, f"{asking.place.origin}/api/snapshots/raw/{snapshot.id}", [])
            wanted = WantedAddress(timestamp(snapshot.captured_at), Modifier.PAGE, snapshot.url)
            view = _View(self, snapshot, stored, wanted, asking, None)
            return view.raw(stack, title)

    def _open_first(
        self, session: Session, stack: ExitStack, ids: list[int], *, allow_lost: bool = False
    ) -> tuple[Snapshot, StoredRecord]:
        """Return the first of these captures that can be read; `allow_lost` takes a revisit without its original."""
        lost: CaptureLost | None = None
        for snapshot_id in ids:
            snapshot = visible_snapshot(session, snapshot_id)
            try:
                stored = stack.enter_context(open_stored(session, self.home, snapshot))
                if is_lost(snapshot.record_type, snapshot.original_id, snapshot.status) and not allow_lost:
                    raise NotFound("it refers to an earlier capture, which is not here")
                if stored.status == 304:
                    raise NotFound("its original is not here")
            except (NotFound, DamagedWarc) as exc:
                lost = CaptureLost(snapshot.url, str(exc))
                continue
            return snapshot, stored
        assert lost is not None
        raise lost


def _around(session: Session, snapshot: Snapshot) -> CaptureNeighbours:
    return neighbours(session, snapshot.url_key, snapshot.captured_at, snapshot.id)


@dataclass(slots=True)
class _View:
    """One capture on its way out."""

    replay: Replay
    snapshot: Snapshot
    stored: StoredRecord
    wanted: WantedAddress
    """Its digits are those of the request: what a page loads is looked for near the page, not near itself."""
    asking: ReplayRequest
    around: CaptureNeighbours | None

    @property
    def place(self) -> ReplayOrigins:
        return self.asking.place

    @property
    def modifier(self) -> Modifier:
        return self.wanted.modifier

    def answer(self, stack: ExitStack) -> ReplayAnswer:
        status = self.stored.status or 200
        if (asked_to_save := self._download_page(status)) is not None:
            return asked_to_save
        links = self._links()
        wants_bar = self.modifier is Modifier.PAGE and not 300 <= status < 400 and not self.asking.is_framed
        bar = replay_bar(self._shown(None), self.around, self.place) if wants_bar else None
        tag = self._tag(bar)
        if status == 200:
            for known, nojs in ((tag, False), (f"{tag}-n", True)):
                if f'"{known}"' in self.asking.if_none_match:
                    return ReplayAnswer(status=304, headers=[*self._guards(nojs=nojs), ("ETag", f'"{known}"')])
        body = self._body(links, bar)
        headers = self._headers(links, body)
        if status == 200:
            headers.append(("ETag", f'"{tag}-n"' if body.nojs else f'"{tag}"'))
        status = _UNSENDABLE.get(status, status if 200 <= status <= 599 else 200)
        if status in _BODILESS:
            return ReplayAnswer(status=status, headers=headers)
        content = _held(body.content, stack)
        if status == 200 and body.coding is None:
            is_stale = bool(self.asking.if_range) and ("ETag", self.asking.if_range) not in headers
            return ranged(content, self._size(content), headers, "" if is_stale else self.asking.byte_range)
        return ReplayAnswer(status=status, headers=headers, body=content)

    def _links(self) -> Links:
        return Links(
            self.snapshot.url,
            digits=self.wanted.digits,
            modifier=self.modifier,
            prefix=self.place.prefix,
            site_pass=self.replay.passes.of(self.snapshot.url) if self._runs_scripts else "",
        )

    @property
    def _runs_scripts(self) -> bool:
        """Whether archived scripts run in this answer: never on the application's host, whose API would be theirs."""
        return self.replay.scripts and self.place.is_replay

    def _tag(self, bar: Bar | None) -> str:
        """Return what names this answer to a cache: the capture, and all that we put around it."""
        around = repr([one and (one.id, one.captured_at, one.url) for one in self.around or ()])
        ours = (bar.html if bar else "", around, replay_policy(nojs=not self._runs_scripts), self.wanted.site_pass)
        digest = sha256("\0".join(ours).encode("utf-8", "replace")).hexdigest()[:16]
        return f"{self.snapshot.id}-{REWRITER_VERSION}-{self.modifier}{self.wanted.digits}-{digest}"

    def _size(self, content: bytes | Iterator[bytes]) -> int | None:
        """Return how long a body is: counted, or for one that streams as its server said."""
        if isinstance(content, bytes):
            return len(content)
        if isinstance(content, HeldBody):
            return content.size
        return stated_length(self.stored) if self.snapshot.truncated is None else None

    def _download_page(self, status: int) -> ReplayAnswer | None:
        """Return the page that offers a file, to a reader whom a page led here; None for all else.

        A sandbox downloads nothing, for its scripts could start that by themselves; from a page of ours the reader may.
        """
        asking, head = self.asking, self.stored.head
        if status != 200 or self.modifier is not Modifier.PAGE or not asking.is_led or asking.destination != "document":
            return None
        disposition = (head.get("content-disposition") or "") if head is not None else ""
        is_file = disposition.strip().lower().startswith("attachment")
        media_type = self.stored.media_type or "text/html"
        if not is_file and (_SHOWN.match(media_type) or "html" in media_type):
            return None
        digits = timestamp(self.snapshot.captured_at)
        address = self.place.prefix + replay_path(digits, Modifier.RAW, self.snapshot.url)
        url = escape(self.snapshot.url)
        text = (
            f'<h1>A file</h1>\n<p class="url">{url}</p>\n<p>It is of the type {escape(media_type[:80])}, captured on '
            f"{day_in_words(self.snapshot.captured_at)}.</p>\n"
            f'<p><a href="{escape(address)}" download>Download it</a></p>'
        )
        extra = memento_headers(self.snapshot.url, self.snapshot.captured_at, self.place, self.around)
        return own_page(page("A file of this archive", text), 200, [*extra, ("Vary", _VARY)])

    def raw(self, stack: ExitStack, title: str | None) -> ReplayAnswer:
        """Return the view of one snapshot: 200 whatever its own status was, which stands in a header."""
        links = self._links()
        bar = raw_bar(self._shown(title), self.place)
        body = self._body(links, bar)
        headers = [pair for pair in self._headers(links, body) if pair[0] not in ("Location", "Refresh")]
        heading = escape(title or self.snapshot.url)
        lost = is_lost(self.snapshot.record_type, self.snapshot.original_id, self.snapshot.status)
        if lost or body.content in (b"", bar.html.encode()):
            reason = "It refers to an earlier capture, which is not here." if lost else ""
            message = (
                f"<p>This capture has no body. Its status was {self.stored.status or 'not recorded'}. {reason}</p>"
            )
            return _page(headers, f"<!doctype html><title>{heading}</title><body>{bar.html}{message}")
        if _MARKED_UP.match(body.content_type):
            return _page(headers, framed(heading, bar, self._framed_at()))
        return ReplayAnswer(status=200, headers=headers, body=_held(body.content, stack))

    def _framed_at(self) -> str:
        """Return where this capture is without a bar, on the replay host."""
        return self.place.memento(timestamp(self.snapshot.captured_at), Modifier.FRAMESET, self.snapshot.url)

    def _body(self, links: Links, bar: Bar | None) -> ReplayBody:
        replay, url = self.replay, self.snapshot.url
        shim = shim_for(url, links, self.place.origin, site_of(url)) if self._runs_scripts else ""
        additions = Additions(bar=bar, shim=shim, framed_at=self._framed_at())
        rules = Rules(self.modifier, links, additions, self.asking.accepts_gzip, replay.clock, replay.rewrite_s)
        try:
            return body_of(self.stored, rules)
        except DamagedWarc as exc:
            raise CaptureLost(url, str(exc)) from exc

    def _guards(self, *, nojs: bool, content_type: str = "") -> Headers:
        """Return what is on every answer: the sandbox, what makes it a memento, and whether scripts may read it."""
        snapshot, place = self.snapshot, self.place
        source = "'self'" if place.is_replay else place.origin
        # Only the bar of the raw view leads to the application.
        is_raw_view = self.around is None and self.modifier is Modifier.PAGE and not self.asking.sent
        reachable = [origin for origin in (place.origin, place.app if is_raw_view else None) if origin != place.here]
        is_readable = self.replay.passes.admits(self.wanted.site_pass, snapshot.url)
        return [
            ("Content-Security-Policy", replay_policy(source, nojs=nojs or not self._runs_scripts)),
            ("Connection-Allowlist", connections(*filter(None, reachable))),
            ("Cache-Control", "no-cache"),
            ("Vary", _VARY),
            *GUARDS,
            *([READABLE] if is_readable or is_code(content_type, self.asking.destination) else []),
            *memento_headers(snapshot.url, snapshot.captured_at, self.place, self.around),
        ]

    def _headers(self, links: Links, body: ReplayBody) -> Headers:
        snapshot = self.snapshot
        digits = timestamp(snapshot.captured_at)
        headers: Headers = [
            ("Content-Type", body.content_type),
            *self._guards(nojs=body.nojs, content_type=body.content_type),
            *replayed_headers(self.stored.head, links, readable=bool(self.wanted.site_pass)),
            ("Content-Location", self.place.prefix + replay_path(digits, self.modifier, snapshot.url)),
            (f"{ORIGINAL_PREFIX}Status", str(self.stored.status or "unknown")),
        ]
        if body.coding is not None:
            headers.append(("Content-Encoding", body.coding))
        if body.note:
            headers.append((NOTE, body.note))
        return headers

    def _shown(self, title: str | None) -> ShownCapture:
        return ShownCapture(self.snapshot.url, self.snapshot.captured_at, self.snapshot.id, title)


def _page(headers: Headers, text: str) -> ReplayAnswer:
    """Return a page of ours about a capture, with the headers of the capture itself."""
    kept = [pair for pair in headers if pair[0] not in ("Content-Type", "Content-Encoding", "Content-Disposition")]
    return ReplayAnswer(status=200, headers=[*kept, ("Content-Type", "text/html; charset=utf-8")], body=text.encode())


def _held(content: bytes | Iterator[bytes], stack: ExitStack) -> bytes | Iterator[bytes]:
    """Return the body; one that streams keeps its files open until it ends.

    One that is held is read already, and keeps its size: what its server said is not the size of a rewritten page.
    """
    if isinstance(content, bytes | HeldBody):
        return content
    return _streamed(content, stack.pop_all())


def _streamed(content: Iterator[bytes], stack: ExitStack) -> Iterator[bytes]:
    with stack:
        yield from content
