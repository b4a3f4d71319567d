"""The pages that show commands, read as a person reads them: blocks in order, lines to type, what is shown below.

A fenced block says by its first line what is done with it:

- `console`: each `$ …` line is typed; the lines below it are parts of what it prints. `…` stands for anything,
  `(exit code 1)` for how it ends.
- `console keeps-running`: the same for a command that goes on until it is stopped, such as a server.
- `console not-run`: commands that need root, a network or another machine; their programs and options are looked up.
- `pycon`: a Python session, typed as a doctest.
- `ini`, `nginx`: a file, named by the comment in its first line.

Any other fence in these pages is a mistake: nothing would test it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

ROOT = Path(__file__).parents[1]
STANDINS = ROOT / "tests" / "standins"
"""Programs that a machine may have or not: a test finds these first."""
IN_ONE_FOLDER = (
    "docs/index.md",
    "docs/guides/first-archive.md",
    "docs/guides/studying-an-archive.md",
    "docs/guides/running-for-years.md",
    "docs/guides/changing-the-code.md",
    "docs/sizing.md",
    "docs/takedown.md",
    "docs/upgrade.md",
    "docs/troubleshooting.md",
    "docs/glossary.md",
    "docs/when-to-use-something-else.md",
)
"""In the order in which they are typed: each goes on with the archive that those before it left."""
DEPLOYMENT = "docs/deploy.md"
_FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MEANWHILE = re.compile(r"^<!-- meanwhile: ([^\n]*) -->$", re.MULTILINE)
_EXIT = re.compile(r"\(exit code (\d+)\)")


class Kind(StrEnum):
    """What is done with a block."""

    TYPED = "console"
    KEEPS_RUNNING = "console keeps-running"
    NOT_RUN = "console not-run"
    PYTHON = "pycon"
    INI = "ini"
    NGINX = "nginx"
    MEANWHILE = "meanwhile"
    """Not a block: a comment that says what happens in the world before the next one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A part of a page that a test does something with."""

    page: str
    line: int
    kind: Kind
    text: str

    @property
    def place(self) -> str:
        """Where it stands, as editors open it."""
        return f"{self.page}:{self.line}"

    @property
    def file(self) -> str:
        """The path of the file that an `ini` or `nginx` block holds."""
        first = self.text.partition("\n")[0]
        assert first.startswith("# /"), f"{self.place}: the first line names the file, as `# /etc/holdfast.env`"
        return first.removeprefix("# ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A line to type, the parts of its answer that the page shows, and the exit code that it shows."""

    text: str
    shown: tuple[str, ...]
    code: int = 0


def blocks(page: str, text: str | None = None) -> list[Block]:
    """Return the blocks of a page in order; AssertionError for a fence that no test would read."""
    whole = (ROOT / page).read_text("utf-8") if text is None else text
    found = [*_FENCE.finditer(whole), *_MEANWHILE.finditer(whole)]
    made = []
    for match in sorted(found, key=lambda one: one.start()):
        line = whole.count("\n", 0, match.start()) + 1
        if match.re is _MEANWHILE:
            made.append(Block(page=page, line=line, kind=Kind.MEANWHILE, text=match[1]))
            continue
        assert match[1] in {*Kind} - {Kind.MEANWHILE}, f"{page}:{line}: no test reads a block of kind {match[1]!r}"
        made.append(Block(page=page, line=line, kind=Kind(match[1]), text=match[2]))
    return made


def commands(block: Block) -> list[Command]:
    """Return the commands of a console block; AssertionError if something stands before the first one."""
    typed: list[tuple[str, list[str]]] = []
    for line in block.text.replace("\\\n", " ").splitlines():
        if line.startswith("$ "):
            typed.append((line.removeprefix("$ "), []))
        elif line.strip():
            assert typed, f"{block.place}: {line!r} stands before the first command"
            typed[-1][1].append(line)
    assert typed, f"{block.place}: a console block without a line that begins with $"
    return [_command(text, shown) for text, shown in typed]


def _command(text: str, shown: list[str]) -> Command:
    code = 0
    if shown and (found := _EXIT.fullmatch(shown[-1])) is not None:
        code = int(found[1])
        shown = shown[:-1]
    return Command(text=text, shown=tuple(shown), code=code)


def not_shown(shown: tuple[str, ...], printed: str) -> str | None:
    """Return the first line that a page shows and a command did not print, in this order; None if all are there."""
    lines = iter([" ".join(line.split()) for line in printed.splitlines()])
    for line in shown:
        parts = [" ".join(part.split()) for part in line.split("…")]
        wanted = re.compile(".*?".join(map(re.escape, parts)))
        if any(parts) and not any(wanted.search(one) for one in lines):
            return line
    return None


def all_pages() -> Iterator[str]:
    """Yield the pages whose commands a test types."""
    yield from IN_ONE_FOLDER
    yield DEPLOYMENT
