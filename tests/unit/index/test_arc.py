"""ARC files become WARC 1.1: every field carried over, every block byte for byte, the same ids each time."""

from __future__ import annotations

import gzip
from pathlib import Path

from holdfast.warc.arc import is_arc
from holdfast.warc.reader import DamagedWarc, read_records
from holdfast.warc.rewrite import convert_arc, rewrite_warc
from holdfast.warc.verify import verify_file
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

        assert [one.head.url[-1:] for one in read_records(new)] == ["", "1"], name
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
