"""F22: no page can make a process grow beyond its means: bombs, endless bodies and monstrous tags, all at once."""

from __future__ import annotations

import resource
import threading
from pathlib import Path

import pytest

from tests import patience
from tests.flow.crawler import Crawler
from tests.flow.faults.bed import rows
from tests.site import Site

_INPUTS = [
    "/encoding/gzip-bomb", "/encoding/deflate-bomb", "/encoding/br-bomb", "/encoding/zstd-bomb",
    "/encoding/gzip-gzip-bomb", "/framing/endless", "/framing/endless-close", "/media/large?mb=2000",
    "/media/large-html?mb=2000", "/markup/attributes", "/markup/div", "/markup/links?n=100000",
    "/markup/text?n=9000000", "/markup/css-import", "/markup/srcset", "/sitemap/bomb.xml.gz", "/head/big", "/feed/many",
]  # fmt: skip
_MIB = 1024 * 1024
_ROOM_BYTES = 768 * _MIB
"""Of addresses: an interpreter with its libraries and threads takes 400 MiB of them before it does anything."""


class _Watch:
    """Looks at the memory of crawl processes while they live."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._done = threading.Event()
        self.peaks: dict[int, int] = {}
        """The most resident memory of each process, in bytes, by its number."""
        self._thread = threading.Thread(target=self._look, name="memory")
        self._thread.start()

    def _look(self) -> None:
        while not self._done.wait(0.05):
            for pid in self.peaks or self._crawler.processes():
                try:
                    status = Path(f"/proc/{pid}/status").read_text()
                except OSError:
                    continue
                if "VmHWM:" in status:
                    kib = int(status.split("VmHWM:")[1].split()[0])
                    self.peaks[pid] = max(self.peaks.get(pid, 0), kib * 1024)

    def stop(self) -> int:
        """Return the most that any process held."""
        self._done.set()
        self._thread.join()
        return max(self.peaks.values())


def _peak_of(crawler: Crawler, storage: str, *seeds: str) -> int:
    """Crawl these pages in little room and return the most resident memory that it took."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_ROOM_BYTES, before[1]))
    try:
        process = crawler.start(
            *seeds, "--workers", "1", "--scope", "page", "--delay", "0", "--no-requisites", "--storage", storage
        )
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    watch = _Watch(crawler)
    crawler.finish(process)
    return watch.stop()


@pytest.mark.parametrize("storage", ["warc", "signals"])
def test_no_input_makes_a_process_grow_beyond_its_means(crawler: Crawler, tmp_path: Path, storage: str) -> None:
    calm = Crawler(tmp_path / "calm")
    crawler.environment["HOLDFAST_TIMINGS_CRAWL_PARSE_S"] = str(patience.allowed(1.0))
    with Site.start(hosts=len(_INPUTS), pages=20, process=True) as site:
        base = _peak_of(calm, storage, *(site.url(host, f"/a/p{host + 1}.html") for host in range(len(_INPUTS))))
        peak = _peak_of(crawler, storage, *(site.url(host, path) for host, path in enumerate(_INPUTS)))

    print(f"resident: {base // _MIB} MiB at rest, {peak // _MIB} MiB at most")
    assert peak <= base + 128 * _MIB
    assert rows(crawler, "SELECT count(*) FROM owners WHERE kind = 'process'") == [(1,)], crawler.log()[-4000:]
    outcomes = crawler.outcomes()
    assert len(outcomes) == len(_INPUTS)
    assert {reason for _, reason in outcomes.values()} <= {
        "ok", "truncated_length", "truncated_time", "parse_timeout", "too_large_to_parse", "bad_response",
        *(["unsupported_type"] if storage == "signals" else []),
    }  # fmt: skip
    assert crawler.faults() == []
