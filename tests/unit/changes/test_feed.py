"""The feed of changes: what hostile pages and sources call themselves stays text inside well-formed XML."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime

import pytest
from lxml import etree

from holdfast.changes.listing import rss
from holdfast.changes.records import ChangeEvent

_HOSTILE = [
    "<script>alert(1)</script>", "]]><x/>", '" onload="x', "&lt;b&gt; &amp; &unknown;", "{{7*7}} ${7*7} %s%n",
    "=cmd|' /C calc'!A0", "a\x00b\x1b[31mc\ud800d\ufffe",
]  # fmt: skip


def _event(text: str) -> ChangeEvent:
    moment = datetime(2026, 3, 1, tzinfo=UTC)
    empty = dict.fromkeys(one.name for one in fields(ChangeEvent))
    return ChangeEvent(**{  # type: ignore[arg-type]
        **empty, "id": 1, "type": "updated", "source_code": "x", "source_name": text, "group": f"https://x.test/{text}",
        "to_snapshot_id": 7, "to_captured_at": moment, "to_execution_id": 1,
    })  # fmt: skip


@pytest.mark.parametrize("text", _HOSTILE)
def test_whatever_pages_and_sources_are_called_the_feed_is_well_formed_and_their_words_are_text(text: str) -> None:
    feed = etree.fromstring(rss([_event(text)], site="https://archive.test", title=text))

    sayable = "".join(char for char in text if char.isprintable() and char != "\ud800")
    assert {element.tag for element in feed.iter()} == {
        "rss", "channel", "title", "link", "description", "lastBuildDate", "item", "guid", "pubDate", "category",
    }  # fmt: skip
    assert [found.text for found in feed.iter("title")] == [sayable, f"{sayable}: https://x.test/{sayable}"]
    assert all(not element.attrib for element in feed.iter() if element.tag not in ("rss", "guid"))
