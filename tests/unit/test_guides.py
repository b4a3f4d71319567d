"""How pages with commands are read."""

from __future__ import annotations

import pytest

from tests.guides import Command, Kind, blocks, commands, not_shown

PAGE = """# A page

```console
$ holdfast status
1 … done
…
$ holdfast stop
nothing runs
(exit code 1)
```

<!-- meanwhile: the site changes -->

```console not-run
$ make test
```
"""


def test_commands_stand_with_what_the_page_shows_of_their_answers() -> None:
    found = blocks("page.md", PAGE)

    assert [(one.kind, one.line) for one in found] == [
        (Kind.TYPED, 3),
        (Kind.MEANWHILE, 12),
        (Kind.NOT_RUN, 14),
    ]
    assert commands(found[0]) == [
        Command(text="holdfast status", shown=("1 … done", "…")),
        Command(text="holdfast stop", shown=("nothing runs",), code=1),
    ]


@pytest.mark.parametrize("fence", ["```\nholdfast status\n```\n", "```sh\nholdfast status\n```\n"])
def test_a_block_that_no_test_would_read_is_told(fence: str) -> None:
    with pytest.raises(AssertionError, match="no test reads"):
        blocks("page.md", fence)


@pytest.mark.parametrize("text", ["```console\nholdfast status\n```\n", "```console\n```\n"])
def test_a_console_block_without_a_command_is_told(text: str) -> None:
    with pytest.raises(AssertionError, match=r"page\.md:1"):
        commands(blocks("page.md", text)[0])


@pytest.mark.parametrize(
    ("shown", "missing"),
    [
        (("1 … done",), None),
        (("…",), None),
        (("1 example  done", "2 pages"), None),
        (("2 pages", "1 … done"), "1 … done"),
        (("3 pages",), "3 pages"),
        (("1 … lost",), "1 … lost"),
    ],
)
def test_what_a_page_shows_is_looked_for_line_by_line_in_order(shown: tuple[str, ...], missing: str | None) -> None:
    assert not_shown(shown, "  1   example done\n 2 pages, 3 bytes\n") == missing
