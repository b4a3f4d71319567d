"""What a stored page says, by what it is; and where it leads."""

from __future__ import annotations

import gzip
import zlib
from typing import Any

import pytest

from holdfast.crawl.link_filter import REQUISITE_PRIORITY, FilteredLinks
from holdfast.crawl.outcomes import PageUnderWay, StoredExchange
from holdfast.crawl.page_reading import HOP_PRIORITY, UNREADABLE, DocumentFacts, SlowDocument
from holdfast.parse import ParseChild
from holdfast.parse.page import MAX_PARSED_BYTES
from holdfast.types import Attempt, FetchRequest, Original, Outcome, ParsedPage, UrlKind
from holdfast.warc.payload import parse_head
from tests import patience
from tests.unit.crawl.bed import Answer, Bed, attempt, fetched, make_bed

_URL = "http://a.test/x"


class _Child:
    """Stands in for the process that can be killed."""

    def parse(self, _body: bytes, **_how: Any) -> ParsedPage:
        return ParsedPage(title="by the child")


def _read(bed: Bed, answer: Answer, one: Attempt | None = None, **more: Any) -> DocumentFacts | SlowDocument:
    one = one or attempt(_URL)
    hop = fetched(FetchRequest(url=one.url), answer, bed.clock)
    stored = StoredExchange(ref=None, head=parse_head(hop.response_head), payload=answer.body, payload_digest="")
    return bed.reader(_Child()).read(_page(bed, one, [hop], **more), one, stored)


def _page(bed: Bed, one: Attempt, hops: Any, **more: Any) -> PageUnderWay:
    facts: dict[str, Any] = {"outcome": Outcome.SUCCESS, "reason": "ok"}
    return PageUnderWay(attempt=one, token=1, started_at=bed.clock.now(), hops=hops, **{**facts, **more})


def _typed(media: str, body: bytes, **headers: str) -> Answer:
    return Answer(body=body, headers=(("Content-Type", media), *headers.items()))


_RSS = b"<?xml version='1.0'?><rss><channel><item><link>http://a.test/item</link></item></channel></rss>"


@pytest.mark.parametrize("media", ["application/rss+xml", "application/xml", "text/xml", "application/octet-stream"])
def test_a_feed_that_is_met_as_a_page_gives_its_links(media: str) -> None:
    reading = _read(make_bed({}), _typed(media, _RSS))

    assert isinstance(reading, DocumentFacts)
    assert [link.url for link in reading.links] == ["http://a.test/item"]


def test_a_style_sheet_is_read_in_its_own_charset() -> None:
    sheet = "body { background: url('/bild-ä.png') }".encode("utf-16")
    reading = _read(make_bed({}), _typed("text/css; charset=utf-16", sheet), attempt(_URL, kind=UrlKind.REQUISITE))

    assert isinstance(reading, DocumentFacts)
    assert [link.url for link in reading.resources] == ["/bild-ä.png"]


@pytest.mark.parametrize("media", ["image/png", "application/json", "text/plain", "application/pdf"])
def test_what_has_no_links_is_only_hashed(media: str) -> None:
    reading = _read(make_bed({}), _typed(media, b"{}"))

    assert isinstance(reading, DocumentFacts)
    assert (reading.links, reading.page) == ((), None)
    assert reading.content_hash is not None


def test_what_went_less_than_well_is_noted() -> None:
    bomb = gzip.compress(bytes(30_000_000))
    reading = _read(make_bed({}), _typed("text/html", bomb, **{"Content-Encoding": "gzip"}))
    later = reading.call() if isinstance(reading, SlowDocument) else reading

    assert "ratio_exceeded" in later.notes


