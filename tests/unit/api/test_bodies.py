"""What may come in: small, plain, flat JSON."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator

import pytest
from starlette.types import Receive, Scope, Send

from holdfast.api.middleware.bodies import DEPTH, VALUES, Bodies, JsonShape
from tests.client import Client

_JSON = {"content-type": "application/json"}
_GOOD = {"category": "general_feedback", "description": "This is a sentence of enough characters."}


def _send(client: Client, body: bytes, **headers: str) -> tuple[int, str]:
    answer = client.post(
        "/api/reports", content=body, headers={**_JSON, **{k.replace("_", "-"): v for k, v in headers.items()}}
    )
    return answer.status_code, answer.json()["code"] if answer.status_code >= 400 else ""


def test_a_body_of_a_mebibyte_is_read_and_one_byte_more_is_not(empty_client: Client) -> None:
    padding = b" " * (1024**2 - 2)

    assert _send(empty_client, b"{}" + padding) == (422, "invalid")
    assert _send(empty_client, b"{} " + padding) == (413, "body_too_large")


def test_a_body_that_hides_its_length_is_cut_off(empty_client: Client) -> None:
    async def endless() -> object:
        for _ in range(20):
            yield b"x" * 65536 * 2

    answer = empty_client.post("/api/reports", content=endless(), headers=_JSON)

    assert answer.status_code == 413
    assert answer.json()["error"] == "Payload Too Large"


def test_a_get_with_a_large_body_is_refused_too(empty_client: Client) -> None:
    assert empty_client.request("GET", "/api/stats", content=b"x" * (1024**2 + 1)).status_code == 413


def test_a_body_that_does_not_arrive_in_time_is_given_up_without_a_route() -> None:
    """Half of it comes, then nothing: the connection is not held for ever, and nothing behind hears of it."""
    reached: list[Scope] = []

    async def route(scope: Scope, _receive: Receive, _send: Send) -> None:
        reached.append(scope)

    async def half() -> AsyncIterator[bytes]:
        yield b'{"category": '
        await asyncio.Event().wait()

    client = Client(Bodies(route, limit=1024, arrival_s=0.05))
    answer = client.post("/api/reports", content=half(), headers=_JSON)
    client.close()

    assert (answer.status_code, answer.json()["code"]) == (408, "body_too_slow")
    assert reached == []


@pytest.mark.parametrize(
    ("media_type", "status"),
    [("application/json", 201), ("application/json; charset=utf-8", 201), ("text/plain", 415), ("", 415),
     ("multipart/form-data", 415), ("application/x-www-form-urlencoded", 415), ("application/xml", 415)],
)  # fmt: skip
def test_only_json_is_read(empty_client: Client, media_type: str, status: int) -> None:
    assert _send(empty_client, json.dumps(_GOOD).encode(), content_type=media_type)[0] == status


def test_a_compressed_body_is_not_unpacked(empty_client: Client) -> None:
    packed = gzip.compress(json.dumps(_GOOD).encode())

    assert _send(empty_client, packed, content_encoding="gzip") == (415, "body_refused")


@pytest.mark.parametrize(
    "body",
    [b"[" * 100_000, b'{"a":' * 50_000, b"[" * 33 + b"]" * 33, b"nonsense", b"", b"1e400", b'{"a":1}{"b":2}',
     b"\xff\xfe", b'{"description": ' + b"9" * 5000 + b"}", b"NaN", b'"' + b"\\" * 9999],
)  # fmt: skip
def test_hostile_json_is_refused_and_breaks_nothing(empty_client: Client, body: bytes) -> None:
    assert _send(empty_client, body) == (422, "invalid")


def _shape(*pieces: bytes) -> JsonShape:
    shape = JsonShape()
    for piece in pieces:
        shape.feed(piece)
    return shape


def test_depth_counts_brackets_outside_strings() -> None:
    assert _shape(b'{"a": [1, {"b": "[[[[{{{{"}]}').deepest == 3
    assert _shape(b'"\\"[["').deepest == 0
    assert _shape(b"[" * 1000).deepest == DEPTH + 1


@pytest.mark.parametrize(
    "text",
    [b'{"a": [1, {"b": "[[{{"}, "x\\"[[", "\\\\", [[]]]}',
     b'["\\\\\\"[", "", {"k": ["]"]}, "\xc3\xa9"]', b'"\\', b'["\\"'],
)  # fmt: skip
def test_a_body_in_pieces_is_measured_as_the_whole(text: bytes) -> None:
    whole = _shape(text)

    for size in (1, 2, 3, 7):
        cut = _shape(*(text[at : at + size] for at in range(0, len(text), size)), b"")
        assert (cut.deepest, cut.values) == (whole.deepest, whole.values), size


_LARGE = 1 << 24
_ENDLESS = [b'"' + b'\\"' * (_LARGE // 2), b'"' + b"\\" * (_LARGE - 1), b'"[]' * (_LARGE // 3), b"[]" * (_LARGE // 2),
            b'""' * (_LARGE // 2), b"1," * (_LARGE // 2), b'"' + b"a" * _LARGE, b"9" * _LARGE]  # fmt: skip


@pytest.mark.parametrize("number", range(len(_ENDLESS)))
def test_each_byte_of_hostile_json_is_looked_at_once(number: int) -> None:
    """16 MiB of it: where each byte is looked at again for every one before it, they take days."""
    assert _shape(_ENDLESS[number]).values <= VALUES + 1


@pytest.mark.parametrize(
    "body",
    [b"[" + b"1," * 500_000 + b"1]", b"[" + b"[]," * 300_000 + b"[]]", b'{"a":"' + b'\\"' * 500_000,
     b"[]" * 500_000, b'""' * 500_000],
)  # fmt: skip
def test_a_body_of_very_many_values_never_reaches_a_route(empty_client: Client, body: bytes) -> None:
    assert _send(empty_client, body) == (422, "invalid")


def test_a_body_of_as_many_values_as_are_read_reaches_its_route(empty_client: Client) -> None:
    good = json.dumps(_GOOD)[:-1] + ', "other": [' + "1," * (VALUES - 20) + "1]}"

    answer = empty_client.post("/api/reports", content=good.encode(), headers=_JSON)

    assert answer.status_code == 422
    assert answer.json()["detail"].startswith("other: ")


@pytest.mark.parametrize("path", ["/api/v1/jobs", "/api/reports", "/api/v1/sources"])
def test_a_body_of_very_many_unknown_fields_is_refused_at_once(empty_client: Client, path: str) -> None:
    body = json.dumps({f"field{number}": number for number in range(20_000)}).encode()

    answer = empty_client.post(path, content=body, headers=_JSON)

    assert answer.status_code in (400, 422)
    assert len(answer.json()["detail"]) < 1000
