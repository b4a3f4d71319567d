"""A server that says it serves has loaded all modules: no first request pays for an import."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

_OPTIONAL = {"mcp", "alembic", "psycopg", "redis", "authlib", "jwt", "httpx", "rich"}
"""Loaded where the settings or a request to `/mcp` ask for them; an empty archive on SQLite needs none."""
_START = """
import asyncio, json, sys
from pathlib import Path
import holdfast.cli.runner, holdfast.cli.api
from holdfast.api.app import create_app
from holdfast.api.routes import ROUTERS
from holdfast.config import ApiSettings, Settings
from holdfast.wiring.archive import open_archive

TOKEN = "the admin token of this test"

async def first(app):
    sent, told = [], asyncio.Queue()
    await told.put({"type": "lifespan.startup"})
    async def say(message):
        sent.append(message)
    life = asyncio.create_task(app({"type": "lifespan", "state": {}}, told.get, say))
    while not sent:
        await asyncio.sleep(0.001)
    async def receive():
        # The second time the client is gone, which ends a stream.
        return incoming.pop(0) if incoming else {"type": "http.disconnect"}
    incoming, started, status, late = [], {*sys.modules}, {}, {}
    for path in sorted({route.path for router in ROUTERS for route in router.routes if "GET" in route.methods}):
        if "{" in path:
            continue
        sent.clear()
        incoming = [{"type": "http.request", "body": b"", "more_body": False}]
        scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b"",
                 "headers": [(b"host", b"127.0.0.1:8060"), (b"x-admin-token", TOKEN.encode())],
                 "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8060), "scheme": "http", "http_version": "1.1",
                 "root_path": "", "state": {}}
        await app(scope, receive, say)
        status[path] = next(one["status"] for one in sent if "status" in one)
        late[path] = sorted(name for name in {*sys.modules} - started if name.startswith("holdfast"))
        started |= {*sys.modules}
    await told.put({"type": "lifespan.shutdown"})
    await life
    return [status, {path: names for path, names in late.items() if names}, [*started]]

settings = Settings(home=Path(sys.argv[1]), api=ApiSettings(rate_limiting=False, admin_token=TOKEN))
with open_archive(settings) as archive:
    print(json.dumps(asyncio.run(first(create_app(archive)))))
"""


def test_first_requests_import_no_module_of_ours(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", _START, str(tmp_path)], capture_output=True, text=True, check=True)
    status, late, loaded = json.loads(done.stdout.splitlines()[-1])

    assert (status["/api/search"], status["/api/sources"], status["/api/v1/jobs"]) == (200, 200, 200)
    assert late == {}
    assert sorted({name.partition(".")[0] for name in loaded} & _OPTIONAL) == []
