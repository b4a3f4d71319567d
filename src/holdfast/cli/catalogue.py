"""Table of all commands of `holdfast`, and its help pages. Imports no command: `holdfast --help` reads only this.

To register a command, add one line to COMMANDS, in its group:

    "feed": Command("feed", "Feeds and sitemaps that are polled: list, add, poll.", HelpGroup.RUN),

The module is a file of cli/: its command is the function of its name, or `app_command`, a Typer with commands of
its own; `module:name` is one of several in a file. Older names, such as `list-jobs` for `job list`, are in
`holdfast.old_spellings`. A noun that people need on the first screen has a visible group (keep that screen to
40 lines: a test checks it); everything else is FLAT and is listed by `holdfast help all`. Every command declares
an example; the runner adds the exit codes.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from holdfast.old_spellings import OLD_COMMANDS


class HelpGroup(StrEnum):
    CRAWL = "Crawl"
    FIND = "Find, read, compare"
    RUN = "Run for years"
    UPKEEP = "Look after it"
    FLAT = "Also available"


class Command(NamedTuple):
    """One command: its module, its summary, its help group, and the command that it is an alias of."""

    module: str
    summary: str
    group: HelpGroup = HelpGroup.FLAT
    subcommand: str | None = None


# Frequent small commands of a group, by the group's module: each is in a file that loads less. A short command spends
# nearly all of its time on loading: a list by itself takes a fifth less than with its group.
APART = {
    ("job", "list"): "lists:job_list",
    ("job", "show"): "job_show",
    ("feed", "list"): "lists:feed_list",
}

FOR_STRANGERS = {"api", "mcp"}
"""Modules of commands that serve others: they see only public content until a request authenticates."""

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
"""Commands that may create an archive; all others reject a directory without one."""

COMMANDS = {
    "crawl": Command("crawl", "Crawl a website into sealed WARC files, politely; again resumes.", HelpGroup.CRAWL),
    "status": Command("status", "Show running and recent executions.", HelpGroup.CRAWL),
    "stop": Command("crawl:stop", "End a running crawl and keep it (--cancel: discard); see pause.", HelpGroup.CRAWL),
    "pause": Command("pause", "Let a running crawl wait; nothing is asked."),
    "resume": Command("pause:resume", "Let a paused crawl go on where it was."),
    "report": Command("report", "Account for every URL of an execution: outcomes, reasons.", HelpGroup.CRAWL),
    "import": Command("index:import_", "Import and index WARC, ARC and WACZ files of other writers.", HelpGroup.CRAWL),
    "demo": Command("demo", "Make an archive of an invented town's website, and serve it.", HelpGroup.CRAWL),
    "search": Command("search", "Find captures by words or by address.", HelpGroup.FIND),
    "terms": Command("search:terms", "Count words over the years."),
    "linked-hosts": Command("search:linked_hosts_", "Hosts that are linked to and not kept."),
    "snapshot": Command("snapshot", "A capture: show, cat, hide, unhide.", HelpGroup.FIND),
    "noise": Command("snapshot:noise", "Captures that show no page: list, mark, clear."),
    "page": Command("snapshot:page", "Pages without a body: search by keyword, show."),
    "changes": Command("changes", "What changed: list, compare, site, compute.", HelpGroup.FIND),
    "live": Command("live", "Pages as they are now: compare, fetch."),
    "export": Command("export", "Take snapshots, changes, an index or a WACZ package out.", HelpGroup.FIND),
    "serve": Command("serve", "Serve the archive and run its jobs: API, scheduler, worker.", HelpGroup.FIND),
    "api": Command("api", "Serve search, replay and exports over HTTP."),
    "mcp": Command("mcp", "Read-only tools for assistants (MCP)."),
    "source": Command("source", "Sources: seed, list, create, edit, enable, import, export.", HelpGroup.RUN),
    "job": Command("job", "Schedules of sources: list, create, pause, retry, run-now, logs.", HelpGroup.RUN),
    "scheduler": Command(
        "worker:scheduler", "The schedule: metrics, distribution, preview, rebalance, sync.", HelpGroup.RUN
    ),
    "worker": Command("worker", "Run jobs: start, schedule, recover-stale.", HelpGroup.RUN),
    "edition": Command("edition", "Annual editions: schedule, status, report, freeze, compare.", HelpGroup.RUN),
    "feed": Command("feed", "Feeds and sitemaps that are polled: list, add, poll, discover.", HelpGroup.RUN),
    "frontier": Command("frontier", "Queued pages: stats, urls, add, clear, recover.", HelpGroup.UPKEEP),
    "domain": Command("domain", "How a domain is treated: list, set, pause."),
    "webhook": Command("webhook", "Systems that receive events: add, list."),
    "operation": Command("operation", "Work that takes long: list, show, cancel."),
    "upload": Command("operation:upload", "Files sent to be imported: list, show, end."),
    "explain": Command("explain", "All facts about an address, and why.", HelpGroup.UPKEEP),
    "url": Command("url", "What an address means here: key, hash."),
    "robots": Command("robots", "Ask robots.txt about an address: the rule and line that decide.", HelpGroup.UPKEEP),
    "index": Command("index", "Index sealed WARC files: snapshots, documents, links.", HelpGroup.UPKEEP),
    "search-index": Command("search:search_index", "The search index: drain, rebuild, status.", HelpGroup.UPKEEP),
    "warc": Command("warc", "WARC files: list, extract a record.", HelpGroup.UPKEEP),
    "archive": Command("archive", "Derived rows: index, rebuild-pages, dedupe, check-replay.", HelpGroup.UPKEEP),
    "verify": Command("warc:verify", "Check WARC files: members, lengths, digests, truncation.", HelpGroup.UPKEEP),
    "storage": Command("storage", "Disk: stores, free, verify."),
    "tool": Command("tool", "Crawls with zimit by hand: check, run (see also storage, watch).", HelpGroup.UPKEEP),
    "watch": Command("watch", "Crawls that run for weeks: status, recover."),
    "audit": Command("audit", "Who did what, when, from where."),
    "problem-report": Command("audit:problem_report", "Reports of readers: list, show, edit."),
    "user": Command("user", "Accounts: list, add, role, disable, password."),
    "token": Command("user:token", "Tokens of users: list, create, revoke."),
    "settings": Command("settings", "Print the settings in force.", HelpGroup.UPKEEP),
    "check-env": Command("checks:check_env", "Check this machine: disk, settings, tools."),
    "database": Command("checks:database", "The database: check, migrate.", HelpGroup.UPKEEP),
    "completion": Command("completion", "Print what lets a shell complete commands."),
}


for _name, (_target, _summary) in OLD_COMMANDS.items():
    _noun, _, _subcommand = _target.partition(" ")
    COMMANDS[_name] = Command(COMMANDS[_noun].module, _summary, HelpGroup.FLAT, _subcommand)

_COLUMNS = 80
_OPENING = """holdfast keeps websites: crawled politely, stored as WARC, searched, replayed.

