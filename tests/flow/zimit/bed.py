"""Where `archive-tool` is tried: the real command in a real process, against the stand-in engine beside this file."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.zimit.logs import newest_log
from holdfast.zimit.main import run_tool
from holdfast.zimit.warc_files import warcs_below
from tests import patience
from tests.flow.zimit.forked import Forked

HERE = Path(__file__).parent
Step = dict[str, Any]
SCALE = "0.001"
"""Minutes become hundredths of a second: a stall of 30 minutes 1.8 s, a backoff of 5 minutes 0.3 s."""


class Ended(NamedTuple):
    """How the command ended."""

    code: int
    out: str
    err: str

    @property
    def state(self) -> str:
        """The last word: the end state."""
        return self.out.strip().rpartition("archive-tool: ")[2]


@dataclass(slots=True)
class Bed:
    """One output directory, one engine."""

    root: Path
    environment: dict[str, str] = field(default_factory=dict)
    seeds: tuple[str, ...] = ("https://example.org/",)
    _starts: int = 0

    def __post_init__(self) -> None:
        (self.engine / "containers").mkdir(parents=True)
        self.output.mkdir()
        self.program(
            "docker", (HERE / "docker").read_text().partition("\n")[2].replace("__file__", repr(str(HERE / "docker")))
        )
        self.script([])

    def program(self, name: str, text: str) -> Path:
        """Put a Python program on PATH; without the site's packages it starts in a tenth of the time."""
        path = self.root / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!{sys.executable} -S\n{text}")
        path.chmod(0o755)
        return path

    @property
    def engine(self) -> Path:
        """The stand-in's folder."""
        return self.root / "engine"

    @property
    def output(self) -> Path:
        """The output directory."""
        return self.root / "job"

    def script(self, *runs: list[Step], down: bool = False, hidden: int = 0) -> None:
        """Say what each `docker run` does, and how often its container is looked for in vain."""
        (self.engine / "script.json").write_text(json.dumps({"runs": runs, "down": down, "hidden": hidden}))

    def command(self, *flags: str) -> list[str]:
        """Return the command line."""
        return [
            sys.executable, "-m", "holdfast.zimit", "--seeds", *self.seeds, "--name", "job",
            "--output-dir", str(self.output), "--time-scale", SCALE, *flags,
        ]  # fmt: skip

    @property
    def variables(self) -> dict[str, str]:
        """The environment: the stand-in first on PATH, and secrets that no child may see."""
        base = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
        return {
            **base, "PATH": f"{self.root / 'bin'}:{base['PATH']}", "DOCKER_CONFIG": str(self.engine),
            "HOLDFAST_DATABASE_URL": "postgresql://secret", "HOLDFAST_ADMIN_TOKEN": "secret", **self.environment,
        }  # fmt: skip

    def start(self, *flags: str) -> Forked:
        """Start the command in a process of its own."""
        self._starts += 1
        folder = self.root / f"said-{self._starts}"
        folder.mkdir()
        return Forked(run_tool, self.command(*flags)[3:], self.variables, folder)

    def run(self, *flags: str, timeout_s: float = 60.0) -> Ended:
        """Run the command to its end."""
        return self.finish(self.start(*flags), timeout_s)

    def finish(self, process: Forked, timeout_s: float = 60.0) -> Ended:
        """Wait for a command that was started; one that hangs fails the test and leaves nothing behind."""
        if not process.wait(patience.deadline(timeout_s)):
            os.kill(process.pid, signal.SIGKILL)
            process.wait(patience.deadline(10))
            self.clear()
            raise AssertionError(f"archive-tool did not end: {process.said()[1][-2000:]}")
        assert process.returncode is not None
        return Ended(process.returncode, *process.said())

    def run_installed(self, *flags: str, before: tuple[str, ...] = ()) -> Ended:
        """Run the command as it is installed, in an interpreter of its own."""
        done = subprocess.run(
            [*before, *self.command(*flags)], capture_output=True, text=True, env=self.variables, check=False,
            timeout=patience.deadline(60), start_new_session=True,
        )  # fmt: skip
        return Ended(done.returncode, done.stdout, done.stderr)

    def clear(self) -> None:
        """End containers that are left: there should be none."""
        for path in (self.engine / "containers").glob("*.json"):
            pid = json.loads(path.read_text())["pid"]
            if self._is_ours(pid):
                os.kill(pid, signal.SIGKILL)

    def _is_ours(self, pid: int) -> bool:
        try:
            return str(self.output).encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return False

    def running(self) -> list[int]:
        """Return the processes of containers that still run."""
        found = [json.loads(path.read_text())["pid"] for path in (self.engine / "containers").glob("*.json")]
        return [pid for pid in found if self._is_ours(pid)]

    def wait_to_hear(self, process: Forked, words: str, times: int = 1) -> None:
        """Wait until the command has said something, then let a container that awaits it go on."""
        self.wait_until(lambda: process.said()[1].count(words) >= times)
        self.heard.touch()

    @property
    def heard(self) -> Path:
        """The file that containers await."""
        return self.root / "heard"

    def wait_for(self, path: Path) -> None:
        """Wait for a file that a step of the script touches."""
        self.wait_until(path.exists)

    def wait_until(self, done: Callable[[], bool], timeout_s: float = 30.0) -> None:
        """Wait until something is so in another process; it fails the test if it never is."""
        deadline = time.monotonic() + patience.deadline(timeout_s)
        while not done():
            assert time.monotonic() < deadline, "it never came to be"
            time.sleep(0.01)

    def calls(self, kind: str) -> list[list[str]]:
        """Return the arguments of every docker command of a kind, in order."""
        return [call["argv"] for call in self.raw_calls() if call["argv"][0] == kind]

    def raw_calls(self) -> list[dict[str, Any]]:
        """Return every docker command with its environment."""
        path = self.engine / "calls.jsonl"
        # Without the line that an engine is writing at this moment.
        return [json.loads(line) for line in path.read_text().split("\n")[:-1]] if path.exists() else []

    def zimit(self, turn: int) -> list[str]:
        """Return zimit's arguments in one `docker run`."""
        argv = self.calls("run")[turn]
        return argv[argv.index("zimit") + 1 :]

    def workers(self) -> list[str]:
        """Return the number of workers of each run."""
        runs = [self.zimit(turn) for turn in range(len(self.calls("run")))]
        return [argv[argv.index("--workers") + 1] for argv in runs if "--workers" in argv]

    def state(self) -> dict[str, Any]:
        """Return the state file."""
        content: dict[str, Any] = json.loads((self.output / ".archive_state.json").read_text())
        return content

    def warcs(self) -> list[str]:
        """Return the names of all WARC files, stable and temporary, below the output directory."""
        return sorted(str(file.path.relative_to(self.output)) for file in warcs_below(self.output))

    def stages(self) -> list[str]:
        """Return the names of the stages that ran, from their logs, oldest first."""
        found = sorted(self.output.glob("archive_*.combined.log"), key=lambda path: path.stat().st_mtime_ns)
        return [re.sub(r"_\d{8}_\d{6}.*", "", path.name.removeprefix("archive_")) for path in found]

    def log(self) -> str:
        """Return the newest combined log."""
        path = newest_log(self.output)
        return "" if path is None else path.read_text(errors="replace")
