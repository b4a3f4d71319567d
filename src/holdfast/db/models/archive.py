"""The archive's tables, from the sealed WARC file on."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    ForeignKey,
    Index,
    LargeBinary,
    SmallInteger,
    String,
    Text,
    UniqueConstraint,
    func,
    select,
    text,
)
from sqlalchemy.ext.hybrid import hybrid_property
from sqlalchemy.orm import Mapped, column_property, mapped_column

from holdfast.db.models.base import BigId, KeyText, Leased, Model, partial_index
from holdfast.storage.store import FileKey


class WarcStore(Model):
    """A place for WARC files outside the data directory. `warc-roots.json` permits its use, never this row."""

    __tablename__ = "stores"

    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    location: Mapped[str]
    """Absolute path of a folder; the form of a location says what kind of store it is."""

    __table_args__ = (UniqueConstraint("location"),)


class WarcFile(Model):
    """One WARC file: open while a process writes it, then sealed permanently."""

    __tablename__ = "warc_files"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    execution_id: Mapped[int] = mapped_column(ForeignKey("executions.id"))
    owner_id: Mapped[int | None] = mapped_column(BigInteger)
    store: Mapped[str] = mapped_column(String(64), server_default=text("'home'"))
    """Name of the store; `home` is the data directory."""
    key: Mapped[str]
    """The sealed name, below the location of the store."""
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
    """Where an imported file came from, as given by the user; None for our own."""
    origin_sha256: Mapped[str | None] = mapped_column(String(64))
    """Digest of the imported file or package member: importing the same file again finds the same row."""
    index_state: Mapped[str] = mapped_column(String(8), server_default=text("'pending'"))
    """pending, running, indexed, failed."""
    first_at: Mapped[datetime | None]
    last_at: Mapped[datetime | None]
    """Dates of its earliest and latest snapshot, set when it is indexed: searches by time skip whole files. Only a
    latest one, in 1970: it has no snapshots.
    """

    __table_args__ = (
        # The key first: rebuilding looks up keys of any store.
        UniqueConstraint("key", "store"),
        Index("ix_warc_files_origin_sha256", "origin_sha256"),
        partial_index(
            "ix_warc_files_to_index", "id", where="state = 'sealed' AND index_state IN ('pending','running')"
        ),
        Index("ix_warc_files_execution_id", "execution_id", "id"),
        partial_index("ix_warc_files_open", "owner_id", where="state = 'open'"),
    )

    location: Mapped[str | None] = column_property(
        select(WarcStore.location).where(WarcStore.name == store).correlate_except(WarcStore).scalar_subquery()
    )
    """Location of the store; None for the data directory."""

    @property
    def file_key(self) -> FileKey:
        return FileKey(self.key, self.location)

    @hybrid_property
    def path(self) -> str:
        """The path that users see."""
        return str(self.file_key)

    @path.inplace.expression
    @classmethod
    def _path(cls) -> ColumnElement[str]:
        return func.coalesce(cls.location.concat("/"), "").concat(cls.key)


class IndexRun(Leased, Model):
    """The latest indexing run of one sealed file: its owner, progress and results."""

    __tablename__ = "index_runs"

    warc_file_id: Mapped[int] = mapped_column(ForeignKey("warc_files.id"), primary_key=True)
    version: Mapped[int]
    """Version of the extraction; files with an older one may be indexed again."""
    phase: Mapped[str] = mapped_column(String(16))
    records: Mapped[int] = mapped_column(server_default="0")
    pages: Mapped[int] = mapped_column(server_default="0")
    bytes_done: Mapped[int] = mapped_column(BigInteger, server_default="0")
    bytes_total: Mapped[int] = mapped_column(BigInteger, server_default="0")
    warnings: Mapped[dict[str, Any]] = mapped_column(default=dict)
    """Counts by kind, and the first of each kind with its offset."""
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
    """The type that the body was parsed as; with `;template=` and a digest if a source template marked the content."""
    body_bytes: Mapped[int] = mapped_column(BigInteger)
    title: Mapped[str | None]
    description: Mapped[str | None]
    snippet: Mapped[str | None]
    headings: Mapped[str | None] = mapped_column(Text)
    """One per line, in document order."""
    terms: Mapped[str | None] = mapped_column(Text)
    """Terms that the document defines or names, one per line, each once, in document order."""
    author: Mapped[str | None]
    published_at: Mapped[datetime | None]
    modified_at: Mapped[datetime | None]
    """Like `published_at`, as the page states it."""
    keywords: Mapped[str | None] = mapped_column(Text)
    """One per line."""
    word_count: Mapped[int | None]
    page_type: Mapped[str | None] = mapped_column(String(16))
    """article, listing, home, product, reference, form, media, other. None, like the word count, if an older version
    parsed the document.
    """
    language: Mapped[str | None] = mapped_column(String(35))
    canonical: Mapped[str | None]
    details: Mapped[dict[str, Any]] = mapped_column(default=dict)
    """OpenGraph and JSON-LD basics, and the problems that the parser recorded."""
    noindex: Mapped[bool] = mapped_column(server_default=text("false"))
    says_archived: Mapped[bool] = mapped_column(server_default=text("false"))
    """Whether the page states that it is no longer maintained."""
    text_chars: Mapped[int] = mapped_column(server_default="0")
    version: Mapped[int]
    created_at: Mapped[datetime]

    __table_args__ = (UniqueConstraint("body_hash", "charset", "media_type"),)


class DocumentText(Model):
    """A document's main text, one block per line, compressed with zstd; separate, so that documents stay small."""

    __tablename__ = "document_texts"

    document_id: Mapped[int] = mapped_column(ForeignKey("documents.id"), primary_key=True)
    text: Mapped[bytes] = mapped_column(LargeBinary)


