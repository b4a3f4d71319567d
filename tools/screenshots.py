"""Takes the pictures of docs/screenshots/ anew: the demo's archive, served as anybody would, in a real Chromium.

From the repository: `.venv/bin/python tools/screenshots.py`; `--folder DIR` puts them elsewhere.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx
from playwright.sync_api import Browser, Page, expect, sync_playwright

ROOT = Path(__file__).parents[1]
_HOLDFAST = (sys.executable, "-P", "-m", "holdfast.cli.main")
_TOKEN, _PASSWORD = secrets.token_urlsafe(), secrets.token_urlsafe()
_WAIT_MS = 30_000


class Look(NamedTuple):
    """How a page is looked at."""

    theme: str = "light"
    width: int = 1280
    height: int = 860
    language: str = "en"


class Picture(NamedTuple):
    """A page to be shown."""

    name: str
    path: str
    look: Look = Look()
    is_ours: bool = False
    """Whether an administrator looks."""


def _pictures(tour: dict[str, Any], run: int) -> list[Picture]:
    fees = quote(tour["fees_url"], safe="")
    forbidden = quote(f"{tour['front_page']}staff/rota.html", safe="")
    before, after = tour["snapshot_ids"][1:3]
    digits = tour["moments"][1]
    phone = Look(theme="dark", width=390, height=844)
    return [
        Picture("overview", "/control", Look(theme="dark"), is_ours=True),
        Picture("run", f"/control/executions/{run}", is_ours=True),
        Picture("home", "/"),
        Picture("search", "/search?q=harbour"),
        Picture("page-through-time", f"/page?url={fees}&year=2024", Look(height=1180)),
        Picture("replay", f"/view/{digits}?url={fees}"),
        Picture("compare", f"/compare?from={before}&to={after}"),
        Picture("changes", "/changes", Look(theme="dark")),
        Picture("edition", "/editions/kelpsound/2026"),
        Picture("phone-search", "/search?q=port", phone._replace(language="fr")),
        Picture("source", "/control/sources/new?url=https://example.org/", is_ours=True),
        Picture("explain", f"/control/explain?url={forbidden}", is_ours=True),
    ]


@contextmanager
def _served(home: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Make the demo's archive, serve it as `holdfast demo` does, and yield its address and what there is to see."""
    variables = {**os.environ, "HOLDFAST_API_ADMIN_TOKEN": _TOKEN, "HOLDFAST_API_RATE_LIMITING": "false"}
    command = [*_HOLDFAST, "demo", "--json", "--port", "0", "--home", str(home)]
    process = subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        tour = json.loads(process.stdout.readline())
        yield tour["address"], tour
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def _begin_run(address: str, front_page: str) -> int:
    """Have the town crawled once more, and return the run when it has fetched some pages."""
    with httpx.Client(base_url=address, headers={"x-admin-token": _TOKEN}, timeout=30) as client:
        # Slowly, so that it still runs when it is looked at.
        asked = {"urls": [front_page], "source": "kelpsound", "config": {"delay_s": 2.0}}
        job = client.post("/api/admin/crawls", json=asked).raise_for_status().json()["jobId"]
        for _ in range(600):
            run = client.get(f"/api/v1/jobs/{job}").json()["latest_execution"]
            if run is not None and run["status"] == "running":
                # Long enough for some of its pages, and for a whole minute in the charts.
                time.sleep(75)
                return int(run["id"])
            time.sleep(0.1)
    raise SystemExit("the crawl did not begin")


def _open(browser: Browser, address: str, picture: Picture) -> Page:
    look = picture.look
    context = browser.new_context(
        viewport={"width": look.width, "height": look.height},
        color_scheme="dark" if look.theme == "dark" else "light",
        reduced_motion="reduce",
        locale="en-GB",
    )
    context.set_default_timeout(_WAIT_MS)
    script = f"localStorage.theme = '{look.theme}'; localStorage.language = '{look.language}'"
    context.add_init_script(f"if (location.origin === '{address}') {{ {script} }}")
    page = context.new_page()
    if picture.is_ours:
        page.goto(f"{address}/signin?next={quote(picture.path, safe='')}")
        page.get_by_label("Name").fill("ada")
        page.get_by_label("Password").fill(_PASSWORD)
        page.get_by_role("button", name="Sign in").click()
    else:
        page.goto(f"{address}{picture.path}")
    page.locator("h1").first.wait_for()
    expect(page.locator("main [aria-busy=true]")).to_have_count(0)
    # What a frame shows, and what a stream tells, come a moment later.
    page.wait_for_timeout(1500)
    return page


def main() -> None:
    """Take them all."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--folder", type=Path, default=ROOT / "docs" / "screenshots")
    arguments.add_argument("--chromium", default="/usr/bin/chromium")
    given = arguments.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="holdfast-pictures-") as folder, _served(Path(folder) / "home") as served:
        address, tour = served
        add = [*_HOLDFAST, "user", "add", "ada", "--role", "administrator", "--password-stdin"]
        subprocess.run([*add, "--home", f"{folder}/home"], input=_PASSWORD, text=True, check=True, capture_output=True)
        run = _begin_run(address, tour["front_page"])
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=given.chromium, args=["--no-sandbox"])
            for picture in _pictures(tour, run):
                _open(browser, address, picture).screenshot(path=given.folder / f"{picture.name}.png")
                print(picture.name, flush=True)
            browser.close()


if __name__ == "__main__":
    main()
