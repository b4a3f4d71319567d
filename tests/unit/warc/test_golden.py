"""The writer's bytes, fixed: a change to a single one of them is a decision, not an accident."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from holdfast.types import Truncated
from holdfast.warc.record import Profile, RecordType
from holdfast.warc.verify import verify_file
from holdfast.warc.writer import RecordDraft, WarcWriter
from tests.clock import FakeClock
from tests.unit.warc.archives import INFO, STARTED, counted_ids, exchange, original, unpacked

GOLDEN = Path(__file__).parents[2] / "golden" / "warc"


def build(folder: Path) -> Path:
    """Write one file with a record of every kind."""
    writer = WarcWriter.create(folder, "golden-20260901120000-00001-test", 7, INFO, FakeClock(), ids=counted_ids())
    writer.append_exchange(exchange())
    chunked = exchange(b"5\r\nhello\r\n0\r\n\r\n", headers=b"Transfer-Encoding: chunked\r\n")
    unverified = replace(chunked.fetched, tls_verified=False)
    writer.append_exchange(replace(chunked, fetched=unverified, media_type="text/plain", protocol="http/1.1"))
    writer.append_exchange(exchange(b"<html>hel", truncated=Truncated.DISCONNECT))
    writer.append_exchange(exchange(revisit_of=original(), profile=Profile.IDENTICAL_PAYLOAD))
    writer.append_exchange(exchange(b"", revisit_of=original(), profile=Profile.SERVER_NOT_MODIFIED))
    writer.append_record(
        RecordDraft(type=RecordType.METADATA, content_type="application/warc-fields", block=b"via: http://example.org/\r\n",
              at=STARTED, url="http://example.org/page", concurrent_to="00000000-0000-4000-8000-000000000002")
    )  # fmt: skip
    writer.append_record(
        RecordDraft(type=RecordType.RESOURCE, content_type="text/plain", block=b"a note", at=STARTED, url="urn:note:1")
    )
    return writer.seal().path


def test_every_kind_of_record_has_the_bytes_that_were_agreed_on(tmp_path: Path) -> None:
    written = b"".join(unpacked(build(tmp_path)))

    # Compared inflated: how deflate spends its bits may differ from processor to processor.
    assert written == (GOLDEN / "writer.warc").read_bytes()


def test_the_golden_file_itself_is_a_valid_plain_warc() -> None:
    report = verify_file(GOLDEN / "writer.warc")

    assert report.problems == []
    assert report.records == 13