class PageGroup(Model):
    """Scheme, host and path without query: the unit that people browse. One row per source and group."""

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
    """Link-graph signals of a group's address, over all sources."""

    __tablename__ = "page_signals"

    url_hash: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    inlinks: Mapped[int]
    outlinks: Mapped[int]
    pagerank: Mapped[float]
    computed_at: Mapped[datetime]


def _noise_index(name: str, *columns: str) -> Index:
    """Return a partial index of captures that are noise."""
    return partial_index(name, *columns, where="noise IS NOT NULL")


class Snapshot(Model):
    """One replayable record: every response, resource and revisit, of any type and status."""

    __tablename__ = "snapshots"

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    """The file's id times 2^22 plus the record's ordinal: a rebuild from files alone gives the same ids."""
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
    """Hash of the normalised address with its query: identifies the page."""
    page_key: Mapped[str | None] = mapped_column(KeyText)
    """The key for takedowns of the page, if it differs from `url_key`."""
    group_id: Mapped[int | None] = mapped_column(ForeignKey("page_groups.id"))
    """Set only for pages."""
    captured_at: Mapped[datetime]
    method: Mapped[str | None] = mapped_column(String(16))
    """None for GET; for other methods the request data is part of the key."""
    status: Mapped[int | None] = mapped_column(SmallInteger)
    media_type: Mapped[str | None]
    """As declared by the server."""
    payload_digest: Mapped[str | None]
    """As in the record: `sha256:…`, `sha1:…`; computed if the record has none."""
    body_hash: Mapped[bytes | None] = mapped_column(LargeBinary(32))
    """SHA-256 of the content-decoded body; of the original's body for a revisit."""
    document_id: Mapped[int | None] = mapped_column(ForeignKey("documents.id"))
    is_page: Mapped[bool]
    """HTML, text or PDF: the captures that search, changes and exports read."""
    noindex: Mapped[bool] = mapped_column(server_default=text("false"))
    """Whether the page or its headers opt out of public search."""
    canonical_id: Mapped[int | None] = mapped_column(BigInteger)
    """The earliest snapshot of the same address, UTC day and body; set if this one is a duplicate of it."""
    original_id: Mapped[int | None] = mapped_column(BigInteger)
    """The snapshot that holds a revisit's body, once it is known."""
    refers_to_url: Mapped[str | None] = mapped_column(Text)
    refers_to_at: Mapped[datetime | None]
    redirect_to: Mapped[str | None] = mapped_column(Text)
    """The Location of a 3xx, resolved."""
    truncated: Mapped[str | None] = mapped_column(String(16))
    problems: Mapped[str | None]
    """Comma-separated codes: digest_mismatch, bad_date…"""
    backend: Mapped[str] = mapped_column(String(16), server_default=text("'native'"))
    """native, browser, zimit, http_warc, playwright_warc, import."""
    fidelity: Mapped[str] = mapped_column(String(8), server_default=text("'unknown'"))
    """high, fallback, unknown."""
    compared: Mapped[bool] = mapped_column(server_default=text("false"))
    """Whether `changes` has processed it."""
    noise: Mapped[str | None] = mapped_column(String(16))
    """A `NoiseKind` if the capture does not show the page although its status is good; None otherwise."""

    __table_args__ = (
        Index("ix_snapshots_key", "url_key", "captured_at", "id"),
        Index("ix_snapshots_page", "url_hash", "captured_at", "id"),
        partial_index("ix_snapshots_page_key", "page_key", where="page_key IS NOT NULL"),
        Index("ix_snapshots_group", "group_id", "captured_at", "id"),
        Index("ix_snapshots_execution", "execution_id", "id"),
        Index("ix_snapshots_source", "source_id", "id"),
        Index("ix_snapshots_source_key", "source_id", "url_key"),
        Index("ix_snapshots_document", "document_id", "id"),
        partial_index("ix_snapshots_to_compare", "source_id", "id", where="is_page AND NOT compared"),
        partial_index("ix_snapshots_unresolved", "id", where="record_type = 'revisit' AND original_id IS NULL"),
        partial_index("ix_snapshots_original", "original_id", where="original_id IS NOT NULL"),
        _noise_index("ix_snapshots_noise_execution", "execution_id", "id"),
        _noise_index("ix_snapshots_noise_source", "source_id", "id"),
        _noise_index("ix_snapshots_noise_page", "url_hash", "id"),
    )


