"""Commands that are forked begin, are told and end as those that are started."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from tests import forked
from tests.patience import deadline

_COMMAND = [sys.executable, "-m", "holdfast.cli.main"]


def _is_forked(process: subprocess.Popen[str]) -> bool:
    return b"tests.forked" in Path(f"/proc/{process.pid}/cmdline").read_bytes()


@pytest.mark.parametrize(
    "words",
    [["url", "https://example.org/a?b=1"], ["url", "no address"], ["fly"], [], ["--version"], ["settings", "--json"],
     ["status", "--home", "home"], ["search", "--limit", "x"]],
    ids=" ".join,
)  # fmt: skip
def test_a_command_says_and_ends_the_same(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    variables = {**os.environ, "HOLDFAST_CONTACT": "we@example.org", "HOLDFAST_HOME": "here"}

    known: dict[str, Any] = {"capture_output": True, "text": True, "env": variables}
    ours = forked.run([*_COMMAND, *words], cwd=tmp_path / "a", **known)
    theirs = subprocess.run([*_COMMAND, *words], cwd=tmp_path / "b", check=False, **known)

    assert ours.returncode == theirs.returncode
    assert (ours.stdout.replace("/a/", "/b/"), ours.stderr) == (theirs.stdout, theirs.stderr)
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == sorted(
        path.name for path in (tmp_path / "b").iterdir()
    )


def test_a_server_is_a_process_of_its_own_that_hears_signals_and_is_there_until_it_is_waited_for(
    tmp_path: Path,
) -> None:
    command = [*_COMMAND, "api", "--port", "0", "--home", str(tmp_path)]
    with forked.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("serving ")
        assert _is_forked(process)
        assert (os.getpgid(process.pid), os.getsid(process.pid)) == (process.pid, process.pid)
        # The socket of who forks and the pipes of others are not among its files.
        files = {path.readlink().name for path in Path(f"/proc/{process.pid}/fd").iterdir()}
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
        os.killpg(process.pid, signal.SIGKILL)
        until = monotonic() + deadline(20)
        while Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
            assert monotonic() < until
        assert process.wait(deadline(20)) == -signal.SIGKILL
    assert not Path(f"/proc/{process.pid}").exists()
    assert sum(name.startswith("pipe:") for name in files) <= 4


def test_a_place_at_which_it_dies_is_armed(tmp_path: Path) -> None:
    seen = forked.run(
        [*_COMMAND, "status", "--home", str(tmp_path)], env={**os.environ, "HOLDFAST_FAILPOINT": "no:such"},
        capture_output=True, text=True,
    )  # fmt: skip

    assert (seen.returncode, "KeyError" in seen.stderr) == (1, True), "what cannot be read is refused at the start"


def test_a_command_that_may_do_less_than_the_tests_is_started(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, before[1]))
    try:
        process = forked.Popen([*_COMMAND, "api", "--home", str(tmp_path)], stdout=subprocess.PIPE)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    with process:
        try:
            assert resource.prlimit(process.pid, resource.RLIMIT_FSIZE)[0] == 1_000_000
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("command", "options"),
    [([sys.executable, "-c", "input()"], {}), ([*_COMMAND, "api"], {"env": {**os.environ, "TZ": "Asia/Tokyo"}}),
     ([*_COMMAND, "api"], {"preexec_fn": os.getpid})],
    ids=["another program", "another time zone", "something before"],
)  # fmt: skip
def test_what_a_fork_cannot_be_is_started(command: list[str], options: dict[str, Any], tmp_path: Path) -> None:
    with forked.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path, **options) as process:
        try:
            assert not _is_forked(process)
        finally:
            process.kill()
    assert process.returncode == -signal.SIGKILL
