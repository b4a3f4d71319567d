"""What the tests of a crawl share: its parts without a network, and a web that is a table of answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any, cast

from holdfast.config import Settings
from holdfast.crawl.assignment import CrawlScope
from holdfast.crawl.credentials import Credentials
from holdfast.crawl.domain_worker import DomainWorker
from holdfast.crawl.link_filter import LinkFilter
from holdfast.crawl.outcomes import PageUnderWay
from holdfast.crawl.paced_client import Fetcher, PacedClient, PageRequests
from holdfast.crawl.page_reading import DocumentReader
from holdfast.crawl.politeness import DomainPoliteness, Pace
from holdfast.crawl.progress import CrawlProgress
from holdfast.crawl.robots_gate import EnginePort, RobotsFiles
from holdfast.crawl.storing import Originals
from holdfast.parse import ParseChild
from holdfast.parse.page import MAX_PARSED_BYTES
from holdfast.sources.plan import CrawlPlan
from holdfast.types import (
    Attempt,
    CircuitState,
    DomainLease,
    Fetched,
    FetchFailed,
    FetchProblem,
    FetchRequest,
    LeaseRefusal,
    RobotsRecord,
    Truncated,
    UrlKind,
)
from holdfast.urls import parse
from tests.clock import FakeClock


@dataclass(frozen=True)
class Bytes:
    """A body in memory."""

    data: bytes

    @property
    def size(self) -> int:
        return len(self.data)

    def chunks(self) -> Iterator[bytes]:
        yield self.data

    def close(self) -> None:
        """There is nothing to let go of."""


@dataclass(frozen=True)
class Answer:
    """What a server says."""

    status: int = 200
    body: bytes = b"<title>ok</title>"
    headers: tuple[tuple[str, str], ...] = ()
    ip: str = "127.0.0.1"
    took_s: float = 0.0
    truncated: Truncated | None = None


Line = Answer | FetchProblem | BaseException
NOT_FOUND = Answer(404)


@dataclass
class Web:
    """Answers by address, each list in turn and its last for ever; robots.txt is 404 unless it is named."""

    clock: FakeClock
    answers: Mapping[str, Line | list[Line]]
    asked: list[FetchRequest] = field(default_factory=list)

    @property
    def urls(self) -> list[str]:
        return [request.url for request in self.asked]

    async def fetch(self, request: FetchRequest) -> Fetched | FetchFailed:
        if request.before_send is not None:
            request.before_send()
        self.asked.append(request)
        line = self.answers.get(request.url, NOT_FOUND)
        if isinstance(line, list):
            line = line[min(self.urls.count(request.url), len(line)) - 1]
        if isinstance(line, BaseException):
            raise line
        if isinstance(line, FetchProblem):
            sent = None if line in (FetchProblem.ADDRESS_FORBIDDEN, FetchProblem.CONNECT) else 0.0
            return FetchFailed(url=request.url, problem=line, message=line.value, started_at=self.clock.now(),
                               took_s=0.0, sent_s=sent)  # fmt: skip
        return fetched(request, line, self.clock)


def fetched(request: FetchRequest, answer: Answer, clock: FakeClock) -> Fetched:
    """Return an exchange as the client would."""
    sent = "".join(f"{name}: {value}\r\n" for name, value in request.headers)
    head = "".join(f"{name}: {value}\r\n" for name, value in answer.headers)
    return Fetched(
        url=request.url, status=answer.status, request_head=f"GET / HTTP/1.1\r\nHost: x\r\n{sent}\r\n".encode(),
        response_head=f"HTTP/1.1 {answer.status} X\r\n{head}\r\n".encode(), body=Bytes(answer.body), ip=answer.ip,
        started_at=clock.now(), took_s=answer.took_s, first_byte_s=0.0, truncated=answer.truncated,
    )  # fmt: skip


@dataclass
class Bed:
    """The parts of a crawl, its web, and what its workers handed over; it stands in for the engine."""

    clock: FakeClock
    web: Web
    plan: CrawlPlan
    settings: Settings
    lend: Callable[[str], Pace | LeaseRefusal]
    """Says whether a turn at another domain can be had."""
    pages: list[PageUnderWay] = field(default_factory=list)
    recalled: dict[str, RobotsRecord] = field(default_factory=dict)
    """What other processes have learned of robots files, by origin."""
    landed: list[str] = field(default_factory=list)
    """Where seeds landed."""

    def __post_init__(self) -> None:
        self.scope, self.credentials = CrawlScope(self.plan), Credentials(self.plan)
        self.progress = CrawlProgress(self.clock)
        self.originals = Originals(cast(Any, None), Path())
        self.requests = PageRequests(
            self.scope, self.settings.fetch, self.credentials, self.originals, self.clock,
            parsed_bytes=MAX_PARSED_BYTES,
        )  # fmt: skip
        self.robots = RobotsFiles(self.scope, self.settings, self.clock)
        self.random = Random(1)
        self.connect(self.web)

    def connect(self, fetcher: Fetcher) -> None:
        """Have the workers that are made from now on ask this client."""
        self.client = PacedClient(fetcher, self.requests, self.settings, self.progress)

    def hand_over(self, page: PageUnderWay) -> None:
        self.pages.append(page)

    @asynccontextmanager
    async def borrow(self, domain: str) -> AsyncIterator[Pace | LeaseRefusal]:
        yield self.lend(domain)

    async def recall_robots(self, origin: str) -> RobotsRecord | None:
        return self.recalled.get(origin)

    def worker(self, domain: str = "a.test", engine: EnginePort | None = None, **lease: Any) -> DomainWorker:
        """Return a worker for a domain; `lease` says more about the lease."""
        facts: dict[str, Any] = {
            "domain_id": 1, "domain": domain, "token": 7, "expires_at": self.clock.now() + timedelta(minutes=1),
            "delay_s": 0.0, "next_allowed_at": self.clock.now(), "taken_over": False, "circuit": CircuitState(),
            "robots": cast(tuple[RobotsRecord, ...], ()), "attempts": (),
        }  # fmt: skip
        return self.make_worker(DomainLease(**{**facts, **lease}), float("inf"), engine)

    def make_worker(self, lease: DomainLease, lease_until: float, engine: EnginePort | None = None) -> DomainWorker:
        politeness = DomainPoliteness(
            lease, self.settings, self.clock, delay_s=self.plan.delay_s, lease_until=lease_until,
            random=self.random,
        )  # fmt: skip
        return DomainWorker(politeness, self.client, self.robots, engine or self)

    def link_filter(self) -> LinkFilter:
        return LinkFilter(self.scope, self.settings, self.clock)

    def reader(self, child: object = None) -> DocumentReader:
        """Return a reader that notes where seeds land."""
        return DocumentReader(
            self.scope, self.originals, self.settings, self.clock, lambda url: self.landed.append(url.fetch),
            cast(ParseChild, child),
        )  # fmt: skip


def attempt(url: str, **more: Any) -> Attempt:
    """Return an attempt on an address."""
    facts: dict[str, Any] = {"id": 1, "page_id": 1, "domain_id": 1, "kind": UrlKind.PAGE, "depth": 0, "number": 1,
                             "priority": 3}  # fmt: skip
    return Attempt(url=url, url_hash=parse(url).hash64, **{**facts, **more})


def make_bed(answers: Mapping[str, Line | list[Line]], borrow: Callable[[str], Pace | LeaseRefusal] | None = None,
             settings: Settings | None = None, **plan: Any) -> Bed:  # fmt: skip
    """Return a crawl whose web, in an allowed network, gives these answers; `plan` says more about it."""
    clock = FakeClock()
    asked = CrawlPlan(
        **{"seeds": ("http://a.test/",), "contact": "a@example.org", "delay_s": 0.0,
           "allow_networks": ("127.0.0.0/8",), **plan}
    )  # fmt: skip
    lend = borrow or (lambda _domain: LeaseRefusal.HELD)
    return Bed(clock, Web(clock, answers), asked, settings or Settings(), lend)
