"""Every metric name, declared once (docs/api.md explains them). Labels have bounded values, never a URL."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from threading import Lock
from typing import NamedTuple, Protocol

from prometheus_client import CollectorRegistry, Gauge, Histogram, disable_created_metrics, generate_latest
from prometheus_client import Counter as PrometheusCounter
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

# Not for crawl processes: they write their loop lag to the database themselves (`crawl.progress`), as three figures,
# and loading prometheus_client would cost each of them 28 ms of CPU (best of five).

PREFIX = "holdfast"
PREFIXES = (PREFIX, "healtharchive")
"""Prefixes of the archive's metrics: ours, and the one that dashboards of an older archive use."""
# A second series for each counter, with the time of its creation: scrapers need it for nothing here.
disable_created_metrics()  # type: ignore[no-untyped-call]
SEARCH_BUCKETS = (0.05, 0.1, 0.3, 1.0, 3.0)
_MAX = "_max"
_ERROR_TYPES = {
    400: "invalid",
    422: "invalid",
    404: "not_found",
    429: "rate_limited",
    503: "unavailable",
    504: "timeout",
}


class SharedCounts(Protocol):
    """Storage through which several serving processes share their counts (`wiring.shared_places`)."""

    def leave(self, content: bytes) -> bool:
        """Store counts for the other processes; return False if they are too long."""
        ...

    def left(self) -> bytes:
        """Return the last counts of the previous process with the same number."""
        ...

    def others(self) -> Iterator[bytes]:
        """Yield the latest counts of the other processes."""
        ...


_SampleKey = tuple[str, str, tuple[tuple[str, str], ...]]
"""Family, name and labels of one sample."""


def _add(total: dict[_SampleKey, float], key: _SampleKey, value: float) -> None:
    before = total.get(key, 0.0)
    # The longest of several processes is the longest of all; everything else adds up.
    total[key] = max(before, value) if key[1].endswith(_MAX) else before + value


def _packed(counts: Mapping[_SampleKey, float]) -> bytes:
    return json.dumps([[*key, value] for key, value in counts.items()], separators=(",", ":")).encode()


def _unpacked(content: bytes) -> Iterator[tuple[_SampleKey, float]]:
    for family, name, labels, value in json.loads(content or b"[]"):
        yield (family, name, tuple((label, word) for label, word in labels)), float(value)


