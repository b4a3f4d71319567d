"""One misbehaving web for all tests of it: they only read."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.site import Site


@pytest.fixture(scope="module")
def web() -> Iterator[Site]:
    """Four hosts in a thread."""
    with Site.start(hosts=4) as site:
        yield site
        faults = site.faults()
    assert not faults, f"pages broke by their own fault: {faults}"
