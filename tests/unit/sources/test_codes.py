"""Codes that are made from the names of sources."""

from __future__ import annotations

import pytest

from holdfast.sources.codes import code_from


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
