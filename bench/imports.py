"""Memory of an import by the size of its file: what a process takes for itself, not what it maps of files.

Run as `python -m bench.imports --mb 100 400 2000 --folder FOLDER`; each import is a process of its own, sampled until
it ends. `RssAnon` of `/proc/PID/status` is the figure that counts: pages of mapped files can be taken back at any time.
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import subprocess
import sys
import time
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from holdfast.clock import SystemClock
from holdfast.fetch.body import MemoryBody
from holdfast.warc.digest import sha256_of
from holdfast.warc.exchange import Exchange
from holdfast.warc.writer import WarcWriter

_REQUEST = b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"
_BEGIN = datetime(2024, 1, 1, tzinfo=UTC)
_TEXT_BYTES, _NOISE_BYTES = 8_000, 40_000
_LOOK_S = 0.05
_FIELD = re.compile(r"(RssAnon|VmRSS):\s{0,16}([0-9]{1,12}) kB")


class Peak(NamedTuple):
    """The most that a process took, in megabytes."""

    anonymous_mb: float
    resident_mb: float
    seconds: float


def write_file(path: Path, megabytes: int) -> Path:
    """Return a WARC file of about this size: pages with 8 KB of text and a picture each, none like another."""
    chance = random.Random(7)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(3, 10))) for _ in range(20_000)]
    writer = WarcWriter.create(path.parent, path.name.removesuffix(".warc.gz"), 1, {}, SystemClock(), max_bytes=1 << 40)
    number = 0
    while writer.size < megabytes * 1_000_000:
        text = " ".join(chance.choices(words, k=_TEXT_BYTES // 7))
        noise = b64encode(chance.randbytes(_NOISE_BYTES)).decode()
        page = f"<html><head><title>Page {number}</title></head><body><p>{text}</p>"
        body = MemoryBody((page.encode(), f"<img src='data:image/png;base64,{noise}'>".encode()))
        writer.append_exchange(
            Exchange(
                url=f"https://example.org/{number % 97}/{number}",
                started_at=_BEGIN + timedelta(seconds=number),
                ip="192.0.2.1",
                request_head=_REQUEST,
                response_head=_HEAD,
                body=body,
                payload_digest=sha256_of(body.chunks()),
            )
        )
        number += 1
    return writer.seal().path


def measure(path: Path, home: Path) -> Peak:
    """Import a file where it lies, into an empty archive; return the most that it took."""
    began = time.monotonic()
    command = (Path(sys.executable).with_name("holdfast"), "import", "--in-place", "--source", "bench", "--json", path)
    with subprocess.Popen([*command, "--home", home], stdout=subprocess.DEVNULL) as process:
        most = {"RssAnon": 0, "VmRSS": 0}
        while process.poll() is None:
            for name, value in _FIELD.findall(Path(f"/proc/{process.pid}/status").read_text()):
                most[name] = max(most[name], int(value))
            time.sleep(_LOOK_S)
    if process.returncode:
        raise SystemExit(f"the import of {path} failed with {process.returncode}")
    return Peak(most["RssAnon"] / 1000, most["VmRSS"] / 1000, time.monotonic() - began)


def main() -> None:
    """Print a line for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, nargs="+", default=[25, 100, 400])
    parser.add_argument("--folder", type=Path, required=True)
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    for megabytes in asked.mb:
        path = asked.folder / f"pages-{megabytes}.warc.gz"
        home = asked.folder / f"home-{megabytes}"
        shutil.rmtree(home, ignore_errors=True)
        found = measure(path if path.exists() else write_file(path, megabytes), home)
        print(
            f"{megabytes} MB: {found.anonymous_mb:.0f} MB of its own, {found.resident_mb:.0f} MB with mapped files, "
            f"{found.seconds:.0f} s",
            flush=True,
        )
        shutil.rmtree(home)


if __name__ == "__main__":
    main()
