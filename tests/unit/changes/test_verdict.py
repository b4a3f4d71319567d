"""What is said of a capture, from rows alone; the sentence that sums it up; the feed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from lxml import etree

from holdfast.changes.listing import MAX_ITEMS, rss
from holdfast.changes.records import ChangeEvent
from holdfast.changes.site_comparison import Cursor
from holdfast.changes.verdict import AnswerKind, ChangeType, ComparedCapture, judge
from holdfast.errors import Invalid

MOMENT = datetime(2024, 3, 1, 12, tzinfo=UTC)


def capture(
    status: int | None = 200, body: bytes | None = b"a", *, chars: int | None = 9, to: str | None = None
) -> ComparedCapture:
    """Return a capture."""
    document = body[0] if body else None
    return ComparedCapture(1, 1, 1, 1, 1, MOMENT, status, body, None, document, chars, to, None, True, False)


OK, OTHER, GONE, DOWN = capture(), capture(body=b"b"), capture(404, b"x"), capture(500, b"y")
CUT = capture(body=b"half")._replace(truncated="disconnect")
MOVED = capture(301, b"", to="https://example.org/there")


@pytest.mark.parametrize(
    ("now", "before", "answered", "said"),
    [
        (OK, None, None, "new_page"),
        (OK, OK, OK, "unchanged"),
        (OTHER, OK, OK, "updated"),
        (OK, GONE, None, "new_page"),
        (OK, GONE, OK, "unchanged"),
        (OTHER, DOWN, OK, "updated"),
        (GONE, OK, OK, "gone"),
        (GONE, DOWN, OK, "gone"),
        (GONE, GONE, OK, "unchanged"),
        (GONE, None, None, "error"),
        (GONE, DOWN, None, "error"),
        (capture(410, b"x"), OK, OK, "gone"),
        (DOWN, OK, OK, "error"),
        (DOWN, None, None, "error"),
        (DOWN, DOWN, OK, "error"),
        (CUT, OK, OK, "error"),
        (CUT, None, None, "error"),
        (CUT._replace(truncated="time"), OK, OK, "error"),
        (OK, CUT, OK, "unchanged"),
        (OTHER._replace(truncated="length"), OK, OK, "updated"),
        (MOVED, None, None, "new_page"),
        (MOVED, OK, OK, "updated"),
        (MOVED, MOVED, MOVED, "unchanged"),
        (MOVED._replace(redirect_to="https://example.org/else"), MOVED, MOVED, "updated"),
        (OK, MOVED, MOVED, "updated"),
        (capture(304, None), OK, OK, "unchanged"),
        (capture(None, b"a"), OK, OK, "unchanged"),
        (
            capture(200, None)._replace(payload_digest="d"),
            capture(200, None)._replace(payload_digest="d"),
            capture(200, None)._replace(payload_digest="d"),
            "unchanged",
        ),
        (capture(200, None), OK, OK, "updated"),
    ],
)
def test_what_is_said(
    now: ComparedCapture, before: ComparedCapture | None, answered: ComparedCapture | None, said: str
) -> None:
    assert judge(now, before, answered).type == said


def test_what_is_held_against_what() -> None:
    assert judge(GONE, DOWN, OK).before is OK
    assert judge(DOWN, OK, OK).before is OK
    assert judge(OTHER, DOWN, OK).before is OK
    assert judge(OK, GONE, None).before is None


@pytest.mark.parametrize(
    ("chars", "pair"),
    [((9, 9), (97, 98)), ((0, 9), (97, 98)), ((9, 0), (97, 98)), ((0, 0), None), ((None, None), None)],
)
def test_captures_are_compared_when_one_has_text(
    chars: tuple[int | None, int | None], pair: tuple[int, int] | None
) -> None:
    before, now = capture(chars=chars[0]), capture(body=b"b", chars=chars[1])

    assert judge(now, before, before).documents == pair


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (None, "ok"),
        (200, "ok"),
        (299, "ok"),
        (304, "ok"),
        (302, "moved"),
        (404, "gone"),
        (410, "gone"),
        (403, "failed"),
        (503, "failed"),
        (100, "failed"),
    ],
)
def test_answers(status: int | None, answer: str) -> None:
    assert capture(status).answer == AnswerKind(answer)


def event(
    kind: str = "updated", *, diff: bool = True, counts: tuple[int, ...] = (0, 0, 0, 0, 0), noisy: bool = False
) -> ChangeEvent:
    """Return an event; counts are sections added, removed, changed, then lines added, removed."""
    made = ChangeEvent(
        id=7,
        type=kind,
        source_code="x",
        source_name="X & Co",
        group="https://example.org/<p>",
        from_snapshot_id=1,
        to_snapshot_id=2,
        from_captured_at=MOMENT,
        to_captured_at=MOMENT + timedelta(days=1),
        from_execution_id=1,
        to_execution_id=2,
        ratio=0.1,
        diff_noise=noisy,
        truncated=False,
        has_diff=True,
        computed_at=MOMENT,
    )
    if not diff:
        return made
    a, b, c, d, e = counts
    return replace(
        made, diff_id=1, added_sections=a, removed_sections=b, changed_sections=c, added_lines=d, removed_lines=e
    )


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (event(counts=(0, 0, 2, 5, 3)), "2 sections changed"),
        (event(counts=(1, 1, 1, 5, 3)), "1 section changed, 1 section added, 1 section removed"),
        (event(counts=(0, 0, 0, 1, 3)), "1 line added, 3 lines removed"),
        (event(counts=(0, 0, 1, 1, 1), noisy=True), "1 section changed (high noise)"),
        (event(), "Updated; the text is the same"),
        (event(diff=False), "Updated; the two versions cannot be compared as text (high noise)"),
        (event("new_page", diff=False), "First capture of this page"),
        (event("unchanged", diff=False), "No change since the capture before"),
        (event("gone", diff=False), "The page is gone"),
        (
            replace(event("error", diff=False), error="the server answered 500"),
            "The page could not be captured: the server answered 500",
        ),
    ],
)
def test_sentences(shown: ChangeEvent, text: str) -> None:
    assert shown.summary == text


def test_what_cannot_be_compared_counts_as_noise() -> None:
    assert event(diff=False).high_noise
    assert not event("gone", diff=False).high_noise
    assert not event(diff=False).diff_available


def test_every_kind_has_a_sentence() -> None:
    assert all(event(kind.value, diff=False).summary for kind in ChangeType)


def test_the_feed_is_xml_whatever_pages_are_called() -> None:
    hostile = replace(event(), group="https://e.org/\x00\x08]]><![CDATA[<b>&amp;\ud800\ufffe", source_name="<x>")

    tree = etree.fromstring(rss([hostile] * 60, site="http://s", title="T & <T>"))

    assert len(tree.findall("channel/item")) == MAX_ITEMS
    assert tree.findtext("channel/item/title") == "<x>: https://e.org/]]><![CDATA[<b>&amp;"
    assert tree.findtext("channel/item/guid") == "change-7"
    assert tree.findtext("channel/item/pubDate") == "Sat, 02 Mar 2024 12:00:00 GMT"
    assert tree.findtext("channel/title") == "T & <T>"


def test_a_cursor_is_read_as_it_was_printed() -> None:
    for cursor in (Cursor(), Cursor(False, 12), Cursor(True, 1 << 40)):
        assert Cursor.parse(str(cursor)) == cursor
    for text in ("", "to", "to-", "from-x", "to--2", "to-1 ", "TO-1"):
        with pytest.raises(Invalid):
            Cursor.parse(text)
