"""What a run is, from what happened to its addresses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.jobs.endings import (
    RULES,
    EndedAs,
    Facts,
    Retry,
    Shortfall,
    facts_of,
    failed,
    read,
    rule_of,
    sentence_of,
    shortfall_text,
)

_GOOD = Facts(captured=10, answered=10)


@pytest.mark.parametrize(
    ("facts", "state", "reason", "shortfalls"),
    [
        (_GOOD, "completed", "done", {}),
        (Facts(), "completed", "done", {}),
        (Facts(captured=10, answered=12, failed=2), "completed", "done", {}),
        (replace(_GOOD, failed=4, hosts_given_up=2), "completed", "hosts_given_up", {"hosts_given_up": 2}),
        (replace(_GOOD, failed=1, truncated=1), "completed", "truncated", {"truncated": 1}),
        (replace(_GOOD, over={"max_pages": 7}), "completed", "max_pages", {"max_pages": 7}),
        (replace(_GOOD, over={"max_bytes": 7}), "completed", "max_bytes", {"max_bytes": 7}),
        (replace(_GOOD, over={"max_time": 7}), "completed", "max_time", {"max_time": 7}),
        (replace(_GOOD, stopped=90), "completed", "stopped", {"stopped": 90}),
        (Facts(stopped=0), "completed", "stopped", {"stopped": 0}),
        (Facts(failed=3, hosts_given_up=1), "failed", "no_server", {"no_server": 3, "hosts_given_up": 1}),
        (Facts(answered=3, failed=3), "failed", "nothing_captured", {"nothing_captured": 3}),
        (Facts(answered=2, redirects=2), "failed", "nothing_captured", {"nothing_captured": 2}),
        (Facts(answered=1, moved=1), "failed", "nothing_captured", {"nothing_captured": 1, "seeds_moved": 1}),
        (replace(_GOOD, files_elsewhere=3), "completed", "files_elsewhere", {"files_elsewhere": 3}),
        (replace(_GOOD, moved=1), "completed", "seeds_moved", {"seeds_moved": 1}),
        (
            replace(_GOOD, failed=9, hosts_given_up=3, truncated=2, over={"max_pages": 5}),
            "completed",
            "max_pages",
            {"max_pages": 5, "hosts_given_up": 3, "truncated": 2},
        ),
        (
            replace(_GOOD, left_out={"over_limit:links": 4000, "trap:query_variants": 2}),
            "completed",
            "limits",
            {"limits": 4002, "over_limit:links": 4000, "trap:query_variants": 2},
        ),
        (
            replace(_GOOD, truncated=1, hosts_given_up=1, left_out={"over_limit:unread": 1}),
            "completed",
            "hosts_given_up",
            {"hosts_given_up": 1, "limits": 1, "truncated": 1, "over_limit:unread": 1},
        ),
    ],
)
def test_the_reason_is_the_worst_and_all_shortfalls_are_named(
    facts: Facts, state: str, reason: str, shortfalls: dict[str, int]
) -> None:
    found = read(facts)

    assert (found.state, found.reason, found.shortfalls) == (state, reason, shortfalls)
    assert list(found.shortfalls) == list(shortfalls)
    assert found.rule in RULES


def test_failed_run_names_what_it_fell_short_of_before() -> None:
    so_far = read(Facts(failed=3, hosts_given_up=2, left_out={"over_limit:links": 4}))

    found = failed(Shortfall.CRASHED, 8, so_far)

    assert (so_far.reason, found.state, found.reason) == ("no_server", "failed", "crashed")
    assert found.shortfalls == {"crashed": 8, "hosts_given_up": 2, "limits": 4, "over_limit:links": 4}
    assert "2 hosts given up" in found.sentence()


def test_facts_are_counted_by_the_words_of_the_frontier() -> None:
    groups = [
        EndedAs("success", "ok", "page", 5, 2, 5),
        EndedAs("success", "ok", "requisite", 7, 3, 7),
        EndedAs("failed", "domain_unreachable", "page", 20, 3, 0),
        EndedAs("failed", "domain_unreachable", "requisite", 9, 9, 0),
        EndedAs("failed", "truncated", "page", 1, 1, 1),
        EndedAs("blocked_4xx", "http_404", "page", 2, 1, 2),
        EndedAs("excluded", "over_limit:max_pages", "page", 30, 1, 0),
        EndedAs("excluded", "over_limit:max_pages", "sitemap", 1, 1, 0),
        EndedAs("blocked_robots", "robots", "page", 4, 1, 0),
    ]

    groups.append(EndedAs("success", "redirected", "page", 3, 1, 3))
    groups.append(EndedAs("excluded", "redirect_new_owner:b.example", "page", 1, 1, 1))

    assert facts_of(groups) == Facts(
        redirects=3, moved=1, captured=5, answered=23, failed=32, hosts_given_up=3, truncated=1, over={"max_pages": 31}
    )


def test_a_site_that_forbids_everything_was_reached() -> None:
    assert read(facts_of([EndedAs("blocked_robots", "robots", "page", 4, 1, 0)])).reason == "done"


def test_a_word_that_is_not_in_the_table_is_never_ready() -> None:
    assert rule_of("completed", None).is_ready
    assert not rule_of("completed", "of another version").is_ready
    assert (rule_of("failed", "odd").retry, rule_of("failed", "odd").exit_code) == (Retry.YES, 1)


def test_only_what_is_done_is_ready_and_every_shortfall_has_its_words() -> None:
    assert [rule.reason for rule in RULES if rule.is_ready] == ["done"]
    assert {word.value for word in Shortfall} <= {rule.reason for rule in RULES}
    assert shortfall_text("hosts_given_up", 1) == "1 host given up: nothing could be reached there"
    assert shortfall_text("over_limit:unread", 2) == "2 documents not read to their end, so that links may be missing"
    assert sentence_of("completed", "truncated", {"truncated": 2}) == (
        "bodies stayed cut off after every retry, or at our limit (2 bodies cut off by their servers or by our limit)"
    )


@pytest.mark.parametrize(
    ("group", "reason"),
    [
        (EndedAs("success", "truncated_length", "page", 1, 1, 1), "truncated"),
        (EndedAs("excluded", "address_forbidden", "page", 4, 1, 0), "nothing_captured"),
        (EndedAs("excluded", "domain_forbidden", "page", 4, 1, 0), "nothing_captured"),
        (EndedAs("excluded", "url_refused", "page", 4, 1, 0), "done"),
    ],
)
def test_what_we_cut_off_or_forbid_ourselves_is_no_success(group: EndedAs, reason: str) -> None:
    assert read(facts_of([group])).reason == reason


def test_what_an_operator_paused_for_long_or_took_away_is_told_and_is_not_ready() -> None:
    good = EndedAs("success", "ok", "page", 5, 1, 5)
    paused = read(facts_of([good, EndedAs("failed", "domain_paused", "page", 2, 1, 0)]))
    taken = [EndedAs("excluded", reason, "page", 3, 1, 0) for reason in ("purged", "cleared")]

    assert (paused.state, paused.shortfalls) == ("completed", {"hosts_given_up": 1})
    assert read(facts_of([good, *taken])) == ("completed", "stopped", {"stopped": 6})
    assert read(facts_of([good, *taken], stopped=1)).shortfalls == {"stopped": 7}


def test_a_host_whose_sitemap_was_given_up_counts_once() -> None:
    good = EndedAs("success", "ok", "page", 5, 1, 5)
    lost = [EndedAs("failed", "domain_unreachable", kind, 2, 1, 0) for kind in ("sitemap", "page")]

    assert read(facts_of([good, lost[0]])).shortfalls == {"hosts_given_up": 1}
    assert read(facts_of([good, *lost])).shortfalls == {"hosts_given_up": 1}


def test_a_limit_of_time_does_not_make_a_dead_site_a_good_run() -> None:
    dead = read(Facts(over={"max_time": 3}))
    sick = read(Facts(answered=2, failed=1, over={"max_time": 2}))
    alive = read(Facts(captured=1, answered=1, over={"max_time": 2}))

    assert (dead.state, dead.reason, dead.shortfalls) == ("failed", "no_server", {"no_server": 3, "max_time": 3})
    assert (sick.state, sick.reason) == ("failed", "nothing_captured")
    assert (alive.state, alive.reason) == ("completed", "max_time")
