"""The registry of sources on both databases."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from holdfast.clock import to_micros
from holdfast.db import connect
from holdfast.db.engine import Database
from holdfast.db.models import AuditEvent, Job, Source
from holdfast.errors import Conflict
from holdfast.feeds import registry as feeds
from holdfast.sources import registry
from holdfast.sources.adhoc_queries import ensure_source
from holdfast.sources.config import SourceRefused
from holdfast.sources.files import FORMS, read_text, write_text
from holdfast.sources.queries import SourceNotFound, find_source, named_source, site_of, sources
from holdfast.sources.records import SourceImport
from holdfast.sources.registry import SourceInUse, SourceTaken
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
        source = find_source(session, "ex")
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
        ({"code": "far-too-long-a-code-for-any-source-that-there-is"}, "code"),
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
        assert find_source(session, "ex").name == "ex"


def test_a_code_is_taken_once(database: Database, clock: FakeClock) -> None:
    with database.write() as session:
        registry.create(session, clock, spec())
        with pytest.raises(SourceTaken):
            registry.create(session, clock, spec())
        with pytest.raises(SourceNotFound):
            find_source(session, "nope")


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


def test_of_two_who_make_the_same_source_or_feed_at_once_one_is_told(database: Database, clock: FakeClock) -> None:
    together, said = threading.Barrier(2), []
    deeds: list[Callable[[Session], object]] = [
        lambda session: registry.create(session, clock, spec()),
        lambda session: feeds.add(session, clock, find_source(session, "ex"), "https://ex.example/feed"),
    ]

    def work(deed: Callable[[Session], object]) -> None:
        together.wait()
        try:
            with database.write() as session:
                deed(session)
            said.append("made")
        except Conflict:
            said.append("told")

    for deed in deeds:
        threads = [threading.Thread(target=work, args=(deed,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert (sorted(said[:2]), sorted(said[2:])) == (["made", "told"], ["made", "told"])


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
        again = registry.import_specs(session, clock, registry.read_specs(read_text(text, form)))
    assert again == SourceImport(created=[], updated=[], unchanged=["cihr", "hc", "phac"], dry_run=False)


@pytest.mark.parametrize("form", FORMS)
def test_sources_that_a_crawl_or_an_import_of_files_made_do_not_spoil_an_export(
    database: Database, clock: FakeClock, form: str
) -> None:
    now = to_micros(clock.now())
    with (
        closing(connect(str(database.engine.url.render_as_string(hide_password=False)))) as raw_db,
        raw_db.write() as tx,
    ):
        ensure_source(tx, host="ad.hoc.example", base_url="https://ad.hoc.example/start", now=now)
    with database.write() as session:
        named_source(session, clock, code="files")
    with database.read() as session:
        text = write_text(registry.export(session), form)
    with database.write() as session:
        again = registry.import_specs(session, clock, registry.read_specs(read_text(text, form)))

    assert again == SourceImport(created=[], updated=[], unchanged=["ad-hoc-example"], dry_run=False)


@pytest.mark.parametrize("written", ["adhoc", "form"])
def test_long_host_gets_the_same_code_however_it_is_added(database: Database, clock: FakeClock, written: str) -> None:
    front_page = "https://www.museum-of-modern-art.example.org/"
    url = str(database.engine.url.render_as_string(hide_password=False))
    with database.read() as session:
        surveyed = site_of(session, front_page).code
    if written == "adhoc":
        with closing(connect(url)) as raw_db, raw_db.write() as tx:
            made = ensure_source(tx, host="www.museum-of-modern-art.example.org", base_url=front_page, now=0)[1]
    else:
        with database.write() as session:
            content = registry.with_code(session, {"config": {"seeds": [front_page]}})
            made = registry.create(session, clock, registry.read_spec(content)).code

    assert surveyed == made == "museum-of-modern-art-example-org"
    with database.read() as session:
        assert site_of(session, front_page).code == made
        assert site_of(session, front_page.replace("https", "http")).code == f"{made}-2"


def test_adhoc_crawl_joins_the_source_of_its_front_page(database: Database, clock: FakeClock) -> None:
    with database.write() as session:
        registry.create(session, clock, spec("town", base_url="https://ex.example/"))
    url = str(database.engine.url.render_as_string(hide_password=False))
    with closing(connect(url)) as raw_db, raw_db.write() as tx:
        codes = [
            ensure_source(tx, host="ex.example", base_url=page, now=0)[1]
            for page in ("https://ex.example/", "http://ex.example/", "https://ex.example/")
        ]

    assert codes == ["town", "ex-example", "town"]


def test_a_name_that_no_file_could_bring_back_is_refused_in_an_edit_too(database: Database, clock: FakeClock) -> None:
    with database.write() as session:
        registry.create(session, clock, spec())
    with database.write() as session, pytest.raises(SourceRefused, match="name"):
        registry.edit(session, clock, "ex", {"name": "x" * 201})


def test_an_import_creates_and_updates_or_does_nothing_at_all(database: Database, clock: FakeClock) -> None:
    entries: list[dict[str, Any]] = [
        {"code": "hc", "config": {"seeds": ["https://hc.example/"]}, "enabled": False},
        {"code": "new", "config": {"seeds": ["https://new.example/"]}},
    ]
    with database.write() as session:
        registry.seed_presets(session, clock)
    with database.write() as session:
        would = registry.import_specs(session, clock, registry.read_specs(entries), apply=False)
    assert (would.created, would.updated) == (["new"], ["hc"])
    with pytest.raises(SourceRefused, match=r"^sources\[1\]\.config\.seeds: "), database.write() as session:
        registry.read_specs([entries[0], {"code": "bad", "config": {}}])
    with pytest.raises(SourceRefused, match="twice"), database.write() as session:
        registry.read_specs([entries[1], entries[1]])
    with database.read() as session:
        assert find_source(session, "hc").enabled
    with database.write() as session:
        done = registry.import_specs(session, clock, registry.read_specs(entries))
        assert done == replace(would, dry_run=False)
    with database.read() as session:
        assert not find_source(session, "hc").enabled
        assert session.scalars(select(Source.code).where(Source.code == "new")).one() == "new"


def test_a_source_that_only_named_where_files_belong_becomes_the_preset_of_its_code(
    database: Database, clock: FakeClock
) -> None:
    with database.write() as session:
        named_source(session, clock, code="hc")
        named_source(session, clock, code="phac", name="Our own name")
        spec = registry.read_spec({"code": "cihr", "config": {"seeds": ["https://ours.example/"]}})
        registry.create(session, clock, spec)

    with database.write() as session:
        added = registry.seed_presets(session, clock)

    assert added == ("hc", "phac")
    with database.read() as session:
        rows = [find_source(session, code) for code in ("hc", "phac", "cihr")]
        hints = [registry.config_of(row).schedule_hint for row in rows]
    assert [row.name for row in rows] == ["Health Canada", "Our own name", "cihr"]
    assert hints == ["annual", "annual", None]
