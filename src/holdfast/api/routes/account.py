"""`/api/session` and `/api/account`: signing in and out, and one's own password, sessions and tokens."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Request, Response
from sqlalchemy.orm import Session

from holdfast.api.dependencies import AccountsDep, ArchiveDep, SessionDep, peer_of
from holdfast.api.errors import OriginRefused, answers
from holdfast.api.job_dependencies import AdminWriteDep
from holdfast.api.late_routes import LateRouter
from holdfast.api.origins import is_own_origin
from holdfast.api.permissions import PrincipalDep
from holdfast.api.schemas.accounts import (
    EndedSessions,
    LoginForm,
    NewToken,
    PasswordForm,
    SessionShown,
    SessionState,
    SignInForm,
    TokenForm,
    TokenShown,
    UserShown,
)
from holdfast.api.schemas.base import RowId
from holdfast.api.schemas.lists import DEFAULT_LIMIT, ListCursor, Listed, ListLimit, decode_cursor, encode_cursor
from holdfast.api.session_cookie import SessionCookie
from holdfast.auth import queries
from holdfast.auth.credentials import csrf_token
from holdfast.auth.errors import NoAccount, RoleTooLow
from holdfast.auth.principal import Principal, SignInWay
from holdfast.auth.roles import Permission
from holdfast.auth.sessions import BegunSession, Browser, end_session, end_sessions
from holdfast.auth.tokens import end_with, make_token, revoke_token
from holdfast.auth.users import find_user
from holdfast.db.models import User
from holdfast.wiring.accounts import Accounts
from holdfast.wiring.archive import Archive
from holdfast.wiring.server import client_key

router = LateRouter(tags=["account"])
_NO_STORE = {"Cache-Control": "no-store"}


@router.get("/api/session", responses=answers(401, 503))
@router.get("/api/auth/me", include_in_schema=False)
async def show_session(
    request: Request, archive: ArchiveDep, principal: PrincipalDep, response: Response
) -> SessionState:
    """Say who asks, what that one may do, and the token that a page sends with each change."""
    response.headers.update(_NO_STORE)
    token = request.scope["state"].get("csrf_token")
    return SessionState.of(principal, token, has_reference=not archive.settings.api.strict)


@router.post("/api/session", responses=answers(401, 403, 413, 415, 422, 429, 503))
async def sign_in(
    request: Request, archive: ArchiveDep, accounts: AccountsDep, form: SignInForm, response: Response
) -> SessionState:
    """Begin a session with a name and a password; an older one of this browser ends."""
    return await _signed_in(request, archive, accounts, form, response)


@router.post("/api/auth/login", include_in_schema=False)
async def login(
    request: Request, archive: ArchiveDep, accounts: AccountsDep, form: LoginForm, response: Response
) -> SessionState:
    """Do the same in an older spelling."""
    given = SignInForm(name=form.username, password=form.password)
    return await _signed_in(request, archive, accounts, given, response)


async def _signed_in(
    request: Request, archive: Archive, accounts: Accounts, form: SignInForm, response: Response
) -> SessionState:
    begun = await begin_with_password(request, archive, accounts, form)
    response.headers.update(_NO_STORE)
    for cookie in SessionCookie(archive.settings).begun(request.scope, begun):
        response.headers.append("Set-Cookie", cookie)
    has_reference = not archive.settings.api.strict
    return SessionState.of(begun.principal, csrf_token(begun.secret), has_reference=has_reference)


async def begin_with_password(request: Request, archive: Archive, accounts: Accounts, form: SignInForm) -> BegunSession:
    """Begin a session; OriginRefused if a page of another site sent the name and the password."""
    origin = request.headers.get("origin")
    # Without it, any page could sign its reader in to an account of its own, and see what is done there.
    if origin is not None and not is_own_origin(origin, request.scope, archive.settings):
        raise OriginRefused
    browser = browser_of(request)
    return await accounts.turns.run(lambda: accounts.sign_in.with_password(form.name, form.password, browser))


def browser_of(request: Request) -> Browser:
    """Return what signs in, and from where."""
    peer = peer_of(request.scope)
    return Browser(
        address=client_key(str(peer)) if peer else "unknown",
        agent=request.headers.get("user-agent", ""),
        old_secret=request.scope["state"].get("session_secret"),
        mark=SessionCookie(request.app.state.archive.settings).read_mark(request.scope),
    )


@router.delete("/api/session", status_code=204, responses=answers(401, 403, 503))
@router.post("/api/auth/logout", status_code=204, include_in_schema=False)
def sign_out(request: Request, archive: ArchiveDep, accounts: AccountsDep, write: AdminWriteDep) -> Response:
    """End the session that asks; any other credential stays as it is."""
    end_own_session(request, accounts, write)
    cleared = SessionCookie(archive.settings).cleared(request.scope)
    return Response(status_code=204, headers={"Set-Cookie": cleared, **_NO_STORE})


def end_own_session(request: Request, accounts: Accounts, write: AdminWriteDep) -> None:
    """End the session that a request came with, if it did."""
    principal: Principal = request.state.principal
    if principal.way is SignInWay.SESSION and principal.session_id is not None:
        with write.write() as session:
            end_session(session, write.job_service.clock, own_user(session, principal), principal.session_id)
        accounts.identities.forget()


def own_user(session: Session, principal: Principal) -> User:
    """Return the user that asks; NoAccount for a credential that belongs to none."""
    if principal.user_id is None:
        raise NoAccount
    return find_user(session, principal.user_id)


@router.get("/api/account", responses=answers(401, 403, 409, 503))
def show_account(session: SessionDep, principal: PrincipalDep) -> UserShown:
    """Return the user that asks."""
    return UserShown.of(own_user(session, principal))


@router.put("/api/account/password", responses=answers(401, 403, 409, 422, 429, 503))
async def change_password(
    request: Request, accounts: AccountsDep, principal: PrincipalDep, form: PasswordForm
) -> EndedSessions:
    """Change one's own password; all other sessions end."""
    return EndedSessions(ended=await password_changed(request, accounts, principal, form))


