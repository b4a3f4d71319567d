"""The docs keep up with the code: every error code, setting and command is described where people look for it."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests.house.errors import error_tree
from tests.house.program import commands, variables
from tests.house.source import ROOT, modules

_DOCS = ROOT / "docs"
_THEIRS = """
AUTH_JWT_SECRET CRAWLER_FEED_DISCOVERY_ENABLED CRAWLER_FEED_DISCOVERY_RETRY_HOURS CRAWLER_FEED_POLL_ENABLED
CRAWLER_MAX_CONCURRENCY CRAWLER_MINIO_ENABLED CRAWLER_PROXIES_ENABLED CRAWLER_PROXY_STICKY_TTL
CRAWLER_PROXY_URLS CRAWLER_READABILITY_FALLBACK_ENABLED CRAWLER_REDIS_STORAGE_ENABLED CRAWLER_RESPECT_ROBOTS_TXT
CRAWLER_SCHEDULER_ENABLED CRAWLER_SOURCES_API_URL CRAWLER_USE_RANDOM_USER_AGENT FETCHER_ENABLED
FETCHER_FOLLOW_REDIRECTS FETCHER_MAX_REDIRECTS HA_PAGES_FASTPATH HA_SEARCH_RANKING_VERSION
HEALTHARCHIVE_ADMIN_TOKEN HEALTHARCHIVE_ARCHIVE_ROOT HEALTHARCHIVE_AUTO_DEDUPE
HEALTHARCHIVE_CHANGE_TRACKING_ENABLED HEALTHARCHIVE_CORS_ORIGINS HEALTHARCHIVE_DATABASE_URL
HEALTHARCHIVE_DB_POOL_SIZE HEALTHARCHIVE_ENV HEALTHARCHIVE_INDEX_WARC_VERIFY_LEVEL HEALTHARCHIVE_JOB_LOCK_DIR
HEALTHARCHIVE_LOG_LEVEL HEALTHARCHIVE_REPLAY_BASE_URL HEALTHARCHIVE_TOOL_CMD HEALTHARCHIVE_ZIMIT_DOCKER_IMAGE
JOB_LOGS_ENABLED JOB_LOGS_MIN_LEVEL REDIS_EVENTS_ENABLED
"""
"""The variables that the five design documents name."""


def _page(name: str) -> str:
    path = _DOCS / name
    assert path.exists(), f"docs/{name} is missing: write it, the code it describes is there"
    return path.read_text()


def test_every_error_code_is_in_the_docs_and_no_other() -> None:
    page = _page("errors.md")
    codes = {error.code for error in error_tree(modules("src/holdfast")) if error.code}
    codes |= set(importlib.import_module("holdfast.api.errors").CODES_BY_STATUS.values())
    told = {line.split("`")[1] for line in page.splitlines() if line.startswith("| `")}

    assert sorted(codes - told) == [], "docs/errors.md lacks these codes: add a row that says what to do about each"
    assert sorted(told - codes) == [], "docs/errors.md describes codes that no error carries: remove the rows"


def test_every_setting_is_in_the_docs() -> None:
    page = _page("settings.md")
    names = list(variables())

    assert len(names) > 10
    missing = [name for name in names if f"`{name}`" not in page]
    assert missing == [], "docs/settings.md lacks these: add a row with name, default and meaning"


def test_every_setting_says_what_it_is_for() -> None:
    config = importlib.import_module("holdfast.config")

    def silent(model: Any, path: str) -> Iterator[str]:
        for name, field in model.model_fields.items():
            if hasattr(field.annotation, "model_fields"):
                yield from silent(field.annotation, f"{path}{name}.")
            elif not field.description:
                yield f"{path}{name}"

    assert list(silent(config.Settings, "")) == [], "give these fields of config.py a description"


def test_every_command_is_in_the_docs() -> None:
    page = _page("cli.md")
    typed = list(commands())

    assert len(typed) > 3
    missing = [command for command in typed if command not in page]
    assert missing == [], "docs/cli.md lacks these commands: add what each does, with an example"


def test_settings_that_took_the_place_of_the_documents_variables_exist() -> None:
    table = _page("settings.md").partition("## Variables of the documents")[2]
    ours = set(re.findall(r"`(HOLDFAST_[A-Z_]+)`", table))

    assert len(ours) > 30
    known = set(variables())
    assert sorted(ours - known) == [], "tools/settings_documents.md names settings that are not there"
    assert [name for name in _THEIRS.split() if name not in table] == [], "say what took the place of these"


def test_the_table_of_endings_is_the_one_in_the_code() -> None:
    reading = importlib.import_module("holdfast.jobs.endings")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in _page("endings.md").splitlines()
            if line.startswith("| ") and "`" in line]  # fmt: skip
    told = [(what, word, state, reason.strip("`"), *rest) for what, word, state, reason, *rest in rows]
    kept = [
        (
            rule.what,
            rule.word,
            rule.state,
            rule.reason,
            rule.retry.value,
            "yes" if rule.is_ready else "no",
            str(rule.exit_code),
        )
        for rule in reading.RULES
    ]

    assert told == kept, "docs/endings.md and jobs/endings.py tell different stories: the table is written in both"


def test_the_codes_that_the_document_names_are_those_of_the_errors() -> None:
    codes = {error.code for error in error_tree(modules("src/holdfast")) if error.code}
    api_errors = importlib.import_module("holdfast.api.errors")
    codes |= set(api_errors.CODES_BY_STATUS.values())

    assert api_errors.error_codes() == sorted(codes), "the OpenAPI document names other codes than the errors have"


def test_the_committed_openapi_document_is_the_one_that_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("HOLDFAST_")]:
        monkeypatch.delenv(name)
    monkeypatch.syspath_prepend(str(_DOCS.parent / "tools"))
    served: str = importlib.import_module("api_page").openapi_text()

    assert served == _page("openapi.json"), "docs/openapi.json is old: run make docs"


def test_docs_list_every_record_field_with_its_audience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    page: str = importlib.import_module("fields_page").fields_page()

    assert page == _page("fields.md"), "run: make docs"


def test_make_has_every_target_that_the_docs_name() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *_DOCS.rglob("*.md")]
    named = {target for page in pages for target in re.findall(r"`make ([a-z]+)", page.read_text())}
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)

    assert named >= {"coverage", "reload"}
    assert sorted(named - set(targets)) == [], "the Makefile has no such target"


def test_make_coverage_and_reload_run_what_exists() -> None:
    printed = subprocess.run(
        ["make", "--dry-run", "coverage", "reload"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    (measured,) = [line for line in printed if " coverage run " in line]
    (served,) = [shlex.split(line) for line in printed if "bin/uvicorn " in line]

    assert [name for name in re.findall(r"(?<= )(?:tests|src)/\S+", measured) if not (ROOT / name).is_dir()] == []
    asked = importlib.import_module("uvicorn.main").main.make_context("uvicorn", served[1:]).params
    assert (asked["reload"], asked["factory"]) == (True, True)
    assert callable(importlib.import_module("uvicorn.importer").import_from_string(asked["app"]))
