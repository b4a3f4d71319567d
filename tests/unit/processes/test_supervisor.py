"""The supervisor with small programs as its parts, in a process of its own: what it keeps running, and how it ends."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.clock import SystemClock
from holdfast.processes import restarts
from holdfast.processes.part_process import ServicePart
from holdfast.processes.part_states import PartState, PartStatus, read_parts
from holdfast.processes.runfile import own_command
from holdfast.processes.supervisor import ServiceSupervisor
from tests import patience

# A front that says that it answers, and parts that wait for a signal.
_WAIT = "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, [15])\n{first}\nsignal.sigwait([15])\n{last}"
_FRONT = _WAIT.format(first="print('serving http://127.0.0.1:1', flush=True)", last="")
_MARKED = _WAIT.format(
    first="import os, sys; again = os.environ.get('HOLDFAST_STARTED_AGAIN'); "
    "print('serving http://127.0.0.1:1', flush=True); "
    "print('again' if again else 'no administrator yet: a link', file=sys.stderr, flush=True)",
    last="",
)
_CALM = _WAIT.format(first="print('set', flush=True)", last="print('drained', flush=True)")
_BROKEN = "raise SystemExit(3)"
_DEAF = _WAIT.format(
    first="signal.signal(2, signal.SIG_IGN); print('set', flush=True)", last="import time; time.sleep(600)"
)

_PROGRAM = """
import json, sys
from pathlib import Path
from holdfast import log
from holdfast.cli.serve import supervise
from holdfast.processes import restarts
from holdfast.processes.part_process import ServicePart
home, drain_s, programs = sys.argv[1], float(sys.argv[2]), json.loads(sys.argv[3])
log.configure("INFO")
restarts._FIRST_S, restarts.LONGEST_S = 0.01, 0.05
parts = [
    ServicePart(name=name, command=(sys.executable, "-S", "-c", program), is_front=name == "front")
    for name, program in programs.items()
]
def tell(address):
    print(address, flush=True)
