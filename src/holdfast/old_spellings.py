"""Names promised by older documents that differ from the current ones: the only place that knows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_ORIGIN: Final = {"backend": "captureBackend", "fidelity": "captureFidelity"}
_FACTS: Final = {
    **_ORIGIN,
    "captured_at": "captureTimestamp",
    "status": "statusCode",
    "media_type": "mimeType",
    "execution_id": "jobId",
    "payload_digest": "digest",
}
_CAPTURE: Final = {**_FACTS, "id": "snapshotId"}
_SPAN: Final = {"since": "from", "until": "to"}
_ANYWHERE: Final[Mapping[str, Mapping[str, str]]] = {"TimeSeries": _SPAN, "Activity": _SPAN}

CAMEL_PATHS: Final = ("/api/v1/executions/{id}/requeue",)
"""Routes below /api/v1 whose JSON is in camel case."""
_PLANNED: Final = {"step": "action", "at": "queuedAt"}

OLD_FIELDS: Final[Mapping[str, Mapping[str, Mapping[str, str]]]] = {
    "camel": {
        **_ANYWHERE,
        "PlanEntry": _PLANNED,
        "ChangeEvent": {
            "id": "changeId",
            "type": "changeType",
            "group": "normalizedUrlGroup",
            "from_captured_at": "fromCaptureTimestamp",
            "to_captured_at": "toCaptureTimestamp",
            "from_execution_id": "fromJobId",
            "to_execution_id": "toJobId",
            "ratio": "changeRatio",
        },
        "Report": {"id": "reportId"},
        "HistoryCapture": _CAPTURE,
        "Neighbour": _CAPTURE,
        "CaptureView": _CAPTURE,
        "LatestCapture": _CAPTURE,
        "Provenance": _ORIGIN,
        "SnapshotDetail": {**_FACTS, "url": "originalUrl"},
        "NoiseCapture": {**_CAPTURE, "kind": "noise", "url": "originalUrl"},
        "PageRecord": {
            "page_id": "id",
            "source": "sourceCode",
            "media_type": "contentType",
            "fetched_at": "crawledAt",
            "duration_ms": "crawlDurationMs",
            "error": "errorMessage",
        },
    },
    "snake": {**_ANYWHERE, "AddedPlace": {"source_code": "source"}},
    "command": {
        "WarcFileRecord": {"execution_id": "execution", "index_state": "index", "record_count": "records"},
        **_ANYWHERE,
        "AddedPlace": {"source_code": "source", "status": "as_what"},
        "DomainRecord": {"crawl_delay": "delay_s", "leased": "is_held"},
        "DomainSettings": {"crawl_delay": "delay_s"},
        "OperationRecord": {"progress": ""},
        "QueueInExecution": {"pending": "open", "completed": "succeeded"},
        "StoreSize": {"whole": "is_whole"},
        "TableSize": {"table": "name"},
        "UploadRecord": {"operation_id": "operation"},
        "FeedRecord": {"trouble": "last_error_type", "errors_in_a_row": "consecutive_errors", "error": "last_error"},
        "ExecutionStatus": {"execution_id": "execution", "run_seconds": "seconds", "running_condition": "condition"},
        "FeedItemRecord": {"execution_id": "execution"},
        "PlanEntry": _PLANNED,
        "Plan": {"year": "campaignYear"},
        "EditionRecord": {
            "source_code": "source",
            "intended_url_count": "intended_urls",
            "captured_url_count": "captured_urls",
            "failed_url_count": "failed_urls",
            "missing_url_count": "missing_urls",
            "excluded_url_count": "excluded_urls",
            "shard_count": "shards",
        },
        "AdminEditionDetail": {"shards": "shard_list"},
    },
}
"""JSON names of fields, by spelling and record class; "" replaces the field by the fields of its value.

