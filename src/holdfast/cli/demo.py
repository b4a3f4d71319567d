"""`holdfast demo`: the main job on this machine, nothing asked of anybody: serve a small site, crawl it, show it."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from holdfast import config, log
from holdfast.cli.crawl import run
from holdfast.cli.options import AsJson
from holdfast.crawl.plan import CrawlPlan
from holdfast.demo.server import DemoSite
from holdfast.frontier.queries import account
from holdfast.warc.verify import verify_file
from holdfast.wiring import Ground, open_ground


def demo(
    home: Annotated[
        Path | None, typer.Option("--home", help="Data directory; a new temporary one if left out.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Crawl a small bundled site on loopback and print what was captured and where.

    Example: holdfast demo
    """
    folder = home or Path(tempfile.mkdtemp(prefix="holdfast-demo-"))
    log.configure("ERROR")
    with DemoSite() as site, open_ground(config.load(home=folder)) as ground:
        print(f"a small site is served at {site.url}; crawling it into {folder}", file=sys.stderr)
        plan = CrawlPlan(seeds=(site.url,), contact="demo@example.org", delay_s=0.05, allow_networks=("127.0.0.0/8",))
        status = run(ground, plan, output=None, resume=False, workers=1, as_json=json)
        if not json:
            _show(ground, status.execution_id, status.output_dir)


def _show(ground: Ground, execution_id: int, folder: Path) -> None:
    """Print every address with its outcome, and that the files are sound."""
    print("\nevery address that was met, and what came of it:")
    for row in account(ground.hot, execution_id):
        outcome = row.outcome.value if row.outcome else "open"
        said = row.title or row.redirected_to or row.message or row.media_type or ""
        print(f"  {outcome:<14}  {row.reason or '':<16}  {row.url}  {said[:60]}")
    for path in sorted(folder.glob("*.warc.gz")):
        report = verify_file(path)
        verdict = "sound" if report.ok else f"{report.problem_count} problems"
        print(f"\n{path}: {report.records} records, {verdict}")
    home = ground.settings.home
    print(f"\nlook around:  holdfast report --home {home}   ·   holdfast status --home {home}")


app_command = demo
