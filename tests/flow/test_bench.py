"""The benchmark measures what it says: ours and its peers over the same pages, one after the other, in one run."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from bench import crawl, web
from tests import needs


@pytest.mark.samples("bench")
def test_ours_scrapy_and_wget_are_measured_on_the_same_pages_in_one_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs.peer(crawl.PEERS_PYTHON)
    needs.program("nginx", package="nginx-light")
    needs.program("wget")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    monkeypatch.setattr(web, "WORK", tmp_path)
    site = web.write("web", hosts=2, pages=10, port=port)
    with web.served(site, port):
        runs = [crawl.ours(site), crawl.peer(site, "scrapy-warc", limit=20), crawl.peer(site, "wget")]

    pages = {run.name: run.pages for run in runs}
    assert set(pages) == {"holdfast x1", "scrapy-warc", "wget"}
    # Scrapy stops when it has seen its limit, wget counts robots.txt: each has at least the pages there are.
    assert min(pages.values()) >= 20, pages
    assert all(run.cpu_s > 0 and run.seconds > 0 for run in runs)
