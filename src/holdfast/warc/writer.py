"""The WARC writer: one open file, one gzip member per record, digests in every head, a warcinfo at the start.

An append is complete or undone, and may be retried.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, Self, TypedDict, Unpack

from holdfast.clock import Clock
from holdfast.errors import Conflict, Invalid, Unavailable
from holdfast.types import Fetched, Original, RecordRef, Truncated
from holdfast.values import dataclass
from holdfast.warc import outfile
from holdfast.warc.member import Packer, pack
from holdfast.warc.outfile import OutFile, SealedFile
from holdfast.warc.record import ORDINALS, Profile, RecordIds, RecordType, format_date, format_head, random_ids, urn


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeDraft:
    """A crawl's response to archive, with the facts that its records state beyond the wire bytes."""

    fetched: Fetched
    payload_digest: str
    """`sha256:` and hex over the body after transfer decoding (`record.sha256_of`)."""
    revisit_of: Original | None = None
    """With `profile`: only the head is stored, and the record refers to this original."""
    profile: Profile | None = None
    media_type: str | None = None
    """The payload's type by its own bytes, if sniffed (WARC-Identified-Payload-Type)."""
    protocol: str | None = None
    """`http/1.1`, `h2`… (WARC-Protocol)."""
    purpose: str | None = None
    """The purpose of the crawler's own requests: `robots`, `sitemap` or `feed`; None for content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordDraft:
    """A record that was not fetched and fits in memory: metadata about a capture, or a resource without a protocol."""

    type: RecordType
    content_type: str
    block: bytes
    at: datetime
    url: str | None = None
    concurrent_to: str | None = None
    """Bare id of a record of the same capture."""
    refers_to: str | None = None
    """Bare id of the record that this one describes."""


def response_head(
    exchange: ExchangeDraft, record_id: str, warcinfo_id: str, *, block_digest: str, block_bytes: int
) -> bytes:
    """Return the WARC head of a response, or of a revisit if the exchange refers to an original."""
    original, profile = exchange.revisit_of, exchange.profile
    if (original is None) != (profile is None):
        raise Invalid("a revisit needs both an original and a profile")
    kind = RecordType.RESPONSE if original is None else RecordType.REVISIT
    fields = [*_common(exchange, kind, record_id, warcinfo_id), ("WARC-Block-Digest", block_digest)]
    truncated = exchange.fetched.truncated
    if original is not None and profile is not None:
        fields += _revisit_fields(original, profile)
        if profile is Profile.IDENTICAL_PAYLOAD:
            truncated = Truncated.LENGTH
        fields.append(("WARC-Payload-Digest", original.payload_digest))
    else:
        fields.append(("WARC-Payload-Digest", exchange.payload_digest))
    if truncated is not None:
        fields.append(("WARC-Truncated", truncated.value))
    if exchange.media_type is not None:
        fields.append(("WARC-Identified-Payload-Type", exchange.media_type))
    if exchange.protocol is not None:
        fields.append(("WARC-Protocol", exchange.protocol))
    if exchange.fetched.tls_verified is False:
        # WARC has no field for this; readers ignore ours.
        fields.append(("Holdfast-TLS", "unverified"))
    if exchange.purpose is not None:
        # Nor for this: a robots.txt or sitemap that the crawler requested for itself is not a page of the site.
        fields.append(("Holdfast-Purpose", exchange.purpose))
    fields += (("Content-Type", "application/http; msgtype=response"), ("Content-Length", str(block_bytes)))
    return format_head(fields)


def request_head(
    exchange: ExchangeDraft, record_id: str, warcinfo_id: str, *, response_id: str, block_digest: str
) -> bytes:
    """Return the WARC head of the request, linked to the record of the response."""
    return format_head(
        (
            *_common(exchange, RecordType.REQUEST, record_id, warcinfo_id),
            ("WARC-Concurrent-To", urn(response_id)),
            ("WARC-Block-Digest", block_digest),
            ("Content-Type", "application/http; msgtype=request"),
            ("Content-Length", str(len(exchange.fetched.request_head))),
        )
    )


def draft_head(draft: RecordDraft, record_id: str, warcinfo_id: str, *, block_digest: str) -> bytes:
    fields = [("WARC-Type", draft.type.value), ("WARC-Record-ID", urn(record_id))]
    if draft.url is not None:
        fields.append(("WARC-Target-URI", draft.url))
    fields += [("WARC-Date", format_date(draft.at)), ("WARC-Warcinfo-ID", urn(warcinfo_id))]
    if draft.concurrent_to is not None:
        fields.append(("WARC-Concurrent-To", urn(draft.concurrent_to)))
    if draft.refers_to is not None:
        fields.append(("WARC-Refers-To", urn(draft.refers_to)))
    fields.append(("WARC-Block-Digest", block_digest))
    if draft.type in (RecordType.RESOURCE, RecordType.CONVERSION):
        # Their payload is the whole block.
        fields.append(("WARC-Payload-Digest", block_digest))
    fields += [("Content-Type", draft.content_type), ("Content-Length", str(len(draft.block)))]
    return format_head(fields)


def _common(exchange: ExchangeDraft, kind: RecordType, record_id: str, warcinfo_id: str) -> tuple[tuple[str, str], ...]:
    return (
        ("WARC-Type", kind.value),
        ("WARC-Record-ID", urn(record_id)),
        ("WARC-Target-URI", exchange.fetched.url),
        ("WARC-Date", format_date(exchange.fetched.started_at)),
        ("WARC-IP-Address", exchange.fetched.ip),
        ("WARC-Warcinfo-ID", urn(warcinfo_id)),
    )


def _revisit_fields(original: Original, profile: Profile) -> list[tuple[str, str]]:
    return [
        ("WARC-Profile", profile.uri),
        ("WARC-Refers-To", urn(original.record_id)),
        ("WARC-Refers-To-Target-URI", original.url),
        ("WARC-Refers-To-Date", format_date(original.captured_at)),
    ]


_BREAKS = re.compile(r"[\r\n\0]+")
_END = b"\r\n\r\n"
# Bodies up to this size are compressed in memory at once; larger ones are streamed, which reads them twice.
_WHOLE_BYTES = 1 << 20


class FileLimits(TypedDict, total=False):
    """When a file is full, and the source of its record ids."""

    max_bytes: int
    max_age_s: float
    max_idle_s: float
    ids: RecordIds


class Appended(NamedTuple):
    ref: RecordRef
    record_id: str
    """Bare UUID."""
    request: RecordRef | None = None
    """Position of the corresponding request."""


class WarcWriter:
    """Writes one file. Appending belongs to one thread; `sync` may be called from another."""

    def __init__(
        self, out: OutFile, file_id: int, warcinfo_id: str, clock: Clock, **limits: Unpack[FileLimits]
    ) -> None:
        self.file_id = file_id
        self._out = out
        self._warcinfo_id = warcinfo_id
        self._clock = clock
        self._ids = limits.get("ids") or random_ids()
        self._max_bytes = limits.get("max_bytes", 10**9)
        self._max_age_s = limits.get("max_age_s", 3600.0)
        self._max_idle_s = limits.get("max_idle_s", 600.0)
        self._created_at = self._used_at = clock.monotonic()
        self.record_count = 1
        """Every record, the warcinfo too."""

    @classmethod
    def create(
        cls,
        directory: Path,
        name: str,
        file_id: int,
        info: Mapping[str, str],
        clock: Clock,
        **limits: Unpack[FileLimits],
    ) -> Self:
        """Return a writer of the new file `NAME.warc.gz.open`, locked, with `info` in its warcinfo record.

        Raise Conflict if the name is in use; NoSpace or Unavailable on disk errors.
        """
        ids = limits.get("ids") or random_ids()
        record_id = ids()
        first = _warcinfo(f"{name}.warc.gz", record_id, file_id, info, clock.now())
        out = outfile.create(directory, name, pack(first))
        limits["ids"] = ids
        return cls(out, file_id, record_id, clock, **limits)

    @property
    def path(self) -> Path:
        return self._out.path

    @property
    def sealed_path(self) -> Path:
        return self._out.sealed_path

    @property
    def size(self) -> int:
        return self._out.size

    def append_exchange(self, exchange: ExchangeDraft) -> Appended:
        """Write response and request; return the position of the response.

        NoSpace or Unavailable leave the file as it was.
        """
        self._room(2)
        response_id, request_id = self._ids(), self._ids()
        sent = _whole(
            request_head(
                exchange,
                request_id,
                self._warcinfo_id,
                response_id=response_id,
                block_digest=_sha256(exchange.fetched.request_head),
            ),
            exchange.fetched.request_head,
        )
        start = self._out.size
        # Write the response before its request: if the tail is damaged later, a response without its request is still a
        # capture, and no request refers to nothing.
        if exchange.revisit_of is not None or exchange.fetched.body.size <= _WHOLE_BYTES:
            member = pack(self._received(exchange, response_id))
            self._out.append(member + pack(sent))
            length = len(member)
        else:
            length = self._stream(exchange, response_id, pack(sent))
        end = self._out.size
        ref = RecordRef(self.file_id, start, length, self.record_count)
        request = RecordRef(self.file_id, start + length, end - start - length, self.record_count + 1)
        self._count(2)
        return Appended(ref, response_id, request)

    def append_record(self, draft: RecordDraft) -> Appended:
        """Write any other record (metadata, resource); return its position."""
        self._room(1)
        record_id = self._ids()
        head = draft_head(draft, record_id, self._warcinfo_id, block_digest=_sha256(draft.block))
        start, member = self._out.size, pack(_whole(head, draft.block))
        self._out.append(member)
        ref = RecordRef(self.file_id, start, len(member), self.record_count)
        self._count(1)
        return Appended(ref, record_id)

    def sync(self) -> None:
        """Return when everything appended before is on disk.

        After NoSpace or Unavailable the file accepts no more data: `abandon` it and create another.
        """
        self._out.sync()

    def should_seal(self) -> bool:
        """Return whether the file is large, old or idle enough to be sealed."""
        now = self._clock.monotonic()
        return (
            self._out.size >= self._max_bytes
            or now - self._created_at >= self._max_age_s
            or now - self._used_at >= self._max_idle_s
            # Snapshot ids limit the number of records in a file, and one page can be several records.
            or self.record_count > ORDINALS - 16
        )

    def seal(self) -> SealedFile:
        """Give the file its final name and close it. Raise Conflict if a file of that name exists."""
        return self._out.seal(self.record_count)

    def abandon(self) -> None:
        """Close the unsealed file; `repair.adopt` handles it later."""
        self._out.close()

    def discard(self) -> None:
        """Delete a file that contains only its warcinfo; raise Conflict if it contains more."""
        if self.record_count > 1:
            raise Conflict(f"{self.path} holds records; seal it")
        self._out.discard()

    def _room(self, records: int) -> None:
        if self.record_count + records > ORDINALS:
            raise Conflict(f"{self.path} holds {self.record_count} records, as many as ids allow; seal it")

    def _count(self, records: int) -> None:
        self.record_count += records
        self._used_at = self._clock.monotonic()

    def _received(self, exchange: ExchangeDraft, record_id: str) -> bytes:
        pieces = _pieces(exchange) if exchange.revisit_of is None else ()
        block = b"".join((exchange.fetched.response_head, *pieces))
        head = response_head(
            exchange, record_id, self._warcinfo_id, block_digest=_sha256(block), block_bytes=len(block)
        )
        return _whole(head, block)

    def _stream(self, exchange: ExchangeDraft, record_id: str, request: bytes) -> int:
        """Write a large response in pieces, then its request; return the length of the response's member."""
        hasher, size = hashlib.sha256(exchange.fetched.response_head), len(exchange.fetched.response_head)
        for piece in _pieces(exchange):
            hasher.update(piece)
            size += len(piece)
        head = response_head(
            exchange, record_id, self._warcinfo_id, block_digest=f"sha256:{hasher.hexdigest()}", block_bytes=size
        )
        packer = Packer()
        length = len(packer.header())
        self._out.begin()
        try:
            self._out.piece(packer.header())
            for ready in _packed(packer, head, exchange, size):
                self._out.piece(ready)
                length += len(ready)
            self._out.piece(request)
        except BaseException:
            self._out.rollback()
            raise
        self._out.commit(packer.header(), length + len(request))
        return length


