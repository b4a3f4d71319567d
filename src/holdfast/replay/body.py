"""The body of a replayed capture: rewritten in its own charset, decoded, or passed on as stored.

Decompression bombs stop at the decoder's limits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator
from itertools import chain
from threading import Condition, Lock, RLock
from typing import NamedTuple

from cachetools import TTLCache

from holdfast.clock import Clock
from holdfast.errors import Unavailable
from holdfast.gzip_streams import GZIP_MAGIC
from holdfast.index.queries import StoredRecord
from holdfast.parse.charset import BodyForm, decode, decode_text, looks_like_html, sniff
from holdfast.parse.page import looks_pathological
from holdfast.parse.text import tree_of
from holdfast.replay.address import Modifier
from holdfast.replay.css import rewrite_css
from holdfast.replay.headers import clean
from holdfast.replay.links import RETIRED_PREFIX, Deadline, Links, TooSlow, is_elsewhere
from holdfast.replay.markup import Markup, refresh_target
from holdfast.replay.pages import framed

# In these charsets a markup byte may be part of another character: decode them and serve UTF-8.
_WIDE = frozenset({"utf-16le", "utf-16be", "iso-2022-jp", "us-ascii"})


class _View(NamedTuple):
    """A body as text to edit: its characters, or one per byte for charsets in which markup is unambiguous."""

    text: str
    charset: str
    is_bytes: bool

    def real(self, piece: str) -> str:
        return decode_text(piece.encode("latin-1"), self.charset)[0] if self.is_bytes else piece

    def packed(self, text: str) -> tuple[bytes, str]:
        """Return a body to serve, and the charset to announce with it."""
        return (text.encode("latin-1"), self.charset) if self.is_bytes else (text.encode("utf-8", "replace"), "utf-8")


def _view(body: bytes, declared: str | None) -> _View:
    content, charset, _ = decode(body, declared)
    if charset in _WIDE:
        # `us-ascii` also replaces encodings that browsers reject.
        return _View(content if isinstance(content, str) else content.decode("utf-8", "replace"), charset, False)
    # Decode one character per byte, so that unchanged text is copied exactly, whatever its charset.
    return _View(body.decode("latin-1"), charset, True)


class Additions(NamedTuple):
    bar: str = ""
    shim: str = ""
    is_xml: bool = False
    """Whether browsers parse it as XML, where no tag may be omitted."""
    framed_at: str = ""
    """Address of the page without the bar: a frameset is shown below the bar in a separate frame."""


NOTHING = Additions()


def rewrite_page(
    body: bytes, declared: str | None, links: Links, deadline: Deadline, add: Additions = NOTHING
) -> tuple[bytes, str]:
    """Return a page with its references rewritten to the archive, and its charset; raise TooSlow.

    `declared` is the charset in its header.
    """
    view = _view(body, declared)
    markup = Markup(links, deadline, decode=view.real, is_xml=add.is_xml, shim=add.shim)
    text = markup.rewrite(view.text, add.bar)
    if markup.has_frames and add.bar and add.framed_at:
        text = framed(markup.title, add.bar, add.framed_at)
    # Do this last, on the finished text: a refresh needs no script, so the sandbox of browsers without an allow-list
    # does not stop it.
    elif _may_refresh(text) and _refreshes_elsewhere(text, links):
        text = _without_refresh(text)
    return view.packed(text)


_MAX_PARSED = 1024 * 1024
_EQUIV = re.compile(r"http-equiv", re.IGNORECASE)
_REFRESHES = re.compile(r"refresh", re.IGNORECASE)


def _may_refresh(text: str) -> bool:
    return _EQUIV.search(text) is not None and _REFRESHES.search(text) is not None


def _refreshes_elsewhere(text: str, links: Links) -> bool:
    """Return whether a browser would find a refresh in this page that leads out of the archive.

    The rewriter works on tags, and a hostile page may nest drawings, raw text and tables so that a browser sees a
    tag where the rewriter saw none. A full parser sees what a browser sees; a page that is dangerous to parse
    counts as yes.
    """
    # Parsing a large or hostile page takes seconds and memory; without its refreshes the page is still shown.
    if len(text) > _MAX_PARSED or looks_pathological(text.encode("latin-1", "replace")) is not None:
        return True
    for meta in tree_of(text).css("meta[http-equiv]"):
        if (meta.attributes.get("http-equiv") or "").strip().lower() == "refresh":
            target = refresh_target(meta.attributes.get("content") or "")
            is_inside = target.startswith((f"{links.prefix}/web/", "#")) or is_elsewhere(target)
            if target and not is_inside:
                return True
    return False


def _without_refresh(text: str) -> str:
    return _EQUIV.sub(f"{RETIRED_PREFIX}http-equiv", text)


def unrewritten_page(body: bytes, declared: str | None) -> tuple[bytes, str]:
    """Return a page that could not be rewritten, without its refreshes: they leave the archive without scripts."""
    view = _view(body, declared)
    return view.packed(_without_refresh(view.text) if _may_refresh(view.text) else view.text)


def rewrite_sheet(body: bytes, declared: str | None, links: Links, deadline: Deadline) -> tuple[bytes, str]:
    """Rewrite a style sheet's references to the archive. Raise TooSlow."""
    view = _view(body, declared)

    def resolve(reference: str, modifier: str) -> str | None:
        return links.to(reference if reference.isascii() else view.real(reference), modifier)

    return view.packed(rewrite_css(view.text, resolve, deadline))


