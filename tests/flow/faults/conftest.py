"""What fault tests share: whatever a failed test leaves running is ended with it."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flow.crawler import Crawler


@pytest.fixture
def crawler(tmp_path: Path, commands: None) -> Iterator[Crawler]:
    """A data directory on SQLite and the commands that work on it; its processes do not outlive the test."""
    made = Crawler(tmp_path / "home")
    yield made
    for pid in made.processes():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
