"""Archives that nobody here wrote: read as their own readers read them, and judged as they deserve."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.warc.reader import DamagedWarc, read_records
from holdfast.warc.repair import repair
from holdfast.warc.verify import verify_file
from tests import needs
from tests.foreign import write_with_warcio
from tests.unit.warc.peers import Seen, by_fastwarc

# Each with the first thing that is wrong with it.
DAMAGED = {
    "warcio/example-trunc.warc": "payload_digest",
    "warcio/example-digest.warc": "payload_digest",
    "warcio/example-bad-non-chunked.warc.gz": "block_digest",
    "warcio/example-wrong-chunks.warc.gz": "payload_digest",
    "resiliparse/clipped.warc.gz": "truncated",
    "resiliparse/clueweb-quirk.warc.gz": "field_value",
    "cdxj-indexer/example.warc.gz": "block_digest",
    "pywb/example.warc": "record_end",
    "ipwb/redirect.warc": "truncated",
}
WHOLE = [
    "cdxj-indexer/cc.warc.gz", "cdxj-indexer/post-test.warc.gz", "iipc/20130729-heritrix-original.warc.gz",
    "iipc/20130729-heritrix-revisit-with-http-headers.warc.gz", "iipc/20141124-heritrix-server-not-modified.warc.gz",
    "iipc/hello-world.warc", "iipc/hello-world.warc.gz", "ipwb/froggie.warc.gz", "pywb/dupes.warc.gz",
    "pywb/example-url-agnostic-revisit.warc.gz", "pywb/example-wget-1-14.warc.gz", "pywb/example-wpull.warc.gz",
    "pywb/example.warc.gz", "pywb/iana.warc.gz", "resiliparse/block-sized-records.warc.gz",
    "resiliparse/warcfile.warc.gz", "ukwa/BL-20140325121225068-00000-32090~opera~8443.warc.gz",
    "ukwa/BL-20140325122341434-00000-32090~opera~8443.warc.gz", "warc2zim/content-resource-types.warc.gz",
    "warc2zim/example-revisit.warc.gz", "warc2zim/example-utf8.warc", "warc2zim/http-return-codes.warc.gz",
    "warcio/example-iana.org-chunked.warc", "warcio/example-resource.warc.gz", "warcio/example.warc",
    "warcio/example-space-in-target-uri.warc.gz", "warcio/example-wget-bad-target-uri.warc.gz",
    "warcio/example.warc.gz",
]  # fmt: skip


def archive(name: str) -> Path:
    return needs.SAMPLES["archives"] / name


@pytest.mark.samples("archives")
@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_archive_is_well_and_read_as_others_read_it(name: str) -> None:
    _assert_well(archive(name))


def _assert_well(path: Path) -> None:
    ours = [Seen(one.offset, one.head.record_id, len(one.read())) for one in read_records(path)]

    report = verify_file(path)
    assert report.problems == []
    assert ours == by_fastwarc(path)
    assert report.records == len(ours)


@pytest.mark.samples("archives")
@pytest.mark.parametrize("name", sorted(DAMAGED))
def test_a_damaged_archive_is_said_to_be_damaged(name: str) -> None:
    report = verify_file(archive(name))

    assert not report.ok
    assert report.problems[0].kind == DAMAGED[name]


@pytest.mark.samples("archives")
def test_a_damaged_archive_is_read_as_far_as_it_is_whole() -> None:
    damage: list[DamagedWarc] = []

    assert list(read_records(archive("resiliparse/clipped.warc.gz"), damage.append)) == []
    assert [one.kind for one in damage] == ["truncated"]


@pytest.mark.samples("archives")
def test_an_archive_of_somebody_else_is_repaired_without_touching_it(tmp_path: Path) -> None:
    whole = archive("pywb/iana.warc.gz").read_bytes()
    path = tmp_path / "iana.warc.gz"
    path.write_bytes(whole[:100_000] + b"\0" * 50 + whole[100_050:-20])

    report = repair(path, out=tmp_path / "mended.warc.gz")

    assert len(report.damaged) == 2
    assert 300 < len(report.kept) < 343
    assert verify_file(tmp_path / "mended.warc.gz").records == len(report.kept) + 1


@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize("name", ["all.warc.gz", "all.warc"])
def test_what_warcio_writes_is_well_and_read_as_others_read_it(tmp_path: Path, name: str, version: str) -> None:
    _assert_well(write_with_warcio(tmp_path / name, gzip=name.endswith(".gz"), version=version))


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        (b"<title>Front", b"<title>Other", "block_digest"),
        (b"WARC-Payload-Digest: sha1:", b"WARC-Payload-Digest: sha1:A", "payload_digest"),
        (b"</p>\r\n\r\nWARC/1.0", b"</p>\r\n\r\n\r\nARC/1.0", "record_end"),
        (b"WARC-Date: 2", b"WARC-Date: x", "field_value"),
    ],
)
def test_what_warcio_wrote_and_was_damaged_is_called_so(tmp_path: Path, before: bytes, after: bytes, kind: str) -> None:
    path = write_with_warcio(tmp_path / "all.warc", gzip=False)
    whole = path.read_bytes()
    assert before in whole
    path.write_bytes(whole.replace(before, after, 1))

    assert kind in [problem.kind for problem in verify_file(path).problems]


def test_what_warcio_wrote_and_was_cut_is_read_as_far_as_it_is_whole(tmp_path: Path) -> None:
    path = write_with_warcio(tmp_path / "all.warc.gz")
    records = len(list(read_records(path)))
    path.write_bytes(path.read_bytes()[:-20])
    damage: list[DamagedWarc] = []

    assert len(list(read_records(path, damage.append))) == records - 1
    assert [one.kind for one in damage] == ["truncated"]


def test_what_warcio_wrote_is_repaired_without_touching_it(tmp_path: Path) -> None:
    path = write_with_warcio(tmp_path / "all.warc.gz")
    records = len(list(read_records(path)))
    whole = path.read_bytes()
    damaged = whole[:1200] + b"\0" * 50 + whole[1250:-20]
    path.write_bytes(damaged)

    report = repair(path, out=tmp_path / "mended.warc.gz")

    assert len(report.damaged) == 2
    assert len(report.kept) == records - 2
    assert verify_file(tmp_path / "mended.warc.gz").records == len(report.kept) + 1
    assert path.read_bytes() == damaged