class PageLink(Model):
    """An edge of the link graph, from a snapshot to a group's address; at most 200 per snapshot."""

    __tablename__ = "page_links"

    snapshot_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    to_hash: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    from_hash: Mapped[int] = mapped_column(BigInteger)
    """Hash of the linking group's address."""
    to_url: Mapped[str] = mapped_column(Text)

    __table_args__ = (Index("ix_page_links_to_hash", "to_hash"),)


class LinkText(Model):
    """Anchor texts of links to a group's address: each once per linking host, only the first few of a host."""

    __tablename__ = "link_texts"

    to_hash: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    host_hash: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    """Hash of the linking host without `www.`; 0 if it is the linked host itself."""
    text: Mapped[str] = mapped_column(String(80), primary_key=True)
    snapshot_id: Mapped[int] = mapped_column(BigInteger)
    """The first capture with this text. If it is taken down, the text is removed until a visible capture has the same
    text.
    """

    __table_args__ = (Index("ix_link_texts_snapshot", "snapshot_id"), {"sqlite_with_rowid": False})


class Withdrawal(Model):
    """A takedown of a snapshot, or of all captures of an address; no reader may see them until it is lifted."""

    __tablename__ = "withdrawals"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    snapshot_id: Mapped[int | None] = mapped_column(BigInteger)
    url_key: Mapped[str | None] = mapped_column(KeyText)
    """The page's key, for every capture of it, past and future, in any spelling of its address. Exactly one of the two
    is set.
    """
    subject: Mapped[str] = mapped_column(Text)
    """The requested address or capture, as written."""
    reason: Mapped[str] = mapped_column(Text)
    actor: Mapped[str]
    created_at: Mapped[datetime]
    lifted_at: Mapped[datetime | None]
    lifted_by: Mapped[str | None]

    __table_args__ = (
        partial_index("ix_withdrawals_snapshot", "snapshot_id", where="lifted_at IS NULL"),
        partial_index("ix_withdrawals_key", "url_key", where="lifted_at IS NULL"),
    )


class ReplayKey(Model):
    """Key that signs URLs of members' captures on the replay host; rotated from time to time."""

    __tablename__ = "replay_keys"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    secret: Mapped[bytes] = mapped_column(LargeBinary(32))
    created_at: Mapped[datetime]


