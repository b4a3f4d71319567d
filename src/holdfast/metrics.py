"""Every metric name, declared once (docs/api.md explains them). Labels are bounded words, never an address."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

# Not for crawl processes: they write their loop lag to the database themselves (`crawl.progress`), as three figures,
# and loading prometheus_client would cost each of them 28 ms of CPU (best of five).

PREFIX = "holdfast"
# A second series for each counter, with the time of its creation: scrapers need it for nothing here.
disable_created_metrics()  # type: ignore[no-untyped-call]
SEARCH_BUCKETS = (0.05, 0.1, 0.3, 1.0, 3.0)


class ServerMetrics:
    """What one serving process counts of itself."""

    def __init__(self, *, started: float) -> None:
        self.started = started
        """Monotonic, for the uptime."""
        self.registry = CollectorRegistry()
        self.requests = Counter(
            f"{PREFIX}_http_requests",
            "Requests answered, by kind of route and class of status.",
            ["kind", "status"],
            registry=self.registry,
        )
        self.seconds = Histogram(
            f"{PREFIX}_http_request_duration_seconds",
            "Time to the end of an answer, by kind of route.",
            ["kind"],
            registry=self.registry,
        )
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
        # By class: a label for each status would make a series for each that a client can provoke.
        group = f"{status // 100}xx"
        self.requests.labels(kind, group).inc()
        self.seconds.labels(kind).observe(seconds)
        if kind == "search":
            self.searches.inc()
            self.search_seconds.observe(seconds)
            if status >= 400:
                self.search_errors.labels(group).inc()


class ArchiveFigures:
    """What the database says when it is asked, under our prefix."""

    def __init__(
        self,
        *,
        jobs: Mapping[str, Mapping[str, int]],
        snapshots: Mapping[str, int],
        pages: int,
        crawled: Mapping[str, int],
        failed: Mapping[str, int],
        warc_bytes: int,
    ) -> None:
        self._jobs, self._snapshots, self._pages = jobs, snapshots, pages
        self._crawled, self._failed, self._warc_bytes = crawled, failed, warc_bytes

    def collect(self) -> Iterator[Metric]:
        """Yield the families, as the text format wants them."""
        kinds = {
            "status": ("jobs", "by the status that operators see"),
            "cleanup_status": ("jobs_cleanup_status", "by the clean-up of their newest run"),
        }
        for label, (name, counted) in kinds.items():
            family = _gauge(f"{name}_total", f"Jobs {counted}.", [label])
            for word, count in sorted(self._jobs.get(label, {}).items()):
                family.add_metric([word], count)
            yield family
        yield _by_source("snapshots", "Captures of pages; all, and by source.", self._snapshots, falls=True)
        yield _by_source("jobs_pages_crawled", "Pages captured by crawls; all, and by source.", self._crawled)
        yield _by_source("jobs_pages_failed", "Pages that crawls failed on; all, and by source.", self._failed)
        pages_help = "Pages, whatever their query, that were captured."
        yield GaugeMetricFamily(f"{PREFIX}_pages_total", pages_help, self._pages)
        yield GaugeMetricFamily(f"{PREFIX}_warc_bytes", "Bytes of sealed WARC files.", self._warc_bytes)


class CrawlFigure(NamedTuple):
    """One running crawl of zimit, as a node exporter's text file shows it."""

    job: int
    source: str
    stalled: bool
    progress_age_s: float
    pages_per_minute: float | None
    state_ok: bool
    restarts: int
    errors: Mapping[str, int]


