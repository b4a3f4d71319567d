"""Rules that a source names instead of writing them."""

from __future__ import annotations

import pytest

from holdfast.sources.config import SourceRefused, read_config
from holdfast.urls.scope import EXCLUDE_PRESETS, Patterns
from holdfast.zimit.passthrough import crawl_flags


@pytest.mark.parametrize(
    ("name", "matched", "passed"),
    [
        ("assets", "https://a.example/x.css?v=2", "https://a.example/css/"),
        ("media", "https://a.example/x.JPG".lower(), "https://a.example/jpg"),
        ("downloads", "https://a.example/x.zip", "https://a.example/zip/"),
        ("accounts", "https://a.example/login?next=/", "https://a.example/logins-of-the-past"),
        ("admin", "https://a.example/wp-admin/", "https://a.example/administration"),
        ("shops", "https://a.example/cart", "https://a.example/cartography"),
        ("tags", "https://a.example/tag/x", "https://a.example/tagged"),
        ("searches", "https://a.example/?q=x", "https://a.example/research"),
        ("calendars", "https://a.example/events/2026-01", "https://a.example/events/"),
        ("sorting", "https://a.example/?sort=name", "https://a.example/sort"),
    ],
)
def test_preset_matches_what_it_is_named_for(name: str, matched: str, passed: str) -> None:
    rules = Patterns([f"preset:{name}"])

    assert (rules.first(matched), rules.first(passed)) == (f"preset:{name}", None)


def test_every_preset_has_a_case() -> None:
    assert len(EXCLUDE_PRESETS) == 10


def test_unknown_preset_is_refused_with_the_known_ones() -> None:
    with pytest.raises(SourceRefused, match="unknown preset; expected one of: assets, media"):
        read_config({"seeds": ["https://a.example/"], "exclude": ["preset:nothing"]})


def test_zimit_gets_the_expression_of_a_preset() -> None:
    config = read_config({"seeds": ["https://a.example/"], "backend": "zimit", "exclude": ["preset:shops", "/old/"]})
    flags = crawl_flags(config)

    rule = flags[flags.index("--scopeExcludeRx") + 1]
    assert rule == f"(?:{EXCLUDE_PRESETS['shops']})|(?:/old/)"
