"""The archive's tables, from the sealed WARC file on."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, LargeBinary, SmallInteger, String, Text, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from holdfast.db.models.base import BigId, KeyText, Model


class WarcFile(Model):
    """One WARC file: open while a process writes it, sealed for ever after."""

    __tablename__ = "warc_files"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    execution_id: Mapped[int] = mapped_column(ForeignKey("executions.id"))
    owner_id: Mapped[int | None] = mapped_column(BigInteger)
    path: Mapped[str]
    """The sealed name, relative to the data directory where it lies below it."""
    state: Mapped[str] = mapped_column(String(16))
    """open, sealed, discarded."""
    size: Mapped[int | None] = mapped_column(BigInteger)
    sha256: Mapped[str | None] = mapped_column(String(64))
    crc32: Mapped[int | None] = mapped_column(BigInteger)
    record_count: Mapped[int | None]
    repaired: Mapped[bool] = mapped_column(server_default=text("false"))
    created_at: Mapped[datetime]
    sealed_at: Mapped[datetime | None]
    origin: Mapped[str | None]
    """Where an imported file came from, as it was named; None for our own."""
    origin_sha256: Mapped[str | None] = mapped_column(String(64))
    """Digest of the imported file or package member: the same file again is the same row."""
    index_state: Mapped[str] = mapped_column(String(8), server_default=text("'pending'"))
    """pending, running, indexed, failed."""
    first_at: Mapped[datetime | None]
    last_at: Mapped[datetime | None]
    """Dates of its earliest and latest snapshot, set when it is indexed: who looks for a time skips whole files. Only a
    latest one, in 1970: it has no snapshots."""

    __table_args__ = (
        UniqueConstraint("path"),
        Index("ix_warc_files_origin_sha256", "origin_sha256"),
        Index(
            "ix_warc_files_to_index",
            "id",
            sqlite_where=text("state = 'sealed' AND index_state IN ('pending','running')"),
            postgresql_where=text("state = 'sealed' AND index_state IN ('pending','running')"),
        ),
        Index("ix_warc_files_execution_id", "execution_id", "id"),
        Index(
            "ix_warc_files_open",
            "owner_id",
            sqlite_where=text("state = 'open'"),
            postgresql_where=text("state = 'open'"),
        ),
    )


class IndexRun(Model):
    """The last reading of one sealed file: who is at it, how far it is, what it found."""

    __tablename__ = "index_runs"

    warc_file_id: Mapped[int] = mapped_column(ForeignKey("warc_files.id"), primary_key=True)
    version: Mapped[int]
    """Of the extraction; an older one may be read again."""
    owner_id: Mapped[int | None] = mapped_column(BigInteger)
    token: Mapped[int] = mapped_column(BigInteger, server_default="0")
    """Fences every write of a reader: a late one changes nothing."""
    lease_expires_at: Mapped[datetime | None]
    phase: Mapped[str] = mapped_column(String(16))
    records: Mapped[int] = mapped_column(server_default="0")
    pages: Mapped[int] = mapped_column(server_default="0")
    bytes_done: Mapped[int] = mapped_column(BigInteger, server_default="0")
    bytes_total: Mapped[int] = mapped_column(BigInteger, server_default="0")
    warnings: Mapped[dict[str, Any]] = mapped_column(default=dict)
    """Counts by kind, and the first of each with its offset."""
    error: Mapped[str | None]
    started_at: Mapped[datetime]
    progress_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]


class Document(Model):
    """The text of one distinct body, stored and indexed once however often it was captured."""

    __tablename__ = "documents"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    body_hash: Mapped[bytes] = mapped_column(LargeBinary(32))
    """SHA-256 of the content-decoded body."""
    charset: Mapped[str] = mapped_column(String(32))
    media_type: Mapped[str] = mapped_column(String(127))
    """What it was read as; with `;template=` and a digest where a template of its source told what its content is."""
    body_bytes: Mapped[int] = mapped_column(BigInteger)
    title: Mapped[str | None]
    description: Mapped[str | None]
    snippet: Mapped[str | None]
    headings: Mapped[str | None] = mapped_column(Text)
    """One a line, in document order."""
    terms: Mapped[str | None] = mapped_column(Text)
    """What it defines or names, one a line, each once, in document order."""
    author: Mapped[str | None]
    published_at: Mapped[datetime | None]
    modified_at: Mapped[datetime | None]
    """As the page states them, whatever the time was."""
    keywords: Mapped[str | None] = mapped_column(Text)
    """One a line."""
    word_count: Mapped[int | None]
    page_type: Mapped[str | None] = mapped_column(String(16))
    """article, listing, home, product, reference, form, media, other. None, like the count of words, where an older
    program read the document."""
    language: Mapped[str | None] = mapped_column(String(35))
    canonical: Mapped[str | None]
    details: Mapped[dict[str, Any]] = mapped_column(default=dict)
    """OpenGraph and JSON-LD basics, and the problems that the parser noted."""
    noindex: Mapped[bool] = mapped_column(server_default=text("false"))
    says_archived: Mapped[bool] = mapped_column(server_default=text("false"))
    """The page says of itself that it is no longer kept up."""
    text_chars: Mapped[int] = mapped_column(server_default="0")
    version: Mapped[int]
    created_at: Mapped[datetime]

    __table_args__ = (UniqueConstraint("body_hash", "charset", "media_type"),)


class DocumentText(Model):
    """A document's main text, one block a line, compressed with zstd; apart, so that documents stay small."""

    __tablename__ = "document_texts"

    document_id: Mapped[int] = mapped_column(ForeignKey("documents.id"), primary_key=True)
    text: Mapped[bytes] = mapped_column(LargeBinary)


