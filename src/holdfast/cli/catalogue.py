"""Every command of `holdfast` in one table, and its help pages. Loads no command: `holdfast --help` reads only this.

To register a command, add one line to COMMANDS, in its group:

    "feed": Command("feed", "Feeds and sitemaps that are polled: list, add, poll.", HelpGroup.RUN),
    "poll-feeds": Command("feed", "Poll the feeds that are due.", HelpGroup.FLAT, "poll"),

The module is a file of cli/ whose `app_command` is a function, or a Typer with commands of its own; `module:name` is
one of several in a file. A fourth value names a command of a Typer: the name is then an alias, as `list-jobs` is of
`job list`. A noun that people need on the first screen has a shown group (keep that screen to 40 lines: a test does);
everything else is FLAT and stands in `holdfast help all`. Each docstring of a command ends in `Example: holdfast …`;
the runner adds the exit codes.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class HelpGroup(StrEnum):
    """Where a command stands in the help, by its heading."""

    CRAWL = "Crawl"
    FIND = "Find, read, compare"
    RUN = "Run for years"
    UPKEEP = "Look after it"
    FLAT = "Also available"


class Command(NamedTuple):
    """One command: the module it lives in, what it does in one line, its group, and what it is an alias of."""

    module: str
    summary: str
    group: HelpGroup = HelpGroup.FLAT
    subcommand: str | None = None


# Commands of a group that are typed often and need little, by the group's module: each in a file that loads less.
# Loading is nearly all of the time that a short command takes: a list alone takes a fifth less than its group.
APART = {
    ("job", "list"): "lists:job_list",
    ("job", "show"): "job_show",
    ("feed", "list"): "lists:feed_list",
}

FOR_STRANGERS = {"api", "mcp"}
"""Modules of commands that answer others: they read what is public until a request shows who asks."""

STARTS_ARCHIVE = {
    "crawl",
    "import",
    "demo",
    "serve",
    "api",
    "index",
    "live fetch",
    "source seed",
    "source create",
    "source import",
    "scheduler sync",
    "worker start",
    "worker schedule",
    "domain set",
    "frontier add",
    "webhook add",
    "user add",
    "tool run",
    "tool register",
    "tool canary",
    "database migrate",
}
"""Commands that may be an archive's first, by their nouns; the others refuse a directory that holds no archive."""

