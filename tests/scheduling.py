"""How pytest-xdist divides the suite among its workers."""

from __future__ import annotations

import functools

from xdist.scheduler import LoadFileScheduling

from tests.needs import ROOT

WEB = "tests/flow/web/"
"""Where the tests of the browser application are."""


class FilesOrTests(LoadFileScheduling):  # type: ignore[misc]
    """A worker is given a whole file, so that what its tests share is made once; of flow tests that share nothing, one.

    The longest file of flow tests takes three minutes: given out as one, it would be the last to end. The tests of the
    browser application go to one worker: they share a served archive, and two cores have room for one browser.
    """

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.split("::", 1)[0]
        if path.startswith(WEB):
            return WEB
        return path if _is_shared(path) else nodeid


@functools.cache
def _is_shared(path: str) -> bool:
    return not path.startswith("tests/flow/") or 'scope="module"' in (ROOT / path).read_text()
