"""Queries of accounts, and the statements that must be atomic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import Row, case, delete, func, or_, select, update
from sqlalchemy.orm import Session

from holdfast.auth.roles import Role
from holdfast.db.engine import insert_into
from holdfast.db.models import AccountLink, ApiToken, SignInFailure, User, UserSession


def session_of(session: Session, digest: bytes, *, now: datetime) -> Row[int, int, str, str] | None:
    """Return id, user_id, name and role of the session of this secret; None if expired or its user is disabled."""
    return session.execute(
        select(UserSession.id, User.id.label("user_id"), User.name, User.role)
        .join(User, User.id == UserSession.user_id)
        .where(UserSession.secret_hash == digest, UserSession.expires_at > now, User.disabled_at.is_(None))
    ).first()


def token_of(session: Session, digest: bytes, *, now: datetime) -> tuple[ApiToken, User] | None:
    """Return the token of this secret and its user, unless it has expired or its user is disabled."""
    row = session.execute(
        select(ApiToken, User)
        .join(User, User.id == ApiToken.user_id)
        .where(ApiToken.secret_hash == digest, ApiToken.expires_at > now, User.disabled_at.is_(None))
    ).first()
    return None if row is None else (row[0], row[1])


def user_by_name(session: Session, name: str) -> User | None:
    return session.scalar(select(User).where(User.name == name))


def locked_user(session: Session, user_id: int) -> User | None:
    """Return a user, reloaded and locked until this transaction ends."""
    # Do not lock its key: PostgreSQL checks that whenever a session or a token of the user is written.
    asked = select(User).where(User.id == user_id).with_for_update(key_share=True)
    return session.scalar(asked.execution_options(populate_existing=True))


def user_of_provider(session: Session, *, issuer: str, subject: str) -> User | None:
    """Return the user with this subject at an identity provider, locked until the transaction ends."""
    # Lock the user before its sessions: a password change and the disabling of a user lock in this order.
    asked = select(User).where(User.issuer == issuer, User.subject == subject)
    return session.scalar(asked.with_for_update(key_share=True))


def has_administrator(session: Session) -> bool:
    """Return whether an administrator exists, including invited ones, which have a link of their own."""
    return session.scalar(select(User.id).where(User.role == Role.ADMINISTRATOR.value).limit(1)) is not None


def users(session: Session, *, after: int, limit: int) -> list[User]:
    """Return users in order of id, after this one."""
    return list(session.scalars(select(User).where(User.id > after).order_by(User.id).limit(limit)))


def administrators(session: Session) -> list[int]:
    """Return the administrators that can sign in, locked until the transaction ends."""
    # Lock them: if two administrators demote each other concurrently, the second then finds one left.
    asked = select(User.id).where(
        User.role == Role.ADMINISTRATOR.value,
        User.disabled_at.is_(None),
        or_(User.password_hash.is_not(None), User.subject.is_not(None)),
    )
    return list(session.scalars(asked.order_by(User.id).with_for_update()))


def sessions_of(session: Session, user_id: int, *, now: datetime, after: int, limit: int) -> list[UserSession]:
    """Return a user's unexpired sessions in order of id, after this one."""
    asked = select(UserSession).where(UserSession.user_id == user_id, UserSession.expires_at > now)
    return list(session.scalars(asked.where(UserSession.id > after).order_by(UserSession.id).limit(limit)))


def tokens_of(session: Session, user_id: int, *, after: int, limit: int) -> list[ApiToken]:
    """Return a user's tokens, including expired ones, in order of id, after this one."""
    asked = select(ApiToken).where(ApiToken.user_id == user_id, ApiToken.id > after)
    return list(session.scalars(asked.order_by(ApiToken.id).limit(limit)))


def count_tokens(session: Session, user_id: int) -> int:
    return session.scalar(select(func.count()).select_from(ApiToken).where(ApiToken.user_id == user_id)) or 0


def delete_sessions(session: Session, user_id: int, *, keep: int | None = None) -> int:
    """Delete a user's sessions, all except `keep`; return how many."""
    clauses = [UserSession.user_id == user_id]
    if keep is not None:
        clauses.append(UserSession.id != keep)
    return len(session.scalars(delete(UserSession).where(*clauses).returning(UserSession.id)).all())


