"""CPU a page of a crawl on a web of any shape, start-up included, in turn with its peers and with another build.

Run as `python -m bench.shape --hosts 40 --pages 75 --kb 25 --links 70 --rounds 3 --peers wget`; `--beside SRC` names
the `src` of another checkout. Compile the bytecode of both first (`python -m compileall`); compare ratios of one run.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

from bench import web
from bench.crawl import Run, ours, peer

_PORT = 18_090


def _of_build(site: Path, source: Path) -> Run:
    """Crawl with the code below this folder, whichever is installed."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(source)
    try:
        return ours(site)
    finally:
        os.environ.pop("PYTHONPATH")
        if before is not None:
            os.environ["PYTHONPATH"] = before


def main() -> None:
    """Print a line for each crawl, and the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("hosts", 40), ("pages", 75), ("kb", 25), ("links", 70), ("rounds", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--peers", nargs="*", default=["wget"])
    parser.add_argument("--beside", type=Path)
    asked = parser.parse_args()
    site = web.write("shape", hosts=asked.hosts, pages=asked.pages, kb=asked.kb, links=asked.links, port=_PORT)
    runs: dict[str, Callable[[], Run]] = {"holdfast": partial(_of_build, site, web.ROOT / "src")}
    if asked.beside:
        runs["beside"] = partial(_of_build, site, asked.beside)
    runs |= {name: partial(peer, site, name) for name in asked.peers}
    taken: dict[str, list[float]] = {name: [] for name in runs}
    with web.served(site, _PORT):
        for _ in range(asked.rounds):
            for name, run in runs.items():
                done = run()
                taken[name].append(done.cpu_ms_page)
                print(f"{name:12} {done.pages} pages, {done.cpu_ms_page:.2f} ms of CPU a page", flush=True)
    ours_ms = median(taken["holdfast"])
    for name, values in taken.items():
        print(f"{name}: median {median(values):.2f} ms a page, {median(values) / ours_ms:.2f} times ours")


if __name__ == "__main__":
    main()
