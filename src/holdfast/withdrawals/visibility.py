"""The one predicate by which every reader filters captures: takedowns, and sources that are hidden from the
viewer (`viewers`). No other file compares either.

A takedown names a snapshot by its id, or a page by its key (`holdfast.urls.page_key`): the page's captures are
hidden under every spelling, present and future. A revisit shows the body of another capture, with its title and
its words: it is hidden with that one. Each clause is a seek in the partial index of takedowns in force.

A source is public or for members. The viewer is evaluated when a statement runs, not when it is built: one
statement serves all viewers, and a change of a source applies in every process from its commit on. A viewer who
may see everything, and everybody if no source is for members, pays for one lookup in an empty index per
statement. A revisit of a members' capture is for members too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    Boolean,
    ColumnElement,
    Select,
    String,
    and_,
    bindparam,
    cast,
    exists,
    func,
    literal_column,
    not_,
    or_,
    select,
    type_coerce,
    union,
)
from sqlalchemy.orm import Session, aliased

from holdfast.db.models import Execution, Job, LinkText, PageGroup, SignalPage, Snapshot, Source, Withdrawal
from holdfast.db.prepared import PreparedSelect
from holdfast.db.raw import Transaction
from holdfast.errors import NotFound
from holdfast.withdrawals.viewers import PUBLIC, Visibility, seen_by, viewer

_IN_FORCE = Withdrawal.lifted_at.is_(None)
_AT_ONCE = 500


def is_withdrawn(capture: Any = Snapshot) -> ColumnElement[bool]:
    """Return the clause, over Snapshot or an alias, for captures under takedown: itself, its page, or the capture
    that holds its body.
    """
    return or_(_by_id(capture.id), _by_page(capture), *_with_original(capture.original_id))


# Evaluate it at each execution: a statement that was built for one viewer then works for all.
_CONFINED = bindparam("viewer_confined", type_=Boolean, callable_=lambda: not viewer().sees_members)
_GRANTED = bindparam("viewer_granted", type_=BigInteger, callable_=lambda: viewer().granted or 0)
# Use an alias: the outer query may read sources itself. Write the value as text, like the partial index.
_MEMBERS = aliased(Source, name="for_members")
_FOR_MEMBERS = _MEMBERS.visibility == literal_column(f"'{Visibility.MEMBERS.value}'")
_HIDDEN_SOURCES = select(_MEMBERS.id).where(_CONFINED, _FOR_MEMBERS, _MEMBERS.id != _GRANTED)


def visible_source(source_id: Any) -> ColumnElement[bool]:
    """Return the clause, over a source id, for sources visible to the viewer."""
    return source_id.not_in(_HIDDEN_SOURCES)  # type: ignore[no-any-return]


def public_source(source_id: Any) -> ColumnElement[bool]:
    """Return the clause, over a source id, for public sources only: for data shared by all viewers."""
    return source_id.not_in(select(_MEMBERS.id).where(_FOR_MEMBERS))  # type: ignore[no-any-return]


def for_members(capture: Any = Snapshot) -> ColumnElement[bool]:
    """Return the clause, over Snapshot or an alias, for captures that are not public, the same for every viewer:
    captures of members' sources, and revisits whose body one of them holds.
    """
    original = aliased(Snapshot)
    revisited = original.id == capture.original_id, capture.original_id.is_not(None)  # as in `_of_hidden_original`
    borrowed = exists().where(*revisited, ~public_source(original.source_id))
    return or_(~public_source(capture.source_id), borrowed)


def _of_hidden_original(original_id: Any) -> ColumnElement[bool]:
    original = aliased(Snapshot)
    # Put the condition on the revisit inside, as in `_with_original`: otherwise PostgreSQL would hash all captures of
    # hidden sources.
    revisited = original.id == original_id, original_id.is_not(None)
    hidden = exists().where(*revisited, original.source_id.in_(_HIDDEN_SOURCES))
    # This takes a seek per revisit: do it only if there is such a source.
    return and_(_HIDDEN_SOURCES.exists(), hidden)


def visible(capture: Any = Snapshot) -> tuple[ColumnElement[bool], ...]:
    """Return the clauses, over Snapshot or an alias, for captures that the viewer may see."""
    return _visible_snapshot() if capture is Snapshot else _visible(capture)


def _visible(capture: Any) -> tuple[ColumnElement[bool], ...]:
    return (
        ~_by_id(capture.id),
        ~_by_page(capture),
        *(not_(clause) for clause in _with_original(capture.original_id)),
        visible_source(capture.source_id),
        ~_of_hidden_original(capture.original_id),
    )


@cache
def _visible_snapshot() -> tuple[ColumnElement[bool], ...]:
    # Build it once: that takes longer than running most statements that contain it.
    return _visible(Snapshot)


def hidden_sources(session: Session) -> tuple[int, ...]:
    return tuple(session.scalars(_HIDDEN_SOURCES.order_by(_MEMBERS.id)))


def may_see(source: Source) -> bool:
    looking = viewer()
    return looking.sees_members or source.visibility != Visibility.MEMBERS or source.id == looking.granted


def members_source(session: Session, source_id: int, original_id: int | None) -> int | None:
    """Return the members' source of a capture, or of the original that holds its body; None if it is public.

    Also None, without a query, for viewers who are not members: they see no other captures.
    """
    if not viewer().sees_members:
        return None
    original = select(Snapshot.source_id).where(Snapshot.id == original_id).scalar_subquery()
    found = select(Source.id).where(
        or_(Source.id == source_id, Source.id == original), Source.visibility == Visibility.MEMBERS.value
    )
    # Prefer its own id to that of its body.
    return session.scalar(found.order_by(Source.id != source_id).limit(1))


def members_among(session: Session, ids: Iterable[int]) -> set[int]:
    """Return which of these captures are not public; empty, without a query, for viewers who are not members."""
    wanted, found = sorted(set(ids)), set[int]()
    for at in range(0, len(wanted) if viewer().sees_members else 0, _AT_ONCE):
        part = select(Snapshot.id).where(Snapshot.id.in_(wanted[at : at + _AT_ONCE]), for_members())
        found.update(session.scalars(part))
    return found


def is_any_for_members(session: Session) -> bool:
    with seen_by(PUBLIC):
        return session.scalar(_HIDDEN_SOURCES.limit(1)) is not None


def is_for_members(source: Source) -> bool:
    return source.visibility == Visibility.MEMBERS.value


def visible_run(execution_id: Any) -> ColumnElement[bool]:
    """Return the clause, over an execution id, for executions of sources visible to the viewer."""
    runs = select(Execution.id).join(Job, Job.id == Execution.job_id).where(Job.source_id.in_(_HIDDEN_SOURCES))
    return execution_id.not_in(runs)  # type: ignore[no-any-return]


class SnapshotNotFound(NotFound):
    """The snapshot does not exist or is hidden; the answer does not reveal which."""

    code = "snapshot_not_found"


@cache
def _one_visible() -> Select[*tuple[Any, ...]]:
    # Build it once: every replayed page runs this, and building the statement takes longer than running it.
    return select(Snapshot).where(Snapshot.id == bindparam("number", type_=Snapshot.id.type), *visible())


def visible_snapshot(session: Session, snapshot_id: int) -> Snapshot:
    """Return one snapshot; raise SnapshotNotFound if it does not exist or is hidden."""
    # Databases raise their own error for a number that fits no column; a URL may contain any.
    if 0 <= snapshot_id < 1 << 63:
        found: Snapshot | None = session.scalars(_one_visible(), {"number": snapshot_id}).one_or_none()
        if found is not None:
            return found
    raise no_snapshot(snapshot_id)


def no_snapshot(snapshot_id: int) -> SnapshotNotFound:
    return SnapshotNotFound(f"there is no snapshot {snapshot_id}; find one with: holdfast search WORDS")


def visible_snapshots(session: Session, ids: Iterable[int]) -> dict[int, Snapshot]:
    wanted, found = sorted(set(ids)), dict[int, Snapshot]()
    for at in range(0, len(wanted), _AT_ONCE):
        part = select(Snapshot).where(Snapshot.id.in_(wanted[at : at + _AT_ONCE]), *visible())
        found.update((row.id, row) for row in session.scalars(part))
    return found


def visible_change(change: Any) -> tuple[ColumnElement[bool], ...]:
    """Return the clauses, over Change or something with its columns, for changes visible on both sides."""
    # Both captures of a change are of the same page, so one is checked. The check takes 4 us a change on SQLite, 40 ms
    # for a whole list, so it runs only if a page takedown is in force.
    here = aliased(Snapshot)
    hidden_page = exists().where(here.id == change.to_snapshot_id, _by_page(here))
    revisit, original = aliased(Snapshot), aliased(Snapshot)
    sides = revisit.id.in_((change.to_snapshot_id, change.from_snapshot_id))
    withdrawn_body = (
        exists()
        .where(sides, original.id == revisit.original_id, or_(_by_id(original.id), _by_page(original)))
        .correlate_except(revisit, original)
    )
    hidden_body = (
        exists()
        .where(sides, original.id == revisit.original_id, original.source_id.in_(_HIDDEN_SOURCES))
        .correlate_except(revisit, original)
    )
    return (
        ~_by_id(change.to_snapshot_id),
        ~_by_id(change.from_snapshot_id),
        ~and_(_any_page(), hidden_page),
        ~and_(or_(_any_page(), _any_capture()), withdrawn_body),
        visible_source(change.source_id),
        ~and_(_HIDDEN_SOURCES.exists(), hidden_body),
    )


def visible_page(page_id: Any) -> ColumnElement[bool]:
    """Return the clause for signals-only pages that are visible."""
    here = aliased(SignalPage)  # the outer query may read the same table
    return ~exists().where(here.page_id == page_id, or_(_by_key(here.page_key), here.source_id.in_(_HIDDEN_SOURCES)))


# The same predicates as text, for code that writes SQL itself. They are compiled on first use.
def _text(statement: Select[*tuple[Any, ...]] | ColumnElement[bool]) -> str:
    return str(statement.compile(compile_kwargs={"literal_binds": True}))


@cache
def any_withdrawn_sql() -> str:
    """Return a statement that finds a row if any takedown is in force."""
    return _text(select(literal_column("1")).where(or_(_any_page(), _any_capture())))


@cache
def any_unseen_sql() -> str:
    """Return a statement that finds a row if anything is not public."""
    return _text(select(literal_column("1")).where(or_(_any_page(), _any_capture(), exists().where(_FOR_MEMBERS))))


@cache
def unseen_sql(alias: str) -> str:
    """Return the clause, over an alias of `snapshots`, for captures that are not public: taken down, or of members."""
    capture = aliased(Snapshot, name=alias)
    unseen = or_(is_withdrawn(capture), for_members(capture))
    found: Select[*tuple[Any, ...]] = select(literal_column("1")).select_from(capture).where(unseen)
    return f"({_text(found).partition('WHERE ')[2]})"


@cache
def public_sql(source_id: str) -> str:
    """Return the clause, over a column with a source id, for public sources."""
    return f"({_text(public_source(literal_column(source_id)))})"


def withdrawn_keys(tx: Transaction, keys: Iterable[str]) -> set[str]:
    """Return which of these pages are taken down; for writers that use raw SQL."""
    wanted, found = sorted(set(keys)), set[str]()
    for at in range(0, len(wanted) if wanted and tx.execute(any_withdrawn_sql()) else 0, _AT_ONCE):
        part = wanted[at : at + _AT_ONCE]
        rows = tx.execute(
            "SELECT url_key FROM withdrawals WHERE lifted_at IS NULL"  # noqa: S608 - question marks
            f" AND url_key IN ({', '.join('?' * len(part))})",
            part,
        )
        found.update(str(row[0]) for row in rows)
    return found


def _by_id(snapshot_id: Any) -> ColumnElement[bool]:
    return exists().where(_IN_FORCE, Withdrawal.snapshot_id == snapshot_id)


def _by_key(key: Any) -> ColumnElement[bool]:
    return exists().where(_IN_FORCE, Withdrawal.url_key == key)


def _by_page(capture: Any) -> ColumnElement[bool]:
    return _by_key(_key_of(capture))


def _key_of(capture: Any) -> ColumnElement[str]:
    return func.coalesce(capture.page_key, capture.url_key)


def _any_page() -> ColumnElement[bool]:
    return exists().where(_IN_FORCE, Withdrawal.url_key >= "")


def _any_capture() -> ColumnElement[bool]:
    return exists().where(_IN_FORCE, Withdrawal.snapshot_id >= 0)


def _with_original(original_id: Any) -> tuple[ColumnElement[bool], ...]:
    original = aliased(Snapshot)
    # Put the condition on the revisit inside: otherwise PostgreSQL would hash all captures of the archive.
    is_revisit = original_id.is_not(None)
    with_page = exists().where(original.id == original_id, is_revisit, _by_page(original))
    # Use two conditions, so that a planner turns the first into a join. This takes a seek per revisit: do it only if
    # any page is withdrawn.
    return _by_id(original_id), and_(_any_page(), with_page)


def withdrawn_captures(*columns: Any) -> tuple[Select[*tuple[Any, ...]], ...]:
    """Return queries that together find all captures under takedown, some twice: one seek per takedown in force."""
    wanted = select(*columns).select_from(Withdrawal).where(_IN_FORCE)
    # No index has the expression: the planner must go from the few withdrawals to the captures.
    key = Withdrawal.url_key.concat("")
    original = aliased(Snapshot)
    revisit = Snapshot.original_id == original.id + 0
    return (
        wanted.join(Snapshot, Snapshot.id == Withdrawal.snapshot_id + 0),
        wanted.join(Snapshot, Snapshot.url_key == key).where(Snapshot.page_key.is_(None)),
        wanted.join(Snapshot, Snapshot.page_key == key),
        wanted.join(Snapshot, Snapshot.original_id == Withdrawal.snapshot_id + 0),
        wanted.join(original, original.url_key == key).where(original.page_key.is_(None)).join(Snapshot, revisit),
        wanted.join(original, original.page_key == key).join(Snapshot, revisit),
    )


_DAY_MICROS = 86_400_000_000


def stand_ins(session: Session) -> list[int]:
    """Return the first visible captures of their source, address, day and body where the original first is taken down.

    Reads the equal captures of the same day for each capture that was taken down itself, or as a revisit of such a
    one: a takedown of a page hides all of them.
    """
    first, equal, alone = aliased(Snapshot), aliased(Snapshot), aliased(Withdrawal)
    day_on = type_coerce(first.captured_at, BigInteger) + _DAY_MICROS
    found: dict[int, int] = {}
    # As in `withdrawn_captures`, go from the few withdrawals to the captures.
    for concerned in (first.id == alone.snapshot_id + 0, first.original_id == alone.snapshot_id + 0):
        rows = session.execute(
            select(first.id, equal.id)
            .select_from(alone)
            .join(first, concerned)
            .join(equal, and_(equal.url_hash == first.url_hash, equal.captured_at >= first.captured_at))
            .where(
                alone.lifted_at.is_(None),
                alone.snapshot_id >= 0,
                first.canonical_id.is_(None),
                type_coerce(equal.captured_at, BigInteger) < day_on,
                equal.canonical_id == first.id,
                *visible(equal),
            )
            .order_by(first.id, equal.captured_at.desc(), equal.id.desc())
        )
        # The last one of each wins, which is the earliest.
        found.update((row[0], row[1]) for row in rows)
    return sorted(found.values())


def visible_address(url_hash: Any) -> ColumnElement[bool]:
    """Return the clause, over an address hash, for addresses without a capture under takedown."""
    return and_(*(url_hash.not_in(question) for question in withdrawn_captures(Snapshot.url_hash)))


def of_page(key: str, capture: Any = Snapshot) -> ColumnElement[bool]:
    """Return the clause, over Snapshot or an alias, for all captures of the page with this key."""
    return or_(and_(capture.url_key == key, capture.page_key.is_(None)), capture.page_key == key)


def bodies_in(snapshot_id: int | None, key: str | None, *, column: Any) -> Select[*tuple[Any, ...]]:
    """Return the query of a column (a name) of the revisits whose body is in a capture, or in one of a page."""
    revisit, original = aliased(Snapshot), aliased(Snapshot)
    wanted = select(getattr(revisit, column))
    if key is None:
        return wanted.where(revisit.original_id == snapshot_id)
    return wanted.join(original, original.id == revisit.original_id).where(of_page(key, original))


def concerned_by(snapshot_id: int | None, key: str | None) -> ColumnElement[bool]:
    """Return the clause over Snapshot for all captures that a takedown of a capture, or of a page, hides."""
    here = aliased(Snapshot)
    itself = here.id == snapshot_id if key is None else of_page(key, here)
    revisits = bodies_in(snapshot_id, key, column="id")
    # Compare ids: a planner scans the whole table for a condition that refers to another capture in one half.
    return Snapshot.id.in_(union(select(here.id).where(itself), revisits))


def withdrawals_of(session: Session, snapshot_id: int | None, key: str | None) -> list[Withdrawal]:
    by = Withdrawal.snapshot_id == snapshot_id if snapshot_id is not None else Withdrawal.url_key == key
    return list(session.scalars(select(Withdrawal).where(_IN_FORCE, by).order_by(Withdrawal.id)))


def withdrawals_among_captures(session: Session, *, url_hash: int, limit: int) -> list[Withdrawal]:
    """Return the takedowns in force that hide captures of an address, also as revisits, the oldest first."""
    return _hiding(session, Snapshot.url_hash == url_hash, limit=limit)


def withdrawal_over(session: Session, snapshot_id: int) -> Withdrawal | None:
    """Return the takedown that hides a capture: its own, its page's, or that of the capture with its body."""
    return next(iter(_hiding(session, Snapshot.id == snapshot_id, limit=1)), None)