def _pieces(exchange: ExchangeDraft) -> Iterator[bytes]:
    try:
        yield from exchange.fetched.body.chunks()
    except OSError as exc:
        raise Unavailable(f"cannot read the spooled body of {exchange.fetched.url}: {exc.strerror}") from exc


def _packed(packer: Packer, head: bytes, exchange: ExchangeDraft, size: int) -> Iterator[bytes]:
    yield packer.feed(head + exchange.fetched.response_head)
    seen = len(exchange.fetched.response_head)
    for piece in _pieces(exchange):
        seen += len(piece)
        yield packer.feed(piece)
    # The head with length and digest is already written: fail if a spooled body changed between the two reads.
    if seen != size:
        raise Invalid(f"the body of {exchange.fetched.url} had {size} bytes, and {seen} when read again")
    yield packer.feed(_END)
    yield packer.finish()


def _whole(head: bytes, block: bytes) -> bytes:
    return b"".join((head, block, _END))


def _sha256(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def _warcinfo(file_name: str, record_id: str, file_id: int, info: Mapping[str, str], now: datetime) -> bytes:
    fields = {
        "software": "holdfast",
        "format": "WARC File Format 1.1",
        "conformsTo": "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
        # A rebuild from files alone finds the id here if the manifest is gone, too.
        "holdfast-file-id": str(file_id),
        **info,
    }
    block = "".join(f"{name}: {_BREAKS.sub(' ', value)}\r\n" for name, value in fields.items()).encode()
    head = format_head(
        (
            ("WARC-Type", RecordType.WARCINFO.value),
            ("WARC-Record-ID", urn(record_id)),
            ("WARC-Date", format_date(now)),
            ("WARC-Filename", file_name),
            ("WARC-Block-Digest", _sha256(block)),
            ("Content-Type", "application/warc-fields"),
            ("Content-Length", str(len(block))),
        )
    )
    return _whole(head, block)
