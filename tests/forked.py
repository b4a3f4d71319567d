"""Commands of holdfast, each in a process forked from one that has loaded all of them: a start costs a tenth so.

Run as `python -m tests.forked`, it reads a request a line (JSON: words, folder, variables, output) and answers each
with an exit code. It has one thread, so that a fork copies no lock that another one holds.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

from holdfast.cli import main as program
from holdfast.cli.catalogue import COMMANDS
from tests.guides import ROOT


class Forker:
    """Starts commands; leaving its `with` block ends it."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.forked"], cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def run(self, words: list[str], *, folder: Path, variables: dict[str, str], output: Path) -> int:
        """Run a command to its end and return its exit code; what it prints is in `output`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = {"words": words, "folder": str(folder), "variables": variables, "output": str(output)}
        self._process.stdin.write(f"{json.dumps(request)}\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def __enter__(self) -> Forker:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()


def _run(request: dict[str, Any]) -> int:
    """Be the command, in a process that ends with it."""
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["variables"])
    output = os.open(request["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.argv = ["holdfast", *request["words"]]
    try:
        program.main()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
        return 70
    return 0


def _serve() -> None:
    for command in COMMANDS.values():
        program.load(command.module)
    gc.freeze()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            code = _run(json.loads(line))
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    _serve()
