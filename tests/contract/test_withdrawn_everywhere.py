"""A takedown asked for under one spelling and looked for under all of them, in every reader, on both databases.

Two pages are alike in everything: captured under the same spellings, before and after the takedown. One of them was
withdrawn; the other shows that each reader would have told it.
"""

from __future__ import annotations

import gzip
import io
import json
import shutil
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import pytest
from sqlalchemy import select

from holdfast.changes.compute import compute_pending
from holdfast.clock import digits14
from holdfast.db import connect
from holdfast.db.models import Change, Domain, Page, SignalPage, SignalWord, Snapshot
from holdfast.editions.comparison import write_comparison
from holdfast.editions.freezing import freeze
from holdfast.editions.report import write_report
from holdfast.search.outbox import drain
from holdfast.urls import page_key, parse
from holdfast.wiring.archive import Archive
from holdfast.withdrawals.hiding import hide
from tests.archive import Shot, add_captures, build_archive, days_later, index_all
from tests.client import REPLAY, Client, asking
from tests.editions_bed import adopt
from tests.postgres import Postgres

_SESSION = "0123456789abcdef0123456789ABCDEF"
_SPELLINGS = {
    "plain": "https://{host}/private/page?a=1&b=2",
    "http": "http://{host}/private/page?a=1&b=2",
    "www": "https://www.{host}/private/page?a=1&b=2",
    "www2": "https://www2.{host}/private/page?a=1&b=2",
    "upper host": "https://{upper}/private/page?a=1&b=2",
    "upper path": "https://{host}/PRIVATE/Page?a=1&b=2",
    "slash": "https://{host}/private/page/?a=1&b=2",
    "port": "https://{host}:443/private/page?a=1&b=2",
    "escaped": "https://{host}/%70rivate/p%61ge?a=1&b=2",
    "fragment": "https://{host}/private/page?a=1&b=2#part",
    "order": "https://{host}/private/page?b=2&a=1",
    "session in the path": "https://{host}/private/page;jsessionid=" + _SESSION + "?a=1&b=2",
    "session in the query": "https://{host}/private/page?a=1&b=2&PHPSESSID=" + _SESSION,
    "tracking": "https://www.{host}/private/Page?a=1&utm_source=mail&b=2",
}
_TAKEDOWN = "HTTP://WWW.{upper}:80/Private/%50age/?b=2&a=1&fbclid=x#top"
_BEFORE = ("plain", "www", "tracking")
"""The others are captured only after the takedown."""


@dataclass(frozen=True, slots=True)
class Subject:
    """One of the two pages."""

    host: str
    word: str
    """Of its text, and of no other."""

    def url(self, spelling: str) -> str:
        """Return its address, spelled so."""
        return _SPELLINGS[spelling].format(host=self.host, upper=self.host.upper())

    def shot(self, spelling: str, *, execution: int) -> Shot:
        """Return a capture; its text is another in each execution."""
        body = (
            f"<html><head><title>{self.word}</title></head><body><p>The {self.word} of {execution}.</p></body></html>"
        )
        return Shot(url=self.url(spelling), body=body, moment=days_later(execution), execution=execution)


HIDDEN = Subject("secret.example.org", "zanzibar")
OPEN = Subject("public.example.org", "madagascar")


@dataclass(slots=True)
class World:
    """The archive after the takedown, and what it holds of both pages."""

    archive: Archive
    client: Client
    ids: dict[tuple[Subject, str], list[int]] = field(default_factory=dict)

    def get(self, path: str) -> str:
        """Return what is answered, with where it leads; nothing where it is refused."""
        answer = self.client.get(path)
        if answer.status_code >= 400:
            assert answer.status_code == 404, answer.text
            return ""
        return f"{answer.headers.get('location', '')}{answer.text}"


def _shots(*executions: int, spellings: tuple[str, ...]) -> list[Shot]:
    return [
        page.shot(spelling, execution=execution)
        for execution in executions
        for page in (HIDDEN, OPEN)
        for spelling in spellings
    ]