class PageGroup(Model):
    """Scheme, host and path without query: what people browse. One row a source and group."""

    __tablename__ = "page_groups"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    source_id: Mapped[int] = mapped_column(ForeignKey("sources.id"))
    url: Mapped[str] = mapped_column(Text)
    url_hash: Mapped[int] = mapped_column(BigInteger)
    """First 64 bits of the SHA-256 of the group's address."""
    first_captured_at: Mapped[datetime]
    last_captured_at: Mapped[datetime]
    snapshot_count: Mapped[int]
    latest_id: Mapped[int] = mapped_column(BigInteger)
    latest_ok_id: Mapped[int | None] = mapped_column(BigInteger)

    __table_args__ = (
        UniqueConstraint("source_id", "url_hash"),
        Index("ix_page_groups_url_hash", "url_hash"),
        Index("ix_page_groups_source_last", "source_id", "last_captured_at", "id"),
        Index("ix_page_groups_last", "last_captured_at", "id"),
    )


class PageSignal(Model):
    """What the link graph says of a group's address, over all sources."""

    __tablename__ = "page_signals"

    url_hash: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    inlinks: Mapped[int]
    outlinks: Mapped[int]
    pagerank: Mapped[float]
    computed_at: Mapped[datetime]


def _noise_index(name: str, *columns: str) -> Index:
    """Return an index of the few captures that do not show their page."""
    told = text("noise IS NOT NULL")
    return Index(name, *columns, sqlite_where=told, postgresql_where=told)


