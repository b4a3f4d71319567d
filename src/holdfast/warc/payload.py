"""From the bytes of an HTTP message to its content: head, transfer coding, content codings. Used wherever bytes are
inflated (crawl, index, replay, import), on input that nobody vouches for: it never raises, never grows past its caps.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import field
from io import BytesIO
from itertools import chain
from typing import NamedTuple

from holdfast.types import Body
from holdfast.values import dataclass
from holdfast.warc.codings import undo
from holdfast.warc.framing import Dechunked, dechunk
from holdfast.warc.problem import PayloadProblem

__all__ = [
    "Dechunked",
    "DecodeCaps",
    "Decoded",
    "HttpHead",
    "PayloadProblem",
    "dechunk",
    "decode",
    "parse_head",
    "payload_chunks",
    "split_head",
]

_MAX_HEADERS = 10_000
_MAX_LINES = 20_000
"""Lines of a head that are looked at, folded ones included."""

_EMPTY_LINE = re.compile(rb"\n\r?\n")
_STATUS_LINE = re.compile(r"HTTP/[0-9.]{1,8}[ \t]+([0-9]{3})(?:[ \t]+(.*))?")
_CHARSET = re.compile(r";[ \t]*charset[ \t]*=[ \t]*(?:\"([^\"]*)\"|'([^']*)'|([^;, \t]*))", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class HttpHead:
    """A response's status line and headers, latin-1 decoded, in the order in which they came."""

    status: int
    """0 where there is no status line."""
    reason: str
    headers: tuple[tuple[str, str], ...]
    _values: dict[str, list[str]] = field(init=False, repr=False, compare=False, default_factory=dict)
    """By name in lower case: a page's head is asked nine times, and lowering all names each time took 15 us."""

    def __post_init__(self) -> None:
        for name, value in self.headers:
            self._values.setdefault(name.lower(), []).append(value)

    def get(self, name: str) -> str | None:
        """Return the first value of this header, whatever its case; None if it is not there."""
        values = self._values.get(name.lower())
        return values[0] if values else None

    def get_all(self, name: str) -> tuple[str, ...]:
        """Return every value of this header in order."""
        return tuple(self._values.get(name.lower(), ()))

    @property
    def media_type(self) -> str | None:
        """The declared type without its parameters, lower case; None if none is declared."""
        declared = self.get("content-type")
        return (declared.partition(";")[0].partition(",")[0].strip().lower() or None) if declared else None

    @property
    def charset(self) -> str | None:
        """The declared charset as it was spelt; None if none is declared."""
        match = _CHARSET.search(self.get("content-type") or "")
        return (next((found for found in match.groups() if found), "").strip() or None) if match else None

    @property
    def is_chunked(self) -> bool:
        """Whether the body is framed in chunks (RFC 9112, section 6.1: the last transfer coding)."""
        codings = ",".join(self.get_all("transfer-encoding"))
        return codings.rpartition(",")[2].strip().lower() == "chunked"


def split_head(block: bytes) -> tuple[bytes, bytes]:
    """Return the head of a message, closing empty line included, and what follows; without such a line all is head."""
    match = _EMPTY_LINE.search(block)
    return (block, b"") if match is None else (block[: match.end()], block[match.end() :])


def parse_head(head: bytes) -> HttpHead:
    """Return what a head says, in time linear to its size. Folded lines are joined; those without a colon pass by."""
    lines = _unfolded(head.decode("latin-1"))
    match = _STATUS_LINE.match(next(lines, ""))
    headers = []
    for line in lines:
        name, colon, value = line.partition(":")
        if colon:
            headers.append((name.strip(), value.strip()))
            if len(headers) == _MAX_HEADERS:
                break
        elif not line:
            break
    return HttpHead(int(match[1]) if match else 0, (match[2] or "") if match else "", tuple(headers))


