"""The registry of sources on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from sqlalchemy import select

from holdfast.db.engine import Database
from holdfast.db.models import AuditEvent, Job, Source
from holdfast.sources import registry
from holdfast.sources.queries import sources
from holdfast.sources.refusals import SourceInUse, SourceNotFound, SourceRefused, SourceTaken
from holdfast.sources.texts import read_text, write_text
from tests.clock import FakeClock


@pytest.fixture
def database(migrated_url: str) -> Iterator[Database]:
    with closing(Database(migrated_url)) as opened:
        yield opened


def spec(code: str = "ex", **changes: Any) -> registry.SourceSpec:
    """Return a source as somebody would describe it."""
    return registry.read_spec({"code": code, "config": {"seeds": [f"https://{code}.example/"]}} | changes)


def test_a_source_is_created_edited_and_audited(database: Database, clock: FakeClock) -> None:
    with database.write() as session:
        registry.create(session, clock, spec(config={"seeds": ["https://ex.example/"], "max_depth": 4}))
    clock.advance(60)
    with database.write() as session:
        registry.edit(session, clock, "ex", {"name": "Example", "config": {"delay_s": 3, "max_depth": None}})
    with database.read() as session:
        source = registry.find(session, "ex")
        config = registry.config_of(source)
        actions = session.scalars(select(AuditEvent.action).order_by(AuditEvent.id)).all()

    assert (source.name, source.base_url) == ("Example", "https://ex.example/")
    assert (config.delay_s, config.max_depth, config.seeds) == (3.0, 3, ("https://ex.example/",))
    assert source.updated_at > source.created_at
    assert list(actions) == ["source.created", "source.edited"]


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ({"code": "UPPER"}, "code"),
        ({"code": "far-too-long-a-code"}, "code"),
        ({"code": "-x"}, "code"),
        ({"code": "x", "config": {"seeds": ["nope"]}}, "config.seeds"),
        ({"code": "x", "config": {"seeds": ["https://a.example/"]}, "base_url": "gopher://a"}, "base_url"),
        ({"code": "x", "config": {"seeds": ["https://a.example/"]}, "owner": "me"}, "owner"),
        ({"code": "x", "config": 7}, "config"),
    ],
)
def test_what_is_wrong_with_a_source_is_named(content: dict[str, Any], field: str) -> None:
    with pytest.raises(SourceRefused) as caught:
        registry.read_spec(content)
    assert caught.value.field == field


def test_a_refused_edit_changes_nothing(database: Database, clock: FakeClock) -> None:
    with database.write() as session:
        registry.create(session, clock, spec())
    with pytest.raises(SourceRefused), database.write() as session:
        registry.edit(session, clock, "ex", {"name": "Other", "config": {"exclude": ["(?!x)"]}})
    with pytest.raises(SourceRefused, match=r"^code: "), database.write() as session:
        registry.edit(session, clock, "ex", {"code": "other"})
    with database.read() as session:
        assert registry.find(session, "ex").name == "ex"


def test_a_code_is_taken_once(database: Database, clock: FakeClock) -> None:
    with database.write() as session:
        registry.create(session, clock, spec())
        with pytest.raises(SourceTaken):
            registry.create(session, clock, spec())
        with pytest.raises(SourceNotFound):
            registry.find(session, "nope")


def test_only_a_source_that_nothing_belongs_to_can_be_deleted(database: Database, clock: FakeClock) -> None:
    with database.write() as session:
        empty, used = (registry.create(session, clock, spec(code)) for code in ("empty", "used"))
        session.add(Job(source_id=used.id, kind="crawl", fingerprint="", config={}, created_at=clock.now(),
                        state="pending"))  # fmt: skip
        assert empty.id != used.id
    with database.write() as session:
        registry.delete(session, clock, "empty")
        with pytest.raises(SourceInUse, match="jobs"):
            registry.delete(session, clock, "used")
    with database.read() as session:
        assert [source.code for source in sources(session)] == ["used"]


def test_sources_are_listed_by_code_and_by_switch(database: Database, clock: FakeClock) -> None:
    with database.write() as session:
        for code in ("c", "a", "b"):
            registry.create(session, clock, spec(code))
        assert registry.switch(session, clock, "b", enabled=False)
        assert not registry.switch(session, clock, "b", enabled=False)
    with database.read() as session:
        assert [s.code for s in sources(session)] == ["a", "b", "c"]
        assert [s.code for s in sources(session, enabled=True)] == ["a", "c"]
        assert [s.code for s in sources(session, after="a", limit=1)] == ["b"]


@pytest.mark.parametrize("form", ["yaml", "toml"])
def test_an_export_is_imported_unchanged(database: Database, clock: FakeClock, form: str) -> None:
    with database.write() as session:
        assert registry.seed_presets(session, clock) == ("hc", "phac", "cihr")
        assert registry.seed_presets(session, clock) == ()
    with database.read() as session:
        text = write_text(registry.export(session), form)
    with database.write() as session:
        again = registry.take_in(session, clock, registry.read_specs(read_text(text, form)))
    assert again == registry.Imported(created=(), updated=(), unchanged=("cihr", "hc", "phac"))


def test_an_import_creates_and_updates_or_does_nothing_at_all(database: Database, clock: FakeClock) -> None:
    entries: list[dict[str, Any]] = [
        {"code": "hc", "config": {"seeds": ["https://hc.example/"]}, "enabled": False},
        {"code": "new", "config": {"seeds": ["https://new.example/"]}},
    ]
    with database.write() as session:
        registry.seed_presets(session, clock)
    with database.write() as session:
        would = registry.take_in(session, clock, registry.read_specs(entries), apply=False)
    assert (would.created, would.updated) == (("new",), ("hc",))
    with pytest.raises(SourceRefused, match=r"^sources\[1\]\.config\.seeds: "), database.write() as session:
        registry.read_specs([entries[0], {"code": "bad", "config": {}}])
    with pytest.raises(SourceRefused, match="twice"), database.write() as session:
        registry.read_specs([entries[1], entries[1]])
    with database.read() as session:
        assert registry.find(session, "hc").enabled
    with database.write() as session:
        assert registry.take_in(session, clock, registry.read_specs(entries)) == would
    with database.read() as session:
        assert not registry.find(session, "hc").enabled
        assert session.scalars(select(Source.code).where(Source.code == "new")).one() == "new"
