"""The child's side of `ParseChild`: parses requests from standard input, one page at a time, within its limits.

Started as `python -m holdfast.parse SECONDS BYTES`; ends when its parent does.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from typing import BinaryIO

from holdfast.parse.child import READY, REQUEST_HEAD, is_for_index, pack_reply
from holdfast.parse.document import DocumentKind, DocumentReading, ParsedDocument, parse_document, parse_pdf
from holdfast.parse.page import ReadingOptions, parse_page


def serve(requests: BinaryIO, replies: BinaryIO, *, cpu_s: int) -> None:
    replies.write(READY)
    replies.flush()
    while head := requests.read(REQUEST_HEAD.size):
        head_bytes, body_bytes = REQUEST_HEAD.unpack(head)
        how: ReadingOptions | DocumentReading = json.loads(requests.read(head_bytes))
        body = requests.read(body_bytes)
        _limit_cpu(cpu_s)
        replies.write(pack_reply(_read(body, how) if is_for_index(how) else parse_page(body, **how)))
        replies.flush()


def _read(body: bytes, how: DocumentReading) -> ParsedDocument:
    if how["kind"] != DocumentKind.PDF:
        return parse_document(body, **how)
    return parse_pdf(body)


def _limit_cpu(cpu_s: int) -> None:
    """Let this process die if the page takes longer, even if no parent is left to kill it."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    # The limit counts from the start of the process, so each page adds to the time used before.
    soft = int(used.ru_utime + used.ru_stime) + cpu_s
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))


def main() -> None:
    cpu_s, memory_bytes = int(sys.argv[1]), int(sys.argv[2])
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    memory_bytes = memory_bytes if most == resource.RLIM_INFINITY else min(memory_bytes, most)
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    # A crash leaves no core file with the page; a compromised parser can write no file and open few.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))
    # A library that prints would write into the replies: redirect standard output to standard error.
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(sys.stdin.buffer, replies, cpu_s=cpu_s)


if __name__ == "__main__":
    main()
