"""Recovers the archive from its files alone: files in manifests without a row are registered under their old id.

Snapshot ids derive from file ids and record positions, so every snapshot gets its old id back. Existing rows
are never changed: a row that contradicts a manifest is reported, and stays.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import field
from itertools import islice
from pathlib import Path

from holdfast.clock import Clock, to_micros
from holdfast.db.engine import Database
from holdfast.db.raw import RawDatabase
from holdfast.errors import HoldfastError, Invalid
from holdfast.jobs.imports import adopt_folder
from holdfast.sources.codes import is_code_of
from holdfast.sources.queries import is_code
from holdfast.storage.roots import plain_key, recorded_roots
from holdfast.storage.store import FileKey, captures_folder
from holdfast.urls import parse_seed
from holdfast.values import dataclass
from holdfast.warc import queries as files
from holdfast.warc.manifest import ManifestDamaged, is_listed, read_manifest
from holdfast.warc.outfile import SealedFile
from holdfast.warc.reader import read_record_at
from holdfast.zimit.output_directory import STATE_NAME

_AT_ONCE = 400
_WITHOUT_SOURCE = "restored"
_INFO_BYTES = 4 << 20


@dataclass(slots=True)
class Rebuild:
    known: int = 0
    lost: dict[int, tuple[FileKey, SealedFile]] = field(default_factory=dict)
    """Files without a row, by their former id; each with the key that its row would have."""
    problems: list[str] = field(default_factory=list)


def plan_rebuild(raw_db: RawDatabase, home: Path) -> Rebuild:
    found = Rebuild()
    listed = _listed(home.resolve(), found.problems)
    while batch := list(islice(listed, _AT_ONCE)):
        with raw_db.read() as tx:
            by_id = files.stored_files(tx, [file_id for file_id, *_ in batch], [key for _, key, _ in batch])
        by_key = {key: file_id for file_id, key in by_id.items()}
        for file_id, key, sealed in batch:
            if by_id.get(file_id) == key:
                found.known += 1
            elif file_id in by_id:
                found.problems.append(f"{key} was file {file_id}, which is {by_id[file_id]} now")
            elif key in by_key:
                found.problems.append(f"{key} was file {file_id} and is file {by_key[key]} now")
            # Two folders can list one id after a partial copy of the archive; the first one keeps it.
            elif file_id in found.lost:
                found.problems.append(f"{key} has the id {file_id} of another file that a manifest lists")
            else:
                found.lost[file_id] = key, sealed
    return found


def restore_files(
    database: Database, raw_db: RawDatabase, clock: Clock, home: Path, lost: Mapping[int, tuple[FileKey, SealedFile]]
) -> int:
    """Register files under their ids, one by one, so that it can be stopped anywhere; return their number."""
    folders: dict[Path, int] = {}
    top = home.resolve()
    for file_id, (key, sealed) in lost.items():
        folder = sealed.path.parent
        if folder not in folders:
            folders[folder] = _execution(database, clock, top, file_id, sealed)
        with raw_db.write() as tx:
            files.restore_file(tx, file_id, key, sealed, execution_id=folders[folder], now=to_micros(clock.now()))
            if raw_db.dialect == "postgresql":
                # Use the same transaction: a crawl that starts now must not get an id that was just restored.
                files.continue_ids(tx)
    return len(lost)


def _execution(database: Database, clock: Clock, home: Path, file_id: int, sealed: SealedFile) -> int:
    """Return the execution of a file's folder: `warcs/SOURCE/EXECUTION`, perhaps with a tool's folder below that."""
    path = sealed.path
    folder = path.parent
    captures = captures_folder(home)
    below = folder.relative_to(captures).parts if folder.is_relative_to(captures) else ()
    owner = captures.joinpath(*below[:2]) if len(below) > 2 else folder
    info = _own_info(path, file_id)
    code = below[0] if len(below) > 1 else info.get("isPartOf", "").rpartition("-")[0]
    # Folder names are untrusted; one that is not a source code gets a new source.
    code = code if is_code(code) else _WITHOUT_SOURCE
    name, base_url = _site_of(code, info)
    backend = "zimit" if (owner / STATE_NAME).is_file() else "native" if info else None
    return adopt_folder(database, clock, owner, source=code, name=name, base_url=base_url, backend=backend)


def _own_info(path: Path, file_id: int) -> dict[str, str]:
    """Return the warcinfo fields of a file that our crawler wrote in this archive; empty for other writers."""
    try:
        head, block = read_record_at(path, 0, limit=_INFO_BYTES)
    except HoldfastError:  # the indexer reports the problem
        return {}
    # A copy of another archive's file has that archive's warcinfo: name and id must match this file.
    if head.type != "warcinfo" or head.get("WARC-Filename") != path.name:
        return {}
    lines = block.decode("utf-8", "replace").splitlines()
    fields = {name: value.strip() for name, colon, value in (line.partition(":") for line in lines) if colon}
    return fields if fields.get("holdfast-file-id") == str(file_id) else {}


def _site_of(code: str, info: Mapping[str, str]) -> tuple[str | None, str | None]:
    """Return the name and URL of the source that a file states; that of an ad-hoc crawl is named after its host."""
    try:
        plan = json.loads(info.get("description", ""))
        first = parse_seed(plan["seeds"][0])
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, Invalid):
        return None, None
    return (first.host, f"{first.origin}/") if is_code_of(code, first.host) else (None, first.fetch)


def _listed(home: Path, problems: list[str]) -> Iterator[tuple[int, FileKey, SealedFile]]:
    # Operators move captures to a larger disk by linking `warcs` there; a walk follows no link except its start.
    captures = captures_folder(home)
    moved = [captures] if captures.is_symlink() else []
    for root in (home, *moved, *recorded_roots(home)):
        for parent, folders, names in os.walk(root, followlinks=False):
            folders.sort()
            if not is_listed(names):
                continue
            folder = Path(parent)
            try:
                listed = read_manifest(folder)
            except ManifestDamaged as bad:
                problems += [str(bad)] if bad.is_ours else []
                continue
            except HoldfastError as bad:
                problems.append(str(bad))
                continue
            for file_id, sealed in listed.items():
                path = sealed.path
                # A missing file, or one of another size, would get the ids of records that it no longer contains.
                if not path.is_file() or path.stat().st_size != sealed.size:
                    problems.append(f"{path} is not there as its manifest says; see: holdfast verify {folder}")
                    continue
                yield file_id, plain_key(home, path), sealed
