"""Discarding an execution that was cancelled: its WARC files go, and nothing points to them any more."""

from __future__ import annotations

from holdfast import log
from holdfast.jobs.live.queries import frontier_of
from holdfast.warc import queries as files
from holdfast.warc.manifest import remove_from_manifest
from holdfast.warc.roots import StrayFile, locate
from holdfast.wiring import Ground

_log = log.get()


def discard(ground: Ground, execution_id: int) -> int:
    """Remove an execution's WARC files, and the signals of pages that it saw last; return how many files there were.

    Rows go first, so that nothing ever points at bytes that are gone. A row that names a place where no file of ours
    may lie is struck off, and nothing is removed there.
    """
    with ground.hot.read() as tx:
        rows = files.files_of(tx, execution_id=execution_id)
        frontier_id = frontier_of(tx, execution_id)  # signals are written in its name: a retry has none of its own
    for row in rows:
        ground.frontier.forget_originals(row.id)
        with ground.hot.write() as tx:
            files.discard_file(tx, row.id)
        try:
            path = locate(ground.settings.home, row.path)
        except StrayFile as exc:
            _log.error("discard.file_left", action="discard", message=str(exc))
            continue
        remove_from_manifest(path.parent, row.id)
        path.unlink(missing_ok=True)
        _log.info("discard.removed", file=path.name)
    ground.frontier.forget_signals(frontier_id)
    return len(rows)
