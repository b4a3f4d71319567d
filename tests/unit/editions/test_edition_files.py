"""Files of an edition: whole or not at all, one writer, and what readers may have of them."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from holdfast.editions.composition import report_text
from holdfast.editions.edition_files import EditionBusy, draft, edition_folder, stored_file


def test_a_file_is_in_place_only_when_it_is_whole(tmp_path: Path) -> None:
    with draft(tmp_path) as made:
        with made.sheet("a.jsonl") as sheet:
            sheet.line(b"one\n")
            sheet.line(b"two\n")
            written = sheet.close()
        assert not (tmp_path / "a.jsonl").exists()
        made.publish(written)

    assert (tmp_path / "a.jsonl").read_bytes() == b"one\ntwo\n"
    assert (written.rows, written.size, written.sha256) == (2, 8, sha256(b"one\ntwo\n").hexdigest())


def test_what_breaks_off_leaves_the_files_as_they_were(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"before\n")

    def break_off() -> None:
        with draft(tmp_path) as made:
            made.whole("a.jsonl", b"after\n")
            raise KeyError

    with pytest.raises(KeyError):
        break_off()

    assert (tmp_path / "a.jsonl").read_bytes() == b"before\n"
    assert [path.name for path in tmp_path.iterdir() if path.name != ".lock"] == ["a.jsonl"]


def test_two_writers_do_not_meet(tmp_path: Path) -> None:
    with draft(tmp_path), pytest.raises(EditionBusy, match="try again"), draft(tmp_path):
        pass

    with draft(tmp_path):
        pass


def test_what_a_killed_writer_left_is_swept_away(tmp_path: Path) -> None:
    (tmp_path / ".building-old").mkdir()
    (tmp_path / ".building-old" / "a.jsonl").write_bytes(b"half")

    with draft(tmp_path):
        pass

    assert not (tmp_path / ".building-old").exists()


def test_an_edition_lies_below_the_data_directory(tmp_path: Path) -> None:
    assert edition_folder(tmp_path, "hc", 2026) == tmp_path.resolve() / "editions" / "hc" / "2026"


@pytest.mark.parametrize("stored", ["../outside.jsonl", "/etc/hostname", "holdfast.db", "editions/../../outside.jsonl",
                                    "editions/link.jsonl", f"editions/{'x' * 300}", "editions/a\0b", "editions",
                                    "editions/none.jsonl", ""])  # fmt: skip
def test_a_file_of_an_edition_lies_below_the_editions_or_nowhere(tmp_path: Path, stored: str) -> None:
    home = tmp_path / "home"
    (home / "editions").mkdir(parents=True)
    for path in (tmp_path / "outside.jsonl", home / "holdfast.db", home / "editions" / "in.jsonl"):
        path.touch()
    (home / "editions" / "link.jsonl").symlink_to(tmp_path / "outside.jsonl")

    assert stored_file(home, stored) is None
    assert stored_file(home, "editions/in.jsonl") == (home / "editions" / "in.jsonl").resolve()


def test_words_from_the_web_cannot_break_a_report() -> None:
    content = {
        "source_name": "A | B\n# C", "year": 2026, "status": "search_ready", "search_ready": True,
        "research_ready": False, "generated_at": "2026-01-01", "counts": {"intended_urls": 1234}, "outcomes": {},
        "origins": {}, "reasons": [{"outcome": "failed", "reason": "a|b\n<script>", "count": 3}],
        "missing_seeds": [], "shards": [], "exclusion_rules": [], "sitemaps": {}, "artifacts": {}, "notes": ["n"],
    }  # fmt: skip

    text = report_text(content)

    assert "| intended urls | 1,234 |" in text
    assert "a\\|b &lt;script>" in text
    assert "\n# C" not in text
