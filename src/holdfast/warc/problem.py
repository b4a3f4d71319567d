"""The words for what can be wrong with an HTTP message; notes beside what could be read of it, never exceptions."""

from __future__ import annotations

from enum import StrEnum


class PayloadProblem(StrEnum):
    """What was wrong with the framing or the codings of a message."""

    BAD_FRAMING = "bad_framing"
    CUT_SHORT = "cut_short"
    TRAILING_BYTES = "trailing_bytes"
    BAD_ENCODING = "bad_encoding"
    UNKNOWN_ENCODING = "unknown_encoding"
    TOO_MANY_ENCODINGS = "too_many_encodings"
    TOO_LARGE = "too_large"
    RATIO_EXCEEDED = "ratio_exceeded"
