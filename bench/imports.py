"""Memory of an import by the size of its file: what a process takes for itself, not what it maps of files.

Run as `python -m bench.imports --mb 100 400 --pictures 2000 --folder FOLDER`; each import is a process of its own,
sampled until it ends. A file of pages grows the index with it, one of pictures (a megabyte each) only itself. `RssAnon`
of `/proc/PID/status` is the figure that counts: pages of mapped files can be taken back at any time.
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
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from holdfast.clock import SystemClock
from holdfast.fetch.body import MemoryBody
from holdfast.types import Fetched
from holdfast.warc.record import sha256_of
from holdfast.warc.writer import ExchangeDraft, WarcWriter

_REQUEST = b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"
_BEGIN = datetime(2024, 1, 1, tzinfo=UTC)
_TEXT_BYTES, _NOISE_BYTES = 8_000, 40_000
_LOOK_S = 0.05
_FIELD = re.compile(r"(RssAnon|VmRSS):\s{0,16}([0-9]{1,12}) kB")


class Peak(NamedTuple):
    """The most that a process took, in megabytes."""

    anonymous_mb: float
    resident_mb: float
    seconds: float


def _pages(chance: random.Random) -> Iterator[tuple[bytes, MemoryBody]]:
    """Yield pages with 8 KB of text and a picture each, none like another."""
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(3, 10))) for _ in range(20_000)]
    while True:
        text = " ".join(chance.choices(words, k=_TEXT_BYTES // 7))
        noise = b64encode(chance.randbytes(_NOISE_BYTES))
        page = f"<html><head><title>{text[:40]}</title></head><body><p>{text}</p>".encode()
        yield b"text/html; charset=utf-8", MemoryBody((page, b"<img src='data:image/png;base64,%b'>" % noise))


def _pictures(chance: random.Random) -> Iterator[tuple[bytes, MemoryBody]]:
    """Yield a megabyte of noise at a time."""
    while True:
        yield b"image/png", MemoryBody((chance.randbytes(1_000_000),))


def write_file(path: Path, megabytes: int, *, pictures: bool) -> Path:
    """Return a WARC file of about this size."""
    bodies = (_pictures if pictures else _pages)(random.Random(7))
    writer = WarcWriter.create(path.parent, path.name.removesuffix(".warc.gz"), 1, {}, SystemClock(), max_bytes=1 << 40)
    number = 0
    while writer.size < megabytes * 1_000_000:
        media_type, body = next(bodies)
        writer.append_exchange(
            ExchangeDraft(
                fetched=Fetched(
                    url=f"https://example.org/{number % 97}/{number}",
                    status=200,
                    started_at=_BEGIN + timedelta(seconds=number),
                    took_s=0.0,
                    ip="192.0.2.1",
                    request_head=_REQUEST,
                    response_head=b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\n\r\n" % media_type,
                    body=body,
                ),
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
    parser.add_argument("--mb", type=int, nargs="*", default=[25, 100, 400])
    parser.add_argument("--pictures", type=int, nargs="*", default=[])
    parser.add_argument("--folder", type=Path, required=True)
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    for megabytes, pictures in [*((one, False) for one in asked.mb), *((one, True) for one in asked.pictures)]:
        name = f"{'pictures' if pictures else 'pages'}-{megabytes}"
        path, home = asked.folder / f"{name}.warc.gz", asked.folder / f"home-{name}"
        shutil.rmtree(home, ignore_errors=True)
        found = measure(path if path.exists() else write_file(path, megabytes, pictures=pictures), home)
        print(
            f"{name}: {found.anonymous_mb:.0f} MB of its own, {found.resident_mb:.0f} MB with mapped files, "
            f"{found.seconds:.0f} s",
            flush=True,
        )
        shutil.rmtree(home)


if __name__ == "__main__":
    main()
