"""Freezes an edition into a list that can be cited; `verifying` says later whether the archive still holds it.

The list is named by its digest and never written over: a later freeze adds another, and whoever cited the first can
still check it. A capture that is withdrawn is named by its number alone, and said to be withdrawn.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from holdfast import audit
from holdfast.clock import Clock, to_micros
from holdfast.db.engine import Database
from holdfast.editions import artefacts, queries
from holdfast.editions.artefacts import FROZEN, Draft, Written, edition_folder
from holdfast.editions.captured import captures_of
from holdfast.editions.queries import CaptureRow, Which
from holdfast.editions.readiness import judge
from holdfast.editions.refusals import EditionFrozen, EditionNotReady
from holdfast.editions.volume import Volume, read_volume
from holdfast.sorting import sorted_lines


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
    there is a list and `again` was not asked for; EditionBusy, NoSpace. Freezing again what has not changed keeps the
    digest and its date, and puts the list back in its place if it was lost or damaged.
    """
    with database.read() as session:
        known = read_volume(session, edition_id)
    folder = edition_folder(home, known.source.code, known.edition.year)
    with artefacts.draft(folder) as made:
        with database.read() as session:
            volume = read_volume(session, edition_id)
        _demand_ready(volume, again=again)
        listed = _write(database, made, volume)
        if not listed.rows:
            raise EditionNotReady(f"nothing of {volume.source.code} {volume.edition.year} is indexed; there is no list")
        name = f"frozen-{listed.sha256[:16]}.jsonl"
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
    lines = (_sortable(row) for _, row in captures_of(database, volume, which=Which.ALL))
    with made.sheet(FROZEN) as sheet:
        for line in sorted_lines(lines, made.scratch):
            sheet.line(line.rsplit(b"\x00", 1)[1])
        return sheet.close()


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
