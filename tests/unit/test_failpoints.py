"""Failpoints: they act where, when and as often as they are told, and cost nothing otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import failpoints
from holdfast.errors import Unavailable
from holdfast.failpoints import armed


def test_without_a_variable_every_place_is_a_no_op() -> None:
    failpoints.reach("after_commit")
    failpoints.reach("parse", "https://example.org/")


def test_only_the_named_place_acts() -> None:
    reach = armed("here:raise")

    reach("there")

    with pytest.raises(RuntimeError, match="here"):
        reach("here")


def test_the_first_passes_are_let_through() -> None:
    reach = armed("here:raise:2")

    reach("here")
    reach("here")

    with pytest.raises(RuntimeError):
        reach("here")


def test_only_passes_that_carry_the_text_count() -> None:
    reach = armed("parse@poison:raise")

    reach("parse", "https://example.org/good")

    with pytest.raises(RuntimeError):
        reach("parse", "https://example.org/poison?a=1")


def test_tokens_in_a_folder_say_how_often_all_together_act(tmp_path: Path) -> None:
    (tmp_path / "here.1").touch()
    (tmp_path / "there.1").touch()
    one, other = armed(f"here:raise:0:{tmp_path}"), armed(f"here:raise:0:{tmp_path}")

    with pytest.raises(RuntimeError):
        one("here")
    other("here")
    one("here")

    assert [path.name for path in tmp_path.iterdir()] == ["there.1"]


def test_several_places_can_be_armed_at_once() -> None:
    reach = armed("here:raise,there:lose")

    with pytest.raises(Unavailable):
        reach("there")
    with pytest.raises(RuntimeError):
        reach("here")


def test_an_action_that_does_not_exist_is_refused_at_the_start() -> None:
    with pytest.raises(KeyError):
        armed("here:explode")
