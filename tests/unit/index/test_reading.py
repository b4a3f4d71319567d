"""Reading files of unknown origin: what is whole is kept, what is broken is named."""

from __future__ import annotations

import gzip
import random
import tracemalloc
import zlib
from base64 import b32encode
from datetime import UTC, datetime
from hashlib import sha1
from pathlib import Path

import pytest
import zstandard

from holdfast.clock import from_micros
from holdfast.parse.document import DocumentKind
from tests.unit.index.files import read, record, response, write
from tests.unit.warc.archives import write as write_ours

GOOD = [record(response(b"<p>%d</p>" % n), url=f"http://example.org/{n}") for n in range(4)]
MEMBERS = [gzip.compress(one) for one in GOOD]


def _urls(path: Path) -> list[str]:
    return [capture.url.rpartition("/")[2] for capture in read(path).captures]


def _flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes((data[at] ^ 0x10,)) + data[at + 1 :]


@pytest.mark.parametrize(
    ("content", "kept", "kind"),
    [
        (b"".join(MEMBERS)[:-20], "0123", "truncated"),
        (MEMBERS[0] + _flipped(MEMBERS[1], len(MEMBERS[1]) - 6) + MEMBERS[2], "02", "gzip_checksum"),
        (MEMBERS[0] + b"garbage between" + MEMBERS[1], "01", "garbage"),
        (b"".join(MEMBERS) + bytes(4096), "0123", "garbage"),
        (b"", "", "empty_file"),
        (b"WARC/1.0", "", "record_header"),
        (b"WARC/1.0\r\n\r\n", "", "record_header"),
        (b"".join(GOOD)[:-60], "012", "truncated"),
        (GOOD[0] + b"no record\r\n\r\n" + GOOD[1], "01", "record_header"),
        (b"<html>no archive at all</html>", "", "garbage"),
    ],
)
def test_whole_records_are_kept_and_damage_is_named_with_its_place(
    tmp_path: Path, content: bytes, kept: str, kind: str
) -> None:
    path = tmp_path / "x.warc.gz"
    path.write_bytes(content)

    found = read(path)

    assert "".join(_urls(path)) == kept
    assert list(found.kinds) == [kind]
    assert found.reading.warnings.kinds[kind]["detail"]


def test_plain_zstd_and_gzip_read_alike(tmp_path: Path) -> None:
    dictionary = zstandard.train_dictionary(1024, [one + bytes((n,)) * 9 for n in range(40) for one in GOOD])
    packed = [zstandard.ZstdCompressor(dict_data=dictionary).compress(one) for one in GOOD]
    raw = dictionary.as_bytes()
    frames = b"\x5d\x2a\x4d\x18" + len(raw).to_bytes(4, "little") + raw
    for name, content in (
        ("a.warc", b"".join(GOOD)),
        ("b.warc.gz", b"".join(MEMBERS)),
        ("c.warc.zst", frames + b"".join(packed)),
    ):
        (tmp_path / name).write_bytes(content)
        assert _urls(tmp_path / name) == ["0", "1", "2", "3"], name


def test_several_records_in_one_member_cannot_be_sought_and_are_said_to(tmp_path: Path) -> None:
    (tmp_path / "x.warc.gz").write_bytes(gzip.compress(b"".join(GOOD)))

    found = read(tmp_path / "x.warc.gz")

    assert found.kinds == {"not_seekable": 3}
    assert len(found.captures) == 1


@pytest.mark.parametrize("length", ["99999999999", "-1", None, "12\r\nContent-Length: 12", "+5", " 5 ", "9e3", "٥"])
def test_a_length_that_is_none_costs_its_record_and_no_other(tmp_path: Path, length: str | None) -> None:
    path = write(tmp_path / "x.warc.gz", GOOD[0], record(length=length), GOOD[1])

    found = read(path)

    assert [capture.url[-1] for capture in found.captures] == ["0", "1"]
    assert sum(found.kinds.values()) == 1


