"""`holdfast serve` as a person starts it: a job made over HTTP runs, is found and replayed, and a kill is survived."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from holdfast.processes.part_states import read_parts
from tests import patience
from tests.client import ADMIN, WITH_TOKEN
from tests.flow.crawler import Crawler
from tests.flow.faults.bed import until
from tests.flow.plant import Plant
from tests.site import Site


@pytest.fixture
def plant(crawler: Crawler) -> Iterator[Plant]:
    """An installation on SQLite; its processes do not outlive the test."""
    made = Plant(crawler)
    yield made
    made.end()


def _json(answer: httpx.Response) -> Any:
    assert answer.is_success, answer.text
    return answer.json()


def _pid(plant: Plant, name: str) -> int:
    found = {part.name: part.pid for part in read_parts(plant.crawler.home) or []}[name]
    assert found is not None
    return found


def test_serve_runs_a_job_that_was_made_over_http_survives_a_killed_worker_and_drains(plant: Plant) -> None:
    supervisor = plant.start("serve", "--port", "0", HOLDFAST_API_RATE_LIMITING="false", **WITH_TOKEN)
    assert supervisor.stdout is not None
    line = supervisor.stdout.readline()
    assert line.startswith("serving http://127.0.0.1:"), plant.log()[-2000:]
    address, port = line.split()[1], line.rpartition(":")[2].strip()

    asking = httpx.Client(base_url=address, headers=ADMIN, timeout=patience.deadline(20))
    with Site.plain(hosts=1, pages=8) as site, asking as client:

        def parts() -> dict[str, str]:
            found: dict[str, str] = _json(client.get("/api/health"))["checks"]["parts"]
            return found

        def found_pages() -> int:
            # 503 for the moment in which the first index is made.
            answer = client.get("/api/search?source=ex")
            return int(answer.json()["total"]) if answer.is_success else 0

        until(lambda: parts() == dict.fromkeys(("api", "scheduler", "worker"), "running"), within_s=20, what="all run")
        config = {"seeds": [site.url(0)], "delay_s": 0.05, "max_depth": -1}
        source = _json(client.post("/api/v1/sources", json={"code": "ex", "config": config}))["id"]
        _json(client.post("/api/v1/jobs", json={"source_id": source, "url": site.url(0)}))
        until(lambda: len(site.log()) > 1, within_s=30, what="the crawl has begun")
        os.kill(_pid(plant, "worker"), signal.SIGKILL)
        until(lambda: found_pages() >= 8, within_s=40, what="all is searchable")

        found = _json(client.get("/api/search?source=ex"))["results"][0]
        path = found["browseUrl"].partition(f":{port}")[2].partition("#")[0]
        replayed = client.get(path, headers={"Host": f"replay.localhost:{port}"})
        assert (replayed.status_code, parts()["worker"]) == (200, "running")

    began = time.monotonic()
    supervisor.send_signal(signal.SIGTERM)
    assert supervisor.wait(patience.deadline(30)) == 0, plant.log()[-4000:]
    assert time.monotonic() - began < patience.allowed(10)
    assert plant.log().count('"serve.part_starts"') == 4, "three parts, and the worker once more"
    assert plant.crawler.faults() == []
