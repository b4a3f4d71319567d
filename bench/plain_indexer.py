"""The baseline of `bench.index`: warcio, BeautifulSoup, and SQLite one row at a time, in the peers' environment.

It does the same extraction as ours in the plainest way: text, title, headings, snippet, description, language by small
words, canonical, links, hashes; less fingerprint and compression, which would only make it slower.
Run as `python plain_indexer.py FILE DATABASE`; prints pages and CPU seconds as JSON.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import sys
import time
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from bs4 import BeautifulSoup  # type: ignore[import-not-found,unused-ignore]
from warcio.archiveiterator import ArchiveIterator

_FRENCH = {"le", "la", "les", "des", "et", "une", "pour", "dans", "que", "qui"}
_SCHEMA = """
CREATE TABLE snapshots (id INTEGER PRIMARY KEY, url TEXT, captured_at TEXT, mime TEXT, status INTEGER, title TEXT,
 description TEXT, snippet TEXT, language TEXT, canonical TEXT, headings TEXT, text TEXT, hash TEXT, record_id TEXT,
 offset INTEGER);
CREATE INDEX ix_url ON snapshots (url, captured_at);
CREATE TABLE links (snapshot_id INTEGER, to_url TEXT);
CREATE INDEX ix_links ON links (to_url);
"""


def main() -> None:
    """Index one file and print what it took."""
    connection = sqlite3.connect(sys.argv[2])
    connection.executescript(_SCHEMA)
    pages, started = 0, time.process_time()
    with Path(sys.argv[1]).open("rb") as stream:
        archive = ArchiveIterator(stream)
        for record in archive:
            if record.rec_type != "response" or "html" not in (record.http_headers.get_header("Content-Type") or ""):
                continue
            _index(connection, record, archive)
            pages += 1
            if pages % 500 == 0:
                connection.commit()
    connection.commit()
    print(json.dumps({"pages": pages, "cpu_s": time.process_time() - started}))


def _index(connection: sqlite3.Connection, record, archive) -> None:  # type: ignore[no-untyped-def]
    url = record.rec_headers.get_header("WARC-Target-URI")
    body = record.content_stream().read()
    soup = BeautifulSoup(body.decode("utf-8", "replace"), "html.parser")
    title = soup.title.get_text().strip() if soup.title else None
    description = soup.find("meta", attrs={"name": "description"})
    canonical = soup.find("link", rel="canonical")
    for tag in soup(["script", "style", "noscript", "nav", "header", "footer", "aside", "form"]):
        tag.decompose()
    root = soup.find("main") or soup.find("article") or soup.body or soup
    text = root.get_text("\n", strip=True)
    headings = "\n".join(tag.get_text(" ", strip=True) for tag in root.find_all(["h1", "h2", "h3", "h4", "h5", "h6"]))
    language = (soup.html.get("lang") if soup.html else None) or (
        "fr" if len(_FRENCH & set(text[:500].lower().split())) >= 3 else "en"
    )
    row = connection.execute(
        "INSERT INTO snapshots(url, captured_at, mime, status, title, description, snippet, language, canonical,"
        " headings, text, hash, record_id, offset) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (url, record.rec_headers.get_header("WARC-Date"), record.http_headers.get_header("Content-Type"),
         int(record.http_headers.get_statuscode()), title, description.get("content") if description else None,
         text[:280], language, canonical.get("href") if canonical else None, headings, text,
         hashlib.sha256(body).hexdigest(), record.rec_headers.get_header("WARC-Record-ID"),
         archive.get_record_offset()),
    )  # fmt: skip
    seen: set[str] = set()
    for anchor in root.find_all("a", href=True):
        target = urlsplit(urljoin(url, anchor["href"]))
        group = f"{target.scheme}://{target.netloc}{target.path}"
        if target.scheme in ("http", "https") and group not in seen and len(seen) < 200:
            seen.add(group)
            connection.execute("INSERT INTO links(snapshot_id, to_url) VALUES (?, ?)", (row.lastrowid, group))


if __name__ == "__main__":
    main()
