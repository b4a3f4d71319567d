"""What several serving processes leave for one another, and the counts that they tell together."""

from __future__ import annotations

import os

from prometheus_client.parser import text_string_to_metric_families

from holdfast.metrics import ArchiveFigures, RecordedCrawls, RecordedFigures, ServerMetrics, exposition
from holdfast.wiring.shared_places import ServedProcess, SharedPlaces


def test_what_was_left_is_read_by_others_and_survives_its_process() -> None:
    places = SharedPlaces(3)
    if (pid := os.fork()) == 0:
        places.leave(1, b"first")
        places.leave(1, b"second")
        os._exit(0)
    os.waitpid(pid, 0)

    assert [places.left(number) for number in range(3)] == [b"", b"second", b""]
    assert list(ServedProcess(0, places).others()) == [b"second", b""]
    assert ServedProcess(1, places).left() == b"second"


def test_what_is_too_long_is_not_left_and_what_was_there_stays() -> None:
    places = SharedPlaces(1)
    places.leave(0, b"short")

    assert places.leave(0, b"x" * 300_000) is False
    assert places.left(0) == b"short"


def test_half_of_what_is_being_written_is_never_read() -> None:
    places = SharedPlaces(1)
    places.leave(0, b"old")
    # As a writer that was killed leaves it: the other half is begun, and the byte that names it is not written.
    half = places._memory.rfind(b"old") // (256 * 1024)
    other = 4096 if half else 4096 + 256 * 1024
    places._memory[other : other + 20] = b"\xff" * 20

    assert places.left(0) == b"old"


def _counted(server: ServerMetrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    storage: tuple[int, dict[str, dict[str, int]]] = (0, {"warc": {}})
    figures = ArchiveFigures(jobs={}, snapshots={}, pages=0, newest_page=0.0, storage=storage, scheduler={})
    recorded = RecordedCrawls(
        by_source={}, latency_s=(), latency_columns=("longer",), failures=(), statuses=(), pages_per_second=0.0,
        success_rate=None, queue=0, domains=0, domains_leased=0, domains_waiting=0, circuits={}, workers=0,
        heartbeat_age_s=0.0, progress_age_s=0.0, alerts={}, cleanups={},
    )  # fmt: skip
    text = exposition(server, figures, RecordedFigures(recorded)).decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


_REQUESTS = "holdfast_http_requests_total", (("kind", "search"), ("status", "2xx"))
_SLOW = "holdfast_http_request_duration_seconds_bucket", (("kind", "search"), ("le", "+Inf"))


def test_processes_tell_the_sum_of_what_they_counted_and_it_never_falls() -> None:
    places = SharedPlaces(2)
    one, other = (ServerMetrics(started=0.0, shared=ServedProcess(number, places)) for number in range(2))
    for _ in range(3):
        one.answered("search", 200, 0.01)
    other.answered("search", 200, 0.01)
    other.answered("replay", 404, 0.01)
    other.share()

    first = _counted(one)
    # The first dies and is replaced: what it had told is in its place.
    again = ServerMetrics(started=0.0, shared=ServedProcess(0, places))
    again.answered("search", 200, 0.01)
    second, seen_by_other = _counted(again), _counted(other)

    assert (first[_REQUESTS], first[_SLOW]) == (4, 4)
    assert first["holdfast_http_requests_total", (("kind", "replay"), ("status", "4xx"))] == 1
    assert (second[_REQUESTS], second[_SLOW]) == (5, 5)
    assert seen_by_other == second


def test_a_process_alone_tells_its_own() -> None:
    server = ServerMetrics(started=0.0)
    server.answered("search", 200, 0.01)

    assert _counted(server)[_REQUESTS] == 1


def test_slowest_search_is_the_maximum_of_all_processes() -> None:
    places = SharedPlaces(2)
    one, other = (ServerMetrics(started=0.0, shared=ServedProcess(number, places)) for number in range(2))
    one.answered("search", 200, 0.7)
    one.answered("search", 503, 0.1)
    other.answered("search", 422, 0.3)
    other.share()

    found = _counted(one)

    assert found["holdfast_search_duration_seconds_max", ()] == 0.7
    assert found["holdfast_search_errors_by_type_total", (("type", "unavailable"),)] == 1
    assert found["holdfast_search_errors_by_type_total", (("type", "invalid"),)] == 1
