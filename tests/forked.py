"""Commands of holdfast, each in a process forked from one that has loaded all of them: a start costs a tenth so.

`Popen` and `run` are called as those of `subprocess`. A command line of ours (`python -m holdfast.cli.main …`) is
forked, and the web of the tests; any other, and one whose process is to differ before it loads a module (its locale,
its limits, its mounts), is started as ever.

Run as `python -m tests.forked NUMBER`, this is the process that forks: it answers on the socket of that number, has one
thread, so that a fork copies no lock that another one holds, and opens no file and no database. Its children are
waited for when the test does: until then an ended one keeps its number and its group, as a child of the test would.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn

import holdfast
from holdfast import failpoints

_ROOT = Path(__file__).parents[1]
_SITE = "tests.site"
_PROGRAMS = {"holdfast.cli.main": "holdfast.cli.main", _SITE: f"{_SITE}.__main__"}
"""What is forked, by the name that follows `python -m`, and the module whose `main` it is."""
_BEFORE_LOADING = ("PYTHON", "LD_", "LC_", "LANG", "MALLOC_", "TZ", "OPENBLAS_", "OMP_")
"""How variables begin that are read before or while modules are loaded: with others, a fork would not be the same."""
_AROUND = ("Umask:", "SigBlk:", "SigIgn:", "CapEff:", "NoNewPrivs:", "Seccomp:")
_OUTSIDE = ("psycopg", "sqlalchemy.dialects.postgresql.psycopg")
"""Libraries that are loaded with the first use, for their name alone is in the code."""
_REQUEST_BYTES = 128 * 1024


class _Request(NamedTuple):
    module: str
    words: list[str]
    folder: str
    variables: dict[str, str]
    is_session: bool


class _Surroundings(NamedTuple):
    """What a process has of the one that starts it."""

    limits: str
    niceness: int
    mounts: str
    status: list[str]
    variables: dict[str, str]
    """Those that are read before or while modules are loaded."""

    @classmethod
    def now(cls, variables: Mapping[str, str]) -> _Surroundings:
        """Return those of this process, with these variables."""
        lines = Path("/proc/thread-self/status").read_text().splitlines()
        return cls(
            limits=Path("/proc/self/limits").read_text(), niceness=os.getpriority(os.PRIO_PROCESS, 0),
            mounts=str(Path("/proc/self/ns/mnt").readlink()), status=[one for one in lines if one.startswith(_AROUND)],
            variables={name: value for name, value in variables.items() if name.startswith(_BEFORE_LOADING)},
        )  # fmt: skip


# Keep compiled modules: otherwise each of the thousand processes that tests start compiles everything that it loads.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
_USUAL = _Surroundings.now(os.environ)
"""As tests are collected: a test that changes any of it for a command has that started."""


class _Forker:
    """The process that forks, as the tests talk to it: one for each process of tests, from the first use on."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._turn = threading.Lock()
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # numpy would start threads of its own as soon as it is loaded.
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("HOLDFAST_", *_BEFORE_LOADING))
        }
        alone = {**kept, **_USUAL.variables, "OPENBLAS_NUM_THREADS": "1"}
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.forked", str(theirs.fileno())], pass_fds=[theirs.fileno()], cwd=_ROOT,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=alone,
            )  # fmt: skip

    def start(self, request: _Request, files: Sequence[int]) -> int:
        """Have a command started with these standard files, and return its number."""
        return self._ask(json.dumps(request).encode(), files)

    def reap(self, pid: int) -> int:
        """Return the status with which a process ended; its number may be another's from now on."""
        return self._ask(json.dumps(pid).encode(), ())

    def close(self) -> None:
        """Let it end; commands that run go on, as they would without the test."""
        if self.owner == os.getpid():
            self._line.close()
            self._process.wait()

    def _ask(self, question: bytes, files: Sequence[int]) -> int:
        with self._turn:
            socket.send_fds(self._line, [question], files)
            answer = self._line.recv(64)
        if not answer:
            raise RuntimeError(f"the process that forks commands is gone: {self._process.poll()}")
        return int(answer)


_forker: _Forker | None = None
_first = threading.Lock()


def begin() -> None:
    """Have everything loaded by now: the first command of a run would seem slow, and some are timed."""
    _forks().reap(0)


def _forks() -> _Forker:
    global _forker
    with _first:
        if _forker is None or _forker.owner != os.getpid():
            _forker = _Forker()
            atexit.register(_forker.close)
        return _forker


class Popen(subprocess.Popen[Any]):
    """`subprocess.Popen`, for commands of ours without a new interpreter."""

    _ended: int | None = None

    def _execute_child(self, *given: Any) -> None:
        # What `Popen` hands to the platform's own way of starting a program: the pipes are made already.
        pipes = given[10:16]
        request = _request_of(*given[:7], others=given[17:21], is_session=given[21], group=given[22])
        if request is None:
            super()._execute_child(*given)  # type: ignore[misc]
            return
        theirs = (pipes[0], pipes[3], pipes[5])
        self.pid = _forks().start(request, [own if one == -1 else one for own, one in enumerate(theirs)])
        self._ended = os.pidfd_open(self.pid)
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]

    def _try_wait(self, flags: int) -> tuple[int, int]:
        if self._ended is None:
            waited: tuple[int, int] = super()._try_wait(flags)  # type: ignore[misc]
            return waited
        ending = select.poll()
        ending.register(self._ended, select.POLLIN)
        if not ending.poll(0 if flags & os.WNOHANG else None):
            return 0, 0
        os.close(self._ended)
        return self.pid, _forks().reap(self.pid)

    def _internal_poll(self, *given: Any, **named: Any) -> int | None:
        if self._ended is None:
            code: int | None = super()._internal_poll(*given, **named)  # type: ignore[misc]
            return code
        if self.returncode is None and self._waitpid_lock.acquire(False):  # type: ignore[attr-defined]
            try:
                pid, status = self._try_wait(os.WNOHANG) if self.returncode is None else (0, 0)
                if pid:
                    self._handle_exitstatus(status)  # type: ignore[attr-defined]
            finally:
                self._waitpid_lock.release()  # type: ignore[attr-defined]
        return self.returncode


