"""The bundled websites as they are served: whole, linked, and honest about what they forbid."""

from __future__ import annotations

import http.client
import re
from collections.abc import Iterator

import pytest

from holdfast.demo.server import MARSH_HOST, TOWN_HOST, DemoSite, DemoWeb
from tests import patience


@pytest.fixture(scope="module")
def demo() -> Iterator[DemoSite]:
    """The site on a port of its own."""
    with DemoSite() as running:
        yield running


def _get(demo: DemoSite, path: str, **headers: str) -> tuple[int, dict[str, str], str]:
    connection = http.client.HTTPConnection(demo.address, demo.port, timeout=patience.deadline(5))
    connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, body


def _walk(demo: DemoSite) -> dict[str, int]:
    """Follow every link, style and picture from the front page; return the status of each path."""
    seen: dict[str, int] = {}
    todo = ["/"]
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen[path], headers, body = _get(demo, path)
        todo += [headers["location"]] if "location" in headers else []
        todo += re.findall(r"""(?:href|src)=["'](/[^"'#]*)""", body) + re.findall(r"""url\("(/[^"]+)"\)""", body)
    return seen


def test_every_page_can_be_reached_and_only_one_is_lost(demo: DemoSite) -> None:
    seen = _walk(demo)

    assert {path for path, status in seen.items() if status == 404} == {"/notes/lost-page.html"}
    assert set(demo.pages) <= set(seen)
    assert 15 <= len(demo.pages) <= 20
    assert seen["/home"] == 301


def test_robots_forbid_the_logbook_and_name_the_sitemap(demo: DemoSite) -> None:
    _, _, robots = _get(demo, "/robots.txt")
    _, headers, sitemap = _get(demo, "/sitemap.xml")

    assert "Disallow: /private/\n" in robots
    assert f"Sitemap: {demo.url}sitemap.xml\n" in robots
    assert headers["content-type"].startswith("application/xml")
    assert sitemap.count("<loc>") == len(demo.pages) - 1
    assert "/private/" not in sitemap


def test_a_page_that_is_known_is_not_sent_again(demo: DemoSite) -> None:
    _, headers, _ = _get(demo, "/fr/")
    status, _, body = _get(demo, "/fr/", If_None_Match=headers["etag"])

    assert (status, body) == (304, "")


def test_the_french_pages_say_that_they_are_french(demo: DemoSite) -> None:
    assert '<html lang="fr">' in _get(demo, "/fr/marees.html")[2]


@pytest.mark.parametrize(
    "path", ["/../server.py", "/..%2fserver.py", "//etc/passwd", "/style.css/../robots.txt", "/img"]
)
def test_nothing_outside_the_site_is_served(demo: DemoSite, path: str) -> None:
    assert _get(demo, path)[0] == 404


def test_two_sites_are_told_apart_by_name_and_know_their_port() -> None:
    with DemoWeb(("127.0.0.1", 0, 0)) as web:
        names = {host: f"{host}:{web.port}" for host in (TOWN_HOST, MARSH_HOST, "elsewhere.example")}
        town, marsh, other = (_ask(web, "/", name) for name in names.values())
        robots = _ask(web, "/robots.txt", names[TOWN_HOST])[1]

    assert (web.town_url, web.marsh_url) == (f"http://{names[TOWN_HOST]}/", f"http://{names[MARSH_HOST]}/")
    assert (town[0], "Welcome to Kelpsound" in town[1]) == (200, True)
    assert (marsh[0], "Kelpsound Marsh Station" in marsh[1]) == (200, True)
    assert other == (421, "")
    assert f"Sitemap: {web.town_url}sitemap.xml" in robots


def _ask(web: DemoWeb, path: str, host: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection(web.address, web.port, timeout=patience.deadline(5))
    connection.request("GET", path, headers={"Host": host})
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, body
