"""The demo's archive: made from an invented town's website by the real import, crawl, index, comparison, editions."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from holdfast.config import Settings
from holdfast.crawl.stopping import Stops
from holdfast.demo.building import MARSH, TOWN, build_archive, demo_archive
from holdfast.demo.past import NOTE
from holdfast.demo.server import DemoWeb
from holdfast.demo.tour import DemoTour
from holdfast.errors import Conflict
from holdfast.warc.verify import verify_file
from holdfast.wiring.archive import open_archive
from tests.client import REPLAY, Client, asking

pytestmark = pytest.mark.slow


class DemoArchive(NamedTuple):
    settings: Settings
    web: DemoWeb
    tour: DemoTour


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoArchive]:
    """The archive, and the sites while they are still served."""
    with demo_archive(tmp_path_factory.mktemp("demo") / "home") as done:
        yield DemoArchive(*done)


@pytest.fixture(scope="module")
def client(made: DemoArchive) -> Iterator[Client]:
    """Asks the API of that archive."""
    with open_archive(made.settings) as archive, asking(archive) as client:
        yield client


def ledger(made: DemoArchive, year: int) -> dict[str, dict[str, Any]]:
    """Return what an edition says of each address of the town, by path."""
    path = made.settings.home / "editions" / TOWN / str(year) / "target-ledger.jsonl"
    rows = map(json.loads, path.read_text("utf-8").splitlines())
    return {str(row["url"]).removeprefix(made.web.town_url.rstrip("/")): row for row in rows}


def this_year(made: DemoArchive) -> int:
    return int(made.tour.moments[-1][:4])


def _says(file: Path, words: str) -> bool:
    """Return whether the first record of a WARC file has these words."""
    with gzip.open(file) as stream:
        return words.encode() in stream.read(4096)


def test_the_town_was_captured_four_times_years_apart(made: DemoArchive, client: Client) -> None:
    years = [moment[:4] for moment in made.tour.moments]
    found = client.get("/api/search", params={"q": "kelpsound", "source": TOWN, "view": "snapshots"}).json()

    assert years == ["2023", "2024", "2025", str(this_year(made))]
    assert [bucket["value"] for bucket in found["facets"]["year"]] == years
    counts = [bucket["count"] for bucket in found["facets"]["year"]]
    assert counts == sorted(counts)
    assert all(30 <= count <= 60 for count in counts)


def test_the_page_of_fees_changed_at_every_crawl(made: DemoArchive, client: Client) -> None:
    ids = made.tour.snapshot_ids
    events = [client.get("/api/changes/compare", params={"toSnapshotId": one}).json()["event"] for one in ids[1:]]
    texts = [client.get(f"/api/snapshots/raw/{one}").text for one in ids]

    assert [(one["changeType"], one["fromSnapshotId"], one["toSnapshotId"]) for one in events] == [
        ("updated", before, after) for before, after in pairwise(ids)
    ]
    assert [fee in text for fee, text in zip(("60.00", "64.00", "72.00", "78.00"), texts, strict=True)] == [True] * 4


def test_one_page_is_gone_one_is_forbidden_one_leads_elsewhere_and_one_was_never_there(made: DemoArchive) -> None:
    rows = ledger(made, this_year(made))

    assert made.tour.changes["gone"] == 2, "one page of each site"
    assert (rows["/services/telecentre.html"]["outcome"], rows["/services/telecentre.html"]["reason"]) == (
        "failed",
        "http_410",
    )
    assert (rows["/staff/rota.html"]["outcome"], rows["/staff/rota.html"]["reason"]) == ("robots", "robots:line 3")
    assert rows["/library"]["outcome"] == "captured"
    assert rows["/library"]["redirected_to"] == f"{made.web.town_url}services/library.html"
    assert rows["/harbour/chart-1911.html"]["reason"] == "http_404"
    assert not any("example.org" in path for path in rows), "links to elsewhere are counted, not followed"


def test_its_feed_and_its_sitemap_are_known_and_polled_and_nothing_else_is_taken_for_one(client: Client) -> None:
    feeds = client.get("/api/admin/feeds", params={"source": TOWN}).json()["items"]

    assert {(one["url"].rpartition("/")[2], one["kind"]) for one in feeds} == {
        ("feed.xml", "feed"),
        ("sitemap.xml", "sitemap"),
    }
    assert all(one["lastPolledAt"] for one in feeds)


def test_search_has_two_languages_documents_and_hosts_to_choose_from(client: Client) -> None:
    budget = client.get("/api/search", params={"q": "budget"}).json()["facets"]
    every = client.get("/api/search", params={"q": "kelpsound"}).json()["facets"]

    assert {one["value"] for one in budget["language"]} == {"en", "fr"}
    assert {one["value"] for one in budget["type"]} == {"html", "pdf"}
    assert {one["value"].partition(":")[0] for one in every["host"]} == {
        "www.kelpsound.example",
        "marsh.kelpsound.example",
    }
    assert {one["value"] for one in every["source"]} == {TOWN, MARSH}


def test_every_year_is_an_edition_frozen_and_compared_with_the_one_before(made: DemoArchive, client: Client) -> None:
    years = sorted(int(moment[:4]) for moment in made.tour.moments)
    editions = [client.get(f"/api/coverage/{TOWN}/{year}").json() for year in years]
    folder = made.settings.home / "editions" / TOWN
    compared = json.loads((folder / str(this_year(made)) / "comparison-2025.json").read_text("utf-8"))["counts"]

    assert [(one["year"], one["status"]) for one in editions] == [(year, "research_ready") for year in years]
    assert all(one["capturedUrlCount"] >= 30 for one in editions)
    assert [len(list((folder / str(year)).glob("frozen-*.jsonl"))) for year in years] == [1] * 4
    assert compared["gone"] == 1
    assert compared["new"] == 4
    assert compared["changed"] > 20
    assert compared["unchanged"] > 10


def test_earlier_crawls_say_that_their_dates_are_invented_and_all_files_are_sound(
    made: DemoArchive, client: Client
) -> None:
    files = sorted((made.settings.home / "warcs").rglob("*.warc.gz"))
    sources = client.get("/api/sources").json()

    assert len(files) == made.tour.files == 7
    assert all(verify_file(file).ok for file in files)
    assert sum("-import-" in str(file) for file in files) == 4
    assert all("Demonstration material" in one["description"] for one in sources)
    assert all(_says(file, NOTE) == ("-import-" in str(file)) for file in files)


def test_a_page_of_the_past_is_shown_with_its_style_and_picture(made: DemoArchive, client: Client) -> None:
    assert made.tour.replay_path is not None
    page = client.get(f"{REPLAY}{made.tour.replay_path}")
    moment = made.tour.replay_path.split("/")[2]
    style = client.get(f"{REPLAY}/web/{moment}cs_/{made.web.town_url}style.css")

    assert "Works on the sea wall" in page.text
    assert "Food scraps" not in page.text
    assert "img/harbour.svg" in page.text
    assert style.status_code in (200, 302, 307)


def test_a_directory_that_holds_a_demo_is_not_filled_again(made: DemoArchive) -> None:
    with pytest.raises(Conflict, match="holds a demo already"):
        build_archive(made.settings, made.web, Stops(), lambda _line: None)


def test_the_sites_can_be_served_again_where_they_were(tmp_path: Path) -> None:
    with DemoWeb() as first:
        place = first.place
    with DemoWeb(place) as again:
        assert (again.place, again.town_url) == (place, first.town_url)
