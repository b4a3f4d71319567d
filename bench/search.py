"""`python -m bench.search`: result pages measured on a generated archive, EN and FR with Zipf vocabularies.

Rows are written straight into the tables and the index is built by `rebuild`, as an operator would. Times are a whole
`Search.ask`: match, filters, totals, facets, histogram, 20 hits checked in SQL, highlights. Every query is another one.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import zstandard

from holdfast import config
from holdfast.clock import SystemClock, to_micros
from holdfast.db import connect
from holdfast.db.engine import Database
from holdfast.db.raw import Transaction
from holdfast.db.schema import make_fresh
from holdfast.processes.runfile import step_back
from holdfast.search.analysis import languages_of
from holdfast.search.outbox import drain, rebuild
from holdfast.search.query_terms import QueryTerms, TextWeights
from holdfast.search.readers import ReaderCache
from holdfast.search.search import ResultKind, SearchRequest, SearchService
from holdfast.urls import hash64, surt

CAPTURES = 5
SOURCES = 12
HOSTS = 40
WORDS = 450
VOCABULARY = 60_000
FIRST = datetime(2018, 1, 1, tzinfo=UTC)
DAYS = 365 * 7
_SYLLABLES = {
    "en": "ba con der est fer gra hol ing ject ker lan men ness or ple qui res sta ter un ver wil yon ting ment",
    "fr": "ai beau cha don eur fra gue hui ion jour lé mè nou oir pré que ré sé té ui ven yeux ment tion eau",
}


@functools.cache
def vocabulary(language: str) -> list[str]:
    """Return made-up words of a language, the most frequent first, shorter ones in front."""
    rng = np.random.default_rng(len(language) + ord(language[0]))
    parts = _SYLLABLES[language].split(" ")
    words: dict[str, None] = {}
    while len(words) < VOCABULARY:
        count = 1 + int(rng.integers(1, 4)) + (len(words) > 500)
        words["".join(parts[i] for i in rng.integers(0, len(parts), count))] = None
    return list(words)


def texts(documents: int) -> Iterator[tuple[str, str, list[str]]]:
    """Yield language and words of each document; a word's share follows Zipf's law."""
    rng = np.random.default_rng(7)
    weights = 1 / np.arange(1, VOCABULARY + 1) ** 1.05
    cumulative = np.cumsum(weights / weights.sum())
    known = {language: np.array(vocabulary(language), object) for language in ("en", "fr")}
    for start in range(0, documents, 2_000):
        lengths = rng.gamma(3.0, WORDS / 3.0, min(2_000, documents - start)).astype(int) + 30
        draws = np.searchsorted(cumulative, rng.random(int(lengths.sum())))
        at = 0
        for number, length in enumerate(lengths.tolist(), start):
            language = "en" if number % 5 < 3 else "fr"
            words: list[str] = known[language][draws[at : at + length] % VOCABULARY].tolist()
            at += length
            yield language, f"{language}{number}", words


def _runtime(tx: Transaction) -> None:
    now = to_micros(FIRST)
    for n in range(1, SOURCES + 1):
        tx.execute("INSERT INTO sources(id,code,name,enabled,config,created_at,updated_at)"
                   " VALUES (?,?,?,true,'{}',?,?)", (n, f"s{n}", f"Source {n}", now, now))  # fmt: skip
        tx.execute("INSERT INTO jobs(id,source_id,kind,fingerprint,config,created_at) VALUES (?,?,'adhoc',?,'{}',?)",
                   (n, n, str(n), now))  # fmt: skip
        tx.execute("INSERT INTO executions(id,job_id,number,state,config,output_dir,created_at,run_seconds)"
                   " VALUES (?,?,1,'completed','{}','x',?,0)", (n, n, now))  # fmt: skip
        tx.execute("INSERT INTO warc_files(id,execution_id,key,state,created_at) VALUES (?,?,?,'sealed',?)",
                   (n, n, f"{n}.warc.gz", now))  # fmt: skip


DOCUMENT = ("id", "body_hash", "charset", "media_type", "body_bytes", "title", "snippet", "language", "details",
             "text_chars", "version", "created_at")  # fmt: skip
GROUP = ("id", "source_id", "url", "url_hash", "first_captured_at", "last_captured_at", "snapshot_count", "latest_id")
SNAPSHOT = ("id", "warc_file_id", "execution_id", "source_id", "warc_offset", "warc_length", "record_type", "url",
             "url_key", "url_hash", "group_id", "captured_at", "status", "media_type", "document_id",
             "is_page")  # fmt: skip


_TABLES = {
    "documents": DOCUMENT, "document_texts": ("document_id", "text"), "page_groups": GROUP, "snapshots": SNAPSHOT,
}  # fmt: skip


def generate(home: Path, snapshots: int) -> None:
    """Fill a fresh database with this many captures, five of each document."""
    home.mkdir(parents=True)
    address = f"sqlite:///{home / 'holdfast.db'}"
    make_fresh(address)
    rng = np.random.default_rng(11)
    squeeze = zstandard.ZstdCompressor(level=1)
    now = to_micros(FIRST)
    ordinals = [0] * (SOURCES + 1)
    with closing(connect(address)) as raw_db:
        with raw_db.write() as tx:
            _runtime(tx)
        batch: dict[str, list[tuple[Any, ...]]] = {
            "documents": [],
            "document_texts": [],
            "page_groups": [],
            "snapshots": [],
        }
        for number, (language, name, words) in enumerate(texts(snapshots // CAPTURES), 1):
            text = " ".join(words)
            source = 1 + number % SOURCES
            url = f"https://www{number % HOSTS}.example.org/{language}/{words[0]}/{name}.html"
            digest = sha256(name.encode()).digest()
            batch["documents"].append((number, digest, "utf-8", "text/html", len(text), " ".join(words[:6]).title(),
                                       text[:280], language, "{}", len(text), 1, now))  # fmt: skip
            batch["document_texts"].append((number, squeeze.compress(text.encode())))
            moments = np.sort(rng.integers(0, DAYS * 86_400, CAPTURES)).tolist()
            first = source * 2**22 + ordinals[source] + 1
            batch["page_groups"].append((number, source, url, hash64(url), now, now, CAPTURES, first + CAPTURES - 1))
            for moment in moments:
                ordinals[source] += 1
                status = 200 if rng.random() < 0.97 else 404
                batch["snapshots"].append(
                    (source * 2**22 + ordinals[source], source, source, source, 0, 1, "response", url, surt(url),
                     hash64(url), number, now + moment * 1_000_000, status, "text/html", number, True)
                )  # fmt: skip
            if number % 2_000 == 0 or number == snapshots // CAPTURES:
                with raw_db.write() as tx:
                    for table, columns in _TABLES.items():
                        tx.load(table, columns, batch[table])
                        batch[table] = []


class Times(NamedTuple):
    """Milliseconds of each request: on the wall, and of our own CPU, which a busy machine changes less."""

    wall: list[float]
    cpu: list[float]

    def told(self) -> dict[str, float]:
        """Return the figures."""
        return {
            "p50": round(float(np.quantile(self.wall, 0.5)), 1), "p95": round(float(np.quantile(self.wall, 0.95)), 1),
            "cpu_p50": round(float(np.quantile(self.cpu, 0.5)), 1), "n": len(self.wall),
            "cpu_p95": round(float(np.quantile(self.cpu, 0.95)), 1),
        }  # fmt: skip


def _timed(search: SearchService, requests: Sequence[SearchRequest]) -> Times:
    times = Times([], [])
    for request in requests:
        started, cpu = time.perf_counter(), time.thread_time()
        search.ask(request)
        times.wall.append((time.perf_counter() - started) * 1_000)
        times.cpu.append((time.thread_time() - cpu) * 1_000)
    return times


def _common_words(home: Path, documents: int) -> list[str]:
    """Return words that are found, with all their forms, in 5 to 25% of all documents."""
    view = ReaderCache(home, SystemClock()).view()
    reader, languages = view.reader, languages_of(view.columns.languages)
    assert reader is not None
    frequent = sorted(
        word for word, count in reader.vocabulary("", limit=1_000_000) if len(word) >= 3 and count > 0.01 * documents
    )
    found = {
        word: reader.words(QueryTerms(words=(word,)), languages, TextWeights(), limit=1).count for word in frequent
    }
    return [word for word, count in found.items() if 0.05 <= count / documents <= 0.25]


def requests_of(home: Path, documents: int, count: int) -> dict[str, list[SearchRequest]]:
    """Return the requests of each figure; no query is asked twice within one."""
    rng = np.random.default_rng(3)
    words = _common_words(home, documents)
    known = set(vocabulary("en"))
    english = [word for word in words if word in known]
    pairs = [f"{a} {b}" for at, a in enumerate(english) for b in english[at + 1 :]]
    shuffled = [pairs[i] for i in rng.permutation(len(pairs))]
    two, more = shuffled[:count], shuffled[count : 7 * count]
    one = [words[i] for i in rng.permutation(len(words))[:count]]

    def filtered(queries: Sequence[str]) -> list[SearchRequest]:
        days = [(date(2019 + n % 4, 1, 1), date(2021 + n % 4, 6, 30)) for n in range(len(queries))]
        return [
            SearchRequest(q=q, source=f"s{1 + n % SOURCES}", start=days[n][0], end=days[n][1])
            for n, q in enumerate(queries)
        ]

    with closing(connect(f"sqlite:///{home / 'holdfast.db'}")) as raw_db, raw_db.read() as tx:
        some = rng.integers(1, documents, count).tolist()
        urls = [tx.execute("SELECT url FROM page_groups WHERE id = ?", (n,))[0][0] for n in some]
    return {
        "two words": [SearchRequest(q=q) for q in two],
        "one word": [SearchRequest(q=q) for q in one],
        "one word, pages": [SearchRequest(q=q, view=ResultKind.PAGES) for q in one],
        "filtered": filtered(two),
        "one word, filtered": filtered(one),
        "url": [SearchRequest(q=url) for url in urls],
        "boolean": [SearchRequest(q=f"{q.split()[0]} AND NOT title:{q.split()[1]}") for q in two],
        "browse": [SearchRequest(start=date(2010, 1, 1 + n)) for n in range(20)],
        "more": [SearchRequest(q=q) for q in more],
    }


def measure(home: Path, snapshots: int, count: int) -> dict[str, Any]:
    """Return p50 and p95 in milliseconds for each kind of request, and what following an index run does to them."""
    database = Database(f"sqlite:///{home / 'holdfast.db'}")
    search = SearchService(database, home, SystemClock())
    started = time.perf_counter()
    search.ask(SearchRequest(q="warm"))
    opened = time.perf_counter() - started
    found: dict[str, Any] = {"snapshots": snapshots, "open_s": round(opened, 2)}
    asked = requests_of(home, snapshots // CAPTURES, count)
    more = asked.pop("more")
    for name, requests in asked.items():
        # Results are kept for paging, so what warms up is never what is measured.
        _timed(search, [replace(request, duplicates=True) for request in requests[:5]])
        found[name] = _timed(search, requests).told() | {"hits": search.ask(requests[0]).total}
    found["memory_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    found["while indexing"] = _while_indexing(home, search, more)
    database.close()
    return found


def _while_indexing(home: Path, search: SearchService, requests: Sequence[SearchRequest]) -> dict[str, Any]:
    """Return figures beside another process that indexes new captures all the time, and without.

    An error if that process did not write all the while: then nothing was measured.
    """
    half = len(requests) // 3
    rest = _timed(search, requests[:half]).told()
    before = _captures(home)
    child = subprocess.Popen([sys.executable, "-m", "bench.search", "--folder", str(home), "--feed"])
    try:
        while (begun := _captures(home)) == before:
            if child.poll() is not None:
                raise SystemExit("the index run beside the search did not start")
            time.sleep(0.1)
        busy = _timed(search, requests[half:]).told()
        if child.poll() is not None or (grown := _captures(home) - begun) <= 0:
            raise SystemExit("the index run beside the search ended or stood still")
        cores = {"search": sorted(os.sched_getaffinity(0)), "index": sorted(os.sched_getaffinity(child.pid))}
    finally:
        child.terminate()
        child.wait()
    return {"rest": rest, "busy": busy, "captures_meanwhile": grown, "cores": cores}


def _captures(home: Path) -> int:
    """Return the newest capture's number: the feeder counts on from it."""
    with closing(connect(f"sqlite:///{home / 'holdfast.db'}")) as raw_db, raw_db.read() as tx:
        return int(tx.execute("SELECT max(id) FROM snapshots")[0][0])


