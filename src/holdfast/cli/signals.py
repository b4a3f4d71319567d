"""`holdfast recompute-page-signals`: in-links, out-links and PageRank from the links of all captures."""

from __future__ import annotations

import json as jsonlib

import typer

from holdfast import config
from holdfast.cli.logs import configure_log
from holdfast.cli.options import AsJson, Home
from holdfast.cli.wording import counted
from holdfast.coordination.priority import step_back
from holdfast.search.drain import take_over_signals
from holdfast.search.signals import recompute
from holdfast.wiring.archive import open_archive


def recompute_page_signals(json: AsJson = False, home: Home = None) -> None:
    """Compute what links say of pages, and let search rank by it.

    Acts at once: what it writes is derived, and can be made anew.
    Example: holdfast recompute-page-signals
    """
    configure_log(config.load(home=home), as_json=False)
    settings = config.load(home=home)
    step_back(settings.index.nice)
    with open_archive(settings) as archive:
        pages = recompute(archive.database, archive.clock)
        take_over_signals(archive.database, archive.home)
    typer.echo(jsonlib.dumps({"pages": pages}) if json else f"signals of {counted(pages, 'page')}")
