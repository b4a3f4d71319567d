"""`holdfast feed`: the feeds and sitemaps of sources that are asked for what is new. A worker does the asking."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any

import typer
from sqlalchemy.orm import Session

from holdfast import config
from holdfast.cli.formatting import fields, table, text
from holdfast.cli.lists import Only, as_object, demand_kind, iso, list_feeds, state_of
from holdfast.cli.parameters import AsJson, Home, command_group
from holdfast.clock import Clock
from holdfast.db.models import Feed, FeedItem, Source
from holdfast.feeds import queries, registry
from holdfast.jobs.administration.source_jobs import FeedsOff, feed_job, follow_feeds, make_feeds_due
from holdfast.sources.queries import find_source, source_by_id, sources
from holdfast.wiring.jobs import Jobs, open_jobs

app_command = command_group(
    "Feeds and sitemaps that are asked for what is new. Example: holdfast feed list --source hc"
)
app_command.command(name="list")(list_feeds)
_SHOWN_ITEMS = 20

FeedId = Annotated[int, typer.Argument(help="A feed's number.", metavar="FEED")]
Of = Annotated[str, typer.Option("--source", help="The source's code.", metavar="CODE")]


@app_command.command()
def show(feed: FeedId, json: AsJson = False, home: Home = None) -> None:
    """Show a feed, and the items that it named last: which execution took each of them.

    Example: holdfast feed show 3
    """
    with open_jobs(config.load(home=home)) as jobs, jobs.database.read() as session:
        row = registry.find(session, feed)
        owner = source_by_id(session, row.source_id)
        items = queries.items_of(session, source_id=row.source_id, feed_id=row.id, limit=_SHOWN_ITEMS)
    code = owner.code if owner is not None else ""
    if json:
        print(jsonlib.dumps({**as_object(row, code), "items": [_item(item) for item in items]}, ensure_ascii=False))
        return
    print(
        fields(
            [
                ("feed", row.id),
                ("url", row.url),
                ("source", code),
                ("kind", row.kind),
                ("origin", row.origin),
                ("state", state_of(row)),
                ("polled", row.last_polled_at),
                ("next poll", row.next_poll_at),
                ("items", row.last_item_count),
                ("errors in a row", row.consecutive_errors or None),
                ("error", row.last_error),
                ("disabled", row.disabled_at),
            ]
        )
    )
    if items:
        print(
            table(
                ("told", "found", "execution", "url"),
                [(item.told_at, item.found_at, item.execution_id, item.url) for item in items],
            )
        )


@app_command.command()
def add(
    url: Annotated[str, typer.Argument(help="Its address.", metavar="URL")],
    source: Of,
    kind: Annotated[str, typer.Option("--kind", help="feed or sitemap.")] = "feed",
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Let a source have a feed or a sitemap that is not found by itself.

    Example: holdfast feed add https://example.org/news.rss --source ex
    """
    demand_kind(kind)
    with open_jobs(config.load(home=home)) as jobs, jobs.database.write() as session:
        owner = find_source(session, source)
        limit = jobs.settings.feeds.per_source
        row = registry.add(session, jobs.clock, owner, url, kind=kind, limit=limit)
        follow_feeds(session, jobs.actions, owner, jobs.settings.feeds)
        # Asked after follow_feeds, which makes the job if the source polls its feeds.
        polled = feed_job(session, source_id=owner.id) is not None
    if json:
        print(jsonlib.dumps(as_object(row, source)))
        return
    print(f"feed {row.id}: {text(row.url)}")
    if not polled:
        print(f"it is not polled while the source's feeds are off: holdfast source edit {source} --set feeds=true")


@app_command.command()
def remove(feed: FeedId, json: AsJson = False, home: Home = None) -> None:
    """Take a feed from its source. It comes back if it is found again; disable one that is not wanted.

    Example: holdfast feed remove 3
    """
    _change(feed, registry.remove, "removed", json=json, home=home)


@app_command.command()
def enable(feed: FeedId, json: AsJson = False, home: Home = None) -> None:
    """Poll a feed again that was disabled, with nothing against it.

    Example: holdfast feed enable 3
    """
    _change(feed, registry.enable, "enabled", json=json, home=home)


@app_command.command()
def disable(feed: FeedId, json: AsJson = False, home: Home = None) -> None:
    """Poll a feed no more, until it is enabled.

    Example: holdfast feed disable 3
    """
    _change(feed, registry.disable, "disabled", json=json, home=home)


@app_command.command()
def poll(source: Only = None, json: AsJson = False, home: Home = None) -> None:
    """Have the feeds of a source, or of all, polled at once by the next worker.

    Those that are disabled, or told us to stay away, keep their time.

    Acts at once: feeds are only asked earlier than they would be.
    Example: holdfast feed poll --source ex && holdfast start-worker --once
    """
    _soon(source, search=False, json=json, home=home)


@app_command.command()
def discover(source: Only = None, json: AsJson = False, home: Home = None) -> None:
    """Have a source, or all, searched for feeds and sitemaps at once by the next worker.

    Its start page, the usual places and robots.txt are looked at; what names nothing is not kept.

    Acts at once: feeds are only looked for earlier than they would be.
    Example: holdfast feed discover --source ex
    """
    _soon(source, search=True, json=json, home=home)


def _change(feed_id: int, action: Callable[[Session, Clock, int], Feed], word: str, *, json: bool, home: Home) -> None:
    with open_jobs(config.load(home=home)) as jobs, jobs.database.write() as session:
        row = action(session, jobs.clock, feed_id)
    if json:
        print(jsonlib.dumps({"feed": row.id, "url": row.url, word: True}))
    else:
        print(f"feed {row.id}: {word}: {text(row.url)}")


def _soon(code: str | None, *, search: bool, json: bool, home: Home) -> None:
    with open_jobs(config.load(home=home)) as jobs:
        with jobs.database.read() as session:
            # Of all sources only those whose feeds are on; for one that is named a hint is printed.
            chosen = [find_source(session, code)] if code is not None else sources(session, enabled=True, limit=100_000)
        asked = {one.code: _ask(jobs, one, search=search) for one in chosen if code or one.config.get("feeds")}
    if json:
        print(jsonlib.dumps({"sources": asked}))
        return
    for name, state in asked.items():
        if state is None:
            print(f"{name}: its feeds are off; turn them on with: holdfast source edit {name} --set feeds=true")
        else:
            print(f"{name}: {state}; a worker does it, for example: holdfast start-worker --once")
    if not asked:
        print("no source has its feeds on; turn them on with: holdfast source edit CODE --set feeds=true")


def _ask(jobs: Jobs, source: Source, *, search: bool) -> str | None:
    """Make a source's feeds due, or its search, and its job too; return the job's state, None if its feeds are off."""
    with suppress(FeedsOff), jobs.database.write() as session:
        # Read again in the transaction that changes it: the list was made in another.
        fresh = find_source(session, source.code)
        return make_feeds_due(session, jobs.clock, jobs.actions, fresh, jobs.settings.feeds, search=search)
    return None


def _item(item: FeedItem) -> dict[str, Any]:
    return {
        "url": item.url,
        "told_at": iso(item.told_at),
        "found_at": iso(item.found_at),
        "execution": item.execution_id,
    }
