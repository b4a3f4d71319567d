"""`holdfast feed`, command by command, on a data directory of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from holdfast import config
from holdfast.cli.feed import app_command
from holdfast.db.models import Feed, FeedItem
from holdfast.errors import HoldfastError
from holdfast.sources import registry
from holdfast.wiring.jobs import open_jobs


class Shell:
    """Runs `holdfast feed` here."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def say(self, *words: str) -> str:
        """Return what a command prints; what it raises is raised."""
        done = CliRunner().invoke(app_command, [*words, "--home", str(self.home)], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    def ask(self, *words: str) -> Any:
        """Return the object that a command prints."""
        return json.loads(self.say(*words, "--json"))


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    with open_jobs(config.load(home=tmp_path)) as jobs, jobs.database.write() as session:
        for code, feeds in (("ex", True), ("off", False)):
            content = {"code": code, "config": {"seeds": [f"https://{code}.example/"], "feeds": feeds}}
            registry.create(session, jobs.clock, registry.read_spec(content))
    return Shell(tmp_path)


def test_feeds_are_added_listed_shown_and_removed(shell: Shell) -> None:
    made = shell.ask("add", "https://ex.example/news.rss", "--source", "ex")
    assert (made["kind"], made["origin"], made["state"]) == ("feed", "configured", "new")
    assert [row["id"] for row in shell.ask("list", "--source", "ex")["feeds"]] == [made["id"]]
    assert shell.ask("list", "--source", "off")["total"] == 0

    assert shell.ask("show", str(made["id"]))["items"] == []
    assert "news.rss" in shell.say("list")
    assert shell.ask("remove", str(made["id"]))["removed"] is True

    assert shell.ask("list")["total"] == 0
    with pytest.raises(HoldfastError, match="there is no feed"):
        shell.say("show", str(made["id"]))


def test_a_feed_is_disabled_and_enabled_by_hand(shell: Shell) -> None:
    number = str(shell.ask("add", "https://ex.example/f", "--source", "ex")["id"])

    shell.say("disable", number)
    assert shell.ask("list", "--disabled")["feeds"][0]["state"] == "disabled"
    assert shell.ask("list", "--enabled")["total"] == 0
    shell.say("enable", number)

    assert shell.ask("show", number)["state"] == "new"


def test_a_feed_shows_its_items_and_who_took_them(shell: Shell) -> None:
    number = shell.ask("add", "https://ex.example/f", "--source", "ex")["id"]
    with open_jobs(config.load(home=shell.home)) as jobs, jobs.database.write() as session:
        feed = session.get_one(Feed, number)
        feed.last_error_type, feed.consecutive_errors, feed.last_error = "network", 2, "timeout"
        session.add(FeedItem(source_id=feed.source_id, feed_id=number, url_hash=1, url="https://ex.example/1",
                             found_at=jobs.clock.now(), execution_id=9))  # fmt: skip

    assert [item["execution"] for item in shell.ask("show", str(number))["items"]] == [9]
    said = shell.say("show", str(number))
    assert "troubled" in said
    assert "https://ex.example/1" in said


def test_a_poll_by_hand_makes_the_job_due(shell: Shell) -> None:
    assert shell.ask("poll", "--source", "ex")["sources"]["ex"] in ("pending", "scheduled")
    assert shell.ask("poll", "--source", "off")["sources"] == {"off": None}
    assert shell.ask("discover")["sources"].keys() == {"ex"}
    assert "its feeds are off" in shell.say("poll", "--source", "off")


def test_a_feed_of_a_source_whose_feeds_are_off_is_told_to_wait(shell: Shell) -> None:
    assert "not polled while" in shell.say("add", "https://off.example/f", "--source", "off")
    assert "not polled while" not in shell.say("add", "https://ex.example/f", "--source", "ex")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("add", "ftp://x/", "--source", "ex"), "ftp"),
        (("add", "https://ex.example/f", "--source", "nobody"), "there is no source"),
        (("enable", "99"), "there is no feed 99"),
    ],
)
def test_what_cannot_be_done_is_said(shell: Shell, words: tuple[str, ...], message: str) -> None:
    with pytest.raises(HoldfastError, match=message):
        shell.say(*words)
