"""`migrate`, `check-db`, `check-env` and `settings`, as people type them; on both databases where that differs."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.db.migrate import upgrade
from holdfast.db.schema import SCHEMA
from tests import forked
from tests.damage import damage
from tests.flow.zimit.bed import Bed
from tests.old_schemas import add_migration, make_old
from tests.typed import Typist


@pytest.fixture
def typed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Typist:
    return Typist(tmp_path / "home", capsys)


def test_a_database_is_looked_at_made_and_found_whole(typed: Typist) -> None:
    assert typed("check-db").code == 1
    assert (typed("migrate down").code, typed.home.exists()) == (1, False)
    dry = typed("migrate --json").object
    assert (dry["current"], dry["latest"], dry["applied"], dry["migrations"][0]["revision"]) == (
        None, SCHEMA, False, "0031",
    )  # fmt: skip
    assert not typed.home.exists(), "looking makes nothing"

    assert typed("migrate --apply").out.startswith(f"current none, latest {SCHEMA}\n  ran 0031: ")
    assert typed("migrate").out == f"current {SCHEMA}, latest {SCHEMA}\nnothing to run\n"
    assert typed("check-db").out.endswith("ok\n")


def test_a_damaged_file_is_told_in_a_sentence_with_the_way_out(typed: Typist) -> None:
    assert typed("migrate --apply").code == 0
    damage(typed.home / "holdfast.db", "sources", "jobs", "executions", "owners")

    for line in ("check-db", "source list", "job list", "status", "stop", "index"):
        said = typed(line)
        assert (said.code, "is damaged" in said.err, "index --rebuild" in said.err) == (1, True, True), (line, said)
        assert "fault of this program" not in said.err


def test_migrate_down_undoes_a_migration_only_with_apply(
    typed: Typist, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed("migrate up")
    monkeypatch.setattr("holdfast.db.migrate.MIGRATIONS", add_migration(tmp_path, head=SCHEMA))
    monkeypatch.setattr("holdfast.cli.checks.SCHEMA", "9001")
    upgrade(f"sqlite:///{typed.home / 'holdfast.db'}")

    planned = typed("migrate down")
    assert (planned.code, "would undo 9001: A later change" in planned.out) == (0, True)
    assert "do it with --apply" in planned.out
    undone = typed(f"migrate down --to {SCHEMA} --apply --json").object
    assert (undone["current"], undone["direction"], undone["applied"]) == (SCHEMA, "down", True)
    assert [one["revision"] for one in undone["migrations"]] == ["9001"]
    assert typed("migrate status").out.startswith(f"current {SCHEMA}, latest 9001\n  would run 9001: ")


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("migrate sideways", 2, "sideways"),
        ("migrate up --to 0031", 2, "it goes with down"),
        ("migrate down --to 0022 --apply", 1, "cannot go back below schema 0031; restore the backup"),
    ],
)
def test_migrate_refuses_an_impossible_direction(typed: Typist, line: str, code: int, said: str) -> None:
    typed("migrate up")
    ended = typed(line)

    assert (ended.code, ended.out, said in " ".join(ended.err.split())) == (code, "", True), ended
    assert typed("check-db").code == 0


def test_migrate_down_refuses_an_unknown_schema(typed: Typist, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.db.migrate.MIGRATIONS", add_migration(tmp_path, head=SCHEMA))
    monkeypatch.setattr("holdfast.cli.checks.SCHEMA", "9001")
    typed.home.mkdir()
    upgrade(f"sqlite:///{typed.home / 'holdfast.db'}")
    ended = typed("migrate down --to base --apply")

    assert (ended.code, "unknown schema 'base'; expected one of: 0031" in ended.err) == (2, True), ended


def test_migrate_shows_and_upgrades_an_old_database(typed: Typist) -> None:
    typed.home.mkdir()
    make_old(f"sqlite:///{typed.home / 'holdfast.db'}", "0003")
    looked = typed("migrate --json").object
    assert (looked["current"], looked["migrations"][0]["revision"]) == ("0003", "0031")
    old = typed("check-db --json")
    assert (old.code, "recoveries" in old.object["missing"], old.object["schema"]) == (1, True, "0003")

    assert typed("source list").code == 0
    assert typed("migrate").out == f"current {SCHEMA}, latest {SCHEMA}\nnothing to run\n"
    assert typed("check-db").out.endswith("ok\n")


def test_migrate_refuses_a_newer_database(typed: Typist) -> None:
    typed("migrate --apply")
    with closing(sqlite3.connect(typed.home / "holdfast.db")) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()
    newer = typed("migrate")

    assert (newer.code, "upgrade holdfast" in newer.err) == (1, True)


def test_postgresql_is_migrated_by_the_same_command(bare_postgres_url: str, tmp_path: Path) -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "holdfast.cli.main", *words, "--home", str(tmp_path / "home")]
        environment = {**os.environ, "HOLDFAST_DATABASE_URL": bare_postgres_url}
        return forked.run(command, capture_output=True, text=True, check=False, env=environment)

    assert run("migrate", "--apply").stdout.startswith(f"current none, latest {SCHEMA}\n  ran 0031")
    checked = run("check-db")
    assert (checked.returncode, "postgresql 1" in checked.stdout) == (0, True)
    assert not (tmp_path / "home" / "holdfast.db").exists()


def test_the_machine_is_looked_at(typed: Typist, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # whether this machine has docker is not what is looked at
    found = typed("check-env --json")
    assert (found.code, found.object["ok"]) == (0, True)
    assert not typed.home.exists()

    (tmp_path / "file").write_text("in the way")
    blocked = Typist(tmp_path / "file" / "home", typed._capsys)("check-env")
    assert (blocked.code, "data directory: " in blocked.out) == (1, True)
    monkeypatch.setenv("HOLDFAST_API_ENVIRONMENT", "production")
    strict = typed("check-env")
    assert (strict.code, "needs HOLDFAST_API_ADMIN_TOKEN" in strict.out) == (1, True)
    monkeypatch.setenv("HOLDFAST_DISK_FREE_BYTES", str(10**18))
    assert "nothing new starts" in typed("check-env").out


@pytest.mark.parametrize("down", [True, False])
def test_the_daemon_of_docker_is_asked_not_only_its_command(
    typed: Typist, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, down: bool
) -> None:
    engine = Bed(tmp_path / "engine-room")
    engine.script([], down=down)
    for name in ("PATH", "DOCKER_CONFIG"):
        monkeypatch.setenv(name, engine.variables[name])

    looked = typed("check-env --json")

    [docker] = [one for one in looked.object["checks"] if one["what"] == "docker"]
    assert looked.code == int(down)
    assert ("daemon does not answer" in (docker["problem"] or "")) is down
    assert ("engine 27.0.0" in docker["value"]) is not down


def test_variables_that_do_nothing_are_told(typed: Typist, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("HOLDFAST_HOEM", "5"), ("CRAWLER_PORT", "1"), ("HOLDFAST_ZIMIT_COMMAND", "")):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PATH", "/nowhere")
    looked = typed("check-env --json")
    told = {one["what"]: one["value"] for one in looked.object["checks"]}
    problems = {one["what"]: one["problem"] for one in looked.object["checks"] if one["problem"]}

    assert (looked.code, looked.object["ok"]) == (1, False)
    assert told["HOLDFAST_HOEM"] == "no setting has this name"
    assert problems == {"HOLDFAST_HOEM": "write HOLDFAST_HOME if you mean that; see: holdfast settings"}
    marked = [line.split()[:2] for line in typed("check-env").out.splitlines()]
    assert ["!!", "HOLDFAST_HOEM"] in marked
    assert ["ok", "CRAWLER_PORT"] in marked
    assert told["CRAWLER_PORT"] == "is not read; docs/settings.md names its replacement"
    assert "it is empty" in told["archive-tool"]
    monkeypatch.setenv("HOLDFAST_CONFIG", "/nowhere.toml")
    refused = typed("check-env")
    assert (refused.code, "there is no file /nowhere.toml, which HOLDFAST_CONFIG names" in refused.err) == (1, True)


def test_settings_never_print_a_secret(typed: Typist, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_DATABASE_URL", "postgresql://me:hunter2@db/holdfast")
    monkeypatch.setenv("HOLDFAST_API_ADMIN_TOKEN", "hunter2-hunter2-hunter2")
    for line in ("settings", "settings --json", "check-env", "check-env --json"):
        shown = typed(line)
        assert "hunter2" not in shown.out + shown.err, line
        assert "me:***@db" in shown.out


@pytest.mark.parametrize(("level", "is_logged"), [("WARNING", False), ("INFO", True)])
def test_log_level_decides_what_a_process_writes(tmp_path: Path, level: str, is_logged: bool) -> None:
    environment = {**os.environ, "HOLDFAST_HOME": str(tmp_path / "home"), "HOLDFAST_LOG_LEVEL": level}
    environment["HOLDFAST_CONTACT"] = "https://archive.example/"
    command = [sys.executable, "-m", "holdfast.cli.main", "start-worker", "--once"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)

    levels = {json.loads(line)["level"] for line in done.stderr.splitlines() if line.startswith("{")}
    assert ("info" in levels) is is_logged


def test_a_setting_that_cannot_be_is_named(typed: Typist, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_LOG_LEVEL", "loud")
    ended = typed("settings")

    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("holdfast: the setting HOLDFAST_LOG_LEVEL cannot be used")
    monkeypatch.setenv("HOLDFAST_LOG_LEVEL", "warning")
    assert "HOLDFAST_LOG_LEVEL = warning" in typed("settings").out