def feed(home: Path) -> None:
    """Write new captures and drain them, until stopped: what an index run does to its readers.

    It may run on every core: only who measures is pinned to one. It steps back as `holdfast index` does.
    """
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    step_back(config.load().index.nice)
    address = f"sqlite:///{home / 'holdfast.db'}"
    database, clock = Database(address), SystemClock()
    with closing(connect(address)) as raw_db:
        with raw_db.read() as tx:
            number = tx.execute("SELECT max(id) FROM documents")[0][0]
            last = tx.execute("SELECT max(id) FROM snapshots")[0][0]
        squeeze = zstandard.ZstdCompressor(level=1)
        for language, name, words in texts(1_000_000):
            number, last = number + 1, last + 1
            text, url = " ".join(words), f"https://www1.example.org/new/{name}{number}.html"
            now = to_micros(clock.now())
            digest = sha256(f"{number}{now}".encode()).digest()
            document = (number, digest, "utf-8", "text/html", len(text), " ".join(words[:6]), text[:280], language,
                        "{}", len(text), 1, now)  # fmt: skip
            snapshot = (last, 1, 1, 1, 0, 1, "response", url, surt(url), hash64(url), number, now, 200, "text/html",
                        number, True)  # fmt: skip
            with raw_db.write() as tx:
                tx.load("documents", DOCUMENT, [document])
                tx.load("document_texts", ("document_id", "text"), [(number, squeeze.compress(text.encode()))])
                tx.load("page_groups", GROUP, [(number, 1, url, hash64(url), now, now, 1, last)])
                tx.load("snapshots", SNAPSHOT, [snapshot])
                tx.load("search_outbox", ("kind", "first_id", "last_id", "refs", "created_at"),
                        [("snapshots", last, last, "{}", now)])  # fmt: skip
            if number % 100 == 0:
                drain(database, home, clock)