def test_a_small_sitemap_is_read_at_once_and_a_large_one_later() -> None:
    def sitemap(count: int) -> bytes:
        entries = "".join(f"<url><loc>http://a.test/{n}</loc></url>" for n in range(count))
        return f"<urlset>{entries}</urlset>".encode()

    one = attempt(_URL, kind=UrlKind.SITEMAP, depth=1)
    small = _read(make_bed({}), _typed("application/xml", sitemap(3)), one)
    large = _read(make_bed({}), _typed("application/xml", sitemap(20_000)), one)
    packed = _read(make_bed({}), _typed("application/gzip", gzip.compress(sitemap(20_000), 1)), one)

    assert isinstance(small, DocumentFacts)
    assert len(small.listed) == 3
    for later in (large, packed):
        assert isinstance(later, SlowDocument)
        assert len(later.call().listed) == 20_000


def test_a_page_that_looks_pathological_is_read_later_by_the_child() -> None:
    later = _read(make_bed({}), _typed("text/html", b"<div>" * 200_000))

    assert isinstance(later, SlowDocument)
    assert later.size == 1_000_000
    page = later.call().page
    assert page is not None
    assert page.title == "by the child"


def test_document_that_waits_holds_only_what_is_parsed() -> None:
    bomb = zlib.compress(bytes(30_000_000), level=1)
    waiting = _read(make_bed({}), _typed("text/html", bomb, **{"Content-Encoding": "deflate"}))

    assert isinstance(waiting, SlowDocument)
    assert waiting.size == MAX_PARSED_BYTES + 1, "one more byte tells the parser that the page is longer"


def test_a_304_whose_original_cannot_be_read_is_a_problem() -> None:
    bed = make_bed({})
    original = Original(record_id="x", url=_URL, captured_at=bed.clock.now(), payload_digest="sha256:0", warc_file_id=1,
                        offset=0)  # fmt: skip
    reading = _read(bed, Answer(304, b""), attempt(_URL, original=original))

    assert isinstance(reading, DocumentFacts)
    assert reading.problem == UNREADABLE
    assert bed.reader().may_refer_to(attempt(_URL, original=original)) is None


def _led(bed: Bed, target: str, one: Attempt, **more: Any) -> Any:
    hop = fetched(FetchRequest(url=one.url), Answer(302), bed.clock)
    page = _page(bed, one, [hop], redirected_to=target, **more)
    return bed.reader().sift(bed.link_filter(), page, one, DocumentFacts())


def test_a_redirect_from_domain_to_domain_is_added_first_and_counted() -> None:
    bed = make_bed({}, scope="any")
    one = attempt(_URL, depth=2)
    for number in range(3):
        [found] = _led(bed, f"http://b{number}.test/", one).found
        assert (found.depth, found.hops, found.generation) == (2, number + 1, 0)
        assert HOP_PRIORITY < found.priority < 2 * HOP_PRIORITY, "its rank does not grow with the chain"
        one = attempt(found.url, depth=2, priority=found.priority, hops=found.hops)


def test_a_requisite_keeps_its_generation_over_a_redirect() -> None:
    bed = make_bed({})
    [found] = _led(bed, "http://cdn.test/x.css", attempt(_URL, kind=UrlKind.REQUISITE, generation=2)).found

    assert (found.kind, found.generation, found.hops) == (UrlKind.REQUISITE, 2, 1)
    assert found.priority == HOP_PRIORITY + REQUISITE_PRIORITY + 2


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.EXCLUDED, Outcome.BLOCKED_ROBOTS])
def test_a_redirect_that_was_not_followed_adds_nothing(outcome: Outcome) -> None:
    assert _led(make_bed({}, scope="any"), "http://b.test/", attempt(_URL), outcome=outcome).found == []


def test_only_a_seeds_redirect_widens_the_scope() -> None:
    bed = make_bed({})

    _led(bed, "http://deep.test/", attempt(_URL, depth=1))
    _led(bed, "http://picture.test/", attempt(_URL, kind=UrlKind.REQUISITE))
    assert bed.landed == []
    _led(bed, "http://home.test/", attempt(_URL, depth=0))
    assert bed.landed == ["http://home.test/"]