class ServerMetrics:
    """Metrics of one serving process, summed with those of other processes on the same port."""

    def __init__(self, *, started: float, shared: SharedCounts | None = None) -> None:
        self.started = started
        """Monotonic, for the uptime."""
        self._shared = shared
        # A process that died is replaced: what it had counted goes on counting, for a counter never falls.
        self._before = dict(_unpacked(shared.left())) if shared is not None else {}
        self._sharing = Lock()
        self.registry = CollectorRegistry()
        self._answered: dict[tuple[str, str], tuple[PrometheusCounter, Histogram]] = {}
        self.requests = PrometheusCounter(
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
        self.searches = PrometheusCounter(f"{PREFIX}_search_requests", "Searches.", registry=self.registry)
        self.search_errors = PrometheusCounter(
            f"{PREFIX}_search_errors", "Searches that failed, by class of status.", ["status"], registry=self.registry
        )
        self.search_seconds = Histogram(
            f"{PREFIX}_search_duration_seconds", "Time of a search.", buckets=SEARCH_BUCKETS, registry=self.registry
        )

        self.search_error_types = PrometheusCounter(
            f"{PREFIX}_search_errors_by_type", "Searches that failed, by type.", ["type"], registry=self.registry
        )
        self.slowest_search = Gauge(
            f"{PREFIX}_search_duration_seconds{_MAX}", "The longest search since the start.", registry=self.registry
        )
        self._slowest_s = 0.0
        self.refusals = PrometheusCounter(
            "crawler_rate_limit_hits",
            "Requests that were refused for their number, by the role of who asked.",
            ["tier"],
            registry=self.registry,
        )
        self.search_modes = PrometheusCounter(
            f"{PREFIX}_search_mode", "Searches answered, by how results were found.", ["mode"], registry=self.registry
        )

    def share(self) -> None:
        if self._shared is not None:
            # From a route and from beside the requests: the later of two must not be overwritten by the earlier.
            with self._sharing:
                self._shared.leave(_packed(self._own()))

    def collect(self) -> Iterator[Metric]:
        """Yield the families with the counts of all processes; those of other processes are seconds old."""
        # Shared first: a scrape of another process must never report less.
        self.share()
        total = self._own()
        for content in self._shared.others() if self._shared is not None else ():
            for key, value in _unpacked(content):
                _add(total, key, value)
        by_family: dict[str, list[tuple[_SampleKey, float]]] = {}
        for key, value in total.items():
            by_family.setdefault(key[0], []).append((key, value))
        for family in self.registry.collect():
            collected = Metric(family.name, family.documentation, family.type)
            for (_, name, labels), value in by_family.get(family.name, ()):
                collected.add_sample(name, dict(labels), value)
            yield collected

    def _own(self) -> dict[_SampleKey, float]:
        found = dict(self._before)
        for family in self.registry.collect():
            for sample in family.samples:
                key = family.name, sample.name, tuple(sorted(sample.labels.items()))
                _add(found, key, sample.value)
        return found

    def refused(self, tier: str) -> None:
        self.refusals.labels(tier).inc()

    def searched(self, mode: str) -> None:
        self.search_modes.labels(mode).inc()

    def answered(self, kind: str, status: int, seconds: float) -> None:
        # By class: a label for each status would make a series for each that a client can provoke.
        group = f"{status // 100}xx"
        key = (kind, group)
        series = self._answered.get(key)
        if series is None:
            # Looked up once: there are as many as kinds of routes and classes of status.
            series = self._answered[key] = (self.requests.labels(kind, group), self.seconds.labels(kind))
        series[0].inc()
        series[1].observe(seconds)
        if kind == "search":
            self.searches.inc()
            self.search_seconds.observe(seconds)
            if seconds > self._slowest_s:
                self._slowest_s = seconds
                self.slowest_search.set(seconds)
            if status >= 400:
                self.search_errors.labels(group).inc()
                self.search_error_types.labels(
                    _ERROR_TYPES.get(status, "refused" if status < 500 else "internal")
                ).inc()


StorageFigures = tuple[int, Mapping[str, Mapping[str, int]]]
"""How many jobs had the folder of their newest run measured, and the bytes by kind and source.

Kinds are warc, output, tmp and tmp_non_warc; all but `warc` are only of measured folders.
"""


class ArchiveFigures:
    """Metrics read from the database on request."""

    def __init__(
        self,
        *,
        jobs: Mapping[str, Mapping[str, int]],
        snapshots: Mapping[str, int],
        pages: int,
        newest_page: float,
        storage: StorageFigures,
        scheduler: Mapping[str, float],
    ) -> None:
        """`newest_page` is the capture time of the newest page (Unix time); `scheduler` has metrics by name."""
        self._jobs, self._snapshots, self._pages, self._newest_page = jobs, snapshots, pages, newest_page
        self._storage, self._scheduler = storage, scheduler

    def collect(self) -> Iterator[Metric]:
        kinds = {
            "status": ("jobs", "by the status that operators see"),
            "cleanup_status": ("jobs_cleanup_status", "by the clean-up of their newest run"),
        }
        for prefix in PREFIXES:
            for label, (name, counted) in kinds.items():
                family = GaugeMetricFamily(f"{prefix}_{name}_total", f"Jobs {counted}.", labels=[label])
                for word, count in sorted(self._jobs.get(label, {}).items()):
                    family.add_metric([word], count)
                yield family
            captures_help = "Captures of pages; all, and by source."
            yield _by_source(f"{prefix}_snapshots", captures_help, self._snapshots, falls=True)
            scanned_help = "Jobs whose newest run had its folder weighed."
            yield GaugeMetricFamily(f"{prefix}_jobs_storage_scanned_total", scanned_help, self._storage[0])
            for kind, sizes in self._storage[1].items():
                size_help = f"Bytes on disk ({kind}); all, and by source."
                yield _by_source(f"{prefix}_jobs_{kind}_bytes", size_help, sizes, falls=True)
            newest_help = "When the newest page was captured, or 0."
            yield GaugeMetricFamily(f"{prefix}_pages_updated_at_max_seconds", newest_help, self._newest_page)
        for name, value in self._scheduler.items():
            described = "See GET /api/v1/scheduler/metrics."
            yield GaugeMetricFamily(f"{PREFIX}_scheduler_{name}", described, value)
        pages_help = "Pages, whatever their query, that were captured."
        yield GaugeMetricFamily(f"{PREFIX}_pages_total", pages_help, self._pages)
        warc_bytes = sum(self._storage[1]["warc"].values())
        yield GaugeMetricFamily(f"{PREFIX}_warc_bytes", "Bytes of sealed WARC files.", warc_bytes)


class RecordedCrawls(NamedTuple):
    """Recorded statistics of all crawls; see `jobs.views.recorded`."""

    by_source: Mapping[str, Mapping[str, int]]
    """Counts since the beginning, by source and column of the series."""
    latency_s: Sequence[float]
    latency_columns: Sequence[str]
    """The histogram's bounds, and its columns: one more, for longer times."""
    failures: Sequence[str]
    """Columns that count as failed."""
    statuses: Sequence[str]
    """Columns of the status classes."""
    pages_per_second: float
    """In the last full minute."""
    success_rate: float | None
    """Over the last five full minutes; None without requests."""
    queue: int
    domains: int
    domains_leased: int
    domains_waiting: int
    circuits: Mapping[str, int]
    """Domains whose circuit is not closed, by its state."""
    workers: int
    heartbeat_age_s: float
    """Age of the oldest heartbeat among the workers that have not ended."""
    progress_age_s: float
    """Time since the last progress of the running job that stalled longest; paused ones do not count."""
    alerts: Mapping[str, bool]
    """Whether each alert fires."""
    cleanups: Mapping[str, tuple[int, float]]
    """Rows deleted since the beginning, and the time of the last deletion, by kind."""

    @property
    def total(self) -> Counter[str]:
        total: Counter[str] = Counter()
        for counts in self.by_source.values():
            total.update(counts)
        return total

    def failed(self, counts: Mapping[str, int]) -> int:
        return sum(counts.get(name, 0) for name in self.failures)


class RecordedFigures:
    """Metrics of crawls in any process, read from the database, so that no crawl process needs a port."""

    def __init__(self, recorded: RecordedCrawls) -> None:
        self._recorded, self._total = recorded, recorded.total

    def collect(self) -> Iterator[Metric]:
        yield from self._counters()
        yield from self._gauges()
        yield self._latency()
        for prefix in PREFIXES:
            crawled = {code: counts.get("pages", 0) for code, counts in self._recorded.by_source.items()}
            failed = {code: self._recorded.failed(counts) for code, counts in self._recorded.by_source.items()}
            yield _by_source(f"{prefix}_jobs_pages_crawled", "Pages captured by crawls; all, and by source.", crawled)
            failed_help = "Pages that crawls failed on; all, and by source."
            yield _by_source(f"{prefix}_jobs_pages_failed", failed_help, failed)

    def _counters(self) -> Iterator[Metric]:
        total, recorded = self._total, self._recorded
        plain = (
            ("crawler_pages_fetched", "Pages captured.", "pages"),
            ("crawler_bytes_downloaded", "Bytes of answers, as they came.", "bytes"),
            ("crawler_links_discovered", "Addresses that were new to their crawl.", "links"),
            ("crawler_duplicates_skipped", "Answers that were as before, and stored as revisits.", "unchanged"),
            ("crawler_robots_denials", "Addresses that a robots.txt forbids.", "blocked_robots"),
            (f"{PREFIX}_crawl_requests", "Requests of crawls for pages and what they need.", "requests"),
            (f"{PREFIX}_crawl_retries", "Attempts that were tried again.", "retries"),
            (f"{PREFIX}_imported_records", "WARC records that were imported.", "imported_records"),
            (f"{PREFIX}_imported_bytes", "Bytes of WARC files that were imported.", "imported_bytes"),
        )
        for name, sentence, column in plain:
            yield CounterMetricFamily(name, sentence, total[column])
        # As the documented name has it, without the ending that the format asks of counters.
        denials = Metric("crawler_robots_denials", "The same as crawler_robots_denials_total.", "unknown")
        denials.add_sample("crawler_robots_denials", {}, total["blocked_robots"])
        yield denials
        labelled = (
            (
                "crawler_pages_crawled",
                "Pages by how they ended.",
                "status",
                {"success": total["pages"], "failed": recorded.failed(total)},
            ),
            (
                "crawler_http_status",
                "Answers by class of status.",
                "status",
                {name.removeprefix("status_"): total[name] for name in recorded.statuses},
            ),
            (
                "crawler_errors",
                "Addresses that failed, by how.",
                "type",
                {name: total[name] for name in recorded.failures},
            ),
            (
                "crawler_circuit_breaker_transitions",
                "Circuits of domains that opened or closed.",
                "to",
                {"open": total["circuits_opened"], "closed": total["circuits_closed"]},
            ),
            (
                "crawler_cleanup_records",
                "Rows that were deleted, by kind.",
                "table",
                {name: removed for name, (removed, _) in recorded.cleanups.items()},
            ),
        )
        for name, sentence, label, counts in labelled:
            family = CounterMetricFamily(name, sentence, labels=[label])
            for word, count in sorted(counts.items()):
                family.add_metric([word], count)
            yield family

    def _gauges(self) -> Iterator[Metric]:
        total, recorded = self._total, self._recorded
        age_help = "Silence of the worker that was heard of longest ago and has not ended."
        plain = (
            ("crawler_pages_per_second", "Pages captured in the last whole minute.", recorded.pages_per_second),
            ("crawler_active_workers", "Workers that were heard of in the last two minutes.", recorded.workers),
            ("crawler_domains_total", "Domains that were ever asked.", recorded.domains),
            (
                "crawler_last_cleanup_timestamp",
                "When rows were last deleted, or 0.",
                max((at for _, at in recorded.cleanups.values()), default=0.0),
            ),
            (f"{PREFIX}_domains_waiting", "Domains with something to ask for.", recorded.domains_waiting),
            (f"{PREFIX}_worker_heartbeat_age_seconds", age_help, recorded.heartbeat_age_s),
            (
                f"{PREFIX}_crawl_progress_age_seconds",
                "Time without progress of the run that got on longest ago; 0 if none runs.",
                recorded.progress_age_s,
            ),
        )
        for name, sentence, value in plain:
            yield GaugeMetricFamily(name, sentence, value)
        rate = GaugeMetricFamily("crawler_fetch_success_rate", "Share of addresses that ended well in five minutes.")
        if recorded.success_rate is not None:
            rate.add_metric([], recorded.success_rate)
        yield rate
        size = GaugeMetricFamily("crawler_frontier_size", "Addresses that wait; and all, by status.", labels=["status"])
        size.add_sample("crawler_frontier_size", {}, recorded.queue)
        sizes = {"pending": recorded.queue, "in_progress": recorded.domains_leased, "completed": total["success"]}
        for word, count in sorted({**sizes, "failed": recorded.failed(total)}.items()):
            size.add_metric([word], count)
        yield size
        states = {"open": 0, "half_open": 0} | dict(recorded.circuits)
        circuits = GaugeMetricFamily("crawler_circuit_breaker_state", "Domains by their circuit.", labels=["state"])
        for word, count in sorted(states.items()):
            circuits.add_metric([word], count)
        yield circuits
        firing = _gauge("alert_firing", "Whether an alert fires (`/api/alerts`).", ["alert"])
        for word, fires in sorted(recorded.alerts.items()):
            firing.add_metric([word], float(fires))
        yield firing

    def _latency(self) -> Metric:
        family = HistogramMetricFamily("crawler_crawl_duration_seconds", "Time of an attempt, redirects included.")
        below, buckets = 0, []
        bounds = [*map(str, self._recorded.latency_s), "+Inf"]
        for bound, column in zip(bounds, self._recorded.latency_columns, strict=True):
            below += self._total[column]
            buckets.append((bound, below))
        family.add_metric([], buckets, sum_value=self._total["latency_ms"] / 1000)
        return family


CrawlValues = tuple[tuple[str, str], Mapping[str, float | None], Mapping[str, int]]
"""Labels of a running crawl (job, source), its values by name of the gauge, and its errors by kind."""


class CrawlFigures:
    """The metrics that `holdfast metrics-textfile` writes: running crawls, jobs by state, clean-ups, disk space."""

    def __init__(
        self,
        crawls: Sequence[CrawlValues],
        *,
        jobs: Mapping[str, int],
        cleanups: Mapping[str, int],
        free_bytes: int,
        written_at: float,
    ) -> None:
        self._crawls, self._jobs, self._cleanups = crawls, jobs, cleanups
        self._free_bytes, self._written_at = free_bytes, written_at

    def collect(self) -> Iterator[Metric]:
        gauges = (
            ("stalled", "Whether no page was added for long."),
            ("last_progress_age_seconds", "Time since a page was added."),
            ("crawl_rate_ppm", "Pages a minute, as far as its log reaches."),
            ("state_file_ok", "Whether the state file can be read."),
            ("container_restarts_done", "Restarts of its container."),
        )
        for name, sentence in gauges:
            family = _gauge(f"crawl_running_job_{name}", sentence, ["job_id", "source"])
            for labels, values, _ in self._crawls:
                if (found := values[name]) is not None:
                    family.add_metric(labels, found)
            yield family
        errors = _gauge("crawl_running_job_errors", "Errors since it last got on.", ["job_id", "source", "kind"])
        for labels, _, counts in self._crawls:
            for kind, count in sorted(counts.items()):
                errors.add_metric([*labels, kind], count)
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


def textfile(*figures: CrawlFigures | WarcCheckFigures | RecordedFigures) -> bytes:
    """Return the metrics in the format of a node exporter's textfile collector."""
    # A registry of its own: the default one adds figures of the process that writes the file.
    made = CollectorRegistry()
    for one in figures:
        made.register(one)
    return generate_latest(made)


class WarcCheckFigures:
    """Results of the last verification of WARC files, for the same text files."""

    def __init__(self, totals: Mapping[str, int], kinds: Mapping[str, int], *, written_at: float) -> None:
        self._totals, self._kinds, self._written_at = totals, kinds, written_at

    def collect(self) -> Iterator[Metric]:
        yield _counted("warc_verify_files", "Files looked at, by result.", "result", self._totals)
        yield _counted("warc_verify_errors", "Files that did not pass, by kind.", "error_kind", self._kinds)
        yield GaugeMetricFamily(f"{PREFIX}_warc_verify_written_seconds", "When this was written.", self._written_at)


def _by_source(name: str, help_text: str, counts: Mapping[str, int], *, falls: bool = False) -> Metric:
    """Return metrics by source with their sum; a gauge if the value can fall (after a takedown), whatever its name."""
    family: CounterMetricFamily | GaugeMetricFamily
    if falls:
        family = GaugeMetricFamily(f"{name}_total", help_text, labels=["source"])
    else:
        family = CounterMetricFamily(name, help_text, labels=["source"])
    family.add_sample(f"{name}_total", {}, sum(counts.values()))
    for source, count in sorted(counts.items()):
        family.add_metric([source], count)
    return family


def exposition(server: ServerMetrics, figures: ArchiveFigures, recorded: RecordedFigures) -> bytes:
    """Return all metrics in the Prometheus text format."""
    archive = CollectorRegistry()
    archive.register(figures)
    archive.register(recorded)
    own = CollectorRegistry()
    own.register(server)
    return generate_latest(archive) + generate_latest(own)
