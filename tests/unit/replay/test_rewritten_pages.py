"""Rewritten pages are kept for a few seconds, within a bound."""

from __future__ import annotations

from holdfast.replay.body import ReplayBody, RewrittenPages
from tests.clock import FakeClock


def test_page_is_rewritten_once_in_a_few_seconds() -> None:
    clock, made = FakeClock(), list[int]()
    pages = RewrittenPages(clock)

    def make() -> ReplayBody:
        made.append(1)
        return ReplayBody(b"x" * 1000, "text/html", is_kept=True)

    for key in ("a", "a", "b"):
        assert pages.get(key, make).content == b"x" * 1000
    assert len(made) == 2

    clock.advance(6)
    pages.get("a", make)
    assert len(made) == 3


def test_pages_are_kept_within_a_bound() -> None:
    pages, made = RewrittenPages(FakeClock()), list[int]()

    def make() -> ReplayBody:
        made.append(1)
        return ReplayBody(b"x" * 1024 * 1024, "text/html", is_kept=True)

    for _ in range(2):
        for key in range(20):
            pages.get(key, make)
    assert len(made) == 40
