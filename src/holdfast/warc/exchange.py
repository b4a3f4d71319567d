"""One exchange with a server as two records: what was sent, and what came back or why it need not be stored again."""

from __future__ import annotations

from datetime import datetime

from holdfast.errors import Invalid
from holdfast.types import Body, Original, Truncated
from holdfast.values import dataclass
from holdfast.warc.record import Profile, RecordType, format_date, format_head, urn


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """What a crawl hands over to be archived. Heads and body are wire bytes; nothing is decoded."""

    url: str
    started_at: datetime
    ip: str
    request_head: bytes
    response_head: bytes
    body: Body
    payload_digest: str
    """`sha256:` and hex over the body after transfer decoding (`digest.sha256_of`)."""
    truncated: Truncated | None = None
    revisit_of: Original | None = None
    """With `profile`: the head is stored, the body is not, and the record refers to this one."""
    profile: Profile | None = None
    tls_verified: bool | None = None
    media_type: str | None = None
    """What the payload is by its own bytes, if somebody looked (WARC-Identified-Payload-Type)."""
    protocol: str | None = None
    """`http/1.1`, `h2`… (WARC-Protocol)."""
    purpose: str | None = None
    """What the crawler asked for on its own account: `robots`, `sitemap` or `feed`; None for content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """Any other record, small enough to hold: metadata about a capture, a resource without a protocol."""

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
    exchange: Exchange, record_id: str, warcinfo_id: str, *, block_digest: str, block_bytes: int
) -> bytes:
    """Return the WARC head of what came back: a response, or a revisit where the exchange refers to an original."""
    original, profile = exchange.revisit_of, exchange.profile
    if (original is None) != (profile is None):
        raise Invalid("a revisit needs both an original and a profile")
    kind = RecordType.RESPONSE if original is None else RecordType.REVISIT
    fields = [*_common(exchange, kind, record_id, warcinfo_id), ("WARC-Block-Digest", block_digest)]
    truncated = exchange.truncated
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
    if exchange.tls_verified is False:
        # WARC has no field for this; a reader that does not know ours passes over it.
        fields.append(("Holdfast-TLS", "unverified"))
    if exchange.purpose is not None:
        # Nor for this: a robots.txt or a sitemap that the crawler asked for itself is no page of the site.
        fields.append(("Holdfast-Purpose", exchange.purpose))
    fields += (("Content-Type", "application/http; msgtype=response"), ("Content-Length", str(block_bytes)))
    return format_head(fields)


def request_head(exchange: Exchange, record_id: str, warcinfo_id: str, *, response_id: str, block_digest: str) -> bytes:
    """Return the WARC head of what was sent, tied to the record of what came back."""
    return format_head((
        *_common(exchange, RecordType.REQUEST, record_id, warcinfo_id),
        ("WARC-Concurrent-To", urn(response_id)),
        ("WARC-Block-Digest", block_digest),
        ("Content-Type", "application/http; msgtype=request"),
        ("Content-Length", str(len(exchange.request_head))),
    ))  # fmt: skip


def draft_head(draft: Draft, record_id: str, warcinfo_id: str, *, block_digest: str) -> bytes:
    """Return the WARC head of any other record."""
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


def _common(exchange: Exchange, kind: RecordType, record_id: str, warcinfo_id: str) -> tuple[tuple[str, str], ...]:
    return (
        ("WARC-Type", kind.value),
        ("WARC-Record-ID", urn(record_id)),
        ("WARC-Target-URI", exchange.url),
        ("WARC-Date", format_date(exchange.started_at)),
        ("WARC-IP-Address", exchange.ip),
        ("WARC-Warcinfo-ID", urn(warcinfo_id)),
    )


def _revisit_fields(original: Original, profile: Profile) -> list[tuple[str, str]]:
    return [
        ("WARC-Profile", profile.uri),
        ("WARC-Refers-To", urn(original.record_id)),
        ("WARC-Refers-To-Target-URI", original.url),
        ("WARC-Refers-To-Date", format_date(original.captured_at)),
    ]
