"""A real server in a process of its own: who is let in, what it answers under a busy database, how it ends."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from random import Random
from time import monotonic
from typing import NamedTuple

import httpx
import psycopg
import pytest

from holdfast.search.outbox import drain
from tests import forked
from tests.archive import Shot, build_archive
from tests.client import ADMIN, WITH_TOKEN
from tests.patience import deadline
from tests.postgres import Postgres

_PAGE = "https://example.org/"


class _Server(NamedTuple):
    process: subprocess.Popen[str]
    port: int
    home: Path

    def get(self, path: str, **headers: str) -> httpx.Response:
        """Ask over a socket of its own."""
        return httpx.get(f"http://127.0.0.1:{self.port}{path}", headers=headers, timeout=deadline(20))

    def say(self, text: bytes) -> bytes:
        """Send bytes as they are; return what comes back until the other side closes, which may be in the middle."""
        came = b""
        with (
            closing(socket.create_connection(("127.0.0.1", self.port), timeout=deadline(20))) as line,
            suppress(ConnectionError),
        ):
            line.sendall(text)
            while piece := line.recv(65536):
                came += piece
        return came


def _command(*arguments: str, **variables: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "HOLDFAST_LOG_LEVEL": "ERROR", "HOLDFAST_API_RATE_LIMITING": "false", **variables}
    return forked.Popen(
        [sys.executable, "-m", "holdfast.cli.main", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, env=environment,
    )  # fmt: skip


@contextmanager
def _serving(home: Path, **variables: str) -> Iterator[_Server]:
    process = _command("api", "--port", "0", "--home", str(home), **variables)
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("serving http://127.0.0.1:"), (line, process.stderr.read() if process.stderr else "")
    try:
        yield _Server(process, int(line.rpartition(":")[2]), home)
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Server]:
    """A server for a small archive; the kernel chose its port."""
    home = tmp_path_factory.mktemp("home")
    build_archive(home, [Shot(url=_PAGE)]).database.close()
    with _serving(home) as running:
        yield running


def _status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def test_a_page_is_served_and_replayed_on_the_host_beside(server: _Server) -> None:
    stats = server.get("/api/stats").json()
    number = stats["recentPages"][0]["id"]
    browse = server.get(f"/api/snapshot/{number}").json()["browseUrl"]
    path = browse.partition(f":{server.port}")[2].partition("#")[0]

    replayed = server.get(path, Host=f"replay.localhost:{server.port}")
    moved = server.get(path)

    assert browse.startswith(f"http://replay.localhost:{server.port}/web/2024")
    assert (replayed.status_code, moved.status_code) == (200, 307)
    assert "Some words about it." in replayed.text
    assert "sandbox" in replayed.headers["content-security-policy"]


@pytest.mark.parametrize(
    "head",
    ["GET /api/stats HTTP/1.1\r\nHost: evil\r\n", "GET /api/stats HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n",
     "GET http://evil/api/stats HTTP/1.1\r\nHost: localhost\r\n", "GET @evil.com HTTP/1.1\r\nHost: localhost\r\n",
     "GET /api/stats HTTP/1.1\r\n", "GET /api/stats HTTP/1.1\r\nHost: a/?x=\r\n",
     "GET * HTTP/1.1\r\nHost: localhost\r\n",
     "GET /api/stats?" + "q" * 9000 + " HTTP/1.1\r\nHost: localhost\r\n"],
)  # fmt: skip
def test_heads_that_lie_or_swell_are_refused(server: _Server, head: str) -> None:
    answer = server.say(f"{head}Connection: close\r\n\r\n".encode())

    assert _status(answer) in (400, 414, 431)
    assert b"snapshotsTotal" not in answer


@pytest.mark.parametrize("size", [33_000, 60_000, 200_000])
def test_a_head_of_more_than_32_kib_is_not_read(server: _Server, size: int) -> None:
    answer = server.say(b"GET /api/stats HTTP/1.1\r\nHost: localhost\r\nX-Big: " + b"x" * size + b"\r\n\r\n")

    assert answer == b"" or _status(answer) in (400, 431)
    assert server.get("/api/health").status_code == 200


_POST = b"POST /api/reports HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize(
    "sent",
    [_POST + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
     b"GET /api/stats HTTP/1.1\r\nHost: localhost\r\n\r\n",
     _POST.replace(b"1.1", b"1.0") + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
     b"GET /api/stats HTTP/1.1\nHost: localhost\n\n",
     b"GET /api/stats HTTP/1.1\r\nHost: localhost\nX-One: 1\r\n\r\n",
     b"GET /api/stats HTTP/1.1\r\nHost: localhost\r\nX-One: 1\r\n more of it\r\n\r\n"],
    ids=["length and chunks", "chunks in HTTP/1.0", "bare line feeds", "one bare line feed", "a folded line"],
)  # fmt: skip
def test_a_request_that_a_proxy_may_read_otherwise_is_refused_and_nothing_behind_it_is_read(
    server: _Server, sent: bytes
) -> None:
    answer = server.say(sent)

    assert _status(answer) == 400
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"snapshotsTotal" not in answer


@pytest.mark.parametrize("begun", [b"", b"GET /api/stats HTTP/1.1\r\nHost: localh"])
def test_a_head_that_does_not_arrive_in_time_is_given_up(tmp_path: Path, begun: bytes) -> None:
    with _serving(tmp_path, HOLDFAST_TIMINGS_SERVER_HEAD_S="0.5") as running:
        answer = running.say(begun)
        two = running.say(b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\nGET /api/hea")

    assert _status(answer) == 408
    assert _status(two) == 200, "what was whole is answered, and the rest is not waited for"


def test_a_header_cannot_be_split_and_a_log_line_cannot_be_forged(server: _Server) -> None:
    answer = server.say(b"GET /api/health HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: a%0d%0aSet-Cookie: x=1\r\n"
                        b"Connection: close\r\n\r\n")  # fmt: skip

    assert _status(answer) == 200
    assert b"set-cookie" not in answer.lower()
    assert b"a%0d" not in answer


def test_an_endless_body_ends_at_the_limit(server: _Server) -> None:
    chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    answer = server.say(b"POST /api/reports HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                        b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n" + chunk * 17)  # fmt: skip

    assert _status(answer) == 413


def test_reads_go_on_while_a_writer_holds_the_database(server: _Server) -> None:
    with closing(sqlite3.connect(server.home / "holdfast.db", isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("UPDATE sources SET name = 'Half written'")
        answers = [server.get(path) for path in ("/api/stats", "/api/sources", "/api/health?details=1", "/api/usage")]
        writer.execute("ROLLBACK")

    assert {answer.status_code for answer in answers} == {200}
    assert "Half written" not in answers[1].text


def test_a_long_reader_stops_nobody(server: _Server) -> None:
    with closing(sqlite3.connect(server.home / "holdfast.db", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM snapshots").fetchall()
        report = {"category": "takedown", "description": "Please take this page down, it is mine."}
        sent = httpx.post(f"http://127.0.0.1:{server.port}/api/reports", json=report, timeout=deadline(20))
        read = server.get("/api/stats")
        reader.execute("COMMIT")

    assert (sent.status_code, read.status_code) == (201, 200)


def test_ten_exports_that_stall_keep_nobody_from_health_and_search(tmp_path: Path) -> None:
    archive = build_archive(tmp_path, [Shot(url=_PAGE)])
    # A search of an archive whose first index is being made is answered with 503, and this one may ask that early.
    drain(archive.database, archive.home, archive.clock)
    archive.database.close()
    ask = b"GET /api/exports/snapshots HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    with ExitStack() as stack:
        running = stack.enter_context(_serving(tmp_path, HOLDFAST_FAILPOINT="export.piece:sleep"))
        lines = []
        for _ in range(12):
            line = stack.enter_context(
                closing(socket.create_connection(("127.0.0.1", running.port), timeout=deadline(60)))
            )
            line.sendall(ask)
            lines.append(line)
        beside = [running.get(path) for path in ("/api/health", "/api/search?q=words", "/api/stats", "/health") * 3]
        refused: list[bytes] = []
        waiting = set(lines)
        while len(refused) < 12 - 2 and (readable := select.select(list(waiting), [], [], 60)[0]):
            for line in readable:
                refused.append(b"".join(iter(lambda line=line: line.recv(65536), b"")))  # type: ignore[misc]
                waiting.discard(line)
        after = running.get("/api/health")

    assert {answer.status_code for answer in (*beside, after)} == {200}
    assert beside[1].json()["total"] == 1
    assert {_status(answer) for answer in refused} == {503}
    assert all(b"retry-after: 10" in answer.lower() and b"server_busy" in answer for answer in refused)
    assert len(waiting) == 2, "those that are being made go on"


def test_a_storm_of_mistyped_searches_keeps_nobody_from_health_and_loses_no_thread(tmp_path: Path) -> None:
    """Each is the dearest that there is: eight words that the archive does not have, looked for by two edits."""
    rng = Random(7)
    words = ["".join(rng.choices("abcdefgh", k=9)) for _ in range(3000)]
    shots = [Shot(url=f"https://example.org/{n}", body=f"<p>{' '.join(words[n * 50 : n * 50 + 50])}</p>")
             for n in range(60)]  # fmt: skip
    archive = build_archive(tmp_path, shots)
    drain(archive.database, archive.home, archive.clock)
    archive.database.close()
    storm = ["+".join("".join(rng.choices("abcdefgh", k=9)) for _ in range(8)) for _ in range(60)]
    with _serving(tmp_path) as running:
        with ThreadPoolExecutor(30) as clients:
            sent = [clients.submit(running.get, f"/api/search?q={query}") for query in storm]
            beside = []
            while not all(one.done() for one in sent):
                beside.append(running.get("/api/health"))
            answers = [one.result() for one in sent]
        # More than the server has threads for routes: one that was lost would be missed.
        after = [running.get(f"/api/search?q={words[n]}") for n in range(25)]

    assert {answer.status_code for answer in beside} == {200}
    told = {(answer.status_code, answer.json().get("code")) for answer in answers}
    assert told <= {(200, None), (503, "search_too_long")}
    assert {(answer.status_code, answer.json()["total"]) for answer in after} == {(200, 1)}


def test_a_body_over_the_limit_is_refused_so_that_the_client_sees_it(server: _Server) -> None:
    """The client sends all of it before it reads: closed on, it would only learn that the line was reset."""
    for size in (2 << 20, 8 << 20):
        answer = httpx.post(
            f"http://127.0.0.1:{server.port}/api/reports", content=b" " * size, timeout=deadline(60),
            headers={"content-type": "application/json"},
        )  # fmt: skip
        assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")


def test_a_client_that_asks_first_is_refused_before_it_sends_anything(server: _Server) -> None:
    answer = server.say(b"POST /api/reports HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                        b"Content-Length: 9000000\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n")  # fmt: skip

    assert _status(answer) == 413


def test_a_port_that_is_taken_is_told_with_the_option_to_change(server: _Server) -> None:
    second = _command("api", "--port", str(server.port), "--home", str(server.home))
    _, said = second.communicate(timeout=deadline(60))

    assert second.returncode == 1
    assert f"port {server.port}" in said
    assert "--port" in said


def test_user_link_has_the_address_of_the_running_server(tmp_path: Path) -> None:
    def add(name: str) -> tuple[str, str]:
        return _command("user", "add", name, "--home", str(tmp_path)).communicate(timeout=deadline(60))

    with _serving(tmp_path) as running:
        _command("api", "--port", str(running.port), "--home", str(tmp_path)).communicate(timeout=deadline(60))
        told, _ = add("ada")
        running.process.terminate()
        running.process.wait(deadline(60))
    later, warned = add("bob")

    assert f"http://127.0.0.1:{running.port}/setup#token=" in told
    assert "http://127.0.0.1:8060/setup#token=" in later
    assert "no server runs here; the link assumes port 8060" in warned


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order(tmp_path: Path, number: signal.Signals) -> None:
    with _serving(tmp_path) as running:
        running.get("/api/search?q=x")
        running.process.send_signal(number)
        _, said = running.process.communicate(timeout=deadline(60))

    assert running.process.returncode == 0, said
    with closing(sqlite3.connect(tmp_path / "holdfast.db")) as database:
        rows = database.execute("SELECT event, count FROM usage_counts").fetchall()
    assert rows == [("search_requests", 1)], "what was counted is written at the end"


@pytest.mark.parametrize(
    ("arguments", "variables", "word"),
    [(("--host", "0.0.0.0"), {}, "loopback"), ((), {"HOLDFAST_API_ENVIRONMENT": "production"}, "ADMIN_TOKEN"),
     ((), {"HOLDFAST_API_ENVIRONMENT": "staging", "HOLDFAST_API_ADMIN_TOKEN": "short"}, "16"),
     ((), {"HOLDFAST_API_ENVIRONMENT": "prod"}, "ADMIN_TOKEN"),
     (("--host", "203.0.113.7"), {"HOLDFAST_API_ADMIN_TOKEN": "x" * 20}, "cannot listen")],
)  # fmt: skip
def test_an_open_door_is_refused(
    tmp_path: Path, arguments: tuple[str, ...], variables: dict[str, str], word: str
) -> None:
    refused = _command("api", "--home", str(tmp_path), "--port", "0", *arguments, **variables)
    _, said = refused.communicate(timeout=deadline(60))

    assert refused.returncode == 1
    assert word in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("proxies", "forwarded", "third"),
    [("", "203.0.113.{}", 429), ("127.0.0.1", "203.0.113.{}", 200), ("127.0.0.1", "made up {}", 429)],
)
def test_a_forwarded_address_is_believed_of_a_named_proxy_alone_and_junk_never(
    tmp_path: Path, proxies: str, forwarded: str, third: int
) -> None:
    limits = {"HOLDFAST_API_RATE_LIMITING": "true", "HOLDFAST_API_RATES": "general=2"}
    token = {"HOLDFAST_API_ADMIN_TOKEN": "a token of the proxy's server"}
    with _serving(tmp_path, HOLDFAST_API_TRUSTED_PROXIES=proxies, **limits, **token) as running:
        statuses = [running.get("/api/usage", **{"X-Forwarded-For": forwarded.format(n)}).status_code for n in range(3)]

    assert statuses == [200, 200, third]


@pytest.mark.parametrize("proxies", ["", "127.0.0.1"])
def test_one_client_cannot_hold_all_connections_also_not_through_a_proxy(tmp_path: Path, proxies: str) -> None:
    """Three requests whose bodies never arrive; behind a named proxy, the client that it forwards is meant."""
    token = {"HOLDFAST_API_ADMIN_TOKEN": "a token of the proxy's server", "HOLDFAST_API_CONNECTIONS_PER_ADDRESS": "3"}
    half = b"POST /api/reports HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 203.0.113.7\r\n" \
           b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"  # fmt: skip
    with ExitStack() as stack:
        running = stack.enter_context(_serving(tmp_path, HOLDFAST_API_TRUSTED_PROXIES=proxies, **token))
        for _ in range(3):
            line = stack.enter_context(
                closing(socket.create_connection(("127.0.0.1", running.port), timeout=deadline(60)))
            )
            line.sendall(half)
        refused, until = b" 200 ", monotonic() + deadline(60)
        while _status(refused) == 200 and monotonic() < until:  # the server may not have looked at all three yet
            refused = running.say(b"GET /api/stats HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 203.0.113.7\r\n"
                                  b"Connection: close\r\n\r\n")  # fmt: skip
        with httpx.Client(transport=httpx.HTTPTransport(local_address="127.0.0.9")) as neighbour:
            address = f"http://127.0.0.1:{running.port}/api/stats"
            other = neighbour.get(address, headers={"X-Forwarded-For": "203.0.113.8"}, timeout=deadline(20))

    assert (_status(refused), other.status_code) == (429, 200)
    assert b"too_many_connections" in refused


def test_it_serves_postgres_and_says_when_it_is_gone(tmp_path: Path, postgres: Postgres) -> None:
    url = postgres.fresh()
    build_archive(tmp_path, [Shot(url=_PAGE)], database_url=url).database.close()
    with _serving(tmp_path, HOLDFAST_DATABASE_URL=url, **WITH_TOKEN) as running:
        good = {running.get(path, **ADMIN).status_code for path in ("/api/health?details=1", "/api/stats", "/metrics")}
        name = url.rpartition("/")[2]
        with psycopg.connect(url.replace(name, "postgres"), autocommit=True) as admin:
            _cut(admin, name)
            gone = running.get("/api/health"), running.get("/api/stats")
            admin.execute(f'ALTER DATABASE "{name}" WITH ALLOW_CONNECTIONS true'.encode())
        back = running.get("/api/stats")

    assert good == {200}
    assert (gone[0].status_code, gone[0].json()) == (500, {"status": "error", "checks": {"db": "error"}})
    assert (gone[1].status_code, gone[1].json()["code"]) == (503, "unavailable")
    assert back.status_code == 200


def _cut(admin: psycopg.Connection[tuple[object, ...]], name: str) -> None:
    """Let nobody connect to a database for now, and end the connections that there are."""
    admin.execute(f'ALTER DATABASE "{name}" WITH ALLOW_CONNECTIONS false'.encode())
    admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))


def test_a_newer_database_is_refused_at_the_start(tmp_path: Path) -> None:
    build_archive(tmp_path, []).database.close()
    with closing(sqlite3.connect(tmp_path / "holdfast.db")) as database:
        database.execute("UPDATE alembic_version SET version_num = '9999'")
        database.commit()

    refused = _command("api", "--home", str(tmp_path), "--port", "0")
    _, said = refused.communicate(timeout=deadline(60))

    assert refused.returncode == 1
    assert "upgrade holdfast" in said


def test_the_demo_makes_four_crawls_compares_serves_and_ends(tmp_path: Path) -> None:
    demo = _command("demo", "--json", "--port", "0", "--home", str(tmp_path))
    assert demo.stdout is not None
    try:
        told = json.loads(demo.stdout.readline())
        running = _Server(demo, int(told["address"].rpartition(":")[2]), tmp_path)
        search = running.get("/api/search?q=tide").json()
        named = running.get("/api/search?q=drowned+causeway+chart&view=pages").json()
        changed = running.get(told["compare_path"])
        replayed = running.get(told["replay_path"], Host=f"replay.localhost:{running.port}")
        sources, stats = running.get("/api/sources").json(), running.get("/api/stats").json()
        demo.send_signal(signal.SIGINT)
        _, said = demo.communicate(timeout=deadline(60))
    finally:
        demo.kill()

    assert (demo.returncode, "holdfast api --home" in said) == (0, True)
    assert told["changes"]["updated"] >= 30
    assert told["changes"]["gone"] == 2
    assert len(told["moments"]) == 4
    assert search["total"] > 2
    assert named["results"][0]["originalUrl"].endswith("/notes/plate-4.html"), "found by what a link says of it"
    assert "causeway" not in named["results"][0]["snippet"]
    assert "dog licence" in changed.text
    assert "Kelpsound" in replayed.text
    assert sum(one["recordCount"] for one in sources) == stats["snapshotsTotal"] > 100
    assert (stats["pagesCrawled"] > 50, stats["pagesFailed"] >= 2, stats["frontierPending"]) == (True, True, 0)
    assert stats["topDomains"][0]["domain"] == told["front_page"].removeprefix("http://").rstrip("/")
    assert stats["duplicatesSkipped"] > 5
