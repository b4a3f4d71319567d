"""What a body is, whatever its server called it."""

from __future__ import annotations

import pytest

from holdfast.parse.charset import BodyForm, Sniffed, media_type_of, sniff

_ZIP = b"PK\x03\x04" + bytes(100)
_PDF = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj"


@pytest.mark.parametrize(
    ("media_type", "body", "expected"),
    [
        ("text/html", b"<p>x", Sniffed(BodyForm.HTML)),
        ("TEXT/HTML ; charset=utf-8", b"anything", Sniffed(BodyForm.HTML)),
        ("text/html", _PDF, Sniffed(BodyForm.OTHER, True)),
        ("text/html", _ZIP, Sniffed(BodyForm.OTHER, True)),
        ("text/html", b"MZ\x90\0" + bytes(200), Sniffed(BodyForm.OTHER, True)),
        ("text/html", b"\0\0\0\x20ftypisom" + bytes(range(32)) * 20, Sniffed(BodyForm.OTHER, True)),
        ("text/html", bytes(range(32)) * 20, Sniffed(BodyForm.OTHER, True)),
        ("text/html", b"\0" * 600, Sniffed(BodyForm.OTHER, True)),
        ("text/html", "<p>utf-16".encode("utf-16-le"), Sniffed(BodyForm.HTML)),
        ("text/html", "<p>utf-16".encode("utf-16"), Sniffed(BodyForm.HTML)),
        ("text/html", b"<p>a\x07few\x01controls in a long enough page", Sniffed(BodyForm.HTML)),
        ("text/html", b"", Sniffed(BodyForm.HTML)),
        ("application/xhtml+xml", b"<html/>", Sniffed(BodyForm.HTML)),
        ("image/svg+xml", b"<svg/>", Sniffed(BodyForm.HTML)),
        ("text/plain", b"just text", Sniffed(BodyForm.TEXT)),
        ("text/plain", b"<b>some markup", Sniffed(BodyForm.TEXT)),
        ("text/plain", b"\xef\xbb\xbf\n<!-- hi --><!DOCTYPE html><p>", Sniffed(BodyForm.HTML, True)),
        ("text/plain", b" <HTML>", Sniffed(BodyForm.HTML, True)),
        ("text/plain", _PDF, Sniffed(BodyForm.OTHER, True)),
        (None, b"<!doctype html>", Sniffed(BodyForm.HTML, True)),
        (None, b"<div class=x>", Sniffed(BodyForm.HTML, True)),
        (None, b"<?xml version='1.0'?><rss>", Sniffed(BodyForm.XML)),
        (None, b"<?xml version='1.0'?><html xmlns='x'>", Sniffed(BodyForm.HTML, True)),
        (None, b"hello", Sniffed(BodyForm.TEXT)),
        (None, _PDF, Sniffed(BodyForm.OTHER)),
        (None, b"", Sniffed(BodyForm.OTHER)),
        ("application/octet-stream", b"<html>", Sniffed(BodyForm.HTML, True)),
        ("application/octet-stream", _ZIP, Sniffed(BodyForm.OTHER)),
        ("application/pdf", _PDF, Sniffed(BodyForm.OTHER)),
        ("application/pdf", b"<html>", Sniffed(BodyForm.OTHER)),
        ("image/png", b"\x89PNG\r\n\x1a\n", Sniffed(BodyForm.OTHER)),
        ("text/css", b"a{}", Sniffed(BodyForm.CSS)),
        ("application/rss+xml", b"<rss>", Sniffed(BodyForm.XML)),
        ("application/xml", b"<html>", Sniffed(BodyForm.HTML, True)),
        ("application/json", b"{}", Sniffed(BodyForm.OTHER)),
        ("nonsense", b"<html>", Sniffed(BodyForm.OTHER)),
    ],
)
def test_a_body_goes_to_the_right_reader(media_type: str | None, body: bytes, expected: Sniffed) -> None:
    assert sniff(body, media_type) == expected


def test_a_kilobyte_of_parameters_does_not_matter() -> None:
    assert media_type_of("text/html;" + "x=y;" * 10_000) == "text/html"


def test_only_the_first_bytes_are_looked_at() -> None:
    assert sniff(b"x" * 512 + b"\0" * 10_000_000, "text/html") == Sniffed(BodyForm.HTML)
