"""Links by a plain scan of the bytes, for pages that no parser can finish. Finds `href=`; understands nothing else."""

from __future__ import annotations

import html
import re

from holdfast.parse.address import address
from holdfast.types import Link

_MAX_SCANNED_BYTES = 10 * 1024 * 1024
_MAX_SCANNED_LINKS = 20_000
# Every part is bounded and starts at a fixed word, so that the scan is linear whatever the bytes are.
_HREF = re.compile(
    rb"""href[ \t\n\r\f]{0,8}=[ \t\n\r\f]{0,8}(?:"([^"<>]{1,2048})"|'([^'<>]{1,2048})'|([^\s"'<>]{1,2048}))""", re.I
)


def scan_links(body: bytes) -> tuple[Link, ...]:
    """Return the values of `href=` in a body as links, without repeats, at most 20,000. Never raises."""
    found: dict[str, str] = {}
    for match in _HREF.finditer(body, 0, _MAX_SCANNED_BYTES):
        raw = (match[1] or match[2] or match[3]).decode("utf-8", "replace")
        url = address(html.unescape(raw))
        if url:
            found.setdefault(url, "scan")
            if len(found) == _MAX_SCANNED_LINKS:
                break
    return tuple(map(Link._make, found.items()))
