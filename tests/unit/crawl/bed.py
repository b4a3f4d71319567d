"""What the tests of a lane share: a crew without a network, and a web that is a table of answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any, cast

from holdfast.config import Settings
from holdfast.crawl.context import CrawlContext, FetchedPage
from holdfast.crawl.credentials import Credentials
from holdfast.crawl.domain_worker import DomainWorker
from holdfast.crawl.plan import CrawlPlan
from holdfast.crawl.politeness import Pace
from holdfast.crawl.progress import CrawlProgress
from holdfast.crawl.storing import Originals
from holdfast.types import (
    Attempt,
    CircuitState,
    DomainLease,
    Fetched,
    FetchFailed,
    FetchProblem,
    FetchRequest,
    LeaseRefusal,
    RobotsState,
    Truncated,
    UrlKind,
)
from holdfast.urls import Url, parse
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
    """A crew, its web, and what it handed over."""

    clock: FakeClock
    web: Web
    crew: CrawlContext
    captures: list[FetchedPage]
    recalled: dict[str, RobotsState] = field(default_factory=dict)
    """What other processes have learned of robots files, by origin."""

    def worker(self, domain: str = "a.test", **lease: Any) -> DomainWorker:
        """Return a lane that works on a domain; `lease` says more about the lease."""
        facts: dict[str, Any] = {
            "domain_id": 1, "domain": domain, "token": 7, "expires_at": self.clock.now() + timedelta(minutes=1),
            "delay_s": 0.0, "next_allowed_at": self.clock.now(), "taken_over": False, "circuit": CircuitState(),
            "robots": cast(tuple[RobotsState, ...], ()), "attempts": (),
        }  # fmt: skip
        return DomainWorker(DomainLease(**{**facts, **lease}), self.crew, lease_until=float("inf"))


def attempt(url: str, **more: Any) -> Attempt:
    """Return an attempt on an address."""
    facts: dict[str, Any] = {"id": 1, "page_id": 1, "domain_id": 1, "kind": UrlKind.PAGE, "depth": 0, "number": 1,
                             "priority": 3}  # fmt: skip
    return Attempt(url=url, url_hash=parse(url).hash64, **{**facts, **more})


def make_bed(answers: Mapping[str, Line | list[Line]], borrow: Callable[[str], Pace | LeaseRefusal] | None = None,
             settings: Settings | None = None, **plan: Any) -> Bed:  # fmt: skip
    """Return a crew whose web gives these answers; `plan` says more about the crawl."""
    clock = FakeClock()
    web = Web(clock, answers)
    asked = CrawlPlan(**{"seeds": ("http://a.test/",), "contact": "a@example.org", "delay_s": 0.0, **plan})
    crew = CrawlContext(
        plan=asked, settings=settings or Settings(), clock=clock, client=web, progress=CrawlProgress(clock),
        credentials=Credentials(asked), random=Random(1), scope=asked.build_scope(),
        originals=Originals(cast(Any, None), Path()), processes=1, is_private=lambda _ip: True,
    )  # fmt: skip
    captures: list[FetchedPage] = []
    crew.hand_over = captures.append
    landed: list[Url] = []
    crew.landed = landed.append

    @asynccontextmanager
    async def lend(domain: str) -> AsyncIterator[Pace | LeaseRefusal]:
        yield borrow(domain) if borrow is not None else LeaseRefusal.HELD

    async def recall(origin: str) -> RobotsState | None:
        return bed.recalled.get(origin)

    crew.borrow = lend
    crew.recall_robots = recall
    bed = Bed(clock, web, crew, captures)
    return bed
