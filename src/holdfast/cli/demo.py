"""`holdfast demo`: everything on this machine, without the network: crawl a small site twice and look."""

from __future__ import annotations

import json as jsonlib
import sys
import tempfile
from contextlib import redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.api import configured, serve
from holdfast.cli.crawl import run
from holdfast.cli.formatting import counted, one_line
from holdfast.cli.parameters import AsJson, configure_log
from holdfast.config import REPLAY_HOST, Settings
from holdfast.crawl.plan import CrawlPlan
from holdfast.demo.server import DemoSite
from holdfast.demo.tour import DemoTour, read_captures
from holdfast.frontier.queries import account
from holdfast.replay.address import replay_path
from holdfast.warc.verify import verify_file
from holdfast.wiring import Runtime, open_runtime
from holdfast.wiring.archive import open_archive
from holdfast.wiring.server import listen


def demo(
    home: Annotated[
        Path | None, typer.Option("--home", help="Data directory; a new temporary one if left out.")
    ] = None,
    port: Annotated[int | None, typer.Option("--port", min=0, max=65535, help="Port to serve on (8060).")] = None,
    no_serve: Annotated[bool, typer.Option("--no-serve", "--once", help="End when the archive is made.")] = False,
    json: AsJson = False,
) -> None:
    """Crawl a small bundled site, change it, crawl it again, index and compare; then serve search and replay.

    Example: holdfast demo --port 8061
    """
    folder = home or Path(tempfile.mkdtemp(prefix="holdfast-demo-"))
    settings = configured(home=str(folder), host=None, port=port)
    configure_log(settings, unless_set="ERROR")
    if not no_serve:
        # A port that is taken is refused before the work, not after it.
        listen(settings).close()
    # Standard output is for the result: with --json nothing else may stand there.
    with redirect_stdout(sys.stderr):
        front_page = _crawl_twice(settings, folder)
    print("indexing, comparing …", file=sys.stderr)
    with open_archive(settings) as archive:
        reading = read_captures(archive, front_page)
    if json:
        print(jsonlib.dumps({"home": str(folder), "front_page": front_page, **asdict(reading)}))
    else:
        _tell(reading)
    if not no_serve:
        serve(settings, ready=lambda address: _invite(address, reading, front_page))
        print(f"\nthe archive stays in {folder}; serve it again with: holdfast serve --no-worker --home {folder}")


def _crawl_twice(settings: Settings, folder: Path) -> str:
    """Crawl the bundled site, and once more after it has changed; return its front page's address."""
    with DemoSite() as site, open_runtime(settings) as runtime:
        print(f"a small site is served at {site.url}; crawling it into {folder}")
        # Loopback is a private network: the delay may be short, and the guard has to be told.
        plan = CrawlPlan(seeds=(site.url,), contact="demo@example.org", delay_s=0.05, allow_networks=("127.0.0.0/8",))
        first = run(runtime, plan, output=None, resume=False, workers=1, as_json=False, indexes=True)
        _show(runtime, first.execution_id, first.output_dir)
        site.change()
        print("\nthe site has changed: crawling it again")
        run(runtime, plan, output=None, resume=False, workers=1, as_json=False, indexes=True)
        return site.url


def _show(runtime: Runtime, execution_id: int, folder: Path) -> None:
    """Print every address with its outcome, and that the files are sound."""
    print("\nevery address that was met, and what came of it:")
    for row in account(runtime.raw_db, execution_id):
        outcome = row.outcome.value if row.outcome else "open"
        note = row.title or row.redirected_to or row.message or row.media_type or ""
        print(f"  {outcome:<14}  {row.reason or '':<16}  {row.url}  {one_line(note[:60])}")
    for path in sorted(folder.glob("*.warc.gz")):
        report = verify_file(path)
        verdict = "sound" if report.ok else f"{report.problem_count} problems"
        print(f"\n{path}: {counted(report.records, 'record')}, {verdict}")


def _tell(reading: DemoTour) -> None:
    changes = ", ".join(f"{count} {kind}" for kind, count in sorted(reading.changes.items()))
    print(
        f"{counted(reading.pages, 'capture')} of pages from {counted(reading.files, 'WARC file')}; "
        f"what happened to pages: {changes}"
    )


def _invite(address: str, reading: DemoTour, front_page: str) -> None:
    """Print that the server answers, and what to try."""
    replay = f"http://{REPLAY_HOST}:{address.rpartition(':')[2]}"
    print(f"\nready: {address}\n\nThe site itself is switched off now; all of this comes from the archive.")
    print("\nTo look at, in a browser:")
    if reading.replay_path:
        print(f"  the site     {replay}{reading.replay_path}")
    print(f"  its history  {replay}{replay_path('*', '', front_page)}")
    print(f"  all routes   {address}/docs")
    print("\nFor programs (JSON):")
    print(f"  search       {address}/api/search?q=tide")
    # Its best answer is a picture without a word of this: what a link says of it finds it.
    print(f"  by its links {address}/api/search?q=drowned+causeway+chart")
    if reading.compare_path:
        print(f"  a change     {address}{reading.compare_path}")
    print("\nCtrl-C ends it.", flush=True)


app_command = demo
