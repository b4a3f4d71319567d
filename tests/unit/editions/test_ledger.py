"""The ledger: any mix of sightings gives one row an address, and sums that agree."""

from __future__ import annotations

import csv
import io
import json
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.editions.edition_files import csv_line
from holdfast.editions.ledger import (
    CSV_COLUMNS,
    AddressSighting,
    LedgerOutcome,
    LedgerUnbalanced,
    Row,
    SightingOrigin,
    Tally,
    as_cells,
    as_object,
    is_gap,
    missing_seeds,
    outcome_of,
    outcome_of_status,
    pack,
    unite,
    unpack,
)
from holdfast.editions.ledger_reading import is_plumbing
from holdfast.urls import parse_seed

_PATHS = ("/", "/a", "/a/b", "/fr/", "/en/x", "/é", "/a?x=1", "/a?x=1&y=2")
_HOSTS = ("https://a.ca", "http://a.ca", "https://www.a.ca", "https://b.org:8443")


def sighting(url: str = "https://a.ca/", **fields: Any) -> AddressSighting:
    """Return a sighting of an address."""
    made = parse_seed(url)
    base = AddressSighting(
        url=made.fetch, url_hash=made.hash64, origin=SightingOrigin.LINK, outcome=LedgerOutcome.NOT_REACHED, reason="x"
    )
    return base._replace(**fields)


@st.composite
def sightings(draw: st.DrawFn) -> AddressSighting:
    """Any sighting of one of a few addresses."""
    outcome = draw(st.sampled_from(LedgerOutcome))
    captured = outcome is LedgerOutcome.CAPTURED
    return sighting(
        draw(st.sampled_from(_HOSTS)) + draw(st.sampled_from(_PATHS)),
        outcome=outcome,
        origin=draw(st.sampled_from(SightingOrigin)),
        reason=draw(st.sampled_from(["ok", "timeout", "http_404", "=1+1"])),
        detail=draw(st.sampled_from([None, "Disallow: /x", "line\nbreak\x00"])),
        at=draw(st.none() | st.integers(0, 5)),
        execution_id=draw(st.none() | st.integers(1, 3)),
        shard_key=draw(st.sampled_from([None, "lang-en"])),
        http_status=draw(st.sampled_from([None, 200, 404, 503])),
        backend="native" if captured else None,
        fidelity="high" if captured else None,
    )


def united(found: list[AddressSighting]) -> list[Row]:
    """Return the rows of a ledger."""
    return list(unite(sorted(map(pack, found))))


@given(st.lists(sightings(), max_size=40), st.lists(st.sampled_from(_PATHS), max_size=3), st.randoms())
def test_any_mix_gives_one_row_an_address_and_sums_that_agree(
    found: list[AddressSighting], seeds: list[str], chance: random.Random
) -> None:
    planned = {made.hash64: made.fetch for made in (parse_seed(f"https://a.ca{path}") for path in seeds)}
    found = [one._replace(origin=SightingOrigin.LINK) if one.origin is SightingOrigin.SEED else one for one in found]
    found += [sighting(url, origin=SightingOrigin.SEED, reason="shard_queued") for url in planned.values()]

    rows = united(found)

    shuffled = found[:]
    chance.shuffle(shuffled)
    assert united(shuffled) == rows
    assert Counter(row.seen.url_hash for row in rows) == Counter({one.url_hash: 1 for one in found})
    tally = Tally(planned.items())
    for row in rows:
        tally.add(row)
    tally.check(written=len(rows), recounted=Counter(as_object(row)["outcome"] for row in rows))
    counts = tally.counts()
    parts = ("captured_urls", "failed_urls", "missing_urls", "excluded_urls")
    assert sum(counts[part] for part in parts) == counts["intended_urls"] == len(rows)
    assert len(tally.missing_seeds) == sum(
        row.seen.url_hash in planned and row.seen.outcome is not LedgerOutcome.CAPTURED for row in rows
    )
    best = {
        one.url_hash: min(list(LedgerOutcome).index(other.outcome) for other in found if other.url_hash == one.url_hash)
        for one in found
    }
    assert all(list(LedgerOutcome).index(row.seen.outcome) == best[row.seen.url_hash] for row in rows)


@given(sightings())
def test_a_sighting_survives_its_line(one: AddressSighting) -> None:
    line = pack(one)

    assert line.count(b"\n") == 1
    assert unpack(line)[2] == one