Applies to subclasses of the record too.
"""

REPEATED_FIELDS: Final[Mapping[str, Mapping[str, str]]] = {
    "JobRecord": {
        "source": "source_code",
        "type": "kind",
        "status": "state",
        "last_run_at": "last_execution_at",
        "retries": "current_retry_count",
        "error": "error_message",
    },
    "ExecutionRecord": {
        "execution_number": "number",
        "status": "state",
        "index_status": "index_state",
        "error_message": "error",
        "completed_at": "finished_at",
        "cpu_time_ms": "cpu_ms",
        "log_line_count": "log_lines",
    },
}
"""Additional JSON names by record class, each with the field that it repeats. Applies to subclasses too."""

OLD_COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "check-db": ("database check", "Ask the database: its schema, what it lacks."),
    "migrate": ("database migrate", "Show and run the migrations of the schema."),
    "create-job": ("job create", "Make the crawl job of a source."),
    "list-jobs": ("job list", "List jobs."),
    "show-job": ("job show", "Show a job."),
    "retry-job": ("job retry", "Give a failed job or index another try."),
    "validate-job-config": ("job validate-config", "Check a job's configuration."),
    "patch-job-config": ("job patch-config", "Change a job's tool options and policy."),
    "reset-retry-count": ("job reset-retries", "Give jobs their retry budget back."),
    "sync-enabled-sources": ("scheduler sync", "Give every enabled source a job."),
    "schedule-annual": ("edition schedule", "Give sources their crawl of the year."),
    "annual-status": ("edition status", "Show how a campaign stands."),
    "salvage-annual-edition": ("edition salvage", "Take jobs of the year into an edition."),
    "plan-annual-shards": ("edition plan", "Give seeds shards of their own."),
    "annual-edition-report": ("edition report", "Account for an edition."),
    "accept-annual-shard-gap": ("edition accept-gap", "Accept what a shard lacks."),
    "seed-sources": ("source seed", "Add the sources that ship with holdfast."),
    "start-worker": ("worker start", "Run jobs that are due, index and compare."),
    "start-scheduler": ("worker schedule", "Only queue due jobs."),
    "recover-stale-jobs": ("worker recover-stale", "Free jobs whose worker fell silent."),
    "reconcile-completed-indexing": ("worker reconcile-indexing", "Index runs that were crawled outside a worker."),
    "check-archive-tool": ("tool check", "Ask whether archive-tool can be started."),
    "run-job": ("tool run", "Run archive-tool at once, without a job."),
    "run-db-job": ("tool run-job", "Run one execution of a job here and now."),
    "register-job-dir": ("tool register", "Take in a directory that archive-tool filled."),
    "create-canary-job": ("tool canary", "Make a small job that tries everything."),
    "job-storage-report": ("storage report", "Weigh the directories of jobs."),
    "verify-warcs": ("storage verify", "Verify the WARC files of a job."),
    "verify-warc-manifest": ("storage verify-manifest", "Compare files with their manifest."),
    "data-integrity-report": ("storage integrity", "Judge a job's storage as a whole."),
    "consolidate-warcs": ("storage consolidate", "Give WARC files their stable names."),
    "cleanup-job": ("storage cleanup", "Remove what a job left temporarily."),
    "cleanup-old-jobs": ("storage sweep", "Clean up old jobs while the disk is full."),
    "compact-warcs": ("storage compact", "Stage copies without video and audio."),
    "reset-crawl-state": ("storage reset", "Forget where a crawl stopped."),
    "watchdog-status": ("watch status", "Show every crawl that runs."),
    "auto-recover": ("watch recover", "Restart crawls that do not get on."),
    "storage-watchdog": ("watch storage", "Free paths whose storage is dead."),
    "metrics-textfile": ("watch metrics", "Write figures for a node exporter."),
    "reconcile-annual-tool-options": ("watch reconcile-options", "Raise annual jobs' options."),
    "index-job": ("archive index", "Index a job's run again; ids stay the same."),
    "recompute-page-signals": ("archive page-signals", "Recompute links and PageRank."),
    "compute-changes": ("changes compute", "Compare captures with those before them."),
    "compare-live": ("live compare", "Compare a capture with the live page."),
    "fetch": ("live fetch", "Fetch one page now and print its text."),
    "list-warcs": ("warc list", "List WARC files."),
    "backfill-search-vector": ("search-index rebuild", "Rebuild the search index."),
    "backfill-normalized-url-groups": ("archive backfill-groups", "Give pages their group."),
    "rebuild-pages": ("archive rebuild-pages", "Set the groups that people browse right."),
    "refresh-snapshot-metadata": ("archive refresh-metadata", "Read WARC files again."),
    "backfill-outlinks": ("archive backfill-outlinks", "Read links of pages that have none."),
    "dedupe-snapshots": ("archive dedupe", "Settle which captures are duplicates."),
    "restore-deduped-snapshots": ("archive restore-duplicates", "Let duplicates count again."),
    "replay-index-job": ("archive check-replay", "Check that a job can be replayed."),
    "replay-reconcile": ("archive reconcile-replay", "Check that all can be replayed."),
    "replay-generate-previews": ("archive generate-previews", "Make previews of sources."),
    "probe-browser-fetch": ("tool probe", "Ask for a page with our client and a browser."),
}
"""Old flat command names: the current command, and its summary for the help."""

OLD_PATHS: Final[Mapping[str, tuple[str, ...]]] = {
    "GET /api/session": ("GET /api/auth/me",),
    "POST /api/session": ("POST /api/auth/login",),
    "DELETE /api/session": ("POST /api/auth/logout",),
    "GET /openapi.json": ("GET /api/openapi.json",),
    "GET /api/crawler/events": ("GET /sse/crawler/events",),
    "GET /api/events": ("GET /sse/events",),
    "GET /api/health/events": ("GET /sse/health/events",),
    "GET /api/metrics/events": ("GET /sse/metrics/events",),
    "GET /api/v1/jobs/{id}/logs/stream/v2": ("GET /api/v1/jobs/{id}/logs/stream",),
    "POST /api/v1/fetch": ("POST /api/internal/v1/fetch",),
    "GET /api/executions/{id}/wacz": ("GET /api/executions/{id}.wacz",),
    "HEAD /api/executions/{id}/wacz": ("HEAD /api/executions/{id}.wacz",),
    "GET /cdx": ("GET /cdx/search/cdx",),
}
"""Additional paths by method and path of a route. The function is the same."""
OLD_LOGIN_FIELD: Final = "username"
"""The name that an older API has for the field `name` of POST /api/session."""

CAMEL_IN_COMMANDS: Final = frozenset({"DiffHunk", "EditionShard", "PlanEntry"})
"""Records whose fields `--json` also writes in camel case."""
