"""Other people's readers, to agree with: fastwarc and warcio, behind types."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import NamedTuple

from warcio.archiveiterator import ArchiveIterator as WarcioIterator
from warcio.checker import Checker

with warnings.catch_warnings():
    # It warns about names of its own on import.
    warnings.simplefilter("ignore", DeprecationWarning)
    from fastwarc.warc import ArchiveIterator as FastIterator


class Seen(NamedTuple):
    """One record, as somebody else sees it."""

    offset: int
    record_id: str
    block_bytes: int


def by_fastwarc(path: Path, *, verify_digests: bool = False) -> list[Seen]:
    """Return the records that fastwarc finds, only those with right digests if asked."""
    with path.open("rb") as file:
        return [
            Seen(record.stream_pos, _bare(record.record_id), record.content_length)
            for record in FastIterator(
                file, parse_http=False, quirks_mode=True, strict_mode=False, verify_digests=verify_digests
            )
        ]


def by_warcio(path: Path) -> list[Seen]:
    """Return the records that warcio finds."""
    with path.open("rb") as file:
        records = WarcioIterator(file, no_record_parse=True)
        return [
            Seen(records.get_record_offset(), _bare(record.rec_headers.get_header("WARC-Record-ID")), record.length)
            for record in records
        ]


def warcio_accepts(path: Path) -> bool:
    """Return whether `warcio check` has nothing to say against a file's digests."""
    checker = Checker(_CheckOptions([str(path)]))
    checker.process_all()
    return bool(checker.exit_value == 0)


class _CheckOptions:
    def __init__(self, inputs: list[str]) -> None:
        self.inputs, self.verbose = inputs, False


def _bare(record_id: str | None) -> str:
    return (record_id or "").strip("<>").removeprefix("urn:uuid:")
