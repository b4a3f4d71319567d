"""A killable process for pages that look dangerous: it has limits, no secrets, and a deadline per page."""

from __future__ import annotations

import json
import math
import os
import select
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import fields
from datetime import datetime
from typing import IO, Any, Self, TypeGuard, TypeVar, Unpack

from holdfast import log
from holdfast.clock import Clock, SystemClock
from holdfast.parse.charset import ParseProblem
from holdfast.parse.document import DocumentKind, DocumentReading, ParsedDocument, parse_document
from holdfast.parse.metadata import PageType
from holdfast.parse.moments import read_moment
from holdfast.parse.page import ReadingOptions, looks_pathological, salvaged
from holdfast.types import Link, ParsedPage

REQUEST_HEAD = struct.Struct("!II")
REPLY_HEAD = struct.Struct("!I")
READY = REPLY_HEAD.pack(0)


def is_for_index(how: ReadingOptions | DocumentReading) -> TypeGuard[DocumentReading]:
    return "kind" in how


def pack_reply(page: ParsedPage | ParsedDocument) -> bytes:
    # Avoid `asdict`, which copies each of 100,000 links.
    shallow = {one.name: getattr(page, one.name) for one in fields(page)}
    reply = json.dumps(shallow, default=datetime.isoformat).encode("ascii")
    return REPLY_HEAD.pack(len(reply)) + reply


def unpack_reply(kind: type[_Parsed], reply: bytes) -> _Parsed:
    """Return the parsed page or document in a reply. Raise ValueError, TypeError or KeyError if it is invalid."""
    values: dict[str, Any] = json.loads(reply)
    return kind(**{name: read(values[name]) for name, read in _READERS[kind].items()})


_Parsed = TypeVar("_Parsed", bound=ParsedPage | ParsedDocument)
# Every value is converted to the type of its field: the reply comes from a process that parses hostile pages.
_CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "str": str,
    "int": int,
    "bool": lambda value: value is True,
    "str | None": lambda value: None if value is None else str(value),
    "datetime | None": lambda value: None if value is None else read_moment(str(value)),
    "tuple[str, ...]": lambda value: tuple(map(str, value)),
    "tuple[Link, ...]": lambda value: tuple([Link(str(url), str(rel)) for url, rel in value]),
    "tuple[Anchor, ...]": lambda value: tuple([(str(href), str(text), str(beside)) for href, text, beside in value]),
    "dict[str, str]": lambda value: {str(name): str(text) for name, text in value.items()},
    "page_type": lambda value: PageType(value).value,
}
# Built at import, so that a field of a new type fails at start and not as a crashed parser.
_READERS: dict[type, dict[str, Callable[[Any], Any]]] = {
    kind: {one.name: _CONVERTERS.get(one.name) or _CONVERTERS[str(one.type)] for one in fields(kind)}
    for kind in (ParsedPage, ParsedDocument)
}


DEADLINE_S = 5.0
MEMORY_BYTES = 512 * 1024 * 1024
_START_S = 30.0
_MAX_REPLY_BYTES = 64 * 1024 * 1024

_log = log.get(room="parse")
_Answer = TypeVar("_Answer")


class _Overrun(Exception):
    """The child did not answer in time."""


class _Died(Exception):
    """The child exited, or sent an invalid reply."""


