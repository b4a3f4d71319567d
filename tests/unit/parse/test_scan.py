"""Links by a plain scan."""

from __future__ import annotations

import time

import pytest

from holdfast.parse import scan_links
from holdfast.types import Link
from tests import patience


def test_hrefs_are_found_however_they_are_quoted() -> None:
    body = b"""<a href="/1"><a HREF = '/2?a=1&amp;b=2'><a href=/3>x<a href="mailto:x"><a href="#y"><a href=''>"""

    assert scan_links(body) == (Link("/1", "scan"), Link("/2?a=1&b=2", "scan"), Link("/3", "scan"))


def test_at_most_twenty_thousand() -> None:
    assert len(scan_links(b"".join(b"<a href=/%d>" % i for i in range(30_000)))) == 20_000


@pytest.mark.parametrize("unit", [b"href=", b'href="', b"href='x", b"href  ", b"href=\xff", b"<a href=x "])
def test_a_flood_is_scanned_in_linear_time(unit: bytes) -> None:
    started = time.process_time()
    scan_links(unit * 80_000)

    assert time.process_time() - started < patience.allowed(3.0)
