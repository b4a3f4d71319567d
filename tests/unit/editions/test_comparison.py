"""Two editions held against each other: every page has one fate, and what moved is found by its body."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.changes.site_comparison import PageDifference, SiteCapture
from holdfast.editions.comparison import KeptPage, compare, joined, verdict

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
Pages = dict[str, tuple[int, str] | None]
"""Status and body by path; None if the page was withdrawn."""


def kept(path: str, content: tuple[int, str] | None, *, number: int) -> KeptPage:
    """Return what an edition holds of a page."""
    place = path.encode(), b"0"
    if content is None:
        return KeptPage(place, None, number, is_withdrawn=True)
    status, body = content
    held = SiteCapture(
        number, 1, f"https://a.ca{path}", hash(path), MOMENT, status, sha256(body.encode()).digest(), None
    )
    return KeptPage(place, held, number)


def edition(pages: Pages, *, first: int = 1) -> list[KeptPage]:
    """Return an edition in the order of its addresses."""
    return [kept(path, pages[path], number=first + at) for at, path in enumerate(sorted(pages))]


def compared(before: Pages, now: Pages) -> list[PageDifference]:
    """Return what became of the pages."""
    with TemporaryDirectory() as folder:
        return list(compare(edition(before), edition(now, first=100), Path(folder)))


OK, OTHER, LOST, DOWN, AWAY = (200, "a"), (200, "b"), (404, "x"), (503, "y"), (301, "z")


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        (None, OK, "new"), (OK, OK, "unchanged"), (OK, OTHER, "changed"), (OK, None, "gone"), (OK, LOST, "gone"),
        (OK, AWAY, "gone"), (OK, DOWN, "error"), (LOST, OK, "new"), (LOST, LOST, None), (DOWN, None, None),
        (None, LOST, None), ((304, "a"), OK, "unchanged"),
    ],
)  # fmt: skip
def test_a_page_has_the_fate_that_the_comparison_of_two_crawls_gives_it(
    before: tuple[int, str] | None, now: tuple[int, str] | None, said: str | None
) -> None:
    sides = [kept("/", one, number=1) if one is not None else None for one in (before, now)]

    assert verdict(*sides) == said


MEANT = KeptPage((b"/", b"0"))
"""A page that was meant, and not captured."""


@pytest.mark.parametrize(("before", "now", "said"), [
    (OK, MEANT, "error"), (MEANT, OK, "new"), (LOST, MEANT, None), (MEANT, MEANT, None), (MEANT, LOST, None),
])  # fmt: skip
def test_what_was_asked_for_in_vain_or_not_reached_is_not_gone(
    before: tuple[int, str] | KeptPage, now: tuple[int, str] | KeptPage, said: str | None
) -> None:
    sides = [one if isinstance(one, KeptPage) else kept("/", one, number=1) for one in (before, now)]

    assert verdict(*sides) == said


def test_of_what_nobody_meant_nothing_is_told_that_one_edition_alone_holds() -> None:
    here = kept("/robots.txt", OK, number=1)._replace(is_meant=False)

    assert verdict(here, None) is None
    assert verdict(None, here) is None
    assert verdict(here, here) == "unchanged"


def test_a_withdrawn_page_is_named_as_withdrawn_and_not_shown() -> None:
    found = compared({"/secret": None, "/a": OK}, {"/secret": OK, "/a": OK})

    assert [(one.kind, one.url) for one in found] == [("unchanged", "https://a.ca/a"), ("withdrawn", None)]
    assert (found[1].from_snapshot_id, found[1].to_snapshot_id) == (2, 101)


def test_of_a_body_that_very_many_addresses_shared_only_so_many_are_held_to_be_paired() -> None:
    lost: Pages = {f"/old/{n:05}": (200, "the same everywhere") for n in range(10_020)}
    found: Pages = {f"/place/{n:05}": (200, "the same everywhere") for n in range(10_020)}

    told = Counter(one.kind for one in compared(lost, found))

    assert told == {"moved": 10_000, "gone": 20, "new": 20}


def test_a_body_that_went_and_came_has_moved() -> None:
    found = compared({"/old": OK, "/older": OK, "/x": OTHER}, {"/new": OK, "/x": OTHER})

    assert [(one.kind, one.url, one.from_url) for one in found] == [
        ("moved", "https://a.ca/new", "https://a.ca/old"),
        ("gone", "https://a.ca/older", None),
        ("unchanged", "https://a.ca/x", None),
    ]


_SOME = st.dictionaries(
    st.sampled_from([f"/{letter}" for letter in "abcdefgh"]),
    st.none() | st.tuples(st.sampled_from([200, 200, 301, 404, 503]), st.sampled_from("xyz")),
)


@given(_SOME, _SOME)
def test_every_page_is_told_once_and_moves_pair_what_went_with_what_came(before: Pages, now: Pages) -> None:
    found = compared(before, now)

    plain = Counter(kind for a, b in joined(edition(before), edition(now)) if (kind := verdict(a, b)) is not None)
    told = Counter(one.kind for one in found)
    moved = told["moved"]
    assert told["gone"] + moved == plain["gone"]
    assert told["new"] + moved == plain["new"]
    assert {kind: told[kind] for kind in ("changed", "unchanged", "error", "withdrawn")} == {
        kind: plain[kind] for kind in ("changed", "unchanged", "error", "withdrawn")
    }
    urls = [one.url for one in found if one.url is not None]
    assert urls == sorted(urls)
    for one in found:
        if one.kind == "moved":
            assert one.from_url is not None
            assert one.url is not None
            was, is_now = before[one.from_url[12:]], now[one.url[12:]]
            assert was is not None
            assert is_now is not None
            assert was[1] == is_now[1]
    left = {body: (gone, new) for body in "xyz" for gone, new in [_loose(found, before, now, body)]}
    assert all(not (gone and new) for gone, new in left.values())


def _loose(found: list[PageDifference], before: Pages, now: Pages, body: str) -> tuple[int, int]:
    """Return how many pages with a body are still told as gone, and how many as new."""
    gone = [one for one in found if one.kind == "gone" and (before[(one.url or "")[12:]] or (0, ""))[1] == body]
    new = [one for one in found if one.kind == "new" and (now[(one.url or "")[12:]] or (0, ""))[1] == body]
    return len(gone), len(new)


def test_a_body_that_broke_off_is_an_error_and_no_change() -> None:
    before, now = kept("/", OK, number=1), kept("/", OTHER, number=2)
    assert now.held is not None

    assert verdict(before, now._replace(held=now.held._replace(truncated="disconnect"))) == "error"
    assert verdict(before, now._replace(held=now.held._replace(truncated="length"))) == "changed", "our own limit"
