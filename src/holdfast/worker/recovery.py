"""Cleaning up after processes that died: leases freed, pages blamed, WARC files repaired and sealed, with a report."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field

from holdfast import log
from holdfast.clock import to_micros
from holdfast.coordination.owners import DeadOwner, bury, dead_owners
from holdfast.warc import queries as files
from holdfast.warc.manifest import ManifestEntry, add_to_manifest
from holdfast.warc.queries import OpenFile
from holdfast.warc.repair import adopt
from holdfast.wiring import Ground
from holdfast.worker.paths import absolute

_log = log.get()


@dataclass(slots=True)
class Recovery:
    """What a start found and mended."""

    owners: int = 0
    domains: int = 0
    quarantined: list[int] = field(default_factory=list)
    repaired: list[str] = field(default_factory=list)
    orphans: int = 0
    """Records that are kept although no settled attempt points to them: they will be fetched again."""
    torn_bytes: int = 0


def recover(ground: Ground) -> Recovery:
    """Free what this machine's dead processes held, and seal what they were writing. Safe to run at any time."""
    report = Recovery()
    for owner in dead_owners(ground.hot, folder=ground.run_folder):
        report.owners += 1
        report.domains += ground.frontier.free([owner.id])
        _blame(ground, owner, report)
        with ground.hot.read() as tx:
            stale = files.open_files(tx, owner_id=owner.id)
        for file in stale:
            _adopt(ground, file, report)
        bury(ground.hot, ground.clock, owner)
    if report.owners:
        _log.info("recovery.done", owners=report.owners, domains=report.domains, files=len(report.repaired),
                  orphans=report.orphans, torn_bytes=report.torn_bytes)  # fmt: skip
    return report


def _blame(ground: Ground, owner: DeadOwner, report: Recovery) -> None:
    if owner.kind != "process" or not owner.in_hand:
        return
    evidence = f"process {owner.pid} on {socket.gethostname()} died while parsing this page"
    limit = ground.settings.parse.crashes
    report.quarantined += ground.frontier.blame([slot.attempt_id for slot in owner.in_hand], evidence, limit=limit)


def _adopt(ground: Ground, file: OpenFile, report: Recovery) -> None:
    """Repair and seal one file of a dead process; a file that never got a record is struck off."""
    path = absolute(ground.settings.home, file.path)
    adopted = adopt(path)
    now = to_micros(ground.clock.now())
    if adopted is None:
        with ground.hot.write() as tx:
            files.discard_file(tx, file.id)
        return
    sealed = adopted.sealed
    with ground.hot.write() as tx:
        sealing = files.Sealing(sealed.size, sealed.sha256, sealed.crc32, sealed.record_count, repaired=True)
        files.seal_file(tx, file.id, sealing, now=now)
        pointed = files.pointed_offsets(tx, file.id)
    add_to_manifest(path.parent, ManifestEntry.of(file.id, sealed))
    orphans = sum(1 for offset in adopted.response_offsets if offset not in pointed)
    report.repaired.append(path.name)
    report.orphans += orphans
    report.torn_bytes += adopted.torn_bytes
    _log.info("recovery.sealed", file=path.name, records=sealed.record_count, orphans=orphans, torn=adopted.torn_bytes)
