"""`holdfast frontier` and `holdfast domain` as people type them: the same rules as the routes have."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import config
from holdfast.types import CircuitState, DomainUpdate, FoundUrl, RobotsAnswer, RobotsRecord, UrlKind
from holdfast.urls import parse
from holdfast.wiring import Runtime, open_runtime
from tests.typed import Typist

PLAN = json.dumps({"seeds": ["https://ex.example/"], "contact": "me@example.org", "scope": "host"})


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A data directory with a crawl that runs, without its processes."""
    with open_runtime(config.load(home=tmp_path)) as runtime:
        with runtime.raw_db.write() as tx:
            tx.execute(
                "INSERT INTO sources (code, name, base_url, enabled, config, created_at, updated_at)"
                " VALUES ('ex', 'Ex', 'https://ex.example/', true, '{}', 1, 1)"
            )
            tx.execute(
                "INSERT INTO jobs (source_id, kind, fingerprint, config, created_at) VALUES (1, 'adhoc', 'f', '{}', 1)"
            )
            tx.execute(
                "INSERT INTO executions (job_id, number, state, config, output_dir, created_at, started_at,"
                " run_seconds) VALUES (1, 1, 'running', ?, '', 1, 1, 0)",
                (PLAN,),
            )
        _add(runtime, *(f"https://ex.example/{number}" for number in range(5)))
    return tmp_path


def _add(runtime: Runtime, *urls: str) -> None:
    found = [parse(url) for url in urls]
    runtime.frontier.add(1, [FoundUrl(u.fetch, u.hash64, u.domain, UrlKind.PAGE, 1, 1) for u in found])


@pytest.fixture
def typed(home: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Any]:
    typist = Typist(home, capsys)

    def typed(*words: str) -> Any:
        code, out, err = typist(*words, "--json")
        assert code == 0, err
        return json.loads(out)

    return typed  # type: ignore[return-value]


def test_an_address_is_added_and_listed(typed: Any) -> None:
    added = typed("frontier", "add", "https://ex.example/new", "https://ex.example/0", "--priority", "3")
    first, second, *_ = typed("frontier", "urls", "--status", "pending")["urls"]
    found = typed("frontier", "urls", "--search", "new", "--domain", "ex.example")["urls"]

    assert (added["added"], added["places"][0]["raised"], added["places"][0]["as_what"]) == (1, 1, "joined")
    assert {row["url"] for row in (first, second)} == {"https://ex.example/new", "https://ex.example/0"}
    assert {(row["priority"], row["status"]) for row in (first, second)} == {(3, "pending")}
    assert [row["url"] for row in found] == ["https://ex.example/new"]


def test_a_domain_is_slowed_paused_resumed_and_shown(typed: Any) -> None:
    assert typed("domain", "set", "ex.example", "--delay", "5")["delay_s"] == 5.0
    assert typed("domain", "pause", "ex.example")["paused_at"] is not None
    assert [row["domain"] for row in typed("domain", "list", "--state", "paused")["domains"]] == ["ex.example"]
    shown = typed("domain", "show", "https://ex.example/")
    assert (shown["state"], shown["queue"]["open"], shown["page_count"]) == ("paused", 5, 5)
    assert typed("domain", "resume", "ex.example")["paused_at"] is None
    assert typed("domain", "set", "ex.example", "--delay", "default")["delay_s"] is None
    assert typed("domain", "set", "ex.example", "--forbid")["is_allowed"] is False


def test_a_purge_and_a_clearing_only_count_without_apply(typed: Any) -> None:
    counted = typed("domain", "purge", "ex.example")
    purged = typed("domain", "purge", "ex.example", "--execution", "1", "--apply")

    assert (counted["removed"], counted["queued"], counted["executions"]) == (0, 5, [1])
    assert purged["removed"] == 5
    assert typed("frontier", "clear", "1") == {"execution": 1, "removed": 0, "queued": 0, "applied": False}
    typed("frontier", "add", "https://ex.example/x")
    assert typed("frontier", "clear", "1", "--apply")["removed"] == 1
    actions = [event["action"] for event in typed("audit", "--limit", "20")["events"]]
    assert {"domain.purged", "frontier.cleared", "frontier.added"} <= set(actions)