@pytest.mark.parametrize(
    "more",
    [b"X: " + b"y" * 10_000_000 + b"\r\n", b"X: y\r\n" * 1_000_000, b"X-" + b"y" * 200_000 + b": 1\r\n"],
    ids=["line of 10 MB", "a million lines", "long name"],
)
def test_an_endless_head_costs_its_record_and_no_memory(tmp_path: Path, more: bytes) -> None:
    path = write(tmp_path / "x.warc.gz", GOOD[0], record(more=more), GOOD[1])
    del more
    tracemalloc.start()

    found = read(path)

    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [capture.url[-1] for capture in found.captures] == ["0", "1"]
    assert found.kinds == {"record_header": 1}
    assert peak < 8_000_000


def test_a_bomb_in_a_member_is_hashed_and_not_held(tmp_path: Path) -> None:
    size = 24 * 1024 * 1024
    head = b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\n\r\n"
    start = record(b"", length=str(size + len(head))).removesuffix(b"\r\n\r\n") + head
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    packed = packer.compress(start) + b"".join(packer.compress(bytes(1 << 20)) for _ in range(24))
    packed += packer.compress(b"\r\n\r\n") + packer.flush()
    (tmp_path / "x.warc.gz").write_bytes(packed + MEMBERS[0])
    tracemalloc.start()

    found = read(tmp_path / "x.warc.gz")

    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [capture.body_bytes for capture in found.captures] == [size, 8]
    assert found.captures[0].body_hash is not None
    assert peak < 16_000_000


@pytest.mark.parametrize("coding", ["gzip", "gzip, gzip"])
def test_a_bomb_in_a_body_stops_at_the_caps_and_is_noted(tmp_path: Path, coding: str) -> None:
    body = gzip.compress(bytes(60_000_000), 1)
    if coding == "gzip, gzip":
        body = gzip.compress(body)
    headers = f"Content-Type: text/html\r\nContent-Encoding: {coding}\r\n".encode()
    path = write(tmp_path / "x.warc", record(response(body, headers)), GOOD[0], packed=False)

    bomb, good = read(path).captures

    assert {"too_large", "ratio_exceeded"} & set(bomb.problems)
    assert (bomb.body_hash, bomb.body) == (None, b"")
    assert good.problems == []


@pytest.mark.parametrize(
    ("date", "moment"),
    [
        ("0000-00-00T00:00:00Z", "2024-03-01T10:00:00+00:00"),
        ("9999-12-31T23:59:59Z", "2024-03-01T10:00:00+00:00"),
        ("1970-01-01T00:00:00Z", "2024-03-01T10:00:00+00:00"),
        ("yesterday", "2024-03-01T10:00:00+00:00"),
        (None, "2024-03-01T10:00:00+00:00"),
        ("2024-03-05T08:00:00", "2024-03-05T08:00:00+00:00"),
    ],
)
def test_a_date_that_is_none_is_replaced_and_noted(tmp_path: Path, date: str | None, moment: str) -> None:
    block = response(b"x", b"Content-Type: text/html\r\nDate: Fri, 01 Mar 2024 10:00:00 GMT\r\n")

    (capture,) = read(write(tmp_path / "x.warc.gz", record(block, date=date))).captures

    assert capture.problems == ["bad_date"]
    assert from_micros(capture.captured_at).isoformat() == moment


