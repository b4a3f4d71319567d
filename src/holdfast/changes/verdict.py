"""What happened to a page between two of its captures, judged by their rows alone. Pure; no text is read here."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from holdfast.types import BROKEN_OFF


class ChangeType(StrEnum):
    """What became of a page."""

    NEW_PAGE = "new_page"
    UNCHANGED = "unchanged"
    UPDATED = "updated"
    GONE = "gone"
    ERROR = "error"
    NOISE = "noise"
    """Something else was captured in its place: an error page, a wall, a block page."""


class AnswerKind(StrEnum):
    """How the server answered at a capture."""

    OK = "ok"
    MOVED = "moved"
    GONE = "gone"
    FAILED = "failed"
    NOISE = "noise"


class ComparedCapture(NamedTuple):
    """What a snapshot's row says that matters here."""

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
    """How much text the document has: a scanned PDF has none."""
    redirect_to: str | None
    truncated: str | None
    """Why the stored body is short (WARC-Truncated)."""
    counts: bool
    """Neither withdrawn nor a duplicate of the same day."""
    compared: bool
    noise: str | None = None
    """What it is instead of the page (a `NoiseKind`)."""

    @property
    def broke_off(self) -> bool:
        """Whether the body ended before its server had sent all of it: what is missing was not removed."""
        return self.truncated in BROKEN_OFF

    @property
    def answer(self) -> AnswerKind:
        """The answer in one word."""
        if self.noise is not None:
            return AnswerKind.NOISE
        if self.broke_off and (self.status is None or self.status < 300):
            return AnswerKind.FAILED
        # What has no status (a resource record) is there; a 304 says that the page is.
        if self.status is None or 200 <= self.status < 300 or self.status == 304:
            return AnswerKind.OK
        if 300 <= self.status < 400:
            return AnswerKind.MOVED
        return AnswerKind.GONE if self.status in (404, 410) else AnswerKind.FAILED

    @property
    def is_answered(self) -> bool:
        """Whether the page was there, or said where it is now."""
        return self.answer in (AnswerKind.OK, AnswerKind.MOVED)


class ChangeVerdict(NamedTuple):
    """What happened at a capture."""

    type: ChangeType
    before: ComparedCapture | None
    """What it is held against."""
    error: str | None = None
    documents: tuple[int, int] | None = None
    """The documents to compare, if their text can be."""


def judge(now: ComparedCapture, before: ComparedCapture | None, answered: ComparedCapture | None) -> ChangeVerdict:
    """Return what happened, given the capture just before and the last one before that was answered."""
    # A page that failed in between is compared with what it was before the failure, so that an outage is no rewrite.
    match now.answer:
        case AnswerKind.NOISE:
            return ChangeVerdict(ChangeType.NOISE, answered, now.noise)
        case AnswerKind.FAILED:
            broken = f"the body broke off ({now.truncated})" if now.broke_off else f"the server answered {now.status}"
            return ChangeVerdict(ChangeType.ERROR, before, broken)
        case AnswerKind.GONE if before is not None and before.answer == AnswerKind.GONE:
            return ChangeVerdict(ChangeType.UNCHANGED, before)
        # Never there, so nothing went: a broken link that was crawled for the first time.
        case AnswerKind.GONE if answered is None:
            return ChangeVerdict(ChangeType.ERROR, before, f"the server answered {now.status}, and never had the page")
        case AnswerKind.GONE:
            return ChangeVerdict(ChangeType.GONE, answered)
    if answered is None:
        return ChangeVerdict(ChangeType.NEW_PAGE, None)
    # A redirect has no text to compare; where it leads is what may change.
    if now.answer == AnswerKind.MOVED or answered.answer == AnswerKind.MOVED:
        same = now.answer == answered.answer and now.redirect_to == answered.redirect_to
        return ChangeVerdict(ChangeType.UNCHANGED if same else ChangeType.UPDATED, answered)
    if has_same_body(answered, now):
        return ChangeVerdict(ChangeType.UNCHANGED, answered)
    return ChangeVerdict(ChangeType.UPDATED, answered, documents=comparable(answered, now))


def has_same_body(a: ComparedCapture, b: ComparedCapture) -> bool:
    """Return whether two captures are known to hold the same bytes."""
    if a.body_hash is not None and b.body_hash is not None:
        return a.body_hash == b.body_hash
    # A revisit whose original is not here: its digest, or the server's word (304), tells.
    return b.status == 304 or (a.payload_digest is not None and a.payload_digest == b.payload_digest)


def comparable(a: ComparedCapture, b: ComparedCapture) -> tuple[int, int] | None:
    """Return the two documents if there is text in one of them, whatever their types are; None otherwise."""
    if a.document_id is None or b.document_id is None or not (a.text_chars or b.text_chars):
        return None
    return a.document_id, b.document_id
