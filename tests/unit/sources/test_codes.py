"""Codes that are made from the names of sources."""

from __future__ import annotations

import pytest

from holdfast.sources.codes import code_from, free_code, is_code_of


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("Town of Kelpsound", "town-of-kelpsound"),
        ("Stadtarchiv München", "stadtarchiv-munchen"),
        ("L'Œuvre d'été & Łódź Straße", "loeuvre-dete-lodz-strasse"),
        ("Московский Кремль", "moskovskiy-kreml"),
        ("Αθήνα", "athina"),
        ("Canadian Institutes of Health Research", "canadian-institutes-of-health"),
        ("Donaudampfschifffahrtselektrizitätenhauptbetriebswerk", "donaudampfschifffahrtselektrizit"),
        ("東京都", ""),
        ("<script>alert(1)</script>", "script-alert-1-script"),
        ("", ""),
    ],
)
def test_code_is_readable_and_ends_with_a_whole_word(name: str, code: str) -> None:
    assert code_from(name) == code


@pytest.mark.parametrize("host", ["www.museum-of-modern-art.example.org", "127.0.0.1", "a.b", "xn--bcher-kva.example"])
def test_code_of_a_host_is_recognised_with_and_without_number(host: str) -> None:
    taken: set[str] = set()
    for _ in range(3):
        code = free_code(taken.__contains__, name=None, seed=host)
        assert is_code_of(code, host)
        assert not is_code_of(f"{code}-x", host)
        taken.add(code)

    assert len(taken) == 3


def test_seed_that_is_no_url_gives_the_fallback_code() -> None:
    assert free_code(lambda _code: False, name=None, seed="http://[x") == "source"