def _hiding(session: Session, which: ColumnElement[bool], *, limit: int) -> list[Withdrawal]:
    original = aliased(Snapshot)
    few = select(Withdrawal.id).select_from(Snapshot)
    borrowed = few.join(original, original.id == Snapshot.original_id)
    # The conditions of `is_withdrawn`, each with one seek per capture.
    found = union(
        few.join(Withdrawal, Withdrawal.snapshot_id == Snapshot.id).where(_IN_FORCE, which),
        few.join(Withdrawal, Withdrawal.url_key == _key_of(Snapshot)).where(_IN_FORCE, which),
        few.join(Withdrawal, Withdrawal.snapshot_id == Snapshot.original_id).where(_IN_FORCE, which),
        borrowed.join(Withdrawal, Withdrawal.url_key == _key_of(original)).where(_IN_FORCE, which),
    )
    wanted = select(Withdrawal).where(Withdrawal.id.in_(found)).order_by(Withdrawal.id).limit(limit)
    return list(session.scalars(wanted))


def count_withdrawn(session: Session, *, url_hash: int, most: int) -> int:
    """Return how many captures of an address are hidden by any takedown, counting at most `most`."""
    hidden = select(Snapshot.id).where(Snapshot.url_hash == url_hash, is_withdrawn()).limit(most).subquery()
    return session.scalar(select(func.count()).select_from(hidden)) or 0


