"""From an answer to the signals that are kept of it; then its body is dropped. Only text and HTML have any."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import Event

from holdfast import log
from holdfast.crawl.crew import Capture
from holdfast.crawl.filing import Filed, Payload, read_payload
from holdfast.crawl.reading import Reading
from holdfast.crawl.signals.keywords import keywords_of
from holdfast.crawl.signals.memory import SignalMemory
from holdfast.errors import Unavailable
from holdfast.parse.sniff import Form
from holdfast.types import Attempt, Fetched, FetchFailed, Kind, Outcome, ParsedPage, Signals, Visit
from holdfast.urls import Base, hash64, parse
from holdfast.urls.edges import edges_of, group_hash
from holdfast.warc.payload import parse_head

__all__ = ["SignalMemory", "SignalStorage", "signals_of"]

_log = log.get()
_AGAIN_S = 1.0
_TAKEN = (Form.HTML, Form.TEXT)
UNSUPPORTED = "unsupported_type"


class SignalStorage:
    """Files nothing: an answer's body is read and let go. `links_of` asks the database where a page leads."""

    def __init__(self, memory: SignalMemory, links_of: Callable[[int], tuple[str, ...]], *, limit: int) -> None:
        self._memory, self._links_of, self._limit = memory, links_of, limit
        self._stop = Event()
        self.no_space = Event()

    def read(self, hop: Fetched) -> Payload:
        """Return a body after transfer decoding."""
        return read_payload(parse_head(hop.response_head), hop, self._limit)

    def file(self, hop: Fetched, capture: Capture, payload: Payload | None = None) -> Filed:
        """Return the answer as it is read; of a page that has not changed, where it leads."""
        head = parse_head(hop.response_head)
        data, digest = payload or read_payload(head, hop, self._limit)
        attempt = capture.attempt
        recalled = self._recall(attempt) if hop.status == 304 and attempt is not None else None
        return Filed(ref=None, head=head, payload=data, payload_digest=digest, recalled=recalled)

    def _recall(self, attempt: Attempt) -> tuple[str, ...]:
        while True:
            try:
                return self._links_of(attempt.page_id)
            except Unavailable as exc:
                _log.error("crawl.recall_later", message=str(exc))
                if self._stop.wait(_AGAIN_S):
                    raise

    def note(self, failure: FetchFailed) -> None:
        """Keep nothing: bodies are not kept here."""

    def rotate(self) -> None:
        """Do nothing: there is no file."""

    def stop(self) -> None:
        """Give up waiting for the database."""
        self._stop.set()

    def judged(self, capture: Capture, attempt: Attempt, reading: Reading) -> Capture:
        """Return the capture as it ends: what is neither HTML nor text is excluded."""
        is_page = attempt.kind is Kind.PAGE and capture.outcome is Outcome.SUCCESS and capture.redirected_to is None
        if not is_page or reading.form is None or reading.form in _TAKEN:
            return capture
        return replace(capture, outcome=Outcome.EXCLUDED, reason=UNSUPPORTED)

    def kept(self, visit: Visit, capture: Capture, reading: Reading) -> Visit:
        """Return the visit with its signals, unless the page is as it was."""
        if visit.attempt.kind is not Kind.PAGE:
            return visit
        known, page = self._memory.take(visit.attempt), reading.page
        if visit.outcome is not Outcome.SUCCESS or (page is None and visit.status != 304):
            return visit
        if page is None:
            return replace(visit, content_hash=known.content_hash if known is not None else None)
        if known is not None and known.content_hash == visit.content_hash:
            return replace(visit, reason="unchanged" if visit.reason == "ok" else visit.reason)
        return replace(visit, signals=signals_of(capture.hops[-1].url, page, reading))


def signals_of(address: str, page: ParsedPage, reading: Reading) -> Signals:
    """Return what is kept of a page. One that asks not to be indexed has no keywords.

    Of links to one path the first is kept, and none to its own. All are counted: a 304 is asked for only where all are
    kept, because they lead on in the place of the body.
    """
    url = parse(address)
    own_hash = hash64(url.group)
    resolved = Base(url.fetch, page.base).resolve([link.url for link in reading.links]).links
    leading = ((to, link) for link in resolved if (to := group_hash(link)) != own_hash)
    return Signals(
        description=page.description,
        words=() if page.noindex else keywords_of((page.title, page.description, page.text)),
        from_hash=own_hash, links=tuple((to, link.fetch) for to, link in edges_of(leading).items()),
        links_count=sum(link.hash64 != url.hash64 for link in resolved),
    )  # fmt: skip
