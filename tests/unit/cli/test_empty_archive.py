"""Commands typed at a data directory where there is nothing yet: each says what is missing, and what to do next."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.typed import Typist


@pytest.fixture
def typed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Typist:
    return Typist(tmp_path / "home", capsys)


@pytest.mark.parametrize(
    "line",
    [
        "search flu --source",
        "search --source",
        "changes list --source",
        "compute-changes --source",
        "export snapshots --source",
        "export changes --source",
        "export cdxj --source",
        "feed list --source",
        "feed poll --source",
        "feed discover --source",
        "feed add https://example.org/a.rss --source",
        "index --source",
        "index --no-search --source",
        "job list --source",
        "job create --once --source",
        "reset-retry-count --limit 5 --reason why --source",
        "storage report --source",
        "warc list --source",
        "archive rebuild-pages --source",
        "archive backfill-groups --source",
        "archive refresh-metadata --source",
        "edition list --sources",
        "edition report --year 2026 --sources",
        "tool canary --source",
        "source show",
        "source edit --set delay_s=2",
        "source export",
        "watch reconcile-options --year 2026 --sources",
    ],
)
def test_a_source_that_there_is_not_is_told(typed: Typist, line: str) -> None:
    ended = typed(f"{line} no-such")

    assert (ended.code, ended.out) == (1, "")
    assert ended.err == "holdfast: there is no source 'no-such'; see them with: holdfast source list\n"


def test_feeds_that_are_asked_for_by_a_word_and_are_not_there_are_no_reason_to_turn_feeds_on(typed: Typist) -> None:
    typed("source create ex --seed https://example.org/ --set feeds=true")
    none_yet = typed("feed list").out
    typed("feed add https://example.org/news.rss --source ex")

    assert none_yet.startswith("no feeds yet; they are discovered for sources with feeds on")
    assert typed("feed list --disabled").out == "no such feeds; list all with: holdfast feed list\n"
    assert typed("feed list --kind sitemap").out == "no such feeds; list all with: holdfast feed list\n"
    assert "https://example.org/news.rss" in typed("feed list --enabled --kind feed").out
    wrong = typed("feed list --kind rss")
    assert (wrong.code, "'rss' is not one of feed, sitemap" in wrong.err) == (2, True)


@pytest.mark.parametrize(
    "line",
    [
        "status",
        "search",
        "page search x",
        "changes list",
        "source list",
        "job list",
        "scheduler metrics",
        "edition list",
        "edition status --year 2026",
        "feed list",
        "feed poll",
        "index",
        "index --status",
        "search-index status",
        "warc list",
        "storage report",
        "watch status",
        "audit",
        "problem-report list",
        "archive rebuild-pages",
    ],
)
def test_where_there_is_nothing_json_is_one_object_and_people_read_a_sentence(typed: Typist, line: str) -> None:
    told = typed(f"{line} --json")
    shown = typed(line)

    assert (told.code, told.err, isinstance(told.object, dict)) == (0, "", True)
    assert (shown.code, shown.err, len(shown.out.strip()) > 0) == (0, "", True)
