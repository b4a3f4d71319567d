"""Kinds of jobs: those of a source, and operations, which have none."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

CRAWL, FEED, IMPORT = "crawl", "feed", "import"
UNCAPPED = ("annual", "shard")
"""Kinds of jobs that are bounded only by scope, not by page count or depth."""

OF_SOURCE: Final = "source_id IS NOT NULL"
"""Selects the jobs of sources in plain SQL, as `jobs.store.of_source` does."""


OPERATIONS_AT_ONCE: Final = 2
"""Concurrent operations of a worker, beside its crawls: a long verification must not delay an import."""


class OperationKind(StrEnum):
    """Kinds of operations: work of minutes or hours on the archive, which a worker does in a process of its own.

    An import of an upload is not a job of kind `import` of a source: that one groups imported files, and never runs.
    """

    IMPORT = "import"
    VERIFY = "verify"
    REBUILD_INDEX = "rebuild_index"
    REBUILD_SEARCH = "rebuild_search"
    REPORT_EDITION = "report_edition"
    FREEZE_EDITION = "freeze_edition"
    VERIFY_EDITION = "verify_edition"
    COMPARE_EDITIONS = "compare_editions"
