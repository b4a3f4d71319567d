"""From an address and a moment to the answer a browser gets: found, opened, rewritten, and never with any authority."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.orm import Session

from holdfast.clock import Clock
from holdfast.db.engine import Database
from holdfast.db.models import Snapshot
from holdfast.errors import NotFound
from holdfast.index.queries import document_of
from holdfast.index.records import Stored, open_stored
from holdfast.replay.address import Modifier, Wanted, replay_path
from holdfast.replay.answer import Answer, Asking, Headers, redirect
from holdfast.replay.bar import Shown, raw_bar, replay_bar
from holdfast.replay.body import Body, Rules, body_of
from holdfast.replay.finding import candidates
from holdfast.replay.headers import ORIGINAL_PREFIX, replayed_headers
from holdfast.replay.links import Links
from holdfast.replay.markup import Bar
from holdfast.replay.memento import memento_headers
from holdfast.replay.moments import timestamp
from holdfast.replay.place import Place
from holdfast.replay.policy import GUARDS, connections, replay_policy
from holdfast.replay.queries import Neighbours, neighbours, shown
from holdfast.replay.ranges import ranged
from holdfast.warc.reader import DamagedWarc

REWRITER_VERSION = 1
"""Raised with any change of what is sent for the same capture: browsers then ask again."""
_TRIED = 3
"""Captures that are opened before an answer is given up, if their records are damaged."""
_BODILESS = (204, 205, 304)
# A server that is no proxy may not ask for proxy credentials: browsers show an error of their own.
_UNSENDABLE = {407: 403}


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
    scripts: bool = True
    """Whether archived scripts may run, in their sandbox."""
    rewrite_s: float = 3.0

    def capture(self, wanted: Wanted, asking: Asking) -> Answer:
        """Return the capture nearest to what is wanted; NotCaptured or CaptureLost, which are both NotFound.

        A reader who navigates is sent to the exact moment (302); anything embedded, and raw bytes, are answered at once
        with Content-Location.
        """
        with ExitStack() as stack:
            with self.database.read() as session:
                found = candidates(session, wanted.url, wanted.digits)
                best = found[0]
                digits = timestamp(best.captured_at)
                if digits != wanted.digits and wanted.modifier in (Modifier.PAGE, Modifier.MAIN):
                    target = asking.place.prefix + replay_path(digits, wanted.modifier, best.url)
                    return redirect(302, target, [])
                snapshot, stored = self._open_first(session, stack, [one.id for one in found[:_TRIED]])
                around = _around(session, snapshot) if wanted.modifier.is_page else None
            view = _View(self, snapshot, stored, wanted.modifier, wanted.digits, asking, around)
            return view.answer(stack)

    def raw(self, snapshot_id: int, asking: Asking) -> Answer:
        """Return a snapshot with the bar of the raw view (HA-057); NotFound if snapshot, file or record is missing."""
        with ExitStack() as stack:
            with self.database.read() as session:
                snapshot, stored = self._open_first(session, stack, [snapshot_id])
                document = document_of(session, snapshot)
                title = document.title if document is not None else None
            digits = timestamp(snapshot.captured_at)
            view = _View(self, snapshot, stored, Modifier.PAGE, digits, asking, None)
            return view.raw(stack, title)

    def _open_first(self, session: Session, stack: ExitStack, ids: list[int]) -> tuple[Snapshot, Stored]:
        lost: CaptureLost | None = None
        for snapshot_id in ids:
            snapshot = shown(session, snapshot_id)
            try:
                stored = stack.enter_context(open_stored(session, self.home, snapshot))
                if stored.status == 304:
                    raise NotFound("its original is not here")
            except (NotFound, DamagedWarc) as exc:
                lost = CaptureLost(snapshot.url, str(exc))
                continue
            return snapshot, stored
        assert lost is not None
        raise lost


def _around(session: Session, snapshot: Snapshot) -> Neighbours:
    return neighbours(session, snapshot.url_key, snapshot.captured_at, snapshot.id)


@dataclass(slots=True)
class _View:
    """One capture on its way out."""

    replay: Replay
    snapshot: Snapshot
    stored: Stored
    modifier: Modifier
    digits: str
    """Of the request: what a page loads is looked for near the page, not near itself."""
    asking: Asking
    around: Neighbours | None

    @property
    def place(self) -> Place:
        return self.asking.place

    def answer(self, stack: ExitStack) -> Answer:
        status = self.stored.status or 200
        links = Links(self.snapshot.url, digits=self.digits, modifier=self.modifier, prefix=self.place.prefix)
        tag = f'"{self.snapshot.id}-{REWRITER_VERSION}-{self.modifier}{self.digits}"'
        if status == 200 and tag in self.asking.if_none_match:
            return Answer(status=304, headers=[*self._guards(nojs=False), ("ETag", tag)])
        wants_bar = self.modifier is Modifier.PAGE and not 300 <= status < 400
        bar = replay_bar(self._shown(None), self.around, self.place) if wants_bar else None
        body = self._body(links, bar)
        headers = self._headers(links, body)
        if status == 200:
            headers.append(("ETag", tag))
        status = _UNSENDABLE.get(status, status if 200 <= status <= 599 else 200)
        if status in _BODILESS:
            return Answer(status=status, headers=headers)
        content = _held(body.content, stack)
        if status == 200 and body.coding is None:
            return ranged(content, self._size(content), headers, self.asking.byte_range)
        return Answer(status=status, headers=headers, body=content)

    def _size(self, content: bytes | Iterator[bytes]) -> int | None:
        """Return how long a body is: counted, or for one that streams as its server said."""
        if isinstance(content, bytes):
            return len(content)
        declared = (self.stored.body_head.get("content-length") or "") if self.stored.body_head is not None else ""
        is_whole = self.snapshot.truncated is None and declared.isascii() and declared.isdigit()
        return int(declared[:18]) if is_whole else None

    def raw(self, stack: ExitStack, title: str | None) -> Answer:
        """Return the view of one snapshot: 200 whatever its own status was, which stands in a header."""
        links = Links(self.snapshot.url, digits=self.digits, prefix=self.place.prefix)
        bar = raw_bar(self._shown(title), self.place)
        body = self._body(links, bar)
        headers = [pair for pair in self._headers(links, body) if pair[0] not in ("Location", "Refresh")]
        if body.content in (b"", bar.html.encode()):
            message = f"<p>This capture has no body. Its status was {self.stored.status or 'not recorded'}.</p>"
            page = f"<!doctype html><title>Archived capture</title><body>{bar.html}{message}".encode()
            kept = [pair for pair in headers if pair[0] not in ("Content-Type", "Content-Encoding")]
            return Answer(status=200, headers=[*kept, ("Content-Type", "text/html; charset=utf-8")], body=page)
        return Answer(status=200, headers=headers, body=_held(body.content, stack))

    def _body(self, links: Links, bar: Bar | None) -> Body:
        replay = self.replay
        rules = Rules(self.modifier, links, bar, self.asking.accepts_gzip, replay.clock, replay.rewrite_s)
        try:
            return body_of(self.stored, rules)
        except DamagedWarc as exc:
            raise CaptureLost(self.snapshot.url, str(exc)) from exc

    def _guards(self, *, nojs: bool) -> Headers:
        """Return what is on every answer: the sandbox, and what makes it a memento."""
        snapshot = self.snapshot
        place = self.place
        origins = () if place.is_replay else (place.origin,)
        reachable = [origin for origin in (place.origin, place.app) if origin not in (None, place.here)]
        return [
            ("Content-Security-Policy", replay_policy(origins, nojs=nojs or not self.replay.scripts)),
            ("Connection-Allowlist", connections(*filter(None, reachable))),
            ("Cache-Control", "no-cache"),
            ("Vary", "accept-encoding"),
            *GUARDS,
            *memento_headers(snapshot.url, snapshot.captured_at, self.place, self.around),
        ]

    def _headers(self, links: Links, body: Body) -> Headers:
        snapshot = self.snapshot
        digits = timestamp(snapshot.captured_at)
        headers: Headers = [
            ("Content-Type", body.content_type),
            *self._guards(nojs=body.nojs),
            *replayed_headers(self.stored.head, links),
            ("Content-Location", self.place.prefix + replay_path(digits, self.modifier, snapshot.url)),
            (f"{ORIGINAL_PREFIX}Status", str(self.stored.status or "unknown")),
        ]
        if body.coding is not None:
            headers.append(("Content-Encoding", body.coding))
        return headers

    def _shown(self, title: str | None) -> Shown:
        return Shown(self.snapshot.url, self.snapshot.captured_at, self.snapshot.id, title)


def _held(content: bytes | Iterator[bytes], stack: ExitStack) -> bytes | Iterator[bytes]:
    """Return the body; one that streams keeps its files open until it ends."""
    if isinstance(content, bytes):
        return content
    return _streamed(content, stack.pop_all())


def _streamed(content: Iterator[bytes], stack: ExitStack) -> Iterator[bytes]:
    with stack:
        yield from content
