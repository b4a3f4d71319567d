"""Every statement of the frontier looks rows up: none may walk a large table, on either database, empty or full."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing

import pytest

from holdfast.db import connect
from holdfast.db.raw import RawDatabase, sqlite_path
from holdfast.db.run_slices import SLICE_END
from holdfast.frontier import sql
from holdfast.frontier.queries import FAILURES, SUMMARY
from holdfast.jobs.execution_queries import ENDED_AS

PLAIN = {name: text for name, text in vars(sql).items() if re.match(r"[A-Z]", name) and isinstance(text, str)}
for condition in ("IS_LAST_ATTEMPT", "IN_SLICE"):  # parts of other statements
    PLAIN.pop(condition)
PLAIN |= {"SLICE_END": SLICE_END, "ENDED_AS": ENDED_AS, "FAILURES": FAILURES, "SUMMARY": SUMMARY}
"""Those over a whole run too: they read a slice."""
PAIRS = {name: pair for name, pair in vars(sql).items() if isinstance(pair, sql.Statement)}
SQLITE = PLAIN | {name: pair.sqlite for name, pair in PAIRS.items()}
POSTGRES = PLAIN | {name: pair.postgresql for name, pair in PAIRS.items()}
del SQLITE["LOCK_HEADS"], SQLITE["PLANNER"], POSTGRES["LAST_ATTEMPT"], POSTGRES["ADDED_AFTER"]
WALKS_DOMAINS = {"FREE_EXPIRED"}
"""An operator's command: it may look at all domains that were ever leased."""
NEVER_SORTED = {"INSERT_PAGES", "ADD_ATTEMPTS", "DUE_DOMAINS"}
"""Their rows come from an index, or as they were loaded."""


@pytest.mark.parametrize("name", sorted(SQLITE))
def test_sqlite_looks_up_and_never_walks(migrated_sqlite: str, name: str) -> None:
    connection = sqlite3.connect(str(sqlite_path(migrated_sqlite)))
    for statement in sql.SETUP["sqlite"]:
        connection.execute(statement)
    text = SQLITE[name]

    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}", [None] * text.count("?"))]
    connection.close()

    large = r"p|c|q|s|l|pages|page_crawls|queues|signal_\w+"
    walked = [step for step in plan if re.match(rf"SCAN ({large})\b(?!.*CO-ROUTINE)", step)]
    assert [step for step in walked if not step.startswith("SCAN c") or "USING" in step] == [], plan
    # Attempts are found by id, or by execution and domain; only the closing of a whole execution goes by execution.
    by_execution = [step for step in plan if "page_crawls" in step and step.endswith("(execution_id=?)")]
    assert name == "OPEN_OF_ALL" or by_execution == [], plan
    assert name in WALKS_DOMAINS or not any(re.match(r"SCAN (d|domains)\b", step) for step in plan), plan
    assert name not in NEVER_SORTED or "USE TEMP B-TREE FOR ORDER BY" not in plan


@pytest.fixture
def prepared(migrated_postgres: str) -> RawDatabase:
    """A session as the frontier has it."""
    raw_db = connect(migrated_postgres)
    with raw_db.write() as tx:
        for statement in sql.SETUP["postgresql"]:
            tx.execute(statement)
    return raw_db


@pytest.mark.parametrize("name", sorted(POSTGRES))
def test_postgres_looks_up_and_never_walks(prepared: RawDatabase, name: str) -> None:
    text = POSTGRES[name]
    generic = text.replace("?::bigint[]", "'{1,2}'::bigint[]").replace("?::text[]", "'{a}'::text[]")

    with prepared.read() as tx:
        tx.execute(sql.PLANNER)
        plan = [row[0] for row in tx.execute("EXPLAIN " + generic.replace("?", "'1'"))]
    prepared.close()

    large = r"pages|page_crawls|queues|signal_\w+" + ("" if name in WALKS_DOMAINS else "|domains")
    assert [step for step in plan if re.search(rf"Seq Scan on ({large})\b", step)] == [], "\n".join(plan)
    walked = [step for here, step in enumerate(plan)
              if re.search(rf"Index (Only )?Scan using \w+ on ({large})\b", step)
              and not any("Index Cond" in line for line in plan[here + 1 : here + 2])]  # fmt: skip
    assert walked == [], "\n".join(plan)
    assert not any("Join" in step and "Nested" not in step for step in plan if "Filter" not in step), "\n".join(plan)
    # A page is found by its key: compared afterwards, every page of its domain would be read for each row loaded.
    compared = [step for step in plan if re.search(r"Join Filter: .*\b[kn]\.(page_id|url_hash)", step)]
    assert compared == [], "\n".join(plan)


@pytest.mark.parametrize("opened", ["write", "read"])
def test_planner_settings_end_with_the_frontiers_transaction(migrated_postgres: str, opened: str) -> None:
    names = re.findall(r"set_config\('(\w+)'", sql.PLANNER)
    settings = "SELECT name, setting FROM pg_settings WHERE name = ANY(?::text[]) ORDER BY name"
    with closing(connect(migrated_postgres)) as raw_db:
        with raw_db.read() as tx:
            before = tx.execute(settings, (names,))
        with getattr(sql.Connection(raw_db), opened)() as inside:
            during = inside.execute(settings, (names,))
        with raw_db.read() as tx:
            after = tx.execute(settings, (names,))

    assert len(before) == len(names) == 5
    assert [one for one in during if one in before] == []
    assert after == before
