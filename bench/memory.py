"""What a known URL costs a crawl process in memory: run as a process of its own, so that nothing else counts."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

from holdfast.crawl.link_filter import SeenUrls

URLS = 1_000_000


def bytes_per_url() -> float:
    """Return the growth of a fresh process over a million addresses, a URL."""
    done = subprocess.run([sys.executable, "-m", "bench.memory"], capture_output=True, text=True, check=True)
    return float(done.stdout)


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def main() -> None:
    """Fill the memory of known addresses as a crawl does and print its cost."""
    chance = random.Random(7)
    seen = SeenUrls(2 * URLS + 2)
    before = _resident()
    for _ in range(URLS):
        seen.add(chance.getrandbits(64) - (1 << 63))
    print((_resident() - before) / URLS)


if __name__ == "__main__":
    main()
