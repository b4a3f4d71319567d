"""`holdfast mcp` as assistants start it: the SDK's own client over standard input and output, and over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from holdfast.search.outbox import drain
from tests import forked
from tests.archive import Shot, build_archive
from tests.patience import deadline

PAGE = "https://example.org/"
TOKEN = "a-token-of-the-test-for-tools"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A small archive, ready to be searched."""
    archive = build_archive(tmp_path / "home", [Shot(url=PAGE)])
    drain(archive.database, archive.home, archive.clock)
    archive.database.close()
    return tmp_path / "home"


def _command(home: Path, *arguments: str) -> list[str]:
    return ["-m", "holdfast.cli.main", "mcp", "--home", str(home), *arguments]


async def _asked(client: Client) -> tuple[list[str], Any]:
    names = [tool.name for tool in (await client.list_tools()).tools]
    found: Any = await client.call_tool("page_text", {"url": PAGE, "at": "2024"})
    return names, found.structured_content


def test_an_assistant_reads_over_standard_input_and_output(home: Path) -> None:
    environment = {**os.environ, "HOLDFAST_LOG_LEVEL": "ERROR"}

    async def ask() -> tuple[list[str], Any]:
        server = StdioServerParameters(command=sys.executable, args=_command(home), env=environment)
        async with Client(server, read_timeout_seconds=deadline(30)) as client:
            return await _asked(client)

    names, text = asyncio.run(ask())

    assert names == ["search", "page_history", "page_text", "compare"]
    assert "Some words about it." in text["text"]
    assert text["citation"]["digest"].startswith("sha256:")


def test_stdio_answers_lines_that_are_not_json_rpc(home: Path) -> None:
    lines = ["not json", "{}", '{"jsonrpc": "2.0", "id": 7, "method": "ping"}']
    process = forked.Popen(
        [sys.executable, *_command(home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "HOLDFAST_LOG_LEVEL": "ERROR"},
    )  # fmt: skip
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n".join(lines) + "\n")
        process.stdin.flush()
        # As clients do, standard input stays open until all is answered: its end cancels what is under way.
        read = [json.loads(process.stdout.readline()) for _line in lines]
        process.stdin.close()
        process.wait(deadline(60))

    answers = {one["id"] or one["error"]["code"] for one in read}
    assert answers == {-32700, -32600, 7}


@pytest.mark.parametrize(("arguments", "is_shown"), [((), False), (("--as", "member"), True)])
def test_members_pages_reach_an_assistant_only_by_option(
    home: Path, arguments: tuple[str, ...], is_shown: bool
) -> None:
    with closing(sqlite3.connect(home / "holdfast.db")) as database, database:
        database.execute("UPDATE sources SET visibility = 'members'")

    async def ask() -> Any:
        server = StdioServerParameters(command=sys.executable, args=_command(home, *arguments), env=dict(os.environ))
        async with Client(server, read_timeout_seconds=deadline(30)) as client:
            return await client.call_tool("page_text", {"url": PAGE})

    told = asyncio.run(ask())

    assert ("Some words about it." in str(told)) is is_shown


def test_over_http_a_token_is_asked_for_and_guesses_end(home: Path) -> None:
    process = forked.Popen(
        [sys.executable, *_command(home, "--http", "--port", "0")], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "HOLDFAST_API_ADMIN_TOKEN": TOKEN, "HOLDFAST_LOG_LEVEL": "ERROR"},
    )  # fmt: skip
    try:
        assert process.stdout is not None
        address = process.stdout.readline().split()[1]
        assert address.endswith("/mcp")

        async def ask() -> tuple[list[str], Any]:
            async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}) as http:
                transport = streamable_http_client(address, http_client=http)
                async with Client(transport, read_timeout_seconds=deadline(30)) as client:
                    return await _asked(client)

        names, text = asyncio.run(ask())
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
        accept = {"Accept": "application/json, text/event-stream"}
        nobody = httpx.post(address, json=body, headers=accept, timeout=deadline(20))
        other = httpx.get(address.removesuffix("/mcp") + "/api/stats", timeout=deadline(20))
        guesses = [
            httpx.post(address, json=body, headers={**accept, "Authorization": f"Bearer guess-{number:016}"})
            for number in range(12)
        ]
        right = httpx.post(
            address, json=body, headers={**accept, "Authorization": f"Bearer {TOKEN}"}, timeout=deadline(20)
        )
    finally:
        process.kill()
        process.communicate()

    assert "explain" in names
    assert "Some words about it." in text["text"]
    assert (nobody.status_code, nobody.headers["www-authenticate"], other.status_code) == (401, "Bearer", 404)
    assert all(answer.json()["requestId"] for answer in (nobody, other))
    assert [answer.status_code for answer in guesses[10:]] == [429, 429]
    assert all(answer.status_code in (401, 403) for answer in guesses[:10])
    assert right.status_code == 429, "even the right one, for a minute: who guesses learns nothing"
