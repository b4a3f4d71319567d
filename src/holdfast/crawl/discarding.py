"""Deletes the files of a discarded run for `recovery.discard`; a separate module because it loads the index."""

from __future__ import annotations

from holdfast import log
from holdfast.index.forgetting import forget_file
from holdfast.jobs.execution_queries import frontier_of
from holdfast.storage.roots import StrayFile, local_path
from holdfast.warc import queries as files
from holdfast.warc.manifest import remove_from_manifest
from holdfast.wiring import Runtime

_log = log.get()


def discard_files(runtime: Runtime, execution_id: int) -> int:
    with runtime.raw_db.read() as tx:
        rows = files.files_of(tx, execution_id=execution_id)
        frontier_id = frontier_of(tx, execution_id)  # signals have its id: a retry has none of its own
    for row in rows:
        # Delete the rows first, so that none ever refers to missing bytes.
        runtime.frontier.forget_originals(row.id)
        forget_file(runtime.raw_db, runtime.clock, row.id)
        try:
            path = local_path(runtime.settings.home, row.file_key)
        except StrayFile as exc:
            _log.error("discard.file_left", action="discard", message=str(exc))
            continue
        remove_from_manifest(path.parent, row.id)
        path.unlink(missing_ok=True)
        _log.info("discard.removed", file=path.name)
    runtime.frontier.forget_signals(frontier_id)
    return len(rows)