class Snapshot(Model):
    """One record that can be replayed: every response, resource and revisit, of any type and status."""

    __tablename__ = "snapshots"

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    """The file's id times 2^22 plus the record's ordinal: a rebuild from files alone gives the same."""
    warc_file_id: Mapped[int] = mapped_column(ForeignKey("warc_files.id"))
    execution_id: Mapped[int] = mapped_column(ForeignKey("executions.id"))
    source_id: Mapped[int] = mapped_column(ForeignKey("sources.id"))
    warc_offset: Mapped[int] = mapped_column(BigInteger)
    warc_length: Mapped[int] = mapped_column(BigInteger)
    record_id: Mapped[str | None]
    """WARC-Record-ID without brackets and without `urn:uuid:`."""
    record_type: Mapped[str] = mapped_column(String(8))
    """response, resource, revisit."""
    url: Mapped[str] = mapped_column(Text)
    url_key: Mapped[str] = mapped_column(KeyText)
    """SURT."""
    url_hash: Mapped[int] = mapped_column(BigInteger)
    """Of the normalised address, query included: which page this is."""
    page_key: Mapped[str | None] = mapped_column(KeyText)
    """The key that the page is withdrawn under, where that is not `url_key`."""
    group_id: Mapped[int | None] = mapped_column(ForeignKey("page_groups.id"))
    """Set for pages."""
    captured_at: Mapped[datetime]
    method: Mapped[str | None] = mapped_column(String(16))
    """None for GET; its data is then part of the key."""
    status: Mapped[int | None] = mapped_column(SmallInteger)
    media_type: Mapped[str | None]
    """As declared."""
    payload_digest: Mapped[str | None]
    """As the record has it: `sha256:…`, `sha1:…`; ours if it has none."""
    body_hash: Mapped[bytes | None] = mapped_column(LargeBinary(32))
    """SHA-256 of the content-decoded body; of its original for a revisit."""
    document_id: Mapped[int | None] = mapped_column(ForeignKey("documents.id"))
    is_page: Mapped[bool]
    """HTML, text or PDF: what search, changes and exports read."""
    noindex: Mapped[bool] = mapped_column(server_default=text("false"))
    """The page or its headers asked to stay out of public search."""
    canonical_id: Mapped[int | None] = mapped_column(BigInteger)
    """The earliest snapshot of the same address, UTC day and body, if this is not it: this one is a duplicate."""
    original_id: Mapped[int | None] = mapped_column(BigInteger)
    """The snapshot that holds a revisit's body, once it is known."""
    refers_to_url: Mapped[str | None] = mapped_column(Text)
    refers_to_at: Mapped[datetime | None]
    redirect_to: Mapped[str | None] = mapped_column(Text)
    """The Location of a 3xx, resolved."""
    truncated: Mapped[str | None] = mapped_column(String(16))
    problems: Mapped[str | None]
    """Words, comma-separated: digest_mismatch, bad_date…"""
    backend: Mapped[str] = mapped_column(String(16), server_default=text("'native'"))
    """native, browser, zimit, http_warc, playwright_warc, import."""
    fidelity: Mapped[str] = mapped_column(String(8), server_default=text("'unknown'"))
    """high, fallback, unknown."""
    compared: Mapped[bool] = mapped_column(server_default=text("false"))
    """Whether `changes` has looked at it."""
    noise: Mapped[str | None] = mapped_column(String(16))
    """Why it does not show the page although its status says so (a `NoiseKind`); None for what counts as the page."""

    __table_args__ = (
        Index("ix_snapshots_key", "url_key", "captured_at", "id"),
        Index("ix_snapshots_page", "url_hash", "captured_at", "id"),
        Index(
            "ix_snapshots_page_key",
            "page_key",
            sqlite_where=text("page_key IS NOT NULL"),
            postgresql_where=text("page_key IS NOT NULL"),
        ),
        Index("ix_snapshots_group", "group_id", "captured_at", "id"),
        Index("ix_snapshots_execution", "execution_id", "id"),
        Index("ix_snapshots_source", "source_id", "id"),
        Index("ix_snapshots_source_key", "source_id", "url_key"),
        Index("ix_snapshots_document", "document_id", "id"),
        Index(
            "ix_snapshots_to_compare",
            "source_id",
            "id",
            sqlite_where=text("is_page AND NOT compared"),
            postgresql_where=text("is_page AND NOT compared"),
        ),
        Index(
            "ix_snapshots_unresolved",
            "id",
            sqlite_where=text("record_type = 'revisit' AND original_id IS NULL"),
            postgresql_where=text("record_type = 'revisit' AND original_id IS NULL"),
        ),
        Index(
            "ix_snapshots_original",
            "original_id",
            sqlite_where=text("original_id IS NOT NULL"),
            postgresql_where=text("original_id IS NOT NULL"),
        ),
        _noise_index("ix_snapshots_noise_execution", "execution_id", "id"),
        _noise_index("ix_snapshots_noise_source", "source_id", "id"),
        _noise_index("ix_snapshots_noise_page", "url_hash", "id"),
    )


class PageLink(Model):
    """An edge of the link graph, from a snapshot to a group's address; at most 200 a snapshot."""

    __tablename__ = "page_links"

    snapshot_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    to_hash: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    from_hash: Mapped[int] = mapped_column(BigInteger)
    """Of the linking group's address."""
    to_url: Mapped[str] = mapped_column(Text)

    __table_args__ = (Index("ix_page_links_to_hash", "to_hash"),)


class LinkText(Model):
    """Words that links to a group's address stand on: each once for a linking host, the first few of it."""

    __tablename__ = "link_texts"

    to_hash: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    host_hash: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    """Of the linking host, less `www.`; 0 for the host that is linked to."""
    text: Mapped[str] = mapped_column(String(80), primary_key=True)
    snapshot_id: Mapped[int] = mapped_column(BigInteger)
    """The capture that said so first: if it is withdrawn, so are its words, until a capture that is not says the
    same."""

    __table_args__ = (Index("ix_link_texts_snapshot", "snapshot_id"), {"sqlite_with_rowid": False})


class Withdrawal(Model):
    """A snapshot, or all captures of an address, that no reader may see until it is lifted."""

    __tablename__ = "withdrawals"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    snapshot_id: Mapped[int | None] = mapped_column(BigInteger)
    url_key: Mapped[str | None] = mapped_column(KeyText)
    """The page's key, for every capture of it, whenever it came and however its address was spelled. Exactly one of
    the two is set."""
    subject: Mapped[str] = mapped_column(Text)
    """What was asked for, as written."""
    reason: Mapped[str] = mapped_column(Text)
    actor: Mapped[str]
    created_at: Mapped[datetime]
    lifted_at: Mapped[datetime | None]
    lifted_by: Mapped[str | None]

    __table_args__ = (
        Index(
            "ix_withdrawals_snapshot",
            "snapshot_id",
            sqlite_where=text("lifted_at IS NULL"),
            postgresql_where=text("lifted_at IS NULL"),
        ),
        Index(
            "ix_withdrawals_key",
            "url_key",
            sqlite_where=text("lifted_at IS NULL"),
            postgresql_where=text("lifted_at IS NULL"),
        ),
    )


