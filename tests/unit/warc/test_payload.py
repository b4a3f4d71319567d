"""Heads of HTTP messages, and the payload behind them, read from whatever servers and tools have written."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.warc.payload import HttpHead, parse_head, payload_chunks, split_head

HEAD = b'HTTP/1.1 200 OK\r\nContent-Type: Text/HTML; Charset="UTF-8"\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\n\r\n'


def test_a_head_says_what_it_says() -> None:
    head = parse_head(HEAD)

    assert (head.status, head.reason) == (200, "OK")
    assert head.headers[0] == ("Content-Type", 'Text/HTML; Charset="UTF-8"')
    assert head.get("content-TYPE") == 'Text/HTML; Charset="UTF-8"'
    assert head.get_all("Set-Cookie") == ("a=1", "b=2")
    assert head.get("missing") is None
    assert head.get_all("missing") == ()
    assert (head.media_type, head.charset) == ("text/html", "UTF-8")


@pytest.mark.parametrize(
    ("wire", "status", "reason", "headers"),
    [
        (b"HTTP/1.0 404\r\n\r\n", 404, "", ()),
        (b"HTTP/1.1  200  Two  Words \r\nA:b\r\n\r\n", 200, "Two  Words ", (("A", "b"),)),
        (b"HTTP/2 200\nA: b\n\n", 200, "", (("A", "b"),)),
        (b"HTTP/1.1 200 OK\r\nA: b\r\n  fold\r\n\ttoo\r\nC: d\r\n\r\n", 200, "OK", (("A", "b fold too"), ("C", "d"))),
        (b"HTTP/1.1 200 OK\r\nno colon\r\nA : b:c \r\n: e\r\n\r\nrest: of it", 200, "OK", (("A", "b:c"), ("", "e"))),
        (b"HTTP/1.1 200 \xfcbel\r\nA: \xe9\r\n\r\n", 200, "\u00fcbel", (("A", "\u00e9"),)),
        (b"HTTP/1.1 200 OK\r\nA: b", 200, "OK", (("A", "b"),)),
        (b"ICY 200 OK\r\nA: b\r\n\r\n", 0, "", (("A", "b"),)),
        (b"", 0, "", ()),
        (b"\r\n\r\n", 0, "", ()),
    ],
)  # fmt: skip
def test_odd_heads_are_read_as_far_as_they_go(
    wire: bytes, status: int, reason: str, headers: tuple[tuple[str, str], ...]
) -> None:
    assert parse_head(wire) == HttpHead(status, reason, headers)


@pytest.mark.parametrize(
    ("value", "media_type", "charset"),
    [
        ("text/html", "text/html", None),
        ("text/html;charset=latin1", "text/html", "latin1"),
        ("text/html; a=b; CHARSET = 'x-sjis' ; c", "text/html", "x-sjis"),
        ("text/html; charset=", "text/html", None),
        ("text/html, text/plain", "text/html", None),
        ("; charset=utf-8", None, "utf-8"),
        ("", None, None),
    ],
)
def test_the_content_type_is_taken_apart(value: str, media_type: str | None, charset: str | None) -> None:
    head = HttpHead(200, "", (("Content-Type", value),))

    assert (head.media_type, head.charset) == (media_type, charset)


@pytest.mark.parametrize(
    "wire",
    [
        b"A: b\r\n" * 200_000,
        b"A: b\r\n" + b" fold\r\n" * 200_000,
        b"x" * 1_000_000,
        b"\r\n " * 300_000,
        b"A: b\r\n c" + b" " * 2_000_000 + b"d\r\n\r\n",
        b"A: b" + b"\t \r" * 500_000 + b"\r\n c\r\n\r\n",
    ],
    ids=["headers", "folded", "one line", "blank lines", "a run of blanks", "blanks and returns"],
)
def test_a_hostile_head_is_read_in_linear_time(wire: bytes) -> None:
    head = parse_head(b"HTTP/1.1 200 OK\r\n" + wire)

    assert head.status == 200
    assert len(head.headers) <= 10_000


@pytest.mark.parametrize("ending", [b"\r\n\r\n", b"\n\n", b"\r\n\n", b"\n\r\n"])
def test_a_block_is_split_at_its_first_empty_line(ending: bytes) -> None:
    head, body = split_head(b"HTTP/1.1 200 OK" + ending + b"body\r\n\r\nmore")

    assert head == b"HTTP/1.1 200 OK" + ending
    assert body == b"body\r\n\r\nmore"


def test_a_block_without_empty_line_is_all_head() -> None:
    assert split_head(b"HTTP/1.1 200 OK\r\nA: b\r\n") == (b"HTTP/1.1 200 OK\r\nA: b\r\n", b"")


class _Body:
    """The smallest body there is."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = pieces
        self.size = sum(map(len, pieces))

    def chunks(self) -> Iterator[bytes]:
        return iter(self._pieces)

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("headers", "is_chunked"),
    [
        ((("Transfer-Encoding", "chunked"),), True),
        ((("transfer-encoding", "gzip, Chunked "),), True),
        ((("Transfer-Encoding", "gzip"), ("Transfer-Encoding", "chunked")), True),
        ((("Transfer-Encoding", "chunked, gzip"),), False),
        ((("Transfer-Encoding", "identity"),), False),
        ((), False),
    ],
)
def test_the_payload_is_the_body_without_its_chunks(headers: tuple[tuple[str, str], ...], is_chunked: bool) -> None:
    head = HttpHead(200, "", headers)
    wire = b"5\r\nhello\r\n0\r\n\r\n"

    assert b"".join(payload_chunks(head, _Body(wire[:4], wire[4:]))) == (b"hello" if is_chunked else wire)
    assert b"".join(payload_chunks(head, [wire])) == (b"hello" if is_chunked else wire)