_PIECE_BYTES = 256 * 1024


class ReplayBusy(Unavailable):
    """Too many large captures are being decoded simultaneously."""

    code = "replay_busy"

    def __init__(self) -> None:
        super().__init__("several large captures are being decoded; try again in a moment")


class MemoryBudget:
    """A limit on bytes in use; a request for more than is free waits `wait_s` seconds, and then fails."""

    def __init__(self, total: int, *, wait_s: float = 2.0) -> None:
        self._left = self.total = total
        self._wait_s = wait_s
        # Reentrant: garbage collection may release a share at any time, inside `take` as well.
        self._freed = Condition(RLock())

    def take(self, size: int) -> Share:
        """Return a share of this size, at most the whole; raise ReplayBusy if less is free."""
        share = Share(self)
        share.grow(size)
        return share

    @property
    def left(self) -> int:
        return self._left

    def _take(self, size: int) -> None:
        with self._freed:
            if not self._freed.wait_for(lambda: self._left >= size, self._wait_s):
                raise ReplayBusy
            self._left -= size

    def _give_back(self, size: int) -> None:
        with self._freed:
            self._left += size
            self._freed.notify_all()


class Share:
    """Bytes of a budget in use until they are released, at the latest when this object is garbage-collected."""

    __slots__ = ("_budget", "_size")

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget, self._size = budget, 0

    def grow(self, size: int) -> None:
        """Reserve at least `size` bytes, or the whole budget; raise ReplayBusy if they do not become free."""
        # A request for more than the total would never be served.
        size = min(size, self._budget.total)
        if size > self._size:
            self._budget._take(size - self._size)
            self._size = size

    def shrink(self, size: int) -> None:
        """Release all but this many bytes."""
        if size < self._size:
            freed, self._size = self._size - size, size
            self._budget._give_back(freed)

    # A response abandoned before sending is never closed: only the end of its last reference releases it.
    def __del__(self) -> None:
        self.shrink(0)


class HeldBody:
    """A body in memory that is sent piece by piece, and releases its share when it is sent or abandoned."""

    __slots__ = ("_at", "_content", "_share", "size")

    def __init__(self, content: bytes, share: Share) -> None:
        share.shrink(len(content))
        self._content, self._share, self._at = content, share, 0
        self.size = len(content)

    @property
    def start(self) -> bytes:
        """The first bytes, for content sniffing."""
        return self._content[:512]

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        piece = self._content[self._at : self._at + _PIECE_BYTES]
        self._at += len(piece)
        if not piece:
            self.close()
            raise StopIteration
        return piece

    def close(self) -> None:
        self._content = b""
        self._share.shrink(0)


