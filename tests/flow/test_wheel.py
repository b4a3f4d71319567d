"""A wheel as others install it: it carries the browser application, and a server from it shows the first page."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import httpx
import pytest

from holdfast.api.web_files import BUILT
from tests import needs, patience
from tests.flow.crawler import Crawler

pytestmark = pytest.mark.slow


def _checkout(folder: Path) -> Path:
    """Copy what a package is made of: a build writes beside its sources, which other tests read."""
    folder.mkdir()
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(needs.ROOT / name, folder)
    unwanted = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(needs.ROOT / "src", folder / "src", ignore=unwanted)
    return folder


def _pip(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]


def _installed(wheel: Path, folder: Path) -> Path:
    """Install a wheel into an empty environment, which finds the libraries that we use in ours; return its programs."""
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    install = ["install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(_pip("--python", str(python), *install), check=True, timeout=patience.deadline(60))
    [packages] = folder.glob("lib/python*/site-packages")
    # A line of a path file: what is below it is found last, and no path file in it is read.
    (packages / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "bin"


def test_a_server_from_a_wheel_shows_the_application(tmp_path: Path) -> None:
    if not (BUILT / "index.html").is_file():
        needs.lacking("the browser application", "`make web` builds it")
    wheels = tmp_path / "wheels"
    build = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "-w", str(wheels)]
    checkout = _checkout(tmp_path / "checkout")
    subprocess.run(_pip(*build, str(checkout)), check=True, timeout=patience.deadline(120))
    programs = _installed(next(wheels.glob("*.whl")), tmp_path / "environment")

    variables = Crawler(tmp_path / "home").variables
    command = [str(programs / "holdfast"), "api", "--port", "0", "--home", str(tmp_path / "home")]
    with subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as server:
        assert server.stdout is not None
        try:
            address = server.stdout.readline().split()[1]
            with httpx.Client(base_url=address, timeout=patience.deadline(20)) as client:
                page = client.get("/")
                files = re.findall(r'(?:src|href)="(/[^"]+)"', page.text)
                answers = [client.get(file) for file in files]
        finally:
            server.send_signal(signal.SIGTERM)

    where = [str(programs / "python"), "-c", "import holdfast; print(holdfast.__file__)"]
    told = subprocess.run(where, capture_output=True, text=True, check=True, cwd=tmp_path, env=variables)
    assert told.stdout.startswith(str(tmp_path / "environment")), "it is the wheel that was served"
    assert (page.status_code, '<div id="root">' in page.text) == (200, True)
    assert len(files) >= 4
    assert {answer.status_code for answer in answers} == {200}


@pytest.mark.parametrize("is_older", [False, True])
def test_a_package_without_the_application_or_with_an_older_one_is_not_made(tmp_path: Path, is_older: bool) -> None:
    folder = _checkout(tmp_path / "checkout")
    shutil.rmtree(folder / "src" / "holdfast" / "api" / "web_app", ignore_errors=True)
    if is_older:
        # An application is there, its sources have changed since, and this machine cannot build them.
        (folder / "src" / "holdfast" / "api" / "web_app").mkdir()
        (folder / "src" / "holdfast" / "api" / "web_app" / "index.html").write_text("an older one")
        (folder / "tools").mkdir()
        (folder / "tools" / "web.py").write_text("raise SystemExit('--if-possible' not in __import__('sys').argv)")

    made = subprocess.run(
        [sys.executable, "setup.py", "--quiet", "build_py"], cwd=folder, capture_output=True, text=True,
        timeout=patience.deadline(60),
    )  # fmt: skip

    assert made.returncode != 0
    assert "run `make web` in a checkout, then package it" in made.stderr