class NoiseQueue(Model):
    """Ranges of ids of captures that are new or changed and not yet classified; one or two per batch."""

    __tablename__ = "noise_queue"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    first_id: Mapped[int] = mapped_column(BigInteger)
    last_id: Mapped[int] = mapped_column(BigInteger)
    late: Mapped[bool] = mapped_column(server_default=text("false"))
    """Whether the captures predate the classifier: newer ones are processed first."""

    __table_args__ = (Index("ix_noise_queue_order", "late", "id"), Index("ix_noise_queue_first_id", "first_id"))


class NoiseSuspect(Model):
    """A capture that may be noise, or an error page of the site that others are compared with."""

    __tablename__ = "noise_suspects"

    snapshot_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    site: Mapped[int] = mapped_column(BigInteger)
    """First 64 bits of the SHA-256 of the host."""
    likeness: Mapped[int] = mapped_column(BigInteger)
    """Similarity hash of the page text without parts of its own address: equal for near-equal pages of a site."""
    leaf: Mapped[int] = mapped_column(BigInteger)
    """Hash of the last path segment: equal for the same page in ten versions of a manual."""
    url_hash: Mapped[int] = mapped_column(BigInteger)
    kind: Mapped[str | None] = mapped_column(String(16))
    """The kind that its words suggest; None for a response with an error status."""
    said: Mapped[str] = mapped_column(Text)
    """The matching words, in a sentence."""
    proof: Mapped[str | None] = mapped_column(Text)
    """Evidence that is sufficient without other captures, in a sentence."""
    least: Mapped[int] = mapped_column(SmallInteger)
    """Number of addresses with the same text that proves it."""
    chars: Mapped[int]
    marked: Mapped[bool] = mapped_column(server_default=text("false"))
    """Whether the verdict was that it is noise."""

    __table_args__ = (
        Index("ix_noise_suspects_alike", "site", "likeness", "kind", "leaf"),
        partial_index(
            "ix_noise_suspects_unmarked", "site", "likeness", "snapshot_id", where="NOT marked AND kind IS NOT NULL"
        ),
        Index("ix_noise_suspects_url_hash", "url_hash"),
        partial_index("ix_noise_suspects_errors", "site", where="kind IS NULL"),
    )


class NoiseVerdict(Model):
    """Why a capture counts as noise, in words; one row per noise capture."""

    __tablename__ = "noise_verdicts"

    snapshot_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    kind: Mapped[str] = mapped_column(String(16))
    evidence: Mapped[str] = mapped_column(Text)
    decided_by: Mapped[str | None]
    """The person who decided; None if it was detected automatically."""
    decided_at: Mapped[datetime]


class ManualLabel(Model):
    """A person's label for a capture, or for all captures of a page; the latest one of a subject is in force."""

    __tablename__ = "noise_rulings"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    snapshot_id: Mapped[int | None] = mapped_column(BigInteger)
    url_key: Mapped[str | None] = mapped_column(KeyText)
    """The page's key, for every capture of it. Exactly one of the two is set."""
    subject: Mapped[str] = mapped_column(Text)
    """The labelled capture or address, as written."""
    kind: Mapped[str | None] = mapped_column(String(16))
    """The kind of noise; None if it is not noise."""
    reason: Mapped[str] = mapped_column(Text)
    actor: Mapped[str]
    created_at: Mapped[datetime]

    __table_args__ = (
        Index("ix_noise_rulings_snapshot", "snapshot_id", "id"),
        Index("ix_noise_rulings_key", "url_key", "id"),
    )


class SearchOutbox(Model):
    """Changes that the search index has not processed; written in the same transaction as the change."""

    __tablename__ = "search_outbox"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    kind: Mapped[str] = mapped_column(String(16))
    """snapshots (a range of ids that were written or changed), documents (ids in refs), link_texts
    (hashes of their targets in refs), withdrawal (with the targets of its link texts), signals, visibility (of the
    source in `first_id`; `after` in refs is the last snapshot already processed).
    """
    first_id: Mapped[int | None] = mapped_column(BigInteger)
    last_id: Mapped[int | None] = mapped_column(BigInteger)
    refs: Mapped[dict[str, Any]] = mapped_column(default=dict)
    created_at: Mapped[datetime]