@pytest.mark.parametrize("served", [b"", b"Date: Fri, 01 Mar 2024 10:00:00 GMT\r\n"])
@pytest.mark.parametrize("year", [1970, 2019, 2026, 2077])
def test_a_date_is_what_the_record_says_whatever_the_time_is_here(tmp_path: Path, year: int, served: bytes) -> None:
    """A machine whose clock is years behind reads a file again: dates stay, and what looks odd is only told."""
    block = response(b"x", b"Content-Type: text/html\r\n" + served)
    info = record(b"software: x\r\n", kind="warcinfo", url=None, date="2018-01-01T00:00:00Z")
    path = write(tmp_path / "x.warc.gz", info, record(block, date="2024-03-05T08:00:00Z"))

    found = read(path, now=datetime(year, 1, 1, tzinfo=UTC))

    assert [from_micros(capture.captured_at).isoformat() for capture in found.captures] == ["2024-03-05T08:00:00+00:00"]
    assert found.captures[0].problems == []
    assert ("future_date" in found.kinds) is (year < 2024)


def test_nanoseconds_and_short_dates_are_dates(tmp_path: Path) -> None:
    dates = ["2024-03-01T12:00:00.123456789Z", "2024-03-01T12:00:00+02:00", "2024", "2024-03-01"]

    captures = read(write(tmp_path / "x.warc.gz", *(record(date=date) for date in dates))).captures

    assert [capture.problems for capture in captures] == [[]] * 4
    assert from_micros(captures[0].captured_at).microsecond == 123456
    assert from_micros(captures[1].captured_at).hour == 10


def test_a_capture_without_any_date_is_left_out_with_a_reason(tmp_path: Path) -> None:
    found = read(write(tmp_path / "x.warc.gz", record(date="never"), GOOD[0]))

    assert len(found.captures) == 1
    assert found.reading.warnings.kinds["bad_date"]["detail"] == "WARC-Date is 'never'; left out"


@pytest.mark.parametrize(
    ("digest", "problems"),
    [
        (b"sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", ["digest_mismatch"]),
        (b"sha256:00", ["digest_mismatch"]),
        (b"whirlpool:abc", ["digest_unknown"]),
        (b"nothing", ["digest_unknown"]),
        (b"sha1:" + b32encode(sha1(b"<p>Digest</p>").digest()), []),
        (b"sha-1:" + sha1(b"<p>Digest</p>").hexdigest().upper().encode(), []),
    ],
)
def test_a_wrong_digest_is_flagged_and_the_capture_kept(tmp_path: Path, digest: bytes, problems: list[str]) -> None:
    more = b"WARC-Payload-Digest: " + digest + b"\r\n"

    (capture,) = read(write(tmp_path / "x.warc.gz", record(response(b"<p>Digest</p>"), more=more))).captures

    assert capture.problems == problems
    assert capture.payload_digest == digest.decode()
    assert capture.body == b"<p>Digest</p>"


def test_what_is_no_capture_of_the_web_is_counted(tmp_path: Path) -> None:
    path = write(
        tmp_path / "x.warc.gz",
        record(b"a: b", kind="warcinfo", url=None),
        record(url="dns:example.org"),
        record(b"x", kind="metadata"),
        record(b"y", kind="resource", url="urn:pageinfo:x"),
        GOOD[0],
        record(b"z", kind="conversion"),
    )

    found = read(path)

    assert len(found.captures) == 1
    assert found.reading.kinds == {
        "warcinfo": 1,
        "response": 2,
        "metadata": 1,
        "resource": 1,
        "conversion": 1,
        "other_scheme": 2,
    }
    assert found.reading.records == 6


def test_bits_that_flip_are_noticed_wherever_they_are(tmp_path: Path) -> None:
    sealed, _ = write_ours(tmp_path, 6)
    whole = sealed.path.read_bytes()
    truth = {capture.id: (capture.url, capture.body_hash) for capture in read(sealed.path).captures}
    chance, path = random.Random(12), tmp_path / "flipped.warc.gz"
    for _ in range(500):
        at = chance.randrange(len(whole))
        path.write_bytes(whole[:at] + bytes((whole[at] ^ (1 << chance.randrange(8)),)) + whole[at + 1 :])

        found = read(path)

        for capture in found.captures:
            assert (capture.url, capture.body_hash) == truth[capture.id] or capture.problems, at
        assert len(found.captures) == len(truth) or found.reading.warnings.total, at
        assert len(found.captures) >= len(truth) - 1


