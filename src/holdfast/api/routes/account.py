"""`/api/session` and `/api/account`: sign-in, and one's own password, sessions and tokens; `/api/admin/users`."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Path, Request, Response
from pydantic import AliasChoices, Field
from sqlalchemy.orm import Session

from holdfast.api.dependencies import AccountsDep, AdminWriteDep, ArchiveDep, SessionDep, peer_of, site_of
from holdfast.api.routing import LazyRouter, PrincipalDep, demand_own_origin
from holdfast.api.schemas.base import RequestForm, RowId
from holdfast.api.schemas.lists import DEFAULT_LIMIT, ListCursor, ListLimit, Piece, decode_id, piece_of
from holdfast.api.session_cookie import SessionCookie
from holdfast.auth import queries
from holdfast.auth.credentials import csrf_token
from holdfast.auth.errors import NoAccount, RoleTooLow
from holdfast.auth.principal import Principal, SignInWay
from holdfast.auth.records import (
    EndedSessions,
    InvitedUser,
    NewToken,
    SessionRecord,
    SessionState,
    TokenRecord,
    UserRecord,
    new_token,
    session_record,
    session_state,
    token_record,
    user_record,
)
from holdfast.auth.roles import Permission, Role
from holdfast.auth.sessions import Browser, NewSession, end_session, end_sessions
from holdfast.auth.tokens import DEFAULT_DAYS, MAX_DAYS, end_with, make_token, revoke_token
from holdfast.auth.users import UserRole, add_user, change_user, delete_user, find_user, link_url, make_link
from holdfast.db.models import User
from holdfast.old_spellings import OLD_LOGIN_FIELD
from holdfast.wiring.accounts import Accounts
from holdfast.wiring.archive import Archive
from holdfast.wiring.server import client_key

router = LazyRouter(tags=["account"])
_NO_STORE = {"Cache-Control": "no-store"}


@router.get("/api/session", Permission.READ)
async def show_session(
    request: Request, archive: ArchiveDep, principal: PrincipalDep, response: Response
) -> SessionState:
    """Return the caller's identity and permissions, and the token that a page must send with each change."""
    response.headers.update(_NO_STORE)
    token = request.scope["state"].get("csrf_token")
    return session_state(principal, token, has_reference=not archive.settings.api.strict)


# Limit the length here, so that a megabyte is rejected before it is hashed.
PasswordText = Annotated[str, Field(min_length=1, max_length=1024, description="12 characters to 256 bytes.")]
NameText = Annotated[str, Field(min_length=1, max_length=256, description="The name to sign in with.")]


class SignInForm(RequestForm):
    """A name and its password."""

    name: Annotated[NameText, Field(validation_alias=AliasChoices("name", OLD_LOGIN_FIELD))]
    password: PasswordText


@router.post("/api/session", Permission.READ, errors=(413, 415))
async def sign_in(
    request: Request, archive: ArchiveDep, accounts: AccountsDep, form: SignInForm, response: Response
) -> SessionState:
    """Start a session with name and password; an older session of this browser ends."""
    started = await begin_with_password(request, archive, accounts, form)
    response.headers.update(_NO_STORE)
    for cookie in SessionCookie(archive.settings).started(request.scope, started):
        response.headers.append("Set-Cookie", cookie)
    has_reference = not archive.settings.api.strict
    return session_state(started.principal, csrf_token(started.secret), has_reference=has_reference)


async def begin_with_password(request: Request, archive: Archive, accounts: Accounts, form: SignInForm) -> NewSession:
    """Create a session; raise OriginRefused if a page of another site sent the name and password."""
    # Without it, any page could sign its reader in to its own account, and see everything done there.
    demand_own_origin(request)
    browser = browser_of(request)
    return await accounts.turns.run(lambda: accounts.sign_in.with_password(form.name, form.password, browser))


