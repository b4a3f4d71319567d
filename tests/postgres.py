"""A throw-away PostgreSQL cluster for one test session: its own directory, its own port, gone with the process."""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections import deque
from pathlib import Path

import psycopg

from holdfast.db.migrate import upgrade

_TEMPLATE = "holdfast_template"
_KEEP = 100
"""Databases kept until the end. To drop one costs a checkpoint (0.38 s measured), to make one 0.05 s and 8 MB."""


_START_S = 120.0


def find_binaries() -> Path | None:
    """Return the folder of the newest installed server from 15 on, or None."""
    found = [(int(folder.parent.name), folder) for folder in Path("/usr/lib/postgresql").glob("*/bin")]
    for version, folder in sorted(found, reverse=True):
        if version >= 15 and (folder / "initdb").exists():
            return folder
    on_path = shutil.which("initdb")
    return Path(on_path).parent if on_path else None


class Postgres:
    """One cluster. As root it runs under the account `postgres`, because the server refuses to run as root."""

    def __init__(self, binaries: Path, *, owner: str | None = None) -> None:
        self._binaries = binaries
        self._owner = owner or ("postgres" if os.geteuid() == 0 else None)
        self._folder = Path(tempfile.mkdtemp(prefix="holdfast-pg-"))
        self._data = self._folder / "data"
        self._log = self._folder / "server.log"
        self._server: subprocess.Popen[bytes] | None = None
        self._names = itertools.count(1)
        self._made: deque[str] = deque()
        self.port = 0
        self._has_run = False
        if self._owner:
            account = pwd.getpwnam(self._owner)
            os.chown(self._folder, account.pw_uid, account.pw_gid)
        initdb = ["initdb", "-D", str(self._data), "-U", "holdfast", "-A", "trust", "-E", "UTF8"]
        self._run(*initdb, "--locale=C.UTF-8", "--no-sync", "--no-instructions")
        self.start()
        self._has_schema = False

    @property
    def url(self) -> str:
        """The address of the server's own database, for administration."""
        return self.url_of("postgres")

    def url_of(self, database: str) -> str:
        """Return the address of a database."""
        return f"postgresql://holdfast@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start the server and return when it answers; after a kill, on the same port.

        What a killed server was doing may hold its memory for a while longer, and it cannot start before.
        """
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline:
            self.port = self.port or _free_port()
            if self._spawn_and_wait(deadline):
                self._has_run = True
                return
            self.port = self.port if self._has_run else 0
            threading.Event().wait(0.2)
        raise RuntimeError(f"PostgreSQL does not start:\n{self._log.read_text()[-2000:]}")

    def _spawn_and_wait(self, deadline: float) -> bool:
        """Return whether it answers; False once it has ended. After a kill it first redoes what was written."""
        settings = {"port": self.port, "listen_addresses": "127.0.0.1", "unix_socket_directories": self._folder}
        # A test kills the server, never the machine: what a killed process has written the kernel keeps, synced or
        # not. A commit is still written before it is answered (synchronous_commit stays on), as in production.
        settings |= {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "on"}
        # Statistics change when a test says so: taken of what an earlier test left, they led to plans for a few rows.
        settings |= {"autovacuum": "off"}
        # What a killed server has to redo stays small: it took a minute after a thousand tests.
        settings |= {"max_wal_size": "128MB", "min_wal_size": "64MB"}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        command = [str(self._binaries / "postgres"), "-D", str(self._data), *options]
        with self._log.open("ab") as log:
            self._server = subprocess.Popen(self._as_owner(command, dies_with_us=True), stdout=log, stderr=log)
        while time.monotonic() < deadline and self._server.poll() is None:
            try:
                psycopg.connect(self.url, connect_timeout=2).close()
            except psycopg.OperationalError:
                threading.Event().wait(0.02)
            else:
                return True
        # One that is not ready in time is ended: it would hold the data and the port against the next try.
        self._signal(signal.SIGQUIT)
        return False

    def kill(self) -> None:
        """Kill the postmaster without warning (kill -9), as a crash would; `start` recovers."""
        self._signal(signal.SIGKILL)

    def stop(self) -> None:
        """Stop at once and remove every trace."""
        self._signal(signal.SIGQUIT)
        shutil.rmtree(self._folder, ignore_errors=True)

    def fresh(self) -> str:
        """Return the address of a new database with our schema and no rows; only the last hundred are kept."""
        if not self._has_schema:  # to make the schema takes 2 s, to copy it 0.05
            self.execute(f"CREATE DATABASE {_TEMPLATE} TEMPLATE template0")
            upgrade(self.url_of(_TEMPLATE))
            self._has_schema = True
        return self.copy_of(_TEMPLATE)

    def bare(self) -> str:
        """Return the address of a new database with nothing in it."""
        return self.copy_of("template0")

    def copy_of(self, template: str) -> str:
        """Return the address of a new database like this one; only the last hundred are kept."""
        name = f"t{os.getpid()}_{next(self._names)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        self._made.append(self.url_of(name))
        if len(self._made) > _KEEP:
            self.drop(self._made.popleft())
        return self.url_of(name)

    def drop(self, url: str) -> None:
        """Remove a database, whoever is still connected to it."""
        self.execute(f"DROP DATABASE IF EXISTS {url.rsplit('/', 1)[1]} WITH (FORCE)")

    def execute(self, statement: str) -> None:
        """Run one statement of administration."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement.encode())

    def _signal(self, number: signal.Signals) -> None:
        if self._server is not None and self._server.poll() is None:
            self._server.send_signal(number)
            self._server.wait()
        self._server = None

    def _run(self, program: str, *arguments: str) -> None:
        command = self._as_owner([str(self._binaries / program), *arguments], dies_with_us=False)
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stderr.decode(errors='replace')[-2000:]}")

    def _as_owner(self, command: list[str], *, dies_with_us: bool) -> list[str]:
        """Return the command as the owner runs it; a server must not outlive a killed test session."""
        wrapper = ["setpriv"]
        if self._owner:
            wrapper += [f"--reuid={self._owner}", f"--regid={self._owner}", "--clear-groups"]
        if dies_with_us:
            wrapper += ["--pdeathsig=QUIT"]
        return [*wrapper, *command] if len(wrapper) > 1 and shutil.which("setpriv") else command


def _free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