async def password_changed(request: Request, accounts: Accounts, principal: Principal, form: PasswordForm) -> int:
    """Change the password of who asks; return how many other sessions ended."""
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


def after_of(cursor: str | None) -> int:
    """Return the id that a list goes on behind."""
    place = decode_cursor(cursor, int)
    return 0 if place is None else int(place[0])


@router.get("/api/account/sessions", responses=answers(401, 403, 409, 422, 503))
def list_sessions(
    session: SessionDep,
    archive: ArchiveDep,
    principal: PrincipalDep,
    limit: ListLimit = DEFAULT_LIMIT,
    cursor: ListCursor = None,
) -> Listed[SessionShown]:
    """Return one's own sessions, oldest first."""
    return sessions_listed(session, archive, own_user(session, principal), limit, cursor, principal.session_id)


def sessions_listed(
    session: Session, archive: Archive, user: User, limit: int, cursor: str | None, current: int | None
) -> Listed[SessionShown]:
    """Return a piece of the list of a user's sessions."""
    now = archive.clock.now()
    rows = queries.sessions_of(session, user.id, now=now, after=after_of(cursor), limit=limit)
    following = encode_cursor(rows[-1].id) if len(rows) == limit else None
    return Listed(items=[SessionShown.of(row, current=current) for row in rows], next=following, limit=limit)


@router.delete("/api/account/sessions", responses=answers(401, 403, 409, 503))
def end_other_sessions(accounts: AccountsDep, principal: PrincipalDep, write: AdminWriteDep) -> EndedSessions:
    """End all one's own sessions but the one that asks."""
    with write.write() as session:
        user = own_user(session, principal)
        ended = end_sessions(session, write.job_service.clock, user, keep=principal.session_id)
    accounts.identities.forget()
    return EndedSessions(ended=ended)


@router.delete("/api/account/sessions/{id}", status_code=204, responses=answers(401, 403, 404, 409, 422, 503))
def end_one_session(accounts: AccountsDep, principal: PrincipalDep, write: AdminWriteDep, id: SessionId) -> None:
    """End one of one's own sessions."""
    with write.write() as session:
        end_session(session, write.job_service.clock, own_user(session, principal), id)
    accounts.identities.forget()


@router.get("/api/account/tokens", responses=answers(401, 403, 409, 422, 503))
def list_tokens(
    session: SessionDep, principal: PrincipalDep, limit: ListLimit = DEFAULT_LIMIT, cursor: ListCursor = None
) -> Listed[TokenShown]:
    """Return one's own tokens, oldest first; expired ones too."""
    return tokens_listed(session, own_user(session, principal), limit, cursor)


def tokens_listed(session: Session, user: User, limit: int, cursor: str | None) -> Listed[TokenShown]:
    """Return a piece of the list of a user's tokens."""
    rows = queries.tokens_of(session, user.id, after=after_of(cursor), limit=limit)
    following = encode_cursor(rows[-1].id) if len(rows) == limit else None
    return Listed(items=[TokenShown.of(row) for row in rows], next=following, limit=limit)


@router.post("/api/account/tokens", status_code=201, responses=answers(401, 403, 409, 413, 415, 422, 503))
def create_token(principal: PrincipalDep, write: AdminWriteDep, form: TokenForm, response: Response) -> NewToken:
    """Make a token. Its secret is shown this once."""
    response.headers.update(_NO_STORE)
    return token_made(principal, write, form)


def token_made(principal: Principal, write: AdminWriteDep, form: TokenForm) -> NewToken:
    """Make a token for who asks; RoleTooLow if a token asks for more than it has itself. It ends no later than that."""
    scopes = {Permission(one) for one in form.scopes}
    if principal.scopes is not None and (beyond := sorted(scopes - principal.scopes - {Permission.READ})):
        raise RoleTooLow(beyond[0])
    with write.write() as session:
        user = own_user(session, principal)
        made = make_token(session, write.job_service.clock, user, name=form.name, scopes=scopes, days=form.days)
        if principal.ends_at is not None:
            made = end_with(made, principal.ends_at)
        return NewToken(token=TokenShown.of(made.row), secret=made.secret)


@router.delete("/api/account/tokens/{id}", status_code=204, responses=answers(401, 403, 404, 409, 422, 503))
def delete_token(accounts: AccountsDep, principal: PrincipalDep, write: AdminWriteDep, id: TokenId) -> None:
    """Revoke one of one's own tokens."""
    with write.write() as session:
        revoke_token(session, write.job_service.clock, own_user(session, principal), id)
    accounts.identities.forget()
