"""Classifies indexed captures in small batches by comparing them with other captures of the site and the page.

1. Read a batch of captures from `noise_queue`, and find suspicious words in each (`words`).
2. In a short transaction: store the suspects, compare each with the site's others, and write the result.

Insufficient evidence leaves a suspect as it is: it is judged again when a later capture has the same text at
another URL, or shows the page. Any number of processes may do this; a killed one leaves the rest queued.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import field
from typing import Final
from urllib.parse import urlsplit

from sqlalchemy.orm import Session

from holdfast import log
from holdfast.clock import Clock
from holdfast.db.engine import Database
from holdfast.noise import queries
from holdfast.noise.labels import Finding, write_findings
from holdfast.noise.queries import JudgedCapture, SuspectRow
from holdfast.noise.words import (
    MOST_CHARS,
    MOST_HEADED_CHARS,
    Candidate,
    NoiseKind,
    PageFacts,
    called_alike,
    is_index,
    kinds_named,
    leaf_of,
    likeness,
    site_of,
    suspect,
    suspect_home_text,
    suspect_redirect,
    word_count,
)
from holdfast.urls.address import url_key
from holdfast.values import dataclass
from holdfast.withdrawals.recomparing import lock_changes

# Captures per transaction: on a site with only noise each takes a millisecond; in smaller batches more.
_BATCH: Final = 200
# Earlier suspects that one batch examines again.
_AGAIN: Final = 200
# Captures of a page that are examined on either side of a suspect.
_AROUND: Final = 5
# A page that was this many times as long, and had at least this many characters, was not merely edited.
_SHRUNK: Final = 4
_REAL_CHARS: Final = 400
_HOMES: Final = 3
_FEW_WORDS: Final = 4
_HEADINGS: Final = 4
# Text length of a redirect.
NO_TEXT: Final = -1
_BY_STATUS: Final = {"404": NoiseKind.SOFT_404, "410": NoiseKind.SOFT_404, "401": NoiseKind.LOGIN_WALL}

_log = log.get(room="noise")


@dataclass(slots=True, kw_only=True)
class Judged:
    captures: int = 0
    marked: Counter[str] = field(default_factory=Counter)
    cleared: int = 0
    finished: bool = False


def judge_pending(
    database: Database, clock: Clock, *, most: int | None = None, is_stopping: Callable[[], bool] = lambda: False
) -> Judged:
    """Classify pending captures, at most about `most`; finished work survives an interruption."""
    done = Judged()
    place = 0
    while not is_stopping() and (most is None or done.captures < most):
        step = _step(database, clock, done, place=place)
        if step is None and place == 0:
            done.finished = True
            break
        # Concurrent processes would read the same captures, all but one of them in vain.
        place = 0 if step is None else place if step else place + 1
    if done.marked or done.cleared:
        _log.info("noise.judged", captures=done.captures, marked=dict(done.marked), cleared=done.cleared)
    return done


def _step(database: Database, clock: Clock, done: Judged, *, place: int) -> bool | None:
    """Classify one batch; return False if another process has classified it, None if nothing is pending there."""
    with database.read() as session:
        turn = queries.next_turn(session, place=place)
        if turn is None:
            return None
        _, first, last = turn
        batch = queries.captures_between(session, first, last, limit=_BATCH)
        suspects = _suspects(session, batch)
    until = batch[-1].id if len(batch) == _BATCH else last
    with database.write() as session:
        # Lock first: comparisons of captures depend on which of them are noise.
        lock_changes(session)
        if not queries.take(session, turn, until=until):
            return False
        labels = queries.labels_on(session, ((one.id, one.page_key) for one in batch))
        kept = [row for row in suspects if row.snapshot_id not in labels]
        queries.replace_suspects(session, first, until, kept)
        queries.drop_strays(session, first, until)
        before = {one.id for one in batch if one.noise is not None}
        judged = _Neighbourhood(session).judge(batch, kept)
        # Nearly all captures still show their page: do not read those again.
        found = {
            one: finding for one, finding in judged.items() if finding is not None or one in before or one in labels
        }
        marked, cleared = write_findings(session, found, labels, now=clock.now())
        done.captures += len(batch)
        done.marked.update(marked)
        done.cleared += cleared
    return True


def _suspects(session: Session, batch: list[JudgedCapture]) -> list[SuspectRow]:
    short = {one.id: one for one in batch if one.document_id is not None and _is_looked_at(one)}
    texts = queries.texts(session, {one.document_id for one in short.values() if one.document_id is not None})
    homes, errors = _Homes(session), _Errors(session)
    found = [
        row for one in short.values() if (row := errors.kept(one, texts.get(one.document_id or 0, ""))) is not None
    ]
    for one in batch:
        if one.redirect_to is not None and not one.shows:
            led = suspect_redirect(one.url, one.redirect_to)
            if led is not None:
                found.append(_row(one, *led))
        elif one.document_id is not None and one.shows:
            text = texts.get(one.document_id, "") if one.id in short else None
            row = None if text is None else _of_words(one, text, errors, homes)
            if (row := row or _of_home(one, homes)) is not None:
                found.append(row)
    return found


def _is_looked_at(one: JudgedCapture) -> bool:
    chars = one.chars or 0
    return chars <= MOST_CHARS or (chars <= MOST_HEADED_CHARS and bool(kinds_named(one.title, _headings(one.headings))))


def _headings(kept: str | None) -> list[str]:
    return (kept or "").split("\n", _HEADINGS)[:_HEADINGS]


def _facts(one: JudgedCapture, text: str) -> PageFacts:
    marks = (one.details or {}).get("marks") or ()
    return PageFacts(one.url, one.title, _headings(one.headings), text, frozenset(map(str, marks)))


def _has_words(one: JudgedCapture, text: str) -> bool:
    # A few words can match by chance: an empty page equals every other one.
    return word_count(f"{one.title or ''} {text}") >= _FEW_WORDS


class _Errors:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._new: dict[tuple[int, int], SuspectRow] = {}
        self._sites: dict[int, bool] = {}

    def kept(self, one: JudgedCapture, text: str) -> SuspectRow | None:
        if not one.is_error or not _has_words(one, text):
            return None
        row = _row(one, None, likeness(_facts(one, text)))
        # One capture per text is enough: a site may have a million URLs with the same text.
        if (row.site, row.likeness) in self._new or queries.is_known_error(self._session, row):
            return None
        self._new[row.site, row.likeness] = row
        return row

    def known_at(self, site: int) -> bool:
        if site not in self._sites:
            self._sites[site] = queries.has_errors(self._session, site)
        return self._sites[site] or any(key[0] == site for key in self._new)

    def status(self, site: int, like: int, leaf: int) -> str | None:
        near = self._new.get((site, like))
        if near is not None and near.leaf != leaf:
            return near.said
        return queries.error_status(self._session, site, like, leaf=leaf)


class _Homes:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._documents: dict[str, list[int]] = {}

    def shows(self, one: JudgedCapture) -> bool:
        split = urlsplit(one.url)
        home = url_key(f"{split.scheme}://{split.netloc}/")
        if home not in self._documents:
            self._documents[home] = queries.documents_at(self._session, home, limit=_HOMES)
        return one.document_id in self._documents[home]


def _of_words(one: JudgedCapture, text: str, errors: _Errors, homes: _Homes) -> SuspectRow | None:
    facts, site = _facts(one, text), site_of(one.url)
    said = suspect(facts)
    if said is not None:
        return _row(one, said, likeness(facts))
    if not errors.known_at(site) or not _has_words(one, text):
        return None
    like = likeness(facts)
    status = errors.status(site, like, leaf_of(one.url))
    # Sites rendered by scripts send the text of their start page with status 404 for every URL that is not a file.
    if status is None or homes.shows(one):
        return None
    kind = _BY_STATUS.get(status, NoiseKind.BLOCK_PAGE)
    proof = f"the site gave the same text the status {status} elsewhere"
    return _row(one, Candidate(kind, "it is short", proof, 1), like)


def _of_home(one: JudgedCapture, homes: _Homes) -> SuspectRow | None:
    split = urlsplit(one.url)
    said = suspect_home_text((one.chars or 0) // 6)
    if said is None or not one.shows or is_index(split.path) or split.query:
        return None
    return _row(one, said, site_of(one.url)) if homes.shows(one) else None


def _row(one: JudgedCapture, said: Candidate | None, like: int) -> SuspectRow:
    return SuspectRow(
        snapshot_id=one.id,
        site=site_of(one.url),
        likeness=like,
        leaf=leaf_of(one.url),
        url_hash=one.url_hash,
        kind=None if said is None else said.kind.value,
        said=str(one.status) if said is None else said.said.replace("\0", ""),
        proof=None if said is None else said.proof,
        least=0 if said is None else said.least,
        chars=NO_TEXT if one.redirect_to is not None and not one.shows else one.chars or 0,
    )


class _Neighbourhood:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._alike: dict[tuple[int, int, str | None], int] = {}
        self._errors: dict[tuple[int, int, int], str | None] = {}

    def judge(self, batch: list[JudgedCapture], suspects: list[SuspectRow]) -> dict[int, Finding | None]:
        found: dict[int, Finding | None] = {one.id: None for one in batch}
        own = {row.snapshot_id: row for row in suspects if row.kind is not None}
        found |= {row.snapshot_id: self._finding(row) for row in own.values()}
        again: dict[int, SuspectRow] = {}
        # The first captures with a text were not enough evidence by themselves; each text is queried once.
        proved = {(row.site, row.likeness): row for row in own.values() if found[row.snapshot_id] is not None}
        for row in proved.values():
            again |= {one.snapshot_id: one for one in queries.unmarked_alike(self._session, row, limit=_AGAIN)}
        # A capture that shows the page reveals what a suspect of the same address lacks.
        shown = {one.url_hash for one in batch if one.shows and one.is_page and one.id not in own}
        if shown:
            again |= {one.snapshot_id: one for one in queries.unmarked_of_pages(self._session, shown, limit=_AGAIN)}
        for snapshot_id, row in again.items():
            if snapshot_id not in found and (finding := self._finding(row)) is not None:
                found[snapshot_id] = finding
        return found

    def _finding(self, row: SuspectRow) -> Finding | None:
        proof = row.proof or self._same_elsewhere(row) or self._shrunk(row)
        return None if proof is None or row.kind is None else (row.kind, f"{row.said}; {proof}")

    def _same_elsewhere(self, row: SuspectRow) -> str | None:
        wrong = row.site, row.likeness, row.leaf
        if wrong not in self._errors:
            self._errors[wrong] = queries.error_status(self._session, row.site, row.likeness, leaf=row.leaf)
        if self._errors[wrong] is not None:
            return f"the site gave the same text the status {self._errors[wrong]} elsewhere"
        text = row.site, row.likeness, row.kind
        if text not in self._alike:
            self._alike[text] = queries.addresses_alike(self._session, row, most=row.least)
        # Do not state their number: some of them may be withdrawn.
        same = f"at least {row.least} addresses of the site do the same"
        return same if self._alike[text] >= row.least else None

    def _shrunk(self, row: SuspectRow) -> str | None:
        if row.chars == NO_TEXT:
            return None
        least = max(_REAL_CHARS, _SHRUNK * row.chars)
        around = queries.shown_around(self._session, row, each=_AROUND)
        whole = [(title, _headings(headings)) for chars, title, headings in around if chars >= least]
        if not whole:
            return None
        title, headings = queries.head_of(self._session, row.snapshot_id)
        own = title, _headings(headings)
        # A page with its own name may itself say so: "This statement was withdrawn and is no longer available."
        is_other = row.kind in kinds_named(*own) or not any(called_alike(own, one) for one in whole)
        return "other captures of the page have far more text" if is_other else None
