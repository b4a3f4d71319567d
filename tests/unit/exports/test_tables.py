"""Rows, index lines and sorting: what is written, byte for byte."""

from __future__ import annotations

import csv
import gzip
import io
import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.exports.package import cdxj_line, write_zipnum
from holdfast.exports.tables import Format, Value, cell, stamp, write_rows
from holdfast.index.queries import CdxRow
from holdfast.sorting import sorted_lines

MOMENT = datetime(2024, 3, 1, 12, 30, 15, tzinfo=UTC)


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\t", "\r"])
def test_no_cell_is_a_formula(sign: str) -> None:
    assert cell(f"{sign}1+1") == f"'{sign}1+1"


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (True, "true"), (False, "false"), (-3, "-3"), (-0.5, "-0.5"), ("plain", "plain"), ("", ""),
     ("a\0b", "ab"), (MOMENT, "2024-03-01T12:30:15Z")],
)  # fmt: skip
def test_cells(value: Value, text: str) -> None:
    assert cell(value) == text


@given(st.lists(st.one_of(st.none(), st.text(), st.integers()), min_size=2, max_size=2))
def test_any_text_survives_csv_and_json(values: list[Value]) -> None:
    columns = ("a", "b")

    _, line = list(write_rows([values], columns, Format.CSV))
    (found,) = csv.reader(io.StringIO(line.decode(), newline=""))
    assert found == [cell(value) for value in values]
    assert not any(isinstance(value, str) and value[:1] in tuple("=+-@\t\r") and value and not text.startswith("'")
                   for value, text in zip(values, found, strict=True))  # fmt: skip

    (line,) = write_rows([values], columns, Format.JSONL)
    assert line.count(b"\n") == 1
    assert json.loads(line) == dict(zip(columns, [_kept(value) for value in values], strict=True))


def _kept(value: Value) -> Value:
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def test_moments_are_told_in_utc() -> None:
    assert stamp(MOMENT.astimezone(timezone(timedelta(hours=5)))) == "2024-03-01T12:30:15Z"


@given(st.lists(st.binary(max_size=6).map(lambda raw: raw.replace(b"\n", b"") + b"\n"), max_size=40), st.integers(1, 7))
def test_sorting_in_pieces_is_sorting(lines: list[bytes], run_lines: int) -> None:
    folder = Path.cwd()

    assert list(sorted_lines(iter(lines), folder, run_lines=run_lines)) == sorted(lines)
    assert list(folder.glob(".sorting-*")) == []


def _row(**changed: object) -> CdxRow:
    row = CdxRow(
        1, "org,example)/", MOMENT, "https://example.org/", "response", "text/html", 200, "sha256:00", 10, 20, None,
        None, 1, None,
    )  # fmt: skip
    return row._replace(**changed)  # type: ignore[arg-type]


def test_a_line_of_the_index() -> None:
    assert cdxj_line(_row(), "a.warc.gz") == (
        b'org,example)/ 20240301123015 {"url": "https://example.org/", "mime": "text/html", "status": "200", '
        b'"digest": "sha256:00", "length": "10", "offset": "20", "filename": "a.warc.gz"}\n'
    )


@pytest.mark.parametrize(
    ("changed", "fields"),
    [
        ({"record_type": "revisit"}, {"mime": "warc/revisit", "status": "200"}),
        ({"record_type": "resource", "status": None}, {"mime": "text/html", "status": "200"}),
        ({"status": None, "media_type": None, "digest": None}, {"mime": "unk", "status": "-", "digest": "-"}),
        ({"method": "POST"}, {"method": "POST"}),
        ({"url": "https://example.org/é\n"}, {"url": "https://example.org/é\n"}),
    ],
)
def test_odd_captures_in_the_index(changed: dict[str, object], fields: dict[str, str]) -> None:
    line = cdxj_line(_row(**changed), "a.warc.gz", offset=5)

    found = json.loads(line.split(b" ", 2)[2])
    assert {name: found[name] for name in fields} == fields
    assert found["offset"] == "5"
    assert line.count(b"\n") == 1


def test_blocks_of_an_index_can_be_read_one_by_one() -> None:
    lines = [cdxj_line(_row(url_key=f"org,example)/{n:05d}"), "a.warc.gz") for n in range(2500)]
    blocks, index = io.BytesIO(), io.BytesIO()

    assert write_zipnum(lines, blocks, index.write, name="index.cdx.gz") == 2500

    _meta, *places = index.getvalue().splitlines()
    read: list[bytes] = []
    for place in places:
        fields = json.loads(place[place.index(b" {") :])
        block = gzip.decompress(blocks.getvalue()[fields["offset"] : fields["offset"] + fields["length"]])
        assert block.startswith(place[: place.index(b" {")])
        read += block.splitlines(keepends=True)
    assert read == lines
    assert len(places) == 3