def withdrawals_in_force(session: Session) -> list[Withdrawal]:
    """Return all takedowns in force, oldest first."""
    return list(session.scalars(select(Withdrawal).where(_IN_FORCE).order_by(Withdrawal.id)))


def is_known(session: Session, snapshot_id: int | None, key: str | None) -> bool:
    """Return whether a snapshot or a page ever had a takedown, including lifted ones."""
    by = Withdrawal.snapshot_id == snapshot_id if snapshot_id is not None else Withdrawal.url_key == key
    return session.scalar(select(Withdrawal.id).where(by).limit(1)) is not None


def withdrawn_among(session: Session, *, snapshots: Collection[int] = (), keys: Collection[str] = ()) -> set[int | str]:
    """Return which of these snapshots and pages (by key) are taken down themselves, or as revisits of such a capture;
    any number of them.
    """
    found: set[int | str] = set()
    numbers = sorted(snapshots)
    for at in range(0, len(numbers), _AT_ONCE):
        revisits = select(Snapshot.id).where(Snapshot.id.in_(numbers[at : at + _AT_ONCE]), Snapshot.original_id >= 0)
        found.update(session.scalars(revisits.where(or_(*_with_original(Snapshot.original_id)))))
    asked: tuple[tuple[Any, Collection[Any]], ...] = (Withdrawal.snapshot_id, snapshots), (Withdrawal.url_key, keys)
    for column, wanted in asked:
        ordered = sorted(wanted)
        for at in range(0, len(ordered), _AT_ONCE):
            some = ordered[at : at + _AT_ONCE]
            rows = session.scalars(select(column).where(_IN_FORCE, column.in_(some)))
            found.update(row for row in rows if row is not None)
    return found


