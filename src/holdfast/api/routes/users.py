"""`/api/admin/users`: user accounts and their administration."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Request, Response

from holdfast.api.dependencies import AdminWriteDep, ArchiveDep, SessionDep, site_of
from holdfast.api.routes.account import NameText, SessionId, TokenId, sessions_listed, tokens_listed
from holdfast.api.routing import LazyRouter
from holdfast.api.schemas.base import RequestForm, RowId
from holdfast.api.schemas.lists import DEFAULT_LIMIT, ListCursor, ListLimit, Piece, decode_id, piece_of
from holdfast.auth import queries
from holdfast.auth.records import EndedSessions, InvitedUser, SessionRecord, TokenRecord, UserRecord, user_record
from holdfast.auth.roles import Permission, Role
from holdfast.auth.sessions import end_session, end_sessions
from holdfast.auth.tokens import revoke_token
from holdfast.auth.users import UserRole, add_user, change_user, delete_user, find_user, link_url, make_link

router = LazyRouter(prefix="/api/admin/users", tags=["admin"])
UserId = Annotated[RowId, Path(description="A user's id.", examples=[1])]


@router.get("", Permission.ADMINISTER)
def list_users(session: SessionDep, limit: ListLimit = DEFAULT_LIMIT, cursor: ListCursor = None) -> Piece[UserRecord]:
    """Return users, oldest first."""
    rows = queries.users(session, after=decode_id(cursor) or 0, limit=limit + 1)
    return piece_of(rows, limit, user_record, lambda row: row.id)


class UserForm(RequestForm):
    """A user to invite."""

    name: NameText
    role: UserRole


@router.post("", Permission.ADMINISTER, errors=(409, 413, 415), status_code=201)
def invite_user(
    request: Request, archive: ArchiveDep, write: AdminWriteDep, form: UserForm, response: Response
) -> InvitedUser:
    """Create a user, and a link to choose a password."""
    response.headers["Cache-Control"] = "no-store"
    with write.write() as session:
        user = add_user(session, write.clock, name=form.name, role=Role(form.role))
        secret = make_link(session, write.clock, user)
    return InvitedUser(user=user_record(user), link=link_url(site_of(request, archive.settings), secret))


@router.get("/{id}", Permission.ADMINISTER, errors=(404,))
def show_user(session: SessionDep, id: UserId) -> UserRecord:
    """Return one user."""
    return user_record(find_user(session, id))


class UserChangesForm(RequestForm):
    """Changes of a user; omitted fields keep their values."""

    role: UserRole | None = None
    disabled: bool | None = None


@router.patch("/{id}", Permission.ADMINISTER, errors=(404, 409, 413, 415))
def edit_user(write: AdminWriteDep, id: UserId, form: UserChangesForm) -> UserRecord:
    """Change a user's role, or disable or enable the user. The last administrator cannot be changed to lose that
    role.
    """
    role = None if form.role is None else Role(form.role)
    with write.write_accounts() as session:
        changed = user_record(change_user(session, write.clock, id, role=role, disabled=form.disabled))
    return changed


@router.delete("/{id}", Permission.ADMINISTER, errors=(404, 409), status_code=204)
def remove_user(write: AdminWriteDep, id: UserId) -> None:
    """Delete a user with all sessions and tokens. The last administrator cannot be deleted."""
    with write.write_accounts() as session:
        delete_user(session, write.clock, id)


@router.post("/{id}/link", Permission.ADMINISTER, errors=(404,))
def make_user_link(
    request: Request, archive: ArchiveDep, write: AdminWriteDep, id: UserId, response: Response
) -> InvitedUser:
    """Create a link by which a user chooses a new password; an older link stops working."""
    response.headers["Cache-Control"] = "no-store"
    with write.write() as session:
        user = find_user(session, id)
        secret = make_link(session, write.clock, user)
    return InvitedUser(user=user_record(user), link=link_url(site_of(request, archive.settings), secret))


@router.get("/{id}/sessions", Permission.ADMINISTER, errors=(404,))
def list_user_sessions(
    session: SessionDep, archive: ArchiveDep, id: UserId, limit: ListLimit = DEFAULT_LIMIT, cursor: ListCursor = None
) -> Piece[SessionRecord]:
    """Return the sessions of a user, oldest first."""
    return sessions_listed(session, archive, find_user(session, id), limit, cursor, None)


@router.delete("/{id}/sessions", Permission.ADMINISTER, errors=(404,))
def end_user_sessions(write: AdminWriteDep, id: UserId) -> EndedSessions:
    """End all sessions of a user."""
    with write.write_accounts() as session:
        ended = end_sessions(session, write.clock, find_user(session, id))
    return EndedSessions(ended=ended)


@router.delete("/{id}/sessions/{session_id}", Permission.ADMINISTER, errors=(404,), status_code=204)
def end_user_session(write: AdminWriteDep, id: UserId, session_id: SessionId) -> None:
    """End one session of a user."""
    with write.write_accounts() as session:
        end_session(session, write.clock, find_user(session, id), session_id)


@router.get("/{id}/tokens", Permission.ADMINISTER, errors=(404,))
def list_user_tokens(
    session: SessionDep, id: UserId, limit: ListLimit = DEFAULT_LIMIT, cursor: ListCursor = None
) -> Piece[TokenRecord]:
    """Return the tokens of a user, oldest first."""
    return tokens_listed(session, find_user(session, id), limit, cursor)


@router.delete("/{id}/tokens/{token_id}", Permission.ADMINISTER, errors=(404,), status_code=204)
def revoke_user_token(write: AdminWriteDep, id: UserId, token_id: TokenId) -> None:
    """Revoke a token of a user."""
    with write.write_accounts() as session:
        revoke_token(session, write.clock, find_user(session, id), token_id)