sys.exit(supervise(parts, Path(home), variables={}, drain_s=drain_s, on_ready=tell))
"""


class _Supervisor:
    def __init__(self, home: Path, *, drain_s: float = 30.0, **programs: str) -> None:
        self.home = home
        with (home / "log").open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, str(home), str(drain_s), json.dumps(programs)],
                stdout=subprocess.PIPE, stderr=log, text=True,
            )  # fmt: skip

    def parts(self) -> dict[str, PartStatus]:
        """Return how the parts do, by name."""
        return {part.name: part for part in read_parts(self.home) or []}

    def until(self, condition: Callable[[dict[str, PartStatus]], bool]) -> dict[str, PartStatus]:
        """Wait for a state of the parts."""
        deadline = time.monotonic() + patience.deadline(20)
        while not condition(parts := self.parts()):
            assert time.monotonic() < deadline, (parts, self.log())
            threading.Event().wait(0.01)
        return parts

    def until_running(self, *names: str) -> dict[str, PartStatus]:
        """Wait until these parts run, and have set up how they take signals."""
        return self.until(
            lambda parts: (
                {n for n, p in parts.items() if p.state is PartState.RUNNING} >= set(names)
                and "worker | set" in self.log()
            )
        )

    def end(self, *signals: int) -> int:
        """Send signals, one after the other, and return the exit code."""
        for number in signals:
            self.process.send_signal(number)
            threading.Event().wait(0.05)
        return self.process.wait(patience.deadline(20))

    def log(self) -> str:
        """Return everything that was logged."""
        return (self.home / "log").read_text()

    def events(self) -> list[dict[str, Any]]:
        """Return what was logged as events."""
        return [json.loads(line) for line in self.log().splitlines() if line.startswith("{")]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., _Supervisor]]:
    """Start supervisors that do not outlive the test."""
    made: list[_Supervisor] = []

    def begin(**options: Any) -> _Supervisor:
        made.append(_Supervisor(tmp_path, **options))
        return made[-1]

    yield begin
    for one in made:
        one.process.kill()
        one.process.communicate()


def _is_alive(pid: int | None) -> bool:
    assert pid is not None
    try:
        # A zombie that nobody has waited for yet is dead.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_the_link_of_the_first_administrator_is_told_once_and_without_the_name_of_a_part(
    start: Callable[..., _Supervisor],
) -> None:
    supervisor = start(front=_MARKED, worker=_CALM)
    parts = supervisor.until_running("front", "worker")
    assert "\nno administrator yet: a link\n" in f"\n{supervisor.log()}"

    os.kill(parts["front"].pid or 0, signal.SIGKILL)
    supervisor.until(lambda parts: "front | again" in supervisor.log())

    assert supervisor.log().count("no administrator yet") == 1


def test_parts_end_in_order_and_the_code_is_zero(start: Callable[..., _Supervisor]) -> None:
    supervisor = start(front=_FRONT, worker=_CALM)
    supervisor.until_running("front", "worker")

    assert supervisor.end(signal.SIGTERM) == 0
    assert supervisor.process.stdout is not None
    assert supervisor.process.stdout.read() == "http://127.0.0.1:1\n"
    assert "worker | drained" in supervisor.log()
    assert supervisor.parts() == {}


def test_a_part_that_is_killed_is_started_again_and_the_address_is_told_once(start: Callable[..., _Supervisor]) -> None:
    supervisor = start(front=_FRONT, worker=_CALM)
    before = supervisor.until_running("front", "worker")
    for name in ("front", "worker"):
        pid = before[name].pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)

    after = supervisor.until(
        lambda parts: all(parts[n].restarts == 1 and parts[n].state is PartState.RUNNING for n in before)
    )

    assert after["worker"].last_exit == "killed by SIGKILL"
    assert {part.pid for part in after.values()}.isdisjoint(part.pid for part in before.values())
    assert supervisor.end(signal.SIGINT) == 0
    assert supervisor.process.stdout is not None
    assert supervisor.process.stdout.read() == "http://127.0.0.1:1\n"


def test_a_part_that_ends_ten_times_in_a_minute_is_told_and_the_rest_goes_on(start: Callable[..., _Supervisor]) -> None:
    supervisor = start(front=_FRONT, worker=_CALM, broken=_BROKEN)

    parts = supervisor.until(lambda parts: "broken" in parts and parts["broken"].state is PartState.FAILING)

    assert (parts["broken"].restarts, parts["broken"].last_exit) == (9, "exit code 3")
    assert {parts["front"].state, parts["worker"].state} == {PartState.RUNNING}
    assert [event["part"] for event in supervisor.events() if event["event"] == "serve.part_failing"] == ["broken"]
    assert supervisor.end(signal.SIGTERM) == 0


def test_a_front_that_never_answers_ends_everything_with_one(start: Callable[..., _Supervisor]) -> None:
    supervisor = start(front="raise SystemExit('port 80 is taken')", worker=_CALM)

    assert supervisor.process.wait(patience.deadline(20)) == 1
    assert "front | port 80 is taken" in supervisor.log()
    assert "serve.part_starts" in supervisor.log()
    assert '"part": "worker"' not in supervisor.log(), "nothing else was begun"


def test_a_second_signal_ends_at_once(start: Callable[..., _Supervisor]) -> None:
    supervisor = start(front=_FRONT, worker=_DEAF)
    pid = supervisor.until_running("front", "worker")["worker"].pid
    began = time.monotonic()

    assert supervisor.end(signal.SIGINT, signal.SIGINT) == 128 + signal.SIGINT
    assert time.monotonic() - began < patience.allowed(2)
    assert not _is_alive(pid)


def test_a_part_that_does_not_end_in_time_is_killed_and_the_code_says_so(start: Callable[..., _Supervisor]) -> None:
    supervisor = start(front=_FRONT, worker=_DEAF, drain_s=0.6)
    supervisor.until_running("front", "worker")

    assert supervisor.end(signal.SIGTERM) == 1
    assert [event["part"] for event in supervisor.events() if event["event"] == "serve.part_killed"] == ["worker"]


def test_no_part_outlives_a_killed_supervisor_and_the_next_one_starts_at_once(
    start: Callable[..., _Supervisor],
) -> None:
    supervisor = start(front=_FRONT, worker=_DEAF)
    pids = [part.pid for part in supervisor.until_running("front", "worker").values()]
    supervisor.end(signal.SIGKILL)

    deadline = time.monotonic() + patience.deadline(5)
    while any(map(_is_alive, pids)):
        assert time.monotonic() < deadline, "a part lives on"
        threading.Event().wait(0.01)
    again = start(front=_FRONT, worker=_CALM)
    again.until_running("front", "worker")
    assert again.end(signal.SIGTERM) == 0


def test_a_part_that_cannot_be_forked_is_tried_again_and_the_others_run_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process, and without a signal: the machine refuses another process a few times."""
    told = list[str]()
    parts = [
        ServicePart(name="front", command=(sys.executable, "-S", "-c", _FRONT), is_front=True),
        ServicePart(name="worker", command=(sys.executable, "-S", "-c", _CALM)),
    ]
    supervisor = ServiceSupervisor(
        parts, home=tmp_path, clock=SystemClock(), drain_s=30.0, environment=dict(os.environ), on_ready=told.append
    )
    refused = iter([False, True, True, True])

    def popen(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        if next(refused, False):
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        return real(*arguments, **options)

    real = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", popen)
    monkeypatch.setattr(restarts, "_FIRST_S", 0.01)
    (tmp_path / "run").mkdir()

    def stop_when_set() -> None:
        limit = time.monotonic() + patience.deadline(20)
        while time.monotonic() < limit:
            states = json.loads((tmp_path / "run" / "serve.json").read_text())["parts"] if told else []
            if any(one["name"] == "worker" and one["state"] == "running" and one["pid"] for one in states):
                break
            threading.Event().wait(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    watching = threading.Thread(target=stop_when_set)
    watching.start()
    code = supervisor.run()
    watching.join()
    worker = next(one for one in json.loads((tmp_path / "run" / "serve.json").read_text())["parts"]
                  if one["name"] == "worker")  # fmt: skip

    assert code == 0
    assert (worker["restarts"], worker["state"]) == (3, "stopped")


def test_a_file_in_the_working_directory_is_never_taken_for_a_module(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise SystemExit('the file of a stranger was run')")

    done = subprocess.run([*own_command("url", "https://example.org/")], cwd=tmp_path, capture_output=True, text=True)

    assert (done.returncode, "stranger" in done.stderr) == (0, False), done.stderr
