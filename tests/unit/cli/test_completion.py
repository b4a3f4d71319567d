"""Completion in a shell: the script that is printed, asked as bash asks it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from holdfast.cli.completion import script
from holdfast.cli.main import words
from tests import needs

TREE = {
    "url": ["--json"],
    "job": ["list", "logs"],
    "job list": ["--state", "--status", "--json"],
    "job logs": ["--all"],
}


@pytest.fixture
def bash() -> str:
    """Where bash is."""
    return needs.program("bash")


@pytest.mark.usefixtures("bash")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("u", "url"),
        ("", "url job"),
        ("job l", "list logs"),
        ("job list --st", "--state --status"),
        ("job logs --", "--all"),
        ("url --", "--json"),
        ("nobody --", ""),
    ],
)
def test_bash_is_offered_what_may_come_next(tmp_path: Path, typed: str, offered: str) -> None:
    (tmp_path / "script").write_text(script("bash", TREE))
    said = typed.split(" ")
    line = f'COMP_WORDS=(holdfast {" ".join(said)} ""); COMP_CWORD={len(said)}'
    ask = f'source ./script; {line}; _holdfast; echo "${{COMPREPLY[*]}}"'
    done = subprocess.run(["bash", "-c", ask], cwd=tmp_path, capture_output=True, text=True, check=True)

    assert done.stdout.strip() == offered


def test_other_shells_have_theirs() -> None:
    assert script("zsh", TREE).startswith("autoload -U +X bashcompinit")
    fish = script("fish", TREE).splitlines()
    assert "complete -c holdfast -n '__fish_seen_subcommand_from job' -f -a 'list logs'" in fish
    assert sum(line.endswith("-l status") for line in fish) == 1


def test_the_words_come_from_the_commands_themselves() -> None:
    tree = words()

    assert "list" in tree["job"]
    assert {"--follow", "--home", "--no-adaptive"} <= {*tree["job logs"], *tree["create-job"]}
    assert "--json" in tree["list-jobs"]
