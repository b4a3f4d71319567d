"""The crawl beside its peers: CPU a page, pages a second and memory, on the same pages, interleaved, on one core."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bench.web import ROOT, SCRIPTS

PEERS_PYTHON = ROOT / ".venv-peers" / "bin" / "python"
HOLDFAST = ROOT / ".venv" / "bin" / "holdfast"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One crawler over one site."""

    name: str
    pages: int
    seconds: float
    cpu_s: float
    rss_mb: float

    @property
    def cpu_ms_page(self) -> float:
        """CPU milliseconds a page, all threads and processes."""
        return self.cpu_s / max(self.pages, 1) * 1000

    @property
    def pages_s(self) -> float:
        """Pages a second of wall time."""
        return self.pages / max(self.seconds, 1e-9)


def ours(
    site: Path, *, workers: int | None = 1, cores: str = "0", delay: float = 0.0, extra: tuple[str, ...] = ()
) -> Run:
    """Crawl the site with Holdfast and return what it took; None leaves the number of processes to it."""
    home = Path(tempfile.mkdtemp(prefix="holdfast-bench-", dir=site.parent))
    command = [
        "taskset", "-c", cores, str(HOLDFAST), "crawl", "--seeds", str(site / "seeds.txt"), "--scope", "host",
        "--delay", str(delay), "--allow-network", "127.0.0.0/8", "--no-sitemaps",
        "--contact", "bench@example.org", "--json", "--home", str(home), *extra,
    ]  # fmt: skip
    command += ["--workers", str(workers)] if workers else []
    try:
        done, usage, took = measured(command)
        result = json.loads(done.splitlines()[-1])
        return Run(
            name=f"holdfast x{workers or 'default'}",
            pages=result["pages"],
            seconds=took,
            cpu_s=usage[0],
            rss_mb=usage[1],
        )
    finally:
        shutil.rmtree(home, ignore_errors=True)


def peer(site: Path, name: str, *, limit: int | None = None, cores: str = "0") -> Run:
    """Run one of the peers of the benchmark web."""
    command = ["taskset", "-c", cores, str(PEERS_PYTHON), str(SCRIPTS / "peers.py"), str(site), name]
    command += ["--max", str(limit)] if limit else []
    done, _, _ = measured(command)
    result = json.loads(done.splitlines()[-1])
    pages = result["pages"]
    return Run(name=name, pages=pages, seconds=result["seconds"], cpu_s=result["cpu_s_per_1000"] * pages / 1000,
               rss_mb=result["rss_mb"])  # fmt: skip


def measured(command: list[str]) -> tuple[str, tuple[float, float], float]:
    """Run a command and return its output, (CPU seconds, largest process in MB) of all its processes, and wall time."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        started = time.monotonic()
        process = subprocess.Popen(command, stdout=out, stderr=err)
        _, status, used = os.wait4(process.pid, 0)
        took = time.monotonic() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if process.returncode:
            sys.exit(f"{command[3:6]} failed: {err.read()[-2000:].decode()}")
        return out.read().decode(), (used.ru_utime + used.ru_stime, used.ru_maxrss / 1024), took


def pin_to(core: int) -> None:
    """Keep this process off the measured core."""
    os.sched_setaffinity(0, {core})
