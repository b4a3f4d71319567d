"""The archive from its files alone: what manifests list and no row knows is registered under the id that it had.

Ids of snapshots are made from those of files and the places of records, so that every one is again what it was. It
changes nothing that is there: a row that says something else than a manifest is told, and stays.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from holdfast.archive_tool.output_directory import STATE_NAME
from holdfast.clock import Clock, to_micros
from holdfast.db.engine import Database
from holdfast.db.raw import RawDatabase
from holdfast.errors import HoldfastError, Invalid
from holdfast.jobs.imports import FolderFacts, adopt_folder
from holdfast.sources.adhoc_queries import is_code_of
from holdfast.sources.queries import is_code
from holdfast.urls import parse_seed
from holdfast.warc import queries as files
from holdfast.warc.manifest import ManifestDamaged, is_listed, read_manifest
from holdfast.warc.queries import ListedFile, Sealing
from holdfast.warc.reader import read_record_at
from holdfast.warc.roots import recorded_roots

_AT_ONCE = 400
_WITHOUT_SOURCE = "restored"
_INFO_BYTES = 4 << 20


@dataclass(slots=True)
class Rebuild:
    """What the manifests of an archive say beside its rows."""

    known: int = 0
    """Files whose rows are there."""
    lost: list[ListedFile] = field(default_factory=list)
    """Files without a row."""
    problems: list[str] = field(default_factory=list)
    """What cannot be restored, and why."""


def plan_rebuild(raw_db: RawDatabase, home: Path) -> Rebuild:
    """Return what would be registered; nothing is written."""
    found = Rebuild()
    listed = _listed(home.resolve(), found.problems)
    while batch := list(islice(listed, _AT_ONCE)):
        with raw_db.read() as tx:
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


def restore_files(database: Database, raw_db: RawDatabase, clock: Clock, home: Path, lost: Sequence[ListedFile]) -> int:
    """Register files under their ids, one by one, so that it can be stopped anywhere; return how many there were."""
    folders: dict[Path, int] = {}
    top = home.resolve()
    for one in lost:
        folder = (top / one.path).parent
        if folder not in folders:
            folders[folder] = _execution(database, clock, top, one)
        with raw_db.write() as tx:
            files.restore_file(tx, one, execution_id=folders[folder], now=to_micros(clock.now()))
            if raw_db.dialect == "postgresql":
                files.continue_ids(tx)
    return len(lost)


def _execution(database: Database, clock: Clock, home: Path, one: ListedFile) -> int:
    """Return the execution of a file's folder: `warcs/SOURCE/EXECUTION`, perhaps with a tool's folder below that."""
    path = home / one.path
    folder = path.parent
    below = folder.relative_to(home / "warcs").parts if folder.is_relative_to(home / "warcs") else ()
    owner = home.joinpath("warcs", *below[:2]) if len(below) > 2 else folder
    info = _own_info(path, one.id)
    code = below[0] if len(below) > 1 else info.get("isPartOf", "").rpartition("-")[0]
    facts = _facts(code if is_code(code) else _WITHOUT_SOURCE, info)
    if (owner / STATE_NAME).is_file():
        facts = replace(facts, backend="zimit")
    return adopt_folder(database, clock, folder=owner, facts=facts)


def _own_info(path: Path, file_id: int) -> dict[str, str]:
    """Return the warcinfo fields of a file that our crawler wrote in this archive; none if it is another writer's."""
    try:
        head, block = read_record_at(path, 0, limit=_INFO_BYTES)
    except HoldfastError:  # what is wrong with it is told when it is read
        return {}
    if head.type != "warcinfo" or head.get("WARC-Filename") != path.name:
        return {}
    lines = block.decode("utf-8", "replace").splitlines()
    fields = {name: value.strip() for name, colon, value in (line.partition(":") for line in lines) if colon}
    return fields if fields.get("holdfast-file-id") == str(file_id) else {}


def _facts(code: str, info: Mapping[str, str]) -> FolderFacts:
    """Return what a file says of its source: an ad-hoc crawl's is named after its host, as when it was made."""
    try:
        plan = json.loads(info.get("description", ""))
        first = parse_seed(plan["seeds"][0])
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, Invalid):
        return FolderFacts(source=code, backend="native" if info else None)
    if is_code_of(code, first.host):
        return FolderFacts(source=code, name=first.host, base_url=f"{first.origin}/", backend="native")
    return FolderFacts(source=code, base_url=first.fetch, backend="native")


def _listed(home: Path, problems: list[str]) -> Iterator[ListedFile]:
    """Yield what the manifests below the data directory and the recorded folders list, as far as it is there."""
    # Captures are moved to a larger disk by linking `warcs` there; a walk follows no links but the one it begins at.
    moved = [home / "warcs"] if (home / "warcs").is_symlink() else []
    for root in (home, *moved, *recorded_roots(home)):
        for parent, folders, names in os.walk(root, followlinks=False):
            folders.sort()
            if not is_listed(names):
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
