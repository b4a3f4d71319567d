"""Our CDX server and pywb's, asked the same over the same archives of others: the same lines in the same order."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from holdfast import config
from holdfast.db.engine import Database
from holdfast.replay.cdx.question import read_question
from holdfast.replay.cdx.server import CdxServer
from holdfast.replay.origins import place_of
from tests import needs, patience
from tests.flow.crawler import Crawler

ROOT = Path(__file__).parents[3]
FOREIGN = Path(os.environ.get("HOLDFAST_FOREIGN_ARCHIVES") or ROOT.parent / "shared" / "data")
NAMES = ("iana.warc.gz", "dupes.warc.gz", "example.warc.gz", "example2.warc.gz", "example-url-agnostic-orig.warc.gz")
PEERS = ROOT / ".venv-peers" / "bin"
COMPARED = ("urlkey", "timestamp", "url", "mime", "status", "digest", "length", "offset", "filename")
HERE = place_of("http", "localhost:8060", replay_origin=None)

QUESTIONS: list[dict[str, str]] = [
    {"url": "iana.org"}, {"url": "http://www.iana.org/"}, {"url": "example.com"}, {"url": "example.com?example=1"},
    {"url": "iana.org/*"}, {"url": "*.iana.org"}, {"url": "iana.org/_css/*"}, {"url": "iana.org", "matchType": "host"},
    {"url": "iana.org", "matchType": "domain", "limit": "7"}, {"url": "iana.org/*", "limit": "3"},
    {"url": "iana.org/*", "filter": "=status:302"}, {"url": "iana.org/*", "filter": "~status:[345].."},
    {"url": "iana.org/*", "filter": "mime:image"}, {"url": "iana.org/*", "filter": "!mime:image"},
    {"url": "iana.org/*", "filter": "~url:.*[.]css$"}, {"url": "iana.org/*", "filter": "!~mime:text/.*"},
    {"url": "iana.org/*", "from": "20140127"}, {"url": "iana.org/*", "to": "20140126"},
    {"url": "iana.org/*", "from": "2014012620", "to": "201401262007"}, {"url": "example.com", "sort": "reverse"},
    {"url": "example.com", "closest": "2015", "sort": "closest"}, {"url": "example.com", "closest": "20140127171240"},
    {"url": "nothing.example"},
]  # fmt: skip


@pytest.fixture(scope="module")
def pywb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """pywb over the archives; its address."""
    if not (FOREIGN / "pywb").is_dir():
        pytest.skip("archives of other writers are not here; HOLDFAST_FOREIGN_ARCHIVES names their folder")
    needs.peer(PEERS / "wayback")
    folder = tmp_path_factory.mktemp("pywb")
    files = [shutil.copy(FOREIGN / "pywb" / name, folder) for name in NAMES]
    for arguments in (["init", "c"], ["add", "c", *files]):
        subprocess.run(
            [PEERS / "wb-manager", *arguments],
            cwd=folder,
            check=True,
            capture_output=True,
            timeout=patience.deadline(60),
        )
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen([PEERS / "wayback", "-p", str(port), "-b", "127.0.0.1"], cwd=folder, stderr=log)
    try:
        _wait(f"http://127.0.0.1:{port}/", server)
        yield f"http://127.0.0.1:{port}/c/cdx"
    finally:
        server.terminate()
        server.wait(patience.deadline(10))


def _wait(url: str, server: subprocess.Popen[bytes]) -> None:
    ends = time.monotonic() + 60
    while time.monotonic() < ends and server.poll() is None:
        try:
            with urlopen(url, timeout=patience.deadline(5)):
                return
        except URLError:
            time.sleep(0.2)
    pytest.fail("pywb did not start")


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """The same archives imported here."""
    if not (FOREIGN / "pywb").is_dir():
        pytest.skip("archives of other writers are not here; HOLDFAST_FOREIGN_ARCHIVES names their folder")
    home = tmp_path_factory.mktemp("ours") / "home"
    paths = [str(FOREIGN / "pywb" / name) for name in NAMES]
    done = Crawler(home).run("import", *paths, "--source", "pywb")
    assert done.returncode == 0, done.stderr
    database = Database(config.load(home=home).database)
    yield database
    database.close()


def test_every_question_gets_the_same_lines(pywb: str, ours: Database) -> None:
    different = {}
    for question in QUESTIONS:
        with urlopen(f"{pywb}?{urlencode({**question, 'output': 'json'})}", timeout=patience.deadline(30)) as response:
            theirs = _lines(response.read().decode())
        asked = read_question({**question, "output": "ndjson"}.items())
        mine = _lines("".join(CdxServer(ours).answer(asked, HERE)))
        if mine != theirs:
            different[json.dumps(question)] = [(a, b) for a, b in zip(mine, theirs, strict=False) if a != b][:2] or (
                len(mine), len(theirs),
            )  # fmt: skip
    assert different == {}


def _lines(text: str) -> list[dict[str, Any]]:
    return [_line(json.loads(line)) for line in text.splitlines() if line.strip()]


def _line(told: dict[str, str]) -> dict[str, Any]:
    """Return what is compared: pywb writes no status for a revisit, we write the one that its record has."""
    kept = {name: told.get(name) for name in COMPARED}
    if kept["mime"] == "warc/revisit":
        kept["status"] = None
    return kept
