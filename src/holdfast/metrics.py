"""Every metric name, declared once (docs/api.md explains them). Labels are bounded words, never an address."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

PREFIX = "holdfast"
disable_created_metrics()  # type: ignore[no-untyped-call]
SEARCH_BUCKETS = (0.05, 0.1, 0.3, 1.0, 3.0)


class ServerMetrics:
    """What one serving process counts of itself."""

    def __init__(self, *, started: float) -> None:
        self.started = started
        """Monotonic, for the uptime."""
        self.registry = CollectorRegistry()
        self.requests = Counter(
            f"{PREFIX}_http_requests", "Requests answered, by kind of route and class of status.",
            ["kind", "status"], registry=self.registry,
        )  # fmt: skip
        self.seconds = Histogram(
            f"{PREFIX}_http_request_duration_seconds", "Time to the end of an answer, by kind of route.",
            ["kind"], registry=self.registry,
        )  # fmt: skip
        self.searches = Counter(f"{PREFIX}_search_requests", "Searches.", registry=self.registry)
        self.search_errors = Counter(
            f"{PREFIX}_search_errors", "Searches that failed, by class of status.", ["status"], registry=self.registry
        )
        self.search_seconds = Histogram(
            f"{PREFIX}_search_duration_seconds", "Time of a search.", buckets=SEARCH_BUCKETS, registry=self.registry
        )

        self.search_modes = Counter(
            f"{PREFIX}_search_mode", "Searches answered, by how results were found.", ["mode"], registry=self.registry
        )

    def searched(self, mode: str) -> None:
        """Count one search that was answered."""
        self.search_modes.labels(mode).inc()

    def answered(self, kind: str, status: int, seconds: float) -> None:
        """Count one answer."""
        group = f"{status // 100}xx"
        self.requests.labels(kind, group).inc()
        self.seconds.labels(kind).observe(seconds)
        if kind == "search":
            self.searches.inc()
            self.search_seconds.observe(seconds)
            if status >= 400:
                self.search_errors.labels(group).inc()


class ArchiveFigures:
    """What the database says when it is asked: the names of HA-085 under our prefix."""

    def __init__(self, *, jobs: Mapping[str, int], snapshots: Mapping[str, int], pages: int,
                 crawled: Mapping[str, int], failed: Mapping[str, int], warc_bytes: int) -> None:  # fmt: skip
        self._jobs, self._snapshots, self._pages = jobs, snapshots, pages
        self._crawled, self._failed, self._warc_bytes = crawled, failed, warc_bytes

    def collect(self) -> Iterator[Metric]:
        """Yield the families, as the text format wants them."""
        jobs = CounterMetricFamily(f"{PREFIX}_jobs", "Executions by state.", labels=["status"])
        for status, count in self._jobs.items():
            jobs.add_metric([status], count)
        yield jobs
        yield _by_source("snapshots", "Captures of pages; all, and by source.", self._snapshots)
        yield _by_source("jobs_pages_crawled", "Pages captured by crawls; all, and by source.", self._crawled)
        yield _by_source("jobs_pages_failed", "Pages that crawls failed on; all, and by source.", self._failed)
        yield CounterMetricFamily(f"{PREFIX}_pages", "Pages, whatever their query, that were captured.", self._pages)
        yield GaugeMetricFamily(f"{PREFIX}_warc_bytes", "Bytes of sealed WARC files.", self._warc_bytes)


def _by_source(name: str, told: str, counts: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily(f"{PREFIX}_{name}", told, labels=["source"])
    family.add_sample(f"{PREFIX}_{name}_total", {}, sum(counts.values()))
    for source, count in sorted(counts.items()):
        family.add_metric([source], count)
    return family


def exposition(server: ServerMetrics, figures: ArchiveFigures) -> bytes:
    """Return everything in the Prometheus text format."""
    archive = CollectorRegistry()
    archive.register(figures)
    return generate_latest(archive) + generate_latest(server.registry)
