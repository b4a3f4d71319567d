"""`holdfast demo`: a demonstration on this machine without the network: a fictional town's website in four crawls."""

from __future__ import annotations

import json as jsonlib
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer

from holdfast import demo as sites
from holdfast.auth.credentials import new_secret
from holdfast.auth.roles import Role
from holdfast.auth.users import LINK_HOURS, add_user, link_url, make_link
from holdfast.cli.api import configured
from holdfast.cli.formatting import counted
from holdfast.cli.parameters import AsJson, configure_log
from holdfast.cli.runner import example
from holdfast.cli.serve import parts_of, supervise
from holdfast.config import Settings
from holdfast.crawl.stopping import obeying_signals
from holdfast.demo.building import CONTACT, TOWN, build_archive
from holdfast.demo.server import DemoWeb, WebPlace
from holdfast.demo.tour import DemoTour
from holdfast.processes.part_process import ServicePart
from holdfast.wiring.archive import open_archive
from holdfast.wiring.server import listen

_ACCOUNT = "demo"


@example("demo --port 8061")
def demo(
    home: Annotated[Path | None, typer.Option(help="Data directory; a new temporary one if left out.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Port to serve on (8060).")] = None,
    no_serve: Annotated[bool, typer.Option("--no-serve", "--once", help="End when the archive is made.")] = False,
    json: AsJson = False,
) -> None:
    """Create an archive of a fictional town's website and serve it: imports three earlier crawls, crawls today's.

    The dates of the earlier crawls are invented, and their files say so. Without --no-serve, everything of
    `holdfast serve` runs, and the websites too, so that they can be crawled again from the control room.
    """
    folder = home or Path(tempfile.mkdtemp(prefix="holdfast-demo-"))
    settings = configured(home=str(folder), host=None, port=port)
    configure_log(settings, unless_set="ERROR")
    if not no_serve:
        # Reject a used port before the work, not after it.
        listen(settings).close()
    with DemoWeb() as web, web.reachable(), obeying_signals() as stops:
        settings = configured(home=str(folder), host=None, port=port).model_copy(update={"contact": CONTACT})
        # Standard output is for the result: with --json nothing else may be written there.
        tour = build_archive(settings, web, stops, lambda line: print(line, file=sys.stderr, flush=True))
        place, variables, front_page = web.place, web.variables, web.town_url
    made = {"home": str(folder), "front_page": front_page, **asdict(tour)}
    if not json:
        changes = ", ".join(f"{count} {kind}" for kind, count in sorted(tour.changes.items()))
        files = counted(tour.files, "WARC file")
        print(f"{counted(tour.pages, 'capture')} of pages from {files}; what happened to pages: {changes}")
    elif no_serve:
        print(jsonlib.dumps(made), flush=True)
    if no_serve:
        return
    secret = _add_account(settings)

    def invite(address: str) -> None:
        link = link_url(address, secret)
        if json:
            print(jsonlib.dumps({**made, "address": address, "sign_in_link": link}), flush=True)
        else:
            _invite(address, tour, link)

    code = _serve(folder, place, variables, invite)
    again = f"\nthe archive stays in {folder}; serve it again with: holdfast api --home {folder}"
    print(f"{again}\nto sign in then: holdfast user password {_ACCOUNT} --home {folder}", file=sys.stderr)
    if code:
        raise typer.Exit(code)


def _add_account(settings: Settings) -> str:
    """Add the demo's administrator with a random password; return the secret of a one-time sign-in link."""
    with open_archive(settings) as archive, archive.database.write() as session:
        clock = archive.clock
        user = add_user(session, clock, name=_ACCOUNT, role=Role.ADMINISTRATOR, password=new_secret())
        return make_link(session, clock, user, signs_in=True)


def _serve(folder: Path, place: WebPlace, variables: dict[str, str], ready: Callable[[str], None]) -> int:
    site = ServicePart(name="sites", command=(sys.executable, "-P", "-m", sites.__name__, *map(str, place)))
    # Log warnings only: other lines of the parts would scroll the invitation away.
    quiet = {} if "HOLDFAST_LOG_LEVEL" in os.environ else {"HOLDFAST_LOG_LEVEL": "WARNING"}
    return supervise(
        [*parts_of(workers=1), site],
        folder,
        variables={**variables, **quiet, "HOLDFAST_HOME": str(folder.resolve()), "HOLDFAST_CONTACT": CONTACT},
        on_ready=ready,
    )


def _invite(address: str, tour: DemoTour, link: str) -> None:
    fees = quote(tour.fees_url, safe=":/")
    print(f"\nready: {address}\n\nThe town is invented, and so are the dates of all crawls but today's.")
    print("\nTo look at, in a browser:")
    print(f"  the archive      {address}/")
    print(f"  search           {address}/search?q=parking+permit")
    print(f"  in French        {address}/search?q=piscine&language=fr")
    print(f"  in documents     {address}/search?q=budget&type=pdf")
    print(f"  through time     {address}/page?url={fees}")
    print(f"  as it was        {address}/view/{tour.moments[0]}?url={fees}")
    print(f"  what changed     {address}/compare?from={tour.snapshot_ids[0]}&to={tour.snapshot_ids[-1]}")
    print(f"  years of a site  {address}/sources/{TOWN}")
    print("\nFor programs (JSON):")
    # The best answer is an image without these words: the text of a link finds it.
    print(f"  by its links     {address}/api/search?q=drowned+causeway+chart")
    if tour.compare_path:
        print(f"  a change         {address}{tour.compare_path}")
    print(f"  all routes       {address}/docs")
    print(f"\nFor the control room, a link that signs you in, once and within {LINK_HOURS} hours:\n  {link}")
    print("\nCtrl-C ends it.", flush=True)