Usage: holdfast COMMAND [ARGUMENTS]
"""
_CLOSING = """Start with:  holdfast crawl https://example.org --contact you@example.org
Help on one: holdfast COMMAND --help"""


def usage(*, everything: bool = False) -> str:
    """Return the help page: one screen, or with every name and the commands that aliases stand for."""
    lines = [_OPENING]
    for group in HelpGroup:
        rows = {name: command for name, command in COMMANDS.items() if command.group is group}
        if everything or group is not HelpGroup.FLAT:
            width = max(map(len, rows))
            lines += [f"{group}:", *(line for name, command in rows.items() for line in _rows(name, command, width))]
    if not everything:
        flat = sum(command.group is HelpGroup.FLAT for command in COMMANDS.values())
        lines += [f"{HelpGroup.FLAT}: {flat} flat names, as list-jobs, migrate: holdfast help all"]
    return "\n".join([*lines, "", _CLOSING])


def _rows(name: str, command: Command, width: int) -> list[str]:
    row = f"  {name:<{width}}  {command.summary}"
    if command.subcommand is None:
        return [row]
    alias = f"({noun_of(command)} {command.subcommand})"
    if len(row) + 1 + len(alias) <= _COLUMNS:
        return [f"{row} {alias}"]
    return [row, f"{'':{width + 4}}{alias}"]


def noun_of(command: Command) -> str:
    """Return the name of a command's module: `job` for `list-jobs`; the file's name if it has no other."""
    for name, other in COMMANDS.items():
        if other.module == command.module and other.subcommand is None:
            return name
    return command.module