class ReplayKey(Model):
    """What addresses of members' captures on the replay host are signed with; a new one now and then."""

    __tablename__ = "replay_keys"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    secret: Mapped[bytes] = mapped_column(LargeBinary(32))
    created_at: Mapped[datetime]


class NoiseQueue(Model):
    """Captures that were written or changed and are not judged yet: ranges of ids, one or two for a batch."""

    __tablename__ = "noise_queue"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    first_id: Mapped[int] = mapped_column(BigInteger)
    last_id: Mapped[int] = mapped_column(BigInteger)
    late: Mapped[bool] = mapped_column(server_default=text("false"))
    """Whether it was here before there was any judging: what is new goes before it."""

    __table_args__ = (
        Index("ix_noise_queue_order", "late", "id"),
        Index("ix_noise_queue_first_id", "first_id"),
    )


class NoiseSuspect(Model):
    """A capture that may not show its page, or an error page of the site that others are held against."""

    __tablename__ = "noise_suspects"

    snapshot_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    site: Mapped[int] = mapped_column(BigInteger)
    """First 64 bits of the SHA-256 of the host."""
    likeness: Mapped[int] = mapped_column(BigInteger)
    """Of what the page says, without what its own address puts into it: equal for near-equal pages of a site."""
    leaf: Mapped[int] = mapped_column(BigInteger)
    """Of the last name in the address: the same page in ten versions of a manual has one."""
    url_hash: Mapped[int] = mapped_column(BigInteger)
    kind: Mapped[str | None] = mapped_column(String(16))
    """What its words say it is; None for an answer that the server itself called an error."""
    said: Mapped[str] = mapped_column(Text)
    """Which words, in a sentence."""
    proof: Mapped[str | None] = mapped_column(Text)
    """What proves it without other captures, in a sentence."""
    least: Mapped[int] = mapped_column(SmallInteger)
    """Addresses that must say the same before that proves it."""
    chars: Mapped[int]
    marked: Mapped[bool] = mapped_column(server_default=text("false"))
    """Whether the verdict was that it is noise."""

    __table_args__ = (
        Index("ix_noise_suspects_alike", "site", "likeness", "kind", "leaf"),
        Index(
            "ix_noise_suspects_unmarked",
            "site",
            "likeness",
            "snapshot_id",
            sqlite_where=text("NOT marked AND kind IS NOT NULL"),
            postgresql_where=text("NOT marked AND kind IS NOT NULL"),
        ),
        Index("ix_noise_suspects_url_hash", "url_hash"),
        Index(
            "ix_noise_suspects_errors",
            "site",
            sqlite_where=text("kind IS NULL"),
            postgresql_where=text("kind IS NULL"),
        ),
    )


class NoiseVerdict(Model):
    """Why a capture counts as noise, in words; one row for each that does."""

    __tablename__ = "noise_verdicts"

    snapshot_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    kind: Mapped[str] = mapped_column(String(16))
    evidence: Mapped[str] = mapped_column(Text)
    decided_by: Mapped[str | None]
    """The person who ruled so; None if it was found."""
    decided_at: Mapped[datetime]


class NoiseRuling(Model):
    """What a person ruled of a capture, or of all captures of a page; the last one of a subject is in force."""

    __tablename__ = "noise_rulings"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    snapshot_id: Mapped[int | None] = mapped_column(BigInteger)
    url_key: Mapped[str | None] = mapped_column(KeyText)
    """The page's key, for every capture of it. Exactly one of the two is set."""
    subject: Mapped[str] = mapped_column(Text)
    """What was meant, as written."""
    kind: Mapped[str | None] = mapped_column(String(16))
    """What it is; None if it is no noise."""
    reason: Mapped[str] = mapped_column(Text)
    actor: Mapped[str]
    created_at: Mapped[datetime]

    __table_args__ = (
        Index("ix_noise_rulings_snapshot", "snapshot_id", "id"),
        Index("ix_noise_rulings_key", "url_key", "id"),
    )


class SearchOutbox(Model):
    """What the search index has not taken in yet; written in the transaction that made the change."""

    __tablename__ = "search_outbox"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    kind: Mapped[str] = mapped_column(String(16))
    """snapshots (a range of ids that were written or changed), documents (ids in refs), withdrawal, signals,
    visibility (of the source that `first_id` names)."""
    first_id: Mapped[int | None] = mapped_column(BigInteger)
    last_id: Mapped[int | None] = mapped_column(BigInteger)
    refs: Mapped[dict[str, Any]] = mapped_column(default=dict)
    created_at: Mapped[datetime]
