"""Extracts the stored signals from a response, then drops its body. Only text and HTML have signals."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from threading import Event, Lock

from holdfast import log
from holdfast.crawl.outcomes import PageUnderWay, StoredExchange
from holdfast.crawl.page_reading import DocumentFacts
from holdfast.crawl.signal_pages import keywords_of
from holdfast.crawl.storing import Payload, read_payload
from holdfast.errors import Unavailable
from holdfast.frontier import Frontier, KnownSignals
from holdfast.parse.charset import BodyForm
from holdfast.types import Attempt, Fetched, FetchFailed, Original, Outcome, ParsedPage, Signals, UrlKind, Visit
from holdfast.urls import DEFAULT, Base, Normalisation, hash64, parse
from holdfast.urls.links import edges_of, group_hash
from holdfast.warc.payload import HttpHead, parse_head

# Number of remembered pages (about 200 bytes each). A forgotten one is requested without a condition.
_MOST = 200_000


class SignalHistory:
    """Filled on the database thread for leased attempts; read from any thread."""

    def __init__(self, frontier: Frontier) -> None:
        self._frontier = frontier
        self._known: dict[int, KnownSignals] = {}

    def learn(self, attempts: Iterable[Attempt]) -> None:
        pages = [attempt.page_id for attempt in attempts if attempt.kind is UrlKind.PAGE]
        if not pages:
            return
        if len(self._known) + len(pages) > _MOST:
            self._known.clear()
        self._known.update(self._frontier.known_signals(pages))

    def readable(self, attempt: Attempt) -> bool:
        """Return whether a 304 would suffice: all links are stored, and no crawl has seen the page change since."""
        known = self._known.get(attempt.page_id)
        if known is None or not known.has_all_links:
            return False
        return attempt.original is None or attempt.original.captured_at <= known.fetched_at

    def load(self, _original: Original) -> tuple[HttpHead, bytes] | None:
        return None

    def take(self, attempt: Attempt) -> KnownSignals | None:
        """Remove and return the known signals of a page."""
        return self._known.pop(attempt.page_id, None)


_log = log.get()
_AGAIN_S = 1.0
_TAKEN = (BodyForm.HTML, BodyForm.TEXT)
UNSUPPORTED = "unsupported_type"


class SignalStorage:
    """Stores no bodies: a response is parsed and dropped. `links_of` reads a page's links from the database."""

    def __init__(
        self,
        history: SignalHistory,
        links_of: Callable[[int], tuple[str, ...]],
        *,
        limit: int,
        allow_ports: Iterable[int] = (),
    ) -> None:
        self._history, self._links_of, self._limit = history, links_of, limit
        # Use only the ports of the crawl: two crawls with different normalisation must give a group the same hash.
        self._policy = replace(DEFAULT, allow_ports=frozenset(allow_ports))
        self._stop = Event()
        self.no_space, self.storing = Event(), Lock()

    def store(self, hop: Fetched, page: PageUnderWay, payload: Payload | None = None) -> StoredExchange:
        """Return the parsed response; for an unchanged page, its links."""
        head = parse_head(hop.response_head)
        data, digest = payload or read_payload(head, hop, self._limit)
        attempt = page.attempt
        recalled = self._recall(attempt) if hop.status == 304 and attempt is not None else None
        return StoredExchange(ref=None, head=head, payload=data, payload_digest=digest, recalled=recalled)

    def _recall(self, attempt: Attempt) -> tuple[str, ...]:
        while True:
            try:
                return self._links_of(attempt.page_id)
            except Unavailable as exc:
                _log.error("crawl.recall_later", message=str(exc))
                if self._stop.wait(_AGAIN_S):
                    raise

    def store_evidence(self, failure: FetchFailed) -> None:
        """Do nothing: bodies are not stored here."""

    def rotate(self) -> None:
        """Do nothing: there is no file."""

    def stop(self) -> None:
        self._stop.set()

    def judged(self, page: PageUnderWay, attempt: Attempt, reading: DocumentFacts) -> PageUnderWay:
        """Return the page with its final outcome: anything but HTML and text is excluded."""
        is_page = attempt.kind is UrlKind.PAGE and page.outcome is Outcome.SUCCESS and page.redirected_to is None
        if not is_page or reading.form is None or reading.form in _TAKEN:
            return page
        return replace(page, outcome=Outcome.EXCLUDED, reason=UNSUPPORTED)

    def kept(self, visit: Visit, page: PageUnderWay, reading: DocumentFacts) -> Visit:
        """Return the visit with its signals, unless the page is unchanged."""
        if visit.attempt.kind is not UrlKind.PAGE:
            return visit
        known, parsed = self._history.take(visit.attempt), reading.page
        if visit.outcome is not Outcome.SUCCESS or (parsed is None and visit.status != 304):
            return visit
        if parsed is None:
            return replace(visit, content_hash=known.content_hash if known is not None else None)
        if known is not None and known.content_hash == visit.content_hash:
            return replace(visit, reason="unchanged" if visit.reason == "ok" else visit.reason)
        return replace(visit, signals=signals_of(page.hops[-1].url, parsed, reading, self._policy))


def signals_of(address: str, page: ParsedPage, reading: DocumentFacts, policy: Normalisation = DEFAULT) -> Signals:
    """Return the signals stored for a page. A page with `noindex` has no keywords.

    Of several links to one path only the first is stored, and none to the page's own path.
    """
    url = parse(address, policy)
    own_hash = hash64(url.group)
    resolved = Base(url, page.base, policy).resolve([link.url for link in reading.links]).links
    leading = ((to, link) for link in resolved if (to := group_hash(link)) != own_hash)
    return Signals(
        description=page.description,
        words=() if page.noindex else keywords_of((page.title, page.description, page.text)),
        from_hash=own_hash,
        links=tuple((to, link.fetch) for to, link in edges_of(leading).items()),
        # Count all of them: send a conditional request only if all are stored, because they replace the body's links.
        links_count=sum(link.hash64 != url.hash64 for link in resolved),
    )