def _unfolded(text: str) -> Iterator[str]:
    """Yield the lines of a head, each with those that continue it (RFC 9112, section 5.2) behind one blank each.

    Line by line: a pattern that looks for blanks in front of a line break tries every blank of a run anew, and a head
    of a few kilobytes then takes minutes.
    """
    lines = text.split("\n", _MAX_LINES)[:_MAX_LINES]
    if "\n " not in text and "\n\t" not in text:
        yield from (line.removesuffix("\r") for line in lines)
        return
    parts = [lines[0].removesuffix("\r")]
    for line in lines[1:]:
        if line.startswith((" ", "\t")):
            parts.append(line.strip(" \t\r"))
            continue
        yield parts[0] if len(parts) == 1 else " ".join((parts[0].rstrip(" \t"), *parts[1:]))
        parts = [line.removesuffix("\r")]
    yield parts[0] if len(parts) == 1 else " ".join((parts[0].rstrip(" \t"), *parts[1:]))


def payload_chunks(head: HttpHead, body: Body | Iterable[bytes]) -> Iterator[bytes]:
    """Return the payload of a message: its body, without the framing of its chunks."""
    chunks = body if isinstance(body, Iterable) else body.chunks()
    return dechunk(chunks) if head.is_chunked else iter(chunks)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeCaps:
    """How far a content coding is undone."""

    max_output_bytes: int = 50 * 1024 * 1024
    max_ratio: int = 200
    """Output per byte of input; what repeats itself honestly stays below it."""
    ratio_from_bytes: int = 1024 * 1024
    """Below this size no ratio is asked for: short bodies of one repeated word are innocent."""
    max_layers: int = 2


class Decoded(NamedTuple):
    """A body without its content codings, as far as that went."""

    data: bytes
    problems: tuple[str, ...] = ()


_CAPS = DecodeCaps()


def decode(head: HttpHead, payload: bytes | Iterable[bytes], caps: DecodeCaps = _CAPS) -> Decoded:
    """Return the content of a payload: the codings of Content-Encoding undone, last one first.

    What cannot be undone comes back as it is, and what breaks off as far as it went, with the problem noted. Bytes
    without a coding are handed back themselves, not a copy.
    """
    data, is_whole = _gather(payload, caps.max_output_bytes)
    problems: list[str] = [] if is_whole else [PayloadProblem.TOO_LARGE]
    declared = head.get_all("content-encoding")
    codings = [coding for text in declared for part in text.split(",") if (coding := part.strip().lower())]
    codings = [coding for coding in codings if coding != "identity"]
    if not codings or not data:
        return Decoded(data, tuple(problems))
    if len(codings) > caps.max_layers:
        return Decoded(data, (*problems, PayloadProblem.TOO_MANY_ENCODINGS))
    limit, excess = caps.max_output_bytes, PayloadProblem.TOO_LARGE
    by_ratio = max(caps.ratio_from_bytes, caps.max_ratio * len(data))
    if by_ratio < limit:
        limit, excess = by_ratio, PayloadProblem.RATIO_EXCEEDED
    for coding in reversed(codings):
        data, problem = undo(coding, data, limit, excess)
        if problem is not None and problem not in problems:
            problems.append(problem)
    return Decoded(data, tuple(problems))


def _gather(payload: bytes | Iterable[bytes], limit: int) -> tuple[bytes, bool]:
    """Return a payload in one piece, and whether all of it is there; at most `limit` bytes are kept."""
    if isinstance(payload, bytes):
        return (payload, True) if len(payload) <= limit else (payload[:limit], False)
    pieces = iter(payload)
    only = next(pieces, b"")
    second = next(pieces, None)
    if second is None:
        return _gather(only, limit)
    buffer = BytesIO()
    size = buffer.write(only)
    for piece in chain((second,), pieces):
        size += buffer.write(piece)
        if size > limit:
            buffer.truncate(limit)
            break
    return buffer.getvalue(), size <= limit