def browser_of(request: Request) -> Browser:
    peer = peer_of(request.scope)
    return Browser(
        address=client_key(str(peer)) if peer else "unknown",
        agent=request.headers.get("user-agent", ""),
        old_secret=request.scope["state"].get("session_secret"),
        mark=SessionCookie(request.app.state.archive.settings).read_mark(request.scope),
    )


@router.delete("/api/session", Permission.OWN_ACCOUNT, status_code=204)
def sign_out(request: Request, archive: ArchiveDep, write: AdminWriteDep) -> Response:
    """End the session of this request; other credentials stay valid."""
    end_own_session(request, write)
    cleared = SessionCookie(archive.settings).cleared(request.scope)
    return Response(status_code=204, headers={"Set-Cookie": cleared, **_NO_STORE})


def end_own_session(request: Request, write: AdminWriteDep) -> None:
    principal: Principal = request.state.principal
    if principal.way is SignInWay.SESSION and principal.session_id is not None:
        with write.write_accounts() as session:
            end_session(session, write.clock, own_user(session, principal), principal.session_id)


def own_user(session: Session, principal: Principal) -> User:
    """Return the user of a principal; raise NoAccount for a credential without a user."""
    if principal.user_id is None:
        raise NoAccount
    return find_user(session, principal.user_id)


@router.get("/api/account", Permission.OWN_ACCOUNT, errors=(409,))
def show_account(session: SessionDep, principal: PrincipalDep) -> UserRecord:
    """Return the calling user."""
    return user_record(own_user(session, principal))


class PasswordForm(RequestForm):
    """A new password."""

    current: PasswordText
    new: PasswordText


@router.put("/api/account/password", Permission.OWN_ACCOUNT, errors=(409,))
async def change_password(
    request: Request, accounts: AccountsDep, principal: PrincipalDep, form: PasswordForm
) -> EndedSessions:
    """Change one's own password; all other sessions end."""
    return EndedSessions(ended=await password_changed(request, accounts, principal, form))


async def password_changed(request: Request, accounts: Accounts, principal: Principal, form: PasswordForm) -> int:
    """Change the caller's password; return the number of other sessions that ended."""
    if principal.user_id is None:
        raise NoAccount
    user_id, browser = principal.user_id, browser_of(request)
    ended = await accounts.turns.run(
        lambda: accounts.sign_in.change_password(
            user_id, current=form.current, new=form.new, browser=browser, keep=principal.session_id
        )
    )
    accounts.identities.forget()
    return ended


SessionId = Annotated[RowId, Path(description="A session's id.", examples=[1])]
TokenId = Annotated[RowId, Path(description="A token's id.", examples=[1])]


@router.get("/api/account/sessions", Permission.OWN_ACCOUNT, errors=(409,))
def list_sessions(
    session: SessionDep,
    archive: ArchiveDep,
    principal: PrincipalDep,
    limit: ListLimit = DEFAULT_LIMIT,
    cursor: ListCursor = None,
) -> Piece[SessionRecord]:
    """Return one's own sessions, oldest first."""
    return sessions_listed(session, archive, own_user(session, principal), limit, cursor, principal.session_id)


def sessions_listed(
    session: Session, archive: Archive, user: User, limit: int, cursor: str | None, current: int | None
) -> Piece[SessionRecord]:
    now = archive.clock.now()
    rows = queries.sessions_of(session, user.id, now=now, after=decode_id(cursor) or 0, limit=limit + 1)
    return piece_of(rows, limit, lambda row: session_record(row, current=current), lambda row: row.id)


@router.delete("/api/account/sessions", Permission.OWN_ACCOUNT, errors=(409,))
def end_other_sessions(principal: PrincipalDep, write: AdminWriteDep) -> EndedSessions:
    """End all one's own sessions except the current one."""
    with write.write_accounts() as session:
        user = own_user(session, principal)
        ended = end_sessions(session, write.clock, user, keep=principal.session_id)
    return EndedSessions(ended=ended)


