"""What an import prints: names and findings that others wrote, and nothing that a terminal would obey."""

from __future__ import annotations

import pytest

from holdfast.api.routes.reports import ReportForm
from holdfast.cli.formatting import lines
from holdfast.cli.index import print_imported
from holdfast.imports.importer import ImportedFile
from holdfast.warc.verify import RecordProblem

ERASE = "\x1b[2J\x9b31m\u202e"


@pytest.mark.parametrize(
    "one",
    [
        ImportedFile(origin=f"/x/a.wacz!archive/{ERASE}.warc", error=f"{ERASE} is not read: a link"),
        ImportedFile(
            origin=f"/x/{ERASE}.warc",
            state="imported",
            how="copied",
            fixity=[f"{ERASE} is listed and not there"],
            notes=[f"signed by {ERASE}"],
            damage=[RecordProblem(0, "bad_header", f"it begins with {ERASE}")],
            damaged=1,
        ),
    ],
)
def test_nothing_that_a_package_says_reaches_the_terminal_as_a_command(
    one: ImportedFile, capsys: pytest.CaptureFixture[str]
) -> None:
    print_imported(one)

    told = capsys.readouterr()
    lines = (told.out + told.err).splitlines()
    assert lines
    assert all(line.isprintable() for line in lines)


def test_what_readers_and_servers_wrote_keeps_its_lines_and_nothing_else() -> None:
    assert lines(f"one\n{ERASE}two\tthree") == "one\n\ufffd[2J\ufffd31m\ufffdtwo    three"


def test_a_report_of_a_reader_has_no_control_characters_of_either_kind() -> None:
    told = f"The page is empty.\n{ERASE} Please look."
    form = ReportForm.model_validate({"category": "takedown", "description": told})

    assert form.description == "The page is empty.\n[2J31m\u202e Please look."
