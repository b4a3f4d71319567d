"""Clean-up at start after processes that died: their leases are freed, the crash is counted against the page being
parsed, and their WARC files are repaired and sealed, with a report.

Also manages the folder of a source's captures, and deletes those of a cancelled run.
"""

from __future__ import annotations

import importlib
from dataclasses import field
from datetime import timedelta
from functools import partial
from pathlib import Path

from holdfast import log
from holdfast.clock import to_micros
from holdfast.db.audit_events import append_event
from holdfast.errors import HoldfastError, Unavailable
from holdfast.failpoints import reach
from holdfast.processes.owners import OwnerRow, delete_ended_visitors
from holdfast.processes.recovery import LEASE_KINDS, recover_owners
from holdfast.processes.runfile import clear_slots, is_held, parsed_attempts
from holdfast.records import Operator, record
from holdfast.storage.roots import local_path
from holdfast.storage.store import captures_folder
from holdfast.values import dataclass
from holdfast.warc import queries as files
from holdfast.warc.manifest import add_to_manifest
from holdfast.warc.outfile import OPEN_SUFFIX
from holdfast.warc.queries import FileRow
from holdfast.warc.repair import adopt
from holdfast.wiring import Runtime
from holdfast.zimit.errors import StoreMissing
from holdfast.zimit.output_directory import SENTINEL, store_is_present

CRASHES = 3
"""Processes that a page may crash before it is quarantined."""

_log = log.get()
# Silence of another machine after which its unsealed files are reported as lost; if it returns, it seals them, and they
# are read then.
_LOST = timedelta(hours=1)


@dataclass(slots=True)
class RecoveryReport:
    owners: int = 0
    domains: int = 0
    quarantined: list[int] = field(default_factory=list)
    repaired: list[str] = field(default_factory=list)
    orphans: int = 0
    """Records that remain although no settled attempt refers to them: they will be fetched again."""
    torn_bytes: int = 0
    left: dict[int, str] = field(default_factory=dict)
    """Files that cannot be sealed, by id, with the reason; temporary reasons (a full disk) are not included."""
    elsewhere: dict[int, str] = field(default_factory=dict)
    """Files on a machine that has been silent for an hour, by id, with the machine."""


def recover(runtime: Runtime) -> RecoveryReport:
    """Release what dead processes held, and seal the files they were writing here. Safe to run at any time."""
    report = RecoveryReport()
    folder, stale_s = runtime.run_folder, runtime.settings.timings.jobs_stale_s
    release = partial(_release, runtime, report)
    recover_owners(runtime.raw_db, runtime.clock, folder=folder, stale_s=stale_s, release=release)
    delete_ended_visitors(runtime.raw_db)
    _seal_strays(runtime, report)
    if report.owners:
        _log.info(
            "recovery.done",
            owners=report.owners,
            domains=report.domains,
            files=len(report.repaired),
            orphans=report.orphans,
            torn_bytes=report.torn_bytes,
        )
    return report


def recover_leases(runtime: Runtime) -> int:
    """End the rows of dead processes that held nothing but leases; return how many. Touches no storage."""
    # Safe in the loop of a worker: a WARC file on a mount that hangs would block it.
    folder, stale_s = runtime.run_folder, runtime.settings.timings.jobs_stale_s
    return recover_owners(runtime.raw_db, runtime.clock, folder=folder, stale_s=stale_s, kinds=LEASE_KINDS)


def _release(runtime: Runtime, report: RecoveryReport, owner: OwnerRow) -> bool:
    """Release what one dead process held; return False if files are left, for a later start or the machine that has
    them. Each step is idempotent, in case this process dies during it.
    """
    report.owners += 1
    # Do this before releasing its domains: another process could otherwise start the page that killed it.
    _quarantine(runtime, owner, report)
    report.domains += runtime.frontier.free([owner.id])
    reach("recovery_freed")
    with runtime.raw_db.read() as tx:
        stale = files.open_files(tx, owner_id=owner.id)
    # Without its run file only the machine's name shows that it was ours, and two machines may share a name: a file
    # that is missing here may exist there, and must not be marked as lost.
    is_ours = not owner.is_away and owner.run_path.exists()
    elsewhere = [file for file in stale if not is_ours and not _is_here(runtime, file)]
    sealed = all([_adopt(runtime, file, report) for file in stale if file not in elsewhere])
    if runtime.clock.now() - owner.heartbeat_at >= _LOST:
        where = f"was being written on {owner.host}, which is silent since {owner.heartbeat_at:%Y-%m-%d %H:%M} UTC"
        report.elsewhere.update((file.id, f"{file.file_key.name} {where}") for file in elsewhere)
    if is_done := sealed and not elsewhere:
        reach("recovery_sealed")
    return is_done


def _seal_strays(runtime: Runtime, report: RecoveryReport) -> None:
    """Seal files of owners whose rows are closed: a process was cut off, counted as gone, continued and then died."""
    # Seal only files that are here and that no live process holds. Mark none as lost: it may be about to be created.
    with runtime.raw_db.read() as tx:
        strays = files.stray_files(tx)
    for file in strays:
        if _is_here(runtime, file) and not is_held(_open_path(runtime, file)):
            _adopt(runtime, file, report)


def _is_here(runtime: Runtime, file: FileRow) -> bool:
    try:
        path = local_path(runtime.settings.home, file.file_key)
    except HoldfastError:
        return False
    return path.exists() or _open_path(runtime, file).exists()