def test_a_damaged_length_moves_no_id(tmp_path: Path) -> None:
    sealed, _ = write_ours(tmp_path, 4)
    whole = sealed.path.read_bytes()
    truth = [capture.id for capture in read(sealed.path).captures]
    path = tmp_path / "flipped.warc.gz"
    for at in range(10, 20):  # the hexadecimal digits of the first member's length
        for bit in range(8):
            path.write_bytes(whole[:at] + bytes((whole[at] ^ (1 << bit),)) + whole[at + 1 :])

            found = read(path)

            assert [capture.id for capture in found.captures] == truth, (at, bit)
            assert found.reading.warnings.total <= 1


def test_a_whole_member_in_front_of_garbage_is_kept(tmp_path: Path) -> None:
    sealed, _ = write_ours(tmp_path, 4)
    truth = [capture.id for capture in read(sealed.path).captures]
    path = tmp_path / "tail.warc.gz"
    path.write_bytes(sealed.path.read_bytes() + bytes(5000))

    assert [capture.id for capture in read(path).captures] == truth


def test_a_page_is_what_its_bytes_and_its_type_say(tmp_path: Path) -> None:
    cases = [
        (b"text/html", b"<p>x", DocumentKind.HTML),
        (b"", b"<!doctype html><p>x", DocumentKind.HTML),
        (b"text/plain", b"x", DocumentKind.TEXT),
        (b"application/pdf", b"%PDF-1.4 x", DocumentKind.PDF),
        (b"text/html", b"%PDF-1.4 x", DocumentKind.PDF),
        (b"image/png", b"\x89PNG\r\n\x1a\n", DocumentKind.OTHER),
        (b"text/css", b"a{}", DocumentKind.OTHER),
        (b"image/svg+xml", b"<svg>", DocumentKind.OTHER),
        (b"application/json", b"{}", DocumentKind.OTHER),
        (b"text/html", b"PK\x03\x04xxxx", DocumentKind.OTHER),
        (b"text/xml", b"<rss/>", DocumentKind.OTHER),
        (b"", b' {"name": "RFG"}', DocumentKind.OTHER),
        (b"text/plain", b'{"name": "RFG"}', DocumentKind.TEXT),
    ]
    records = [record(response(body, b"Content-Type: " + kind + b"\r\n")) for kind, body, _ in cases]

    captures = read(write(tmp_path / "x.warc.gz", *records)).captures

    assert [capture.kind for capture in captures] == [kind for _, _, kind in cases]
    assert [capture.is_page for capture in captures] == [kind is not DocumentKind.OTHER for _, _, kind in cases]


def test_a_request_gives_its_capture_a_key_wherever_it_stands(tmp_path: Path) -> None:
    sent = b"POST /form HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\n\r\nb=2&a=1"
    url, rid = "http://example.org/form", b"<urn:uuid:00000000-0000-4000-8000-1>"
    to = b"WARC-Concurrent-To: " + rid + b"\r\n"
    request = record(sent, kind="request", url=url)
    for name, records in {
        "before": [request, record(url=url)],
        "after": [record(url=url), record(sent, kind="request", url=url, more=to)],
        "after, unnamed": [record(url=url), request],
        "far before": [request, GOOD[0], record(url=url, more=to)],
    }.items():
        captures = read(write(tmp_path / f"{name}.warc.gz", *records)).captures

        assert [(one.method, one.identity.url_key) for one in captures if one.url == url] == [
            ("POST", "org,example)/form?__wb_method=post&a=1&b=2")
        ], name
        assert all(one.method is None for one in captures if one.url != url), name