def pages_taken_down(session: Session) -> set[str]:
    """Return the keys of pages that are taken down or have a capture under takedown."""
    hidden = select(Snapshot.url_key, Snapshot.page_key).join(Withdrawal, Withdrawal.snapshot_id == Snapshot.id)
    pages = session.scalars(select(Withdrawal.url_key).where(_IN_FORCE, Withdrawal.url_key.is_not(None)))
    return {page or key for key, page in session.execute(hidden.where(_IN_FORCE))}.union(filter(None, pages))


def is_any_withdrawn(session: Session) -> bool:
    for column in (Withdrawal.url_key, Withdrawal.snapshot_id):
        # Order them, so that the partial index of active withdrawals is read instead of the table with all lifted ones.
        found = select(Withdrawal.id).where(_IN_FORCE, column.is_not(None)).order_by(column)
        if session.scalar(found.limit(1)) is not None:
            return True
    return False


class Mark(NamedTuple):
    """State that determines what a viewer may see. It changes with every takedown, every lifting, and every change of
    a source that affects the viewer; the same for all viewers if no source is for members.
    """

    withdrawals: int
    last: int
    total: int
    """Of the takedowns in force: their number, last id, and sum of ids."""
    hidden: tuple[int, ...] = ()
    """The sources hidden from the viewer."""


