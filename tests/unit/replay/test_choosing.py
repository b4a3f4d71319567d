"""Which capture answers: the same page first, then the moment, never in a circle. And the headers it comes with."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from holdfast.replay.address import earliest, latest
from holdfast.replay.finding import FoundCapture, WantedCapture, rank
from holdfast.replay.headers import connections, replay_policy, replayed_headers
from holdfast.replay.links import Links
from holdfast.warc.payload import HttpHead
from tests.archive import BEGIN


def seen(number: int, url: str, at: datetime = BEGIN, **more: object) -> FoundCapture:
    known = {"status": 200, "media_type": "text/html", "redirect_to": None, "record_type": "response"}
    return FoundCapture(id=number, url=url, captured_at=at, original_id=None, **{**known, **more})  # type: ignore[arg-type]


def best(found: list[FoundCapture], url: str, digits: str) -> int | None:
    ranked = rank(found, WantedCapture(url, earliest(digits), latest(digits), len(digits) == 14))
    return ranked[0].id if ranked else None


def test_the_nearest_capture_answers() -> None:
    found = [seen(1, "http://x/"), seen(2, "http://x/", BEGIN + timedelta(days=10))]

    assert best(found, "http://x/", "20240303000000") == 1
    assert best(found, "http://x/", "20240309000000") == 2


def test_a_capture_inside_the_period_comes_before_a_nearer_one_outside() -> None:
    found = [seen(1, "http://x/", datetime.fromisoformat("2023-12-31T23:00:00+00:00")), seen(2, "http://x/")]

    assert best(found, "http://x/", "2024") == 2


def test_a_page_comes_before_what_only_shares_its_key() -> None:
    found = [seen(1, "http://x/A"), seen(2, "http://x/a", BEGIN + timedelta(days=1))]

    assert best(found, "http://x/a", "20240301120000") == 2


def test_scheme_and_www_do_not_matter() -> None:
    assert best([seen(1, "https://www.x.org/a")], "http://x.org/a", "2024") == 1


def test_a_redirect_to_the_twin_gives_way_to_the_page() -> None:
    hop = seen(1, "http://x/", status=301, redirect_to="https://x/")
    landing = seen(2, "https://x/", BEGIN + timedelta(seconds=3))

    assert best([hop, landing], "http://x/", "2024") == 2
    assert best([hop, landing], "https://x/", "20240301120000") == 2


def test_a_redirect_is_replayed_when_that_very_capture_is_asked_for() -> None:
    hop = seen(1, "http://x/", status=301, redirect_to="https://x/")
    landing = seen(2, "https://x/", BEGIN + timedelta(seconds=3))

    assert best([hop, landing], "http://x/", "20240301120000") == 1


def test_a_redirect_never_leads_in_a_circle() -> None:
    hop = seen(1, "http://x/", status=301, redirect_to="https://x/")

    assert best([hop], "https://x/", "2024") is None
    assert best([hop], "http://x/", "2024") == 1


def test_a_revisit_without_its_body_comes_last() -> None:
    found = [seen(1, "http://x/", record_type="revisit"), seen(2, "http://x/", BEGIN + timedelta(days=9))]

    assert best(found, "http://x/", "2024") == 2


HOSTILE = (
    ("Set-Cookie", "a=b"), ("Clear-Site-Data", '"*"'), ("Service-Worker-Allowed", "/"),
    ("Strict-Transport-Security", "x"),
    ("Link", "<http://t/>; rel=preload"), ("Refresh", "0; url=http://t/"), ("SourceMap", "x"), ("Report-To", "{}"),
    ("Content-Security-Policy", "x"), ("Access-Control-Allow-Origin", "http://t"), ("X-Frame-Options", "DENY"),
    ("Content-Language", "fr"), ("Content-Type", "text/html"), ("Bad Name", "x"), ("X-Split", "a\r\nSet-Cookie: b=c"),
)  # fmt: skip


def test_archived_headers_come_back_by_allow_list_and_the_rest_has_no_power() -> None:
    links = Links("http://example.org/", digits="2024")

    told = replayed_headers(HttpHead(200, "OK", HOSTILE), links)

    plain = {name: value for name, value in told if not name.startswith("X-Archive-Orig-")}
    assert plain == {"Content-Language": "fr", "Refresh": "0; url=/web/2024/http://t/"}
    assert ("X-Archive-Orig-Set-Cookie", "a=b") in told
    assert all("\r" not in value and "\n" not in value for _, value in told)


def test_headers_are_few_and_small() -> None:
    many = tuple((f"X-{number}", "v" * 9000) for number in range(1000))

    told = replayed_headers(HttpHead(200, "OK", many), Links("http://example.org/", digits="2024"))

    assert sum(len(name) + len(value) for name, value in told) <= 16 * 1024


@pytest.mark.parametrize("location", ["/b", "b", "http://example.org/b", "//example.org/b"])
def test_a_location_leads_into_the_archive(location: str) -> None:
    head = HttpHead(302, "Found", (("Location", location),))

    told = dict(replayed_headers(head, Links("http://example.org/a", digits="2024")))

    assert told["Location"] == "/web/2024/http://example.org/b"


def test_the_sandbox_gives_neither_origin_nor_windows_nor_the_reader_away() -> None:
    policy = replay_policy("https://replay.example")

    assert "sandbox" in policy
    assert "allow-scripts" in policy
    assert not {"allow-same-origin", "allow-top-navigation", "allow-popups", "allow-downloads"} & set(
        policy.replace(";", " ").split()
    )
    assert "default-src https://replay.example 'unsafe-inline'" in policy
    assert "allow-scripts" not in replay_policy(nojs=True)
    assert "script-src 'none'" in replay_policy(nojs=True)
    assert connections("http://localhost:1") == '(response-origin "http://localhost:1/*");redirects=allow'
