"""The survey of a website over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy import func, select

from holdfast.config import PolitenessSettings
from holdfast.db.models import AddedUrl, Domain, Page, Snapshot, Source, WarcFile
from holdfast.wiring.archive import Archive
from tests.archive import Shot, build_archive
from tests.client import Client, asking
from tests.contract.changes_bed import page
from tests.contract.test_live_pages import LOOPBACK
from tests.site import Site

Opening = Callable[..., tuple[Archive, Client]]


@pytest.fixture
def opened(database_url: str, tmp_path: Path) -> Iterator[Opening]:
    """Open an archive with these captures, and a client of its server."""
    with ExitStack() as stack:

        def opening(
            *shots: Shot, contact: str | None = "t@example.org", as_admin: bool = True
        ) -> tuple[Archive, Client]:
            built = build_archive(tmp_path, shots, database_url=database_url)
            stack.callback(built.database.close)
            update = {
                "allow_networks": LOOPBACK,
                "contact": contact,
                "politeness": PolitenessSettings(delay_s=0.0),
                "api": built.settings.api.model_copy(update={"rate_limiting": False}),
            }
            settings = built.settings.model_copy(update=update)
            archive = Archive(settings=settings, database=built.database, clock=built.clock)
            return archive, stack.enter_context(asking(archive, as_admin=as_admin))

        yield opening


def test_survey_route_answers_and_stores_nothing(opened: Opening, site: Site) -> None:
    site.serve("/", page("Boats are back"))
    archive, client = opened()
    kept = (Source, Snapshot, WarcFile, Page, AddedUrl)

    answer = client.request("POST", "/api/v1/sources/survey", json={"url": site.url(0, "/")})

    found = answer.json()
    assert answer.status_code == 200, found
    assert (found["final_url"], found["title"], found["code"]) == (site.url(0, "/"), "Tides", "127-0-0-2")
    assert found["robots"] | {"judged": 0} == {
        "url": f"{site.url(0, '/robots.txt')}", "status": 404, "answer": "allow_all", "lines": [], "lines_left_out": 0,
        "crawl_delay_s": None, "judged": 0, "forbidden": 0,
    }  # fmt: skip
    with archive.database.read() as session:
        assert [session.scalar(select(func.count()).select_from(table)) for table in kept] == [0] * len(kept)
        assert session.scalars(select(Domain.lease_owner)).all() == [None]


def test_survey_route_is_closed_to_readers(opened: Opening, site: Site) -> None:
    _, client = opened(as_admin=False)

    answer = client.request("POST", "/api/v1/sources/survey", json={"url": site.url(0, "/")})

    assert answer.status_code == 401
    assert site.log() == []


def test_survey_route_reports_what_to_do(opened: Opening, site: Site) -> None:
    _, client = opened(contact=None)

    def asked(**form: object) -> tuple[int, str, str | None]:
        answer = client.request("POST", "/api/v1/sources/survey", json=form)
        return answer.status_code, answer.json()["code"], answer.json().get("field")

    assert asked(url="hello", contact="a@example.org") == (400, "url_refused", None)
    assert asked(url=site.url(0, "/")) == (400, "contact_missing", "contact")
    assert asked(url=site.url(0, "/"), contact="nobody") == (400, "contact_refused", "contact")
    assert asked(url="http://10.0.0.1/", contact="a@example.org") == (400, "address_forbidden", None)
    assert asked(url="http://127.0.0.9:8099/") == (502, "live_failed", None)
    assert asked(url=site.url(0, "/"), config={"scope": "moon"}) == (400, "source_refused", "scope")
    assert site.log() == []


def test_survey_names_code_of_the_source_that_is_there(opened: Opening, site: Site) -> None:
    archive, client = opened(Shot(url=site.url(1, "/")))

    def proposed(front_page: str) -> str:
        with archive.database.write() as session:
            source = session.scalars(select(Source)).one()
            source.code, source.base_url = "127-0-0-2", front_page
        answer = client.request("POST", "/api/v1/sources/survey", json={"url": site.url(0, "/")})
        return str(answer.json()["code"])

    assert proposed("http://other.example/") == "127-0-0-2-2"
    assert proposed(site.url(0, "/")) == "127-0-0-2"
    assert proposed(site.url(0, "/news")) == "127-0-0-2", "a source of the form starts at any page of its site"


def test_new_source_keeps_the_scope_of_its_first_crawl(opened: Opening, site: Site) -> None:
    _, client = opened(contact="ana@example.org")
    part = {"scope": "prefix", "max_pages": 5}

    started = client.request("POST", "/api/admin/crawls", json={"urls": [site.url(0, "/ja/")], "config": part})
    assert started.status_code in (200, 201, 202), started.text
    (source,) = client.get("/api/v1/sources").json()["sources"]
    again = client.request("POST", "/api/v1/sources/survey", json={"url": site.url(0, "/ja/")}).json()

    assert (source["config"]["scope"], source["config"].get("max_pages")) == ("prefix", None)
    assert again["source_id"] == source["id"]
