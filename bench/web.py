"""The benchmark web: written and served by the scripts beside the checkout, on loopback only."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = Path(os.environ.get("HOLDFAST_BENCH_WEB", ROOT.parent / "shared" / "bench"))
WORK = Path(os.environ.get("HOLDFAST_BENCH_DIR", ROOT / ".bench"))


def missing() -> str | None:
    """Return what is missing to run, in one line, or None."""
    if not (SCRIPTS / "site.py").is_file():
        return f"the benchmark web's scripts are not at {SCRIPTS}; name their folder with HOLDFAST_BENCH_WEB"
    return None


def write(name: str, **options: int) -> Path:
    """Write a site once for these options and return its folder."""
    folder = WORK / f"{name}-{'-'.join(f'{key}{value}' for key, value in sorted(options.items()))}"
    if not (folder / "urls.txt").is_file():
        flags = [part for key, value in options.items() for part in (f"--{key}", str(value))]
        subprocess.run([sys.executable, SCRIPTS / "site.py", folder, *flags], check=True, stdout=sys.stderr)
    return folder


@contextmanager
def served(folder: Path, port: int, *, log: bool = False) -> Iterator[None]:
    """Serve a site with nginx while the block runs."""
    environment = {**os.environ, "LOG": "on" if log else "off"}
    (folder / "access.log").unlink(missing_ok=True)
    serve = str(SCRIPTS / "serve.sh")
    subprocess.run([serve, "start", folder, str(port)], check=True, env=environment, stdout=sys.stderr)
    _fewer_open_files(folder)
    try:
        yield
    finally:
        subprocess.run([serve, "stop", folder], check=False, stdout=sys.stderr)


def _fewer_open_files(folder: Path) -> None:
    """Let nginx keep fewer files open: its cache may hold as many as it has descriptors, and pages then cost a 500."""
    conf = folder / "nginx.conf"
    conf.write_text(conf.read_text().replace("open_file_cache max=20000", "open_file_cache max=8000"))
    subprocess.run(["nginx", "-c", conf, "-s", "reload"], check=True, stdout=sys.stderr, stderr=subprocess.DEVNULL)
