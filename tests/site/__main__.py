"""Serve the misbehaving web: `python -m tests.site --hosts 4`, then open the address it prints."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from pathlib import Path

from tests.site.server import Plan, Server


def main() -> None:
    """Serve until standard input ends (`--until-eof`) or the process is interrupted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=8)
    parser.add_argument("--pages", type=int, default=12, help="ordinary pages on each host")
    parser.add_argument("--rough", action="store_true", help="some ordinary pages first answer 503 or lead elsewhere")
    parser.add_argument("--robots", action="append", default=[], metavar="HOST=NAME", help="e.g. 0=disallow")
    parser.add_argument("--tls", choices=["good", "expired", "wrong-host", "stalled"])
    parser.add_argument("--folder", type=Path, help="where the log is written")
    parser.add_argument("--until-eof", action="store_true", help="stop when standard input ends")
    asked = parser.parse_args()
    folder = asked.folder or Path(tempfile.mkdtemp(prefix="site-"))
    robots = {int(index): name for index, _, name in (pair.partition("=") for pair in asked.robots)}
    plan = Plan(hosts=asked.hosts, pages=asked.pages, rough=asked.rough, robots=robots, tls=asked.tls, folder=folder)
    server = Server(plan)
    said = {
        "hosts": server.hosts,
        "port": server.port,
        "tls_port": server.tls_port,
        "certificate": str(server.certificate) if server.certificate else None,
        "zoo": f"http://{server.hosts[0]}:{server.port}/zoo/all",
        "log": str(plan.log),
    }
    print(json.dumps(said), flush=True)
    asyncio.run(_serve(server, until_eof=asked.until_eof))


async def _serve(server: Server, *, until_eof: bool) -> None:
    stop = asyncio.Event()
    if until_eof:
        asyncio.get_running_loop().add_reader(sys.stdin, stop.set)
    await server.run(stop)


if __name__ == "__main__":
    main()
