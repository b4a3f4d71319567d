"""The body of a replayed capture: rewritten, decoded, or passed on as stored. Bombs stop at the decoder's caps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from threading import RLock
from typing import NamedTuple

from holdfast.clock import Clock
from holdfast.errors import Unavailable
from holdfast.index.queries import StoredRecord
from holdfast.parse.charset import BodyForm, looks_like_html, sniff
from holdfast.replay.address import Modifier
from holdfast.replay.documents import Additions, rewrite_page, rewrite_sheet, unrewritten_page
from holdfast.replay.headers import clean
from holdfast.replay.links import Deadline, Links, TooSlow

_PIECE_BYTES = 256 * 1024


class ReplayBusy(Unavailable):
    """Too many large captures are being decoded at once."""

    code = "replay_busy"

    def __init__(self) -> None:
        super().__init__("several large captures are being decoded; try again in a moment")


class MemoryBudget:
    """Bytes that may be in use; what wants more than is left is refused at once.

    Requests share their threads: one that waited here for a slow reader would keep all others waiting.
    """

    def __init__(self, total: int) -> None:
        self._left = self.total = total
        self._lock = RLock()

    def take(self, size: int) -> Share:
        """Return a share of this size, at most the whole; ReplayBusy if less is free."""
        size = min(size, self.total)
        with self._lock:
            if self._left < size:
                raise ReplayBusy
            self._left -= size
        return Share(self, size)

    @property
    def left(self) -> int:
        """How many bytes are free."""
        return self._left

    def _give_back(self, size: int) -> None:
        with self._lock:  # reentrant: a share may be forgotten, and given back, wherever memory is collected
            self._left += size


class Share:
    """Bytes of a budget that are in use until they are given back, at the latest when this is forgotten."""

    __slots__ = ("_budget", "_size")

    def __init__(self, budget: MemoryBudget, size: int) -> None:
        self._budget, self._size = budget, size

    def shrink(self, size: int) -> None:
        """Keep no more than this."""
        if size < self._size:
            freed, self._size = self._size - size, size
            self._budget._give_back(freed)

    def __del__(self) -> None:
        self.shrink(0)


class HeldBody:
    """A body in memory that is sent piece by piece, and gives its share back when it is sent or given up."""

    __slots__ = ("_at", "_content", "_share", "size")

    def __init__(self, content: bytes, share: Share) -> None:
        share.shrink(len(content))
        self._content, self._share, self._at = content, share, 0
        self.size = len(content)

    @property
    def start(self) -> bytes:
        """The first bytes, to judge by."""
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
        """Give the share back."""
        self._content = b""
        self._share.shrink(0)


MAX_REWRITTEN = 16 * 1024 * 1024
"""Larger documents are not rewritten; none that people read is that large."""
_MAX_DECODED = 64 * 1024 * 1024
"""Where a body that has to be decoded is cut; what is stored plain is sent whole, piece by piece."""
_WHOLE = 1024 * 1024
MEMORY = MemoryBudget(3 * _MAX_DECODED)
"""For bodies that are held whole, of all requests together: three of the largest, or a hundred pages."""
_RATIO = 200
"""What decoding makes of a byte at most (`DecodeCaps`)."""
_COPIES = 4
"""A page that is rewritten is there as bytes, as text, in pieces and as bytes again."""
_MAX_EXCESS = 64
"""Bytes behind the stated length that are taken for a writer's own; more of them, and the writer stored another form of
the body than its header speaks of."""
_GZIP = b"\x1f\x8b"
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
    """What is sent, and what is said about it."""

    content: bytes | Iterator[bytes]
    content_type: str
    coding: str | None = None
    """The content coding that is left on it."""
    nojs: bool = False
    """Whether it could not be rewritten and must not run scripts."""
    note: str = ""
    """What is wrong with the record, where that shows."""


class Rules(NamedTuple):
    """How one body is to be treated."""

    modifier: Modifier
    links: Links
    additions: Additions
    accepts_gzip: bool
    clock: Clock
    seconds: float
    """That rewriting may take."""


def body_of(stored: StoredRecord, rules: Rules) -> ReplayBody:
    """Return the body to send; DamagedWarc if its first bytes cannot be read, ReplayBusy if there is no memory."""
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
    """A payload that ends where its header says. Some writers add a line end or two, which a font does not bear."""

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
    """Return how long a body is as its server said; None if it did not, or said so of chunks."""
    head = stored.body_head
    if head is None or head.get("transfer-encoding") is not None:
        return None
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
    """Return a body without its content codings, and the memory that it takes."""
    limit = _MAX_DECODED
    if stored.record.type != "revisit":
        ratio = _RATIO if _codings(stored) else 1
        limit = min(limit, max(_WHOLE, stored.record.content_length * ratio))
    # Copies are made of what is rewritten, and that is never more than MAX_REWRITTEN.
    taken = max(limit, min(limit, MAX_REWRITTEN) * copies)
    share = MEMORY.take(taken)
    content = stored.content(_MAX_DECODED)
    share.shrink(min(taken, max(len(content), 1) * copies))
    return content, share


def _held(content: bytes, share: Share) -> bytes | HeldBody:
    """Return a body for sending; a large one keeps its share of the memory until it is sent."""
    if len(content) <= _WHOLE:
        return content
    return HeldBody(content, share)


def _rewritten(stored: StoredRecord, declared: str, rules: Rules) -> ReplayBody:
    content, share = _decoded(stored, copies=_COPIES)
    charset = stored.head.charset if stored.head is not None else None
    is_sheet = declared == "text/css" or rules.modifier is Modifier.STYLE
    if not declared and not is_sheet and sniff(content[:512], None).form is not BodyForm.HTML:
        return ReplayBody(_held(content, share), _guess(content))
    media_type = "text/css" if is_sheet else declared or "text/html"
    if len(content) <= MAX_REWRITTEN:
        deadline = Deadline(rules.clock, rules.seconds)
        try:
            if is_sheet:
                done = rewrite_sheet(content, charset, rules.links, deadline)
            else:
                done = rewrite_page(content, charset, rules.links, deadline, _additions(content, declared, rules))
            return ReplayBody(_held(done.body, share), f"{media_type}; charset={done.charset}")
        except TooSlow:
            pass
    if is_sheet:
        return ReplayBody(_held(content, share), _full_type(stored, media_type), nojs=True)
    done = unrewritten_page(content, charset)
    return ReplayBody(_held(done.body, share), f"{media_type}; charset={done.charset}", nojs=True)


def _additions(content: bytes, declared: str, rules: Rules) -> Additions:
    """Return what this page gets: a drawing, or what is no page in spite of its type, gets nothing."""
    if declared in _PAGES or looks_like_html(content):
        return rules.additions._replace(is_xml=declared in _XHTML)
    return Additions(is_xml=declared == _DRAWING)


def _passed_on(stored: StoredRecord, declared: str, rules: Rules) -> ReplayBody:
    """Return a body whose bytes are not ours to change: as stored where the client can take that, decoded otherwise."""
    codings = _codings(stored)
    first = _first(stored.payload)
    if codings == ["gzip"] and first.startswith(_GZIP) and rules.accepts_gzip:
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
    """Return the type to send: always one, because browsers are told not to guess."""
    if modifier is Modifier.SCRIPT and declared in ("", "text/plain", "application/octet-stream"):
        return "text/javascript"
    return _full_type(stored, declared) if declared else _guess(start)


def _full_type(stored: StoredRecord, media_type: str) -> str:
    """Return the declared type with its parameters, as it was sent."""
    sent = clean(stored.head.get("content-type") or "") if stored.head is not None else ""
    return sent if sent.lower().startswith(media_type) and len(sent) < 256 else media_type


def _guess(start: bytes) -> str:
    for magic, media_type in _MAGIC:
        if start.startswith(magic):
            return media_type
    return _SNIFFED.get(sniff(start[:512], None).form, "application/octet-stream")
