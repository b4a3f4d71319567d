"""A program for a mount namespace of its own: a crawl's storage dies under it (errno 107), and the watchdog is called.

A FUSE file system whose server is gone is exactly what a lost network mount looks like. Prints one JSON object.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

from holdfast import config
from holdfast.jobs.specs import JobSpec
from holdfast.sources import registry
from holdfast.wiring.jobs import open_jobs
from holdfast.zimit.storage import integrity_report
from tests import patience
from tests.jobs_bed import holder

CANNOT = 77
"""The exit code where nothing may be mounted."""


def kill_mount(folder: Path) -> None:
    """Mount a file system on a folder and let its server die; SystemExit(77) if that is not allowed here."""
    try:
        server = os.open("/dev/fuse", os.O_RDWR)
    except OSError:
        sys.exit(CANNOT)
    options = f"fd={server},rootmode=40000,user_id=0,group_id=0"
    done = subprocess.run(["mount", "-i", "-t", "fuse", "-o", options, "dead", str(folder)], pass_fds=[server],
                          check=False, capture_output=True)  # fmt: skip
    os.close(server)
    if done.returncode:
        sys.exit(CANNOT)


def look(home: Path) -> dict[str, object]:
    """Run the real command and return its object, with its exit code."""
    command = [sys.executable, "-m", "holdfast.cli.main", "storage-watchdog", "--apply", "--json", "--home", str(home)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=patience.deadline(60))
    return {**json.loads(done.stdout), "exit_code": done.returncode}


def main(home: Path) -> None:
    """Let a run's storage die, and look twice."""
    with open_jobs(config.load(home=home)) as jobs:
        with jobs.database.write() as session:
            spec = registry.read_spec({"code": "ex", "config": {"seeds": ["https://example.org/"]}})
            source = registry.create(session, jobs.clock, spec)
            jobs.actions.upsert(session, JobSpec(source_id=source.id))
        jobs.scheduler.tick()
        lease = jobs.leases.take(holder(jobs.database, socket.gethostname()))
        assert lease is not None
        lease.output_dir.mkdir(parents=True)
        kill_mount(home / "warcs")
        verdict = integrity_report(lease.output_dir).issues[0].code
        looks = [look(home), look(home)]
        with jobs.database.read() as session:
            job = session.get_one(type(lease.job), lease.job.id)
            print(json.dumps({"looks": looks, "verdict": verdict, "state": job.state, "infra": job.infra_retry_count,
                              "alive": lease.output_dir.is_dir()}))  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]))
