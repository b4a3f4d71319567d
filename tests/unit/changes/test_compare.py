"""The comparison of two documents: what is counted, what is shown, and that it never takes long."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.changes.alignment import PartKind, align, diff_words, pair_lines
from holdfast.changes.compare import (
    CONTEXT_LINES,
    MAX_SHOWN_CHARS,
    MAX_SHOWN_LINES,
    ComparableText,
    LineKind,
    TextComparison,
    compare,
    read_text,
    sections,
)
from holdfast.changes.records import structured_diff
from holdfast.changes.rendering import MAX_STORED_BYTES, diff_html, diff_text, pack, unpack
from holdfast.records import encode
from tests import patience

_LINES = st.lists(st.sampled_from(["one", "two", "three", "a b c", "a x c", "", "é"]), max_size=30)


def _of(a: str, b: str, headings: tuple[str, str] = ("", "")) -> TextComparison:
    return compare(read_text(a, headings[0]), read_text(b, headings[1]))


@given(_LINES, _LINES, st.sampled_from([0, 4, 20, 10_000]))
def test_runs_cover_both_sides_in_order_and_say_the_truth(a: list[str], b: list[str], cells: int) -> None:
    runs = align(a, b, max_cells=cells)

    at = (0, 0)
    for before, run in zip([None, *runs], runs, strict=False):
        assert (run.a_start, run.b_start) == at
        assert before is None or before.same != run.same
        assert not run.same or a[run.a_start : run.a_end] == b[run.b_start : run.b_end]
        at = (run.a_end, run.b_end)
    assert at == (len(a), len(b))


@given(st.lists(st.integers(0, 50), max_size=60), st.lists(st.integers(0, 50), max_size=60))
def test_landmarks_never_pair_what_is_not_the_same(a: list[int], b: list[int]) -> None:
    later = list(a)
    for run in reversed(align(a, b, max_cells=1)):
        if not run.same:
            later[run.a_start : run.a_end] = b[run.b_start : run.b_end]

    assert later == b


def test_landmarks_find_the_kept_lines_of_a_text_too_large_for_a_table() -> None:
    a = [f"line {n}" for n in range(400)]
    b = [*a[:100], "new", *a[100:300], *a[310:]]

    runs = align(a, b, max_cells=50)

    assert sum(run.a_end - run.a_start for run in runs if run.same) == 390


@given(st.text(max_size=80), st.text(max_size=80))
def test_the_parts_of_a_line_join_to_both_lines(old: str, new: str) -> None:
    parts = diff_words(old, new)

    assert "".join(part.text for part in parts if part.type != PartKind.ADDED) == old
    assert "".join(part.text for part in parts if part.type != PartKind.REMOVED) == new
    assert all(part.text for part in parts)


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ("the red fox", "the blue fox", "=the |-red|+blue|= fox"),
        ("call 555 0100 now", "call 555 0199 now", "=call 555 |-0100|+0199|= now"),
        ("one two three", "one 2 3", "=one |-two three|+2 3"),
        ("潮汐表今天更新", "潮汐表昨天更新", "=潮汐表|-今|+昨|=天更新"),
        ("same", "same", "=same"),
        ("", "new", "+new"),
    ],
)
def test_words_are_told_apart(old: str, new: str, parts: str) -> None:
    marks: dict[str, str] = {PartKind.SAME: "=", PartKind.REMOVED: "-", PartKind.ADDED: "+"}

    assert "|".join(marks[part.type] + part.text for part in diff_words(old, new)) == parts


def test_a_line_too_long_for_words_keeps_what_its_ends_share() -> None:
    old, new = "a" * 150_000 + "old" + "z" * 10, "a" * 150_000 + "new!" + "z" * 10

    assert [part.text[-10:] for part in diff_words(old, new)] == ["a" * 10, "old", "new!", "z" * 10]


def test_all_lines_of_a_comparison_share_what_may_be_cut_into_words() -> None:
    old = [f"{n} {'a b ' * 450}{'e f ' * 450}end" for n in range(190)]
    new = [f"{n} {'a b ' * 450}c d {'e f ' * 450}the end" for n in range(190)]

    lines = [
        line for hunk in compare(ComparableText(tuple(old)), ComparableText(tuple(new))).hunks for line in hunk.lines
    ]
    by_words = [line for line in lines if line.type == LineKind.ADDED and len(line.parts) > 3]

    assert 0 < len(by_words) <= 500_000 // 7_200
    assert len(lines) == 380


def test_lines_that_are_versions_of_each_other_are_paired_past_one_that_is_new() -> None:
    old = ["High water at 06:12 in the harbour", "Low water at 12:30 in the harbour"]
    new = ["Notice: the pier is closed", "High water at 06:40 in the harbour", "Low water at 12:58 in the harbour"]

    assert pair_lines(old, new) == [(0, 1), (1, 2)]


@given(_LINES, _LINES)
@settings(max_examples=200)
def test_the_diff_applied_to_the_earlier_text_gives_the_later_one(a: list[str], b: list[str]) -> None:
    before, after = read_text("\n".join(a), None), read_text("\n".join(b), None)
    result = compare(before, after)

    assert _applied(before.lines, result) == after.lines
    assert result.truncated is False
    assert (result.added_lines, result.removed_lines) == (_count(result, "added"), _count(result, "removed"))
    assert (not result.hunks) == (before.lines == after.lines) == (result.ratio == 0.0)


def _applied(lines: Sequence[str], result: TextComparison) -> tuple[str, ...]:
    out: list[str] = []
    at = 0
    for hunk in result.hunks:
        start = hunk.from_line - 1
        out += lines[at:start]
        assert len(out) == hunk.to_line - 1
        kept = [line.text for line in hunk.lines if line.type != LineKind.ADDED]
        assert kept == list(lines[start : start + hunk.from_count])
        out += [line.text for line in hunk.lines if line.type != LineKind.REMOVED]
        at = start + hunk.from_count
    return (*out, *lines[at:])


def _count(result: TextComparison, kind: str) -> int:
    return sum(line.type == kind for hunk in result.hunks for line in hunk.lines)


def test_three_lines_stand_around_a_change() -> None:
    lines = [f"line {n}" for n in range(30)]
    text = "\n".join(lines)

    (hunk,) = _of(text, text.replace("line 15", "line fifteen")).hunks

    assert [line.text for line in hunk.lines] == [
        "line 12", "line 13", "line 14", "line 15", "line fifteen", "line 16", "line 17", "line 18",
    ]  # fmt: skip
    assert (hunk.from_line, hunk.from_count, hunk.to_line, hunk.to_count) == (13, 7, 13, 7)


def test_changes_further_apart_than_their_contexts_are_two_hunks() -> None:
    lines = [f"line {n}" for n in range(40)]
    near = [*lines[:10], "x", *lines[11 : 11 + 2 * CONTEXT_LINES], "y", *lines[30:]]
    far = [*lines]
    far[5], far[25] = "x", "y"

    assert len(_of("\n".join(lines), "\n".join(far)).hunks) == 2
    assert len(_of("\n".join(lines[:18] + lines[30:]), "\n".join(near)).hunks) == 1


def test_no_more_than_four_hundred_lines_are_shown() -> None:
    result = _of("\n".join(f"old {n}" for n in range(900)), "\n".join(f"new {n}" for n in range(900)))

    assert result.truncated
    assert sum(len(hunk.lines) for hunk in result.hunks) == MAX_SHOWN_LINES
    assert (result.added_lines, result.removed_lines, result.ratio) == (900, 900, 1.0)


def test_exactly_four_hundred_lines_are_not_called_cut() -> None:
    result = _of("", "\n".join(f"new {n}" for n in range(MAX_SHOWN_LINES)))

    assert not result.truncated
    assert len(result.hunks[0].lines) == MAX_SHOWN_LINES


def test_a_long_line_is_shortened_where_nothing_differs() -> None:
    filler = "word " * 4000

    (hunk,) = _of(f"{filler}old {filler}", f"{filler}new {filler}").hunks

    assert [part.text for line in hunk.lines for part in line.parts if part.type != PartKind.SAME] == ["old", "new"]
    assert all(len(line.text) < MAX_SHOWN_CHARS for line in hunk.lines)


@pytest.mark.parametrize(
    ("a", "b", "noisy"),
    [
        ("one\ntwo\nthree", "one\ntwo\nthree", False),
        ("1\n2\n3\n4\n5\n6\n7\n8\n9\n0", "1\n2\n3\n4\n5\n6\n7\n8\n9\nzero", False),
        ("1\n2\n3\n4\n5\n6", "1\n2\n3\n4\nfive\nsix", False),
        ("1\n2\n3\n4\n5", "1\n2\n3\nfour\nfive", True),
        ("1\n2", "3\n4", True),
        ("", "", False),
        ("one", "", True),
    ],
)
def test_noise_is_six_tenths_of_the_lines_or_seven_tenths_of_the_later_ones(a: str, b: str, noisy: bool) -> None:
    assert _of(a, b).high_noise is noisy


def test_sections_go_by_heading_in_document_order() -> None:
    reading = read_text("Intro\nTides\nHigh at six\nMoon\nFull", "Tides\nMoon")

    assert list(sections(reading).items()) == [
        (("Content", 1), ("Intro",)),
        (("Tides", 1), ("High at six",)),
        (("Moon", 1), ("Full",)),
    ]


def test_a_page_without_headings_is_one_section() -> None:
    assert sections(read_text("a\nb", None)) == {("Content", 1): ("a", "b")}
    assert sections(read_text("", "Only in the header")) == {("Content", 1): ()}


def test_a_table_of_contents_is_not_taken_for_its_headings() -> None:
    found = sections(read_text("Tides\nMoon\nTides\nHigh at six\nMoon\nFull", "Tides\nMoon"))

    assert found["Tides", 1] == ("High at six",)
    assert found["Content", 1] == ("Tides", "Moon")


def test_sections_that_came_went_and_changed_are_counted() -> None:
    before = "Tides\nHigh at six\nMoon\nFull\nSame\nstays"
    after = "Tides\nHigh at seven\nSun\nUp\nSame\nstays"

    result = _of(before, after, ("Tides\nMoon\nSame", "Tides\nSun\nSame"))

    assert result.sections == (1, 1, 1)
    assert result.touched == ("Tides", "Sun", "Moon")


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("x\n" * 150_000, "y\n" * 150_000),
        ("x\ny\n" * 70_000, "y\nx\n" * 70_000 + "z"),
        ("a " * 2_000_000, "b " * 2_000_000),
        ("\n".join(map(str, range(150_000))), "\n".join(map(str, reversed(range(150_000))))),
        ("\n".join(f"{n} " * 400 for n in range(400)), "\n".join(f"{n}x " * 400 for n in range(400))),
    ],
    ids=["other lines", "swapped lines", "one long line", "reversed", "long lines"],
)
def test_hostile_texts_do_not_take_long(a: str, b: str) -> None:
    started = time.process_time()

    result = _of(a, b)

    assert result.truncated
    assert time.process_time() - started < patience.allowed(4.0)


def test_a_stored_diff_comes_back_whole() -> None:
    result = _of("Tides\nHigh at six\nend", "Tides\nHigh at <b>seven</b> & more\nend", ("Tides", "Tides"))

    assert unpack(pack(result.hunks, result.touched)) == (result.hunks, result.touched)
    assert pack((), ()) is None
    assert unpack(None) == ([], ())


def test_a_stored_diff_that_would_fill_memory_is_refused() -> None:
    bomb = zstandard.compress(b" " * (MAX_STORED_BYTES + 1))

    with pytest.raises(zstandard.ZstdError, match="larger than any"):
        unpack(bomb)


def test_the_html_is_escaped_and_has_the_classes_that_people_style() -> None:
    result = _of("kept\nthe <b>old</b> way", "kept\nthe <script>alert('x')</script> way")

    assert diff_html(result.hunks) == (
        '<div class="ha-diff-line ha-diff-hunk"><code>@@ -1,2 +1,2 @@</code></div>\n'
        '<div class="ha-diff-line ha-diff-context"><code> kept</code></div>\n'
        '<div class="ha-diff-line ha-diff-del"><code>-the &lt;<del>b</del>&gt;<del>old</del>&lt;/<del>b</del>&gt; way'
        "</code></div>\n"
        '<div class="ha-diff-line ha-diff-add"><code>+the &lt;<ins>script</ins>&gt;<ins>alert(&#x27;x&#x27;)</ins>'
        "&lt;/<ins>script</ins>&gt; way</code></div>"
    )


@given(st.lists(st.text(alphabet="<>&\"'a \u202e", max_size=12), max_size=8), st.text(alphabet="<&\"'>b", max_size=9))
def test_no_markup_of_a_page_gets_through(lines: list[str], added: str) -> None:
    html = diff_html(_of("\n".join(lines), "\n".join([added, *lines])).hunks)

    for tag in ("<div class=\"ha-diff-line ha-diff-context\">", "<div class=\"ha-diff-line ha-diff-hunk\">",
                "<div class=\"ha-diff-line ha-diff-add\">", "<div class=\"ha-diff-line ha-diff-del\">", "</div>",
                "<code>", "</code>", "<ins>", "</ins>", "<del>", "</del>"):  # fmt: skip
        html = html.replace(tag, "")
    assert "<" not in html
    assert ">" not in html


def test_identical_documents_give_an_empty_diff() -> None:
    result = _of("a\nb", "a\nb")

    assert diff_html(result.hunks) == diff_text(result.hunks) == ""
    assert encode(structured_diff(result.hunks, result.touched)) == {"sections": [], "hunks": []}


def test_the_structured_form_has_the_words() -> None:
    result = _of("the red fox", "the blue fox")

    (hunk,) = encode(structured_diff(result.hunks, result.touched))["hunks"]
    assert hunk["lines"][1] == {
        "type": "added",
        "parts": [
            {"type": "same", "text": "the "}, {"type": "added", "text": "blue"}, {"type": "same", "text": " fox"},
        ],
    }  # fmt: skip


def test_a_document_with_too_many_lines_says_that_it_was_cut() -> None:
    reading = read_text("x\n" * 250_000, None)

    assert (len(reading.lines), reading.cut) == (200_000, True)


def test_a_reading_folds_blanks_and_drops_empty_lines() -> None:
    assert read_text(" a \t b \n\n  \nc", " Head  ing \n") == ComparableText(("a b", "c"), ("Head ing",))
