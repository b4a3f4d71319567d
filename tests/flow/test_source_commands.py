"""`holdfast source` and `seed-sources`, as people type them."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import config
from holdfast.db.models import Source
from holdfast.errors import Conflict
from holdfast.wiring.jobs import open_jobs
from tests.site import Site
from tests.typed import Typist


@pytest.fixture
def typed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Typist:
    return Typist(tmp_path / "home", capsys)


def test_a_source_from_its_creation_to_its_end(typed: Typist) -> None:
    assert "holdfast seed-sources" in typed("source list").out
    made = typed("source create ex --seed https://example.org --set max_depth=9 --json").object
    assert (made["code"], made["config"]["max_depth"], len(made["warnings"])) == ("ex", 9, 1)
    assert "more than 5" in typed("source show ex").out

    edited = typed("source edit ex --set max_depth=null --set delay_s=2 --json --name", "An example").object
    assert (edited["name"], edited["config"]) == ("An example", {"seeds": ["https://example.org/"], "delay_s": 2.0})
    assert typed("source disable ex").out == "ex: disabled; 0 jobs paused\n"
    assert [one["code"] for one in typed("source list --disabled --json").object["sources"]] == ["ex"]
    assert typed("source enable ex --json").object == {"code": "ex", "enabled": True, "jobs": 0}
    assert typed("source delete ex").out == "ex: deleted\n"
    assert typed("source show ex").code == 1


def test_a_source_can_be_for_members(typed: Typist) -> None:
    assert (
        typed("source create ex --seed https://example.org --visibility members --json").object["visibility"]
        == "members"
    )
    assert "members" in typed("source list").out
    assert typed("source edit ex --visibility public --json").object["visibility"] == "public"
    assert typed("source edit ex --visibility everybody").code == 2
    assert "public" in typed("source show ex").out


def test_source_without_seeds_is_shown_and_edited(typed: Typist) -> None:
    typed("source list")
    with open_jobs(config.load(home=typed.home)) as jobs, jobs.database.write() as session:
        now = jobs.clock.now()
        session.add(Source(code="mem", name="mem", enabled=True, config={}, created_at=now, updated_at=now))

    assert typed("source show mem").code == 0
    assert typed("source edit mem --visibility members --json").object["visibility"] == "members"
    assert typed("source edit mem --set delay_s=5 --json").object["config"] == {"delay_s": 5.0}
    refused = typed("source edit mem --name Other --set delay_s=no")
    assert (refused.code, "config.delay_s" in refused.err) == (1, True)
    assert typed("source show mem --json").object["name"] == "mem"
    crawled = typed("job create --source mem")
    assert (crawled.code, "seeds: at least one is needed" in crawled.err) == (1, True)
    seeded = typed("source edit mem --seed https://example.org --json").object
    assert seeded["config"]["seeds"] == ["https://example.org/"]
    assert typed("source edit mem --set seeds=null").code == 1


def test_a_source_that_is_disabled_takes_its_jobs_along(typed: Typist) -> None:
    typed("source create ex --seed https://example.org")
    typed("job create --source ex --every 1d")

    assert typed("source disable ex").out == "ex: disabled; 1 job paused\n"
    assert typed("job show 1 --json").object["state"] == "paused"
    assert typed("source enable ex").out == "ex: enabled; 1 job resumed\n"
    assert typed("job show 1 --json").object["state"] == "scheduled"
    refused = typed("source delete ex")
    assert (refused.code, "holdfast source disable ex" in refused.err) == (1, True)


def test_a_dotted_field_leaves_its_neighbours_alone(typed: Typist) -> None:
    typed("seed-sources")
    before = typed("source show hc --json").object["config"]["zimit"]["tool_options"]
    typed("source edit hc --set zimit.tool_options.initial_workers=4")
    after = typed("source show hc --json").object["config"]["zimit"]["tool_options"]

    assert after == {**before, "initial_workers": 4}


@pytest.mark.parametrize("form", ["yaml", "toml"])
def test_sources_go_out_as_a_file_and_come_back(typed: Typist, tmp_path: Path, form: str) -> None:
    seeded = typed("seed-sources").out.splitlines()
    assert seeded[0] == "added: hc, phac, cihr; there already: none"
    assert seeded[1].startswith("hc: check it before a campaign (holdfast source show hc)")
    assert seeded[2] == "  the French seed"
    assert typed("source seed --json").object == {"added": [], "there": ["hc", "phac", "cihr"], "unconfirmed": {}}
    assert typed("seed-sources").out == "added: none; there already: hc, phac, cihr\n"
    file = tmp_path / f"sources.{form}"
    assert typed(f"source export hc phac --format {form} -o {file}").out == ""

    assert typed(f"source validate {file}").out.startswith("2 sources are valid: hc, phac\n")
    other = Typist(tmp_path / "other", typed._capsys)
    planned = other(f"source import {file} --dry-run --json").object
    assert (planned["created"], other("source list --json").object["total"]) == (["hc", "phac"], 0)
    assert other(f"source import {file}").out == "created: hc, phac\n"
    assert other(f"source import {file}").out == "unchanged: hc, phac\n"
    exported = [typist("source export hc phac --json").object for typist in (typed, other)]
    assert exported[0] == exported[1]


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("source create Bad --seed https://a.example", 1, "code: "),
        ("source create ex", 1, "config.seeds: at least one"),
        ("source create ex --seed ftp://a.example", 1, "only http and https"),
        ("source create ex --seed https://a.example --set nope=1", 1, "config.nope: there is no such field"),
        ("source create ex --seed https://a.example --set robots=ignore", 1, "config.robots_reason"),
        ("source create ex --seed https://a.example --set delay_s", 2, "write FIELD=VALUE"),
        ("source edit ex", 2, "say what to change"),
        ("source edit ex --name x", 1, "there is no source 'ex'"),
        ("source disable ex", 1, "there is no source 'ex'"),
        ("source export ex", 1, "there is no source 'ex'"),
        ("source export --format xml", 2, "yaml, toml"),
        ("source import /nowhere.yaml", 1, "cannot read /nowhere.yaml: No such file"),
        ("source frob", 2, "No such command 'frob'"),
    ],
)
def test_mistakes_name_what_is_wrong(typed: Typist, line: str, code: int, said: str) -> None:
    ended = typed(line)

    assert (ended.code, ended.out) == (code, "")
    assert said in ended.err
    assert "Traceback" not in ended.err


def _insert_again(home: Path) -> None:
    """Do what one does whose look found no such source, a moment too late."""
    with open_jobs(config.load(home=home)) as jobs, jobs.database.write() as session:
        now = jobs.clock.now()
        session.add(Source(code="ex", name="ex", enabled=True, config={}, created_at=now, updated_at=now))


def test_two_who_make_the_same_source_at_once_are_told_apart(typed: Typist) -> None:
    typed("source create ex --seed https://example.org")

    with pytest.raises(Conflict, match="look again, then repeat it"):
        _insert_again(typed.home)
    assert typed("source show ex").code == 0


_EVIL = 'zimit={"passthrough_args":["--evil"]}'


def test_what_the_backend_could_not_run_here_is_refused_before_it_is_kept(typed: Typist, tmp_path: Path) -> None:
    typed("seed-sources")
    said = "config.zimit.passthrough_args: unrecognized arguments: '--evil'"
    for line in ("create ex --seed https://a.example --set backend=zimit", "edit hc --set backend=zimit"):
        ended = typed(f"source {line} --set", _EVIL)
        assert (ended.code, ended.out, said in ended.err) == (1, "", True), line
    assert typed("source show ex").code == 1
    assert "backend" not in typed("source show hc --json").object["config"], "nothing of it was kept"

    file = tmp_path / "evil.toml"
    file.write_text('[[sources]]\ncode = "ex"\n[sources.config]\nseeds = ["https://a.example/"]\nbackend = "zimit"\n'
                    '[sources.config.zimit]\npassthrough_args = ["--evil"]\n')  # fmt: skip
    for command in ("import", "validate"):
        ended = typed(f"source {command} {file}")
        assert (ended.code, f"sources[0].{said}" in ended.err) == (1, True), command


def test_a_file_is_taken_in_whole_or_not_at_all(typed: Typist, tmp_path: Path) -> None:
    file = tmp_path / "sources.yaml"
    file.write_text(
        "sources:\n- {code: a, config: {seeds: ['https://a.example/']}}\n- {code: b, config: {max_depth: deep}}\n"
    )

    for command in ("import", "validate"):
        ended = typed(f"source {command} {file}")
        assert (ended.code, "sources[1].config." in ended.err) == (1, True), command
    assert typed("source list --json").object["total"] == 0


def test_survey_command_prints_what_would_be_crawled(
    typed: Typist, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_ALLOW_NETWORKS", "127.0.0.0/8")
    monkeypatch.delenv("HOLDFAST_CONTACT", raising=False)
    site.serve("/", "<title>Town of Kelpsound</title><a href=/news>News</a>")

    refused = typed("source survey", site.url(0, "/"))
    shown = typed("source survey", site.url(0, "/"), "--contact", "a@example.org")
    found = typed("source survey", site.url(0, "/"), "--json")

    assert (refused.code, shown.code, found.code) == (1, 0, 0), shown.err + found.err
    assert "no contact" in refused.err
    assert "Town of Kelpsound" in shown.out
    assert "unknown: no sitemap" in shown.out
    assert (found.object["final_url"], found.object["contact"]) == (site.url(0, "/"), "a@example.org")