def test_a_sitemap_index_adds_no_more_sitemaps_than_the_crawl_may_have_pages() -> None:
    bed = make_bed({}, max_pages=10)
    reader, link_filter = bed.reader(), bed.link_filter()
    one = attempt(_URL, kind=UrlKind.SITEMAP)
    page = _page(bed, one, [fetched(FetchRequest(url=one.url), Answer(), bed.clock)])

    def index(name: str) -> FilteredLinks:
        children = tuple(f"http://a.test/{name}-{number}.xml" for number in range(50_000))
        return reader.sift(link_filter, page, one, DocumentFacts(children=children))

    first, second = index("a"), index("b")
    assert [found.kind for found in first.found] == [UrlKind.SITEMAP] * 10
    assert first.excluded["over_limit:sitemaps", "a.test"] == 49_990
    assert second.found == []


def _sifted(bed: Bed, answer: Answer, one: Attempt | None = None, *, payload: bytes | None) -> FilteredLinks:
    """Return what a document brings that is read whole, or not at all if its payload is None."""
    one = one or attempt(_URL)
    hop = fetched(FetchRequest(url=one.url), answer, bed.clock)
    page = _page(bed, one, [hop])
    stored = StoredExchange(ref=None, head=parse_head(hop.response_head), payload=payload, payload_digest="")
    with ParseChild(deadline_s=patience.deadline(60)) as child:
        reader = bed.reader(child)
        reading = reader.read(page, one, stored)
        return reader.sift(
            bed.link_filter(), page, one, reading.call() if isinstance(reading, SlowDocument) else reading
        )


@pytest.mark.parametrize("count", [20_000, 20_001, 100_000, 100_300])
def test_links_beyond_the_limit_of_one_page_are_counted(count: int) -> None:
    body = "".join(f"<a href=/{n}></a>" for n in range(count)).encode()
    filtered = _sifted(make_bed({}), _typed("text/html", body), payload=body)

    assert len(filtered.found) == 20_000
    assert filtered.excluded["over_limit:links", "a.test"] == count - 20_000


@pytest.mark.parametrize("plan", [{"max_depth": 0}, {"scope": "page"}, {"exclude": ("a.test/[0-9]",)}])
def test_links_that_the_scope_leaves_out_are_not_over_the_limit(plan: dict[str, Any]) -> None:
    body = "".join(f"<a href=/{n}></a>" for n in range(20_500)).encode()
    filtered = _sifted(make_bed({}, **plan), _typed("text/html", body), payload=body)

    assert filtered.found == []
    assert [count for (rule, _), count in filtered.excluded.items() if not rule.startswith("over_limit")] == [20_500]


def test_nofollow_page_is_never_over_the_limit() -> None:
    body = b"<meta name=robots content=nofollow>" + b"".join(b"<a href=/%d></a>" % n for n in range(20_001))

    assert _sifted(make_bed({}), _typed("text/html", body), payload=body) == FilteredLinks()


@pytest.mark.parametrize(
    ("media", "kind", "unread"),
    [
        ("text/html", UrlKind.PAGE, 1),
        ("application/xml", UrlKind.SITEMAP, 1),
        ("application/pdf", UrlKind.PAGE, 0),
        ("text/html", UrlKind.REQUISITE, 0),
    ],
)
def test_document_too_large_to_read_is_counted_as_unread(media: str, kind: UrlKind, unread: int) -> None:
    filtered = _sifted(make_bed({}), _typed(media, b""), attempt(_URL, kind=kind), payload=None)

    assert filtered.excluded["over_limit:unread", "a.test"] == unread


def test_page_with_unreadable_encoding_is_counted_as_unread() -> None:
    answer = _typed("text/html", b"no gzip", **{"Content-Encoding": "gzip"})

    assert _sifted(make_bed({}), answer, payload=answer.body).excluded == {("over_limit:unread", "a.test"): 1}


def test_sitemap_urls_beyond_the_limit_are_in_the_account() -> None:
    body = b"\n".join(b"http://a.test/%d" % n for n in range(50_007))
    filtered = _sifted(make_bed({}), _typed("text/plain", body), attempt(_URL, kind=UrlKind.SITEMAP), payload=body)

    assert len(filtered.found) == 50_000
    assert filtered.excluded == {("over_limit:links", "a.test"): 7}
