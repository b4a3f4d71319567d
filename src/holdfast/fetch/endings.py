"""Interprets the end of a transfer: the problem of a failure, why a body is short, whether a head is valid, and
its Retry-After. Translates libcurl's codes into our own.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple

import pycurl

from holdfast.fetch.guard import REFUSAL
from holdfast.types import FetchProblem, Truncated

_TLS_CODES = frozenset(
    {
        pycurl.E_SSL_CONNECT_ERROR,
        pycurl.E_PEER_FAILED_VERIFICATION,
        pycurl.E_SSL_CERTPROBLEM,
        pycurl.E_SSL_CIPHER,
        pycurl.E_SSL_CACERT_BADFILE,
        pycurl.E_SSL_ISSUER_ERROR,
        pycurl.E_SSL_PINNEDPUBKEYNOTMATCH,
        pycurl.E_SSL_INVALIDCERTSTATUS,
        pycurl.E_SSL_ENGINE_INITFAILED,
        pycurl.E_USE_SSL_FAILED,
    }
)
_PROBLEMS = {
    pycurl.E_URL_MALFORMAT: FetchProblem.URL_REFUSED,
    pycurl.E_COULDNT_RESOLVE_HOST: FetchProblem.DNS,
    pycurl.E_COULDNT_CONNECT: FetchProblem.CONNECT,
    pycurl.E_OPERATION_TIMEDOUT: FetchProblem.TIMEOUT,
    pycurl.E_GOT_NOTHING: FetchProblem.DISCONNECTED,
    pycurl.E_PARTIAL_FILE: FetchProblem.DISCONNECTED,
    pycurl.E_SEND_ERROR: FetchProblem.DISCONNECTED,
    pycurl.E_RECV_ERROR: FetchProblem.DISCONNECTED,
    pycurl.E_OK: FetchProblem.DISCONNECTED,
} | dict.fromkeys(_TLS_CODES, FetchProblem.TLS)

_STATUS_LINE = re.compile(rb"HTTP/1\.[01] +([1-9][0-9]{2})(?=[ \r\n])")
_INTERIM = (b"HTTP/1.1 1", b"HTTP/1.0 1")
_EMPTY_LINES = (b"\r\n", b"\n")
_UNPRINTABLE = re.compile(r"[^\x20-\x7e]")
_TOO_LARGE = "the head is larger than we read"
# OpenSSL's messages when the peer disconnects during the handshake: a broken connection, not a bad certificate.
_HUNG_UP = re.compile(r"SSL_ERROR_SYSCALL|unexpected eof|reset by peer", re.IGNORECASE)


class TransferEnding(NamedTuple):
    code: int
    message: str
    lines: list[bytes]
    """Head lines as received, interim responses included."""
    overflowed: bool
    refused: bool


class CredibleHead(NamedTuple):
    head: bytes
    status: int
    truncated: Truncated | None


class TransferFailure(NamedTuple):
    problem: FetchProblem
    message: str


def read(ending: TransferEnding, max_header_bytes: int) -> CredibleHead | TransferFailure:
    """Return the result of a transfer: a response if its head is complete and well formed, else the reason."""
    head = _final_head(ending.lines)
    if head is None:
        return _failure(ending, max_header_bytes)
    if len(head) > max_header_bytes:
        return TransferFailure(FetchProblem.BAD_RESPONSE, _TOO_LARGE)
    match = _STATUS_LINE.match(head)
    if match is None or match[1] < b"200":
        return TransferFailure(FetchProblem.BAD_RESPONSE, "the answer is no final HTTP/1 response")
    return CredibleHead(head, int(match[1]), _truncation(ending))


def is_ambiguous(head: bytes) -> bool:
    """Return whether a head gives its body two lengths, by Content-Length and Transfer-Encoding."""
    # The latter counts; but what another reader takes for the next answer may lie on that connection (RFC 9112, 6.3).
    lower = head.lower()
    return b"\ntransfer-encoding:" in lower and b"\ncontent-length:" in lower


def _failure(ending: TransferEnding, max_header_bytes: int) -> TransferFailure:
    if ending.refused:
        return TransferFailure(FetchProblem.ADDRESS_FORBIDDEN, REFUSAL)
    if sum(map(len, ending.lines)) > max_header_bytes:
        return TransferFailure(FetchProblem.BAD_RESPONSE, _TOO_LARGE)
    message = _UNPRINTABLE.sub("?", ending.message)[:200]
    return TransferFailure(_problem(ending), message or "the connection ended before the answer's head was whole")


def _problem(ending: TransferEnding) -> FetchProblem:
    if ending.code == pycurl.E_SSL_CONNECT_ERROR and _HUNG_UP.search(ending.message):
        return FetchProblem.DISCONNECTED
    # Any other error comes from a server that does not speak HTTP/1.
    return _PROBLEMS.get(ending.code, FetchProblem.BAD_RESPONSE)


def _truncation(ending: TransferEnding) -> Truncated | None:
    if ending.overflowed:
        return Truncated.LENGTH
    if ending.code == pycurl.E_OK:
        return None
    # Except for a timeout, the connection ended before the body did: closed, reset, or framed so badly that libcurl
    # disconnected. Keep the bytes received.
    return Truncated.TIME if ending.code == pycurl.E_OPERATION_TIMEDOUT else Truncated.DISCONNECT


def _final_head(lines: list[bytes]) -> bytes | None:
    """Return the last head as received, closing line included; None if it is incomplete.

    Interim heads (RFC 9110, section 15.2) come before it and are dropped. A protocol switch is not an interim head.
    """
    if not lines or lines[-1] not in _EMPTY_LINES:
        return None
    if not lines[0].startswith(_INTERIM):
        return b"".join(lines)
    inner = (at for at in range(len(lines) - 2, -1, -1) if lines[at] in _EMPTY_LINES)
    first = next(inner, -1) + 1
    if lines[first].startswith(_INTERIM) and lines[first][9:12] != b"101":
        return None
    return b"".join(lines[first:])


# Limit of a wait that a server requests.
MAX_WAIT_S = 86_400.0

BUSY = (429, 503)
"""Statuses of an overloaded server."""

# Fractions and a sign are invalid delta-seconds with a clear meaning.
_SECONDS = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?")
_DATE = re.compile(r"[A-Za-z]{3,9},? [0-9A-Za-z :+-]{8,40}")


def parse_retry_after(value: str | None, now: datetime) -> float | None:
    """Return the seconds to wait, from 0 to 24 hours; None if the header is missing or invalid."""
    asked = read_retry_after(value, now)
    return None if asked is None else asked[0]


def read_retry_after(value: str | None, now: datetime) -> tuple[float, bool] | None:
    """Return the wait, and whether the server requested one beyond 0 to 24 hours, for the log; None as in
    `parse_retry_after`.
    """
    if value is None:
        return None
    value = value.strip(" \t")
    if _SECONDS.fullmatch(value):
        # Three hundred digits exceed the limit already; do not convert a megabyte of them.
        requested_s = float(value[:300])
    elif _DATE.fullmatch(value):
        moment = _read_date(value)
        if moment is None:
            return None
        requested_s = (moment - now).total_seconds()
    else:
        return None
    seconds = min(max(requested_s, 0.0), MAX_WAIT_S)
    return seconds, seconds != requested_s


def asked_rest(status: int, value: str | None, now: datetime, *, max_delay_s: float) -> tuple[float, bool] | None:
    """Return the wait that a response requests, and whether it was limited; None if it requests none."""
    # Respect the wait of a busy server, up to a day; that of other responses is capped.
    asked = read_retry_after(value, now) if status >= 300 else None
    if asked is None or status in BUSY:
        return asked
    seconds, is_clamped = asked
    return min(seconds, max_delay_s), is_clamped or seconds > max_delay_s


def _read_date(value: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(value)
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
