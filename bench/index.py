"""The index beside a plain one (warcio, BeautifulSoup, a row at a time), on pages of 40 KB with 8 KB of text.

Run as `python -m bench.index [--pages N]`; everything in one run, CPU seconds of the processes themselves.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from holdfast import config, log
from holdfast.clock import SystemClock, to_micros
from holdfast.db import connect
from holdfast.db.engine import Database
from holdfast.db.raw import RawDatabase
from holdfast.fetch.body import MemoryBody
from holdfast.index.indexer import Indexer
from holdfast.search.outbox import drain
from holdfast.storage.store import FileKey
from holdfast.types import Fetched
from holdfast.warc import queries as files
from holdfast.warc.record import sha256_of
from holdfast.warc.writer import ExchangeDraft, WarcWriter
from holdfast.wiring import prepare

_PEERS = Path(__file__).resolve().parent.parent / ".venv-peers" / "bin" / "python"
_PLAIN = Path(__file__).with_name("plain_indexer.py")
_REQUEST = b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"
_BEGIN = datetime(2024, 1, 1, tzinfo=UTC)
_TEXT_BYTES, _PAGE_BYTES = 8_000, 40_000


class Figures(NamedTuple):
    """CPU milliseconds a page of each, and the rate of ours on one core."""

    ours_ms: float
    plain_ms: float | None
    again_ms: float
    """The same site captured again, unchanged."""
    reread_ms: float
    """The same file read again."""
    pages_s: float
    search_ms: float
    """What it costs search to take the first crawl in."""

    def rows(self) -> list[tuple[str, str, str, bool]]:
        """Return the promises of the index, as the fields of the bench's Row."""
        again, whole = self.ours_ms / self.again_ms, 1000 / (self.ours_ms + self.search_ms)
        told = f"{whole:.0f} pages/s"
        rows = [
            ("index and full text, a core (40 KB pages, 8 KB of text)", told, ">= 200", whole >= 200),
            ("index, an unchanged crawl / the first", f"{again:.1f}x faster", ">= 5x", again >= 5),
        ]
        if self.plain_ms is not None:
            ratio = self.plain_ms / self.ours_ms
            rows.append((f"index, plain / ours ({self.ours_ms:.2f} ms)", f"{ratio:.1f}x", ">= 3x", ratio >= 3))
        return rows


def pages(count: int, seed: int = 5) -> Iterator[bytes]:
    """Yield generated pages: prose of a Zipf vocabulary in a frame of navigation, markup and script."""
    chance = random.Random(seed)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(2, 11))) for _ in range(20_000)]
    weights = list(accumulate(1 / (rank + 2) for rank in range(len(words))))
    frame = "".join(f'<li class="menu item-{n}"><a href="/section/{n}">Section {n}</a></li>' for n in range(60))
    for number in range(count):
        parts, size = [], 0
        while size < _TEXT_BYTES:
            sentence = " ".join(chance.choices(words, cum_weights=weights, k=chance.randint(8, 30))).capitalize() + "."
            link = f' <a href="/page/{chance.randrange(count)}">{words[chance.randrange(500)]}</a>'
            parts.append(f"<p>{sentence}{link}</p>")
            size += len(sentence)
            if chance.random() < 0.08:
                parts.append(f"<h2>{sentence[:40]}</h2>")
        page = (
            f'<!doctype html><html lang="en"><head><title>Page {number}</title><meta name="description" content="About '
            f'{number}"><link rel="canonical" href="/page/{number}"></head><body><nav><ul>{frame}</ul></nav><main>'
            f"<h1>Page {number}</h1>{''.join(parts)}</main>"
        )
        rest = max(0, _PAGE_BYTES - len(page) - 40)
        widget = (
            '<div class="widget col-md-4" data-id="12345"><span class="icon"></span><img src="/i.png" alt=""></div>'
        )
        filler = f"<aside>{widget * (rest // 2 // len(widget))}</aside><script>{'var a=1;' * (rest // 2 // 8)}</script>"
        yield f"{page}{filler}</body></html>".encode()


def measure(folder: Path, count: int) -> Figures:
    """Write a crawl and the same again a week later, index both and the first once more, then let the peer do it."""
    settings = config.load(home=folder / "home")
    prepare(settings)
    with closing(connect(settings.database)) as raw_db:
        bodies = list(pages(count))
        first = _write(raw_db, settings.home, bodies, _BEGIN)
        second = _write(raw_db, settings.home, bodies, _BEGIN + timedelta(days=7))
        with closing(Indexer(raw_db, SystemClock(), settings.home)) as indexer:
            _warm(raw_db, settings.home, indexer)
            ours, ours_s = _timed(indexer, first)
            search = _taken_in(settings)
            again, _ = _timed(indexer, second)
            reread, _ = _timed(indexer, first)
        with raw_db.read() as tx:
            key = files.key_of_file(tx, first)
    plain = _plain(settings.home / (key.key if key is not None else ""), folder) if _PEERS.exists() else None
    scale = 1000 / count
    return Figures(
        ours * scale, plain, again * scale, reread * scale, count / ours_s, search * scale
    )  # fmt: skip


