"""Freezes an edition into a list that can be cited, and says later whether the archive still holds what it names.

The list is named by its digest and never written over: a later freeze adds another, and whoever cited the first can
still check it. A capture that is withdrawn is named by its number alone, and said to be withdrawn.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

from holdfast import audit
from holdfast.clock import Clock, to_micros
from holdfast.db.engine import Database
from holdfast.db.models import Edition
from holdfast.editions import artefacts, queries
from holdfast.editions.artefacts import FROZEN, Draft, Written, edition_folder
from holdfast.editions.queries import CaptureRow
from holdfast.editions.readiness import judge
from holdfast.editions.refusals import EditionFrozen, EditionNotReady
from holdfast.editions.volume import Volume, read_volume
from holdfast.sorting import sorted_lines

_AT_ONCE = 500
_SHOWN = 20
_COMPARED = ("warc_record_id", "url", "captured_at", "payload_digest")


@dataclass(frozen=True, slots=True, kw_only=True)
class Frozen:
    """A list that was frozen."""

    edition_id: int
    path: Path
    digest: str
    """`sha256:…` of the file."""
    count: int
    frozen_at: datetime
    again: bool
    """Whether there was another list before."""


def freeze(database: Database, home: Path, clock: Clock, edition_id: int, *, again: bool = False) -> Frozen:
    """Write the list of everything that an edition holds, and remember its digest.

    EditionNotReady while a shard is still to be crawled, indexed or accepted, or nothing was captured; EditionFrozen if
    there is a list and `again` was not asked for. Freezing again what has not changed keeps the list and its date.
    """
    with database.read() as session:
        volume = read_volume(session, edition_id)
    _demand_ready(volume, again=again)
    folder = edition_folder(home, volume.source.code, volume.edition.year)
    with artefacts.draft(folder) as made:
        listed = _write(database, made, volume)
        digest = f"sha256:{listed.sha256}"
        if not listed.rows:
            raise EditionNotReady(f"nothing of {volume.source.code} {volume.edition.year} is indexed; there is no list")
        name = f"frozen-{listed.sha256[:16]}.jsonl"
        if volume.edition.frozen_digest != digest:
            (made.scratch / FROZEN).rename(made.scratch / name)
            made.publish(listed._replace(name=name))
    return _record(database, clock, volume, folder / name, listed)


def _demand_ready(volume: Volume, *, again: bool) -> None:
    row, label = volume.edition, f"{volume.source.code} {volume.edition.year}"
    if row.frozen_at is not None and not again:
        raise EditionFrozen(
            f"{label} was frozen on {row.frozen_at:%Y-%m-%d} as {row.frozen_digest}; freeze it anew with --again"
        )
    if not judge([shard.state for shard in volume.shards], captured=1, missing_seeds=None).search_ready:
        raise EditionNotReady(
            f"{label} has shards that are neither indexed nor accepted; see: holdfast edition show {label}"
        )


def _record(database: Database, clock: Clock, volume: Volume, path: Path, listed: Written) -> Frozen:
    digest, now = f"sha256:{listed.sha256}", clock.now()
    with database.write() as session:
        row = queries.locked(session, volume.edition.id)
        before = row.frozen_digest
        if before != digest:
            row.frozen_at, row.frozen_digest, row.frozen_count = now, digest, listed.rows
            row.frozen_path = f"editions/{volume.source.code}/{row.year}/{path.name}"
            action = "edition.frozen" if before is None else "edition.frozen_again"
            audit.record(session, clock, action=action, subject=f"edition {volume.source.code} {row.year}",
                         detail={"digest": digest, "before": before, "count": listed.rows})  # fmt: skip
        frozen_at = row.frozen_at or now
    return Frozen(edition_id=volume.edition.id, path=path, digest=digest, count=listed.rows, frozen_at=frozen_at,
                  again=before is not None and before != digest)  # fmt: skip


def _write(database: Database, made: Draft, volume: Volume) -> Written:
    """Write the list by address, time and number: the same captures give the same bytes."""
    lines = (_sortable(row) for row in captures_of(database, volume))
    with made.sheet(FROZEN) as sheet:
        for line in sorted_lines(lines, made.scratch):
            sheet.line(line.rsplit(b"\x00", 1)[1])
        return sheet.close()


def captures_of(database: Database, volume: Volume, *, pages_only: bool = False) -> Iterator[CaptureRow]:
    """Yield every capture of an edition's executions, in short sessions; withdrawn ones are marked."""
    for _, run in volume.runs:
        after = -1
        while True:
            with database.read() as session:
                rows = queries.captures(session, run.id, after=after, pages_only=pages_only)
            yield from rows
            if len(rows) < queries.STRETCH:
                break
            after = rows[-1].id