def _open_path(runtime: Runtime, file: FileRow) -> Path:
    path = local_path(runtime.settings.home, file.file_key)
    return path.with_name(path.name + OPEN_SUFFIX)


def _quarantine(runtime: Runtime, owner: OwnerRow, report: RecoveryReport) -> None:
    attempt_ids = list(parsed_attempts(owner.run_path))
    if owner.kind != "process" or not attempt_ids:
        return
    evidence = f"process {owner.pid} on {owner.host} died while parsing this page"
    limit = CRASHES
    report.quarantined += runtime.frontier.attribute_crash(attempt_ids, evidence, limit=limit)
    clear_slots(owner.run_path)


def _adopt(runtime: Runtime, file: FileRow, report: RecoveryReport) -> bool:
    """Repair and seal one file of a dead process; a file without any record is removed from the database.

    Return False if that is impossible now (the disk is unavailable, the file is damaged, its row names a forbidden
    location): the crawl continues, the next start retries.
    """
    try:
        path = local_path(runtime.settings.home, file.file_key)
        adopted = adopt(path)
        reach("recovery_adopted")
        if adopted is not None:
            add_to_manifest(file.id, adopted.sealed)
            reach("recovery_listed")
    except HoldfastError as exc:
        _log.error("recovery.file_left", action="adopt", file=file.file_key.name, message=str(exc))
        if not isinstance(exc, Unavailable):
            report.left[file.id] = str(exc)
        return False
    if adopted is None:
        return _strike_off(runtime, file, path, report)
    sealed = adopted.sealed
    with runtime.raw_db.write() as tx:
        files.seal_file(tx, file.id, sealed, now=to_micros(runtime.clock.now()), repaired=True)
        pointed = files.pointed_offsets(tx, file.id)
    orphans = sum(1 for offset in adopted.response_offsets if offset not in pointed)
    report.repaired.append(path.name)
    report.orphans += orphans
    report.torn_bytes += adopted.torn_bytes
    _log.info("recovery.sealed", file=path.name, records=sealed.record_count, orphans=orphans, torn=adopted.torn_bytes)
    return True


def _strike_off(runtime: Runtime, file: FileRow, path: Path, report: RecoveryReport) -> bool:
    # Skip it while its whole folder is missing, as with a lost mount: the file may be back tomorrow.
    with runtime.raw_db.write() as tx:
        if not (never_used := path.parent.is_dir() and not files.pointed_offsets(tx, file.id)):
            _log.error("recovery.file_missing", action="adopt", file=str(path))
            report.left[file.id] = f"{path} is missing"
        else:
            files.discard_file(tx, file.id)
    return never_used


LEASE_AGE_S = 900.0
"""Age from which `frontier recover` releases an expired lease: far beyond a lease's 60 s, so its owner is dead."""


@record
class RecoverReceipt:
    """Leases and files of dead processes that were released and repaired."""

    recovered: Operator[int]
    """Domains that can be crawled again."""
    processes: Operator[int]
    """Dead processes that were cleaned up."""
    files: Operator[list[str]]
    """WARC files that were repaired and sealed."""
    orphan_records: Operator[int]
    """Records that stay in the files and will be fetched again."""


def recover_frontier(runtime: Runtime, *, minutes: float | None) -> RecoverReceipt:
    """Release everything that no live process holds, and leases that expired `minutes` (or `LEASE_AGE_S`) ago."""
    cleaned = recover(runtime)
    # Younger leases may belong to another machine's process that lost the database only briefly.
    age_s = LEASE_AGE_S if minutes is None else minutes * 60.0
    expired = runtime.frontier.recover(older_than_s=age_s)
    done = RecoverReceipt(
        recovered=cleaned.domains + expired,
        processes=cleaned.owners,
        files=list(cleaned.repaired),
        orphan_records=cleaned.orphans,
    )
    if done.recovered or done.processes:
        with runtime.raw_db.write() as tx:
            subject, detail = "frontier", {"domains": done.recovered, "processes": done.processes, "files": done.files}
            append_event(tx, runtime.clock, action="frontier.recovered", subject=subject, detail=detail)
    return done


def discard(runtime: Runtime, execution_id: int) -> int:
    """Delete an execution's WARC files, their index entries, and the signals of pages that it saw last.

    Return the number of files.

    If a row names a location where no Holdfast file may be, only the row is deleted.
    """
    # Import it by name: a crawl that is kept does not need the index.
    count: int = importlib.import_module(".discarding", __package__).discard_files(runtime, execution_id)
    return count


# Folders of captures have a mark inside and a record outside, so that a missing mount is noticed: nothing is written to
# the empty directory below it. StoreMissing is the machine's fault, and uses no retry.
KNOWN = "stores"
"""Folder beside the database that exists once captures were stored, with one subfolder for each source that did."""


def open_store(home: Path, code: str) -> Path:
    """Return the folder of a source, created and marked on first use; raise `StoreMissing` if a mark is gone since.

    The parent folder of all sources is checked in the same way: either may be a mount.
    """
    root = captures_folder(home)
    _open(root, home / KNOWN)
    _open(root / code, home / KNOWN / code)
    return (root / code).resolve()


def _open(folder: Path, known: Path) -> None:
    if known.exists():
        if not store_is_present(folder):
            raise StoreMissing(folder, f"its {SENTINEL} is not there any more; make that file if this is the place")
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / SENTINEL).touch()
        known.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise StoreMissing(folder, f"errno {exc.errno}: {exc.strerror}") from exc