def run(
    command: Sequence[str], *, capture_output: bool = False, timeout: float | None = None, check: bool = False,
    input: str | bytes | None = None, **options: Any,
) -> subprocess.CompletedProcess[Any]:  # fmt: skip
    """Do what `subprocess.run` does."""
    if capture_output:
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    if input is not None:
        options["stdin"] = subprocess.PIPE
    with Popen(command, **options) as process:
        try:
            out, err = process.communicate(input, timeout=timeout)
        except BaseException:
            process.kill()
            raise
    ended = subprocess.CompletedProcess(command, process.returncode, out, err)
    if check:
        ended.check_returncode()
    return ended


def _request_of(
    command: Sequence[Any], program: Any, before: Any, _close: Any, passed: Any, folder: Any, variables: Any,
    *, others: Sequence[Any], is_session: Any, group: int,
) -> _Request | None:  # fmt: skip
    """Return what is to be forked; None for another program, or for one to be given what a fork cannot be given."""
    given = os.environ if variables is None else variables
    wanted = {os.fsdecode(name): os.fsdecode(value) for name, value in given.items()}
    words = [os.fsdecode(word) for word in command]
    is_plain = program is None and before is None and not passed and group == -1
    if not is_plain or any(one not in (None, -1) for one in others):
        return None
    if words[:2] != [sys.executable, "-m"] or words[2] not in _PROGRAMS or _Surroundings.now(wanted) != _USUAL:
        return None
    # To load everything costs as much as twenty sites: they are forked where commands are.
    if words[2] == _SITE and _forker is None:
        return None
    return _Request(words[2], words[3:], str(Path(folder or ".").absolute()), wanted, bool(is_session))


def _serve(line: socket.socket) -> _Request | None:
    """Fork at each request; return it in a child, None in the parent once nobody asks any more."""
    while True:
        question, files, _, _ = socket.recv_fds(line, _REQUEST_BYTES, 3)
        if not question:
            return None
        asked = json.loads(question)
        if isinstance(asked, int):
            answer = os.waitpid(asked, 0)[1] if asked else 0
        else:
            answer = os.fork()
            if not answer:
                for number, file in enumerate(files):
                    os.dup2(file, number)
                line.detach()
                return _Request(*asked)
        for file in files:
            os.close(file)
        line.send(str(answer).encode())


def _become(request: _Request) -> None:
    """Be a process as the interpreter begins one for this command: its files, its variables, its words."""
    if request.is_session:
        os.setsid()
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.chdir(request.folder)
    os.environ.clear()
    os.environ.update(request.variables)
    sys.stdin, sys.stdout, sys.stderr = _opened(0, "r"), _opened(1, "w"), _opened(2, "w")
    sys.argv = [str(sys.modules[_PROGRAMS[request.module]].__file__), *request.words]
    # Modules took `reach` when they were loaded.
    if spec := request.variables.get("HOLDFAST_FAILPOINT"):
        unarmed, armed = failpoints.reach, failpoints.armed(spec)
        for name, module in list(sys.modules.items()):
            if name.startswith("holdfast.") and getattr(module, "reach", None) is unarmed:
                module.reach = armed  # type: ignore[attr-defined]


def _run(module: str) -> int:
    try:
        sys.modules[_PROGRAMS[module]].main()
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return ended.code or 0
        print(ended.code, file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _end(code: int) -> NoReturn:
    """End as the interpreter does, but do not take all modules apart: that is most of what a short command costs."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            code = 120  # what the interpreter says of output that nobody took
    os._exit(code & 0xFF)


def _opened(number: int, mode: str) -> IO[str]:
    errors = "backslashreplace" if number == 2 else "strict"
    buffering = 1 if number == 2 or os.isatty(number) else -1
    return open(number, mode, buffering, "utf-8", errors, closefd=False)


def _load() -> None:
    """Load what any command may need, and look for no garbage in it, here or in a fork."""
    gc.disable()
    for found in pkgutil.walk_packages(holdfast.__path__, "holdfast."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)
    for name in (*_OUTSIDE, *_PROGRAMS.values()):
        importlib.import_module(name)
    gc.freeze()
    gc.enable()
    threads = len(list(Path("/proc/self/task").iterdir()))
    assert threads == 1, f"{threads} threads: a fork would copy what they hold"


def _main(number: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _load()
    request = _serve(socket.socket(fileno=number))
    if request is not None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _become(request)
        _end(_run(request.module))


if __name__ == "__main__":
    _main(int(sys.argv[1]))
