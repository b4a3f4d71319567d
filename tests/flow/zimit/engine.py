"""A container engine with one image, zimit, played by plain processes. No Docker is needed, nor is any of our own code.

`DOCKER_CONFIG` names its folder: `script.json` says what each `docker run` does in turn (the last entry repeats), every
call goes to `calls.jsonl`, and running containers stand in `containers/`. What zimit does by itself is always done: it
checks its flags, makes a temporary directory and announces it, and deletes it on the way out unless told to keep it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Command = Callable[[Path, dict[str, Any], list[str]], int]


def main(arguments: list[str], run: Command) -> int:
    """Do one docker command; `run` is handed in, for only that one needs all of zimit."""
    root = Path(os.environ["DOCKER_CONFIG"])
    script = json.loads((root / "script.json").read_text())
    call = {"argv": arguments, "env": sorted(os.environ), "at": time.time()}
    with (root / "calls.jsonl").open("a") as file:
        file.write(json.dumps(call) + "\n")
    if script["down"]:
        print("Cannot connect to the Docker daemon at unix:///var/run/docker.sock.", file=sys.stderr)
        return 125 if arguments[0] == "run" else 1
    if arguments == ["--version"]:
        print("Docker version 27.0.0, build stand-in")
        return 0
    if arguments[0] == "version":
        print("27.0.0")
        return 0
    known = {"run": run, "ps": _ps, "stop": _stop, "kill": _kill, "exec": _exec, "inspect": _inspect}
    return known[arguments[0]](root, script, arguments[1:])


def _containers(root: Path) -> list[dict[str, Any]]:
    found = []
    for path in sorted((root / "containers").glob("*.json")):
        content = json.loads(path.read_text())
        if _is_alive(content["pid"]):
            found.append(content)
    return found


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def _ps(root: Path, script: dict[str, Any], arguments: list[str]) -> int:
    label = arguments[arguments.index("--filter") + 1].removeprefix("label=")
    asked = (root / "calls.jsonl").read_text().count('"argv": ["ps", "-q", "--filter", "label=archive_job')
    if label.startswith("archive_job") and asked <= script["hidden"]:
        return 0
    for container in _containers(root):
        if label in container["labels"]:
            print(container["id"])
    return 0


def _inspect(root: Path, _script: dict[str, Any], arguments: list[str]) -> int:
    found = [container for container in _containers(root) if container["id"] == arguments[-1]]
    print(json.dumps(found))
    return 0 if found else 1


def _stop(root: Path, _script: dict[str, Any], arguments: list[str]) -> int:
    grace, wanted = float(arguments[1]), arguments[2]
    found = [container for container in _containers(root) if container["id"] == wanted]
    if not found:
        print(f"Error response from daemon: No such container: {wanted}", file=sys.stderr)
        return 1
    pid = found[0]["pid"]
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + grace
    while _is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    if _is_alive(pid):
        os.kill(pid, signal.SIGKILL)
    print(wanted)
    return 0


def _kill(root: Path, _script: dict[str, Any], arguments: list[str]) -> int:
    for container in _containers(root):
        if container["id"] == arguments[0]:
            os.kill(container["pid"], signal.SIGKILL)
    return 0


def _exec(_root: Path, _script: dict[str, Any], _arguments: list[str]) -> int:
    return 0