def test_what_robots_txt_says_is_told_from_what_was_read(typed: Any, home: Path) -> None:
    with open_runtime(config.load(home=home)) as runtime:
        now = runtime.clock.now()
        [lease] = runtime.frontier.lease(1, 7, domains=1, pages=1)
        state = RobotsRecord(origin="https://ex.example", answer=RobotsAnswer.RULES, fetched_at=now, checked_at=now,
                            failures=0, status=200, body=b"User-agent: *\nDisallow: /no\n\x1b[2J")  # fmt: skip
        update = DomainUpdate(domain_id=lease.domain_id, token=lease.token, next_allowed_at=now,
                              circuit=CircuitState(), robots=(state,))  # fmt: skip
        runtime.frontier.release(1, 7, [update])

    no, yes = (typed("domain", "robots", f"https://ex.example/{path}") for path in ("no/x", "yes"))

    assert (no["allowed"], no["line"], yes["allowed"]) == (False, 2, True)
    assert typed("domain", "refresh", "ex.example") == {"domain": "ex.example"}


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [(("domain", "set", "ex.example", "--delay", "0.5"), 1, "between 1 s and 3600 s"),
     (("domain", "set", "ex.example"), 1, "nothing is to be changed"),
     (("domain", "set", "ex.example", "--delay", "soon"), 2, "seconds"),
     (("domain", "show", "nowhere.example"), 1, "no crawl has met"),
     (("frontier", "add", "https://else.example/", "--source", "ex"), 1, "not in the scope"),
     (("frontier", "add", "mailto:x@y"), 1, "urls[0]"), (("frontier", "urls", "--execution", "9"), 1, "no execution 9"),
     (("frontier", "seed"), 2, "source")],
)  # fmt: skip
def test_what_cannot_be_done_is_refused_with_a_sentence(
    home: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], code: int, said: str
) -> None:
    ended, _, err = Typist(home, capsys)(*words)

    assert (ended, said in err) == (code, True), err


def test_of_several_runs_each_is_paused_that_can_be_and_one_that_is_not_there_is_told(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    typist = Typist(home, capsys)

    code, out, err = typist("pause", "99", "1", "98")
    alone, _, missing = typist("pause", "99")
    none, said, told = typist("resume", "98", "99", "--json")

    assert (code, "execution 1 is paused" in out) == (1, True)
    assert [f"there is no execution {number}" in err for number in (98, 99)] == [True, True]
    assert (alone != 0, "there is no execution 99" in missing) == (True, True)
    assert (none, json.loads(said)["executions"], len(json.loads(said)["refused"]), told) == (1, [], 2, "")


def test_runs_are_paused_by_name_or_all_and_a_name_that_was_refused_is_no_success(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    typist = Typist(home, capsys)
    named = typist("pause 1 99")
    none_left, paused_all = typist("pause"), typist("resume 1 99 --json")
    with open_runtime(config.load(home=home)) as runtime, runtime.raw_db.write() as tx:
        tx.execute("UPDATE jobs SET kind = 'crawl', state = 'running' WHERE id = 1")
        tx.execute("UPDATE executions SET paused_at = 1 WHERE id = 1")
    of_the_job = typist("job resume 1")

    assert (named.code, "execution 1 is paused" in named.out, "no execution 99" in named.err) == (1, True, True)
    assert (none_left.code, "no execution runs that is not paused already" in none_left.err) == (1, True)
    assert (paused_all.code, json.loads(paused_all.out)["executions"][0]["paused_at"]) == (1, None)
    assert (of_the_job.code, "holdfast resume 1" in of_the_job.err) == (1, True)
