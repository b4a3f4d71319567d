"""The town's website: whole in each of its four states, in two languages, and honest about being invented."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from difflib import SequenceMatcher
from http import HTTPStatus
from importlib import resources
from importlib.resources.abc import Traversable
from xml.etree import ElementTree

import pytest

from holdfast.demo.answers import SiteContent
from holdfast.demo.past import walked
from holdfast.demo.town import LAST_STATE, town_content
from holdfast.parse.document import parse_pdf

ORIGIN, MARSH = "http://www.kelpsound.example", "http://marsh.kelpsound.example/"
STATES = range(1, LAST_STATE + 1)


def town(state: int) -> SiteContent:
    return town_content(state, origin=ORIGIN, marsh_url=MARSH)


def text(content: SiteContent, path: str) -> str:
    return content.at(path).body.decode()


@pytest.mark.parametrize("state", STATES)
def test_every_page_can_be_reached_and_only_the_chart_is_missing(state: int) -> None:
    content = town(state)

    seen = dict(walked(content, ORIGIN))

    assert {path for path, one in seen.items() if one.status == HTTPStatus.NOT_FOUND} == {"/harbour/chart-1911.html"}
    assert set(content.pages) - set(seen) == {"/staff/rota.html"}, "robots.txt forbids it"
    assert set(content.answers) - set(seen) == {"/staff/rota.html"}
    assert seen["/library"].status == HTTPStatus.MOVED_PERMANENTLY


def test_there_are_a_few_dozen_pages_and_more_every_year() -> None:
    counts = [len(town(state).pages) for state in STATES]

    assert counts == sorted(set(counts))
    assert all(30 <= count <= 45 for count in counts)


@pytest.mark.parametrize("state", STATES)
def test_nothing_of_the_markup_for_states_is_left(state: int) -> None:
    content = town(state)

    for path in content.pages:
        assert not re.search(r"\{\{|\}\}|\|\||\{marsh\}|%list|^\[[0-9]", text(content, path), re.MULTILINE), path


def test_fees_hours_and_the_front_page_say_something_else_in_every_state() -> None:
    every = [town(state) for state in STATES]

    for path in ("/", "/fr/", "/services/fees.html", "/fr/services/tarifs.html", "/services/swimming-pool.html",
                 "/documents/budget-in-brief.pdf", "/img/harbour-camera.png"):  # fmt: skip
        assert len({content.at(path).body for content in every}) == LAST_STATE, path
    permit = re.compile(r"residents</td><td>year</td><td>([0-9.]+)")
    assert [permit.findall(text(one, "/services/fees.html"))[0] for one in every] == [
        "60.00",
        "64.00",
        "72.00",
        "78.00",
    ]


def test_pages_say_their_language_and_name_the_other_one() -> None:
    content = town(LAST_STATE)
    languages = {path: re.findall(r'<html lang="(..)">', text(content, path)) for path in content.pages}

    assert all(found == (["fr"] if path.startswith("/fr/") else ["en"]) for path, found in languages.items())
    assert sum(found == ["fr"] for found in languages.values()) >= 10
    assert 'hreflang="fr" href="/fr/services/tarifs.html"' in text(content, "/services/fees.html")
    assert 'hreflang="en" href="/services/fees.html"' in text(content, "/fr/services/tarifs.html")


def test_the_telecentre_is_gone_in_the_last_state_and_an_old_article_still_links_to_it() -> None:
    statuses = [town(state).at("/services/telecentre.html").status for state in STATES]

    assert statuses == [200, 200, 200, HTTPStatus.GONE]
    assert 'href="/services/telecentre.html"' in text(town(LAST_STATE), "/news/2023-03-07-beams.html")


def test_the_feed_names_the_news_newest_first_and_pages_name_the_feed() -> None:
    content = town(LAST_STATE)
    items = ElementTree.fromstring(text(content, "/news/feed.xml")).findall("channel/item")

    links = [item.findtext("link") or "" for item in items]
    assert links == sorted(links, reverse=True)
    assert len(links) == 8
    assert all(link.removeprefix(ORIGIN) in content.pages for link in links)
    assert 'type="application/rss+xml"' in text(content, "/")


def test_robots_forbid_the_rota_and_the_sitemap_leaves_it_out() -> None:
    content = town(LAST_STATE)
    sitemap = text(content, "/sitemap.xml")

    assert "Disallow: /staff/\n" in text(content, "/robots.txt")
    assert f"Sitemap: {ORIGIN}/sitemap.xml\n" in text(content, "/robots.txt")
    assert sitemap.count("<loc>") == sitemap.count("<lastmod>") == len(content.pages) - 1
    assert "/staff/" not in sitemap


def test_the_print_version_is_nearly_the_page() -> None:
    content = town(LAST_STATE)
    paths = ("/services/fees.html", "/services/fees-print.html")
    words = [re.sub(r"<[^>]+>", " ", text(content, path)).split() for path in paths]

    assert words[0] != words[1]
    assert SequenceMatcher(None, words[0], words[1]).ratio() > 0.85


def test_there_are_a_form_tables_and_a_link_to_elsewhere() -> None:
    content = town(LAST_STATE)

    assert "<form " in text(content, "/services/report-a-problem.html")
    assert sum("<table>" in text(content, path) for path in content.pages) >= 10
    assert 'href="https://transit.example.org/' in text(content, "/about/getting-here.html")


@pytest.mark.parametrize(
    ("path", "title", "said"),
    [
        ("/documents/budget-in-brief.pdf", "The budget in brief, 2026", "second part of the boardwalk"),
        ("/fr/documents/budget-en-bref.pdf", "Le budget en bref, 2026", "Écoles et bibliothèque"),
    ],
)
def test_the_budget_is_a_document_that_can_be_read(path: str, title: str, said: str) -> None:
    read = parse_pdf(town(LAST_STATE).at(path).body)

    assert said in (read.text or "")
    assert read.title == title


def test_the_camera_shows_a_picture_of_the_size_that_its_page_says() -> None:
    content = town(LAST_STATE)
    picture = content.at("/img/harbour-camera.png").body

    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack("!II", picture[16:24]) == (640, 360)
    assert 'width="640" height="360"' in text(content, "/harbour/")


def test_every_page_says_that_the_town_is_invented() -> None:
    content = town(LAST_STATE)
    whole = [path for path in content.pages if "-print" not in path and "-imprimer" not in path]

    assert all("invented town" in text(content, path) or "ville inventée" in text(content, path) for path in whole)


def test_the_bundle_stays_small() -> None:
    def sizes(folder: Traversable) -> Iterator[int]:
        for item in folder.iterdir():
            yield from sizes(item) if item.is_dir() else [len(item.read_bytes())]

    assert sum(sizes(resources.files("holdfast.demo") / "town_site")) < 300 * 1024
