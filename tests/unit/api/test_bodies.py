"""What may come in: small, plain, flat JSON."""

from __future__ import annotations

import gzip
import json

import pytest

from holdfast.api.middleware.bodies import depth_of
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


def test_depth_counts_brackets_outside_strings() -> None:
    assert depth_of(b'{"a": [1, {"b": "[[[[{{{{"}]}') == 3
    assert depth_of(b'"\\"[["') == 0
    assert depth_of(b"[" * 1000) == 33
