"""`holdfast verify`: what it finds, what it prints, how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import typer
from typer.testing import CliRunner, Result

from holdfast.cli.warc import verify
from holdfast.errors import NotFound
from holdfast.warc.manifest import add_to_manifest
from holdfast.warc.writer import WarcWriter
from tests.clock import FakeClock
from tests.unit.warc.archives import INFO, write


def run(*arguments: str | Path) -> Result:
    app = typer.Typer(rich_markup_mode=None)
    app.command()(verify)
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_whole_files_in_a_folder_are_listed_and_the_end_is_good(tmp_path: Path) -> None:
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    sealed, _ = write(below, 2)
    add_to_manifest(7, sealed)

    result = run(tmp_path)

    assert result.exit_code == 0
    assert "archive.warc.gz" in result.output
    assert "1 file, 5 records: all is well" in result.output


def test_problems_are_shown_with_their_offsets_and_the_end_is_bad(tmp_path: Path) -> None:
    sealed, ends = write(tmp_path, 2)
    content = sealed.path.read_bytes()
    sealed.path.write_bytes(content[: ends[2]] + b"garbage" + content[ends[2] :])

    result = run(sealed.path)

    assert result.exit_code == 1
    assert f"at {ends[2]}: garbage" in result.output


def test_the_json_is_one_object_with_every_problem(tmp_path: Path) -> None:
    sealed, ends = write(tmp_path, 2)
    sealed.path.write_bytes(sealed.path.read_bytes()[:-1])

    result = run("--json", tmp_path)

    facts = json.loads(result.output)
    assert result.exit_code == 1
    assert facts["ok"] is False
    (file,) = facts["files"]
    assert (file["state"], file["records"]) == ("damaged", 5)
    assert [(problem["offset"], problem["kind"]) for problem in file["problems"]] == [(ends[-2], "truncated")]


def test_the_manifest_knows_what_the_bytes_alone_cannot_tell(tmp_path: Path) -> None:
    sealed, ends = write(tmp_path, 2)
    add_to_manifest(7, sealed)
    gone, _ = write(tmp_path, 1, name="gone")
    add_to_manifest(8, gone)
    gone.path.unlink()
    sealed.path.write_bytes(sealed.path.read_bytes()[: ends[2]])

    result = run(tmp_path)

    assert result.exit_code == 1
    assert "file_size" in result.output
    assert "missing  " in result.output
    assert "gone.warc.gz" in result.output


def test_a_damaged_manifest_is_a_problem_and_another_programs_is_not(tmp_path: Path) -> None:
    sealed, _ = write(tmp_path, 1)
    add_to_manifest(7, sealed)
    manifest = tmp_path / "manifest.json"
    manifest.write_text(manifest.read_text()[:-20])
    damaged = run(tmp_path)
    manifest.write_text('{"version": 1, "entries": []}')
    foreign = run(tmp_path)

    assert (damaged.exit_code, foreign.exit_code) == (1, 0)
    assert "manifest.json" in damaged.output


def test_an_open_file_is_named_and_not_judged_unless_it_was_asked_for(tmp_path: Path) -> None:
    writer = WarcWriter.create(tmp_path, "live", 7, INFO, FakeClock())

    found = run(tmp_path)
    named = run(writer.path)
    writer.abandon()

    assert (found.exit_code, named.exit_code) == (0, 0)
    assert found.output.startswith("open ")
    assert named.output.startswith("ok ")


def test_nothing_found_is_no_success(tmp_path: Path) -> None:
    assert run(tmp_path).exit_code == 1
    assert run(tmp_path, "--json").exit_code == 1
    result = run(tmp_path / "nowhere")
    assert isinstance(result.exception, NotFound)


def test_many_problems_are_shown_in_part(tmp_path: Path) -> None:
    sealed, ends = write(tmp_path, 30)
    content = bytearray(sealed.path.read_bytes())
    for start in ends[:-1]:
        content[start + 60] ^= 0xFF
    sealed.path.write_bytes(content)

    result = run(sealed.path)

    assert "and 35 more; --json lists them" in result.output
