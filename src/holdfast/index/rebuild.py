"""The archive from its files alone: what manifests list and no row knows is registered under the id that it had.

Ids of snapshots are made from those of files and the places of records, so that every one is again what it was. It
changes nothing that is there: a row that says something else than a manifest is told, and stays.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from holdfast.clock import Clock, to_micros
from holdfast.db.engine import Database
from holdfast.db.hot import Hot
from holdfast.errors import HoldfastError, Invalid
from holdfast.jobs.imports import adopt_folder
from holdfast.warc import queries as files
from holdfast.warc.manifest import MANIFEST, ManifestDamaged, read_manifest
from holdfast.warc.queries import ListedFile, Sealing
from holdfast.warc.roots import recorded_roots

_AT_ONCE = 400
_WITHOUT_SOURCE = "restored"


@dataclass(slots=True)
class Rebuild:
    """What the manifests of an archive say beside its rows."""

    known: int = 0
    """Files whose rows are there."""
    lost: list[ListedFile] = field(default_factory=list)
    """Files without a row."""
    problems: list[str] = field(default_factory=list)
    """What cannot be restored, and why."""


def plan_rebuild(hot: Hot, home: Path) -> Rebuild:
    """Return what would be registered; nothing is written."""
    found = Rebuild()
    listed = _listed(home.resolve(), found.problems)
    while batch := list(islice(listed, _AT_ONCE)):
        with hot.read() as tx:
            rows = files.stored_files(tx, [one.id for one in batch], [one.path for one in batch])
        by_id, by_path = dict(rows), {path: file_id for file_id, path in rows}
        for one in batch:
            if by_id.get(one.id) == one.path:
                found.known += 1
            elif one.id in by_id:
                found.problems.append(f"{one.path} was file {one.id}, which is {by_id[one.id]} now")
            elif one.path in by_path:
                found.problems.append(f"{one.path} was file {one.id} and is file {by_path[one.path]} now")
            else:
                found.lost.append(one)
    twice = {one.id for one in found.lost}
    if len(twice) < len(found.lost):
        seen: set[int] = set()
        for one in found.lost:
            if one.id in seen:
                found.problems.append(f"{one.path} has the id {one.id} of another file that a manifest lists")
            seen.add(one.id)
        found.lost = list({one.id: one for one in reversed(found.lost)}.values())[::-1]
    return found


def restore_files(database: Database, hot: Hot, clock: Clock, home: Path, lost: Sequence[ListedFile]) -> int:
    """Register files under their ids, one by one, so that it can be stopped anywhere; return how many there were."""
    folders: dict[Path, int] = {}
    top = home.resolve()
    for one in lost:
        folder = (top / one.path).parent
        if folder not in folders:
            folders[folder] = _execution(database, clock, top, folder)
        with hot.write() as tx:
            files.restore_file(tx, one, execution_id=folders[folder], now=to_micros(clock.now()))
            if hot.dialect == "postgresql":
                files.continue_ids(tx)
    return len(lost)


def _execution(database: Database, clock: Clock, home: Path, folder: Path) -> int:
    """Return the execution of a folder: `warcs/SOURCE/EXECUTION`, perhaps with a folder of a tool's below that."""
    below = folder.relative_to(home / "warcs").parts if folder.is_relative_to(home / "warcs") else ()
    owner = home.joinpath("warcs", *below[:2]) if len(below) > 2 else folder
    try:
        return adopt_folder(database, clock, source=below[0] if len(below) > 1 else _WITHOUT_SOURCE, folder=owner)
    except Invalid:
        return adopt_folder(database, clock, source=_WITHOUT_SOURCE, folder=owner)


def _listed(home: Path, problems: list[str]) -> Iterator[ListedFile]:
    """Yield what the manifests below the data directory and the recorded folders list, as far as it is there."""
    for root in (home, *recorded_roots(home)):
        for parent, folders, names in os.walk(root, followlinks=False):
            folders.sort()
            if MANIFEST not in names:
                continue
            folder = Path(parent)
            try:
                entries = read_manifest(folder)
            except ManifestDamaged as bad:
                problems += [str(bad)] if bad.is_ours else []
                continue
            except HoldfastError as bad:
                problems.append(str(bad))
                continue
            for entry in entries:
                path = folder / entry.name
                if not path.is_file() or path.stat().st_size != entry.size:
                    problems.append(f"{path} is not there as its manifest says; see: holdfast verify {folder}")
                    continue
                stored = str(path.relative_to(home)) if path.is_relative_to(home) else str(path)
                sealing = Sealing(entry.size, entry.sha256, entry.crc32, entry.record_count)
                yield ListedFile(entry.file_id, stored, sealing)