def _edition(archive: Archive, year: int, execution: int) -> int:
    """Write everything that an edition has, about one execution; return its id."""
    seeds = (HIDDEN.url("plain"), OPEN.url("plain"))
    number = adopt(archive, "example", year, executions=(f"example-{execution}",), seeds=seeds)
    write_report(archive.database, archive.home, archive.clock, number)
    freeze(archive.database, archive.home, archive.clock, number)
    return number


def _signals(archive: Archive) -> None:
    """Keep signals of both pages too, as of a source that keeps no bodies."""
    now = archive.clock.now()
    with archive.database.write() as session:
        for page in (HIDDEN, OPEN):
            for number, spelling in enumerate(_SPELLINGS):
                url = parse(page.url(spelling))
                domain = Domain(name=f"{number}.{page.host}", created_at=now)
                session.add(domain)
                session.flush()
                row = Page(domain_id=domain.id, url_hash=url.hash64, url=url.fetch, created_at=now, fetched_at=now)
                session.add(row)
                session.flush()
                kept = SignalPage(page_id=row.id, source_id=1, execution_id=1, fetched_at=now, title=page.word)
                kept.page_key = page_key(url.fetch)
                session.add(kept)
                session.add(SignalWord(word=page.word, page_id=row.id, count=1))


def _build(home: Path, url: str) -> Archive:
    archive = build_archive(home, _shots(1, 2, spellings=_BEFORE), database_url=url)
    compute_pending(archive.database, archive.clock)
    drain(archive.database, archive.home, archive.clock)
    _signals(archive)
    earlier = _edition(archive, 2021, 1)
    hide(archive.database, archive.clock, _TAKEDOWN.format(upper=HIDDEN.host.upper()), reason="asked for")
    with closing(connect(archive.settings.database)) as raw_db:
        add_captures(raw_db, archive.settings, archive.clock, _shots(3, 4, spellings=tuple(_SPELLINGS)))
        index_all(raw_db, archive.clock, archive.home)
    compute_pending(archive.database, archive.clock)
    drain(archive.database, archive.home, archive.clock)
    later = _edition(archive, 2023, 3)
    write_comparison(archive.database, archive.home, archive.clock, earlier, later)
    return archive


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def world(
    request: pytest.FixtureRequest, _sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """One archive for all readers and spellings: reading changes nothing."""
    home = tmp_path_factory.mktemp("withdrawn")
    url = f"sqlite:///{home / 'holdfast.db'}"
    if request.param == "sqlite":
        shutil.copy(_sqlite_template, home / "holdfast.db")
    else:
        served: Postgres = request.getfixturevalue("postgres")
        url = served.fresh()
    archive = _build(home, url)
    api = archive.settings.api.model_copy(update={"rate_limiting": False})
    archive = Archive(
        settings=archive.settings.model_copy(update={"api": api}), database=archive.database, clock=archive.clock
    )
    with asking(archive) as client:
        made = World(archive, client)
        with archive.database.read() as session:
            rows = list(session.execute(select(Snapshot.url, Snapshot.id).order_by(Snapshot.id)))
        for page in (HIDDEN, OPEN):
            for spelling in _SPELLINGS:
                made.ids[page, spelling] = [number for url, number in rows if url == page.url(spelling)]
                assert made.ids[page, spelling]
        yield made
    archive.database.close()


Reader = Callable[[World, Subject, str], str]
"""Asks for one of the pages under a spelling; returns what is told."""


def _asked(path: str) -> Reader:
    """Return a reader that names the address in its question."""
    return lambda world, page, spelling: world.get(path.format(url=quote(page.url(spelling), safe="")))


def _written(path: str) -> Reader:
    """Return a reader that has the address as a part of its path."""
    return lambda world, page, spelling: world.get(path.format(url=quote(page.url(spelling), safe=":/?&=;%")))


def _listed(path: str) -> Reader:
    """Return a reader that lists, whatever is asked for."""
    return lambda world, _page, _spelling: world.get(path)


def _of_id(path: str) -> Reader:
    """Return a reader of single captures: of every one that has this spelling."""
    return lambda world, page, spelling: "".join(
        world.get(path.format(id=number)) for number in world.ids[page, spelling]
    )


def _mistyped(world: World, page: Subject, _spelling: str) -> str:
    """Ask for a word that is nearly the page's; what was probably meant is told."""
    return world.get(f"/api/search?q={page.word[:-2]}x{page.word[-1]}")


def _compared(world: World, page: Subject, spelling: str) -> str:
    """Ask what changed up to each capture, and between two of them."""
    ids = world.ids[page, spelling]
    questions = [f"/api/changes/compare?toSnapshotId={number}" for number in ids[1:]]
    questions.append(f"/api/changes/compare?toSnapshotId={ids[-1]}&fromSnapshotId={ids[0]}")
    return "".join(map(world.get, questions))


def _package(world: World, _page: Subject, _spelling: str) -> str:
    """Read everything in the packages of all executions."""
    told = []
    for execution in (1, 2, 3, 4):
        answer = world.client.get(f"/api/executions/{execution}/wacz")
        assert answer.status_code == 200, answer.text
        with zipfile.ZipFile(io.BytesIO(answer.content)) as package:
            for name in package.namelist():
                raw = package.read(name)
                told.append((gzip.decompress(raw) if name.endswith(".gz") else raw).decode("utf-8", "replace"))
    return "".join(told)


def _changes_export(world: World, page: Subject, _spelling: str) -> str:
    """Read the changes: they name captures by their numbers."""
    told = world.get("/api/exports/changes?format=jsonl&compressed=false")
    ids = {number for (owner, _), numbers in world.ids.items() if owner is page for number in numbers}
    return page.word if any(f":{number}," in told or f": {number}," in told for number in ids) else told


def _counted_term(world: World, page: Subject, _spelling: str) -> str:
    """Count the word of a page over time: the answer repeats it, so that its counts must tell."""
    [term] = json.loads(world.get(f"/api/terms?q={page.word}"))["terms"]
    return page.word if term["captures"] or term["newDocuments"] else ""


_READERS: dict[str, Reader] = {
    "search by words": lambda world, page, _: world.get(f"/api/search?q={page.word}&includeDuplicates=true"),
    "search by address": _asked("/api/search?q={url}"),
    "search by substring": lambda world, page, _: world.get(f"/api/search?q=url:{page.host}"),
    "search by site": lambda world, page, _: world.get(f"/api/search?q=site:{page.host}&includeDuplicates=true"),
    "search by part of an address": lambda world, page, _: world.get(f"/api/search?q=inurl:{page.host}"),
    "terms over time": _counted_term,
    "search of pages": lambda world, page, _: world.get(f"/api/search?q={page.word}&view=pages"),
    "facets and histogram": _listed("/api/search?pageSize=1"),
    "newest": _listed("/api/search?pageSize=100&includeDuplicates=true"),
    "suggestion": _mistyped,
    "search-debug": lambda world, page, _: world.get(f"/api/admin/search-debug?q={page.word}"),
    "snapshot": _of_id("/api/snapshot/{id}"),
    "raw view": _of_id(f"{REPLAY}/api/snapshots/raw/{{id}}"),
    "provenance": _of_id("/api/snapshots/{id}/provenance"),
    "timeline": _of_id("/api/snapshots/{id}/timeline"),
    "resolve": _asked("/api/replay/resolve?url={url}"),
    "replay": _written(f"{REPLAY}/web/{digits14(days_later(3))}id_/{{url}}"),
    "timegate": _written(f"{REPLAY}/web/{{url}}"),
    "timemap link": _written("/web/timemap/link/{url}"),
    "timemap json": _written("/web/timemap/json/{url}"),
    "timemap cdxj": _written("/web/timemap/cdxj/{url}"),
    "calendar": _written("/web/*/{url}"),
    "addresses of a host": lambda world, page, _: world.get(f"/web/*/{page.host}/*"),
    "cdx": _asked("/cdx?url={url}"),
    "cdx of a host": lambda world, page, _: world.get(f"/cdx?url={page.host}&matchType=host"),
    "cdx of a domain": _listed("/cdx?url=example.org&matchType=domain"),
    "changes": _listed("/api/changes?source=example&includeUnchanged=true&pageSize=100"),
    "change feed": _listed("/api/changes/rss?source=example"),
    "comparison of captures": _compared,
    "comparison of crawls": _listed("/api/changes/site?from=1&to=3&includeUnchanged=true"),
    "export jsonl": _listed("/api/exports/snapshots?format=jsonl&compressed=false"),
    "export csv": _listed("/api/exports/snapshots?format=csv&compressed=false"),
    "export of changes": _changes_export,
    "export cdxj": lambda world, _page, _: "".join(world.get(f"/api/exports/cdxj?jobId={n}") for n in (1, 2, 3, 4)),
    "wacz": _package,
    "edition": lambda world, _page, _: (
        world.get("/api/coverage/example/2021") + world.get("/api/coverage/example/2023")
    ),
    "edition report": _listed("/api/coverage/example/2021/coverage-report.json"),
    "edition table": _listed("/api/coverage/example/2021/coverage.csv"),
    "frozen list": _listed("/api/coverage/example/2021/frozen.jsonl"),
    "later frozen list": _listed("/api/coverage/example/2023/frozen.jsonl"),
    "comparison of editions": _listed("/api/coverage/example/2023/comparison-2021.json"),
    "table of that comparison": _listed("/api/coverage/example/2023/comparison-2021.csv"),
    "pages of that comparison": _listed("/api/coverage/example/2023/comparison/2021"),
    "sources": _listed("/api/sources"),
    "figures": _listed("/api/stats"),
    "pages without a body": lambda world, page, _: world.get(f"/api/pages?search={page.word}&limit=100"),
    "all pages without a body": _listed("/api/pages?limit=100"),
    "page without a body": lambda world, page, spelling: world.get(f"/api/pages/{parse(page.url(spelling)).url_hash}"),
}
_ECHOES = {"calendar", "addresses of a host"}
"""Pages for people that repeat what was asked for."""
_NUMBERED = {"frozen list", "later frozen list", "table of that comparison"}
"""Lists whose rows must add up: what is withdrawn is named by its number alone."""


def _tells(reader: str, told: str, world: World, page: Subject) -> bool:
    """Return whether an answer gives anything of a page away: a word of it, its host, or a capture's number."""
    text = told.casefold()
    numbers = [str(number) for (owner, _), ids in world.ids.items() if owner is page for number in ids]
    turned = ",".join(reversed(page.host.split(".")))
    if reader in _ECHOES:
        return any(f"/web/{digits14(days_later(day))}" in text for day in (1, 2, 3, 4))
    return any(word in text for word in (page.word, page.host, turned, *([] if reader in _NUMBERED else numbers)))


_SPELLED = {
    "search by address", "snapshot", "raw view", "timeline", "resolve", "replay", "timegate", "timemap link",
    "timemap json", "timemap cdxj", "calendar", "cdx", "comparison of captures", "page without a body",
}  # fmt: skip
"""Readers who ask for an address or for a capture of it; the others list, and are asked once."""


@pytest.mark.parametrize(
    ("reader", "spelling"),
    [(reader, spelling) for reader in _READERS for spelling in (_SPELLINGS if reader in _SPELLED else ["plain"])],
)
def test_no_reader_tells_anything_of_a_withdrawn_page(world: World, reader: str, spelling: str) -> None:
    told = _READERS[reader](world, HIDDEN, spelling)

    assert not _tells(reader, told, world, HIDDEN), told


@pytest.mark.parametrize("reader", _READERS)
def test_each_reader_tells_of_the_other_page(world: World, reader: str) -> None:
    for spelling in ("plain", "tracking"):
        assert _tells(reader, _READERS[reader](world, OPEN, spelling), world, OPEN), spelling


def test_a_withdrawn_page_is_in_no_figure(world: World) -> None:
    captures = sum(len(ids) for (page, _), ids in world.ids.items() if page is OPEN)

    stats, source = world.client.get("/api/stats").json(), world.client.get("/api/sources").json()[0]
    whole = world.client.get("/api/search?includeDuplicates=true").json()

    assert stats["snapshotsTotal"] == source["recordCount"] == whole["total"] == captures
    assert sum(bucket["count"] for bucket in whole["histogram"]["buckets"]) == captures
    with world.archive.database.read() as session:
        told = session.scalars(select(Change.to_snapshot_id)).all()
    listed = world.client.get("/api/changes?source=example&includeUnchanged=true&pageSize=100").json()
    assert listed["total"] < len(told), "what was compared before the takedown is still a row, and not listed"
