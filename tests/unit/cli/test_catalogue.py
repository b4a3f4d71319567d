"""The catalogue of commands: one screen of help, every name that the documents use, and an example for each."""

from __future__ import annotations

import ast
import json
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from typer.core import TyperGroup

import holdfast
from holdfast.cli import runner
from holdfast.cli.catalogue import COMMANDS, STARTS_ARCHIVE, Command, HelpGroup, noun_of, usage
from holdfast.cli.main import load, words
from holdfast.index.indexer import Interrupted

DOCUMENTED = (
    "check-env", "check-archive-tool", "check-db", "run-job", "create-job", "run-db-job", "index-job",
    "reconcile-completed-indexing", "register-job-dir", "seed-sources", "list-jobs", "show-job", "retry-job",
    "cleanup-job", "replay-index-job", "start-worker", "salvage-annual-edition", "plan-annual-shards",
    "annual-edition-report", "accept-annual-shard-gap", "schedule-annual", "annual-status", "compute-changes",
    "status", "backfill-search-vector", "backfill-normalized-url-groups", "rebuild-pages",
    "refresh-snapshot-metadata", "backfill-outlinks", "recompute-page-signals", "dedupe-snapshots",
    "restore-deduped-snapshots", "list-warcs", "reset-retry-count", "recover-stale-jobs", "validate-job-config",
    "patch-job-config", "replay-generate-previews", "replay-reconcile", "sync-enabled-sources", "migrate",
    "auto-recover", "metrics-textfile", "watchdog-status", "create-canary-job", "reconcile-annual-tool-options",
    "reset-crawl-state", "consolidate-warcs", "job-storage-report", "verify-warcs", "verify-warc-manifest",
    "probe-browser-fetch", "data-integrity-report", "compact-warcs",
)  # fmt: skip
"""Every flat name that callers and timers already use."""
OPTIONS = {
    "create-job": "--source --page-limit --depth", "run-db-job": "--id --no-index", "index-job": "--id",
    "register-job-dir": "--source --output-dir --name", "show-job": "--id", "retry-job": "--id",
    "cleanup-job": "--id --mode --force", "replay-index-job": "--id", "start-worker": "--poll-interval --once",
    "salvage-annual-edition": "--year", "plan-annual-shards": "--year --sources --apply --shard-target-url-cap",
    "accept-annual-shard-gap": "--job-id --reason", "annual-status": "--year --sources",
    "schedule-annual": "--year --sources --max-create-per-run --apply", "dedupe-snapshots": "--id --apply",
    "restore-deduped-snapshots": "--id --apply", "list-warcs": "--id --recent", "recover-stale-jobs":
    "--older-than-minutes --apply", "reset-retry-count": "--id --reason --limit --apply", "validate-job-config": "--id",
    "patch-job-config": "--id --set-tool-option --set-execution-policy --apply", "auto-recover": "--apply",
    "reconcile-annual-tool-options": "--year --apply", "verify-warcs": "--id --level --quarantine",
    "verify-warc-manifest": "--id --level", "run-job": "--name --seeds --output-dir --initial-workers --dry-run",
    "reset-crawl-state": "--id --apply", "consolidate-warcs": "--id --apply", "job-storage-report": "--id",
    "data-integrity-report": "--id", "compact-warcs": "--id --apply", "create-canary-job": "--source --apply",
}  # fmt: skip
"""Options that the same places name, by command."""
STREAMS = (
    "export", "snapshot cat", "warc extract", "edition ledger", "api", "serve", "mcp", "worker schedule",
    "start-scheduler", "completion",
)  # fmt: skip
"""They print what they are asked for, or run until they are told to stop: there is no object to print."""


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "holdfast.cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _built(command: Command) -> Iterator[tuple[str, str]]:
    """Yield what a command, and those below it, say of themselves."""
    app = load(command.module)
    built = runner.built(app)
    yield "", f"{built.help}\n{built.epilog}"
    if isinstance(built, TyperGroup):
        for name, one in built.commands.items():
            yield name, f"{one.help}\n{one.epilog}"


def test_help_is_one_screen() -> None:
    page = usage().splitlines()

    assert len(page) <= 40, "one screen: give the new command Group.FLAT, it stands in `holdfast help all`"
    assert [line for line in (*page, *usage(everything=True).splitlines()) if len(line) > 80] == [], "80 columns"
    assert all(f"\n{group}:" in usage(everything=True) for group in HelpGroup)


def test_all_names_are_in_the_long_help_and_shown_once_in_the_short_one() -> None:
    whole, short = usage(everything=True), usage()

    assert [name for name in COMMANDS if f"\n  {name} " not in whole] == []
    assert short.count("Also available") == 1
    assert "holdfast help all" in short
    assert "\n  list-jobs" not in short
    assert "(job list)" in whole


