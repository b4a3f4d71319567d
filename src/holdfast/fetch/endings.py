"""Reads how a transfer ended: which problem a failure is, why a body is short, and whether a head can be believed.
It knows libcurl's codes so that nobody else has to.
"""

from __future__ import annotations

import re
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
# What OpenSSL says when the peer hangs up inside the handshake: a broken line, not a broken certificate.
_HUNG_UP = re.compile(r"SSL_ERROR_SYSCALL|unexpected eof|reset by peer", re.IGNORECASE)


class Ending(NamedTuple):
    """Everything that is known of a transfer when it is over."""

    code: int
    message: str
    lines: list[bytes]
    """Head lines as received, interim responses included."""
    overflowed: bool
    refused: bool


class Answer(NamedTuple):
    """A head that can be believed."""

    head: bytes
    status: int
    truncated: Truncated | None


class Failure(NamedTuple):
    """Why there is no such head."""

    problem: FetchProblem
    message: str


def read(ending: Ending, max_header_bytes: int) -> Answer | Failure:
    """Return what a transfer amounts to: an answer as soon as its head is whole and well formed, else the reason."""
    head = _final_head(ending.lines)
    if head is None:
        return _failure(ending, max_header_bytes)
    if len(head) > max_header_bytes:
        return Failure(FetchProblem.BAD_RESPONSE, _TOO_LARGE)
    match = _STATUS_LINE.match(head)
    if match is None or match[1] < b"200":
        return Failure(FetchProblem.BAD_RESPONSE, "the answer is no final HTTP/1 response")
    return Answer(head, int(match[1]), _truncation(ending))


def is_ambiguous(head: bytes) -> bool:
    """Return whether a head gives its body two lengths, by Content-Length and Transfer-Encoding.

    The latter counts; but what another reader takes for the next answer may lie on that connection (RFC 9112, 6.3).
    """
    lower = head.lower()
    return b"\ntransfer-encoding:" in lower and b"\ncontent-length:" in lower


def _failure(ending: Ending, max_header_bytes: int) -> Failure:
    if ending.refused:
        return Failure(FetchProblem.ADDRESS_FORBIDDEN, REFUSAL)
    if sum(map(len, ending.lines)) > max_header_bytes:
        return Failure(FetchProblem.BAD_RESPONSE, _TOO_LARGE)
    message = _UNPRINTABLE.sub("?", ending.message)[:200]
    return Failure(_problem(ending), message or "the connection ended before the answer's head was whole")


def _problem(ending: Ending) -> FetchProblem:
    if ending.code == pycurl.E_SSL_CONNECT_ERROR and _HUNG_UP.search(ending.message):
        return FetchProblem.DISCONNECTED
    # What is not understood came from the server: it speaks something else than HTTP/1.
    return _PROBLEMS.get(ending.code, FetchProblem.BAD_RESPONSE)


def _truncation(ending: Ending) -> Truncated | None:
    if ending.overflowed:
        return Truncated.LENGTH
    if ending.code == pycurl.E_OK:
        return None
    # Anything but the clock means that the connection ended before the body did: closed, reset, or framed so badly that
    # libcurl hung up. The bytes up to there are kept.
    return Truncated.TIME if ending.code == pycurl.E_OPERATION_TIMEDOUT else Truncated.DISCONNECT


def _final_head(lines: list[bytes]) -> bytes | None:
    """Return the last head as received, closing line included; None if it is not all there.

    Interim heads (RFC 9110, section 15.2) come before it and are dropped. A switch of protocols is no interim head.
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
