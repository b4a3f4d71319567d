"""`python -m bench.noise`: manuals of this machine, crawled with pages of our own that show no page mixed in.

Every page of a manual is content: what is taken for noise there is a mistake. Prints precision, and recall by style;
ends with 1 if precision is below 0.98. Each site has an address of its own on the loopback network.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from mimetypes import guess_type
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from sqlalchemy import select

from bench import noise_pages
from bench.crawl import HOLDFAST
from bench.noise_pages import MadePage
from holdfast import config
from holdfast.db.models import Snapshot
from holdfast.noise.classifier import judge_pending
from holdfast.wiring.archive import open_archive

MANUALS = (Path("/usr/share/doc/python3.11/html"), Path("/usr/share/doc/postgresql-doc-15/html"))
WANTED = 0.98
_BLOCKED = 30


@dataclass(slots=True)
class Site:
    """One host: a folder, pages beside it, and whether a firewall answers for it now."""

    folder: Path | None = None
    pages: dict[str, MadePage] = field(default_factory=dict)
    blocked: set[str] = field(default_factory=set)

    def answer(self, target: str) -> tuple[int, str, bytes, str | None]:
        """Return status, type, body and where it leads."""
        if target in self.blocked:
            title = "Attention Required!"
            body = noise_pages.html(title, "<h1>Sorry, you have been blocked</h1>", template=False)
            return 200, "text/html; charset=utf-8", body.encode(), None
        page = self.pages.get(target)
        if page is not None and page.body == noise_pages.HOME:
            return self.answer("/")
        if page is not None:
            return page.status, "text/html; charset=utf-8", page.body.encode(), page.location
        path = unquote(urlsplit(target).path)
        found = self.folder and self.folder / (path.lstrip("/") or "index.html")
        if found and found.is_file() and ".." not in path:
            return 200, guess_type(found.name)[0] or "application/octet-stream", found.read_bytes(), None
        return 404, "text/html; charset=utf-8", b"<title>Not here</title><h1>There is nothing of this name</h1>", None


class _Handler(BaseHTTPRequestHandler):
    sites: dict[str, Site]
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        host = (self.headers.get("Host") or "").partition(":")[0]
        site = self.sites.get(host, Site())
        status, kind, body, location = site.answer(self.path)
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if location is not None:
            self.send_header("Location", location)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: Any) -> None:
        pass


@contextmanager
def served(sites: dict[str, Site]) -> Iterator[int]:
    """Serve the sites while the block runs; gives the port."""
    handler = type("Handler", (_Handler,), {"sites": sites})
    server = ThreadingHTTPServer(("0.0.0.0", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def made(count: int) -> list[MadePage]:
    """Return the pages that are mixed in with a manual."""
    parts = (noise_pages.soft_404s, noise_pages.block_pages, noise_pages.walls, noise_pages.content)
    return [*(page for part in parts for page in part(count)), *noise_pages.banner_site(), *noise_pages.entries()]


def sites_of(manuals: Iterable[Path], count: int) -> dict[str, Site]:
    """Return the sites by their address: one for each manual, parked domains, and one of content like noise."""
    sites = {
        f"127.0.0.{10 + n}": Site(folder, {page.path: page for page in made(count)}) for n, folder in enumerate(manuals)
    }
    for n in range(count):
        host, other = f"127.0.1.{n + 1}", f"127.0.2.{n + 1}"
        sites[host] = Site(pages={page.path: page for page in noise_pages.parked(host)})
        sites[other] = Site(pages={page.path: page for page in noise_pages.parked_by_service(other)})
    sites["127.0.3.1"] = Site(pages={page.path: page for page in noise_pages.traits("127.0.3.1")})
    return sites


def crawl(home: Path, seeds: Iterable[str], *extra: str) -> None:
    """Crawl from these addresses."""
    names = home / "seeds.txt"
    names.write_text("\n".join(seeds))
    command = [
        str(HOLDFAST), "crawl", "--seeds", str(names), "--scope", "host", "--delay", "0", "--allow-network",
        "127.0.0.0/8", "--workers", "1", "--no-sitemaps", "--contact", "bench@example.org", "--json", "--home",
        str(home), *extra,
    ]  # fmt: skip
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    index = [str(HOLDFAST), "index", "--no-search", "--home", str(home)]
    subprocess.run(index, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@dataclass(slots=True)
class Score:
    """What was found, held against what is so."""

    right: Counter[str] = field(default_factory=Counter)
    all: Counter[str] = field(default_factory=Counter)
    wrong: list[tuple[str, str]] = field(default_factory=list)
    other: Counter[tuple[str, str]] = field(default_factory=Counter)
    content: int = 0

    def add(self, url: str, style: str | None, kind: str | None, found: str | None) -> None:
        """Count one capture; `kind` is what it is, `found` what it was taken for."""
        if kind is None:
            self.content += 1
            if found is not None:
                self.wrong.append((found, url))
            return
        self.all[style or kind] += 1
        self.right[style or kind] += found is not None
        if found is not None and found != kind:
            self.other[kind, found] += 1

    @property
    def precision(self) -> float:
        """Share of what was taken for noise that is noise."""
        found = self.right.total() + len(self.wrong)
        return self.right.total() / found if found else 1.0

    def print(self) -> None:
        """Say it."""
        for style, count in sorted(self.all.items()):
            print(f"{style:<40} {self.right[style]:>5} of {count:>5}  recall {self.right[style] / count:.3f}")
        recall = self.right.total() / max(1, self.all.total())
        print(f"{'all':<40} {self.right.total():>5} of {self.all.total():>5}  recall {recall:.3f}")
        for (kind, found), count in sorted(self.other.items()):
            print(f"  {kind} taken for {found}: {count}")
        print(f"content: {self.content:,} captures, {len(self.wrong)} taken for noise; precision {self.precision:.4f}")
        for found, url in self.wrong[:50]:
            print(f"  {found}  {url}")


def measure(manuals: Iterable[Path], count: int, folder: Path) -> Score:
    """Crawl, judge and count."""
    sites = sites_of(manuals, count)
    home = folder / "home"
    home.mkdir()
    with served(sites) as port:
        seeds = [f"http://{host}:{port}{path}" for host, site in sites.items() for path in ("/", *site.pages)]
        crawl(home, seeds)
        blocked: dict[str, set[str]] = defaultdict(set)
        for host, site in sites.items():
            if site.folder is not None:
                names = sorted(path.name for path in site.folder.glob("*.html") if path.stat().st_size > 20_000)
                blocked[host] = site.blocked = {f"/{name}" for name in names[:_BLOCKED]}
        again = [f"http://{host}:{port}{path}" for host, paths in blocked.items() for path in sorted(paths)]
        crawl(home, again, "--depth", "0")
    score = Score()
    with open_archive(config.load(home=home)) as archive:
        judge_pending(archive.database, archive.clock)
        with archive.database.read() as session:
            _count(session.execute(_ROWS), sites, blocked, score)
    return score


_ROWS = select(
    Snapshot.url, Snapshot.status, Snapshot.redirect_to, Snapshot.noise, Snapshot.execution_id, Snapshot.is_page
).order_by(Snapshot.id)


def _count(rows: Iterable[Any], sites: dict[str, Site], blocked: dict[str, set[str]], score: Score) -> None:
    for url, status, redirect_to, found, execution_id, is_page in rows:
        split = urlsplit(url)
        target = split.path + (f"?{split.query}" if split.query else "")
        site = sites[split.hostname or ""]
        page = site.pages.get(target)
        if execution_id > 1 and target in blocked[split.hostname or ""]:
            score.add(url, "block page, in place of a page", "block_page", found)
        elif page is not None and (page.kind is not None or page.status < 400) and (is_page or redirect_to):
            score.add(url, page.style, page.kind, found)
        elif is_page and page is None and status is not None and status < 400:
            score.add(url, None, None, found)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.noise", description=__doc__)
    parser.add_argument("--manual", type=Path, action="append", help="a folder of HTML; two of Debian's if left out")
    parser.add_argument("--count", type=int, default=20, help="addresses of each style")
    parser.add_argument("--folder", type=Path, help="where the archive is made and kept; a temporary one if left out")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    manuals = [folder for folder in options.manual or MANUALS if folder.is_dir()]
    if not manuals:
        sys.exit("bench: no manual is here; name one with --manual, or install python3-doc")
    with tempfile.TemporaryDirectory() as folder:
        score = measure(manuals, options.count, options.folder or Path(folder))
    if options.json:
        recall = {style: score.right[style] / count for style, count in sorted(score.all.items())}
        print(json.dumps({"precision": score.precision, "content": score.content, "recall": recall}))
    else:
        score.print()
    sys.exit(0 if score.precision >= WANTED else 1)


if __name__ == "__main__":
    main()
