"""What is worked out from a text: snippet, language, fingerprint, whether it calls itself archived."""

from __future__ import annotations

import pytest

from holdfast.index.capture import identify, outlinks, request_data
from holdfast.index.documents import detect_language, make_snippet, says_archived
from holdfast.urls import hash64
from holdfast.urls.address import MAX_KEY_BYTES, url_key
from holdfast.urls.links import MAX_EDGES

SENTENCE = "The ministry publishes weekly figures about vaccination in every region of the country."


def test_a_snippet_starts_with_a_sentence_and_ends_between_words() -> None:
    text = f"Menu\nWe use cookies to give you the best experience on our website.\n{SENTENCE}\n" + "More words. " * 60

    snippet = make_snippet(text, None)

    assert snippet is not None
    assert snippet.startswith("The ministry publishes")
    assert len(snippet) <= 280
    assert snippet.endswith("…")
    assert "cookie" not in snippet


@pytest.mark.parametrize(
    ("text", "description", "snippet"),
    [
        ("", None, None), ("", "Told in the head.", "Told in the head."),
        ("Short line", "Longer, told.", "Longer, told."),
        ("Short line\nAnother", None, "Short line Another"), ("We use cookies", None, "We use cookies"),
        (SENTENCE, "Not needed", SENTENCE),
    ],
)  # fmt: skip
def test_a_text_without_sentences_is_described_as_well_as_can_be(
    text: str, description: str | None, snippet: str | None
) -> None:
    assert make_snippet(text, description) == snippet


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (SENTENCE, "en"), ("Le ministère publie chaque semaine les chiffres de la vaccination dans les régions.", "fr"),
        ("Das Ministerium veröffentlicht jede Woche Zahlen über die Impfungen im ganzen Land.", "de"),
        ("Home | Contact", None), ("12 345 678 901 234 567 890", None), ("", None),
    ],
)  # fmt: skip
def test_the_language_of_a_text_is_told_if_there_is_enough_of_it(text: str, language: str | None) -> None:
    assert detect_language(text) == language


@pytest.mark.parametrize(
    ("title", "text", "archived"),
    [
        ("Archived - Flu watch", "", True), ("[ARCHIVED] Flu watch", "", True), ("Archivée : surveillance", "", True),
        ("Archives of the ministry", "", False), ("Archived", "", True), ("How files are archived", "", False),
        (None, "This page has been archived on the Web. Information…", True), ("Archived files: a guide", "", False),
        (None, "Cette page a été archivée dans le Web", True), (None, "He archived the letters in 1990.", False),
        (None, "L’information dont il est indiqué qu’elle est archivée est fournie à des fins de référence", True),
    ],
)  # fmt: skip
def test_a_page_says_itself_that_it_is_archived(title: str | None, text: str, archived: bool) -> None:
    assert says_archived(title, text) is archived


@pytest.mark.parametrize(
    ("head", "body", "data"),
    [
        (b"Content-Type: application/x-www-form-urlencoded", b"a=1&b=x+y", "__wb_method=POST&a=1&b=x+y"),
        (b"Content-Type: application/json", b'{"a": [1, {"b": true}], "c": null}',
         "__wb_method=POST&a=1&b=true&c=null"),
        (b"Content-Type: application/json", b'[{"a": 1}, {"a": 2}]', "__wb_method=POST&a=1&a.2_=2"),
        (b"Content-Type: application/json", b"{broken", "__wb_method=POST&__wb_post_data=e2Jyb2tlbg=="),
        (b"Content-Type: application/x-www-form-urlencoded", b"\xff\xfe", "__wb_method=POST&__wb_post_data=//4="),
        (b"Content-Type: image/png", b"\x89P", "__wb_method=POST&__wb_post_data=iVA="),
        (b"Content-Type: text/plain\r\nTransfer-Encoding: chunked", b'8\r\n{"a":12}\r\n0\r\n\r\n',
         "__wb_method=POST&a=12"),
        (b'Content-Type: multipart/form-data; boundary="b"',
         b'--b\r\nContent-Disposition: form-data; name="k"\r\n\r\nv\r\n--b--', "__wb_method=POST&k=v"),
        (b"X: y", b"", "__wb_method=POST"),
    ],
)  # fmt: skip
def test_what_was_posted_is_part_of_the_key(head: bytes, body: bytes, data: str) -> None:
    assert request_data("POST", b"POST / HTTP/1.1\r\n" + head + b"\r\n\r\n", body) == data


def test_a_get_adds_nothing_and_nothing_posted_is_endless() -> None:
    assert request_data("GET", b"GET / HTTP/1.1\r\n\r\n", b"") == ""
    head = b"POST / HTTP/1.1\r\nContent-Type: application/json\r\n\r\n"
    assert len(request_data("POST", head, b"[" * 60_000)) < 5000
    assert len(request_data("POST", head, b'{"a":' * 500 + b"1" + b"}" * 500)) < 5000


def test_a_monstrous_address_keeps_a_key_that_an_index_takes() -> None:
    one, other = ("http://example.org/?" + "a" * 6000 + last for last in "xy")

    assert len(url_key(one).encode()) <= MAX_KEY_BYTES
    assert url_key(one) != url_key(other)
    assert url_key(one).startswith("org,example)/?aaa")
    assert url_key("http://example.org/B") == "org,example)/b"


def test_an_address_that_nobody_would_ask_for_still_has_an_identity() -> None:
    strange = identify("http://user:secret@example.org:99999/a?b#c")

    assert strange.group == "http://user:secret@example.org:99999/a"
    assert strange.url_hash == hash64("http://user:secret@example.org:99999/a?b")


def test_outlinks_are_groups_once_each_without_assets_and_oneself() -> None:
    hrefs = ["/a", "/a?page=2", "b.html", "/style.css", "http://other.org/x#y", "javascript:void(0)", "/self", "/a#top"]

    anchors = [(href, "", "") for href in hrefs]
    found = outlinks("https://example.org/self", None, anchors, own_hash=hash64("https://example.org/self"))

    assert [to_url for _, to_url, _ in found] == [
        "https://example.org/a", "https://example.org/b.html", "http://other.org/x",
    ]  # fmt: skip
    assert all(to_hash == hash64(to_url) for to_hash, to_url, _ in found)
    many = outlinks("https://example.org/", None, [(f"/{n}", "", "") for n in range(500)], own_hash=0)
    assert len(many) == MAX_EDGES
