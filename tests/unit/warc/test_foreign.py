"""Archives that nobody here wrote: read as their own readers read them, and judged as they deserve."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.warc.reader import DamagedWarc, read_records
from holdfast.warc.repair import repair
from holdfast.warc.verify import verify_file
from tests.unit.warc.archives import foreign_archives
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
    path = foreign_archives() / name
    if not path.is_file():
        pytest.skip(f"{name} is not among the archives here")
    return path


@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_archive_is_well_and_read_as_others_read_it(name: str) -> None:
    path = archive(name)

    ours = [Seen(one.offset, one.head.record_id, len(one.read())) for one in read_records(path)]

    report = verify_file(path)
    assert report.problems == ()
    assert ours == by_fastwarc(path)
    assert report.records == len(ours)


@pytest.mark.parametrize("name", sorted(DAMAGED))
def test_a_damaged_archive_is_said_to_be_damaged(name: str) -> None:
    report = verify_file(archive(name))

    assert not report.ok
    assert report.problems[0].kind == DAMAGED[name]


def test_a_damaged_archive_is_read_as_far_as_it_is_whole() -> None:
    damage: list[DamagedWarc] = []

    assert list(read_records(archive("resiliparse/clipped.warc.gz"), damage.append)) == []
    assert [one.kind for one in damage] == ["truncated"]


def test_an_archive_of_somebody_else_is_repaired_without_touching_it(tmp_path: Path) -> None:
    whole = archive("pywb/iana.warc.gz").read_bytes()
    path = tmp_path / "iana.warc.gz"
    path.write_bytes(whole[:100_000] + b"\0" * 50 + whole[100_050:-20])

    report = repair(path, out=tmp_path / "mended.warc.gz")

    assert len(report.damaged) == 2
    assert 300 < len(report.kept) < 343
    assert verify_file(tmp_path / "mended.warc.gz").records == len(report.kept) + 1