def _warm(raw_db: RawDatabase, home: Path, indexer: Indexer) -> None:
    """Load the language model and the tables of encodings: that is paid once, not by a page."""
    indexer.index_file(_write(raw_db, home, [b"<p>" + b"Some words to be read before. " * 50 + b"</p>"], _BEGIN))


def _taken_in(settings: config.Settings) -> float:
    """Return the CPU seconds, all threads, that search needs to take in what was indexed."""
    with closing(Database(settings.database)) as database:
        before = time.process_time()
        drain(database, settings.home, SystemClock())
        return time.process_time() - before


def _timed(indexer: Indexer, file_id: int) -> tuple[float, float]:
    cpu, wall = time.process_time(), time.perf_counter()
    done = indexer.index_file(file_id)
    assert done is not None
    assert done.error is None
    return time.process_time() - cpu, time.perf_counter() - wall


def _plain(path: Path, folder: Path) -> float:
    done = subprocess.run(
        [_PEERS, _PLAIN, path, folder / "plain.db"], capture_output=True, text=True, check=True
    )  # fmt: skip
    figures = json.loads(done.stdout)
    return float(figures["cpu_s"]) / int(figures["pages"]) * 1000


def _write(raw_db: RawDatabase, home: Path, bodies: Sequence[bytes], moment: datetime) -> int:
    clock = SystemClock()
    now = to_micros(clock.now())
    with raw_db.write() as tx:
        tx.execute(
            "INSERT INTO sources(id, code, name, enabled, config, created_at, updated_at)"
            " VALUES (1, 'bench', 'bench', ?, '{}', 0, 0) ON CONFLICT DO NOTHING",
            (True,),
        )
        tx.execute(
            "INSERT INTO jobs(id, source_id, kind, fingerprint, config, created_at) VALUES (1, 1, 'adhoc', '', '{}', 0)"
            " ON CONFLICT DO NOTHING"
        )
        tx.execute(
            "INSERT INTO executions(id, job_id, number, state, config, output_dir, created_at, run_seconds)"
            " VALUES (1, 1, 1, 'completed', '{}', '', 0, 0.0) ON CONFLICT DO NOTHING"
        )
        file_id = files.insert_file(tx, execution_id=1, owner_id=0, key=FileKey(f"bench-{now}"), now=now)
        tx.execute("UPDATE warc_files SET key = ? WHERE id = ?", (f"warcs/bench-{file_id}.warc.gz", file_id))
    (home / "warcs").mkdir(exist_ok=True)
    writer = WarcWriter.create(home.resolve() / "warcs", f"bench-{file_id}", file_id, {"software": "bench"}, clock)
    for number, body in enumerate(bodies):
        writer.append_exchange(
            ExchangeDraft(
                fetched=Fetched(
                    url=f"https://example.org/page/{number}", status=200, started_at=moment + timedelta(seconds=number),
                    took_s=0.0, ip="192.0.2.1", request_head=_REQUEST, response_head=_HEAD, body=MemoryBody([body]),
                ),
                payload_digest=sha256_of((body,)),
            )
        )  # fmt: skip
    sealed = writer.seal()
    with raw_db.write() as tx:
        files.seal_file(tx, file_id, sealed, now=now)
    return file_id


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.index", description=__doc__)
    parser.add_argument("--pages", type=int, default=3000)
    options = parser.parse_args()
    log.configure("WARNING")
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(Path(folder), options.pages)
    print(f"ours {figures.ours_ms:.2f} ms CPU a page, {figures.pages_s:.0f} pages/s of wall time on one core")
    print(f"search takes it in for {figures.search_ms:.2f} ms more")
    if figures.plain_ms is None:
        print("no baseline: needs `make peers`", file=sys.stderr)
    else:
        print(
            f"plain {figures.plain_ms:.2f} ms: ours does {figures.plain_ms / figures.ours_ms:.1f}x the pages a second"
        )
    print(f"captured again {figures.again_ms:.2f} ms: {figures.ours_ms / figures.again_ms:.1f}x faster")
    print(f"read again {figures.reread_ms:.2f} ms: {figures.ours_ms / figures.reread_ms:.1f}x faster")


if __name__ == "__main__":
    main()
