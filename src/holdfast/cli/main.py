"""`holdfast`: finds the command's module by its name and runs it, so that `--help` loads nothing else."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from typing import NamedTuple

from holdfast import __version__


class Command(NamedTuple):
    """One command: where it lives, and what it does in one line."""

    module: str
    summary: str


COMMANDS = {
    "crawl": Command("crawl", "Crawl a website into sealed WARC files, politely; the same command again resumes."),
    "status": Command("status", "Show running and recent executions."),
    "stop": Command("stop", "Drain a running crawl and keep it, or discard it with --cancel."),
    "report": Command("report", "Account for every URL of an execution: outcomes, reasons, omissions."),
    "frontier": Command("frontier", "Look at what is queued: stats, list, recover."),
    "url": Command("url", "Show what an address means here: normalised form, key, hash, group, priority."),
    "robots": Command("robots", "Ask robots.txt about an address: the rule and the line that decide."),
    "index": Command("index", "Index sealed WARC files: snapshots, documents, links."),
    "index-job": Command("index_job", "Index one execution again; ids stay the same."),
    "snapshot": Command("snapshot", "Show a snapshot, print its content, hide it: show, cat, hide, unhide."),
    "warc": Command("warc", "List WARC files, take a record out of one: list, extract."),
    "import": Command("imports", "Import WARC, ARC and WACZ files of other writers and index them."),
    "search": Command("search", "Find captures by words or by address."),
    "search-index": Command("search_index", "Look after the search index: drain, rebuild, status."),
    "recompute-page-signals": Command("signals", "Compute in-links and PageRank anew, for ranking."),
    "compute-changes": Command("compute_changes", "Compare captures with those before them: new, updated, gone…"),
    "changes": Command("changes", "Look at what changed: list, compare, site."),
    "export": Command("export", "Take snapshots, changes, an index or a WACZ package out of the archive."),
    "verify": Command("verify", "Check WARC files: members, lengths, digests, truncation."),
    "api": Command("api", "Serve search, replay, changes and exports over HTTP until Ctrl-C."),
    "settings": Command("settings", "Print the settings in force."),
    "demo": Command("demo", "Crawl a small bundled site twice, index and compare it, and serve the archive."),
}


def usage() -> str:
    """Return the help page."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {command.summary}" for name, command in COMMANDS.items()]
    return "\n".join(
        [
            "holdfast keeps websites: it crawls them politely and stores what it fetched as WARC.",
            "",
            "Usage: holdfast COMMAND [ARGUMENTS]",
            "",
            *lines,
            "",
            "Start with:  holdfast crawl https://example.org --contact you@example.org",
            "Help on one: holdfast COMMAND --help",
        ]
    )


def main() -> None:
    """Run the command that the arguments name."""
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(usage())
        sys.exit(0 if arguments else 2)
    if arguments[0] == "--version":
        print(f"holdfast {__version__}")
        return
    command = COMMANDS.get(arguments[0])
    if command is None:
        print(f"holdfast: there is no command {arguments[0]!r}; see: holdfast --help", file=sys.stderr)
        sys.exit(2)
    gc.disable()  # a tenth of loading is spent looking for garbage that modules do not make
    module = importlib.import_module(f"holdfast.cli.{command.module}")
    runner = importlib.import_module("holdfast.cli.runner")
    gc.freeze()
    gc.enable()
    try:
        runner.run(module.app_command, f"holdfast {arguments[0]}", arguments[1:])
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    finally:
        gc.freeze()  # or the interpreter walks through all of it once more before it ends: 0.28 s after a crawl


if __name__ == "__main__":
    main()