MAX_REWRITTEN = 16 * 1024 * 1024
"""Larger documents are not rewritten; none that people read is that large."""
# A body that needs decoding is truncated here; one stored plain is sent whole, in pieces.
_MAX_DECODED = 64 * 1024 * 1024
_WHOLE = 1024 * 1024
MEMORY = MemoryBudget(3 * _MAX_DECODED)
"""Limit for bodies in memory, over all requests: three of the largest, or a hundred pages."""
# A rewritten page exists as bytes, as text, in pieces and as bytes again.
_COPIES = 4
# Extra bytes after the stated length that are attributed to a writer; with more, the writer stored another form of the
# body than its header describes.
_MAX_EXCESS = 64
_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]{1,63}+/[a-z0-9!#$&^_.+*-]{1,63}", re.I)
_XHTML = frozenset({"application/xhtml+xml", "application/vnd.wap.xhtml+xml"})
_PAGES = frozenset({"text/html", *_XHTML})
_DRAWING = "image/svg+xml"
_SILENT = frozenset({"text/plain", "application/octet-stream", "text/html", ""})
_SNIFFED = {BodyForm.HTML: "text/html", BodyForm.XML: "text/xml", BodyForm.CSS: "text/css", BodyForm.TEXT: "text/plain"}
_MAGIC = (
    (b"%PDF-", "application/pdf"),
    (b"\x89PNG\r\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
)


class ReplayBody(NamedTuple):
    """A body to send, and the headers that describe it."""

    content: bytes | Iterator[bytes]
    content_type: str
    coding: str | None = None
    """The remaining content coding."""
    nojs: bool = False
    """Whether it could not be rewritten and must not run scripts."""
    note: str = ""
    """A visible problem of the record."""
    is_kept: bool = False
    """Whether rewriting was costly, so that the result is cached."""


class Rules(NamedTuple):
    modifier: Modifier
    links: Links
    additions: Additions
    accepts_gzip: bool
    clock: Clock
    seconds: float
    """Time limit for rewriting."""


def body_of(stored: StoredRecord, rules: Rules) -> ReplayBody:
    """Return the body to send; raise DamagedWarc if its first bytes are unreadable, ReplayBusy without free memory."""
    declared = (stored.media_type or "").lower()
    if not _TYPE.fullmatch(declared):
        declared = ""
    cut = _Cut(stored)
    stored.payload = iter(cut)
    if rules.modifier is not Modifier.RAW and _is_rewritten(declared, rules.modifier):
        body = _rewritten(stored, declared, rules)
    else:
        body = _passed_on(stored, declared, rules)
    return body._replace(note=f"{cut.dropped} bytes behind the stated length left out") if cut.dropped else body


class _Cut:
    # Some WARC writers add a line end or two behind a body, and browsers reject a font with a byte too many.

    def __init__(self, stored: StoredRecord) -> None:
        self._payload = stored.payload
        self._length = stated_length(stored)
        self.dropped = 0

    def __iter__(self) -> Iterator[bytes]:
        if not self._length:
            yield from self._payload
            return
        left, excess = self._length, b""
        for piece in self._payload:
            if left >= len(piece):
                left -= len(piece)
                yield piece
                continue
            if left:
                yield piece[:left]
            excess += piece[left:]
            left = 0
            if len(excess) > _MAX_EXCESS:
                yield excess
                yield from self._payload
                return
        self.dropped = len(excess)


def stated_length(stored: StoredRecord) -> int | None:
    """Return the server's Content-Length; None if it is missing or the transfer was chunked."""
    head = stored.body_head
    if head is None or head.get("transfer-encoding") is not None:
        return None
    # If two lengths differ, neither is reliable.
    declared = {value.strip() for value in head.get_all("content-length")}
    text = declared.pop() if len(declared) == 1 else ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def _is_rewritten(declared: str, modifier: Modifier) -> bool:
    if declared == "text/css" or (modifier is Modifier.STYLE and declared in _SILENT):
        return True
    if modifier in (Modifier.IMAGE, Modifier.SCRIPT, Modifier.STYLE):
        return False
    return declared in _PAGES or declared in ("", _DRAWING)


def _decoded(stored: StoredRecord, *, copies: int = 1) -> tuple[bytes, Share]:
    share = MEMORY.take(0)

    def reserve(size: int) -> None:
        # Only rewriting makes copies, and never of more than MAX_REWRITTEN bytes.
        share.grow(max(size, min(size, MAX_REWRITTEN) * copies))

    # Reserve as the body grows: reserving the maximum rejected pages while nearly all memory was free.
    content = stored.content(_MAX_DECODED, reserve)
    reserve(len(content))
    return content, share


def _held(content: bytes, share: Share) -> bytes | HeldBody:
    """Return a body for sending; a large one holds its share of the memory until it is sent."""
    if len(content) <= _WHOLE:
        return content
    return HeldBody(content, share)


def _rewritten(stored: StoredRecord, declared: str, rules: Rules) -> ReplayBody:
    content, share = _decoded(stored, copies=_COPIES)
    charset = stored.head.charset if stored.head is not None else None
    is_sheet = declared == "text/css" or rules.modifier is Modifier.STYLE
    # Without a type it may be anything, and rewriting an image as HTML would destroy it.
    if not declared and not is_sheet and sniff(content[:512], None).form is not BodyForm.HTML:
        return ReplayBody(_held(content, share), _guess(content))
    media_type = "text/css" if is_sheet else declared or "text/html"
    if len(content) <= MAX_REWRITTEN:
        deadline = Deadline(rules.clock, rules.seconds)
        try:
            if is_sheet:
                new, used = rewrite_sheet(content, charset, rules.links, deadline)
            else:
                new, used = rewrite_page(content, charset, rules.links, deadline, _additions(content, declared, rules))
            return ReplayBody(_held(new, share), f"{media_type}; charset={used}", is_kept=True)
        except TooSlow:
            pass
    if is_sheet:
        return ReplayBody(_held(content, share), _full_type(stored, media_type), nojs=True, is_kept=True)
    # Send it unchanged, under a policy that forbids its scripts: nothing of ours would contain what they load.
    new, used = unrewritten_page(content, charset)
    return ReplayBody(_held(new, share), f"{media_type}; charset={used}", nojs=True, is_kept=True)


_KEPT_BYTES, _KEPT_S = 16 * 1024 * 1024, 5.0


def _size_of(body: ReplayBody) -> int:
    assert isinstance(body.content, bytes)
    return len(body.content) + _KEPT_BYTES // 1024


class RewrittenPages:
    """Recently sent pages, at most 16 MiB, shared by all requests for the same capture.

    The keys contain the capture and everything around it that the reader is shown. Access is checked before, each
    time.
    """

    def __init__(self, clock: Clock) -> None:
        self._kept: TTLCache[Hashable, ReplayBody] = TTLCache(_KEPT_BYTES, _KEPT_S, clock.monotonic, _size_of)
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], ReplayBody]) -> ReplayBody:
        with self._lock:
            found = self._kept.get(key)
        if found is not None:
            return found
        made = make()
        # Larger ones stream, and hold their memory until they are sent.
        if made.is_kept and isinstance(made.content, bytes):
            with self._lock:
                self._kept[key] = made
        return made


