"""Sentences: where they end, in several scripts."""

from __future__ import annotations

import pytest

from holdfast.search.sentences import cut_end, cut_start, sentence_ends


@pytest.mark.parametrize(
    "sentences",
    [
        ["It ends. ", "Here too! ", "Does it? ", "Yes"],
        ["See Dr. Jones, e.g. at No. 5, for 3.5 hours. ", "J. R. Smith is away."],
        ["He said “Stop.” ", "She did (at once.) ", "Then it was over."],
        ["Python 3.11 is new. ", "Version 2.7 is not."],
        ["It was in 1999. ", "Then came 2000."],
        ["Am 3. Oktober ist frei. ", "Vgl. dazu Abs. 2."],
        ["Il est là, cf. Mme. Dupont. ", "Elle aussi."],
        ["今日は晴れです。", "明日は？", "「はい。」", "終わり"],
        ["هل هذا صحيح؟ ", "نعم."],
        ["यह एक वाक्य है। ", "यह दूसरा है।"],
        ["ประเทศไทยมีอากาศร้อน และมีฝนตกชุก"],
        ["It uses Yahoo! as well as node.js and more. ", "So be it."],
    ],
)
def test_sentences_end_where_a_reader_ends_them(sentences: list[str]) -> None:
    text = "".join(sentences)

    ends = sentence_ends(text, 0, len(text), len(text))

    starts = [0, *ends[:-1]]
    assert [text[a:b].strip() for a, b in zip(starts, ends, strict=True)] == [one.strip() for one in sentences]


def test_a_mark_at_the_end_of_what_is_read_ends_nothing_by_itself() -> None:
    assert sentence_ends("about 3.14 of it", 0, 8, 16) == []


def test_cuts_fall_between_words() -> None:
    text = "alpha beta gamma"

    assert text[cut_start(text, 2, 11) :] == "beta gamma"
    assert text[: cut_end(text, 5, 13)] == "alpha beta"


def test_a_letter_stays_with_its_marks() -> None:
    text = "ก\u0e35\u0e48" * 5

    assert cut_start(text, 1, 9) == 3
    assert cut_end(text, 0, 4) == 3
