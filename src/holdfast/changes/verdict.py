"""Judges what happened to a page between two captures by their rows alone. Pure; no text is read here."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from holdfast.types import BROKEN_OFF


class ChangeType(StrEnum):
    NEW_PAGE = "new_page"
    UNCHANGED = "unchanged"
    UPDATED = "updated"
    GONE = "gone"
    ERROR = "error"
    NOISE = "noise"
    """Something else was captured instead: an error page, a login or consent wall, a block page."""


class AnswerKind(StrEnum):
    """Result of the request at a capture."""

    OK = "ok"
    MOVED = "moved"
    GONE = "gone"
    FAILED = "failed"
    NOISE = "noise"


def answer_of(status: int | None, truncated: str | None, noise: str | None) -> AnswerKind:
    """Return the result that a capture's status, WARC-Truncated and noise tell of."""
    if noise is not None:
        return AnswerKind.NOISE
    if truncated in BROKEN_OFF and (status is None or status < 300):
        return AnswerKind.FAILED
    # A record without a status (a resource) counts as present, and so does a 304.
    if status is None or 200 <= status < 300 or status == 304:
        return AnswerKind.OK
    if 300 <= status < 400:
        return AnswerKind.MOVED
    return AnswerKind.GONE if status in (404, 410) else AnswerKind.FAILED


class ComparedCapture(NamedTuple):
    id: int
    source_id: int
    group_id: int | None
    url_hash: int
    execution_id: int
    captured_at: datetime
    status: int | None
    body_hash: bytes | None
    payload_digest: str | None
    document_id: int | None
    text_chars: int | None
    """Length of the document's text; a scanned PDF has none."""
    redirect_to: str | None
    truncated: str | None
    counts: bool
    """False if the capture is under a takedown or a duplicate of the same day."""
    compared: bool
    noise: str | None = None
    """Type of noise captured instead of the page (a `NoiseKind`)."""

    @property
    def broke_off(self) -> bool:
        """True if the body is cut off: content missing from it was not removed from the page."""
        return self.truncated in BROKEN_OFF

    @property
    def answer(self) -> AnswerKind:
        return answer_of(self.status, self.truncated, self.noise)

    @property
    def is_answered(self) -> bool:
        """True if the page was found, or redirected to its new URL."""
        return self.answer in (AnswerKind.OK, AnswerKind.MOVED)


class ChangeVerdict(NamedTuple):
    type: ChangeType
    before: ComparedCapture | None
    error: str | None = None
    documents: tuple[int, int] | None = None
    """The documents to compare, if their text can be compared."""


def judge(now: ComparedCapture, before: ComparedCapture | None, answered: ComparedCapture | None) -> ChangeVerdict:
    """Return the verdict, given the previous capture and the last earlier one that was answered."""
    # Compare with the last capture before a failure, so that an outage is not a rewrite.
    match now.answer:
        case AnswerKind.NOISE:
            return ChangeVerdict(ChangeType.NOISE, answered, now.noise)
        case AnswerKind.FAILED:
            broken = f"the body broke off ({now.truncated})" if now.broke_off else f"the server answered {now.status}"
            return ChangeVerdict(ChangeType.ERROR, before, broken)
        case AnswerKind.GONE if before is not None and before.answer == AnswerKind.GONE:
            return ChangeVerdict(ChangeType.UNCHANGED, before)
        # The page never existed, so it is not gone: a broken link crawled for the first time.
        case AnswerKind.GONE if answered is None:
            return ChangeVerdict(ChangeType.ERROR, before, f"the server answered {now.status}, and never had the page")
        case AnswerKind.GONE:
            return ChangeVerdict(ChangeType.GONE, answered)
    if answered is None:
        return ChangeVerdict(ChangeType.NEW_PAGE, None)
    # A redirect has no text; only its target may change.
    if now.answer == AnswerKind.MOVED or answered.answer == AnswerKind.MOVED:
        same = now.answer == answered.answer and now.redirect_to == answered.redirect_to
        return ChangeVerdict(ChangeType.UNCHANGED if same else ChangeType.UPDATED, answered)
    if has_same_body(answered, now):
        return ChangeVerdict(ChangeType.UNCHANGED, answered)
    return ChangeVerdict(ChangeType.UPDATED, answered, documents=comparable(answered, now))


def has_same_body(a: ComparedCapture, b: ComparedCapture) -> bool:
    if a.body_hash is not None and b.body_hash is not None:
        return a.body_hash == b.body_hash
    # For a revisit without its original, the digest or the server's 304 decides.
    return b.status == 304 or (a.payload_digest is not None and a.payload_digest == b.payload_digest)


def comparable(a: ComparedCapture, b: ComparedCapture) -> tuple[int, int] | None:
    """Return the two documents if at least one has text, whatever their types are."""
    if a.document_id is None or b.document_id is None or not (a.text_chars or b.text_chars):
        return None
    return a.document_id, b.document_id
