"""Saved queues: which is taken, how the managed settings get into it, and when it leads nowhere."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from holdfast.zimit.output_directory import MANAGED_NAME, RESUME_NAME, as_text, read_mapping
from holdfast.zimit.passthrough import merged
from holdfast.zimit.run import (
    candidates,
    is_poisoned,
    keep_resume,
    usable_resume,
)

EMPTY = "ERROR:No entry found to push to the ZIM, WARC file(s) is unprocessable and looks probably mostly empty"


def _queue(folder: Path, path: str, *, age: float, text: str = "a: 1\n") -> Path:
    made = folder / path
    made.parent.mkdir(parents=True, exist_ok=True)
    made.write_text(text)
    os.utime(made, (age, age))
    return made


def test_candidates_come_by_shape_and_then_by_age(tmp_path: Path) -> None:
    one, two = tmp_path / ".tmp1", tmp_path / ".tmp2"
    flat = _queue(one, "collections/crawl-1/crawl-9.yaml", age=900)
    other = _queue(one, "collections/crawl-1/crawls/x.yaml", age=800)
    short = _queue(two, "collections/crawl-1/crawls/crawl-1.yml", age=700)
    old = _queue(one, "collections/crawl-1/crawls/crawl-1.yaml", age=1)
    new = _queue(two, "collections/crawl-2/crawls/crawl-2.yaml", age=2)
    _queue(two, "elsewhere/crawl-2.yaml", age=999)

    assert list(candidates([one, two])) == [new, old, short, other, flat]


@pytest.mark.parametrize("text", ["", "a: [1", "- 1\n- 2\n", "just text", "!!python/object:os.system {}", "\x00"])
def test_a_file_that_is_no_queue_is_passed_over(tmp_path: Path, text: str) -> None:
    folder = tmp_path / ".tmp1"
    _queue(folder, "collections/crawl-1/crawls/crawl-2.yaml", age=2, text=text)
    good = _queue(folder, "collections/crawl-1/crawls/crawl-1.yaml", age=1)
    (tmp_path / RESUME_NAME).write_text(text)

    assert usable_resume(tmp_path, [folder]) == good
    assert keep_resume(tmp_path, [good]) == tmp_path / RESUME_NAME
    assert (tmp_path / RESUME_NAME).read_bytes() == good.read_bytes()
    assert usable_resume(tmp_path, [folder]) == tmp_path / RESUME_NAME


def test_after_a_stage_its_own_queue_becomes_the_stable_one(tmp_path: Path) -> None:
    (tmp_path / RESUME_NAME).write_text("from: before\n")
    folder = tmp_path / ".tmp1"
    _queue(folder, "collections/crawl-1/crawls/crawl-1.yaml", age=5, text="from: stage\n")

    assert keep_resume(tmp_path, candidates([folder])) is not None
    assert read_mapping(tmp_path / RESUME_NAME) == {"from": "stage"}
    assert keep_resume(tmp_path, candidates([tmp_path / ".tmpempty"])) is None


def test_managed_settings_are_merged_into_the_stable_copy(tmp_path: Path) -> None:
    managed = {"timeout": 5, "extraChromeArgs": ["--disable-http2"]}
    (tmp_path / MANAGED_NAME).write_text(as_text(managed))
    (tmp_path / RESUME_NAME).write_text(json.dumps({"timeout": 9, "extraChromeArgs": ["--mine"], "state": {"q": [1]}}))

    keep_resume(tmp_path, [tmp_path / RESUME_NAME])

    wanted = {"timeout": 5, "extraChromeArgs": ["--disable-http2", "--mine"], "state": {"q": [1]}}
    assert read_mapping(tmp_path / RESUME_NAME) == wanted
    assert read_mapping(tmp_path / MANAGED_NAME) == managed


@pytest.mark.parametrize(
    ("managed", "saved", "wanted"),
    [
        ({"a": 1}, {"a": 2, "b": 3}, {"a": 1, "b": 3}),
        ({"a": [1, 2, 2]}, {"a": [2, 3]}, {"a": [1, 2, 3]}),
        ({"a": {"x": 1, "y": [1]}}, {"a": {"x": 2, "y": [2], "z": 3}}, {"a": {"x": 1, "y": [1, 2], "z": 3}}),
        ({"a": [1]}, {"a": "text"}, {"a": [1]}),
        ({"a": {"x": 1}}, {"a": 5}, {"a": {"x": 1}}),
        ({}, {"a": 1}, {"a": 1}),
    ],
)
def test_managed_settings_win_inside_what_was_saved(
    managed: dict[str, Any], saved: dict[str, Any], wanted: dict[str, Any]
) -> None:
    before = json.dumps(saved)

    assert merged(managed, saved) == wanted
    assert json.dumps(saved) == before


@pytest.mark.parametrize(
    ("managed", "tail", "stats", "poisoned"),
    [
        (True, EMPTY, (0, 2, 0, 2), True),
        (True, EMPTY, None, True),
        (True, "ERROR:No entry found to push to the ZIM", (0, 1, 0, 1), True),
        (False, EMPTY, (0, 2, 0, 2), False),
        (True, "another error", (0, 2, 0, 2), False),
        (True, EMPTY, (1, 2, 0, 1), False),
        (True, EMPTY, (0, 2, 1, 1), False),
        (True, EMPTY, (0, 0, 0, 0), False),
        (True, EMPTY, (0, 2, 0, 1), False),
    ],
)
def test_a_queue_is_poisoned_only_if_all_three_signs_are_there(
    tmp_path: Path, managed: bool, tail: str, stats: tuple[int, ...] | None, poisoned: bool
) -> None:
    lines = [tail]
    if stats is not None:
        details = dict(zip(("crawled", "total", "pending", "failed"), stats, strict=True))
        entry = {"context": "crawlStatus", "message": "Crawl statistics", "details": details}
        lines.insert(0, json.dumps(entry))
    (tmp_path / "archive_x.combined.log").write_text("\n".join(lines))

    assert is_poisoned(tmp_path, managed=managed) is poisoned


def test_a_phrase_beyond_the_end_of_the_log_is_old_news(tmp_path: Path) -> None:
    (tmp_path / "archive_x.combined.log").write_text(EMPTY + "\n" + "later\n" * 40_000)

    assert not is_poisoned(tmp_path, managed=True)
