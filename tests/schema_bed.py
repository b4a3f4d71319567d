"""What suites of the OpenAPI document share: an archive behind a client that may ask as often as it likes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import schemathesis
from hypothesis import reject

from tests.archive import Shot, build_archive, days_later
from tests.client import APP, Client, asking

_HOME = "https://example.org/"
_SHOTS = [
    Shot(url=_HOME),
    Shot(url="https://example.org/a?b=c", body="<title>A</title><p>Other words.</p>"),
    Shot(url=_HOME, body="<title>New</title><p>Later words.</p>", moment=days_later(10), execution=2),
]
_CREDENTIALS = ("authorization", "x-admin-token", "cookie")


@schemathesis.serializer("application/offset+octet-stream")
def _piece(_context: Any, value: Any) -> bytes:
    """Send a piece of an upload as it is."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


class ServedSchema(NamedTuple):
    """A client, and the schema that it was told."""

    client: Client
    schema: Any


@contextmanager
def serving_schema(home: Path) -> Iterator[ServedSchema]:
    """Serve an archive with a few captures."""
    built = build_archive(home, _SHOTS)
    api = built.settings.api.model_copy(update={"rate_limiting": False})
    archive = replace(built, settings=built.settings.model_copy(update={"api": api}))
    with asking(archive) as client:
        yield ServedSchema(client, schemathesis.openapi.from_dict(client.get("/openapi.json").json()))
    built.database.close()


def asked(client: Client, case: Any, *, signed: bool) -> httpx.Response:
    """Return the answer to a case; without its made-up credentials unless they are wanted."""
    wish = case.as_transport_kwargs(base_url=APP)
    content = json.dumps(wish["json"]) if wish.get("json") is not None else wish.get("data")
    headers = {
        name: value
        for name, value in wish.get("headers", {}).items()
        if value.isascii() and value.isprintable() and (signed or name.lower() not in _CREDENTIALS)
    }
    try:
        return client.request(
            wish["method"], wish["url"], params=wish.get("params") or None, headers=headers, content=content
        )
    except httpx.InvalidURL:  # longer than the client itself would send
        reject()