class ParseChild:
    """Parses one page at a time in another process, started on first use and replaced after a timeout or a crash.

    Calls block; use it from a thread. Calls from several threads wait for each other.
    """

    def __init__(
        self,
        *,
        deadline_s: float = DEADLINE_S,
        memory_bytes: int = MEMORY_BYTES,
        command: Sequence[str] | None = None,
        clock: Clock | None = None,
    ) -> None:
        """`command` replaces the interpreter that runs `parse.__main__`."""
        self._deadline_s = deadline_s
        # Higher than the deadline: the parent kills first and knows why; the limit is for a child without a parent.
        cpu_s = math.ceil(deadline_s) + 1
        self._command = command or [sys.executable, "-I", "-m", __package__, str(cpu_s), str(memory_bytes)]
        self._clock = clock or SystemClock()
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def parse(self, body: bytes, **how: Unpack[ReadingOptions]) -> ParsedPage:
        """Return the result of `parse_page`; after a timeout or a crash, links from a plain scan, with a problem."""
        page, problem = self._guarded(lambda: unpack_reply(ParsedPage, self._exchange(body, how)), how["url"])
        return page or salvaged(body, problem)

    def read(self, body: bytes, **how: Unpack[DocumentReading]) -> ParsedDocument:
        """Return the result of `parse_document`, or a PDF's text; after a timeout or a crash, only a problem."""
        document, problem = self._guarded(
            lambda: unpack_reply(ParsedDocument, self._exchange(body, how)), how.get("url", "")
        )
        return document or ParsedDocument(problems=(problem,))

    def _guarded(self, call: Callable[[], _Answer], url: str) -> tuple[_Answer | None, ParseProblem]:
        """Return the call's result; on failure, replace the child and return None with the problem."""
        with self._lock:
            try:
                return call(), ParseProblem.PARSE_FAILED
            except _Overrun:
                problem = ParseProblem.PARSE_TIMEOUT
            except (_Died, OSError, ValueError, TypeError, KeyError):
                problem = ParseProblem.PARSE_CRASHED
            self._end()
        _log.warning("parse.child_replaced", action="parse_child", url=url, problem=problem.value)
        return None, problem

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def close(self) -> None:
        with self._lock:
            self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _exchange(self, body: bytes, how: ReadingOptions | DocumentReading) -> bytes:
        # The kernel or an operator ended it between two pages: that is not the next page's fault.
        if self._process is None or self._process.poll() is not None:
            self._end()
            self._start()
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        until = self._clock.monotonic() + self._deadline_s
        head = json.dumps(how, default=list).encode("ascii")
        self._send(self._process.stdin, REQUEST_HEAD.pack(len(head), len(body)) + head, until)
        # Send the body separately: a request in one piece would hold a large body twice.
        self._send(self._process.stdin, body, until)
        (size,) = REPLY_HEAD.unpack(self._receive(self._process.stdout, REPLY_HEAD.size, until))
        # A process that may be compromised wrote the length.
        if size > _MAX_REPLY_BYTES:
            raise _Died
        return self._receive(self._process.stdout, size, until)

    def _start(self) -> None:
        process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # Pass neither the database URL nor tokens: a compromised parser must find no secret.
            env={"PATH": os.defpath, "LANG": "C.UTF-8"},
            cwd="/",
            bufsize=0,
        )
        self._process = process
        assert process.stdin is not None
        assert process.stdout is not None
        # A hanging child reads nothing: a blocking write of a large page would hang, too.
        os.set_blocking(process.stdin.fileno(), False)
        os.set_blocking(process.stdout.fileno(), False)
        # Starting an interpreter is not the page's fault: its own deadline begins when the child is ready.
        if self._receive(process.stdout, len(READY), self._clock.monotonic() + _START_S) != READY:
            raise _Died

    def _send(self, pipe: IO[bytes], data: bytes, until: float) -> None:
        left = memoryview(data)
        while left:
            self._wait(pipe, select.POLLOUT, until)
            left = left[os.write(pipe.fileno(), left[: 1 << 20]) :]

    def _receive(self, pipe: IO[bytes], size: int, until: float) -> bytes:
        parts: list[bytes] = []
        while size:
            self._wait(pipe, select.POLLIN, until)
            part = os.read(pipe.fileno(), min(size, 1 << 20))
            if not part:
                raise _Died
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _wait(self, pipe: IO[bytes], event: int, until: float) -> None:
        left_s = until - self._clock.monotonic()
        poll = select.poll()
        poll.register(pipe, event)
        # Check once more after the deadline: if this process was suspended, the reply may already be there.
        if not poll.poll(max(0.0, left_s) * 1000):
            raise _Overrun

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        # Reap it at once: a crawl may replace thousands.
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def needs_child(body: bytes, kind: str) -> bool:
    """Return True if a parser may hang or crash on a body: PDF, and HTML that looks pathological."""
    return kind == DocumentKind.PDF or (kind == DocumentKind.HTML and bool(looks_pathological(body)))


def parse_safely(body: bytes, **how: Unpack[DocumentReading]) -> ParsedDocument:
    """Return a parsed document; input that may hang or crash a parser goes to a child process with a deadline."""
    if not needs_child(body, how["kind"]):
        return parse_document(body, **how)
    with ParseChild() as child:
        return child.read(body, **how)