# Count and last id alone do not suffice: PostgreSQL may commit a smaller id late, while another withdrawal is lifted.
_FIGURES = func.count(), func.max(Withdrawal.id), func.sum(Withdrawal.id)
_LISTED = _HIDDEN_SOURCES.with_only_columns(func.aggregate_strings(cast(_MEMBERS.id, String), ","))
# Use one statement for both: each search runs it.
_MARK = select(*_FIGURES, _LISTED.scalar_subquery()).where(_IN_FORCE)
VISIBILITY_MARK = PreparedSelect(_MARK)
"""Prepared form of the mark's query for frequent callers; the viewer is evaluated at each execution."""


def visibility_mark(session: Session) -> Mark:
    return _mark(*session.connection().execute(_MARK).one())


def prepared_mark(tx: Transaction, dialect: str) -> Mark:
    """Return the visibility mark over a raw connection."""
    return _mark(*VISIBILITY_MARK.rows(tx, dialect)[0])


def _mark(count: int, last: int | None, total: Any, hidden: str | None) -> Mark:
    return Mark(count, last or 0, int(total or 0), tuple(sorted(map(int, hidden.split(",")))) if hidden else ())


def originals_hidden(session: Session, ids: Iterable[int]) -> set[int]:
    """Return which of these captures are revisits whose body is in a capture of a source hidden from the viewer."""
    wanted, found = sorted(set(ids)), set[int]()
    for at in range(0, len(wanted), _AT_ONCE):
        part = select(Snapshot.id).where(Snapshot.id.in_(wanted[at : at + _AT_ONCE]))
        found.update(session.scalars(part.where(_of_hidden_original(Snapshot.original_id))))
    return found


