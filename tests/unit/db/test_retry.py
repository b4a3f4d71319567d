"""Patience with a database that is away for a moment."""

from __future__ import annotations

import pytest

from holdfast.db.raw import persist
from holdfast.errors import Conflict, HoldfastError, NoSpace, Unavailable


class Flaky:
    """Fails with these errors, one after the other, then answers."""

    def __init__(self, *errors: HoldfastError) -> None:
        self.errors = list(errors)

    def __call__(self) -> str:
        if self.errors:
            raise self.errors.pop(0)
        return "done"


def test_a_short_absence_is_waited_out() -> None:
    waited: list[float] = []

    assert persist(Flaky(Unavailable("1"), Unavailable("2"), Unavailable("3")), sleep=waited.append) == "done"
    assert waited == [0.1, 0.2, 0.4]


def test_a_long_absence_is_raised() -> None:
    waited: list[float] = []

    with pytest.raises(Unavailable, match="4"):
        persist(Flaky(*(Unavailable(str(n)) for n in range(1, 6))), sleep=waited.append)
    assert len(waited) == 3


@pytest.mark.parametrize("error", [NoSpace("full"), Conflict("no")])
def test_what_waiting_does_not_mend_is_raised_at_once(error: HoldfastError) -> None:
    waited: list[float] = []

    with pytest.raises(type(error)):
        persist(Flaky(error), sleep=waited.append)
    assert waited == []
