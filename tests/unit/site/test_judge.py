"""The judge of politeness finds what it should, and blames nobody else."""

from __future__ import annotations

from tests.site import Entry, Site, judge
from tests.unit.site.client import ask


def _entry(number: int, start: float, end: float | None) -> Entry:
    path = f"/{number}"
    return Entry(id=number, connection=number, host="127.0.0.2", port=80, method="GET", path=path, start=start, end=end)


def test_requests_one_after_the_other_at_the_delay_are_polite() -> None:
    log = [_entry(1, 0.0, 0.1), _entry(2, 1.0, 1.5), _entry(3, 1.9995, 2.1)]

    assert judge(log, delay_s=1.0) == []


def test_two_starts_closer_than_the_delay_are_a_gap() -> None:
    (found,) = judge([_entry(1, 0.0, 0.1), _entry(2, 0.9, 1.0)], delay_s=1.0)

    assert (found.kind, found.host, found.earlier, found.later) == ("gap", "127.0.0.2:80", "/1", "/2")
    assert round(found.short_by_s, 3) == 0.1
    assert "0.100 s too early" in str(found)


def test_two_requests_at_once_overlap_even_across_a_short_one() -> None:
    log = [_entry(1, 0.0, 5.0), _entry(2, 1.0, 1.1), _entry(3, 2.0, 2.1), _entry(4, 6.0, 6.1)]

    assert [(found.kind, found.earlier, found.later) for found in judge(log, delay_s=1.0)] == [
        ("overlap", "/1", "/2"),
        ("overlap", "/1", "/3"),
    ]


def test_a_request_that_never_ended_overlaps_all_later_ones() -> None:
    assert [found.kind for found in judge([_entry(1, 0.0, None), _entry(2, 9.0, 9.1)], delay_s=1.0)] == ["overlap"]


def test_a_client_that_hung_up_is_forgiven_the_moment_in_which_we_notice() -> None:
    assert judge([_entry(1, 0.0, 1.02)._replace(aborted=True), _entry(2, 1.0, 1.1)], delay_s=1.0) == []


def test_retry_after_counts_from_the_end_of_the_answer_and_outlasts_other_answers() -> None:
    log = [
        _entry(1, 0.0, 0.5)._replace(retry_after=3.0),
        _entry(2, 2.0, 2.1),
        _entry(3, 3.4, 3.45),
        _entry(4, 4.5, 4.6),
    ]

    assert [(found.kind, found.later) for found in judge(log, delay_s=1.0)] == [
        ("retry_after", "/2"),
        ("retry_after", "/3"),
    ]


def test_hosts_and_ports_are_judged_apart_and_by_their_own_delay() -> None:
    here, there = _entry(1, 0.0, 0.1), _entry(2, 0.1, 0.2)
    elsewhere = Entry(id=3, connection=3, host="127.0.0.3", port=80, method="GET", path="/", start=0.1, end=0.2)
    other_port = Entry(id=4, connection=4, host="127.0.0.2", port=443, method="GET", path="/", start=0.1, end=0.2)

    assert judge([here, elsewhere, other_port], delay_s=1.0) == []
    assert judge([here, there], delay_s=1.0, delays={"127.0.0.2": 0.1}) == []


def test_a_real_client_that_waits_for_each_answer_never_overlaps(site: Site) -> None:
    for number in range(200):
        ask(site, f"/meta/title?n={number}")

    assert judge(site.settled(), delay_s=0.0) == []
