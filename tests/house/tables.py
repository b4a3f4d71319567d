"""Which database stack a table belongs to (decision 0027), and which rooms may name it in SQL of their own.

The raw stack is what a crawl uses: plain SQL over `holdfast.db.raw`, without SQLAlchemy. A table that it owns is never
written through a model. A room that writes SQL names only the tables that are listed for it here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from tests.house.source import Module, docstrings

RAW_TABLES = frozenset(
    {
        *("pages", "page_crawls", "domains", "robots", "queues", "rereads", "exclusions", "execution_counts"),
        *("signal_pages", "signal_words", "signal_links", "added_urls", "feed_items"),
        *(
            "clock_anchors",
            "owners",
            "stores",
            "warc_files",
            "index_runs",
            "installation",
            "documents",
            "document_texts",
            "page_links",
            "link_texts",
        ),
    }
)
"""Written by raw SQL alone."""
SHARED_TABLES = frozenset(
    {
        *("audit_events", "executions", "jobs", "feeds", "noise_queue", "page_groups", "search_outbox"),
        *("series", "snapshots", "sources"),
    }
)
"""Written by both, each for the reason that decision 0027 gives."""
WRITTEN_IN: dict[str, frozenset[str]] = {
    # Leases and waits move with the clock of SQLite: `processes/boot_clock.py`.
    "processes": frozenset(
        {"clock_anchors", "domains", "operations", "owners", "page_crawls", "queues", "webhook_deliveries"}
    ),
    "db": frozenset({"audit_events", "installation"}),
    "feeds": frozenset({"feeds", "feed_items"}),
    "frontier": RAW_TABLES
    - {"clock_anchors", "feed_items", "installation", "owners", "stores", "warc_files", "index_runs"}
    - {"documents", "document_texts", "link_texts", "page_links"},
    "index": frozenset(
        {
            *("documents", "document_texts", "index_runs", "link_texts", "noise_queue", "page_groups", "page_links"),
            *("search_outbox", "snapshots"),
        }
    ),
    "jobs": frozenset({"executions", "jobs"}),
    "series": frozenset({"series"}),
    "sources": frozenset({"sources"}),
    "warc": frozenset({"stores", "warc_files"}),
}
"""What the SQL of a room may change."""
READ_IN: dict[str, frozenset[str]] = {
    "changes": frozenset({"changes"}),
    # Who holds a lease: `processes/boot_clock.py`.
    "processes": frozenset({"jobs"}),
    "db": frozenset({"clock_anchors", "page_crawls"}),
    "feeds": frozenset({"executions", "jobs", "page_crawls", "pages", "sources"}),
    "frontier": frozenset({"executions", "jobs"}),
    "index": frozenset({"executions", "jobs", "owners", "sources", "stores", "warc_files"}),
    "jobs": frozenset(
        {
            *("execution_counts", "exclusions", "page_crawls"),
            *("alerts", "owners", "series", "sources", "warc_files"),
        }
    ),
    # As text, for the statements of the index.
    "withdrawals": frozenset({"snapshots", "sources", "withdrawals"}),
    "warc": frozenset({"executions", "index_runs", "jobs", "owners", "page_crawls", "sources"}),
}
"""What it may ask, beside what it may change."""

_CHANGED = re.compile(r"\b(?:INSERT INTO|UPDATE|DELETE FROM)\s+(\w+)")
_ASKED = re.compile(r"\b(?:FROM|JOIN)\s+(\w+)")
_WRITERS = frozenset({"insert", "update", "delete", "insert_into", "postgres_insert", "sqlite_insert"})


def table_names(modules: Iterable[Module]) -> dict[str, str]:
    """Return the table of each model, by the name of its class."""
    return {
        node.name: statement.value.value
        for module in modules
        if module.name.startswith("db.models")
        for node in module.nodes
        if isinstance(node, ast.ClassDef)
        for statement in node.body
        if isinstance(statement, ast.Assign)
        and isinstance(statement.targets[0], ast.Name)
        and statement.targets[0].id == "__tablename__"
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    }


def foreign_tables(modules: Iterable[Module]) -> list[str]:
    """Return statements that name a table which is not of their room."""
    seen = tuple(modules)
    tables = set(table_names(seen).values())
    found = []
    for module in seen:
        if module.name.startswith("db.m"):  # models and migrations
            continue
        written = WRITTEN_IN.get(module.room, frozenset())
        asked = written | READ_IN.get(module.room, frozenset())
        prose = docstrings(module)
        for node in module.nodes:
            if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in prose:
                continue
            foreign = {name for name in _CHANGED.findall(node.value) if name in tables and name not in written}
            foreign |= {name for name in _ASKED.findall(node.value) if name in tables and name not in asked}
            found += [
                f"{module.path}:{node.lineno} names {name}: ask the room that owns it, or list it in house/tables.py"
                for name in sorted(foreign)
            ]
    return found


def modelled_writes(modules: Iterable[Module]) -> list[str]:
    """Return writes through a model to tables that belong to the raw stack."""
    seen = tuple(modules)
    owned = {name: table for name, table in table_names(seen).items() if table in RAW_TABLES}
    found = []
    for module in seen:
        imported = {
            alias.asname or alias.name
            for node in module.nodes
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("holdfast.db.models")
            for alias in node.names
        } & owned.keys()
        for node in module.nodes:
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            named = {argument.id for argument in node.args if isinstance(argument, ast.Name)} | {node.func.id}
            if (node.func.id in _WRITERS or node.func.id in imported) and (models := named & imported):
                found += [
                    f"{module.path}:{node.lineno} writes {owned[model]} through a model: it belongs to the raw stack"
                    for model in sorted(models)
                ]
    return found
