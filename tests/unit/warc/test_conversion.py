"""ARC files become WARC 1.1: every field carried over, every block byte for byte, the same ids each time."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.warc.conversion import convert_arc, is_arc, read_arc, rewrite_warc
from holdfast.warc.reader import DamagedWarc, read_records
from holdfast.warc.verify import verify_file
from tests.patience import Calls
from tests.unit.index.files import read, record

NAMES = b"URL IP-address Archive-date Content-type Archive-length\n"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>From long ago</p>"


def _first(names: bytes = NAMES, version: bytes = b"1 0 Keeper\n") -> bytes:
    block = version + names
    return b"filedesc://old.arc 0.0.0.0 20020910000000 text/plain %d\n" % len(block) + block + b"\n"


def _one(url: bytes, date: bytes = b"20020910123456", block: bytes = ANSWER, kind: bytes = b"text/html") -> bytes:
    return url + b" 192.0.2.9 " + date + b" " + kind + b" %d\n" % len(block) + block + b"\n"


def _convert(path: Path, folder: Path) -> tuple[Path, list[DamagedWarc]]:
    damage: list[DamagedWarc] = []
    return convert_arc(path, folder, path.name.partition(".")[0], seed="x", on_damage=damage.append).path, damage


def test_records_are_carried_over_with_all_their_fields(tmp_path: Path) -> None:
    old = tmp_path / "old.arc.gz"
    dns = _one(b"dns:example.org", block=b"20020910\nexample.org. 3600 IN A 192.0.2.9\n", kind=b"text/dns")
    parts = [_first(), dns, _one(b"http://example.org/a b"), _one(b"http://example.org/c", b"200209101234")]
    old.write_bytes(b"".join(map(gzip.compress, parts)))
    assert is_arc(old)

    new, damage = _convert(old, tmp_path / "new")

    assert damage == []
    info, name, first, second = [(one.head, one.read()) for one in read_records(new)]
    assert (info[0].type, info[0].get("WARC-Filename")) == ("warcinfo", "old.arc")
    assert (name[0].type, name[0].url, name[0].get("Content-Type")) == ("response", "dns:example.org", "text/dns")
    assert (first[0].url, first[0].get("WARC-IP-Address")) == ("http://example.org/a b", "192.0.2.9")
    assert first[0].get("ARC-Content-Type") == "text/html"
    assert first[0].get("Content-Type") == "application/http; msgtype=response"
    assert first[1] == ANSWER
    assert [head.get("WARC-Date") for head, _ in (first, second)] == ["2002-09-10T12:34:56Z", "2002-09-10T12:34:00Z"]
    assert verify_file(new).ok
    assert [capture.url for capture in read(new).captures] == ["http://example.org/a b", "http://example.org/c"]


def test_plain_files_and_version_two_are_read_too(tmp_path: Path) -> None:
    old = tmp_path / "old.arc"
    names = b"URL IP-address Archive-date Content-type Result-code Checksum Location Offset Filename Archive-length\n"
    line = b"http://example.org/x 192.0.2.9 20020910123456 text/html 200 abc - 1234 old.arc %d\n" % len(ANSWER)
    old.write_bytes(_first(names, b"2 0 Keeper\n") + line + ANSWER + b"\n")

    new, damage = _convert(old, tmp_path / "new")

    assert damage == []
    _, one = read_records(new)
    assert [one.head.get(f"ARC-{name}") for name in ("Result-Code", "Checksum", "Offset")] == ["200", "abc", "1234"]


def test_the_same_file_gives_the_same_bytes_again(tmp_path: Path) -> None:
    old = tmp_path / "old.arc"
    old.write_bytes(_first() + _one(b"http://example.org/"))

    first, second = (_convert(old, tmp_path / folder)[0].read_bytes() for folder in ("one", "two"))

    assert first == second


def test_what_is_cut_or_strange_is_reported_and_the_rest_kept(tmp_path: Path) -> None:
    whole = [_first(), _one(b"http://example.org/1"), _one(b"http://example.org/2")]
    for name, content in {
        "cut.arc": b"".join(whole)[:-30],
        "cut.arc.gz": b"".join(map(gzip.compress, whole))[:-20],
        "strange.arc": b"".join(whole[:2]) + b"no header at all\n",
    }.items():
        old = tmp_path / name
        old.write_bytes(content)

        new, damage = _convert(old, tmp_path / f"new-{name}")

        # The record that the file ends in is kept with a mark.
        kept = [(one.head.url[-1:], one.head.get("WARC-Truncated")) for one in read_records(new)]
        assert kept == [("", None), ("1", None), *([("2", "unspecified")] if name != "strange.arc" else [])], name
        assert len(damage) == 1, name


def test_what_is_no_arc_is_not_taken_for_one(tmp_path: Path) -> None:
    for number, content in enumerate((b"", record(), gzip.compress(record()), b"filedesc", b"\x1f\x8b\x08broken")):
        path = tmp_path / str(number)
        path.write_bytes(content)
        assert not is_arc(path)


def test_records_that_share_a_member_get_one_each(tmp_path: Path) -> None:
    big = record(b"HTTP/1.1 200 OK\r\n\r\n" + bytes(range(256)) * 8192, url="http://example.org/big")
    (tmp_path / "one.warc.gz").write_bytes(gzip.compress(record() + big + record(url="http://example.org/last")))

    sealed = rewrite_warc(tmp_path / "one.warc.gz", tmp_path / "new", "one", lambda damage: None)

    assert sealed.record_count == 3
    assert verify_file(sealed.path).ok
    found = read(sealed.path)
    assert [capture.body_bytes for capture in found.captures] == [11, 256 * 8192, 11]
    assert len({capture.offset for capture in found.captures}) == 3
    assert found.kinds == {}


def test_an_address_that_is_not_utf8_keeps_its_bytes(tmp_path: Path) -> None:
    for name, pack in (("old.arc", bytes), ("old.arc.gz", gzip.compress)):
        old = tmp_path / name
        urls = (b"http://example.org/?cat=\xe9", b"http://example.org/?cat=\xe8", "http://example.org/\u00e9".encode())
        old.write_bytes(b"".join(pack(part) for part in (_first(), *map(_one, urls))))

        new, damage = _convert(old, tmp_path / f"new-{name}")

        assert damage == []
        assert [one.head.url for one in read_records(new)][1:] == [
            "http://example.org/?cat=%E9", "http://example.org/?cat=%E8", "http://example.org/\u00e9",
        ]  # fmt: skip
        assert verify_file(new).ok


@pytest.mark.parametrize("odd", [b"\r", b"\0"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_an_address_that_no_field_can_hold_costs_one_record(
    tmp_path: Path, odd: bytes, pack: Callable[[bytes], bytes]
) -> None:
    old = tmp_path / "old.arc"
    urls = (b"http://example.org/1", b"http://example.org/" + odd + b"x", b"http://example.org/3")
    parts = [pack(part) for part in (_first(), *map(_one, urls))]
    old.write_bytes(b"".join(parts))

    new, damage = _convert(old, tmp_path / "new")

    assert [one.head.url[-1:] for one in read_records(new)] == ["", "1", "3"]
    assert [one.offset for one in damage] == [len(parts[0] + parts[1])]


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(b"no header at all\n", id="no header"),
        pytest.param(b"http://example.org/x 192.0.2.9 20020910123456 text/html -2046788874\nabc\n", id="negative"),
        pytest.param(b"http://example.org/x 192.0.2.9 20020910123456 text/html 12x\nabc\n", id="no number"),
        pytest.param(b"\xff" * 200_000 + b"\n", id="a long line"),
    ],
)
def test_after_a_bad_header_a_plain_file_is_read_from_the_next_good_one(tmp_path: Path, bad: bytes) -> None:
    old = tmp_path / "old.arc"
    before = _first() + _one(b"http://example.org/1")
    old.write_bytes(before + bad + b"".join(_one(b"http://example.org/%d" % number) for number in (2, 3)))

    new, damage = _convert(old, tmp_path / "new")

    assert [one.head.url[-1:] for one in read_records(new)] == ["", "1", "2", "3"]
    assert [(one.offset, one.kind) for one in damage] == [(len(before), "arc_header")]
    assert verify_file(new).ok


def test_a_date_that_is_none_is_replaced_by_that_of_the_file(tmp_path: Path) -> None:
    old = tmp_path / "old.arc"
    dates = (b"null", b"20021399000000", b"0")
    old.write_bytes(_first() + b"".join(_one(b"http://example.org/", date) for date in dates))

    new, damage = _convert(old, tmp_path / "new")

    assert damage == []
    heads = [one.head for one in read_records(new)][1:]
    assert [head.get("WARC-Date") for head in heads] == ["2002-09-10T00:00:00Z"] * 3
    assert [head.get("ARC-Archive-Date") for head in heads] == ["null", "20021399000000", "0"]
    assert verify_file(new).ok


def test_a_file_without_its_description_is_an_arc_file_too(tmp_path: Path) -> None:
    for name, pack in (("old.arc", bytes), ("old.arc.gz", gzip.compress)):
        old = tmp_path / name
        old.write_bytes(pack(_one(b"http://example.org/1")) + pack(_one(b"http://example.org/2", b"null")))

        assert is_arc(old)
        new, damage = _convert(old, tmp_path / f"new-{name}")

        assert [one.head.url[-1:] for one in read_records(new)] == ["1"]
        assert "its date is 'null'" in str(damage[0])


def _nested(path: Path, count: int) -> Path:
    """Write members of which each one holds the header of the next, and all that follow."""
    unit = b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + b"\0" + struct.pack("<HH", 10, 10 ^ 0xFFFF)
    path.write_bytes(gzip.compress(_first()) + unit * count)
    return path


def test_members_that_are_nested_to_cost_the_square_of_a_file_are_given_up(tmp_path: Path) -> None:
    damage: list[DamagedWarc] = []

    found = list(read_arc(_nested(tmp_path / "old.arc.gz", 400_000), "", damage.append))

    assert len(found) == 1
    assert len(damage) < 1000
    assert "honest" in damage[-1].detail


class _Ended(Exception):
    pass


def test_reading_members_without_a_record_can_be_ended(tmp_path: Path) -> None:
    beats: list[None] = []

    def pulse() -> None:
        beats.append(None)
        if len(beats) == 3:
            raise _Ended

    with pytest.raises(_Ended):
        convert_arc(
            _nested(tmp_path / "old.arc.gz", 100), tmp_path, "new", seed="", on_damage=lambda _damage: None, pulse=pulse
        )

    assert [path.name for path in tmp_path.iterdir()] == ["old.arc.gz"]


def test_short_lines_after_a_bad_header_are_looked_at_without_copying_what_follows(tmp_path: Path) -> None:
    path = tmp_path / "old.arc"
    good = b"http://a.example/ 192.0.2.1 20260901115958 text/html 5\nhello\n"
    path.write_bytes(_first() + b"\n" * 100_000 + b"no header\n" + b"x\n" * 50_000 + good)
    damage: list[DamagedWarc] = []

    with Calls() as calls:
        found = [b"".join(one.block) for one in read_arc(path, "", damage.append)]

    assert found[-1] == b"hello"
    assert len(damage) == 1
    # Some calls for each line that might be a header; none for an empty line, and no peek or drop for any.
    assert calls.count < 50_000 * 16


def test_reading_a_plain_file_without_a_record_can_be_ended(tmp_path: Path) -> None:
    path = tmp_path / "old.arc"
    path.write_bytes(_first() + b"no header\n" + b"x\n" * 500_000)
    beats: list[None] = []

    def pulse() -> None:
        beats.append(None)
        if len(beats) == 3:
            raise _Ended

    with pytest.raises(_Ended):
        list(read_arc(path, "", lambda _damage: None, pulse))
