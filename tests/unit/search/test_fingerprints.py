"""The fingerprint of a text: what changes it, what does not, and that it is the same everywhere."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.search import segments as disk
from holdfast.search.fingerprints import MIN_WORDS, NO_PRINT, fingerprint, near

_TEXT = " ".join(f"word{n * 7919 % 1000}" for n in range(300))


def _alike(one: tuple[int, int, int], other: tuple[int, int, int]) -> bool:
    return len(near(np.array([one], np.uint64), np.array([other], np.uint64))[0]) == 1


def test_it_is_the_same_on_every_machine_and_in_every_release() -> None:
    # Fingerprints are stored: a change raises the version of the segments, and all are made anew.
    assert disk.VERSION % 100 == 6
    assert fingerprint("The heron stood in the reeds, and waited for fish. " * 3 + "Herons wait.", "Heron") == (
        3912500167268333430,
        12992062847043459246,
        4297064448,
    )


def test_case_signs_and_lines_do_not_count() -> None:
    assert fingerprint(_TEXT) == fingerprint(f"  {_TEXT.upper().replace(' ', ', ', 40)}!\n")


def test_a_text_of_a_few_words_has_none() -> None:
    words = _TEXT.split()

    assert fingerprint(" ".join(words[: MIN_WORDS - 1])) == NO_PRINT
    assert fingerprint(" ".join(words[:MIN_WORDS])) != NO_PRINT
    for text in ("", " ", "\n", "...", "a"):
        assert fingerprint(text) == NO_PRINT
    assert not _alike(NO_PRINT, NO_PRINT)


def test_a_few_words_changed_give_nearly_the_same() -> None:
    words = _TEXT.split()
    words[100:110] = ["other"]

    assert _alike(fingerprint(_TEXT), fingerprint(" ".join(words)))
    assert not _alike(fingerprint(_TEXT), fingerprint(" ".join(f"else{n}" for n in range(300))))


@pytest.mark.parametrize(
    "sentence",
    [
        "苍鹭站在芦苇丛中等待鱼儿游过来已经很久了没有人知道它在想什么只有风吹过水面的声音",
        "นกกระสายืนอยู่ในพงอ้อเพื่อรอปลามานานแล้วไม่มีใครรู้ว่ามันคิดอะไรอยู่",
        "𠀀𠀁𠀂𠀃𠀄𠀅𠀆𠀇𠀈𠀉𠀊𠀋𠀌𠀍𠀎𠀏𠀐𠀑𠀒𠀓𠀔𠀕",
    ],
)
def test_scripts_without_blanks_are_compared_by_their_characters(sentence: str) -> None:
    assert fingerprint(sentence) != NO_PRINT
    assert _alike(fingerprint(sentence * 2), fingerprint(f"{sentence}鹤{sentence}"))
    assert not _alike(fingerprint(sentence), fingerprint(sentence[::-1]))


_PAGE = "DROP {0} removes a {0} from the database. Only the owner of the {0} may do so. " + " ".join(_TEXT.split()[:80])


def test_pages_of_one_template_differ_in_their_subject() -> None:
    parser, template = (
        fingerprint(_PAGE.format(word), f"DROP {word}: manual of 2025") for word in ("parser", "template")
    )

    assert not _alike(parser, template)
    # Without titles there is no subject, and the rest is nearly the same.
    assert _alike((*parser[:2], 0), (*template[:2], 0))


@pytest.mark.parametrize(
    "title", ["DROP parser", "parser", "How to DROP a parser - Mirror of manuals", "", "Copy 7", None]
)
def test_a_title_with_words_that_the_text_does_not_use_says_nothing(title: str | None) -> None:
    text = _PAGE.format("parser")

    assert _alike(fingerprint(text, "DROP parser: manual of 2025"), fingerprint(text, title))


def test_odd_characters_are_no_trouble() -> None:
    for odd in ("\ud800", "\x00", "\u200d", "ﬀ", "İ", "\U0010ffff"):
        assert len(fingerprint(f"{_TEXT} {odd * 50} {_TEXT}", odd)) == 3


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="ab Z1.,:-/9\n\0", max_size=40))
def test_a_sign_that_is_no_word_changes_nothing_though_it_is_not_ascii(text: str) -> None:
    assert fingerprint(f"{_TEXT}\n{text}") == fingerprint(f"{_TEXT}\n{text} \u2014")


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="ab Z1.,:-/9é水\u0e01\U00020000\u2014\n\0", max_size=40))
def test_words_are_the_same_in_capitals_and_wherever_they_stand(text: str) -> None:
    assert fingerprint(f"{_TEXT}\n{text}") == fingerprint(f" \u2014 {_TEXT.upper()}\n{text.upper()} \n")


def test_the_subject_is_the_words_of_the_title_that_the_text_uses() -> None:
    text = f"{_TEXT} {'heron ' * 8}"

    def subject(title: str) -> int:
        return fingerprint(text, title)[2]

    assert subject("The Heron") == subject("heron, heron!") == subject("Heron of Alexandria 2026") != 0
    assert subject("Owls") == subject("") == 0
    assert fingerprint(text, "The Heron")[:2] == fingerprint(text)[:2]