def _sortable(row: CaptureRow) -> bytes:
    # A withdrawn capture must not be told by its place in the list either: all of them stand at its end.
    key = "~" if row.withdrawn else row.url_key.replace("\x00", "%00").replace("\n", "%0A")
    moment = 0 if row.withdrawn else to_micros(row.captured_at)
    line = json.dumps(frozen_row(row), ensure_ascii=False).encode("utf-8", "replace")
    return b"%d\x00%b\x00%020d\x00%020d\x00%b\n" % (
        row.withdrawn, key.encode("utf-8", "replace"), moment, row.id, line
    )  # fmt: skip


def frozen_row(row: CaptureRow) -> dict[str, Any]:
    """Return a capture as the list names it."""
    if row.withdrawn:
        return {"snapshot_id": row.id, "withdrawn": True}
    return {
        "snapshot_id": row.id, "warc_record_id": row.record_id and f"<urn:uuid:{row.record_id}>", "url": row.url,
        "captured_at": row.captured_at.isoformat().replace("+00:00", "Z"), "payload_digest": row.payload_digest,
        "page": row.is_page,
    }  # fmt: skip


@dataclass(slots=True, kw_only=True)
class Verified:
    """Whether the archive still holds what a list names."""

    digest_matches: bool
    listed: int = 0
    missing: int = 0
    changed: int = 0
    withdrawn: int = 0
    examples: list[str]

    @property
    def holds(self) -> bool:
        """Whether the list is what was cited, and everything on it is here; what was withdrawn is here, unseen."""
        return self.digest_matches and not self.missing and not self.changed


def frozen_list(home: Path, edition: Edition) -> Path:
    """Return where the frozen list of an edition lies; EditionNotReady if it was never frozen or the file is gone."""
    if edition.frozen_path is None:
        raise EditionNotReady("this edition was never frozen; do so with: holdfast edition freeze")
    path = home.resolve() / edition.frozen_path
    if ".." in Path(edition.frozen_path).parts or not path.is_file():
        raise EditionNotReady(f"the frozen list {Path(edition.frozen_path).name} is gone; restore it from a backup")
    return path


def verify_frozen(database: Database, home: Path, edition_id: int) -> Verified:
    """Hold the frozen list of an edition against the archive: its digest, and every capture that it names."""
    with database.read() as session:
        volume = read_volume(session, edition_id)
    path = frozen_list(home, volume.edition)
    hasher = sha256()
    found = Verified(digest_matches=False, examples=[])
    with path.open("rb") as file:
        while batch := list(islice(file, _AT_ONCE)):
            for line in batch:
                hasher.update(line)
            _hold(database, found, batch)
    found.digest_matches = f"sha256:{hasher.hexdigest()}" == volume.edition.frozen_digest
    if not found.digest_matches:
        found.examples.append(f"{path.name} is sha256:{hasher.hexdigest()}, cited was {volume.edition.frozen_digest}")
    return found


def _hold(database: Database, found: Verified, batch: Iterable[bytes]) -> None:
    rows = [_entry(line) for line in batch]
    with database.read() as session:
        here = queries.captures_by_id(session, [row["snapshot_id"] for row in rows if row is not None])
    for row in rows:
        found.listed += 1
        held = None if row is None else here.get(row["snapshot_id"])
        if row is None or held is None:
            found.missing += 1
            _example(found, f"snapshot {row['snapshot_id'] if row else '?'} is not in the archive")
        elif held.withdrawn or row.get("withdrawn"):
            found.withdrawn += 1
        elif differing := [name for name in _COMPARED if frozen_row(held)[name] != row.get(name)]:
            found.changed += 1
            _example(found, f"snapshot {held.id} differs in {', '.join(differing)}")


def _example(found: Verified, words: str) -> None:
    if len(found.examples) < _SHOWN:
        found.examples.append(words)


def _entry(line: bytes) -> dict[str, Any] | None:
    """Return a line of a list, None if somebody has damaged it."""
    try:
        row = json.loads(line)
    except ValueError:
        return None
    number = row.get("snapshot_id") if isinstance(row, dict) else None
    return row if isinstance(number, int) and not isinstance(number, bool) and abs(number) < 1 << 63 else None