@router.delete("/api/account/sessions/{id}", Permission.OWN_ACCOUNT, errors=(404, 409), status_code=204)
def end_one_session(principal: PrincipalDep, write: AdminWriteDep, id: SessionId) -> None:
    """End one of one's own sessions."""
    with write.write_accounts() as session:
        end_session(session, write.clock, own_user(session, principal), id)


@router.get("/api/account/tokens", Permission.OWN_ACCOUNT, errors=(409,))
def list_tokens(
    session: SessionDep, principal: PrincipalDep, limit: ListLimit = DEFAULT_LIMIT, cursor: ListCursor = None
) -> Piece[TokenRecord]:
    """Return one's own tokens, oldest first, including expired ones."""
    return tokens_listed(session, own_user(session, principal), limit, cursor)


def tokens_listed(session: Session, user: User, limit: int, cursor: str | None) -> Piece[TokenRecord]:
    rows = queries.tokens_of(session, user.id, after=decode_id(cursor) or 0, limit=limit + 1)
    return piece_of(rows, limit, token_record, lambda row: row.id)


class TokenForm(RequestForm):
    """A new token."""

    name: Annotated[str, Field(min_length=1, max_length=100, description="To tell it from others.")]
    scopes: Annotated[
        list[Literal["read", "own_account", "explain", "watch", "operate", "administer"]],
        Field(min_length=1, max_length=6, description="Permissions of the token; never more than its user has."),
    ]
    days: Annotated[int, Field(ge=1, le=MAX_DAYS, description="Days until the token expires.")] = DEFAULT_DAYS


@router.post("/api/account/tokens", Permission.OWN_ACCOUNT, errors=(409, 413, 415), status_code=201)
def create_token(principal: PrincipalDep, write: AdminWriteDep, form: TokenForm, response: Response) -> NewToken:
    """Create a token. Its secret is shown only in this response."""
    response.headers.update(_NO_STORE)
    return token_made(principal, write, form)


def token_made(principal: Principal, write: AdminWriteDep, form: TokenForm) -> NewToken:
    """Create a token for the caller; raise RoleTooLow if it exceeds the caller's rights. It expires no later than the
    caller's own credential.
    """
    scopes = {Permission(one) for one in form.scopes}
    if principal.scopes is not None and (beyond := sorted(scopes - principal.scopes - {Permission.READ})):
        raise RoleTooLow(beyond[0])
    with write.write() as session:
        user = own_user(session, principal)
        made = make_token(session, write.clock, user, name=form.name, scopes=scopes, days=form.days)
        if principal.ends_at is not None:
            made = end_with(made, principal.ends_at)
        return new_token(made)


@router.delete("/api/account/tokens/{id}", Permission.OWN_ACCOUNT, errors=(404, 409), status_code=204)
def delete_token(principal: PrincipalDep, write: AdminWriteDep, id: TokenId) -> None:
    """Revoke one of one's own tokens."""
    with write.write_accounts() as session:
        revoke_token(session, write.clock, own_user(session, principal), id)


users_router = LazyRouter(prefix="/api/admin/users", tags=["admin"])
UserId = Annotated[RowId, Path(description="A user's id.", examples=[1])]


@users_router.get("", Permission.ADMINISTER)
def list_users(session: SessionDep, limit: ListLimit = DEFAULT_LIMIT, cursor: ListCursor = None) -> Piece[UserRecord]:
    """Return users, oldest first."""
    rows = queries.users(session, after=decode_id(cursor) or 0, limit=limit + 1)
    return piece_of(rows, limit, user_record, lambda row: row.id)


class UserForm(RequestForm):
    """A user to invite."""

    name: NameText
    role: UserRole


@users_router.post("", Permission.ADMINISTER, errors=(409, 413, 415), status_code=201)
def invite_user(
    request: Request, archive: ArchiveDep, write: AdminWriteDep, form: UserForm, response: Response
) -> InvitedUser:
    """Create a user, and a link to choose a password."""
    response.headers["Cache-Control"] = "no-store"
    with write.write() as session:
        user = add_user(session, write.clock, name=form.name, role=Role(form.role))
        secret = make_link(session, write.clock, user)
    return InvitedUser(user=user_record(user), link=link_url(site_of(request, archive.settings), secret))


