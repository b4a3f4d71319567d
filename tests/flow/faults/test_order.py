"""F35: what a row points to is on disk before the row is, by the kernel's own record of the calls."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from tests import needs
from tests.flow.crawler import Crawler
from tests.flow.faults.bed import seeds, until
from tests.flow.faults.team import Team
from tests.site import Site

_CALL = re.compile(r"^(\d+) +(\w+)\((.*)$")
_RESUMED = re.compile(r"^(\d+) +<\.\.\. (\w+) resumed>")
_PATHS = re.compile(r'<([^<>]*)>|"([^"]*)"')
_UNFINISHED = "<unfinished ...>"
_TRACED = "fsync,fdatasync,rename,renameat,renameat2,write,pwrite64,pwritev"


class Call(NamedTuple):
    """One call that ended, in the order in which they ended."""

    thread: int
    name: str
    paths: tuple[str, ...]


def _calls(trace: Path) -> list[Call]:
    """Return the finished calls; one that another thread interrupted in the record counts where it ended."""
    found: list[Call] = []
    waiting: dict[tuple[int, str], Call] = {}
    for line in trace.read_text(errors="replace").splitlines():
        if (match := _CALL.match(line)) is not None:
            paths = tuple(a or b for a, b in _PATHS.findall(match[3].removesuffix(_UNFINISHED)))
            call = Call(int(match[1]), match[2], paths)
            if line.endswith(_UNFINISHED):
                waiting[call.thread, call.name] = call
            else:
                found.append(call)
        elif (match := _RESUMED.match(line)) is not None:
            found.append(waiting.pop((int(match[1]), match[2])))
    return found


def test_warc_bytes_and_their_directory_are_synced_before_every_commit(crawler: Crawler, tmp_path: Path) -> None:
    needs.program("strace")
    trace = tmp_path / "trace"
    crawler.environment.update(
        HOLDFAST_TIMINGS_CRAWL_SETTLE_S="0.01", HOLDFAST_TIMINGS_CRAWL_SETTLE_PAGES="2", HOLDFAST_WARC_BYTES="200000"
    )
    with Site.plain(hosts=8, pages=40) as site:
        team = Team(crawler, seeds(site), delay_s=0.02, size=1)
        traced = team.start("traced", "strace", "-D", "-f", "-y", "-s", "0", "-e", f"trace={_TRACED}", "-o", str(trace))
        team.finish()
    # The tracer is no child of ours: on a busy machine it may still be writing when what it traces has ended.
    over = re.compile(rf"^{traced.pid} +\+\+\+ exited with", re.MULTILINE)
    until(lambda: over.search(trace.read_text(errors="replace")), within_s=30, what="the end of the record of calls")
    calls = _calls(trace)
    broken, batches, sealed = _judge(calls)
    print(f"{len(calls)} calls, {batches} batches, {sealed} files sealed, order broken {len(broken)}")

    assert broken == []
    assert batches >= 100
    assert sealed == len(list(crawler.home.rglob("*.warc.gz"))) >= 2
    assert crawler.faults() == []


def _judge(calls: list[Call]) -> tuple[list[str], int, int]:
    """Return where the order was broken, and how many batches and seals were seen.

    A batch is a sync of the WARC file before one of the database's log. A new file's name is synced before its first
    record, so before any commit that points to it. A file is whole on disk before it gets its final name, and that name
    is on disk before the manifest and the row say so; until they do, either name will do.
    """
    broken: list[str] = []
    batches = sealed = 0
    unsynced: set[str] = set()
    written: set[str] = set()
    used: set[str] = set()
    has_synced = False
    for call in calls:
        target, last = (call.paths[0], call.paths[-1]) if call.paths else ("", "")
        if call.name.startswith("rename") and last.endswith((".warc.gz.open", ".warc.gz")):
            unsynced.add(last)
            sealed += last.endswith(".gz")
            broken += [f"{target} was renamed before it was synced"] if target in written else []
        elif (call.name.startswith("rename") and last.endswith("manifest.json")) or (
            call.name.startswith("write") and target.endswith("manifest.journal")
        ):
            broken += [f"{name} was listed before its name was synced" for name in unsynced]
        elif call.name.startswith(("write", "pwrite")) and target.endswith(".open"):
            written.add(target)
            used.add(target)
        elif call.name in ("fsync", "fdatasync") and target.endswith(".open"):
            written.discard(target)
            has_synced = True
        elif call.name in ("fsync", "fdatasync") and target.endswith("-wal"):
            batches += has_synced
            has_synced = False
            broken += [f"a commit came before the name {name} was synced" for name in unsynced & used]
        elif call.name == "fsync":
            unsynced = {name for name in unsynced if str(Path(name).parent) != target}
    return broken, batches, sealed
