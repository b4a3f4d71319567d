"""The older vocabulary over the same rows, and the plan of a native crawl."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.config import PolitenessSettings, Settings
from holdfast.db.models import Job, Source
from holdfast.jobs.views.listing import ADMIN_STATES, admin_state
from holdfast.sources.config import read_config
from holdfast.sources.plan import CrawlDefaults, crawl_plan
from holdfast.worker.native import plan_of


@pytest.mark.parametrize(
    ("state", "retries", "run", "index", "word"),
    [
        ("pending", 0, None, None, "queued"),
        ("scheduled", 0, None, None, "queued"),
        ("scheduled", 0, "queued", None, "queued"),
        ("scheduled", 1, "failed", None, "retryable"),
        ("scheduled", 0, "completed", "indexed", "indexed"),
        ("running", 0, "running", None, "running"),
        ("completed", 0, "completed", None, "completed"),
        ("completed", 0, "completed", "pending", "completed"),
        ("completed", 0, "completed", "indexing", "indexing"),
        ("completed", 0, "completed", "indexed", "indexed"),
        ("completed", 0, "completed", "index_failed", "index_failed"),
        ("failed", 3, "failed", None, "failed"),
        ("paused", 0, None, None, "paused"),
        ("cancelled", 0, "cancelled", None, "cancelled"),
        (None, 0, "stopped", None, "retryable"),
        (None, 0, "running", None, "running"),
        (None, 0, "completed", "indexed", "indexed"),
        (None, 0, None, None, "queued"),
    ],
)
def test_admin_state_of_job_and_run(
    state: str | None, retries: int, run: str | None, index: str | None, word: str
) -> None:
    assert admin_state(state, retries=retries, run=run, index=index) == word
    assert word in ADMIN_STATES


def test_a_sources_configuration_becomes_a_plan() -> None:
    content = {"seeds": ["https://ex.example/a/"], "scope": "prefix", "exclude": ["/x"], "max_depth": -1}
    limits = {"quota_bytes": 10, "delay_s": 2, "user_agents": ["A/1", "B/1"], "sitemaps": False}
    config = read_config({**content, **limits})
    plan = crawl_plan(config, CrawlDefaults(contact="a@b.example", allow_networks=("10.0.0.0/8",)), number=2)

    assert (plan.seeds, plan.scope, plan.exclude) == (("https://ex.example/a/",), "prefix", ("/x",))
    assert (plan.max_bytes, plan.delay_s, plan.sitemaps) == (10, 2.0, False)
    assert plan.build_scope().max_depth is None
    assert plan.agent().startswith("B/1 Holdfast/")
    assert "mailto:a@b.example" in plan.agent()
    assert plan.keeps_bodies


@pytest.mark.parametrize(("own", "delay_s"), [({}, 7.0), ({"delay_s": 2}, 2.0), ({"delay_s": 0}, 0.0)])
def test_a_source_without_a_delay_of_its_own_has_that_of_the_settings(own: dict[str, int], delay_s: float) -> None:
    config = read_config({"seeds": ["https://ex.example/"], **own})
    plan = crawl_plan(config, CrawlDefaults(contact="a@b.example", delay_s=7.0), number=1)

    assert plan.delay_s == delay_s
    assert config.stored() == {"seeds": ["https://ex.example/"], **own}


def test_a_worker_takes_the_delay_of_its_settings() -> None:
    settings = Settings(contact="a@b.example", politeness=PolitenessSettings(delay_s=7.0))
    lease: Any = SimpleNamespace(
        job=Job(config={}, url_given=False), source=Source(base_url="https://ex.example/", config={}), number=1
    )

    assert plan_of(settings, lease).delay_s == 7.0


def test_a_source_that_keeps_signals_is_another_crawl_without_bodies() -> None:
    house, seeds = CrawlDefaults(contact="a@b.example"), ["https://ex.example/"]
    kept = crawl_plan(read_config({"seeds": seeds}), house, number=1)
    signals = crawl_plan(read_config({"seeds": seeds, "storage": "signals"}), house, number=1)

    assert (kept.storage, signals.storage, signals.keeps_bodies) == ("warc", "signals", False)
    assert kept.fingerprint() != signals.fingerprint()
