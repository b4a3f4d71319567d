"""What a form refuses before a route sees it, and how it names the place."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from holdfast.api.routes.sources import SourceChanges
from holdfast.api.schemas.base import RequestForm, check_values


class _Sample(RequestForm):
    number: int = 0
    config: dict[str, Any] = {}  # noqa: RUF012 - a form is frozen


@pytest.mark.parametrize(
    ("value", "place"),
    [("a\x00", "body: it holds a NUL"), ({"a": ["x", "\ud800"]}, r"a\[1\]: it holds half"),
     ({"a": {"b\x00": 1}}, r"a.b\?: it holds a NUL"), ({"a": float("nan")}, "a: it is no finite"),
     ([float("inf")], r"\[0\]: it is no finite"), ({"n": 2**63}, "n: it is a larger"),
     ({"n": -(2**63) - 1}, "n: it is a larger"),
     ({"\ud800" * 99: 1}, r"\?{60}: it holds half")],
)  # fmt: skip
def test_the_place_of_what_cannot_be_kept_is_named(value: Any, place: str) -> None:
    with pytest.raises(ValueError, match=place):
        check_values(value)


@pytest.mark.parametrize("value", [None, True, 0, -(2**63), 2**63 - 1, 1.5, "é\n\t", {"a": [{}]}, [], "\U0001f30a"])
def test_whatever_both_databases_can_hold_passes(value: Any) -> None:
    check_values(value)


class _Name(str):
    """A name that counts how often it is spelled."""

    spelled = 0

    def __getitem__(self, part: Any) -> str:
        type(self).spelled += 1
        return super().__getitem__(part)


def test_places_are_spelled_only_where_something_is_wrong() -> None:
    check_values({_Name("a"): {_Name("b"): [{_Name("c"): 1}] * 100}})
    assert _Name.spelled == 0

    with pytest.raises(ValueError, match=r"^a\.b\[1\]: it is no finite"):
        check_values({_Name("a"): {_Name("b"): [0, float("nan")]}})
    assert _Name.spelled == 2


@pytest.mark.parametrize("content", [{"number": "1"}, {"number": True}, {"number": 1.0}, {"other": 1}, [], "x", 7])
def test_types_are_strict_and_unknown_fields_are_refused(content: Any) -> None:
    with pytest.raises(ValidationError):
        _Sample.model_validate(content)


def test_what_only_we_write_may_be_sent_back_and_is_not_read() -> None:
    form = SourceChanges.model_validate({"id": 9, "created_at": "x", "updated_at": "y", "warnings": [], "name": "n"})

    assert form.model_fields_set == {"name"}