def _cost(*arguments: str) -> float:
    """Return the seconds of CPU that a start of Python takes, of five."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for _ in range(5):
        subprocess.run([sys.executable, *arguments], capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / 5


def test_help_takes_little_more_than_python_itself() -> None:
    bare, shown = _cost("-c", "pass"), _cost("-m", "holdfast.cli.main", "--help")

    assert shown < 0.3, "the figure of the issue; 0.044 s where bare Python takes 0.018 s"
    assert shown < 6 * bare, "something heavy is loaded"


def test_help_loads_nothing_heavy() -> None:
    ask = "import sys, json; from holdfast.cli import main; main._help([]); print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stdout.splitlines()[-1]))

    heavy = {"typer", "click", "rich", "pydantic", "sqlalchemy", "alembic", "tantivy", "numpy", "fastapi", "asyncio"}
    assert loaded & heavy == set()
    assert {name for name in loaded if name.startswith("holdfast.")} == {
        "holdfast.cli", "holdfast.cli.catalogue", "holdfast.cli.main", "holdfast.old_spellings",
    }  # fmt: skip


def test_commands_that_start_an_archive_exist() -> None:
    assert sorted(STARTS_ARCHIVE - words().keys()) == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_there_and_shows_an_example(name: str) -> None:
    command = COMMANDS[name]
    told = dict(_built(command))

    if command.subcommand is not None:
        assert command.subcommand in told, f"{command.module} has no command {command.subcommand!r}"
        told = {command.subcommand: told[command.subcommand]}
    for below, text in told.items():
        example = re.search(r"Example: holdfast (\S+)(?: (\S+))?", text)
        assert example, f"holdfast {name} {below} shows no example"
        assert text.endswith(runner.EXIT_CODES), f"holdfast {name} {below} does not tell its exit codes"
        assert example[1] in COMMANDS, f"the example of holdfast {name} {below} names no command"
        if COMMANDS[example[1]].subcommand is None and COMMANDS[example[1]].module == command.module:
            names = {other for other, _ in _built(command) if other}
            assert not names or example[2] in names, f"the example of holdfast {name} {below} would not run"


def test_flat_names_stand_for_a_noun() -> None:
    flat = {name: command for name, command in COMMANDS.items() if command.subcommand is not None}

    assert noun_of(COMMANDS["list-jobs"]) == "job"
    assert [name for name, command in flat.items() if noun_of(command) not in COMMANDS] == []
    assert [name for name, command in flat.items() if command.group is not HelpGroup.FLAT] == []


def test_every_command_of_the_documents_is_there_by_its_flat_name_and_in_a_group() -> None:
    assert [name for name in DOCUMENTED if name not in COMMANDS] == []
    alone = [name for name in DOCUMENTED if COMMANDS[name].subcommand is None]
    assert alone == ["check-env", "status"], "give the others a place below a noun"


def test_every_option_of_the_documents_is_there() -> None:
    tree = words()

    missing = {name: set(said.split()) - set(tree[name]) for name, said in OPTIONS.items()}
    assert {name: lacks for name, lacks in missing.items() if lacks} == {}


def test_every_command_prints_json() -> None:
    tree = words()
    leaves = {name: after for name, after in tree.items() if not after or after[0].startswith("--")}

    silent = [name for name, after in leaves.items() if "--json" not in after]
    assert [name for name in silent if not f"{name} ".startswith(tuple(f"{one} " for one in STREAMS))] == []


def test_an_alias_is_called_by_its_own_name_and_tells_its_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    command = COMMANDS["list-jobs"]
    loaded = load(command.module)
    with pytest.raises(SystemExit) as ended:
        runner.run(loaded, "holdfast list-jobs", ["--help"], subcommand=command.subcommand)

    shown = capsys.readouterr().out
    assert ended.value.code == 0
    assert shown.startswith("Usage: holdfast list-jobs [OPTIONS]")
    assert "Exit: 0 done, 1 refused" in " ".join(shown.split())


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (OSError(28, "No space left on device", "/archive/x"), 1, "cannot use /archive/x: No space left on device"),
        (TypeError("no\nsuch thing"), 1, "a fault of this program, please report it: TypeError: no such thing; "),
        (Interrupted("stopped between two batches"), 130, "stopped between two batches"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_nobody_is_shown_a_traceback(
    raised: BaseException, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def break_() -> None:
        raise raised

    with pytest.raises(SystemExit) as ended:
        runner.run(break_, "holdfast break", [])

    told = capsys.readouterr()
    assert (ended.value.code, told.out, said in told.err) == (code, "", True)
    assert told.err.count("\n") <= 1


def test_a_misspelled_command_is_told_the_nearest() -> None:
    wrong, strange, right = _run("serach"), _run("help", "xyzzy"), _run("help", "job", "list")

    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr == "holdfast: there is no command 'serach'; did you mean search?\n"
    assert (strange.returncode, strange.stderr) == (
        2, "holdfast: there is no command 'xyzzy'; see: holdfast --help\n",
    )  # fmt: skip
    assert (right.returncode, right.stdout.splitlines()[0]) == (0, "Usage: holdfast job list [OPTIONS]")


def test_help_is_asked_for_in_several_ways() -> None:
    short, asked = _run(), _run("--help", "--all")

    assert (short.returncode, short.stdout) == (2, usage() + "\n")
    assert (asked.returncode, asked.stdout) == (0, usage(everything=True) + "\n")


NAMED = """
user add, user role, user disable, user enable, user password, user sign-out, token create, token revoke,
crawl, stop, import, demo, snapshot hide, snapshot unhide, noise mark, noise clear,
source create, source edit, source enable, source disable, source delete,
job create, job edit, job pause, job resume, job cancel, job run-now,
job retry, job delete, edition freeze, feed add, feed remove, feed enable, feed disable,
frontier reset, frontier add, frontier seed, domain set, domain pause, domain resume,
domain refresh, tool run, tool run-job, tool register, tool attach-zim, problem-report edit,
webhook add, webhook edit, webhook enable, webhook disable, webhook remove, webhook rotate-secret, webhook test,
webhook redeliver, operation cancel, upload import, upload end
"""
"""Commands that change what their arguments name, and nothing else."""
WORKING = "worker start, worker schedule, api, serve, mcp"
READING = """
user list, token list, watch alerts, watch series,
status, report, search, terms, linked-hosts, snapshot show, snapshot cat, noise list, page search, page show,
changes list, changes compare, changes site, live compare, live fetch,
export snapshots, export changes, export cdxj, export wacz, export edition,
source list, source show, source export, source validate, source survey, job executions, job logs,
job events, job validate-config, job list, job show, scheduler metrics, scheduler distribution,
scheduler preview, edition status, edition verify, edition compare, edition list, edition show,
edition ledger, feed list, feed show, frontier stats, frontier list,
frontier urls, frontier discovered, domain list, domain show, domain robots, explain, url, robots,
search-index status, warc list, warc extract, archive check-replay, archive reconcile-replay,
archive generate-previews, verify, storage stores, storage verify-manifest, storage integrity, tool probe, tool check,
watch status, watch metrics, audit, settings, check-env, database check, completion,
problem-report list, problem-report show, webhook list, webhook show, webhook deliveries,
operation list, operation show, upload list, upload show
"""


def _walk() -> Iterator[tuple[str, runner.Built]]:
    for name, command in COMMANDS.items():
        if command.subcommand is None:
            made = runner.built(load(command.module))
            for below, one in made.commands.items() if isinstance(made, TyperGroup) else [("", made)]:
                yield f"{name} {below}".strip(), cast(runner.Built, one)


def test_a_command_that_changes_many_rows_waits_for_apply_or_says_that_it_does_not() -> None:
    made = dict(_walk())
    known = {name.strip() for name in f"{NAMED},{WORKING},{READING}".split(",")}
    assert sorted(known - made.keys()) == [], "they are gone"

    many = {name: one for name, one in made.items() if name not in known}
    silent = [
        name
        for name, one in many.items()
        if "--apply" not in runner.options(one) and "Acts at once" not in (one.help or "")
    ]
    assert silent == [], "give them --apply, or say in their help that they act at once and what cannot be lost"
    assert sorted(name for name in known if "Acts at once" in (made[name].help or "")) == []


_TYPED = re.compile(r"(?:: |`|[(])holdfast ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?")


def _named(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield the commands that a message tells a person to type, and what follows each."""
    for found in _TYPED.finditer(text):
        yield found[1], found[2]


def test_every_command_that_a_message_names_exists() -> None:
    below = dict[str, set[str]]()
    for name, command in COMMANDS.items():
        made = runner.built(load(command.module), command.subcommand)
        below[name] = set(made.commands) if isinstance(made, TyperGroup) else set()
    wrong = [
        f"{path.name}:{node.lineno}: holdfast {name} {following or ''}"
        for path in Path(holdfast.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for name, following in _named(node.value)
        if name != "help" and (name not in below or (below[name] and following and following not in below[name]))
    ]

    assert wrong == []
