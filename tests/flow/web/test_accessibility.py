"""Every page of the application and of accounts in Chromium, in every look: whole, within its width, clean to axe."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from urllib.parse import quote, urlsplit

import pytest
from playwright.sync_api import expect

from holdfast.auth.roles import Role
from tests import needs
from tests.flow.web.stage import HOSTILE_URL, LOOKS, Look, OpenWindow, Stage, Window

pytestmark = pytest.mark.slow
_TOWN = "http://www.kelpsound.example"
_FOLDED = {"/control/scheduler", "/control/sessions"}
"""Routes that lead elsewhere."""


def _routes() -> set[str]:
    """Return the paths of the application's table of routes."""
    app, found = needs.ROOT / "web" / "src" / "app", set()
    for file in app.glob("*Routes.tsx"):
        below = "" if file.name == "publicRoutes.tsx" else "/control"
        found |= {f"{below}{path}".rstrip("/") or "/" for path in re.findall(r'path: "(/[^"]*)"', file.read_text())}
    assert len(found) > 30, found
    return found - _FOLDED


def _matches(route: str, path: str) -> bool:
    pattern = re.sub(r"\\\$\w+", "[^/]+", re.escape(route))
    return re.fullmatch(pattern, urlsplit(path).path) is not None


def _public(stage: Stage) -> dict[str, str]:
    before, after = stage.captures
    with stage.asking() as client:
        found = client.get("/api/search", params={"q": "harbour", "source": "kelpsound"}).json()["results"][0]
        year = client.get("/api/coverage", params={"source": "kelpsound"}).json()["items"][0]["year"]
        later, earlier = [one["jobId"] for one in client.get("/api/sources/kelpsound/editions").json()[:2]]
    page, hostile = quote(found["originalUrl"], safe=""), quote(HOSTILE_URL, safe="")
    return {
        "home": "/",
        "search": "/search?q=harbour",
        "search-none": "/search?q=qqqzzzxxx",
        "changes": "/changes",
        "changes-gone": "/changes?type=gone",
        "compare": f"/compare?from={before}&to={after}",
        "site": f"/compare/site?source=kelpsound&from={earlier}&to={later}",
        "sources": "/sources",
        "source": "/sources/kelpsound",
        "editions": "/editions",
        "edition": f"/editions/kelpsound/{year}",
        "page": f"/page?url={page}",
        "page-none": "/page?url=https%3A%2F%2Fnever.example%2F",
        "view": f"/view/{re.sub('[^0-9]', '', found['captureTimestamp'])[:14]}?url={page}",
        **{
            f"view-{mode}": f"/view/latest?url={hostile}&mode={mode}" for mode in ("text", "source", "headers", "parts")
        },
        "missing": "/nothing/here",
        "signin": "/signin",
        "setup": "/setup",
    }


def _control(stage: Stage) -> dict[str, str]:
    with stage.asking() as client:
        edition = client.get("/api/admin/annual-editions").json()["items"][0]["editionId"]
        user = client.get("/api/admin/users").json()["items"][0]["id"]
        job = client.get(f"/api/v1/jobs/{stage.job}").json()
        run = job["latest_execution"]["id"]
        hook = {"url": "https://hook.example/", "events": []}
        client.post("/api/admin/webhooks", json=hook)
        webhook = client.get("/api/admin/webhooks").json()["items"][0]["id"]
    return {
        "overview": "/control",
        "start": "/control/start",
        "control-sources": "/control/sources",
        "control-source-new": "/control/sources/new?url=https://ex.example/docs/",
        "control-source": f"/control/sources/{job['source_id']}",
        "control-source-yaml": f"/control/sources/{job['source_id']}?view=yaml",
        "jobs": "/control/jobs",
        "jobs-none": "/control/jobs?q=qqqzzzxxx",
        "job": f"/control/jobs/{stage.job}",
        "run": f"/control/executions/{run}",
        "run-log": f"/control/executions/{run}?tab=log",
        "feeds": "/control/feeds",
        "frontier": "/control/frontier?status=completed",
        "domains": "/control/domains",
        "domain": f"/control/domains/www.kelpsound.example?url={quote(f'{_TOWN}/staff/rota.html', safe='')}",
        "explain": f"/control/explain?url={quote(HOSTILE_URL, safe='')}",
        "schedules": "/control/schedules",
        "control-editions": "/control/editions",
        "control-edition": f"/control/editions/{edition}",
        "imports": "/control/imports",
        "index": "/control/index",
        "storage": "/control/storage",
        "takedowns": f"/control/takedowns?subject={quote(f'{_TOWN}/', safe='')}",
        "reports": "/control/reports",
        "users": "/control/users",
        "user": f"/control/users/{user}",
        "webhooks": "/control/webhooks",
        "webhook": f"/control/webhooks/{webhook}",
        "audit": "/control/audit",
        "settings": "/control/settings",
        "settings-found": "/control/settings?search=uploads",
        "health": "/control/health",
        "account": "/account",
    }


def _walk(window: Window, screens: dict[str, str], looks: Sequence[Look] = LOOKS) -> Iterator[str]:
    for name, path in screens.items():
        page = window.visit(path)
        expect(page.get_by_role("status").filter(has_text=re.compile("…$"))).to_have_count(0)
        yield from window.complaints_in(looks, name)


def test_walk_visits_every_route_of_the_application(stage: Stage) -> None:
    paths = [*_public(stage).values(), *_control(stage).values()]

    assert {route for route in _routes() if not any(_matches(route, path) for path in paths)} == set()


def test_every_public_page_is_whole_and_accessible_in_every_look(open_window: OpenWindow, stage: Stage) -> None:
    # What is not there is answered with 404, which a browser writes into its console.
    found = [one for one in _walk(open_window(), _public(stage)) if "404" not in one]

    assert not found, "\n".join(found)


def test_every_public_page_is_whole_and_accessible_in_french_on_a_phone(open_window: OpenWindow, stage: Stage) -> None:
    window = open_window(language="fr")
    found = [one for one in _walk(window, _public(stage), [LOOKS[-1]]) if "404" not in one]
    window.visit("/")
    expect(window.page.locator("html")).to_have_attribute("lang", "fr")

    assert not found, "\n".join(found)


@pytest.mark.parametrize("third", range(3))
def test_every_page_for_operators_is_whole_and_accessible_in_every_look(
    open_window: OpenWindow, stage: Stage, third: int
) -> None:
    screens = dict(list(_control(stage).items())[third::3])
    found = list(_walk(open_window(role=Role.ADMINISTRATOR), screens))

    assert not found, "\n".join(found)
