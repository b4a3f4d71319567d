"""The command line as its user meets it: what each command says, and with which exit code it refuses."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from holdfast import log
from holdfast.cli import runner
from holdfast.cli.catalogue import COMMANDS
from holdfast.cli.main import load
from tests import forked, patience
from tests.flow.crawler import FAST, Crawler
from tests.flow.faults.bed import rows
from tests.site import Site, judge
from tests.site.book import html, links
from tests.site.log import Entry


@dataclass
class World:
    """A crawl with seeds from a file and from standard input, robots.txt ignored, into a folder of its own."""

    crawler: Crawler
    ended: subprocess.CompletedProcess[str]
    summary: dict[str, Any]
    log: list[Entry]
    output: Path
    site: Site


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("commands")
    crawler = Crawler(folder / "home")
    with Site.start(hosts=2, pages=6, robots={0: "disallow", 1: "allow"}) as site:
        site.serve("/formula", html("=cmd|' /C calc'!A0", links(["/a/p1.html"])))
        seeds = folder / "seeds.txt"
        seeds.write_text(
            f"\ufeff# the first host\n{site.url(0, '/formula')}\n\nfile:///etc/passwd\nno address at all\n"
        )
        typed = f"{site.url(1)}\nhttp://10.0.0.1/\n"
        command = crawler.command(
            "crawl", str(seeds), "-", "--output", str(folder / "kept"), "--robots", "ignore", "--reason",
            "our own site", "--delay", "0", "--allow-network", "127.0.0.0/8", "--json",
        )  # fmt: skip
        environment = {**os.environ, **FAST}
        ended = forked.run(
            command,
            input=typed,
            capture_output=True,
            text=True,
            env=environment,
            timeout=patience.deadline(60),
            check=False,
        )
        log = site.settled()
    return World(crawler, ended, json.loads(ended.stdout or "{}"), log, folder / "kept", site)


@pytest.fixture(autouse=True)
def _log_as_before() -> Iterator[None]:
    """Commands that run in this process set where its log goes."""
    with log.captured():
        yield


def _said(world: World, capsys: pytest.CaptureFixture[str], command: str, *arguments: str) -> str:
    """Return what a command prints when it runs in this process, as `holdfast` runs it; it must succeed."""
    assert _code(command, *arguments, "--home", str(world.crawler.home)) == 0
    return capsys.readouterr().out


def _code(command: str, *arguments: str) -> int:
    """Run a command in this process, as `holdfast` does, and return its exit code."""
    with pytest.raises(SystemExit) as ending:
        runner.run(load(COMMANDS[command].module), "holdfast", arguments)
    return int(ending.value.code or 0)


def test_seeds_come_from_files_and_standard_input_and_bad_lines_are_named(world: World) -> None:
    assert world.ended.returncode == 0
    assert world.summary["state"] == "completed"
    assert {entry.host for entry in world.log} == set(world.site.hosts)
    assert "seeds.txt, line 4: cannot use 'file:///etc/passwd'" in world.ended.stderr
    assert "seeds.txt, line 5:" in world.ended.stderr
    assert "standard input, line 2:" in world.ended.stderr
    assert "it is not public" in world.ended.stderr


def test_a_crawl_speaks_in_sentences_and_leaves_the_log_to_its_processes(world: World) -> None:
    assert [line for line in world.ended.stderr.splitlines() if line.startswith("{")] == []
    written = "".join(path.read_text("utf-8") for path in world.output.rglob("*.log"))
    assert "guard.networks_allowed" in written


def test_warc_files_lie_where_they_were_asked_for(world: World) -> None:
    assert {Path(path).parent for path in world.summary["warc_files"]} == {world.output}
    assert (world.output / "manifest.json").exists()


def test_ignoring_robots_is_audited_with_its_reason(world: World) -> None:
    [(action, subject, detail)] = rows(world.crawler, "SELECT action, subject, detail FROM audit_events")

    assert (action, subject) == ("robots.ignored", "execution 1")
    assert "our own site" in detail
    assert world.crawler.outcomes()[world.site.url(0, "/a/p1.html")] == ("success", "ok")
    assert "/robots.txt" in {entry.path for entry in world.log}, "it is read and archived all the same"


def test_the_report_counts_lists_and_protects(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    counted = json.loads(_said(world, capsys, "report", "--json"))
    table = list(csv.DictReader(io.StringIO(_said(world, capsys, "report", "1", "--csv"))))

    assert counted["total"] == sum(counted["outcomes"].values()) == len(table)
    assert {"excluded", "reasons", "statuses", "types", "domains", "depths", "bytes"} <= set(counted)
    [formula] = [row for row in table if row["url"].endswith("/formula")]
    assert formula["title"].startswith("'=cmd"), "no spreadsheet may take a title for a formula (H05)"
    assert "by outcome" in _said(world, capsys, "report")


def test_report_lists_failed_urls_of_all_runs(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    def listed(*options: str) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO(_said(world, capsys, "report", "--all-runs", "--csv", *options))))

    whole, failed = listed(), listed("--failed")
    [source] = {row[0] for row in rows(world.crawler, "SELECT code FROM sources")}

    assert {row["execution"] for row in whole} == {"1"}
    words = ("failed", "timeout", "blocked_4xx", "blocked_5xx")
    assert failed == [row for row in whole if row["outcome"] in words]
    assert listed("--failed", "--source", source) == failed
    assert listed("--source", "another") == []
    for reason in {row["reason"] for row in failed}:
        assert listed("--failed", "--reason", reason) == [row for row in failed if row["reason"] == reason]


def test_status_and_frontier_tell_how_it_stands(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    [shown] = json.loads(_said(world, capsys, "status", "--json"))["executions"]
    figures = json.loads(_said(world, capsys, "frontier", "stats", "1", "--json"))

    assert (shown["execution"], shown["state"], shown["queue"]) == (1, "completed", 0)
    assert shown["pages"] == world.summary["pages"]
    assert figures["pending"] == figures["leased_domains"] == 0
    assert figures["completed"] + figures["failed"] + figures["ruled_out"] == len(world.crawler.outcomes())
    assert json.loads(_said(world, capsys, "frontier", "list", "--json")) == {"urls": []}
    assert json.loads(_said(world, capsys, "frontier", "recover", "--json"))["recovered"] == 0


@pytest.mark.parametrize(
    ("command", "words"),
    [("report", ()), ("status", ()), ("stop", ()), ("frontier", ("stats",)), ("frontier", ("list",))],
)
def test_what_is_not_there_is_said_in_one_line(
    world: World, command: str, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert _code(command, *words, "99", "--home", str(world.crawler.home)) == 1
    said = capsys.readouterr().err
    assert "execution 99" in said
    assert len(said.splitlines()) == 1


def test_settings_are_shown_and_a_bad_one_is_named(world: World) -> None:
    shown = json.loads(world.crawler.run("settings", "--json").stdout)
    broken = Crawler(world.crawler.home, environment={"HOLDFAST_FETCH_DEADLINE_S": "soon"}).run("settings")

    assert shown["HOLDFAST_FETCH_DEADLINE_S"] == float(FAST["HOLDFAST_FETCH_DEADLINE_S"])
    assert shown["HOLDFAST_HOME"] == str(world.crawler.home)
    assert broken.returncode == 1
    assert "HOLDFAST_FETCH_DEADLINE_S" in broken.stderr


def test_verify_finds_damage_and_says_where(world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = Path(world.summary["warc_files"][0])
    damaged = tmp_path / whole.name
    data = bytearray(whole.read_bytes())
    data[len(data) // 2] ^= 0xFF
    damaged.write_bytes(data)

    assert _code("verify", str(world.output)) == 0
    assert "all is well" in capsys.readouterr().out
    assert _code("verify", str(damaged), "--json") == 1
    assert json.loads(capsys.readouterr().out)["files"][0]["problems"]
    assert _code("verify", str(tmp_path / "nowhere")) == 1


def test_url_explains_and_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    assert _code("url", "HTTP://Example.ORG:80/a/../b?utm_source=x&b=2&a=1#top", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["normalised"] == "http://example.org/b?a=1&b=2"
    assert set(told) == {"url", "normalised", "key", "url_hash", "group", "priority"}
    assert _code("url", "http://user:secret@example.org/") == 1
    assert "secret" not in capsys.readouterr().err


def test_robots_reads_a_file_for_any_agent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "robots.txt"
    file.write_text(
        "User-agent: other\nDisallow: /\n\nUser-agent: *\nCrawl-delay: 3\nDisallow: /private/\nSitemap: /s.xml\n"
    )
    address = "https://example.org/private/x"

    assert _code("robots", address, "--file", str(file), "--json") == 0
    assert json.loads(capsys.readouterr().out) == {
        "url": address, "allowed": False, "rule": "Disallow: /private/", "line": 6, "crawl_delay": 3.0,
        "sitemaps": ["/s.xml"],
    }  # fmt: skip
    assert _code("robots", "https://example.org/", "--file", str(file), "--agent", "other") == 0
    assert "line 2" in capsys.readouterr().out
    assert _code("robots", address, "--file", str(tmp_path / "none")) == 1


def test_robots_asks_the_site_and_a_dry_run_explains_and_stores_nothing(crawler: Crawler) -> None:
    with Site.start(hosts=1, pages=6, robots={0: "private"}) as site:
        site.serve("/start", html("start", links(["/a/p1.html", "/private/x", "https://example.org/"])))
        allow = ("--allow-network", "127.0.0.0/8")
        asked = json.loads(crawler.run("robots", site.url(0, "/private/x"), *allow, "--json").stdout)
        dry = crawler.run("crawl", site.url(0, "/start"), "--dry-run", "--json", *allow)
        log = site.settled()

    assert (asked["allowed"], asked["rule"], asked["line"]) == (False, "Disallow: /private/", 2)
    steps = {step["url"].rpartition(str(site.port))[2]: step["why"] for step in json.loads(dry.stdout)["first"]}
    assert "seed" in steps["/start"]
    assert "line 2: Disallow: /private/" in steps["/private/x"]
    assert "allows" in steps["/a/p1.html"]
    assert json.loads(dry.stdout)["excluded"] == [{"rule": "scope:host", "host": "example.org", "count": 1}]
    assert [entry.path for entry in log] == ["/robots.txt", "/robots.txt", "/start"]
    assert judge(log[1:], delay_s=1.0) == [], "within one command it is as polite as a crawl"
    assert not crawler.home.exists()
    assert dry.stderr == "", "a dry run has nothing to say beside its answer"


@pytest.mark.parametrize(
    ("answer", "said", "told"),
    [
        ("500", "robots.txt cannot be read: status 500", "/robots.txt answers 500"),
        ("reset", "robots.txt cannot be read: no answer", "/robots.txt does not respond"),
        ("404", "there is no robots.txt: status 404", ""),
    ],
)
def test_robots_says_what_the_file_answered_where_no_line_decides(
    crawler: Crawler, answer: str, said: str, told: str
) -> None:
    with Site.start(hosts=1, pages=1, robots={0: answer}) as site:
        asked = crawler.run("robots", site.url(0, "/x"), "--allow-network", "127.0.0.0/8")

    assert said in asked.stdout
    assert told in asked.stderr


_SEED = "https://example.org/"


@pytest.mark.parametrize(
    "arguments",
    [
        ("--max-pages", "0"), ("--max-pages", "many"), ("--max-bytes", "much"), ("--max-bytes", "-5"),
        ("--max-time", "soon"), ("--delay", "-1"), ("--depth", "-2"), ("--scope", "galaxy"), ("--robots", "maybe"),
        ("--header", "no colon"),
        ("--allow-network", "10.0.0.1/8"), ("--workers", "0"), ("--no-such-option",),
    ],
)  # fmt: skip
def test_options_that_do_not_parse_are_exit_code_two(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert _code("crawl", _SEED, "--contact", "a@example.org", *arguments) == 2
    assert arguments[0] in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--exclude", "(unclosed"), "(unclosed"),
        (("--include", "(?=ahead)"), "look-around"),
        (("--robots", "ignore"), "--reason"),
        (("--robots", "ignore", "--reason", "  "), "--reason"),
        (("--contact", "nobody"), "'nobody' cannot be the contact"),
        (("--contact", "ftp://example.org/"), "cannot be the contact"),
        (("--contact", "日本@example.jp"), "a header holds ASCII letters only"),
        (("--cookie-file", "/nonexistent/cookies.txt"), "cookies.txt"),
        (("--header", "Host: example.com"), "'Host'"),
        (("--seeds", "/nonexistent/seeds.txt"), "seeds.txt"),
    ],
)
def test_what_cannot_be_done_is_exit_code_one_with_the_reason(
    arguments: tuple[str, ...], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"

    assert _code("crawl", _SEED, "--contact", "a@example.org", *arguments, "--home", str(home)) == 1
    assert words in capsys.readouterr().err
    assert not home.exists()


_NEVER = [
    ("http://169.254.169.254/latest/", "it is not public"), ("http://[fd00:ec2::254]/", "it is not public"),
    ("http://168.63.129.16/", "it is not public"), ("http://192.0.0.192/", "it is not public"),
    ("http://100.100.100.200/", "it is not public"), ("http://127.0.0.1/", "it is not public"),
    ("http://[::1]/", "it is not public"), ("http://0/", "it is not public"), ("http://[::]/", "it is not public"),
    ("http://2130706433/", "it is not public"), ("http://0x7f000001/", "it is not public"),
    ("http://0177.0.0.1/", "it is not public"), ("http://127.1/", "it is not public"),
    ("http://①②⑦.⓪.⓪.①/", "it is not public"), ("http://[::ffff:127.0.0.1]/", "it is not public"),
    ("http://[64:ff9b::7f00:1]/", "it is not public"), ("http://[2002:7f00:1::]/", "it is not public"),
    ("http://[fe80::1%25eth0]/", "zone"), ("file:///etc/passwd", "only http and https"),
    ("FILE:/etc/passwd", "only http"),
    ("view-source:http://example.org/", "only http"), ("javascript:alert(1)", "only http"),
    ("http://127.0.0.1:8888\\@example.com/", "backslash"), ("http://user:pw@example.org/", "user name or password"),
    ("http://a@b@c.org/", "user name or password"), ("http://example.org:99999/", "port"),
    ("http://example.org:80:80/", "port"), ("http://example.org:0/", "port"), ("http://example.org:22/", "port 22"),
    ("http://example.org:6379/", "port 6379"), ("http://example.org/" + "x" * 9000, "longer than 8192"),
    ("word", "scheme"),
]  # fmt: skip


@pytest.mark.parametrize(("seed", "words"), _NEVER, ids=[seed[:40] for seed, _ in _NEVER])
def test_seeds_that_may_never_be_asked_are_code_in_words(
    seed: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"

    assert _code("crawl", seed, "--contact", "a@example.org", "--home", str(home)) == 1
    said = capsys.readouterr().err
    assert words in said
    assert "pw" not in said
    assert not home.exists()


def test_help_version_unknown_commands_and_nothing_to_resume(crawler: Crawler) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "holdfast.cli.main", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    assert run("--version").stdout.startswith("holdfast ")
    assert run("--help").returncode == 0
    assert run("fly").returncode == 2
    nothing = crawler.run("crawl", "https://example.org/", "--resume")
    assert nothing.returncode == 1
    assert "nothing to resume" in nothing.stderr