def test_the_best_outcome_wins_and_then_the_latest() -> None:
    failed = sighting(outcome=LedgerOutcome.FAILED, reason="http_503", execution_id=2, at=9)
    first = sighting(outcome=LedgerOutcome.CAPTURED, reason="ok", execution_id=1, at=1)
    again = first._replace(execution_id=3, at=5, origin=SightingOrigin.SITEMAP, via="https://a.ca/sitemap.xml")

    (row,) = united([failed, first, again])

    assert (row.seen.outcome, row.seen.execution_id, row.executions) == (LedgerOutcome.CAPTURED, 3, 3)
    assert (row.seen.origin, row.seen.via) == (SightingOrigin.SITEMAP, "https://a.ca/sitemap.xml")


@pytest.mark.parametrize(
    ("outcome", "reason", "ended", "said"),
    [
        ("success", "ok", "done", (LedgerOutcome.CAPTURED, "ok")),
        ("success", "redirected", "done", (LedgerOutcome.CAPTURED, "redirected")),
        ("failed", "domain_unreachable", "done", (LedgerOutcome.FAILED, "domain_unreachable")),
        ("timeout", "timeout", "done", (LedgerOutcome.FAILED, "timeout")),
        ("blocked_4xx", "http_404", "done", (LedgerOutcome.FAILED, "http_404")),
        ("blocked_5xx", "http_500", "done", (LedgerOutcome.FAILED, "http_500")),
        ("blocked_robots", "robots:line 7", "done", (LedgerOutcome.ROBOTS, "robots:line 7")),
        (
            "excluded",
            "redirect_out_of_scope:scope:host",
            "done",
            (LedgerOutcome.EXCLUDED, "redirect_out_of_scope:scope:host"),
        ),
        ("excluded", "over_limit:max_pages", "done", (LedgerOutcome.OVER_LIMIT, "max_pages")),
        (None, None, "stopped", (LedgerOutcome.NOT_REACHED, "execution_stopped")),
        ("excluded", "stopped", "stopped", (LedgerOutcome.NOT_REACHED, "execution_stopped")),
        ("excluded", "cancelled", "cancelled", (LedgerOutcome.NOT_REACHED, "execution_cancelled")),
        ("excluded", "domain_forbidden", "done", (LedgerOutcome.EXCLUDED, "domain_forbidden")),
        (None, None, "max_bytes", (LedgerOutcome.OVER_LIMIT, "max_bytes")),
        ("failed", None, "done", (LedgerOutcome.FAILED, "failed")),
    ],
)
def test_an_outcome_of_the_frontier_has_one_meaning(
    outcome: str | None, reason: str | None, ended: str, said: tuple[LedgerOutcome, str]
) -> None:
    assert outcome_of(outcome, reason, ended=ended) == said


@pytest.mark.parametrize(
    ("outcome", "status", "gap"),
    [
        (LedgerOutcome.CAPTURED, 200, False),
        (LedgerOutcome.FAILED, 404, False),
        (LedgerOutcome.FAILED, 429, True),
        (LedgerOutcome.FAILED, 503, True),
        (LedgerOutcome.FAILED, None, True),
        (LedgerOutcome.NOT_REACHED, None, True),
        (LedgerOutcome.ROBOTS, None, False),
    ],
)
def test_a_gap_is_what_another_try_could_bring(outcome: LedgerOutcome, status: int | None, gap: bool) -> None:
    assert is_gap(Row(b"", sighting(outcome=outcome, http_status=status), 1)) is gap


def test_an_address_that_is_told_twice_is_refused() -> None:
    tally = Tally([])
    (row,) = united([sighting()])
    tally.add(row)

    with pytest.raises(LedgerUnbalanced, match="twice"):
        tally.add(row)


def _tally(*found: AddressSighting, seeds: tuple[str, ...] = ()) -> Tally:
    tally = Tally([(parse_seed(url).hash64, url) for url in seeds])
    for row in united(list(found)):
        tally.add(row)
    return tally


@pytest.mark.parametrize(
    ("written", "recounted"),
    [
        (2, {"not_reached": 1}),
        (1, {"not_reached": 2}),
        (1, {"captured": 1}),
        (1, {}),
        (0, {"not_reached": 1}),
    ],
)
def test_a_file_that_does_not_hold_what_was_counted_is_refused(written: int, recounted: dict[str, int]) -> None:
    with pytest.raises(LedgerUnbalanced, match="nothing was written"):
        _tally(sighting()).check(written=written, recounted=recounted)