@pytest.mark.parametrize(
    ("url", "body", "headers", "is_page"),
    [
        ("http://example.org/robots.txt", b"User-agent: *", b"Content-Type: text/plain\r\n", False),
        ("http://example.org/ROBOTS.txt?x#y", b"<p>Not here</p>", b"Content-Type: text/html\r\n", False),
        ("http://example.org/a/robots.txt", b"About robots.txt", b"Content-Type: text/plain\r\n", True),
        (
            "http://example.org/map",
            b"<?xml version='1.0'?>\n<!-- x -->\n<urlset>",
            b"Content-Type: text/plain\r\n",
            False,
        ),
        ("http://example.org/map", b"\xef\xbb\xbf<s:sitemapindex xmlns:s='x'>", b"Content-Type: text/html\r\n", False),
        ("http://example.org/map", b"<p>A sitemap begins with &lt;urlset></p>", b"Content-Type: text/html\r\n", True),
    ],
)
def test_what_only_crawlers_ask_for_is_no_page(
    tmp_path: Path, url: str, body: bytes, headers: bytes, is_page: bool
) -> None:
    (capture,) = read(write(tmp_path / "a.warc.gz", record(response(body, headers), url=url))).captures

    assert capture.is_page is is_page
    assert bool(capture.body) is is_page


@pytest.mark.parametrize(
    ("purpose", "is_page"), [("robots", False), ("sitemap", False), (" Feed ", False), ("page", True), ("", True)]
)
@pytest.mark.parametrize("kind", ["response", "revisit"])
def test_what_the_crawler_asked_for_itself_is_no_page_wherever_it_stands(
    tmp_path: Path, kind: str, purpose: str, is_page: bool
) -> None:
    field = f"Holdfast-Purpose: {purpose}\r\n".encode()
    made = record(response(b"<p>Not found</p>"), kind=kind, url="http://example.org/news", more=field)

    (capture,) = read(write(tmp_path / "a.warc.gz", made)).captures

    assert capture.is_page is is_page


def test_captures_that_are_not_of_the_web_say_why_they_are_none(tmp_path: Path) -> None:
    urls = ("ftp://example.org/a", "file:///a", "dns:example.org", "http://example.org/")
    found = read(write(tmp_path / "a.warc.gz", *(record(b"x", kind="resource", url=url) for url in urls)))

    assert found.kinds == {"other_scheme": 2}
    assert "only http and https" in found.reading.warnings.kinds["other_scheme"]["detail"]
    assert len(found.captures) == 1


def test_bytes_beyond_the_stated_length_are_noted(tmp_path: Path) -> None:
    longer = record(response(b"font\r\n", b"Content-Type: font/woff2\r\nContent-Length: 4\r\n"))
    exact = record(response(b"font", b"Content-Type: font/woff2\r\nContent-Length: 4\r\n"))

    found = read(write(tmp_path / "a.warc.gz", longer, exact))

    assert [capture.problems for capture in found.captures] == [["beyond_content_length"], []]
    assert found.kinds == {"beyond_content_length": 1}


def test_a_digest_that_was_made_over_the_chunks_is_no_sign_of_tampering(tmp_path: Path) -> None:
    wire = b"3\r\nabc\r\n0\r\n\r\n"
    block = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: image/png\r\n\r\n" + wire
    digests = [b32encode(sha1(data).digest()) for data in (wire, b"abc", b"other")]
    records = [record(block, more=b"WARC-Payload-Digest: sha1:" + digest + b"\r\n") for digest in digests]

    found = read(write(tmp_path / "a.warc.gz", *records))

    assert [capture.problems for capture in found.captures] == [["digest_of_chunks"], [], ["digest_mismatch"]]
    assert found.kinds == {"digest_mismatch": 1}


def test_types_of_its_own_making_are_counted_together(tmp_path: Path) -> None:
    made = [record(response(b"<p>Words</p>"), kind=f"odd{number}", url="http://example.org/") for number in range(50)]

    assert read(write(tmp_path / "a.warc.gz", *made)).reading.kinds == {"unknown": 50}
