"""`holdfast noise` and what other commands say of captures that show no page, as people type them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import noise_pages
from tests.archive import Shot, build_archive
from tests.typed import Typist

HOST = "https://example.org"


@pytest.fixture
def typist(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Typist:
    """Type commands at an archive with four error pages and one page, judged by none yet."""
    missing = [
        Shot(url=f"{HOST}/{name}", body=noise_pages.html("Page not found", "<h1>Page not found</h1><p>Sorry.</p>"))
        for name in "abcd"
    ]
    real = Shot(
        url=f"{HOST}/about", body=noise_pages.html("About", "<h1>About</h1>" + "<p>This page is short.</p>" * 9)
    )
    build_archive(tmp_path / "home", [*missing, real]).database.close()
    return Typist(tmp_path / "home", capsys)


def _search(typist: Typist, *more: str) -> list[tuple[str, str | None]]:
    code, out, _ = typist("search", "page", "--show-similar", "--json", *more)
    assert code == 0
    return sorted((hit["originalUrl"].removeprefix(HOST), hit["noise"]) for hit in json.loads(out)["results"])


def test_noise_is_judged_listed_cleared_and_marked(typist: Typist) -> None:
    assert "holdfast noise judge" in typist("noise", "list")[1]
    assert "5 captures judged: 4 soft_404" in typist("noise", "judge")[1]

    assert _search(typist) == [("/about", None)]
    shown = [("/a", "soft_404"), ("/about", None), *((f"/{name}", "soft_404") for name in "bcd")]
    assert _search(typist, "--show-noise") == shown
    listed = json.loads(typist("noise", "list", "--as", "soft_404", "--limit", "3", "--json")[1])
    assert [row["url"].removeprefix(HOST) for row in listed["noise"]] == ["/d", "/c", "/b"]
    first = json.loads(typist("noise", "list", "--before", str(listed["next_before"]), "--json")[1])["noise"][0]
    told = typist("snapshot", "show", str(first["id"]))[1]
    assert "soft_404" in told
    assert first["evidence"] in told
    assert json.loads(typist("report", "--json")[1])["noise"] == {"soft_404": 4}
    assert "captures that show no page, by reason" in typist("report")[1]

    assert "shows its page, 1 capture" in typist("noise", "clear", f"{HOST}/a", "--reason", "a joke")[1]
    assert "is login_wall" in typist("noise", "mark", f"{HOST}/about", "--as", "login_wall", "--reason", "seen")[1]
    assert _search(typist) == [("/a", None)]
    assert json.loads(typist("noise", "list", "--as", "login_wall", "--json")[1])["noise"][0]["decided_by"]
    assert "noise.marked" in typist("audit")[1]


def test_a_ruling_without_a_subject_that_is_there_is_refused(typist: Typist) -> None:
    assert typist("noise", "clear", "12", "--reason", "why")[0] == 1
    assert typist("noise", "clear", f"{HOST}/none", "--reason", "why")[0] == 1
    assert typist("noise", "mark", f"{HOST}/a", "--as", "what", "--reason", "why")[0] == 2
