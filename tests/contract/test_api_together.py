"""Two servers that are asked at once for changes to the same jobs: nothing breaks, and nothing is done twice."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice

from holdfast.jobs.states import State
from tests.api_bed import Server

_WISHES = ("pause", "resume", "plan", "upsert", "pause", "resume", "source")


def _changes(server: Server, number: int) -> Counter[int]:
    """Ask for one change after the other; return how often each status came."""
    statuses: Counter[int] = Counter()
    for step, wish in enumerate(islice(cycle(_WISHES), number, number + 21)):
        if wish == "plan":
            answer = server.ask("PUT", "/api/v1/jobs/1", interval_minutes=60 + step)
        elif wish == "upsert":
            answer = server.ask("POST", "/api/v1/jobs", source_id=1, url="https://ex.example/", interval_minutes=90,
                                schedule_enabled=True)  # fmt: skip
        elif wish == "source":
            answer = server.ask("PATCH", "/api/v1/sources/1", config={"delay_s": 1 + step})
        else:
            answer = server.ask("POST", f"/api/v1/jobs/1/{wish}")
        statuses[answer.status_code] += 1
    return statuses


def test_changes_from_two_servers_at_once_are_taken_or_refused_and_never_break(servers: list[Server]) -> None:
    servers[0].recurring()

    with ThreadPoolExecutor(max_workers=2) as threads:
        found = list(threads.map(_changes, servers, (0, 3)))

    assert set(found[0] + found[1]) <= {200, 201, 400}, found
    assert sum((found[0] + found[1]).values()) == 42
    row = servers[0].row(1)
    assert row["state"] in (State.SCHEDULED, State.PAUSED)
    assert (row["next_run_at"] is None) == (row["state"] == State.PAUSED)
    assert len(servers[0].bed.executions(1)) == 0


def test_a_source_that_two_make_at_once_is_made_once(servers: list[Server]) -> None:
    def make(server: Server) -> list[int]:
        return [server.ask("POST", "/api/v1/sources", code=f"s{number}", config={
            "seeds": [f"https://s{number}.example/"]}).status_code for number in range(10)]  # fmt: skip

    with ThreadPoolExecutor(max_workers=2) as threads:
        first, second = threads.map(make, servers)

    assert [sorted(pair) for pair in zip(first, second, strict=True)] == [[201, 400]] * 10
    assert servers[1].get("/api/v1/sources").json()["total"] == 10