Figure = tuple[str, str, str, bool]
"""Name, figure, what was wanted, whether it was kept: the fields of the bench's Row."""

_WANTED: dict[str, float] = {"two words": 40, "one word": 120, "filtered": 40, "one word, filtered": 40, "url": 10}


def figures(folder: Path, snapshots: int = 1_000_000, count: int = 60) -> list[Figure]:
    """Generate what is missing, measure, and return the promises of the issue with their figures."""
    rows: list[Figure] = []
    found = {}
    for size in sorted({snapshots // 100, snapshots // 10, snapshots}):
        prepared(folder, size)
        # In a process of its own, as a server is: one that has served three archives before is slower by a fifth.
        command = [sys.executable, "-m", "bench.search", "--one", "--folder", str(folder), "--snapshots", str(size)]
        told = subprocess.run([*command, "--queries", str(count)], check=True, stdout=subprocess.PIPE, text=True).stdout
        found[size] = json.loads(told)
        print(json.dumps(found[size]), file=sys.stderr)
    full = found[snapshots]
    for name, limit in _WANTED.items():
        p95, cpu = full[name]["p95"], full[name]["cpu_p95"]
        told = f"{p95:.1f} ms ({cpu:.1f} CPU)"
        rows.append((f"search, {name}, p95 at {snapshots:,}", told, f"< {limit:g} ms", p95 < limit))
    for name in ("two words", "one word"):
        grown = " -> ".join(f"{found[size][name]['p95']:.1f}" for size in sorted(found))
        rows.append((f"search, {name}, p95 as the archive grows tenfold twice", grown, "shown", True))
    beside = full["while indexing"]
    ratio = beside["busy"]["p95"] / beside["rest"]["p95"]
    name = (
        f"search on cores {beside['cores']['search']}, p95 beside an index run on {beside['cores']['index']} / at rest"
    )
    rows.append((name, f"{ratio:.2f}x ({beside['captures_meanwhile']:,} captures)", "<= 2x", ratio <= 2))
    return rows


def prepared(folder: Path, snapshots: int) -> Path:
    """Return a home with this many captures and its index, made if it is not there."""
    home = folder / f"search-{snapshots}"
    if not (home / "ready").exists():
        subprocess.run(["rm", "-rf", str(home)], check=True)
        started, cpu = time.perf_counter(), time.process_time()
        generate(home, snapshots)
        made, made_cpu = time.perf_counter() - started, time.process_time() - cpu
        database = Database(f"sqlite:///{home / 'holdfast.db'}")
        started, cpu = time.perf_counter(), time.process_time()
        rebuild(database, home, SystemClock())
        built = time.perf_counter() - started
        print(f"  generated {snapshots:,} in {made:.0f} s ({made_cpu:.0f} CPU), index in {built:.0f} s"
              f" ({time.process_time() - cpu:.0f} CPU)", file=sys.stderr)  # fmt: skip
        database.close()
        (home / "ready").touch()
    return home


def main() -> None:
    """Measure what was asked for and print one line a figure."""
    parser = argparse.ArgumentParser(prog="python -m bench.search", description=__doc__)
    parser.add_argument("--snapshots", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=60)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--one", action="store_true", help="measure this size only, and print what was found")
    parser.add_argument("--feed", action="store_true", help="write into this home until stopped")
    options = parser.parse_args()
    if options.feed:
        feed(options.folder)
    elif options.one:
        home = prepared(options.folder, options.snapshots)
        print(json.dumps(measure(home, options.snapshots, options.queries)))
    else:
        for row in figures(options.folder, options.snapshots, options.queries):
            print(*row, sep=" | ")


if __name__ == "__main__":
    main()
