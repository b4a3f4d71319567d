"""The house's dataclass beside the standard library's."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from dataclasses import field
from typing import Any

import pytest

from holdfast import values


def _classes(dataclass: Callable[..., Any]) -> tuple[Any, Any, Any]:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Value:
        """Frozen, by name."""

        name: str
        count: int = 3
        marks: list[int] = field(default_factory=list)
        secret: str = field(default="s", repr=False, compare=False)

        @property
        def double(self) -> int:
            return self.count * 2

    @dataclass(slots=True)
    class State:
        """Changing, by place."""

        count: int
        _count: int = 1
        total: int = field(init=False)
        seen: set[int] = field(init=False, default_factory=set)

        def __post_init__(self) -> None:
            self.total = self.count + self._count

    @dataclass(frozen=True, slots=True)
    class Own:
        """With a method of its own."""

        name: str = ""

        def __repr__(self) -> str:
            return "own"

    return Value, State, Own


BOTH = pytest.mark.parametrize("dataclass", [values.dataclass, dataclasses.dataclass], ids=["ours", "stdlib"])


@BOTH
def test_values_are_made_shown_compared_and_hashed(dataclass: Callable[..., Any]) -> None:
    value, _, own = _classes(dataclass)
    one, other = value(name="a", marks=[1]), value(name="a", marks=[1], secret="t")

    assert repr(one).endswith("Value(name='a', count=3, marks=[1])")
    assert one == other
    assert one != value(name="b")
    assert one != ("a", 3, [1])
    assert one.double == 6
    assert value(name="a").marks is not value(name="a").marks
    assert hash(own(name="x")) == hash(own(name="x"))
    assert repr(own()) == "own"


@BOTH
def test_what_the_standard_library_does_with_dataclasses_holds(dataclass: Callable[..., Any]) -> None:
    value, _, _ = _classes(dataclass)
    one = value(name="a")

    assert dataclasses.replace(one, count=4) == value(name="a", count=4)
    assert dataclasses.asdict(one) == {"name": "a", "count": 3, "marks": [], "secret": "s"}
    assert [known.name for known in dataclasses.fields(value)] == ["name", "count", "marks", "secret"]
    assert copy.copy(one) == copy.deepcopy(one) == one
    assert not hasattr(one, "__dict__")


@BOTH
def test_what_is_missing_or_unknown_is_refused_as_everywhere(dataclass: Callable[..., Any]) -> None:
    value, state, _ = _classes(dataclass)

    for _ in range(2):  # the first call compiles what the second finds
        with pytest.raises(TypeError, match="required keyword-only argument: 'name'"):
            value()
        with pytest.raises(TypeError, match="positional argument"):
            value("a")
        with pytest.raises(TypeError, match="unexpected keyword argument 'other'"):
            value(name="a", other=1)
        with pytest.raises(TypeError, match="required positional argument: 'count'"):
            state()


@BOTH
def test_state_may_change_and_is_no_key(dataclass: Callable[..., Any]) -> None:
    _, state, _ = _classes(dataclass)
    one = state(2, _count=5)
    one.count = 9

    assert (one.count, one.total, one.seen) == (9, 7, set())
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)