def _additions(content: bytes, declared: str, rules: Rules) -> Additions:
    """Return the additions for this page; none for drawings and for content that is not a page despite its type."""
    if declared in _PAGES or looks_like_html(content):
        return rules.additions._replace(is_xml=declared in _XHTML)
    return Additions(is_xml=declared == _DRAWING)


def _passed_on(stored: StoredRecord, declared: str, rules: Rules) -> ReplayBody:
    """Return a body that must not be changed: as stored if the client accepts that, decoded otherwise."""
    codings = _codings(stored)
    first = _first(stored.payload)
    # The header may be wrong, and only gzip data may be announced as gzip.
    if codings == ["gzip"] and first.startswith(GZIP_MAGIC) and rules.accepts_gzip:
        content: bytes | Iterator[bytes] = _small_or_stream(first, stored.payload)
        return ReplayBody(content, _type_of(stored, declared, b"", rules.modifier), coding="gzip")
    stored.payload = chain((first,), stored.payload)
    if codings:
        decoded, share = _decoded(stored)
        return ReplayBody(_held(decoded, share), _type_of(stored, declared, decoded[:512], rules.modifier))
    start = _first(stored.payload)
    return ReplayBody(_small_or_stream(start, stored.payload), _type_of(stored, declared, start[:512], rules.modifier))


def _codings(stored: StoredRecord) -> list[str]:
    values = stored.body_head.get_all("content-encoding") if stored.body_head is not None else ()
    found = [part.strip().lower() for value in values for part in value.split(",")]
    return [coding for coding in found if coding not in ("", "identity")]


def _first(payload: Iterator[bytes]) -> bytes:
    for piece in payload:
        if piece:
            return piece
    return b""


def _small_or_stream(first: bytes, rest: Iterator[bytes]) -> bytes | Iterator[bytes]:
    """Return a small body in one piece, so that its length is known; a large one piece by piece."""
    held, size = [first], len(first)
    for piece in rest:
        held.append(piece)
        size += len(piece)
        if size > _WHOLE:
            return chain(held, rest)
    return b"".join(held)


def _type_of(stored: StoredRecord, declared: str, start: bytes, modifier: Modifier) -> str:
    """Return the type to send: always one, because nosniff forbids browsers to guess."""
    # With nosniff, which every response has, browsers run scripts only if their type is that of a script.
    if modifier is Modifier.SCRIPT and declared in ("", "text/plain", "application/octet-stream"):
        return "text/javascript"
    return _full_type(stored, declared) if declared else _guess(start)


def _full_type(stored: StoredRecord, media_type: str) -> str:
    sent = clean(stored.head.get("content-type") or "") if stored.head is not None else ""
    # Keep parameters (charset, boundary), but only with the type that we chose to send.
    return sent if sent.lower().startswith(media_type) and len(sent) < 256 else media_type


def _guess(start: bytes) -> str:
    for magic, media_type in _MAGIC:
        if start.startswith(magic):
            return media_type
    return _SNIFFED.get(sniff(start[:512], None).form, "application/octet-stream")
