"""The table of run modes, every row and every combination."""

from __future__ import annotations

import itertools

import pytest

from holdfast.zimit.docker import SUCCESS_CODES
from holdfast.zimit.flags import Options
from holdfast.zimit.outcome import EndState
from holdfast.zimit.run import RunMode, choose_mode


@pytest.mark.parametrize("words", list(itertools.product([False, True], repeat=6)))
def test_every_combination_has_the_mode_of_its_first_row(words: tuple[bool, ...]) -> None:
    zim, overwrite, build, resume, warcs, may = words
    rows = (
        (zim and build and not overwrite, None),
        (zim and build and overwrite, RunMode.OVERWRITE),
        (resume and may, RunMode.RESUME),
        (warcs, RunMode.CONSOLIDATE),
        (True, RunMode.FRESH),
    )

    chosen = choose_mode(
        zim_exists=zim, overwrite=overwrite, wants_build=build, has_resume=resume, has_warcs=warcs, may_resume=may
    )
    assert chosen is next(mode for holds, mode in rows if holds)


def test_stages_are_called_after_their_mode() -> None:
    assert [mode.stage for mode in RunMode] == ["Initial Crawl", "Resume Crawl", "New Crawl Phase", "Initial Crawl"]


def test_only_success_is_exit_code_zero_and_the_words_are_fixed() -> None:
    assert {state.value: state.exit_code for state in EndState} == {
        "success": 0, "failed": 1, "failed_max_attempts": 1, "failed_no_warcs": 1, "failed_warc_path_conversion": 1,
        "failed_state_error": 1, "docker_start_failed": 1, "stopped": 1,
        "warc_complete_finalization_failed": 1,
    }  # fmt: skip
    assert {0, 14, 15, 16, 32, 33} == SUCCESS_CODES
    assert Options.__dataclass_fields__["max_attempts"].default == 100
