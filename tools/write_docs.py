"""Write docs/api.md, docs/cli.md and docs/settings.md from the code, so that they say what it does: `make docs`."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

from api_page import api_page

from holdfast.cli.catalogue import COMMANDS, Group, noun_of
from holdfast.cli.settings import walk
from holdfast.config import Settings

DOCS = Path(__file__).resolve().parent.parent / "docs"
MAPPED = {
    "HEALTHARCHIVE_ARCHIVE_ROOT": "`HOLDFAST_HOME`",
    "HEALTHARCHIVE_DATABASE_URL": "`HOLDFAST_DATABASE_URL`",
    "HEALTHARCHIVE_LOG_LEVEL": "`HOLDFAST_LOG_LEVEL`",
    "CRAWLER_REQUEST_TIMEOUT, FETCHER_REQUEST_TIMEOUT": "`HOLDFAST_FETCH_DEADLINE_S`",
    "CRAWLER_DELAY": "`HOLDFAST_POLITENESS_DELAY_S`, `--delay`",
    "CRAWLER_MAX_BODY_SIZE": "`HOLDFAST_FETCH_BODY_BYTES`",
    "CRAWLER_HTTP_RETRY_MAX, FETCHER_MAX_RETRIES": "`HOLDFAST_POLITENESS_RETRIES`",
    "CRAWLER_HTTP_RETRY_DELAY": "`HOLDFAST_POLITENESS_RETRY_BASE_S`",
    "FETCHER_USER_AGENT": "`HOLDFAST_USER_AGENT`, `--user-agent`",
    "CRAWLER_RESPECT_ROBOTS_TXT": "`--robots ignore --reason TEXT`, per crawl and audited",
    "HEALTHARCHIVE_ADMIN_TOKEN": "`HOLDFAST_API_ADMIN_TOKEN`",
    "HEALTHARCHIVE_ENV": "`HOLDFAST_API_ENVIRONMENT`",
    "HEALTHARCHIVE_CORS_ORIGINS": "`HOLDFAST_API_CORS_ORIGINS`",
    "HEALTHARCHIVE_REPLAY_BASE_URL": "`HOLDFAST_REPLAY_ORIGIN`",
    "HEALTHARCHIVE_PUBLIC_SITE_URL": "`HOLDFAST_API_SITE_URL`",
    "HEALTHARCHIVE_CHANGE_TRACKING_ENABLED": "`HOLDFAST_API_CHANGES`",
    "HEALTHARCHIVE_EXPORTS_ENABLED": "`HOLDFAST_API_EXPORTS`",
    "HEALTHARCHIVE_EXPORTS_DEFAULT_LIMIT": "`HOLDFAST_API_EXPORTS_DEFAULT_LIMIT`",
    "HEALTHARCHIVE_EXPORTS_MAX_LIMIT": "`HOLDFAST_API_EXPORTS_MAX_LIMIT`",
    "HEALTHARCHIVE_USAGE_METRICS_ENABLED": "`HOLDFAST_API_USAGE`",
    "HEALTHARCHIVE_USAGE_METRICS_WINDOW_DAYS": "`HOLDFAST_API_USAGE_WINDOW_DAYS`",
    "HEALTHARCHIVE_MAX_REQUEST_BODY_SIZE": "`HOLDFAST_API_BODY_BYTES`",
    "HEALTHARCHIVE_MAX_QUERY_STRING_LENGTH": "`HOLDFAST_API_QUERY_CHARS`",
    "HEALTHARCHIVE_RATE_LIMITING_ENABLED": "`HOLDFAST_API_RATE_LIMITING`",
    "CRAWLER_PORT": "`HOLDFAST_API_PORT`, `--port`",
    "FETCHER_MAX_REDIRECTS": "fixed at five",
    "FETCHER_STALE_TIMEOUT": "`HOLDFAST_LEASE_SECONDS`",
    "CRAWLER_MAX_CONCURRENCY, FETCHER_WORKER_COUNT": "`--workers`, `HOLDFAST_ENGINE_DOMAINS`",
}
SETTINGS_INTRO = """# Settings

From `HOLDFAST_*` variables, a `.env` file in the working directory, or a TOML file (`holdfast.toml`, or where
`HOLDFAST_CONFIG` points): `[lease] seconds = 60`. Arguments of a command win over variables, variables over
`.env`, `.env` over TOML. `holdfast settings` prints what is in force. Written by `make docs`; do not edit.
"""
MAPPED_INTRO = """
## Variables of the documents

The variables of the five design documents are not read. What took their place so far:
"""
CLI_INTRO = """# The command line

Exit 0: done. Exit 1: refused, not found or failed, with one line that names the next step. Exit 2: arguments that
do not parse. A crawl that ended and sealed is 0, whatever single pages did. Written by `make docs`; do not edit.
"""
ALIASES_INTRO = "The documents' names of commands work as they are written there; each takes the same options."


def settings_page() -> str:
    """Return the page of all settings."""
    rows = [
        f"| `{name}` | {_default(getattr(group, key))} | {field.description} |"
        for name, group, key, field in walk(Settings(_env_file=None))  # type: ignore[call-arg]
    ]
    mapped = [f"| {old} | {new} |" for old, new in MAPPED.items()]
    head = "| variable | default | meaning |\n|---|---|---|"
    return "\n".join([SETTINGS_INTRO, head, *rows, MAPPED_INTRO, "| theirs | ours |\n|---|---|", *mapped, ""])


def _default(value: object) -> str:
    if value is None or value in ((), []):
        return ""
    return f"`{value}`"


def cli_page() -> str:
    """Return the page of all commands, with the help that they print."""
    parts = [CLI_INTRO]
    for name, command in COMMANDS.items():
        if command.subcommand is not None:
            continue
        parts += [f"## holdfast {name}", "", command.summary, "", "```", _help(name), "```", ""]
        inner = importlib.import_module(f"holdfast.cli.{command.module}").app_command
        for registered in getattr(inner, "registered_commands", None) or []:
            below = registered.name or registered.callback.__name__.replace("_", "-")
            parts += [f"### holdfast {name} {below}", "", "```", _help(name, below), "```", ""]
    return "\n".join([*parts, *_aliases()])


def _aliases() -> list[str]:
    """Return the table of flat names that the documents use, and what each stands for."""
    rows = [
        f"| `holdfast {name}` | `holdfast {noun_of(command)} {command.subcommand}` | {command.summary} |"
        for name, command in COMMANDS.items()
        if command.group is Group.FLAT and command.subcommand is not None
    ]
    return ["## Flat names", "", ALIASES_INTRO, "", "| flat | the same as | what it does |", "|---|---|---|", *rows, ""]


def _help(*words: str) -> str:
    environment = {**os.environ, "COLUMNS": "110", "TERM": "dumb", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "holdfast.cli.main", *words, "--help"]
    text = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


if __name__ == "__main__":
    (DOCS / "api.md").write_text(api_page())
    (DOCS / "settings.md").write_text(settings_page())
    (DOCS / "cli.md").write_text(cli_page())