COMMANDS = {
    "crawl": Command("crawl", "Crawl a website into sealed WARC files, politely; again resumes.", HelpGroup.CRAWL),
    "status": Command("status", "Show running and recent executions.", HelpGroup.CRAWL),
    "stop": Command(
        "crawl:stop_command", "End a running crawl and keep it (--cancel: discard); see pause.", HelpGroup.CRAWL
    ),
    "pause": Command("pause", "Let a running crawl wait; nothing is asked."),
    "resume": Command("pause:resume_command", "Let a paused crawl go on where it was."),
    "report": Command("report", "Account for every URL of an execution: outcomes, reasons.", HelpGroup.CRAWL),
    "import": Command(
        "index:import_command", "Import and index WARC, ARC and WACZ files of other writers.", HelpGroup.CRAWL
    ),
    "demo": Command("demo", "Make an archive of an invented town's website, and serve it.", HelpGroup.CRAWL),
    "search": Command("search", "Find captures by words or by address.", HelpGroup.FIND),
    "terms": Command("search:terms", "Count words over the years."),
    "linked-hosts": Command("search:linked_hosts_command", "Hosts that are linked to and not kept."),
    "snapshot": Command("snapshot", "A capture: show, cat, hide, unhide.", HelpGroup.FIND),
    "noise": Command("noise", "Captures that show no page: list, mark, clear."),
    "page": Command("snapshot:page", "Pages without a body: search by keyword, show."),
    "changes": Command("changes", "What changed: list, compare, site, compute.", HelpGroup.FIND),
    "live": Command("live", "Pages as they are now: compare, fetch."),
    "export": Command("export", "Take snapshots, changes, an index or a WACZ package out.", HelpGroup.FIND),
    "serve": Command("serve", "Serve the archive and run its jobs: API, scheduler, worker.", HelpGroup.FIND),
    "api": Command("api", "Serve search, replay and exports over HTTP."),
    "mcp": Command("mcp", "Read-only tools for assistants (MCP)."),
    "source": Command("source", "What is kept: seed, list, create, edit, enable, import, export.", HelpGroup.RUN),
    "job": Command("job", "When it is crawled: list, create, pause, retry, run-now, logs.", HelpGroup.RUN),
    "scheduler": Command(
        "worker:scheduler", "The schedule: metrics, distribution, preview, rebalance, sync.", HelpGroup.RUN
    ),
    "worker": Command("worker", "What runs jobs: start, schedule, recover-stale.", HelpGroup.RUN),
    "edition": Command("edition", "Annual editions: schedule, status, report, freeze, compare.", HelpGroup.RUN),
    "feed": Command("feed", "Feeds and sitemaps that are polled: list, add, poll, discover.", HelpGroup.RUN),
    "frontier": Command("frontier", "What is queued: stats, urls, add, clear, recover.", HelpGroup.UPKEEP),
    "domain": Command("domain", "How a domain is treated: list, set, pause."),
    "webhook": Command("webhook", "Systems that are told of events: add, list."),
    "operation": Command("operation", "Work that takes long: list, show, cancel."),
    "upload": Command("operation:upload", "Files sent to be imported: list, show, end."),
    "explain": Command("explain", "Everything that is known of an address, and why.", HelpGroup.UPKEEP),
    "url": Command("url", "What an address means here: key, hash."),
    "robots": Command("robots", "Ask robots.txt about an address: the rule and line that decide.", HelpGroup.UPKEEP),
    "index": Command("index", "Index sealed WARC files: snapshots, documents, links.", HelpGroup.UPKEEP),
    "search-index": Command("search:search_index", "The search index: drain, rebuild, status.", HelpGroup.UPKEEP),
    "warc": Command("warc", "WARC files: list, extract a record.", HelpGroup.UPKEEP),
    "archive": Command("archive", "Derived rows: index, rebuild-pages, dedupe, check-replay.", HelpGroup.UPKEEP),
    "verify": Command(
        "warc:verify_command", "Check WARC files: members, lengths, digests, truncation.", HelpGroup.UPKEEP
    ),
    "storage": Command("storage", "What is on disk: stores, free, verify."),
    "tool": Command("tool", "Crawls with zimit by hand: check, run (see also storage, watch).", HelpGroup.UPKEEP),
    "watch": Command("watch", "Crawls that run for weeks: status, recover."),
    "audit": Command("audit:audit_command", "Who did what, when, from where."),
    "problem-report": Command("audit:problem_report", "What readers told us: list, show, edit."),
    "user": Command("user", "Accounts: list, add, role, disable, password."),
    "token": Command("user:token", "Tokens of users: list, create, revoke."),
    "settings": Command("settings", "Print the settings in force.", HelpGroup.UPKEEP),
    "check-env": Command("checks:environment_command", "Look at this machine: disk, settings, tools."),
    "database": Command("checks:database", "The database: check, migrate.", HelpGroup.UPKEEP),
    "check-db": Command("checks:database", "Ask the database: its schema, what it lacks.", HelpGroup.FLAT, "check"),
    "migrate": Command("checks:database", "Show and run the migrations of the schema.", HelpGroup.FLAT, "migrate"),
    "create-job": Command("job", "Make the crawl job of a source.", HelpGroup.FLAT, "create"),
    "list-jobs": Command("job", "List jobs.", HelpGroup.FLAT, "list"),
    "show-job": Command("job", "Show a job.", HelpGroup.FLAT, "show"),
    "retry-job": Command("job", "Give a failed job or index another try.", HelpGroup.FLAT, "retry"),
    "validate-job-config": Command("job", "Check a job's configuration.", HelpGroup.FLAT, "validate-config"),
    "patch-job-config": Command("job", "Change a job's tool options and policy.", HelpGroup.FLAT, "patch-config"),
    "reset-retry-count": Command("job", "Give jobs their retry budget back.", HelpGroup.FLAT, "reset-retries"),
    "sync-enabled-sources": Command("worker:scheduler", "Give every enabled source a job.", HelpGroup.FLAT, "sync"),
    "schedule-annual": Command("edition", "Give sources their crawl of the year.", HelpGroup.FLAT, "schedule"),
    "annual-status": Command("edition", "Show how a campaign stands.", HelpGroup.FLAT, "status"),
    "salvage-annual-edition": Command("edition", "Take jobs of the year into an edition.", HelpGroup.FLAT, "salvage"),
    "plan-annual-shards": Command("edition", "Give seeds shards of their own.", HelpGroup.FLAT, "plan"),
    "annual-edition-report": Command("edition", "Account for an edition.", HelpGroup.FLAT, "report"),
    "accept-annual-shard-gap": Command("edition", "Accept what a shard lacks.", HelpGroup.FLAT, "accept-gap"),
    "seed-sources": Command("source", "Add the sources that ship with holdfast.", HelpGroup.FLAT, "seed"),
    "start-worker": Command("worker", "Run jobs that are due, index and compare.", HelpGroup.FLAT, "start"),
    "start-scheduler": Command("worker", "Only queue what is due.", HelpGroup.FLAT, "schedule"),
    "recover-stale-jobs": Command("worker", "Free jobs whose worker fell silent.", HelpGroup.FLAT, "recover-stale"),
    "reconcile-completed-indexing": Command(
        "worker", "Index what was crawled outside a worker.", HelpGroup.FLAT, "reconcile-indexing"
    ),
    "check-archive-tool": Command("tool", "Ask whether archive-tool can be started.", HelpGroup.FLAT, "check"),
    "run-job": Command("tool", "Run archive-tool at once, without a job.", HelpGroup.FLAT, "run"),
    "run-db-job": Command("tool", "Run one execution of a job here and now.", HelpGroup.FLAT, "run-job"),
    "register-job-dir": Command("tool", "Take in a directory that archive-tool filled.", HelpGroup.FLAT, "register"),
    "create-canary-job": Command("tool", "Make a small job that tries everything.", HelpGroup.FLAT, "canary"),
    "job-storage-report": Command("storage", "Weigh the directories of jobs.", HelpGroup.FLAT, "report"),
    "verify-warcs": Command("storage", "Verify the WARC files of a job.", HelpGroup.FLAT, "verify"),
    "verify-warc-manifest": Command("storage", "Compare files with their manifest.", HelpGroup.FLAT, "verify-manifest"),
    "data-integrity-report": Command("storage", "Judge a job's storage as a whole.", HelpGroup.FLAT, "integrity"),
    "consolidate-warcs": Command("storage", "Give WARC files their stable names.", HelpGroup.FLAT, "consolidate"),
    "cleanup-job": Command("storage", "Remove what a job left temporarily.", HelpGroup.FLAT, "cleanup"),
    "cleanup-old-jobs": Command("storage", "Clean up old jobs while the disk is full.", HelpGroup.FLAT, "sweep"),
    "compact-warcs": Command("storage", "Stage copies without video and audio.", HelpGroup.FLAT, "compact"),
    "reset-crawl-state": Command("storage", "Forget where a crawl stopped.", HelpGroup.FLAT, "reset"),
    "watchdog-status": Command("watch", "Show every crawl that runs.", HelpGroup.FLAT, "status"),
    "auto-recover": Command("watch", "Restart crawls that do not get on.", HelpGroup.FLAT, "recover"),
    "storage-watchdog": Command("watch", "Free paths whose storage is dead.", HelpGroup.FLAT, "storage"),
    "metrics-textfile": Command("watch", "Write figures for a node exporter.", HelpGroup.FLAT, "metrics"),
    "reconcile-annual-tool-options": Command(
        "watch", "Raise annual jobs' options.", HelpGroup.FLAT, "reconcile-options"
    ),
    "index-job": Command("archive", "Index a job's run again; ids stay the same.", HelpGroup.FLAT, "index"),
    "recompute-page-signals": Command("archive", "Compute links and PageRank anew.", HelpGroup.FLAT, "page-signals"),
    "compute-changes": Command("changes", "Compare captures with those before them.", HelpGroup.FLAT, "compute"),
    "compare-live": Command("live", "Compare a capture with the live page.", HelpGroup.FLAT, "compare"),
    "fetch": Command("live", "Fetch one page now and print its text.", HelpGroup.FLAT, "fetch"),
    "completion": Command("completion", "Print what lets a shell complete commands."),
    "list-warcs": Command("warc", "List WARC files.", HelpGroup.FLAT, "list"),
    "backfill-search-vector": Command("search:search_index", "Make the search index anew.", HelpGroup.FLAT, "rebuild"),
    "backfill-normalized-url-groups": Command("archive", "Give pages their group.", HelpGroup.FLAT, "backfill-groups"),
    "rebuild-pages": Command("archive", "Set the groups that people browse right.", HelpGroup.FLAT, "rebuild-pages"),
    "refresh-snapshot-metadata": Command("archive", "Read WARC files again.", HelpGroup.FLAT, "refresh-metadata"),
    "backfill-outlinks": Command("archive", "Read links of pages that have none.", HelpGroup.FLAT, "backfill-outlinks"),
    "dedupe-snapshots": Command("archive", "Settle which captures are duplicates.", HelpGroup.FLAT, "dedupe"),
    "restore-deduped-snapshots": Command(
        "archive", "Let duplicates count again.", HelpGroup.FLAT, "restore-duplicates"
    ),
    "replay-index-job": Command("archive", "Check that a job can be replayed.", HelpGroup.FLAT, "check-replay"),
    "replay-reconcile": Command("archive", "Check that all can be replayed.", HelpGroup.FLAT, "reconcile-replay"),
    "replay-generate-previews": Command("archive", "Make previews of sources.", HelpGroup.FLAT, "generate-previews"),
    "probe-browser-fetch": Command("tool", "Ask for a page with our client and a browser.", HelpGroup.FLAT, "probe"),
}

