"""The files in deploy/ that start `holdfast serve`: read by the programs that would, as far as they are here."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]

from holdfast.cli.main import load
from holdfast.cli.runner import built, options
from tests import needs

ROOT = Path(__file__).parents[3]
UNIT = ROOT / "deploy/systemd/holdfast.service"
DOCKERFILE = ROOT / "deploy/docker/Dockerfile"
COMPOSE = ROOT / "deploy/docker/compose.yaml"


def _commands() -> dict[str, list[str]]:
    """Return how each file starts the program."""
    unit = re.search(r"^ExecStart=\S+/(.*)$", UNIT.read_text(), re.MULTILINE)
    image = re.search(r"^CMD (\[.*\])$", DOCKERFILE.read_text(), re.MULTILINE)
    assert unit is not None
    assert image is not None
    composed: list[str] = yaml.safe_load(COMPOSE.read_text())["services"]["holdfast"]["command"]
    return {UNIT.name: unit[1].split(), DOCKERFILE.name: json.loads(image[1]), COMPOSE.name: composed}


@pytest.mark.parametrize("name", [UNIT.name, DOCKERFILE.name, COMPOSE.name])
def test_each_file_starts_the_supervisor_with_options_that_it_has(name: str) -> None:
    program, command, *arguments = _commands()[name]

    assert (program, command) == ("holdfast", "serve")
    assert {word for word in arguments if word.startswith("--")} <= set(options(built(load("serve"))))


def test_what_starts_it_waits_longer_than_it_drains() -> None:
    drains = {
        name: int(words[words.index("--drain-seconds") + 1]) for name, words in _commands().items() if len(words) > 2
    }
    stop = re.search(r"^TimeoutStopSec=(\d+)$", UNIT.read_text(), re.MULTILINE)
    assert stop is not None
    grace = int(yaml.safe_load(COMPOSE.read_text())["services"]["holdfast"]["stop_grace_period"].removesuffix("s"))

    assert int(stop[1]) > drains[UNIT.name]
    assert grace > drains[COMPOSE.name]


def test_the_unit_is_one(tmp_path: Path) -> None:
    verify = needs.program("systemd-analyze", package="systemd")
    binary = tmp_path / "opt/holdfast/.venv/bin/holdfast"
    binary.parent.mkdir(parents=True)
    binary.write_text("#!/bin/sh\n")
    binary.chmod(0o755)
    path = tmp_path / UNIT.name
    path.write_text(re.sub(r"(?<![\w./])/(etc|srv|opt)/", rf"{tmp_path}/\1/", UNIT.read_text()))

    told = subprocess.run([verify, "verify", str(path)], capture_output=True, text=True, check=False)

    assert str(tmp_path) not in told.stderr, told.stderr
    assert told.returncode == 0, told.stderr