def hidden_keys(session: Session, url_keys: Iterable[str], page_keys: Iterable[str]) -> set[int | str]:
    """Return which of these keys the viewer must not learn: of pages that are taken down, or whose captures all
    belong to sources hidden from the viewer.
    """
    keys, found = sorted(set(url_keys)), set[int | str]()
    for at in range(0, len(keys), _AT_ONCE):
        among = select(Snapshot.url_key).where(Snapshot.url_key.in_(keys[at : at + _AT_ONCE]))
        for key in session.scalars(among.where(Snapshot.source_id.in_(_HIDDEN_SOURCES)).distinct()).all():
            if session.scalar(select(Snapshot.id).where(Snapshot.url_key == key, *visible()).limit(1)) is None:
                found.add(key)
    return found | withdrawn_among(session, keys=set(page_keys))


def names_hidden_original(capture: Any = Snapshot) -> ColumnElement[bool]:
    """Return the clause for revisits that may name a capture hidden from the viewer."""
    return or_(capture.refers_to_url != capture.url, _of_hidden_original(capture.original_id))


# Figures that change with every withdrawal and every lifting, for a query with other figures. Count liftings: the time
# of the last one is from its machine's clock, and may precede that of another.
LAST_WITHDRAWALS = func.max(Withdrawal.id), func.count(Withdrawal.lifted_at)