def delete_session(session: Session, digest: bytes) -> int | None:
    """Delete the session of this secret; return its user's id, None if it did not exist."""
    return session.scalar(delete(UserSession).where(UserSession.secret_hash == digest).returning(UserSession.user_id))


def delete_expired_sessions(session: Session, *, now: datetime, limit: int) -> None:
    old = select(UserSession.id).where(UserSession.expires_at <= now).order_by(UserSession.expires_at).limit(limit)
    # These rows belong to other users, too: waiting for one of them could deadlock.
    session.execute(delete(UserSession).where(UserSession.id.in_(old.with_for_update(skip_locked=True))))


def oldest_sessions(session: Session, user_id: int, *, keep: int) -> Sequence[int]:
    asked = select(UserSession.id).where(UserSession.user_id == user_id).order_by(UserSession.id.desc())
    return session.scalars(asked.offset(keep)).all()


def delete_sessions_by_id(session: Session, ids: Sequence[int]) -> None:
    session.execute(delete(UserSession).where(UserSession.id.in_(ids)))


def note_seen(session: Session, *, sessions: Mapping[int, datetime], tokens: Mapping[int, datetime]) -> None:
    """Record the last use of sessions and tokens; skip rows that are deleted or locked by another transaction."""
    # These rows belong to many users: waiting for one of them, while holding others, could deadlock.
    free = select(UserSession.id).where(UserSession.id.in_(sessions)).with_for_update(skip_locked=True)
    for session_id in session.scalars(free).all():
        at = sessions[session_id]
        session.execute(
            update(UserSession).where(UserSession.id == session_id, UserSession.seen_at < at).values(seen_at=at)
        )
    unused = select(ApiToken.id).where(ApiToken.id.in_(tokens)).with_for_update(skip_locked=True)
    for token_id in session.scalars(unused).all():
        session.execute(update(ApiToken).where(ApiToken.id == token_id).values(used_at=tokens[token_id]))


def take_link(session: Session, link_id: int) -> bool:
    """Delete a link; return False if it is gone. Of two concurrent uses, one succeeds."""
    return session.scalar(delete(AccountLink).where(AccountLink.id == link_id).returning(AccountLink.id)) is not None


def find_link(session: Session, digest: bytes, *, now: datetime) -> AccountLink | None:
    return session.scalar(select(AccountLink).where(AccountLink.secret_hash == digest, AccountLink.expires_at > now))


def delete_links(session: Session, user_id: int | None) -> None:
    """Delete the link of a user, or, for None, the one that creates the first administrator."""
    whose = AccountLink.user_id.is_(None) if user_id is None else AccountLink.user_id == user_id
    session.execute(delete(AccountLink).where(whose))


def count_failure(session: Session, key: str, *, now: datetime, window_began: datetime) -> tuple[int, datetime]:
    """Count one more failure of a key, in a new window if the old one has passed; return the count and its start."""
    insert = insert_into(session, SignInFailure).values(key=key, failures=1, since=now)
    # Also drop one that starts a whole window from now: a clock that was ahead has been set back, and the account's
    # owner would have to wait until then.
    is_old = or_(SignInFailure.since <= window_began, SignInFailure.since > now + (now - window_began))
    row = session.execute(
        insert.on_conflict_do_update(
            index_elements=[SignInFailure.key],
            set_={
                "failures": case((is_old, 1), else_=SignInFailure.failures + 1),
                "since": case((is_old, insert.excluded.since), else_=SignInFailure.since),
            },
        ).returning(SignInFailure.failures, SignInFailure.since)
    ).one()
    return row[0], row[1]


def forgive(session: Session, keys: Sequence[str]) -> None:
    """Subtract one failure from each key."""
    session.execute(
        update(SignInFailure)
        .where(SignInFailure.key.in_(keys), SignInFailure.failures > 0)
        .values(failures=SignInFailure.failures - 1)
    )


def forget_failures(session: Session, key: str) -> None:
    session.execute(delete(SignInFailure).where(SignInFailure.key == key))


def delete_old_failures(session: Session, *, window_began: datetime, limit: int) -> None:
    old = select(SignInFailure.key).where(SignInFailure.since <= window_began).order_by(SignInFailure.since)
    session.execute(delete(SignInFailure).where(SignInFailure.key.in_(old.limit(limit))))
