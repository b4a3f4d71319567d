"""From what a document mentions to what is added, and the account of the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from holdfast.crawl.link_filter import (
    BURST_URLS,
    MAX_EXCLUDED_HOSTS,
    MAX_GENERATIONS,
    MAX_LINKS,
    OTHER_HOSTS,
    REQUISITE_PRIORITY,
    FilteredLinks,
    LinkFilter,
    SeenUrls,
)
from holdfast.types import Link, UrlKind
from holdfast.urls import parse
from tests.unit.crawl.bed import Bed, make_bed

_PAGE = parse("http://a.test/dir/page.html")


def _sift(
    link_filter: LinkFilter, links: Iterable[str] = (), resources: Iterable[str] = (), **more: Any
) -> FilteredLinks:
    return link_filter.sift(_PAGE, None, [Link(url, "a") for url in links], [Link(url, "img") for url in resources],
                      **{"depth": 0, **more})  # fmt: skip


def _bed(**plan: Any) -> tuple[Bed, LinkFilter]:
    bed = make_bed({}, **plan)
    return bed, bed.link_filter()


def test_links_are_resolved_judged_and_added_once() -> None:
    _, link_filter = _bed()
    found = _sift(link_filter, ["b.html", "/c", "http://b.test/", "b.html#part"])

    assert [one.url for one in found.found] == ["http://a.test/dir/b.html", "http://a.test/c"]
    assert [one.depth for one in found.found] == [1, 1]
    assert found.excluded == {("scope:host", "b.test"): 1}
    assert _sift(link_filter, ["b.html", "http://b.test/"]).found == []


def test_what_is_no_page_of_ours_may_still_be_embedded() -> None:
    _, link_filter = _bed()

    assert _sift(link_filter, ["http://cdn.test/x.png"]).found == []
    [picture] = _sift(link_filter, [], ["http://cdn.test/x.png"]).found
    assert (picture.kind, picture.priority) == (UrlKind.REQUISITE, REQUISITE_PRIORITY)


def test_what_is_embedded_may_be_a_page_too() -> None:
    _, link_filter = _bed()

    [frame] = _sift(link_filter, [], ["/frame"]).found
    [page] = _sift(link_filter, ["/frame"]).found
    assert (frame.kind, page.kind) == (UrlKind.REQUISITE, UrlKind.PAGE)


def test_a_page_that_was_too_deep_is_added_when_a_shorter_way_leads_there() -> None:
    _, link_filter = _bed(max_depth=3)

    assert _sift(link_filter, ["/far"], depth=3).excluded == {("max_depth", "a.test"): 1}
    assert [one.depth for one in _sift(link_filter, ["/far"], depth=1).found] == [2]


def test_page_that_is_too_deep_counts_once_however_often_it_is_linked() -> None:
    _, link_filter = _bed(max_depth=3)
    key = "max_depth", "a.test"

    counts = [_sift(link_filter, ["/far"], depth=depth).excluded[key] for depth in (3, 3, 4, 1, 3)]

    assert counts == [1, 0, 0, -1, 0], "the shorter way takes it back"


def test_what_was_left_out_is_judged_anew_when_a_seed_lands() -> None:
    bed, link_filter = _bed()

    assert _sift(link_filter, ["http://b.test/x"]).found == []
    bed.scope.widen(parse("http://b.test/"))
    assert len(_sift(link_filter, ["http://b.test/x"]).found) == 1


def test_reference_that_is_no_address_is_counted() -> None:
    _, link_filter = _bed()
    odd = _sift(link_filter, ["http://a.test:22/", "http://u:p@a.test/", "http://["])

    assert odd.excluded == {("not_an_address", "a.test"): 3}


def test_what_requisites_need_is_fetched_for_a_few_generations_each_before_the_last() -> None:
    _, link_filter = _bed()
    ranks = [_sift(link_filter, [], [f"/{n}.css"], generation=n).found[0].priority for n in range(MAX_GENERATIONS + 1)]

    assert ranks == sorted(ranks)
    assert ranks[-1] < 10, "beyond that, redirects are counted"
    beyond = _sift(link_filter, [], ["/last.css"], generation=MAX_GENERATIONS + 1)
    assert (beyond.found, beyond.excluded) == ([], {("over_limit:requisites", "a.test"): 1})


def test_a_domain_that_finds_more_than_a_hundred_a_second_is_delayed_not_cut() -> None:
    _, link_filter = _bed()
    first = _sift(link_filter, [f"/a{n}" for n in range(BURST_URLS)]).found
    second = _sift(link_filter, [f"/b{n}" for n in range(100)]).found

    assert all(one.scheduled_for is None for one in first)
    assert all(one.scheduled_for is not None for one in second)
    assert len(second) == 100


def test_the_memory_of_addresses_is_bounded_and_keeps_what_is_young() -> None:
    seen = SeenUrls(1000)
    for number in range(10_000):
        seen.add(number)

    assert len(seen) <= 1000
    assert seen.add(9_999) == 0
    seen.forget(9_999)
    assert seen.add(9_999) is None


def test_a_page_that_is_met_again_nearer_to_a_seed_is_told_apart_from_one_that_is_new() -> None:
    link_filter = make_bed({}).link_filter()
    page = parse("http://a.test/")

    def at(depth: int) -> FilteredLinks:
        return link_filter.sift(page, None, [Link("/x", "a")], (), depth)

    assert [found.depth for found in at(4).found] == [5]
    nearer, again, further = at(2), at(2), at(7)
    assert (nearer.found, [found.depth for found in nearer.shallower]) == ([], [3])
    assert (again.found, again.shallower, further.shallower) == ([], [], [])


def test_the_pace_of_discovering_domains_is_remembered_within_a_bound() -> None:
    link_filter = make_bed({}, scope="any").link_filter()
    for number in range(11_000):
        links = [Link(f"http://target.test/{number}/{other}", "a") for other in range(2)]
        link_filter.sift(parse(f"http://d{number}.test/"), None, links, (), 0)

    assert len(link_filter.ready_at) == 10_000


def test_a_seed_that_is_met_before_it_was_added_is_a_seed() -> None:
    _, link_filter = _bed(seeds=("http://a.test/", "http://a.test/frame", "http://a.test/far"), max_depth=3)

    [frame] = _sift(link_filter, [], ["/frame"], depth=2).found
    [far] = _sift(link_filter, ["/far"], depth=3).found
    assert [(one.kind, one.depth) for one in (frame, far)] == [(UrlKind.PAGE, 0)] * 2


def test_hosts_that_pages_make_up_are_counted_together_from_some_number_on() -> None:
    _, link_filter = _bed()
    counted: Counter[tuple[str, str]] = Counter()
    for page in range(12):
        counted += _sift(link_filter, [f"http://h{page}x{number}.test/" for number in range(BURST_URLS)]).excluded

    assert counted.total() == 12 * BURST_URLS
    assert len(counted) == MAX_EXCLUDED_HOSTS + 1
    assert counted["scope:host", OTHER_HOSTS] == 12 * BURST_URLS - MAX_EXCLUDED_HOSTS
    assert _sift(link_filter, ["http://h0x0.test/more"]).excluded == {("scope:host", "h0x0.test"): 1}


def test_that_addresses_were_forgotten_is_told() -> None:
    bed = make_bed({})
    times: list[int] = []
    link_filter = LinkFilter(bed.scope, bed.settings, bed.clock, forgot=lambda: times.append(1))
    found = _sift(link_filter, ["b.html"]).found
    assert times == []
    link_filter.forget(found)
    assert len(times) == 1, "a result was refused"
    bed.scope.widen(parse("http://new.test/"))
    _sift(link_filter, ["b.html"])
    assert len(times) == 2, "a seed landed"
    seen = SeenUrls(4, forgot=lambda: times.append(1))
    for number in range(3):
        seen.add(number)
    assert len(times) == 2
    seen.add(3)
    assert len(times) == 3, "the older half was dropped"


def test_link_over_the_limit_is_taken_from_another_page() -> None:
    _, link_filter = _bed()
    first = _sift(link_filter, [f"/{n}" for n in range(MAX_LINKS + 5)], [f"/{n}.png" for n in range(MAX_LINKS + 7)])
    second = _sift(link_filter, [f"/{n}" for n in range(MAX_LINKS + 5)])

    assert len(first.found) == 2 * MAX_LINKS
    assert first.excluded == {("over_limit:links", "a.test"): 5, ("over_limit:requisites", "a.test"): 7}
    assert [one.url for one in second.found] == [f"http://a.test/{n}" for n in range(MAX_LINKS, MAX_LINKS + 5)]
    assert second.excluded == {("over_limit:links", "a.test"): -5}, "they are not left out any more"


def test_link_over_the_limit_of_two_pages_is_counted_once() -> None:
    _, link_filter = _bed()
    first, second = (_sift(link_filter, [*(f"/{n}/{m}" for m in range(MAX_LINKS)), "/last"]).excluded for n in range(2))
    first.update(second)

    assert first == {("over_limit:links", "a.test"): 1}
