"""`holdfast feed`: the feeds and sitemaps of sources. A worker polls them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Annotated

import typer
from sqlalchemy.orm import Session

from holdfast.cli.formatting import text
from holdfast.cli.lists import FEED_KINDS, feed_list
from holdfast.cli.parameters import OfSource, SourceCode, command_group, one_of
from holdfast.cli.resource import Done, Reading, command
from holdfast.clock import Clock
from holdfast.db.models import Feed, Source
from holdfast.feeds import queries, registry
from holdfast.feeds.records import FeedDetail, feed_detail, feed_record
from holdfast.jobs.administration.source_jobs import FeedsOff, follow_feeds, make_feeds_due
from holdfast.jobs.kinds import FEED
from holdfast.jobs.store import crawl_job
from holdfast.sources.queries import find_source, source_by_id, sources
from holdfast.wiring.jobs import Jobs, open_jobs

app_command = command_group("Feeds and sitemaps that are polled for new pages. Example: holdfast feed list --source hc")
app_command.registered_commands += feed_list.registered_commands
_job_command = partial(command, app_command, opened=open_jobs)
_SHOWN_ITEMS = 20

FeedId = Annotated[int, typer.Argument(help="A feed's number.", metavar="FEED")]


@_job_command(example="feed show 3")
def show(session: Reading, feed: FeedId) -> FeedDetail:
    """Show a feed and its newest items, with the execution that requested each of them."""
    row = registry.find(session, feed)
    owner = source_by_id(session, row.source_id)
    items = queries.items_of(session, source_id=row.source_id, feed_id=row.id, limit=_SHOWN_ITEMS)
    return feed_detail(row, owner.code if owner is not None else "", items)


@_job_command(example="feed add https://example.org/news.rss --source ex")
def add(
    jobs: Jobs,
    url: Annotated[str, typer.Argument(help="Its address.", metavar="URL")],
    source: SourceCode,
    kind: Annotated[str, typer.Option(help="feed or sitemap.")] = "feed",
) -> Done:
    """Add a feed or a sitemap that is not discovered automatically."""
    one_of(kind, FEED_KINDS, "--kind")
    settings = jobs.settings.feeds
    with jobs.database.write() as session:
        owner = find_source(session, source)
        row = registry.add(session, jobs.clock, owner, url, kind=kind, limit=jobs.settings.timings.feeds_per_source)
        follow_feeds(session, jobs.actions, owner, settings)
        # Read this after follow_feeds, which creates the job if the source polls its feeds.
        is_polled = crawl_job(session, source_id=owner.id, kind=FEED) is not None
    off = "" if is_polled else f"\nit is not polled while the source's feeds are off: {_turn_on(source)}"
    return Done(feed_record(row, source), f"feed {row.id}: {text(row.url)}{off}")


def _turn_on(code: str) -> str:
    return f"holdfast source edit {code} --set feeds=true"


def _change(jobs: Jobs, action: Callable[[Session, Clock, int], Feed], word: str, feed: FeedId) -> Done:
    with jobs.database.write() as session:
        row = action(session, jobs.clock, feed)
    return Done({"feed": row.id, "url": row.url, word: True}, f"feed {row.id}: {word}: {text(row.url)}")


for _action, _about in (
    (registry.remove, "Remove a feed. It comes back if it is discovered again; disable it to prevent that."),
    (registry.enable, "Enable a disabled feed and clear its errors."),
    (registry.disable, "Stop polling a feed until it is enabled."),
):
    _name = _action.__name__
    _job_command(_name, about=_about, example=f"feed {_name} 3", given=(_action, f"{_name}d"))(_change)


@_job_command(example="feed poll --source ex && holdfast start-worker --once")
def poll(jobs: Jobs, source: OfSource = None) -> Done:
    """Let the next worker poll the feeds of a source, or of all sources, now.

    Disabled feeds keep their schedule, as do feeds whose server named a time to return.

    Acts at once: feeds are only polled earlier than planned.
    """
    return _make_due(jobs, source, search=False)


@_job_command(example="feed discover --source ex")
def discover(jobs: Jobs, source: OfSource = None) -> Done:
    """Let the next worker search a source, or all sources, for feeds and sitemaps now.

    It reads the start page, the usual locations and robots.txt; pages without feeds are not stored.

    Acts at once: feeds are only searched for earlier than planned.
    """
    return _make_due(jobs, source, search=True)


def _make_due(jobs: Jobs, code: str | None, *, search: bool) -> Done:
    with jobs.database.read() as session:
        # Without a code, use only sources with enabled feeds; for a named one print a hint.
        chosen = [find_source(session, code)] if code is not None else sources(session, enabled=True, limit=100_000)
    states = {one.code: _job_state(jobs, one, search=search) for one in chosen if code or one.config.get("feeds")}
    lines = [
        f"{name}: its feeds are off; turn them on with: {_turn_on(name)}"
        if state is None
        else f"{name}: {state}; a worker does it, for example: holdfast start-worker --once"
        for name, state in states.items()
    ]
    return Done({"sources": states}, lines or [f"no source has its feeds on; turn them on with: {_turn_on('CODE')}"])


def _job_state(jobs: Jobs, source: Source, *, search: bool) -> str | None:
    """Make a source's feeds or its feed search due, and its job too; return the job's state, None if feeds are off."""
    with suppress(FeedsOff), jobs.database.write() as session:
        # Read it again in the transaction that changes it: the list was read in another one.
        fresh = find_source(session, source.code)
        return make_feeds_due(session, jobs.clock, jobs.actions, fresh, jobs.settings.feeds, search=search)
    return None
