"""Builds the demo's archive: earlier crawls are imported, today's is crawled, every year becomes an edition.

sources    the town and the marsh station, with feeds and a place in the annual campaign
past       a WARC file for each earlier state, imported under the name of its year's annual job
today      the annual jobs of this year, run by a worker: crawl, feeds, index, search, changes, reports
editions   every year frozen, and compared with the previous one
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from holdfast import config
from holdfast.config import Settings, ZimitSettings
from holdfast.crawl.stopping import Stops
from holdfast.db.engine import Database
from holdfast.demo.past import NOTE, write_past
from holdfast.demo.server import DemoWeb
from holdfast.demo.tour import DemoTour, read_tour
from holdfast.editions import queries as editions
from holdfast.editions.campaign import CampaignRequest, job_name
from holdfast.editions.comparison import write_comparison
from holdfast.editions.freezing import freeze
from holdfast.editions.report import write_report
from holdfast.editions.scheduling import Campaigns
from holdfast.errors import Conflict, Unavailable
from holdfast.imports.importer import Importer
from holdfast.index.indexer import open_indexer
from holdfast.jobs.imports import ImportOptions
from holdfast.jobs.indexing import close_if_read
from holdfast.sources import registry
from holdfast.sources.queries import find_source, source_by_code
from holdfast.wiring import open_runtime
from holdfast.wiring.archive import open_archive
from holdfast.wiring.jobs import Jobs, open_jobs
from holdfast.worker.loop import BACKGROUND_TASKS, RUNNERS, RunnerTable, WorkerOptions, work

TOWN, MARSH = "kelpsound", "marsh"
CONTACT = "demo@kelpsound.example"
# When the earlier states are said to have been crawled. The last state is crawled when the demo runs.
_PAST = (
    (TOWN, 1, datetime(2023, 5, 16, 9, 12, tzinfo=UTC)),
    (TOWN, 2, datetime(2024, 6, 11, 10, 40, tzinfo=UTC)),
    (MARSH, 1, datetime(2025, 3, 4, 13, 20, tzinfo=UTC)),
    (TOWN, 3, datetime(2025, 9, 23, 8, 5, tzinfo=UTC)),
)
_DELAY_S = 0.02
_ABOUT = "Demonstration material: the dates of the captures before those that the demo made itself are invented."

Say = Callable[[str], None]


@contextmanager
def demo_archive(home: Path) -> Iterator[tuple[Settings, DemoWeb, DemoTour]]:
    """Build the demo's archive in a new data directory; serve its sites until the block ends.

    Yield the settings, the sites and what there is to see. For tests that need a realistic archive: no network, no
    service, about ten seconds.
    """
    with DemoWeb() as web, web.reachable():
        settings = config.load(home=home, contact=CONTACT)
        yield settings, web, build_archive(settings, web, Stops(), lambda _line: None)


def build_archive(settings: Settings, web: DemoWeb, stops: Stops, say: Say) -> DemoTour:
    """Fill a new data directory; return a tour of it. The sites must be reachable.

    Raise Conflict if the directory already has a demo, Unavailable if a stop was requested.
    """
    say(f"two invented websites are served on this machine: {web.town_url} and {web.marsh_url}")
    with open_jobs(settings) as jobs:
        _add_sources(jobs, web)
        say("importing earlier crawls; their dates are invented, as the sites are")
        _import_past(jobs, settings, web)
        years = _plan(jobs)
    say("crawling both sites as they are today, indexing, comparing")
    runners = RunnerTable(RUNNERS, BACKGROUND_TASKS)
    # Side by side: each crawl waits for its own site. Feeds come after them, for a crawl would make way for a poll.
    for kind in ("annual", "feed"):
        work(settings, WorkerOptions(once=True, concurrency=2, poll_s=0.2, kinds=(kind,)), stops, runners)
        if stops.count:
            raise Unavailable(f"stopped before the archive was whole; remove {settings.home} and begin again")
    say("freezing the editions")
    with open_jobs(settings) as jobs:
        _freeze(jobs, years)
    with open_archive(settings) as archive:
        return read_tour(archive, web.town_url)


def _add_sources(jobs: Jobs, web: DemoWeb) -> None:
    shared = {"delay_s": _DELAY_S, "max_depth": 5, "schedule_hint": "annual"}
    described: list[dict[str, Any]] = [
        {
            "code": TOWN,
            "name": "Town of Kelpsound",
            "base_url": web.town_url,
            "description": f"The website of an invented town, in English and French. {_ABOUT}",
            "config": {**shared, "seeds": [web.town_url, f"{web.town_url}fr/"], "feeds": True},
        },
        {
            "code": MARSH,
            "name": "Kelpsound Marsh Station",
            "base_url": web.marsh_url,
            "description": f"Field notes, species and tides from an invented marsh. {_ABOUT}",
            "config": {**shared, "seeds": [web.marsh_url]},
        },
    ]
    with jobs.database.write() as session:
        if source_by_code(session, TOWN) is not None:
            home = jobs.settings.home
            raise Conflict(f"{home} holds a demo already; serve it with: holdfast serve --home {home}")
        for content in described:
            registry.create(session, jobs.clock, registry.read_spec(content))


def _moments(now: datetime) -> list[tuple[str, int, datetime]]:
    """Return source, state and date of each earlier crawl, always in years before the current one."""
    ahead = max(0, _PAST[-1][2].year + 1 - now.year)
    return [(code, state, moment.replace(year=moment.year - ahead)) for code, state, moment in _PAST]


def _import_past(jobs: Jobs, settings: Settings, web: DemoWeb) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="holdfast-demo-past-") as folder,
        open_runtime(settings) as runtime,
        closing(Database(settings.database)) as database,
        open_indexer(runtime.raw_db, runtime.clock, settings.home) as indexer,
    ):
        for code, state, moment in _moments(jobs.clock.now()):
            content = web.town(state) if code == TOWN else web.marsh(is_later=False)
            origin = (web.town_url if code == TOWN else web.marsh_url).rstrip("/")
            file = write_past(Path(folder), content, origin=origin, moment=moment, clock=jobs.clock)
            request = ImportOptions(
                source=code,
                name=None,
                home=settings.home,
                config={"note": NOTE},
                # The name of an annual job: the edition of its year takes it in.
                job_name=job_name(code, moment.year),
            )
            importer = Importer(database, runtime.raw_db, runtime.clock, indexer, request)
            for done in importer.run([file]):
                assert done.error is None, done.error
            assert importer.group is not None
            close_if_read(database, runtime.clock, importer.group[0])


def _plan(jobs: Jobs) -> list[tuple[str, int]]:
    """Create the editions, past years' with the imports, this year's with a job that is due; return code and year."""
    campaigns = Campaigns(jobs.database, jobs.actions, jobs.clock, ZimitSettings())
    now = jobs.clock.now()
    years = [(code, moment.year) for code, _, moment in _moments(now)]
    for code, year in years:
        campaigns.salvage(CampaignRequest(year=year, sources=(code,), apply=True))
    campaigns.schedule(CampaignRequest(year=now.year, sources=(TOWN, MARSH), apply=True))
    return [*years, (TOWN, now.year), (MARSH, now.year)]


def _freeze(jobs: Jobs, years: list[tuple[str, int]]) -> None:
    database, home, clock = jobs.database, jobs.settings.home, jobs.clock
    before: dict[str, int] = {}
    for code, year in years:
        with database.read() as session:
            edition = editions.edition(session, source_id=find_source(session, code).id, year=year)
            assert edition is not None
            is_reported = edition.generated_at is not None
        if not is_reported:
            write_report(database, home, clock, edition.id)
        freeze(database, home, clock, edition.id)
        if code in before:
            write_comparison(database, home, clock, before[code], edition.id)
        before[code] = edition.id
