"""A program for a mount namespace of its own: the storage of a tool's crawl hangs, and commands look at the crawl.

A FUSE file system whose server never answers is exactly what a network mount looks like that hangs. Prints one JSON
object: what each command said.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from holdfast import config
from holdfast.db.models import Execution
from holdfast.jobs.specs import JobSpec
from holdfast.sources import registry
from holdfast.wiring.jobs import open_jobs
from tests import patience
from tests.flow.dead_mount import CANNOT
from tests.jobs_bed import holder

_COMMANDS = (["watchdog-status", "--json"], ["auto-recover", "--json"])


def _hang(folder: Path) -> int:
    """Mount a file system on a folder and return its server, which never answers; closed, everything comes back."""
    try:
        server = os.open("/dev/fuse", os.O_RDWR)
    except OSError:
        sys.exit(CANNOT)
    options = f"fd={server},rootmode=40000,user_id=0,group_id=0"
    done = subprocess.run(["mount", "-i", "-t", "fuse", "-o", options, "hung", str(folder)], pass_fds=[server],
                          check=False, capture_output=True)  # fmt: skip
    if done.returncode:
        sys.exit(CANNOT)
    return server


def _said(home: Path, command: list[str]) -> object:
    line = [sys.executable, "-m", "holdfast.cli.main", *command, "--home", str(home)]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
    try:
        return json.loads(process.communicate(timeout=patience.deadline(60))[0])
    except subprocess.TimeoutExpired:
        process.kill()
        return "hangs"


def main(home: Path) -> None:
    """Let the storage of a tool's run hang, and look."""
    with open_jobs(config.load(home=home)) as jobs:
        with jobs.database.write() as session:
            spec = registry.read_spec({"code": "ex", "config": {"seeds": ["https://example.org/"]}})
            source = registry.create(session, jobs.clock, spec)
            jobs.actions.upsert(session, JobSpec(source_id=source.id))
        jobs.scheduler.tick()
        lease = jobs.leases.take(holder(jobs.database, "far"))
        assert lease is not None
        lease.output_dir.mkdir(parents=True)
        with jobs.database.write() as session:
            session.get_one(Execution, lease.execution_id).config = {"backend": "zimit"}
    server = _hang(lease.output_dir)
    found = [_said(home, command) for command in _COMMANDS]
    os.close(server)
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
