"""Nothing jumps while it loads: the layout shift of every page, as Chromium measures it."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest

from holdfast.auth.roles import Role
from tests import needs
from tests.flow.web.stage import HOSTILE_URL, OpenWindow, Stage

pytestmark = pytest.mark.slow
MOST_SHIFT = 0.1
_OBSERVE = """
window.shifts = [];
new PerformanceObserver((list) => {
  for (const one of list.getEntries()) if (!one.hadRecentInput) window.shifts.push({
    at: Math.round(one.startTime), value: one.value,
    nodes: one.sources.map(({ node }) => node && (node.outerHTML || node.textContent || '').slice(0, 160)),
  });
}).observe({ type: 'layout-shift', buffered: true });
"""
# After two more frames: the last change of the page is drawn, and its shift noted.
_SHIFTS = """() => document.fonts.ready.then(() => new Promise((done) =>
  requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done(window.shifts))))))"""
_TOWN = "https://www.kelpsound.example"
_REDIRECTS = {"/control/scheduler", "/control/sessions"}


def pages_of(stage: Stage) -> dict[str, str]:
    """Return an address for each route of the application."""
    with stage.asking() as client:
        found = client.get("/api/search", params={"q": "harbour", "source": "kelpsound"}).json()["results"][0]
        edition = client.get("/api/admin/annual-editions").json()["items"][0]
        user = client.get("/api/admin/users").json()["items"][0]["id"]
        job = client.get(f"/api/v1/jobs/{stage.job}").json()
        hook = client.post("/api/admin/webhooks", json={"url": "https://hooks.example/", "events": []}).json()["id"]
    url, moment = quote(found["originalUrl"], safe=""), re.sub("[^0-9]", "", found["captureTimestamp"])[:14]
    before, after = stage.captures
    return {
        "/": "/",
        "/search": "/search?q=harbour",
        "/changes": "/changes",
        "/compare": f"/compare?from={before}&to={after}",
        "/compare/site": "/compare/site?source=kelpsound",
        "/editions": "/editions",
        "/editions/$source/$year": f"/editions/{edition['sourceCode']}/{edition['year']}",
        "/page": f"/page?url={url}",
        "/view/$timestamp": f"/view/{moment}?url={url}",
        "/sources": "/sources",
        "/sources/$code": "/sources/kelpsound",
        "/control": "/control",
        "/control/start": "/control/start",
        "/control/sources": "/control/sources",
        "/control/sources/new": "/control/sources/new",
        "/control/sources/$id": f"/control/sources/{job['source_id']}",
        "/control/jobs": "/control/jobs",
        "/control/jobs/$id": f"/control/jobs/{stage.job}",
        "/control/executions/$id": f"/control/executions/{job['latest_execution']['id']}",
        "/control/feeds": "/control/feeds",
        "/control/frontier": "/control/frontier",
        "/control/domains": "/control/domains",
        "/control/domains/$domain": "/control/domains/www.kelpsound.example",
        "/control/explain": f"/control/explain?url={quote(HOSTILE_URL, safe='')}",
        "/control/imports": "/control/imports",
        "/control/index": "/control/index",
        "/control/storage": "/control/storage",
        "/control/takedowns": f"/control/takedowns?subject={quote(f'{_TOWN}/', safe='')}",
        "/control/reports": "/control/reports",
        "/control/schedules": "/control/schedules",
        "/control/editions": "/control/editions",
        "/control/editions/$id": f"/control/editions/{edition['editionId']}",
        "/control/users": "/control/users",
        "/control/users/$id": f"/control/users/{user}",
        "/control/webhooks": "/control/webhooks",
        "/control/webhooks/$id": f"/control/webhooks/{hook}",
        "/control/health": "/control/health",
        "/control/audit": "/control/audit",
        "/control/settings": "/control/settings",
    }


@pytest.mark.parametrize("width", [1280, 390])
def test_no_page_shifts_its_layout_while_it_loads(open_window: OpenWindow, stage: Stage, width: int) -> None:
    window, found = open_window(role=Role.ADMINISTRATOR, width=width), []
    window.context.add_init_script(_OBSERVE)
    for name, path in pages_of(stage).items():
        page = window.visit(path)
        shifts = page.evaluate(_SHIFTS)
        if sum(one["value"] for one in shifts) > MOST_SHIFT:
            found += [f"{name} at {width} px: {one}" for one in shifts if one["value"] > MOST_SHIFT / 5]

    assert not found, "\n".join(found)


def test_every_route_is_measured(stage: Stage) -> None:
    folder = needs.ROOT / "web" / "src" / "app"
    public = re.findall(r'path: "(/[^"]*)"', (folder / "publicRoutes.tsx").read_text("utf-8"))
    control = [
        "/control" + path.rstrip("/")
        for file in ("crawlRoutes.tsx", "careRoutes.tsx")
        for path in re.findall(r'path: "(/[^"]*)"', (folder / file).read_text("utf-8"))
    ]
    assert {*public, *control} - pages_of(stage).keys() == _REDIRECTS
