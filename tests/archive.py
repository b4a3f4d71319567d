"""An archive for tests: real WARC files written by our writer, read by our indexer. `build_archive(home, captures)`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from holdfast import config
from holdfast.clock import Clock, SystemClock, to_micros
from holdfast.config import Settings
from holdfast.db import connect
from holdfast.db.engine import Database
from holdfast.db.raw import RawDatabase, Transaction
from holdfast.index.indexer import Indexed, Indexer, index_pending
from holdfast.storage.store import FileKey
from holdfast.types import Fetched, Original, Truncated
from holdfast.warc import queries as files
from holdfast.warc.manifest import add_to_manifest
from holdfast.warc.payload import parse_head, payload_chunks
from holdfast.warc.record import Profile, sha256_of
from holdfast.warc.writer import ExchangeDraft, WarcWriter
from holdfast.wiring import prepare
from holdfast.wiring.archive import Archive

BEGIN = datetime(2024, 3, 1, 12, 0, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shot:
    """One capture to be archived."""

    url: str
    body: bytes | str = "<html><head><title>A page</title></head><body><p>Some words about it.</p></body></html>"
    moment: datetime = BEGIN
    status: int = 200
    media_type: str | None = "text/html; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)
    same_as: str | None = None
    """Write a revisit of the last capture of this address instead (identical payload)."""
    not_modified: bool = False
    """With `same_as`: the server said 304."""
    source: str = "example"
    execution: int = 1
    """Captures of one source with the same number share an execution and a file; executions run in this order."""
    method: str = "GET"
    sent: bytes = b""
    """What a POST carried."""
    truncated: Truncated | None = None
    purpose: str | None = None
    """What the crawler asked for it on its own account: robots, sitemap or feed."""


def pdf(text: str, title: str = "A report") -> bytes:
    """Return a PDF of one page, as small as they come."""
    stream = f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n" % len(stream) + stream + b"\nendstream",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>", b"<< /Title (" + title.encode() + b") >>",
    ]  # fmt: skip
    out, offsets = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n" % number + content + b"\nendobj\n"
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    end = b"trailer\n<< /Size 7 /Root 1 0 R /Info 6 0 R >>\nstartxref\n%d\n%%%%EOF\n" % len(out)
    return out + b"xref\n0 7\n0000000000 65535 f \n" + table + end


class _Bytes:
    def __init__(self, content: bytes) -> None:
        self._content = content

    @property
    def size(self) -> int:
        return len(self._content)

    def chunks(self) -> Iterator[bytes]:
        yield self._content

    def close(self) -> None:
        pass


def build_archive(
    home: Path, captures: Iterable[Shot], *, database_url: str | None = None, index: bool = True
) -> Archive:
    """Write the captures into sealed files below `home`, index them, and return the open archive.

    Call `archive.database.close()` when done. Called again on the same home it adds to it.
    """
    settings = config.load(home=home, database_url=database_url)
    prepare(settings)
    clock = SystemClock()
    with closing(connect(settings.database)) as raw_db:
        add_captures(raw_db, settings, clock, list(captures))
        if index:
            index_all(raw_db, clock, settings.home)
    return Archive(settings=settings, database=Database(settings.database), clock=clock)


def index_all(raw_db: RawDatabase, clock: Clock, home: Path) -> list[Indexed]:
    """Index whatever is pending."""
    with closing(Indexer(raw_db, clock, home)) as indexer:
        return index_pending(indexer, raw_db, clock)


def add_captures(raw_db: RawDatabase, settings: Settings, clock: Clock, shots: Sequence[Shot]) -> list[int]:
    """Write and register the files; return their ids."""
    originals: dict[str, Original] = {}
    ids = []
    for source, execution in sorted({(shot.source, shot.execution) for shot in shots}):
        chosen = [shot for shot in shots if (shot.source, shot.execution) == (source, execution)]
        ids.append(_write_file(raw_db, settings.home, clock, chosen, originals))
    return ids


def _write_file(
    raw_db: RawDatabase, home: Path, clock: Clock, shots: Sequence[Shot], originals: dict[str, Original]
) -> int:
    now, first = to_micros(clock.now()), shots[0]
    with raw_db.write() as tx:
        execution_id = ensure_execution(tx, first.source, f"{first.source}-{first.execution}", now=now)
        folder = home.resolve() / "warcs" / first.source / f"execution-{execution_id}"
        file_id = files.insert_file(tx, execution_id=execution_id, owner_id=0, key=FileKey("new"), now=now)
        name = f"{first.source}-{file_id:05d}"
        path = (folder / f"{name}.warc.gz").relative_to(home.resolve())
        tx.execute("UPDATE warc_files SET key = ? WHERE id = ?", (str(path), file_id))
    folder.mkdir(parents=True, exist_ok=True)
    writer = WarcWriter.create(folder, name, file_id, {"software": "holdfast"}, clock)
    for shot in shots:
        exchange = _exchange(shot, originals)
        appended = writer.append_exchange(exchange)
        if exchange.revisit_of is None:
            originals[shot.url] = Original(
                record_id=appended.record_id, url=shot.url, captured_at=shot.moment,
                payload_digest=exchange.payload_digest, warc_file_id=file_id, offset=appended.ref.offset,
            )  # fmt: skip
    sealed = writer.seal()
    add_to_manifest(file_id, sealed)
    with raw_db.write() as tx:
        files.seal_file(tx, file_id, sealed, now=now)
    return file_id


def ensure_execution(tx: Transaction, source: str, fingerprint: str, *, now: int) -> int:
    """Return the execution of a job of a source, each made if it is new."""
    tx.execute(
        "INSERT INTO sources(code, name, base_url, enabled, config, created_at, updated_at)"
        " VALUES (?, ?, ?, ?, '{}', ?, ?) ON CONFLICT (code) DO NOTHING",
        (source, source.title(), f"https://{source}.org/", True, now, now),
    )
    source_id = tx.execute("SELECT id FROM sources WHERE code = ?", (source,))[0][0]
    known = tx.execute(
        "SELECT e.id FROM executions e JOIN jobs j ON j.id = e.job_id WHERE j.fingerprint = ?", (fingerprint,)
    )
    if known:
        return int(known[0][0])
    job_id = tx.execute(
        "INSERT INTO jobs(source_id, kind, fingerprint, config, created_at) VALUES (?, 'adhoc', ?, '{}', ?)"
        " RETURNING id",
        (source_id, fingerprint, now),
    )[0][0]
    rows = tx.execute(
        "INSERT INTO executions(job_id, number, state, config, output_dir, created_at, started_at, finished_at,"
        " run_seconds) VALUES (?, 1, 'completed', '{}', ?, ?, ?, ?, 0.0) RETURNING id",
        (job_id, fingerprint, now, now, now),
    )
    return int(rows[0][0])


def _exchange(shot: Shot, originals: Mapping[str, Original]) -> ExchangeDraft:
    body = shot.body.encode() if isinstance(shot.body, str) else shot.body
    original = originals[shot.same_as] if shot.same_as is not None else None
    status = 304 if shot.not_modified else shot.status
    headers = dict(shot.headers)
    if shot.media_type is not None and not shot.not_modified:
        headers = {"Content-Type": shot.media_type, **headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = f"HTTP/1.1 {status} {_REASONS.get(status, 'Said')}\r\n{lines}\r\n".encode()
    sent = f"{shot.method} {shot.url} HTTP/1.1\r\nUser-Agent: tests\r\n".encode()
    if shot.sent:
        sent += b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n" % len(shot.sent)
    content = _Bytes(body if original is None else b"")
    profile = None
    if original is not None:
        profile = Profile.SERVER_NOT_MODIFIED if shot.not_modified else Profile.IDENTICAL_PAYLOAD
    fetched = Fetched(
        url=shot.url, status=status, started_at=shot.moment, took_s=0.0, ip="192.0.2.1",
        request_head=sent + b"\r\n" + shot.sent, response_head=head, body=content, truncated=shot.truncated,
    )  # fmt: skip
    digest = sha256_of(payload_chunks(parse_head(head), content))
    return ExchangeDraft(
        fetched=fetched, payload_digest=digest, revisit_of=original, profile=profile, purpose=shot.purpose
    )


_REASONS = {200: "OK", 301: "Moved Permanently", 302: "Found", 304: "Not Modified", 404: "Not Found", 500: "Error"}


def days_later(days: float, since: datetime = BEGIN) -> datetime:
    """Return a moment so many days after the first captures."""
    return since + timedelta(days=days)


def on_another_day(shot: Shot, days: float, *, execution: int = 2) -> Shot:
    """Return the same capture some days later, in another execution."""
    return replace(shot, moment=days_later(days, shot.moment), execution=execution)
