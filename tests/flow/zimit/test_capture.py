"""The backends besides zimit: our own crawl takes over where fresh phases keep failing, and a browser is refused."""

from __future__ import annotations

import json
from pathlib import Path

from holdfast.warc.verify import verify_file
from holdfast.zimit.logs import crawl_statistics
from tests.flow.crawler import FAST
from tests.flow.zimit.bed import Bed
from tests.site import Site

ONLY_WARCS = "--skip-final-build"


def test_our_own_crawl_takes_over_after_fresh_failures_and_overwrites_nothing(bed: Bed, site: Site) -> None:
    bed.environment |= {**FAST, "HOLDFAST_ALLOW_NETWORKS": "127.0.0.0/8", "HOLDFAST_POLITENESS_DELAY_S": "0"}
    bed.seeds = (site.url(0, "/"),)
    bed.script([{"warc": "a.warc.gz"}, {"exit": 9}])

    ended = bed.run(
        ONLY_WARCS, "--resume-policy", "fresh_only", "--fallback-backend", "http_warc",
        "--max-fresh-failures-before-fallback", "2", "--pageLimit", "3",
    )  # fmt: skip

    assert (ended.code, ended.state) == (0, "success"), ended.err
    assert len(bed.calls("run")) == 2
    assert bed.stages()[-1].startswith("http_warc_capture")
    found = crawl_statistics(bed.output)
    assert found is not None
    assert found.crawled >= 1
    assert found.extra["backend"] == "http_warc"
    stable = sorted(Path(name).name for name in bed.warcs() if name.startswith("warcs/"))
    assert stable == ["warc-000001.warc.gz", "warc-000002.warc.gz", "warc-000003.warc.gz"]
    captured = next(bed.output.glob(".tmp-http-warc/archive/*.warc.gz"))
    assert verify_file(captured).ok
    assert captured.stat().st_nlink == 2


def test_a_browser_is_refused_with_a_word_for_it_and_nothing_is_started(bed: Bed) -> None:
    ended = bed.run(ONLY_WARCS, "--capture-backend", "playwright_warc")

    assert (ended.code, ended.state) == (1, "failed")
    assert "capture_backend_unavailable" in ended.err
    assert bed.raw_calls() == []


def test_our_own_crawl_that_is_refused_is_a_failure(bed: Bed) -> None:
    ended = bed.run(ONLY_WARCS, "--capture-backend", "http_warc", "--cleanup")

    assert (ended.code, ended.state) == (1, "failed")
    assert "contact" in bed.log()
    assert bed.raw_calls() == []
    assert (bed.output / ".tmp-http-warc").exists()


def test_own_crawl_logs_the_zimit_flags_it_ignores(bed: Bed) -> None:
    ended = bed.run(ONLY_WARCS, "--capture-backend", "http_warc", "--waitUntil", "load", "--pageLimit", "1")

    events = [json.loads(line) for line in ended.err.splitlines() if line.startswith("{")]
    [ignored] = [event for event in events if event["event"] == "capture.flags_unheeded"]
    assert (ignored["level"], ignored["backend"], ignored["flags"]) == ("warning", "http_warc", ["--waitUntil"])


def test_a_signal_ends_our_own_crawl_with_its_files_sealed(bed: Bed, site: Site) -> None:
    bed.environment |= {**FAST, "HOLDFAST_ALLOW_NETWORKS": "127.0.0.0/8"}
    bed.seeds = (site.url(0, "/"),)
    process = bed.start(ONLY_WARCS, "--capture-backend", "http_warc")
    bed.wait_until(lambda: bool(list(bed.output.glob(".tmp-http-warc/archive/*"))))
    process.terminate()

    stopped = bed.finish(process)

    assert (stopped.code, stopped.state) == (1, "stopped")
    assert list(bed.output.glob(".tmp-http-warc/archive/*.open")) == []
    found = crawl_statistics(bed.output)
    assert found is not None
    assert found.pending > 0, "it ended before it was stopped"
