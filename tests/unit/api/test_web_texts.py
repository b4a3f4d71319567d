"""Every code that the control room shows has a text; `words.test.ts` compares the languages of the catalogues."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import get_args

import pytest

from holdfast.auth.roles import Permission, Role
from holdfast.config import Settings
from holdfast.config.showing import walk
from holdfast.crawl.survey import SurveyWarning
from holdfast.db.audit_events import AuditAction
from holdfast.editions.edition_view import Acceptance, EditionStatus
from holdfast.frontier import outcome_words
from holdfast.jobs.endings import RULES
from holdfast.jobs.pauses import WaitCode
from holdfast.jobs.states import JobAction, State
from holdfast.sources.config import SourceConfig
from holdfast.types import Outcome
from holdfast.urls import ScopeKind, scope

_LANGUAGE = Path(__file__).parents[3] / "web" / "src" / "language"
_ENTRY = re.compile(r'^  "?([^":]+|[^"]+(?="))"?: "', re.M)

_ACTIONS = {action for part in get_args(AuditAction) for action in get_args(part)}
_WARNED = SourceConfig(
    max_depth=0, delay_s=0.5, storage="signals", backend="zimit", user_agents=("a",), requisites=False
).warnings()
_WORDS = {
    outcome_words.outcome_word(outcome, reason)
    for outcome, reason in product(
        [None, *Outcome], [None, *outcome_words._BY_REASON, *outcome_words._BY_BEGINNING, "other"]
    )
}
_TRAPS = [getattr(scope, name) for name in vars(scope) if str(getattr(scope, name)).startswith("trap:")]
CODES = {
    "audit": [f"action.{action}" for action in _ACTIONS],
    "editions": [f"status.{status}" for status in EditionStatus],
    "jobs": [f"state.{state}" for state in State],
    "outcomes": [
        *(f"end.{rule.state}.{rule.reason}" for rule in RULES),
        *(f"outcome.{word}" for word in _WORDS),
        *(f"in.{kind}" for kind in ScopeKind),
        *(f"out.{kind}" for kind in ScopeKind if kind is not ScopeKind.ANY),
        *(f"rule.{rule}" for rule in ("seed", "include", "exclude", "trap", "max_depth")),
        *(f"reason.{rule.removeprefix('trap:')}" for rule in _TRAPS),
    ],
    "sources": [f"warning.{warning.partition(':')[0]}" for warning in (*_WARNED, "zimit:")],
    "start": [f"warning.{code}" for code in get_args(SurveyWarning)],
    "users": [
        *(f"role.{role}" for role in Role if role is not Role.ANONYMOUS),
        *(f"scope.{one}" for one in Permission),
    ],
    "waits": [f"title.{code}" for code in get_args(WaitCode)],
}


def _keys(path: Path) -> set[str]:
    return set(_ENTRY.findall(path.read_text()))


@pytest.mark.parametrize("catalogue", CODES)
def test_each_code_of_the_server_has_a_text(catalogue: str) -> None:
    known = _keys(_LANGUAGE / "control" / f"{catalogue}.ts")
    assert sorted(set(CODES[catalogue]) - known) == []


def test_each_audited_decision_is_a_known_action() -> None:
    jobs = {f"job.{action}" for action in JobAction}
    pages = {f"edition.page_{state}" for state in (Acceptance.ACCEPTED, Acceptance.EXCLUDED, Acceptance.PENDING)}
    shards = {page.replace("page", "shard") for page in pages}
    assert jobs | pages | shards <= _ACTIONS


def test_each_setting_is_described_in_french() -> None:
    names = {name.removeprefix("HOLDFAST_") for name, *_ in walk(Settings())}
    assert _keys(_LANGUAGE / "frSettings.ts") == names