def test_a_seed_without_a_row_is_refused() -> None:
    tally = _tally(sighting("https://a.ca/x"), seeds=("https://a.ca/",))

    with pytest.raises(LedgerUnbalanced, match="1 seeds without a row"):
        tally.check(written=1, recounted={"not_reached": 1})


def test_a_captured_address_without_its_backend_is_refused() -> None:
    tally = _tally(sighting(outcome=LedgerOutcome.CAPTURED, backend="native", fidelity="high"))
    tally.backends.clear()

    with pytest.raises(LedgerUnbalanced, match="backends 0 for 1 captured"):
        tally.check(written=1, recounted={"captured": 1})


def test_gaps_belong_to_the_seeds_whose_language_they_have() -> None:
    seeds = ("https://a.ca/en/", "https://a.ca/fr/", "https://a.ca/")
    tally = _tally(
        *(sighting(url) for url in ("https://a.ca/en/1", "https://a.ca/en/2", "https://a.ca/fr/1")),
        sighting("https://other.org/en/1"),
        seeds=seeds,
    )

    assert [tally.gaps_of(seed) for seed in seeds] == [2, 1, 3]


def test_a_table_keeps_its_columns_and_no_cell_of_it_is_a_formula() -> None:
    row = Row(b"", sighting(outcome=LedgerOutcome.FAILED, reason="=cmd()", detail="the server said: secret path"), 1)

    cells = next(csv.reader(io.StringIO(csv_line(as_cells(row)).decode())))

    assert len(cells) == len(CSV_COLUMNS)
    assert cells[3] == "'=cmd()"
    assert "secret" not in ",".join(cells)


@pytest.mark.parametrize("value", ["=1+1", "+1", "-1", "@a", "\t=1", "\r\n=1", " =1", "\uff1d1+1", "\x00=1"])
def test_a_cell_that_a_spreadsheet_would_run_begins_with_a_quote(value: str) -> None:
    assert csv_line([value, 1]).startswith(b"'")


def test_a_line_of_a_table_is_one_line_whatever_is_in_it() -> None:
    odd = ['a,b;c"d', "a\nb\rc\u2028d\x00e", "https://a.ca/\ud800", "'quoted", None, -5]

    line = csv_line(odd).decode()

    assert line.count("\n") == 1
    assert len(line.splitlines()) == 1
    assert next(csv.reader(io.StringIO(line))) == ['a,b;c"d', "a b c d e", "https://a.ca/?", "'quoted", "", "-5"]


def test_a_written_ledger_tells_all_seeds_that_are_missing_however_many() -> None:
    seeds = [sighting(f"https://a.ca/{number}", origin=SightingOrigin.SEED, job_id=7) for number in range(1500)]
    others = [sighting('https://a.ca/x"intent_source": "seed", "status": "missing"'), sighting("https://b.org/")]
    found = sighting("https://a.ca/found", origin=SightingOrigin.SEED, outcome=LedgerOutcome.CAPTURED)

    lines = [json.dumps(as_object(row)).encode() for row in united([*seeds, *others, found])]
    told = missing_seeds(lines)

    assert {seed.url for seed in told} == {one.url for one in seeds}
    assert told[0][1:] == ("not_reached", "x", 7, None, False)


@pytest.mark.parametrize(
    ("status", "truncated", "said"),
    [
        (200, None, (LedgerOutcome.CAPTURED, "ok")),
        (200, "length", (LedgerOutcome.CAPTURED, "ok")),
        (200, "disconnect", (LedgerOutcome.FAILED, "truncated")),
        (200, "time", (LedgerOutcome.FAILED, "truncated")),
        (301, "disconnect", (LedgerOutcome.CAPTURED, "redirected")),
        (404, "time", (LedgerOutcome.FAILED, "http_404")),
    ],
)
def test_a_capture_that_broke_off_is_no_capture_of_the_page(
    status: int, truncated: str | None, said: tuple[LedgerOutcome, str]
) -> None:
    assert outcome_of_status(status, truncated) == said


@pytest.mark.parametrize(
    ("url", "own"),
    [
        ("https://a.example/robots.txt", True),
        ("https://a.example/sitemap.xml", True),
        ("https://a.example/sitemaps/en/Sitemap_index-2.xml.gz?x=1", True),
        ("https://a.example/about/robots.txt", False),
        ("https://a.example/sitemap.html", False),
        ("https://a.example/sitemap/", False),
        ("https://a.example/data.xml", False),
    ],
)
def test_what_crawlers_ask_for_on_their_own_account_is_no_content(url: str, own: bool) -> None:
    assert is_plumbing(url) is own
