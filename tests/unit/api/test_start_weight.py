"""What a server has loaded when it has given its first answer: nearly all of a start is loading."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

_HEAVY = {"numpy", "tantivy", "lxml", "selectolax", "pycurl", "pycares", "rapidfuzz", "fastwarc", "mcp", "authlib",
          "jwt", "yaml", "rich", "alembic", "psycopg", "redis", "httpx"}  # fmt: skip
_LATE = ("holdfast.changes", "holdfast.crawl", "holdfast.editions", "holdfast.exports", "holdfast.fetch",
         "holdfast.noise", "holdfast.operations", "holdfast.parse", "holdfast.search", "holdfast.webhooks")  # fmt: skip
_MOST = 161
"""Modules of ours: 290 when all files of routes were loaded first."""
_START = """
import asyncio, json, sys
from pathlib import Path
import holdfast.cli.runner, holdfast.cli.api
from holdfast.api.app import create_app
from holdfast.api.lifespan import BesideRequests
from holdfast.config import Settings
from holdfast.wiring.archive import open_archive

async def first(app):
    sent, told = [], asyncio.Queue()
    await told.put({"type": "lifespan.startup"})
    async def say(message):
        sent.append(message)
    life = asyncio.create_task(app({"type": "lifespan", "state": {}}, told.get, say))
    while not sent:
        await asyncio.sleep(0.001)
    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}
    scope = {"type": "http", "method": "GET", "path": "/api/health", "raw_path": b"/api/health", "query_string": b"",
             "headers": [(b"host", b"127.0.0.1:8060")], "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8060),
             "scheme": "http", "http_version": "1.1", "root_path": "", "state": {}}
    await app(scope, receive, say)
    loaded = [*sys.modules]
    await told.put({"type": "lifespan.shutdown"})
    await life
    return [sent[0]["type"], next(one["status"] for one in sent if "status" in one), loaded]

# However slow the machine is: what comes after the first answer is not part of it.
BesideRequests.__init__.__kwdefaults__["settle_s"] = 3600.0
with open_archive(Settings(home=Path(sys.argv[1]))) as archive:
    print(json.dumps(asyncio.run(first(create_app(archive)))))
"""


def test_the_first_answer_needs_little(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", _START, str(tmp_path)], capture_output=True, text=True, check=True)
    started, status, loaded = json.loads(done.stdout.splitlines()[-1])

    assert (started, status) == ("lifespan.startup.complete", 200)
    assert sorted({name.partition(".")[0] for name in loaded} & _HEAVY) == []
    ours = sorted(name for name in loaded if name.startswith("holdfast"))
    assert [name for name in ours if name.startswith(_LATE)] == []
    assert [name for name in ours if name.startswith("holdfast.api.routes.")] == ["holdfast.api.routes.health"]
    assert len(ours) <= _MOST, ours
