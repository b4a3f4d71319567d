"""Every command line in README.md and docs/ is one that can be typed: its names, options and arguments are read.

docs/cli.md is written from the help pages, whose examples `tests/flow/test_examples.py` types.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.core import TyperGroup

from holdfast.cli import runner
from holdfast.cli.catalogue import COMMANDS
from holdfast.cli.main import load

ROOT = Path(__file__).parents[3]
_FENCE = re.compile(r"^```[^\n`]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`([^`\n]+)`")
_BEHIND = re.compile(r" (?:&&|[|]|>) ")
"""Where a shell takes over."""
_COMMENT = re.compile(r"\s+#\s.*")
_NUMBERS = {"N", "ID", "JOB", "YEAR", "EXECUTION", "EARLIER", "LATER"}
"""Words in capitals that stand for a number."""


class Line(NamedTuple):
    """A command line of a page, and whether it stands there as one to type, in a block."""

    page: str
    words: tuple[str, ...]
    is_block: bool

    def __str__(self) -> str:
        return f"{self.page}: {' '.join(self.words)}"


def _pages() -> list[Path]:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in pages if page.name != "cli.md"]


def lines_of(page: str, text: str) -> Iterator[Line]:
    """Yield the command lines of a page: those in its blocks, and those among its sentences."""
    for block in _FENCE.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            yield from _lines(page, _COMMENT.sub("", line.removeprefix("$ ")), is_block=True)
    for code in _INLINE.findall(_FENCE.sub("", text)):
        yield from _lines(page, code, is_block=False)


def _lines(page: str, line: str, *, is_block: bool) -> Iterator[Line]:
    for part in _BEHIND.split(line):
        text = re.sub(r"^\S*bin/holdfast ", "holdfast ", part.strip())
        is_ours, text = text.startswith("holdfast "), text.removeprefix("holdfast ")
        name, _, rest = text.partition(" ")
        if not is_ours and (is_block or name not in COMMANDS or re.match(r"-|[a-z-]+(?: |$)", rest) is None):
            continue
        if name not in ("help", "--help", "--version"):
            yield Line(page, tuple(shlex.split(text)), is_block)


LINES = [line for page in _pages() for line in lines_of(str(page.relative_to(ROOT)), page.read_text("utf-8"))]


def read(line: Line) -> None:
    """Read a line as the program would; typer's error, or AssertionError, if that cannot be done."""
    name, *words = line.words
    assert name in COMMANDS, f"there is no command {name}"
    command = COMMANDS[name]
    app = load(command.module)
    made: Any = runner.built(app, command.subcommand)
    if isinstance(made, TyperGroup):
        if not words and not line.is_block:
            return
        assert words[:1], f"{name} wants one of {', '.join(made.commands)}"
        assert words[0] in made.commands, f"{name} has no command {words[0]}"
        made = made.commands[words.pop(0)]
    if not line.is_block and all(word.startswith("--") for word in words):  # a command, or an option of it, is named
        assert {word for word in words if word != "--help"} <= {*runner.options(made)}
        return
    made.make_context(str(line), ["2026" if word in _NUMBERS else word for word in words])


@pytest.mark.parametrize("line", LINES, ids=str)
def test_a_command_line_of_the_docs_can_be_typed(line: Line) -> None:
    read(line)


def test_lines_are_found_in_blocks_and_among_sentences() -> None:
    text = "Type `job list --state x`, `holdfast stop`, `status` or `jobs`.\n\n"
    text += "```\n.venv/bin/holdfast a b  # c\nls | wc\n```\n\n```console not-run\n$ holdfast d\n```\n\n"
    text += "```ini\nExecStart=/opt/bin/holdfast e\n```\n"

    typed = [("a", "b"), ("d",), ("e",), ("job", "list", "--state", "x"), ("stop",)]
    assert [line.words for line in lines_of("p", text)] == typed
    assert len(LINES) > 100


@pytest.mark.parametrize(
    ("words", "is_block"),
    [
        ("edition frezze hc 2026", False),
        ("edition freeze hc", True),
        ("edition freeze --agian", False),
        ("edition freeze hc year", False),
        ("job", True),
        ("data-integrity-reports --id N", False),
        ("stop --wait", True),
    ],
)
def test_a_line_that_could_not_be_typed_is_found(words: str, is_block: bool) -> None:
    with pytest.raises(Exception, match=r"(?i)missing|there is no command|has no command|wants one|valid|set|requires"):
        read(Line("page", tuple(words.split()), is_block))
