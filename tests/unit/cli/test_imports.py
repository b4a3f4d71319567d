"""What an import prints: names and findings that others wrote, and nothing that a terminal would obey."""

from __future__ import annotations

import pytest

from holdfast.cli.imports import _print
from holdfast.index.intake.importer import Imported
from holdfast.index.intake.placing import Damage

ERASE = "\x1b[2J\x9b31m\u202e"


@pytest.mark.parametrize(
    "one",
    [
        Imported(origin=f"/x/a.wacz!archive/{ERASE}.warc", error=f"{ERASE} is not read: a link"),
        Imported(
            origin=f"/x/{ERASE}.warc",
            state="imported",
            how="copied",
            fixity=[f"{ERASE} is listed and not there"],
            notes=[f"signed by {ERASE}"],
            damage=[Damage(0, "bad_header", f"it begins with {ERASE}")],
            damaged=1,
        ),
    ],
)
def test_nothing_that_a_package_says_reaches_the_terminal_as_a_command(
    one: Imported, capsys: pytest.CaptureFixture[str]
) -> None:
    _print(one)

    told = capsys.readouterr()
    lines = (told.out + told.err).splitlines()
    assert lines
    assert all(line.isprintable() for line in lines)