class CrawlFigures:
    """What `holdfast metrics-textfile` writes: running crawls, jobs by state, clean-ups, room on the disk."""

    def __init__(
        self,
        crawls: Sequence[CrawlFigure],
        *,
        jobs: Mapping[str, int],
        cleanups: Mapping[str, int],
        free_bytes: int,
        written_at: float,
    ) -> None:
        self._crawls, self._jobs, self._cleanups = crawls, jobs, cleanups
        self._free_bytes, self._written_at = free_bytes, written_at

    def collect(self) -> Iterator[Metric]:
        """Yield the families, as the text format wants them."""
        gauges = (
            ("stalled", "Whether no page was added for long.", lambda one: float(one.stalled)),
            ("last_progress_age_seconds", "Time since a page was added.", lambda one: one.progress_age_s),
            ("crawl_rate_ppm", "Pages a minute, as far as its log reaches.", lambda one: one.pages_per_minute),
            ("state_file_ok", "Whether the state file can be read.", lambda one: float(one.state_ok)),
            ("container_restarts_done", "Restarts of its container.", lambda one: float(one.restarts)),
        )
        for name, sentence, value in gauges:
            family = _gauge(f"crawl_running_job_{name}", sentence, ["job_id", "source"])
            for one in self._crawls:
                if (found := value(one)) is not None:
                    family.add_metric([str(one.job), one.source], found)
            yield family
        errors = _gauge("crawl_running_job_errors", "Errors since it last got on.", ["job_id", "source", "kind"])
        for one in self._crawls:
            for kind, count in sorted(one.errors.items()):
                errors.add_metric([str(one.job), one.source, kind], count)
        yield errors
        yield _counted("jobs_by_status", "Jobs by the state that operators see.", "status", self._jobs)
        yield _counted("jobs_cleanup_status", "Executions by clean-up.", "cleanup_status", self._cleanups)
        yield GaugeMetricFamily(f"{PREFIX}_disk_free_bytes", "Room in the data directory.", self._free_bytes)
        yield GaugeMetricFamily(f"{PREFIX}_textfile_written_seconds", "When this was written.", self._written_at)


def _gauge(name: str, help_text: str, labels: Sequence[str]) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"{PREFIX}_{name}", help_text, labels=labels)


def _counted(name: str, help_text: str, label: str, counts: Mapping[str, int]) -> GaugeMetricFamily:
    family = _gauge(name, help_text, [label])
    for word, count in sorted(counts.items()):
        family.add_metric([word], count)
    return family


def textfile(figures: CrawlFigures | WarcCheckFigures) -> bytes:
    """Return the figures in the text format that a node exporter's textfile collector reads."""
    # A registry of its own: the default one adds figures of the process that writes the file.
    made = CollectorRegistry()
    made.register(figures)
    return generate_latest(made)


class WarcCheckFigures:
    """What the last verification of WARC files found, for the same text files."""

    def __init__(self, totals: Mapping[str, int], kinds: Mapping[str, int], *, written_at: float) -> None:
        self._totals, self._kinds, self._written_at = totals, kinds, written_at

    def collect(self) -> Iterator[Metric]:
        """Yield the families, as the text format wants them."""
        yield _counted("warc_verify_files", "Files looked at, by result.", "result", self._totals)
        yield _counted("warc_verify_errors", "Files that did not pass, by kind.", "error_kind", self._kinds)
        yield GaugeMetricFamily(f"{PREFIX}_warc_verify_written_seconds", "When this was written.", self._written_at)


def _by_source(name: str, help_text: str, counts: Mapping[str, int], *, falls: bool = False) -> Metric:
    """Return figures by source with their sum; what can also fall (a withdrawal) is a gauge, whatever its name."""
    family: CounterMetricFamily | GaugeMetricFamily
    if falls:
        family = GaugeMetricFamily(f"{PREFIX}_{name}_total", help_text, labels=["source"])
    else:
        family = CounterMetricFamily(f"{PREFIX}_{name}", help_text, labels=["source"])
    family.add_sample(f"{PREFIX}_{name}_total", {}, sum(counts.values()))
    for source, count in sorted(counts.items()):
        family.add_metric([source], count)
    return family


def exposition(server: ServerMetrics, figures: ArchiveFigures) -> bytes:
    """Return everything in the Prometheus text format."""
    archive = CollectorRegistry()
    archive.register(figures)
    return generate_latest(archive) + generate_latest(server.registry)