_COLUMNS = 80
_OPENING = """holdfast keeps websites: crawled politely, stored as WARC, searched, replayed.

Usage: holdfast COMMAND [ARGUMENTS]
"""
_CLOSING = """Start with:  holdfast crawl https://example.org --contact you@example.org
Help on one: holdfast COMMAND --help"""


def usage(*, everything: bool = False) -> str:
    """Return the help page: one screen, or with every name there is and what an alias stands for."""
    lines = [_OPENING]
    for group in HelpGroup:
        rows = {name: command for name, command in COMMANDS.items() if command.group is group}
        if everything or group is not HelpGroup.FLAT:
            width = max(map(len, rows))
            lines += [f"{group}:", *(line for name, command in rows.items() for line in _rows(name, command, width))]
    if not everything:
        flat = sum(command.group is HelpGroup.FLAT for command in COMMANDS.values())
        lines += [f"{HelpGroup.FLAT}: {flat} flat names, as {_some_flat_names()}: holdfast help all"]
    return "\n".join([*lines, "", _CLOSING])


def _rows(name: str, command: Command, width: int) -> list[str]:
    """Return the row of a command; what it is an alias of stands below where one row has no room for both."""
    row = f"  {name:<{width}}  {command.summary}"
    if command.subcommand is None:
        return [row]
    alias = f"({noun_of(command)} {command.subcommand})"
    if len(row) + 1 + len(alias) <= _COLUMNS:
        return [f"{row} {alias}"]
    return [row, f"{'':{width + 4}}{alias}"]


def noun_of(command: Command) -> str:
    """Return the name under which a command's module is known: `job` for `list-jobs`; its file if it has none."""
    for name, other in COMMANDS.items():
        if other.module == command.module and other.subcommand is None:
            return name
    return command.module


def _some_flat_names() -> str:
    return ", ".join(name for name in ("list-jobs", "migrate") if name in COMMANDS)
