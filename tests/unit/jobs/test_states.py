"""The seven states: all forty-nine pairs, and what each action may be done from."""

from __future__ import annotations

from itertools import product

import pytest

from holdfast.errors import Conflict
from holdfast.jobs.states import (
    TERMINAL,
    TRANSITIONS,
    IllegalTransition,
    JobAction,
    State,
    after,
    check,
    route,
    sources_of,
)

_TABLE = """
            pending scheduled running paused completed failed cancelled
pending     -       yes       yes     -      -         -      yes
scheduled   yes     -         yes     yes    -         -      yes
running     -       yes       -       -      yes       yes    yes
paused      -       yes       -       -      -         -      yes
completed   -       yes       -       -      -         -      -
failed      yes     -         -       -      -         -      -
cancelled   -       -         -       -      -         -      -
"""
_HEAD, *_ROWS = [line.split() for line in _TABLE.strip().splitlines()]
PAIRS = [(row[0], target, word == "yes") for row in _ROWS for target, word in zip(_HEAD, row[1:], strict=True)]

_FROM = {
    "pause": {"scheduled"},
    "resume": {"paused"},
    "cancel": {"scheduled", "running", "paused", "pending"},
    "retry": {"failed"},
    "force-run": {"scheduled"},
}


def test_the_table_has_all_pairs() -> None:
    assert len(PAIRS) == 49
    assert {(a, b) for a, b, _ in PAIRS} == set(product(map(str, State), repeat=2))


@pytest.mark.parametrize(("state", "target", "legal"), PAIRS)
def test_a_step_is_legal_or_a_conflict(state: str, target: str, legal: bool) -> None:
    if legal:
        check(State(state), State(target))
    else:
        with pytest.raises(IllegalTransition, match=f"a job that is {state} cannot become {target}"):
            check(State(state), State(target))
    assert (State(state) in sources_of(State(target))) == legal


@pytest.mark.parametrize(("action", "state"), list(product(JobAction, State)))
def test_an_action_is_allowed_from_the_documents_states_only(action: JobAction, state: State) -> None:
    if state in _FROM[action]:
        assert after(action, state) in TRANSITIONS[state]
    else:
        with pytest.raises(Conflict, match=f"a job that is {state} cannot {action}"):
            after(action, state)


def test_terminal_states_are_the_documents() -> None:
    assert {State.COMPLETED, State.FAILED, State.CANCELLED} == TERMINAL


@pytest.mark.parametrize(
    ("state", "target", "way"),
    [
        ("pending", "pending", ()),
        ("completed", "pending", ("scheduled", "pending")),
        ("failed", "scheduled", ("pending", "scheduled")),
        ("paused", "pending", ("scheduled", "pending")),
        ("scheduled", "pending", ("pending",)),
    ],
)
def test_a_new_plan_goes_by_legal_steps_in_which_nothing_runs(state: str, target: str, way: tuple[str, ...]) -> None:
    assert route(State(state), State(target)) == way


def test_nothing_leads_out_of_cancelled() -> None:
    with pytest.raises(IllegalTransition):
        route(State.CANCELLED, State.SCHEDULED)
