"""The saved queue of an earlier crawl: which file it is, whether it can be used, and its stable copy.

A half-written file is no queue. A queue that cannot lead anywhere (poisoned) is not taken up again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from holdfast.archive_tool.browsertrix import MANAGED_NAME, merged
from holdfast.archive_tool.files import write_whole
from holdfast.archive_tool.lines import Statistics
from holdfast.archive_tool.logs import POISON_BYTES, last_statistics, newest_crawl_log, newest_log, tail
from holdfast.archive_tool.yaml_text import as_text, read_mapping

RESUME_NAME = ".zimit_resume.yaml"
_SHAPES = (
    ("collections/crawl-*/crawls/crawl-*.yaml",),
    ("collections/crawl-*/crawls/crawl-*.yml",),
    ("collections/crawl-*/crawls/*.yaml", "crawls/*.yaml"),
    ("collections/crawl-*/crawl-*.yaml",),
)
_EMPTY_BUILD = (b"no entry found to push", b"unprocessable and looks probably mostly empty")


def candidates(temp_dirs: Iterable[Path]) -> Iterator[Path]:
    """Yield saved queues inside temporary directories: by the shape of their path, newest first in each."""
    folders = list(temp_dirs)
    seen: set[Path] = set()
    for patterns in _SHAPES:
        found = {path for folder in folders for pattern in patterns for path in folder.glob(pattern)} - seen
        seen |= found
        plain = [path for path in found if path.is_file() and not path.is_symlink()]
        yield from sorted(plain, key=lambda path: (path.stat().st_mtime_ns, str(path)), reverse=True)


def usable_resume(output_dir: Path, temp_dirs: Iterable[Path]) -> Path | None:
    """Return the saved queue to go on from: the stable copy, else the first candidate that can be read."""
    stable = output_dir / RESUME_NAME
    if read_mapping(stable) is not None:
        return stable
    return next((path for path in candidates(temp_dirs) if read_mapping(path) is not None), None)


def keep_resume(output_dir: Path, found: Path) -> Path | None:
    """Copy a saved queue to its stable place, with the managed settings in it; None if it is no queue.

    The copy replaces the old one whole, and keeps the time of its original.
    """
    stable = output_dir / RESUME_NAME
    content = read_mapping(found)
    if content is None:
        return None
    managed = read_mapping(output_dir / MANAGED_NAME)
    wanted = merged(managed, content) if managed is not None else content
    if found == stable and wanted == content:
        return stable
    data = found.read_bytes() if wanted == content else as_text(wanted).encode()
    write_whole(stable, data, mtime=found.stat().st_mtime)
    return stable


def refresh_resume(output_dir: Path, temp_dir: Path) -> Path | None:
    """After a stage, take over the queue that it saved; None if it saved none that can be used."""
    for path in candidates([temp_dir]):
        if (kept := keep_resume(output_dir, path)) is not None:
            return kept
    return None


def write_managed(output_dir: Path, managed: dict[str, Any]) -> Path:
    """Keep the managed settings in their file and return it."""
    path = output_dir / MANAGED_NAME
    if read_mapping(path) != managed:
        write_whole(path, as_text(managed).encode())
    return path


def is_poisoned(output_dir: Path, *, managed: bool) -> bool:
    """Return whether the last run shows that its queue leads nowhere.

    Three things together: managed settings, a ZIM build that found nothing to build from, and statistics that are
    missing or say that every page failed.
    """
    log = newest_log(output_dir)
    if not managed or log is None:
        return False
    said = tail(log, POISON_BYTES).lower()
    crawl = newest_crawl_log(output_dir)  # the newest may be a final build's, which counts no pages
    return any(phrase in said for phrase in _EMPTY_BUILD) and _all_failed(last_statistics(crawl) if crawl else None)


def _all_failed(found: Statistics | None) -> bool:
    if found is None:
        return True
    return found.crawled == 0 and found.pending == 0 and found.failed == found.total >= 1
