"""Heads, dates and digests: written one way, read in every way that is in use."""

from __future__ import annotations

import base64
import hashlib
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import Invalid
from holdfast.warc.record import (
    BadHead,
    agrees,
    format_date,
    format_head,
    hasher_for,
    parse_date,
    parse_head,
    sha256_of,
)


def test_a_head_comes_back_as_it_was_written() -> None:
    fields = (("WARC-Type", "response"), ("WARC-Target-URI", "http://example.org/ä?x=1"), ("Content-Length", "5"))

    head = parse_head(format_head(fields))

    assert head.version == "WARC/1.1"
    assert head.fields == fields
    assert (head.type, head.url, head.content_length) == ("response", "http://example.org/ä?x=1", 5)


def test_names_are_found_whatever_their_case_and_the_first_of_two_wins() -> None:
    head = parse_head(b"WARC/1.0\r\nwarc-type: Response\r\nX: 1\r\nx: 2\r\n\r\n")

    assert head.type == "response"
    assert head.get("X") == "1"
    assert head.every("x") == ("1", "2")


def test_a_folded_line_belongs_to_the_one_before_it() -> None:
    assert parse_head(b"WARC/1.0\r\nWARC-Filename: a\r\n b\r\n\r\n").get("WARC-Filename") == "a b"


def test_brackets_of_old_writers_are_taken_off_the_address() -> None:
    assert parse_head(b"WARC/1.0\r\nWARC-Target-URI: <http://example.org/>\r\n\r\n").url == "http://example.org/"
    assert parse_head(b"WARC/1.0\r\nWARC-Target-URI: http://example.org/?<b>\r\n\r\n").url == "http://example.org/?<b>"


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"WARC/1\r\n\r\n",
        b"WARC/1.1\r\nno colon\r\n\r\n",
        b"WARC/1.1\r\n: empty name\r\n\r\n",
        b"WARC/1.1\r\nName : x\r\n\r\n",
        b"\x00\xff",
    ],
)
def test_what_is_no_head_is_refused(raw: bytes) -> None:
    with pytest.raises(BadHead):
        parse_head(raw)


@pytest.mark.parametrize("lengths", [(), ("-1",), ("+5",), (" 5 ",), ("5", "5"), ("٥",), ("9" * 20,), ("0x5",), ("",)])
def test_a_length_that_could_be_read_in_two_ways_is_refused(lengths: tuple[str, ...]) -> None:
    fields = "".join(f"Content-Length: {length}\r\n" for length in lengths)
    head = parse_head(f"WARC/1.1\r\n{fields}\r\n".encode())

    with pytest.raises(BadHead):
        _ = head.content_length


@settings(max_examples=40)
@given(st.lists(st.tuples(st.from_regex(r"[A-Za-z-]{1,20}", fullmatch=True), st.text(max_size=40)), max_size=8))
def test_a_value_never_becomes_a_line_of_its_own(fields: list[tuple[str, str]]) -> None:
    try:
        raw = format_head(fields)
    except (Invalid, UnicodeEncodeError):
        return
    assert len(parse_head(raw).fields) == len(fields)


def test_the_instant_survives_to_the_microsecond_and_in_any_zone() -> None:
    moment = datetime(2026, 9, 1, 12, 0, 0, 42, tzinfo=timezone(timedelta(hours=2)))

    assert format_date(moment) == "2026-09-01T10:00:00.000042Z"
    assert parse_date(format_date(moment)) == moment


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2006-09-19T17:20:14Z", datetime(2006, 9, 19, 17, 20, 14, tzinfo=UTC)),
        ("2006-09-19T17:20:14.5Z", datetime(2006, 9, 19, 17, 20, 14, 500000, tzinfo=UTC)),
        ("2006-09-19T17:20:14.123456789Z", datetime(2006, 9, 19, 17, 20, 14, 123456, tzinfo=UTC)),
        ("2006-09-19T17:20:14+02:00", datetime(2006, 9, 19, 15, 20, 14, tzinfo=UTC)),
        ("2006-09-19T17:20Z", datetime(2006, 9, 19, 17, 20, tzinfo=UTC)),
        ("2006-09", datetime(2006, 9, 1, tzinfo=UTC)),
        ("2016-12-31T23:59:60Z", datetime(2016, 12, 31, 23, 59, 59, tzinfo=UTC)),
    ],
)
def test_dates_of_every_precision_are_understood(text: str, moment: datetime) -> None:
    assert parse_date(text) == moment


@pytest.mark.parametrize("text", ["", "yesterday", "2006-13-01T00:00:00Z", "0000-01-01T00:00:00Z", "20060919172014",
                                  "2006-09-19T17:20:14", "9999-12-31T23:59:59-23:00"])  # fmt: skip
def test_what_is_no_date_is_refused(text: str) -> None:
    with pytest.raises(BadHead):
        parse_date(text)


def test_digests_agree_in_hex_base32_and_base64_and_with_either_spelling_of_the_algorithm() -> None:
    digest = hashlib.sha256(b"hello").digest()
    spellings = [
        digest.hex(),
        digest.hex().upper(),
        base64.b32encode(digest).decode(),
        base64.b64encode(digest).decode(),
    ]

    for label in [f"{name}:{value}" for name in ("sha256", "SHA-256") for value in spellings]:
        hasher = hasher_for(label)
        assert hasher is not None
        hasher.update(b"hello")
        assert agrees(label, hasher), label
        hasher.update(b"!")
        assert not agrees(label, hasher), label
    assert sha256_of((b"hel", b"lo")) == f"sha256:{digest.hex()}"


def test_an_unknown_algorithm_and_an_odd_value_are_no_agreement() -> None:
    assert hasher_for("crc99:abc") is None
    hasher = hasher_for("sha1:")
    assert hasher is not None
    for value in ("", "zz", "ÄÖ", "====", "A" * 33):
        assert not agrees(f"sha1:{value}", hasher)


def test_bytes_of_an_address_that_are_not_utf8_are_percent_encoded_and_no_other_is_touched() -> None:
    head = parse_head(b"WARC/1.0\r\nWARC-Target-URI: <http://example.org/?cat=\xe9&x=\xc3\xa9>\r\nX: a\xe9\r\n\r\n")

    assert head.url == "http://example.org/?cat=%E9&x=\u00e9"
    assert head.is_url_encoded_anew
    assert head.get("X") == "a\ufffd"
    assert not parse_head("WARC/1.0\r\nWARC-Target-URI: http://example.org/\u00e9\r\n\r\n".encode()).is_url_encoded_anew


def test_the_version_may_be_written_in_lower_case() -> None:
    assert parse_head(b"warc/1.0\r\nWARC-Type: response\r\n\r\n").version == "WARC/1.0"


def test_a_head_of_folded_lines_is_read_in_linear_time() -> None:
    head = parse_head(b"WARC/1.0\r\nA: b\r\n" + b" c\r\n" * 2_000_000 + b"D: e\r\n\r\n")

    assert (head.get("D"), len(head.get("A") or "")) == ("e", 4_000_001)