@users_router.get("/{id}", Permission.ADMINISTER, errors=(404,))
def show_user(session: SessionDep, id: UserId) -> UserRecord:
    """Return one user."""
    return user_record(find_user(session, id))


class UserChangesForm(RequestForm):
    """Changes of a user; omitted fields keep their values."""

    role: UserRole | None = None
    disabled: bool | None = None


@users_router.patch("/{id}", Permission.ADMINISTER, errors=(404, 409, 413, 415))
def edit_user(write: AdminWriteDep, id: UserId, form: UserChangesForm) -> UserRecord:
    """Change a user's role, or disable or enable the user. The last administrator cannot be changed to lose that
    role.
    """
    role = None if form.role is None else Role(form.role)
    with write.write_accounts() as session:
        changed = user_record(change_user(session, write.clock, id, role=role, disabled=form.disabled))
    return changed


@users_router.delete("/{id}", Permission.ADMINISTER, errors=(404, 409), status_code=204)
def remove_user(write: AdminWriteDep, id: UserId) -> None:
    """Delete a user with all sessions and tokens. The last administrator cannot be deleted."""
    with write.write_accounts() as session:
        delete_user(session, write.clock, id)


@users_router.post("/{id}/link", Permission.ADMINISTER, errors=(404,))
def make_user_link(
    request: Request, archive: ArchiveDep, write: AdminWriteDep, id: UserId, response: Response
) -> InvitedUser:
    """Create a link by which a user chooses a new password; an older link stops working."""
    response.headers["Cache-Control"] = "no-store"
    with write.write() as session:
        user = find_user(session, id)
        secret = make_link(session, write.clock, user)
    return InvitedUser(user=user_record(user), link=link_url(site_of(request, archive.settings), secret))


@users_router.get("/{id}/sessions", Permission.ADMINISTER, errors=(404,))
def list_user_sessions(
    session: SessionDep, archive: ArchiveDep, id: UserId, limit: ListLimit = DEFAULT_LIMIT, cursor: ListCursor = None
) -> Piece[SessionRecord]:
    """Return the sessions of a user, oldest first."""
    return sessions_listed(session, archive, find_user(session, id), limit, cursor, None)


@users_router.delete("/{id}/sessions", Permission.ADMINISTER, errors=(404,))
def end_user_sessions(write: AdminWriteDep, id: UserId) -> EndedSessions:
    """End all sessions of a user."""
    with write.write_accounts() as session:
        ended = end_sessions(session, write.clock, find_user(session, id))
    return EndedSessions(ended=ended)


@users_router.delete("/{id}/sessions/{session_id}", Permission.ADMINISTER, errors=(404,), status_code=204)
def end_user_session(write: AdminWriteDep, id: UserId, session_id: SessionId) -> None:
    """End one session of a user."""
    with write.write_accounts() as session:
        end_session(session, write.clock, find_user(session, id), session_id)


@users_router.get("/{id}/tokens", Permission.ADMINISTER, errors=(404,))
def list_user_tokens(
    session: SessionDep, id: UserId, limit: ListLimit = DEFAULT_LIMIT, cursor: ListCursor = None
) -> Piece[TokenRecord]:
    """Return the tokens of a user, oldest first."""
    return tokens_listed(session, find_user(session, id), limit, cursor)


@users_router.delete("/{id}/tokens/{token_id}", Permission.ADMINISTER, errors=(404,), status_code=204)
def revoke_user_token(write: AdminWriteDep, id: UserId, token_id: TokenId) -> None:
    """Revoke a token of a user."""
    with write.write_accounts() as session:
        revoke_token(session, write.clock, find_user(session, id), token_id)
