"""Reads the frozen list of an edition: only from below the data directory, and only if it is what was cited."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import file_digest
from itertools import islice
from pathlib import Path
from typing import Any

from holdfast.db.models import Edition
from holdfast.editions.artefacts import placed
from holdfast.editions.refusals import EditionNotReady, FrozenListDamaged

_AT_ONCE = 500


def frozen_list(home: Path, edition: Edition) -> Path:
    """Return where the frozen list of an edition lies; EditionNotReady if it was never frozen or the file is gone."""
    if edition.frozen_path is None:
        raise EditionNotReady("this edition was never frozen; do so with: holdfast edition freeze")
    path = placed(home, edition.frozen_path)
    if path is None:
        raise EditionNotReady(
            f"the frozen list {Path(edition.frozen_path).name} is gone; restore it from a backup, or make it again "
            "with: holdfast edition freeze --again"
        )
    return path


def digest_of(path: Path) -> str:
    """Return the digest of a list as citations name it."""
    with path.open("rb") as file:
        return f"sha256:{file_digest(file, 'sha256').hexdigest()}"


def cited_list(home: Path, edition: Edition) -> Path:
    """Return the frozen list of an edition; FrozenListDamaged if it is not the one that was cited, EditionNotReady."""
    path = frozen_list(home, edition)
    if digest_of(path) != edition.frozen_digest:
        raise FrozenListDamaged(
            f"the frozen list {path.name} is not what was cited as {edition.frozen_digest}; restore it from a backup, "
            "or look what became of it with: holdfast edition verify"
        )
    return path


def entries(path: Path) -> Iterator[list[dict[str, Any] | None]]:
    """Yield the entries of a list, some hundred at a time; None for a line that somebody has damaged."""
    with path.open("rb") as file:
        while batch := list(islice(file, _AT_ONCE)):
            yield [_entry(line) for line in batch]


def _entry(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    number = row.get("snapshot_id") if isinstance(row, dict) else None
    return row if isinstance(number, int) and not isinstance(number, bool) and abs(number) < 1 << 63 else None