def withdrawals_fingerprint(session: Session) -> str:
    """Return the mark of the takedowns in force as a text, for file names and fingerprints.

    The same for every viewer: data stored under it is made for everybody who may see its source, or is public.
    """
    with seen_by(PUBLIC):
        mark = visibility_mark(session)
    return "-".join(map(str, (mark.withdrawals, mark.last, mark.total, *mark.hidden)))


def any_snapshot(session: Session, snapshot_id: int) -> Snapshot | None:
    """Return one snapshot, also under takedown; for making takedowns, and for following a revisit."""
    return session.get(Snapshot, snapshot_id)


def named_by(
    session: Session, snapshot_id: int | None, key: str | None, *, at_once: int = 2_000
) -> Iterator[list[int]]:
    """Yield the archived pages that one capture, or all captures of a page, link to with link text, by the hashes
    of their groups; at most `at_once` per list, in order.

    Search finds them by those texts, which are hidden and shown with the linking capture.
    """
    linking = select(Snapshot.id).where(concerned_by(snapshot_id, key))
    targets = select(LinkText.to_hash).where(LinkText.snapshot_id.in_(linking))
    here = PageGroup.url_hash
    found = select(here).where(here.in_(targets)).distinct().order_by(here).limit(at_once)
    part = list(session.scalars(found))
    while part:
        yield part
        part = list(session.scalars(found.where(here > part[-1]))) if len(part) == at_once else []


def captures_of(session: Session, key: str) -> int:
    """Return the number of captures of a page, hidden ones included, under all spellings of its address."""
    return session.scalar(select(func.count()).where(of_page(key))) or 0


def count_concerned(session: Session, snapshot_id: int | None, key: str | None) -> int:
    wanted = concerned_by(snapshot_id, key)
    return session.scalar(select(func.count()).select_from(Snapshot).where(wanted)) or 0
