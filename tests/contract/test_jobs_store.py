"""What people do to jobs, on both databases: upserts, actions, the forty-nine pairs, sources that come and go."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from holdfast.db.models import Job, Source
from holdfast.errors import Conflict, Invalid, NotFound
from holdfast.jobs.administration import source_jobs
from holdfast.jobs.slots import preview_rebalance, rebalance, show_distribution, slot_of
from holdfast.jobs.specs import JobBusy, JobRefused, JobSpec, ScheduleKept, job_config
from holdfast.jobs.states import TRANSITIONS, IllegalTransition, JobAction, State, move
from holdfast.jobs.store import JobNotFound
from holdfast.jobs.views.listing import JobFilter, list_jobs, state_counts
from holdfast.sources import registry
from holdfast.sources.queries import SourceNotFound, find_source, named_source
from tests.clock import FakeClock
from tests.jobs_bed import Bed, failed, open_bed


@pytest.fixture
def bed(migrated_url: str, clock: FakeClock, tmp_path: Path) -> Iterator[Bed]:
    with open_bed(migrated_url, clock, tmp_path) as opened:
        yield opened


def test_a_job_with_an_interval_is_scheduled_and_others_are_pending(bed: Bed, clock: FakeClock) -> None:
    scheduled, once, off = (
        bed.job(bed.recurring("a")),
        bed.job(bed.once("b")),
        bed.job(bed.once("c", interval_minutes=30, schedule_enabled=False)),
    )

    assert [job.state for job in (scheduled, once, off)] == ["scheduled", "pending", "pending"]
    assert (once.next_run_at, off.next_run_at) == (clock.now(), clock.now())
    assert scheduled.next_run_at is not None
    assert scheduled.next_run_at >= clock.now()
    assert scheduled.url == "https://a.example/"
    assert (scheduled.max_retries, scheduled.retry_backoff_seconds, scheduled.adaptive_scheduling) == (3, 60, True)


def test_a_second_wish_for_a_source_changes_its_job(bed: Bed, clock: FakeClock) -> None:
    source_id = bed.source()
    first = bed.upsert(source_id, interval_minutes=60, schedule_enabled=True)
    second = bed.upsert(source_id, interval_minutes=6, interval_type="hours", schedule_enabled=True, max_retries=1)

    assert (first.created, second.created) == (True, False)
    assert second.job.id == first.job.id
    job = bed.job(first.job.id)
    assert (job.interval_minutes, job.interval_type, job.max_retries, job.state) == (6, "hours", 1, "scheduled")


def test_a_wish_leaves_a_running_job_running(bed: Bed) -> None:
    source_id = bed.source()
    job_id = bed.upsert(source_id).job.id
    bed.party.scheduler.tick()
    lease = bed.party.taken()

    bed.upsert(source_id, interval_minutes=60, schedule_enabled=True)
    assert (bed.job(job_id).state, bed.job(job_id).next_run_at) == ("running", None)
    bed.party.leases.renew(lease)


@pytest.mark.parametrize("state", ["completed", "failed", "paused", "pending", "scheduled"])
def test_a_wish_revives_a_job_that_is_not_cancelled(bed: Bed, state: str) -> None:
    source_id = bed.source()
    job_id = bed.upsert(source_id).job.id
    bed.change(job_id, lambda job: setattr(job, "state", state))
    bed.set_next_run(job_id, None)

    assert bed.upsert(source_id, interval_minutes=60, schedule_enabled=True).job.state == "scheduled"
    assert bed.job(job_id).next_run_at is not None
    with pytest.raises(ScheduleKept, match=f"job {job_id} already"):
        bed.upsert(source_id)
    assert bed.job(job_id).schedule_enabled
    spec = JobSpec(source_id=source_id)
    with bed.database.write() as session:
        assert bed.party.actions.upsert(session, spec, replaces_schedule=True).job.state == "pending"


def test_a_start_page_is_the_first_seed_and_goes_with_the_source_only_where_the_job_names_none(bed: Bed) -> None:
    source_id = bed.source()
    own = bed.upsert(source_id, url="https://ex.example/own").job.id

    def seeds(job_id: int) -> tuple[str, ...]:
        with bed.database.read() as session:
            job = session.get_one(Job, job_id)
            return job_config(job, session.get_one(Source, source_id)).seeds

    first = seeds(own)
    assert (first[0], len(first)) == ("https://ex.example/own", 2)
    with bed.database.write() as session:
        registry.edit(session, bed.clock, "ex", {"config": {"seeds": ["https://ex.example/moved"]}})
    assert seeds(own) == ("https://ex.example/own", "https://ex.example/moved")

    with bed.database.write() as session:
        spec = replace(JobSpec.of(session.get_one(Job, own)), url=None)
        bed.party.actions.edit(session, own, spec)
    assert (seeds(own), bed.job(own).url) == (("https://ex.example/moved",), "https://ex.example/moved")


def test_a_source_without_seeds_is_crawled_from_the_start_page_of_its_job(bed: Bed) -> None:
    with bed.database.write() as session:
        bare = named_source(session, bed.clock, code="bare")
    with pytest.raises(JobRefused, match="seeds"):
        bed.upsert(bare.id)

    job_id = bed.upsert(bare.id, url="https://bare.example/").job.id

    with bed.database.read() as session:
        assert job_config(session.get_one(Job, job_id), session.get_one(Source, bare.id)).seeds == (
            "https://bare.example/",
        )


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"config": {}}, "config.max_depth"),
        ({"config": {"max_depth": -1, "max_pages": 5}}, "config.max_pages"),
        ({"interval_minutes": 60, "schedule_enabled": True}, "interval_minutes"),
    ],
)
def test_an_annual_job_is_never_capped_and_never_recurs(bed: Bed, changes: dict[str, Any], field: str) -> None:
    spec = JobSpec(source_id=bed.source(), config={"max_depth": -1})
    with bed.database.write() as session:
        job_id = bed.party.actions.add(session, spec, kind="annual", at=bed.clock.now()).id

    with pytest.raises(JobRefused) as refused, bed.database.write() as session:
        bed.party.actions.edit(session, job_id, replace(spec, **changes))

    assert refused.value.field == field
    with bed.database.write() as session:
        bed.party.actions.edit(session, job_id, replace(spec, name="named"))
    assert (bed.job(job_id).name, bed.job(job_id).config) == ("named", {"max_depth": -1})


@pytest.mark.parametrize(
    ("state", "minutes", "after"),
    [("paused", 60, "paused"), ("paused", 90, "paused"), ("failed", 60, "failed"), ("failed", 90, "scheduled"),
     ("completed", 60, "completed"), ("completed", 90, "scheduled"), ("scheduled", 90, "scheduled")],
)  # fmt: skip
def test_a_change_of_its_plan_wakes_no_job_that_rests(bed: Bed, state: str, minutes: int, after: str) -> None:
    job_id = bed.recurring(minutes=60)
    bed.change(job_id, lambda job: setattr(job, "state", state))
    bed.set_next_run(job_id, None)
    with bed.database.write() as session:
        spec = JobSpec(source_id=bed.source_of(job_id), interval_minutes=minutes, schedule_enabled=True, name="new")
        bed.party.actions.edit(session, job_id, spec)

    job = bed.job(job_id)
    assert (job.state, job.name, job.interval_minutes) == (after, "new", minutes)
    assert (job.next_run_at is not None) == (after == "scheduled")
    if state == "paused":
        assert bed.party.act(job_id, JobAction.RESUME).next_run_at is not None


def test_a_run_that_was_forced_outlives_a_new_plan(bed: Bed, clock: FakeClock) -> None:
    job_id = bed.recurring(minutes=60)
    bed.party.act(job_id, JobAction.FORCE_RUN)
    with bed.database.write() as session:
        spec = replace(JobSpec.of(session.get_one(Job, job_id)), interval_minutes=120)
        bed.party.actions.edit(session, job_id, spec)

    assert (bed.job(job_id).state, bed.job(job_id).next_run_at) == ("pending", clock.now())
    bed.run_once(job_id)
    assert (bed.job(job_id).state, bed.job(job_id).interval_minutes) == ("scheduled", 120)


def test_a_cancelled_job_stays_and_a_new_wish_makes_another(bed: Bed) -> None:
    source_id = bed.source()
    old = bed.upsert(source_id).job.id
    bed.party.act(old, JobAction.CANCEL)

    made = bed.upsert(source_id)
    assert made.created
    assert made.job.id != old
    with pytest.raises(IllegalTransition), bed.database.write() as session:
        bed.party.actions.edit(session, old, JobSpec(source_id=source_id))


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"source_id": 999}, "source_id"),
        ({"name": "a\x00b"}, "name"),
        ({"name": "half \ud800"}, "name"),
        ({"interval_minutes": 0}, "interval_minutes"),
        ({"interval_minutes": -5, "schedule_enabled": True}, "interval_minutes"),
        ({"schedule_enabled": True}, "interval_minutes"),
        ({"interval_minutes": 1, "interval_type": "fortnights"}, "interval_type"),
        ({"interval_minutes": 1, "interval_type": "months"}, "interval_type"),
        ({"max_retries": -1}, "max_retries"),
        ({"retry_backoff_seconds": 10**6}, "retry_backoff_seconds"),
        ({"url": "javascript:alert(1)"}, "url"),
        ({"config": {"exclude": ["(?<!x)"]}}, "config.exclude"),
        ({"config": {"vpn": "sh"}}, "config.vpn"),
    ],
)
def test_nothing_is_queued_with_a_wrong_field(bed: Bed, spec: dict[str, object], field: str) -> None:
    source_id = bed.source()
    with pytest.raises(Invalid) as caught:
        bed.upsert(**{"source_id": source_id, **spec})  # type: ignore[arg-type]
    assert str(caught.value).startswith(f"{field}: ")
    with bed.database.read() as session:
        assert state_counts(session) == {}


@pytest.mark.parametrize(("state", "target"), list(product(State, State)))
def test_every_pair_of_states_is_a_step_or_a_conflict_that_changes_nothing(
    bed: Bed, clock: FakeClock, state: State, target: State
) -> None:
    job_id = bed.once()
    bed.change(job_id, lambda job: setattr(job, "state", state.value))

    def step(job: Job) -> None:
        move(job, target, now=clock.now())

    if target in TRANSITIONS[state]:
        bed.change(job_id, step)
        assert bed.job(job_id).state == target
    else:
        with pytest.raises(Conflict):
            bed.change(job_id, step)
        assert bed.job(job_id).state == state


@pytest.mark.parametrize(
    ("action", "before", "after"),
    [("pause", "scheduled", "paused"), ("resume", "paused", "scheduled"), ("cancel", "pending", "cancelled"),
     ("cancel", "scheduled", "cancelled"), ("cancel", "paused", "cancelled"), ("retry", "failed", "pending"),
     ("force-run", "scheduled", "pending")],
)  # fmt: skip
def test_an_action_does_what_it_says(bed: Bed, clock: FakeClock, action: str, before: str, after: str) -> None:
    job_id = bed.recurring()
    bed.change(job_id, lambda job: setattr(job, "state", before))
    job = bed.party.act(job_id, JobAction(action))

    assert job.state == after
    waits = after in ("pending", "scheduled")
    assert (job.next_run_at is not None) == waits
    assert not waits or (job.next_run_at is not None and job.next_run_at >= clock.now())
    assert bed.events(job_id)[-1] == f"job:status {after}"
    assert (job.paused_at is not None) == (after == "paused")
    assert (job.cancelled_at is not None) == (after == "cancelled")


@pytest.mark.parametrize(
    ("action", "state"), [("retry", "completed"), ("retry", "cancelled"), ("force-run", "paused"),
                          ("force-run", "pending"), ("pause", "running"), ("resume", "scheduled"),
                          ("cancel", "completed"), ("cancel", "failed")]
)  # fmt: skip
def test_what_the_document_forbids_is_a_conflict(bed: Bed, action: str, state: str) -> None:
    job_id = bed.recurring()
    bed.change(job_id, lambda job: setattr(job, "state", state))
    before = bed.events(job_id)

    with pytest.raises(IllegalTransition):
        bed.party.act(job_id, JobAction(action))
    assert (bed.job(job_id).state, bed.events(job_id)) == (state, before)


def test_a_pause_takes_back_what_is_queued_and_a_cancel_drains_what_runs(bed: Bed, clock: FakeClock) -> None:
    first, second = bed.recurring("a"), bed.once("b")
    bed.set_next_run(first, clock.now())
    bed.party.scheduler.tick()
    bed.party.act(first, JobAction.PAUSE)
    lease = bed.party.taken()
    bed.party.act(second, JobAction.CANCEL)
    word = bed.party.leases.renew(lease)

    assert [(e.state, e.reason) for e in bed.executions(first)] == [("cancelled", "paused")]
    assert (word.stop, word.cancelled) == ("drain", True)
    bed.party.leases.release(lease)
    assert [(e.state, e.reason) for e in bed.executions(second)] == [("cancelled", "released")]
    assert (bed.job(second).state, bed.job(second).lock_token) == ("cancelled", None)


def test_a_retry_by_hand_begins_to_count_anew(bed: Bed) -> None:
    job_id = bed.once(max_retries=0)
    bed.run_once(job_id, failed())
    assert bed.job(job_id).state == "failed"
    bed.change(job_id, lambda job: setattr(job, "current_retry_count", 3))

    assert bed.party.act(job_id, JobAction.RETRY).current_retry_count == 0
    bed.run_once(job_id)
    assert bed.job(job_id).state == "completed"


def test_a_forced_run_keeps_the_rhythm(bed: Bed, clock: FakeClock) -> None:
    job_id = bed.recurring(minutes=360)
    turn = clock.now() + timedelta(hours=5)
    bed.set_next_run(job_id, turn)
    bed.party.act(job_id, JobAction.FORCE_RUN)
    bed.run_once(job_id)

    assert (bed.job(job_id).state, bed.job(job_id).next_run_at) == ("scheduled", turn)


def test_a_job_that_ran_is_hidden_and_one_that_never_did_is_gone(bed: Bed) -> None:
    ran, never = bed.once("a"), bed.recurring("b")
    bed.run_once(ran)
    with bed.database.write() as session:
        bed.party.actions.delete(session, ran)
        bed.party.actions.delete(session, never)

    with bed.database.read() as session:
        assert list_jobs(session, JobFilter())[1] == 0
    assert bed.job(ran).deleted_at is not None
    for job_id in (ran, never):
        with pytest.raises(JobNotFound), bed.database.write() as session:
            bed.party.actions.delete(session, job_id)


def test_a_running_job_is_not_deleted(bed: Bed) -> None:
    job_id = bed.once()
    bed.party.scheduler.tick()
    bed.party.taken()

    with pytest.raises(JobBusy), bed.database.write() as session:
        bed.party.actions.delete(session, job_id)


def test_new_jobs_land_in_the_emptiest_slots_whoever_makes_them(bed: Bed) -> None:
    other = bed.another()
    with other.database.read() as session:
        other.placement.refresh(session, now=bed.clock.now())
    mine = [bed.recurring(f"a{n}") for n in range(3)]
    source_id = bed.source("b")
    with other.database.write() as session:
        theirs = other.actions.upsert(session, JobSpec(source_id=source_id, interval_minutes=60, schedule_enabled=True))

    times = [bed.job(job_id).next_run_at for job_id in (*mine, theirs.job.id)]
    assert len({slot_of(moment) for moment in times if moment}) == 4


def test_a_preview_says_what_the_rebalance_does(bed: Bed, clock: FakeClock) -> None:
    ids = [bed.recurring(f"s{n}", minutes=720) for n in range(30)]
    short = bed.recurring("short", minutes=5)
    clock.advance(7200)
    heap = clock.now() + timedelta(hours=6)
    for job_id in ids:
        bed.set_next_run(job_id, heap)
    with bed.database.read() as session:
        before = show_distribution(session, now=clock.now())
        preview = preview_rebalance(session, now=clock.now())
    done = rebalance(bed.database, now=clock.now())
    with bed.database.read() as session:
        after = show_distribution(session, now=clock.now())
        again = preview_rebalance(session, now=clock.now())

    assert done == preview
    assert len(done.moved) == 29
    assert after.distribution_score > 0.8
    assert {m.job_id for m in done.moved} | {s.job_id for s in done.skipped} == {*ids, short}
    assert after.distribution_score == pytest.approx(done.new_distribution_score)
    assert after.distribution_score > before.distribution_score
    for move_ in done.moved:
        assert bed.job(move_.job_id).next_run_at == move_.new_time
    assert again.moved == []
    moved = {m.job_id for m in done.moved}
    reasons = {skip.reason for skip in again.skipped if skip.job_id in moved}
    assert reasons <= {"placement_cooldown", "protection_window"}


def test_jobs_follow_their_source(bed: Bed, clock: FakeClock) -> None:
    scheduled = bed.recurring("a")
    pending, by_hand = bed.once("b"), bed.recurring("c")
    bed.party.act(by_hand, JobAction.PAUSE)
    for code in "abc":
        with bed.database.write() as session:
            source_jobs.disable_source(session, clock, code)
    clock.advance(10_000)
    assert bed.party.scheduler.tick().queued == {}
    assert [bed.job(j).state for j in (scheduled, pending, by_hand)] == ["paused", "pending", "paused"]

    for code in "abc":
        with bed.database.write() as session:
            source_jobs.enable_source(session, clock, bed.party.actions, code)
    assert [bed.job(j).state for j in (scheduled, pending, by_hand)] == ["scheduled", "pending", "paused"]
    assert set(bed.party.scheduler.tick().queued) >= {pending}
    with pytest.raises(SourceNotFound), bed.database.write() as session:
        source_jobs.disable_source(session, clock, "nope")


def test_every_enabled_source_gets_a_job(bed: Bed, clock: FakeClock) -> None:
    bed.recurring("has")
    bed.source("new")
    bed.source("off")
    bed.source("bad")
    with bed.database.write() as session:
        source_jobs.disable_source(session, clock, "off")
        find_source(session, "bad").config = {"scope": "nonsense"}
    sync = partial(
        source_jobs.sync_enabled_sources, bed.database.write, clock, bed.party.actions, interval_minutes=1440
    )
    report = sync()

    assert (report.sources_seen, report.sources_enabled, report.skipped_disabled) == (4, 3, 1)
    assert (report.created, report.already_has_job) == (1, 1)
    assert [error.partition(":")[0] for error in report.errors] == ["bad"]
    assert (sync().created, sync().already_has_job) == (0, 2)


def test_jobs_are_listed_filtered_and_sorted(bed: Bed, clock: FakeClock) -> None:
    for number, code in enumerate(("alpha", "beta", "gamma-x", "gammay")):
        clock.advance(1)
        bed.recurring(code) if number % 2 else bed.once(code)
    with bed.database.read() as session:
        newest, total = list_jobs(session, JobFilter(limit=2))
        pending, _ = list_jobs(session, JobFilter(states=("pending",), sort_by="source_name", descending=False))
        found, count = list_jobs(session, JobFilter(search="GAMMA-"))
        wild, _ = list_jobs(session, JobFilter(search="gamma_"))
        odd, _ = list_jobs(session, JobFilter(sort_by="nonsense; drop table", offset=3))
        counts = state_counts(session)

    assert total == 4
    assert [row.source.code for row in newest] == ["gammay", "gamma-x"]
    assert [row.source.code for row in pending] == ["alpha", "gamma-x"]
    assert ([row.source.code for row in found], count) == (["gamma-x"], 1)
    assert wild == []
    assert [row.source.code for row in odd] == ["alpha"]
    assert counts == {"pending": 2, "scheduled": 2}


def test_a_source_has_any_number_of_jobs_of_other_kinds_that_wait_for_their_date(bed: Bed, clock: FakeClock) -> None:
    source_id = bed.source()
    bed.upsert(source_id, interval_minutes=10_000, schedule_enabled=True)
    date = clock.now() + timedelta(days=30)
    with bed.database.write() as session:
        ids = [
            bed.party.actions.add(
                session, JobSpec(source_id=source_id), kind=kind, at=date + timedelta(seconds=number)
            ).id
            for number, kind in enumerate(("annual", "shard", "shard"))
        ]
        with pytest.raises(Invalid, match="kind"):
            bed.party.actions.add(session, JobSpec(source_id=source_id), kind="crawl", at=date)

    clock.advance(29 * 86400)
    assert not set(bed.party.scheduler.tick().queued) & set(ids)
    clock.advance(86400 + 5)
    bed.party.scheduler.tick()
    taken = [bed.party.taken().claim.job_id for _ in range(4)]
    assert [job_id for job_id in taken if job_id in ids] == ids


def test_an_unknown_job_is_not_found(bed: Bed) -> None:
    with pytest.raises(NotFound, match="Job not found"):
        bed.party.act(4711, JobAction.PAUSE)
