"""What readers may have of an edition: the report without its shards' inner life, the tables, the frozen list.

Files were written at one moment; what was withdrawn since is taken out of every line as it is read, at once and for
everybody. Rows stay, so the counts still add up. No path of a server is ever told (HA-086).
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple

from sqlalchemy.orm import Session

from holdfast.db.models import Edition, Source
from holdfast.editions import artefacts, queries
from holdfast.editions.artefacts import csv_line, edition_folder
from holdfast.editions.comparison import comparison_stem
from holdfast.editions.queries import Hidden
from holdfast.editions.refusals import ArtefactNotFound
from holdfast.index.keys import identify

WITHDRAWN: Final = "(withdrawn)"
_ADDRESSES: Final = ("url", "via", "redirected_to", "from_url")
_SNAPSHOTS: Final = ("snapshot_id", "from_snapshot_id", "to_snapshot_id")
_CHUNK = 1 << 16
_SEEDS_SHOWN = 100


class Form(StrEnum):
    """What kind of file it is, by its media type."""

    JSON = "application/json"
    CSV = "text/csv; charset=utf-8"
    LINES = "application/x-ndjson"


class Opened(NamedTuple):
    """A file that may be read by anybody."""

    name: str
    form: Form
    chunks: Iterator[bytes]


def open_public(session: Session, home: Path, edition: Edition, source: Source, name: str) -> Opened:
    """Return a file of an edition as the public may read it; ArtefactNotFound.

    Names: coverage-report.json, coverage.csv, frozen.jsonl, comparison-<year>.json, comparison-<year>.csv. The session
    is used before this returns; the chunks are read later, without it.
    """
    folder, hidden = edition_folder(home, source.code, edition.year), queries.hidden(session)
    label = f"{source.code}-{edition.year}"
    compared = re.fullmatch(r"comparison-([0-9]{4})\.(json|csv)", name)
    if name == artefacts.REPORT_JSON:
        return Opened(f"{label}-{name}", Form.JSON, iter([_report(_read(folder / name, name), hidden)]))
    if compared and compared[2] == "json":
        path = folder / f"{comparison_stem(int(compared[1]))}.json"
        return Opened(f"{label}-{name}", Form.JSON, iter([_comparison(_read(path, name), hidden)]))
    if name == artefacts.CSV or compared:
        return Opened(f"{label}-{name}", Form.CSV, _table(_there(folder / name, name), hidden))
    if name == artefacts.FROZEN and edition.frozen_path is not None:
        path = home.resolve() / edition.frozen_path
        return Opened(f"{label}-{name}", Form.LINES, _lines(_there(path, name), hidden))
    raise ArtefactNotFound(f"there is no {name[:60]!r} of {source.code} {edition.year} for the public")


def _there(path: Path, name: str) -> Path:
    if not path.is_file():
        raise ArtefactNotFound(f"{name} has not been written yet")
    return path


def _read(path: Path, name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(_there(path, name).read_bytes())
    return content


def public_summary(session: Session, edition: Edition) -> dict[str, Any]:
    """Return an edition's summary as anybody may read it: seeds that were withdrawn are not named."""
    told = edition.coverage_summary
    seeds, missing = told.get("seeds", [])[:_SEEDS_SHOWN], told.get("missing_seeds", [])
    gone = queries.hidden_among(session, {identify(url).url_hash for url in [*seeds, *(one["url"] for one in missing)]})
    shown = {key: value for key, value in told.items() if key not in ("seeds", "gaps", "missing_seeds", "artifacts")}
    if seeds:
        shown["seeds"] = [_shown(url, gone) for url in seeds]
    if "missing_seeds" in told:
        shown["missing_seeds"] = [_seed(seed, gone) for seed in missing]
    if "artifacts" in told:
        shown["artifacts"] = {name: value for name, value in told["artifacts"].items() if name == artefacts.CSV}
    if edition.frozen_at is not None:
        shown["frozen"] = {
            "at": edition.frozen_at.isoformat(), "digest": edition.frozen_digest, "captures": edition.frozen_count,
        }  # fmt: skip
    return shown


def _shown(url: str, gone: Hidden) -> str:
    return WITHDRAWN if _is_hidden(url, gone) else url


def _seed(seed: dict[str, Any], gone: Hidden) -> dict[str, Any]:
    return {**{key: value for key, value in seed.items() if key != "shard_key"}, "url": _shown(seed["url"], gone)}


def _report(content: dict[str, Any], gone: Hidden) -> bytes:
    """Return the report without what only concerns whoever runs the crawls."""
    shown = {key: value for key, value in content.items() if key != "shards"}
    shown["seeds"] = [{**seed, "url": _shown(seed["url"], gone)} for seed in content["seeds"]]
    shown["missing_seeds"] = [_seed(seed, gone) for seed in content["missing_seeds"]]
    files = {name: value for name, value in content["artifacts"].items() if name == artefacts.CSV}
    return json.dumps({**shown, "artifacts": files}, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def _comparison(content: dict[str, Any], hidden: Hidden) -> bytes:
    examples = {
        kind: [url for url in urls if not _is_hidden(url, hidden)] for kind, urls in content["examples"].items()
    }
    files = {name: value for name, value in content["artifacts"].items() if name.endswith(".csv")}
    shown = {**content, "examples": examples, "artifacts": files}
    return json.dumps(shown, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def _table(path: Path, hidden: Hidden) -> Iterator[bytes]:
    """Yield a table; as it lies if nothing is withdrawn, else line by line."""
    if not hidden.snapshots and not hidden.pages:
        with path.open("rb") as file:
            yield from iter(lambda: file.read(_CHUNK), b"")
        return
    with path.open(encoding="utf-8", newline="") as text:
        rows = csv.reader(text)
        head = next(rows)
        addresses = [at for at, name in enumerate(head) if name in _ADDRESSES]
        numbers = [at for at, name in enumerate(head) if name in _SNAPSHOTS]
        own = [at for at, name in enumerate(head) if name in ("url", "from_url")]
        yield csv_line(head)
        for row in rows:
            for at in addresses:
                if row[at] and _is_hidden(row[at], hidden):
                    row[at] = WITHDRAWN
            is_gone = any(row[at] == WITHDRAWN for at in own)
            for at in numbers:
                if is_gone or (row[at].isdecimal() and int(row[at]) in hidden.snapshots):
                    row[at] = ""
            yield _again(row)


def _again(row: list[str]) -> bytes:
    """Return a row that was read from a table of ours: its cells are safe already."""
    return csv_line(cell.removeprefix("'") if cell[:1] == "'" else cell for cell in row)


def _lines(path: Path, hidden: Hidden) -> Iterator[bytes]:
    """Yield the frozen list; what was withdrawn since is named by its number alone."""
    with path.open("rb") as file:
        if not hidden.snapshots and not hidden.pages:
            yield from iter(lambda: file.read(_CHUNK), b"")
            return
        for line in file:
            row = json.loads(line)
            if row["snapshot_id"] in hidden.snapshots or _is_hidden(row.get("url") or "", hidden):
                line = json.dumps({"snapshot_id": row["snapshot_id"], "withdrawn": True}).encode() + b"\n"
            yield line


def _is_hidden(url: str, hidden: Hidden) -> bool:
    return bool(hidden.pages) and bool(url) and identify(url).url_hash in hidden.pages
