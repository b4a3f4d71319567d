"""The body of one record: hashed as it streams by, kept only as far as somebody will read it.

Memory is bounded whatever the record holds: a coded body is undone within the caps of `warc.payload`, a plain one
beyond them is only hashed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import NamedTuple

from holdfast.warc.digest import agrees, hasher_for
from holdfast.warc.payload import Dechunked, DecodeCaps, HttpHead, decode

MAX_KEPT_BYTES = 10 * 1024 * 1024
"""As much of a body as is parsed; no more than this is kept."""
_MAX_CODED_BYTES = 32 * 1024 * 1024
_SNIFFED_BYTES = 512

Pulse = Callable[[], None]


class Body(NamedTuple):
    """What is known of a body."""

    start: bytes
    """All of it, or what will be read of it."""
    size: int
    body_hash: bytes | None
    """SHA-256 of the content-decoded body; None if it could not be decoded whole."""
    digest: str
    """The labelled payload digest: as stated, or ours."""
    problems: tuple[str, ...]


def read_body(head: HttpHead | None, payload: Iterable[bytes], stated: str | None, *, keep: bool, pulse: Pulse) -> Body:
    """Return what there is to know of a payload: its hashes, whether the stated digest is right, and its beginning."""
    coded = head is not None and any(
        coding.strip().lower() not in ("", "identity")
        for value in head.get_all("content-encoding")
        for coding in value.split(",")
    )
    checker = hasher_for(stated) if stated else None
    ours = hashlib.sha256()
    kept_most = _MAX_CODED_BYTES if coded else MAX_KEPT_BYTES if keep else _SNIFFED_BYTES
    kept, kept_bytes, size = list[bytes](), 0, 0
    for piece in payload:
        ours.update(piece)
        if checker is not None:
            checker.update(piece)
        size += len(piece)
        if kept_bytes < kept_most:
            kept.append(piece[: kept_most - kept_bytes])
            kept_bytes += len(kept[-1])
        if len(piece) > 32768 or not size & 0xFFFF:
            pulse()
    problems = []
    if isinstance(payload, Dechunked) and payload.problem is not None:
        problems.append(payload.problem.value)
    elif head is not None and not head.is_chunked and _is_longer(head, size):
        problems.append("beyond_content_length")
    if stated and checker is None:
        problems.append("digest_unknown")
    elif stated and checker is not None and not agrees(stated, checker):
        problems.append("digest_mismatch")
    digest = stated or f"sha256:{ours.hexdigest()}"
    start = b"".join(kept)
    if not coded or head is None or not size:
        return Body(start, size, ours.digest(), digest, tuple(problems))
    return _decoded(head, Body(start, size, None, digest, tuple(problems)), is_whole=kept_bytes == size)


def _is_longer(head: HttpHead, size: int) -> bool:
    """Whether a body has more bytes than its head states: some writers add a few, others store it decoded."""
    stated = (head.get("content-length") or "").strip()
    return len(stated) <= 18 and stated.isascii() and stated.isdigit() and size > int(stated)


_CAPS = DecodeCaps()


def _decoded(head: HttpHead, body: Body, *, is_whole: bool) -> Body:
    if not is_whole:
        return body._replace(start=b"", problems=(*body.problems, "too_large"))
    content, problems = decode(head, body.start, _CAPS)
    # A body that breaks off is kept as far as it went, and so is its hash; one that was cut by us is not.
    cut = {"too_large", "ratio_exceeded"} & set(problems)
    return Body(
        start=content[:MAX_KEPT_BYTES],
        size=len(content),
        body_hash=None if cut else hashlib.sha256(content).digest(),
        digest=body.digest,
        problems=(*body.problems, *(str(problem) for problem in problems)),
    )
