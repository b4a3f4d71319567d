"""Explains URLs, with what `jobs` knows of next runs, and the addresses of `replay`."""

from __future__ import annotations

from sqlalchemy.orm import Session

from holdfast.frontier.explain import ExplainRequest, explain
from holdfast.frontier.explain_records import Explanation
from holdfast.jobs.next_runs import next_runs
from holdfast.replay.address import replay_path
from holdfast.wiring.archive import Archive


def explain_url(archive: Archive, session: Session, request: ExplainRequest) -> Explanation:
    """Return everything known about a URL."""
    return explain(
        session,
        archive.settings,
        request,
        now=archive.now(session),
        find_next_runs=next_runs,
        replay_path=replay_path,
    )
