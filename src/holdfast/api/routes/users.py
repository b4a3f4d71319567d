"""`/api/admin/users`: who has an account, and what an administrator does about it."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Request, Response

from holdfast.api.dependencies import AccountsDep, ArchiveDep, SessionDep, site_of
from holdfast.api.errors import answers
from holdfast.api.job_dependencies import AdminWriteDep
from holdfast.api.late_routes import LateRouter
from holdfast.api.routes.account import SessionId, TokenId, after_of, sessions_listed, tokens_listed
from holdfast.api.schemas.accounts import (
    EndedSessions,
    InvitedUser,
    SessionShown,
    TokenShown,
    UserChangesForm,
    UserForm,
    UserShown,
)
from holdfast.api.schemas.base import RowId
from holdfast.api.schemas.lists import DEFAULT_LIMIT, ListCursor, Listed, ListLimit, encode_cursor
from holdfast.auth import queries
from holdfast.auth.roles import Role
from holdfast.auth.sessions import end_session, end_sessions
from holdfast.auth.tokens import revoke_token
from holdfast.auth.users import UserChanges, add_user, change_user, delete_user, find_user, link_url, make_link

router = LateRouter(prefix="/api/admin/users", tags=["admin"])
UserId = Annotated[RowId, Path(description="A user's id.", examples=[1])]


@router.get("", responses=answers(401, 403, 422, 503))
def list_users(session: SessionDep, limit: ListLimit = DEFAULT_LIMIT, cursor: ListCursor = None) -> Listed[UserShown]:
    """Return users, oldest first."""
    rows = queries.users(session, after=after_of(cursor), limit=limit)
    following = encode_cursor(rows[-1].id) if len(rows) == limit else None
    return Listed(items=[UserShown.of(row) for row in rows], next=following, limit=limit)


@router.post("", status_code=201, responses=answers(401, 403, 409, 413, 415, 422, 503))
def invite_user(
    request: Request, archive: ArchiveDep, write: AdminWriteDep, form: UserForm, response: Response
) -> InvitedUser:
    """Make a user, and a link to choose a password with."""
    response.headers["Cache-Control"] = "no-store"
    with write.write() as session:
        user = add_user(session, write.job_service.clock, name=form.name, role=Role(form.role))
        secret = make_link(session, write.job_service.clock, user)
    return InvitedUser(user=UserShown.of(user), link=link_url(site_of(request, archive.settings), secret))


@router.get("/{id}", responses=answers(401, 403, 404, 422, 503))
def show_user(session: SessionDep, id: UserId) -> UserShown:
    """Return one user."""
    return UserShown.of(find_user(session, id))


@router.patch("/{id}", responses=answers(401, 403, 404, 409, 413, 415, 422, 503))
def edit_user(accounts: AccountsDep, write: AdminWriteDep, id: UserId, form: UserChangesForm) -> UserShown:
    """Change a user's role, or disable or enable it. The last administrator stays one."""
    changes = UserChanges(role=None if form.role is None else Role(form.role), disabled=form.disabled)
    with write.write() as session:
        shown = UserShown.of(change_user(session, write.job_service.clock, id, changes))
    accounts.identities.forget()
    return shown


@router.delete("/{id}", status_code=204, responses=answers(401, 403, 404, 409, 422, 503))
def remove_user(accounts: AccountsDep, write: AdminWriteDep, id: UserId) -> None:
    """Delete a user with its sessions and tokens. The last administrator stays."""
    with write.write() as session:
        delete_user(session, write.job_service.clock, id)
    accounts.identities.forget()


@router.post("/{id}/link", responses=answers(401, 403, 404, 422, 503))
def make_user_link(
    request: Request, archive: ArchiveDep, write: AdminWriteDep, id: UserId, response: Response
) -> InvitedUser:
    """Make a link by which a user chooses a new password; an older one stops working."""
    response.headers["Cache-Control"] = "no-store"
    with write.write() as session:
        user = find_user(session, id)
        secret = make_link(session, write.job_service.clock, user)
    return InvitedUser(user=UserShown.of(user), link=link_url(site_of(request, archive.settings), secret))


@router.get("/{id}/sessions", responses=answers(401, 403, 404, 422, 503))
def list_user_sessions(
    session: SessionDep, archive: ArchiveDep, id: UserId, limit: ListLimit = DEFAULT_LIMIT, cursor: ListCursor = None
) -> Listed[SessionShown]:
    """Return the sessions of a user, oldest first."""
    return sessions_listed(session, archive, find_user(session, id), limit, cursor, None)


@router.delete("/{id}/sessions", responses=answers(401, 403, 404, 422, 503))
def end_user_sessions(accounts: AccountsDep, write: AdminWriteDep, id: UserId) -> EndedSessions:
    """End all sessions of a user."""
    with write.write() as session:
        ended = end_sessions(session, write.job_service.clock, find_user(session, id))
    accounts.identities.forget()
    return EndedSessions(ended=ended)


@router.delete("/{id}/sessions/{session_id}", status_code=204, responses=answers(401, 403, 404, 422, 503))
def end_user_session(accounts: AccountsDep, write: AdminWriteDep, id: UserId, session_id: SessionId) -> None:
    """End one session of a user."""
    with write.write() as session:
        end_session(session, write.job_service.clock, find_user(session, id), session_id)
    accounts.identities.forget()


@router.get("/{id}/tokens", responses=answers(401, 403, 404, 422, 503))
def list_user_tokens(
    session: SessionDep, id: UserId, limit: ListLimit = DEFAULT_LIMIT, cursor: ListCursor = None
) -> Listed[TokenShown]:
    """Return the tokens of a user, oldest first."""
    return tokens_listed(session, find_user(session, id), limit, cursor)


@router.delete("/{id}/tokens/{token_id}", status_code=204, responses=answers(401, 403, 404, 422, 503))
def revoke_user_token(accounts: AccountsDep, write: AdminWriteDep, id: UserId, token_id: TokenId) -> None:
    """Revoke a token of a user."""
    with write.write() as session:
        revoke_token(session, write.job_service.clock, find_user(session, id), token_id)
    accounts.identities.forget()
