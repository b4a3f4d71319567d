"""What a run saw at its start page decides the adaptive interval: a hash, a 304, or the ETag of last time."""

from __future__ import annotations

from contextlib import closing

import pytest

from holdfast.db.engine import Database
from holdfast.jobs.leases import start_etag, start_page
from tests.contract.frontier_bed import EXECUTION, Bed, many


@pytest.mark.parametrize(
    ("before", "status", "etag", "unchanged"),
    [
        ('"e"', 200, '"e"', True),
        ('W/"e"', 200, 'W/"e"', True),
        ('"e"', 200, '"f"', False),
        ('"e"', 200, None, False),
        (None, 200, '"e"', False),
        (None, 200, None, False),
        ('"e"', 304, None, True),
        (None, 304, None, True),
    ],
)
def test_a_304_or_the_etag_of_last_time_counts_as_unchanged(
    bed: Bed, before: str | None, status: int, etag: str | None, unchanged: bool
) -> None:
    (page,) = many("a.example", 1)
    bed.frontier.add(EXECUTION, [page])
    lease = bed.lease_one(owner=7)
    with closing(Database(bed.url)) as database:
        with database.read() as session:
            assert start_etag(session, url=page.url) is None
        visit = bed.visit(lease, lease.attempts[0], status=status, etag=etag, content_hash="sha256:new")
        bed.frontier.settle(EXECUTION, 7, [visit])

        with database.read() as session:
            seen = start_page(session, execution_id=EXECUTION, url=page.url, etag=before)
            assert (seen.content_hash, seen.not_modified) == ("sha256:new", unchanged)
            assert start_page(session, execution_id=2, url=page.url, etag=before).content_hash is None
            assert status == 304 or start_etag(session, url=page.url) == etag


@pytest.mark.parametrize("status", [200, 304])
def test_a_start_page_that_redirects_is_judged_by_the_page_it_leads_to(bed: Bed, status: int) -> None:
    """What a redirect says never changes: by that, a page would seem unchanged for ever."""
    (start,), (target,) = many("a.example", 1), many("www.a.example", 1)
    bed.frontier.add(EXECUTION, [start])
    lease = bed.lease_one(owner=7)
    moved = bed.visit(
        lease, lease.attempts[0], status=301, content_hash="sha256:moved", redirected_to=target.url, etag='"e"'
    )
    bed.frontier.settle(EXECUTION, 7, [moved])
    with closing(Database(bed.url)) as database:
        with database.read() as session:
            unseen = start_page(session, execution_id=EXECUTION, url=start.url, etag='"e"')
        bed.frontier.add(EXECUTION, [target])
        lease = bed.lease_one(owner=7)
        visit = bed.visit(lease, lease.attempts[0], status=status, content_hash="sha256:new")
        bed.frontier.settle(EXECUTION, 7, [visit])

        with database.read() as session:
            seen = start_page(session, execution_id=EXECUTION, url=start.url, etag='"e"')

    assert (unseen.content_hash, unseen.not_modified) == (None, False)
    assert (seen.content_hash, seen.not_modified) == ("sha256:new", status == 304)


def test_start_pages_that_redirect_in_a_circle_say_nothing(bed: Bed) -> None:
    (start,) = many("a.example", 1)
    bed.frontier.add(EXECUTION, [start])
    lease = bed.lease_one(owner=7)
    visit = bed.visit(lease, lease.attempts[0], status=302, content_hash="sha256:x", redirected_to=start.url)
    bed.frontier.settle(EXECUTION, 7, [visit])

    with closing(Database(bed.url)) as database, database.read() as session:
        seen = start_page(session, execution_id=EXECUTION, url=start.url)

    assert (seen.content_hash, seen.not_modified) == (None, False)
