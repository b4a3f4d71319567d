"""Our CDX server and pywb's, asked the same over the same archives of others: the same lines in the same order."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from holdfast import config
from holdfast.db.engine import Database
from holdfast.replay.cdx.question import read_question
from holdfast.replay.cdx.server import CdxServer
from holdfast.replay.origins import origins_of
from tests import needs, patience
from tests.flow.crawler import Crawler
from tests.foreign import PEERS, pywb, write_with_warcio, write_with_wget

NAMES = ("iana.warc.gz", "dupes.warc.gz", "example.warc.gz", "example2.warc.gz", "example-url-agnostic-orig.warc.gz")
COMPARED = ("urlkey", "timestamp", "url", "mime", "status", "digest", "length", "offset", "filename")
HERE = origins_of("http", "localhost:8060", replay_origin=None)

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


WRITTEN: list[dict[str, str]] = [
    {"url": "example.org"}, {"url": "http://example.org/"}, {"url": "example.org/*"}, {"url": "*.example.org"},
    {"url": "example.org", "matchType": "host"}, {"url": "example.org", "matchType": "domain", "limit": "3"},
    {"url": "127.0.0.1/*", "filter": "=status:200"}, {"url": "example.org/*", "filter": "mime:html"},
    {"url": "example.org/*", "filter": "!mime:html"}, {"url": "example.org/*", "filter": "~url:.*[.]html$"},
    {"url": "example.org/*", "from": "2020"}, {"url": "example.org/*", "to": "2020"},
    {"url": "example.org", "sort": "reverse"}, {"url": "example.org", "closest": "2015", "sort": "closest"},
    {"url": "127.0.0.1/*"}, {"url": "nothing.example"},
]  # fmt: skip


class Asked(NamedTuple):
    """Archives, and what is asked about them."""

    paths: list[Path]
    questions: list[dict[str, str]]


@pytest.fixture(scope="module", params=[pytest.param("samples", marks=pytest.mark.samples("archives")), "written"])
def asked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Asked:
    """Archives of pywb's own tests, and those that other tools write now, which every checkout has."""
    if request.param == "samples":
        return Asked([needs.SAMPLES["archives"] / "pywb" / name for name in NAMES], QUESTIONS)
    folder = tmp_path_factory.mktemp("written")
    # pywb quotes the query of an address that is not ASCII, and gives a resource no status: nothing to agree with.
    return Asked([write_with_warcio(folder / "warcio.warc.gz", pages_only=True), write_with_wget(folder)], WRITTEN)


@pytest.fixture(scope="module")
def theirs(asked: Asked, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """pywb over the archives; the address of its CDX server."""
    needs.peer(PEERS / "wb-manager")
    folder = tmp_path_factory.mktemp("pywb")
    files = [shutil.copy(path, folder) for path in asked.paths]
    for arguments in (["init", "c"], ["add", "c", *files]):
        subprocess.run([PEERS / "wb-manager", *arguments], cwd=folder, check=True, capture_output=True)
    with pywb(folder) as origin:
        yield f"{origin}/c/cdx"


@pytest.fixture(scope="module")
def ours(asked: Asked, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """The same archives imported here."""
    home = tmp_path_factory.mktemp("ours") / "home"
    done = Crawler(home).run("import", *map(str, asked.paths), "--source", "pywb")
    assert done.returncode == 0, done.stderr
    database = Database(config.load(home=home).database)
    yield database
    database.close()


def test_every_question_gets_the_same_lines(asked: Asked, theirs: str, ours: Database) -> None:
    different, compared = {}, 0
    for question in asked.questions:
        wish = urlencode({**question, "output": "json"})
        with urlopen(f"{theirs}?{wish}", timeout=patience.deadline(30)) as response:
            wanted = _lines(response.read().decode())
        mine = _lines("".join(CdxServer(ours).answer(read_question({**question, "output": "ndjson"}.items()), HERE)))
        compared += len(wanted)
        if mine != wanted:
            different[json.dumps(question)] = [(a, b) for a, b in zip(mine, wanted, strict=False) if a != b][:2] or (
                len(mine), len(wanted),
            )  # fmt: skip
    assert different == {}
    assert compared > 20


def _lines(text: str) -> list[dict[str, Any]]:
    return [_line(json.loads(line)) for line in text.splitlines() if line.strip()]


def _line(told: dict[str, str]) -> dict[str, Any]:
    """Return what is compared: pywb writes no status for a revisit, we write the one that its record has."""
    kept = {name: told.get(name) for name in COMPARED}
    if kept["mime"] == "warc/revisit":
        kept["status"] = None
    return kept
