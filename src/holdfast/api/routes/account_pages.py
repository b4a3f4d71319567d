"""`/signin`, `/setup` and `/account`: HTML pages for signing in and managing an account.

Plain HTML with one style sheet, so that they work before anything else does. The only script sends the secret
of a one-time link; without scripts, the user types it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qsl, urlsplit

from fastapi import Depends, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from pydantic import ValidationError

from holdfast.api.account_words import COOKIE, speak, spoken, t
from holdfast.api.dependencies import AccountsDep, AdminWriteDep, ArchiveDep, SessionDep, site_of
from holdfast.api.errors import status_of
from holdfast.api.routes.account import (
    PasswordForm,
    SignInForm,
    TokenForm,
    begin_with_password,
    browser_of,
    end_own_session,
    own_user,
    password_changed,
    token_made,
)
from holdfast.api.routing import LazyRouter, PrincipalDep, demand_own_origin
from holdfast.api.session_cookie import SessionCookie
from holdfast.auth import queries
from holdfast.auth.credentials import is_same
from holdfast.auth.errors import (
    CrossSiteRefused,
    LinkSpent,
    NoAccount,
    ProviderFailed,
    ProviderRefused,
    SignInFailed,
    SignInThrottled,
    UserExists,
)
from holdfast.auth.passwords import MIN_CHARS
from holdfast.auth.principal import Principal, SignInWay
from holdfast.auth.roles import Permission
from holdfast.auth.sessions import NewSession, end_session, end_sessions
from holdfast.auth.sign_in_flow import SignInFlow
from holdfast.auth.tokens import PER_USER, revoke_token
from holdfast.auth.users import link_owner
from holdfast.db.models import ApiToken, User, UserSession
from holdfast.errors import HoldfastError, Invalid, NotFound
from holdfast.replay.links import escape
from holdfast.wiring.archive import Archive

router = LazyRouter(tags=["account"], include_in_schema=False, any_query=True)
_FOLDER = Path(__file__).parents[1]
_FILES = {name: (_FOLDER / name).read_text("utf-8") for name in ("account.css", "setup.js", "style.css")}
# Use `same-origin`: with `no-referrer` a browser sends `Origin: null`.
_HEADERS = {"Cache-Control": "no-store", "Referrer-Policy": "same-origin"}
_MAX_FIELDS = 30
_SHOWN = PER_USER
_MAY = {
    Permission.READ: "what you may read",
    Permission.OWN_ACCOUNT: "change your own account",
    Permission.EXPLAIN: "explain why an address is or is not in the archive",
    Permission.WATCH: "crawls and figures",
    Permission.OPERATE: "run crawls, care for the archive",
    Permission.ADMINISTER: "everything",
}
"""The wording of a token's permissions on the account page."""


@router.get("/account.css", Permission.READ)
@router.get("/setup.js", Permission.READ)
@router.get("/style.css", Permission.READ)
def page_file(request: Request) -> Response:
    """Return a style sheet of these and other plain pages, or the script that sends the secret of a one-time link."""
    name = request.url.path.removeprefix("/")
    media_type = "text/javascript" if name.endswith(".js") else "text/css"
    return Response(_FILES[name], media_type=media_type, headers={"Cache-Control": "public, max-age=3600"})


def _page(title: str, body: str, *, status: int = 200, wide: bool = False, head: str = "") -> HTMLResponse:
    said = spoken()
    theme = "<script src=/theme.js></script>" if said.has_pages else ""
    top = (
        f"<!doctype html><html lang={said.language}><head><meta charset=utf-8>"
        "<meta name=viewport content='width=device-width,initial-scale=1'><meta name=robots content=noindex>"
        f"<title>{escape(title)} · Holdfast</title><link rel=icon href=/holdfast.svg>{theme}"
        f"<link rel=stylesheet href=/account.css>{head}</head>"
    )
    kind = " class=wide" if wide else ""
    answer = HTMLResponse(f"{top}<body>{_header()}<main{kind}>{body}</main></body></html>", status, _HEADERS)
    if said.is_chosen:
        # Keep it for a year, readable by scripts: the choice of a language is not secret.
        answer.set_cookie(COOKIE, said.language, max_age=31_536_000, path="/", samesite="lax")
    return answer


_PLACES = (("/search", "Search"), ("/changes", "Changes"), ("/sources", "Sources"), ("/editions", "Editions"))
_THEMES = (("", "System"), ("light", "Light"), ("dark", "Dark"), ("contrast", "High contrast"))


def _header() -> str:
    said = spoken()
    other, name = ("en", "English") if said.language == "fr" else ("fr", "Français")
    choice = f'<a href="{escape(said.other)}" lang={other} hreflang={other}>{name}</a>'
    if not said.has_pages:
        return f"<header class=brand><a href=/>Holdfast</a>{choice}</header>"
    places = "".join(f"<a href={path}>{t(name)}</a>" for path, name in _PLACES)
    # It stays hidden until its script runs: without scripts, a page follows the system's colour scheme.
    options = "".join(f"<option value='{value}'>{t(name)}</option>" for value, name in _THEMES)
    themes = f"<select id=theme aria-label='{t('Appearance')}' hidden>{options}</select>"
    menu = f"<nav aria-label='{t('Menu')}'>{places}</nav>"
    return f"<header class=brand><a href=/>Holdfast</a>{menu}{choice}{themes}</header>"


def _alert(message: str | None) -> str:
    return "" if message is None else f"<p role=alert>{escape(message)}</p>"


async def _fields(request: Request) -> dict[str, str]:
    """Return the fields of a form; raise OriginRefused if the request is not from a browser on a page of ours."""
    speak(request)
    demand_own_origin(request, is_required=True)
    body = (await request.body()).decode("utf-8", "replace")
    try:
        pairs = parse_qsl(body, max_num_fields=_MAX_FIELDS, keep_blank_values=True)
    except ValueError:
        raise Invalid("this form has more fields than any of ours; load the page again") from None
    # Each list is one string with spaces between the words.
    fields: dict[str, str] = {}
    for name, value in pairs:
        fields[name] = f"{fields[name]} {value}" if name in fields else value
    return fields


async def _own_fields(request: Request) -> dict[str, str]:
    """Return the fields of a form on the account page; raise CrossSiteRefused without the session's token."""
    principal: Principal = request.state.principal
    if principal.way is not SignInWay.SESSION:
        raise NoAccount
    fields = await _fields(request)
    if not is_same(fields.pop("csrf", ""), request.scope["state"]["csrf_token"]):
        raise CrossSiteRefused
    return fields


Fields = Annotated[dict[str, str], Depends(_fields)]
OwnFields = Annotated[dict[str, str], Depends(_own_fields)]
Next = Annotated[str, Query(alias="next", max_length=2048)]


def safe_next(path: str) -> str:
    """Return where to go after signing in: a path of this host, empty if none was requested."""
    # `//host` and `/\\host` are other hosts to a browser, and it drops tabs and line breaks before it looks.
    is_plain = path.startswith("/") and path.isprintable() and not path.startswith(("//", "/\\"))
    return path if is_plain and not urlsplit(path).netloc else ""


def _landing(request: Request, following: str, principal: Principal) -> str:
    has_control_room = request.app.state.has_pages and principal.may(Permission.WATCH)
    return following or ("/control" if has_control_room else "/")


@router.get("/signin", Permission.READ)
async def sign_in_page(
    request: Request, archive: ArchiveDep, principal: PrincipalDep, following: Next = ""
) -> Response:
    """Show the sign-in form; redirect users who are already signed in."""
    speak(request)
    if principal.way is SignInWay.SESSION:
        return RedirectResponse(_landing(request, safe_next(following), principal), 303, _HEADERS)
    return _page(t("Sign in"), _sign_in_form(archive, safe_next(following)))


def _sign_in_form(archive: Archive, following: str, *, name: str = "", problem: str | None = None) -> str:
    auth = archive.settings.auth
    other = ""
    if auth.oidc_issuer:
        query = f"/signin/oidc?next={escape(_quoted(following))}"
        with_name = t("Sign in with {name}", name=escape(auth.oidc_name))
        other = f'<p class=or>{t("or")}</p><a class="button wide" href="{query}">{with_name}</a>'
    # After a wrong password, the user types only the password again, not the name.
    first, second = ("", " autofocus") if name else (" autofocus", "")
    return (
        f"<h1>{t('Sign in')}</h1>{_alert(problem)}<section><form method=post action=/signin>"
        f'<input type=hidden name=next value="{escape(following)}">'
        f'<label for=name>{t("Name")}</label><input id=name name=name value="{escape(name)}" required{first} '
        "autocomplete=username autocapitalize=none spellcheck=false maxlength=256>"
        f"<label for=password>{t('Password')}</label><input id=password name=password type=password required{second} "
        "autocomplete=current-password maxlength=256>"
        f"<button class=wide>{t('Sign in')}</button></form>{other}</section>"
        f"<p class=quiet>{t('No account, or no password any more? An administrator can send you a link.')}</p>"
    )


def _quoted(text: str) -> str:
    return text.replace("%", "%25").replace("&", "%26").replace("#", "%23").replace("+", "%2B").replace(" ", "%20")


@router.post("/signin", Permission.READ)
async def send_sign_in(request: Request, archive: ArchiveDep, accounts: AccountsDep, fields: Fields) -> Response:
    """Sign in, or show the form again with the error."""
    following, name = safe_next(fields.get("next", "")), fields.get("name", "")[:256]
    try:
        form = SignInForm(name=name or " ", password=fields.get("password", "")[:1024] or " ")
        started = await begin_with_password(request, archive, accounts, form)
    except (SignInFailed, SignInThrottled, ValidationError) as exc:
        return _again(request, archive, following, name=name, problem=exc)
    return _signed_in(request, archive, started, following)


def _again(request: Request, archive: Archive, following: str, *, name: str, problem: Exception) -> Response:
    if isinstance(problem, HoldfastError):
        said, status = str(problem), status_of(problem, request.url.path)
    else:
        said, status = "the name or the password is wrong; try again", 401
    answer = _page(t("Sign in"), _sign_in_form(archive, following, name=name, problem=_sentence(said)), status=status)
    if isinstance(problem, SignInThrottled):
        answer.headers["Retry-After"] = str(problem.retry_after_s)
    return answer


def _sentence(text: str) -> str:
    return t(text[:1].upper() + text[1:] + ".")


def _signed_in(request: Request, archive: Archive, session: NewSession, following: str) -> Response:
    answer = RedirectResponse(_landing(request, following, session.principal), 303, _HEADERS)
    for cookie in SessionCookie(archive.settings).started(request.scope, session):
        answer.headers.append("Set-Cookie", cookie)
    return answer


@router.get("/signin/oidc", Permission.READ)
async def begin_at_provider(
    request: Request, archive: ArchiveDep, accounts: AccountsDep, following: Next = ""
) -> Response:
    """Redirect the browser to the identity provider."""
    speak(request)
    if accounts.provider is None:
        raise NotFound("no identity provider is set; sign in at /signin")
    try:
        url, flow = await accounts.provider.begin(_callback(request, archive), safe_next(following))
    except ProviderFailed as exc:
        return _at_provider(request, archive, exc, safe_next(following))
    cookie = SessionCookie(archive.settings).written_flow(request.scope, flow.sealed())
    return RedirectResponse(url, 303, {**_HEADERS, "Set-Cookie": cookie})


def _callback(request: Request, archive: Archive) -> str:
    return f"{site_of(request, archive.settings)}/signin/oidc/callback"


@router.get("/signin/oidc/callback", Permission.READ)
async def finish_at_provider(request: Request, archive: ArchiveDep, accounts: AccountsDep) -> Response:
    """Handle the return from the identity provider, and create the session."""
    speak(request)
    if accounts.provider is None:
        raise NotFound("no identity provider is set; sign in at /signin")
    cookies, following = SessionCookie(archive.settings), ""
    try:
        flow = SignInFlow.opened(cookies.read_flow(request.scope))
        following = safe_next(flow.following)
        identity = await accounts.provider.finish(request.query_params, flow, _callback(request, archive))
        browser, sign_in = browser_of(request), accounts.sign_in
        started = await accounts.turns.run(lambda: sign_in.with_identity(identity, browser))
    except (ProviderFailed, ProviderRefused) as exc:
        answer = _at_provider(request, archive, exc, following)
    else:
        # Answer with a page instead of a redirect: this request comes from another site, and with SameSite=Strict a
        # browser would not send the new cookie when it follows a redirect.
        target = escape(_landing(request, following, started.principal))
        answer = _page(
            t("Signed in"),
            f'<h1>{t("Signed in")}</h1><p><a href="{target}">{t("Go on")}</a></p>',
            head=f'<meta http-equiv=refresh content="0;url={target}">',
        )
        answer.headers.append("Set-Cookie", cookies.written(request.scope, started.secret))
    answer.headers.append("Set-Cookie", cookies.written_flow(request.scope, ""))
    return answer


def _at_provider(request: Request, archive: Archive, problem: HoldfastError, following: str) -> Response:
    form = _sign_in_form(archive, following, problem=_sentence(str(problem)))
    return _page(t("Sign in"), form, status=status_of(problem, request.url.path))


@router.get("/setup", Permission.READ)
async def setup_page(request: Request) -> Response:
    """Send the secret of a one-time link, which is in the fragment; show a field for it if scripts are off."""
    speak(request)
    title, label = t("One-time link"), t("Code of your link")
    return _link_page(
        title,
        f"<h1>{title}</h1><section><form method=post action=/setup><label for=token>{label}</label>"
        "<input id=token name=token required autocomplete=off autocapitalize=none spellcheck=false maxlength=200>"
        f"<p class=quiet>{t('The characters behind <code>token=</code>.')}</p>"
        f"<button class=wide>{t('Continue')}</button>"
        "</form></section>",
    )


def _link_page(title: str, body: str, *, status: int = 200) -> HTMLResponse:
    return _page(title, body, status=status, head="<script src=/setup.js defer></script>")


def _spent(problem: LinkSpent) -> Response:
    return _link_page(
        t("Link"), f"<h1>{t('This link does not work')}</h1>{_alert(_sentence(str(problem)))}", status=404
    )


def _setup_form(secret: str, owner: User | None, *, name: str = "", problem: str | None = None) -> str:
    title = t("Create your administrator account") if owner is None else t("Choose a password")
    who = (
        f'<label for=name>{t("Name")}</label><input id=name name=name value="{escape(name)}" required autofocus '
        "autocomplete=username autocapitalize=none spellcheck=false maxlength=64>"
        if owner is None
        else f"<p>{t('For {name}.', name=f'<strong>{escape(owner.name)}</strong>')}</p>"
        f'<input type=hidden name=name autocomplete=username value="{escape(owner.name)}">'
    )
    return (
        f"<h1>{title}</h1>{_alert(problem)}<section><form method=post action=/setup>"
        f'<input type=hidden name=token value="{escape(secret)}">{who}'
        f"{_new_password()}<button class=wide>{t('Save and sign in')}</button></form></section>"
    )


def _new_password() -> str:
    rule = t("At least {count} characters; a few random words are easy to remember.", count=MIN_CHARS)
    return (
        f"<label for=new>{t('New password')}</label><input id=new name=new type=password required "
        f"autocomplete=new-password minlength={MIN_CHARS} maxlength=256 aria-describedby=rule>"
        f"<p class=quiet id=rule>{rule}</p>"
        f"<label for=again>{t('Repeat password')}</label><input id=again name=again type=password required "
        f"autocomplete=new-password minlength={MIN_CHARS} maxlength=256>"
    )


@router.post("/setup", Permission.READ)
async def send_setup(request: Request, archive: ArchiveDep, accounts: AccountsDep, fields: Fields) -> Response:
    """Use a one-time link and sign in; shows its form first, and again with any error."""
    secret, name = fields.get("token", "")[:200], fields.get("name", "")[:200]
    browser = browser_of(request)

    def choose() -> tuple[NewSession, str] | None:
        if "new" not in fields:
            try:
                return accounts.sign_in.with_sign_in_link(secret, browser), "/"
            except LinkSpent:
                return None  # this may be a link to choose a password: `owner` shows it
        if fields.get("new", "") != fields.get("again", ""):
            raise Invalid("the two passwords differ; type the same twice")
        # A link without an owner creates the first administrator, who then adds the first website.
        is_first = owner() is None and request.app.state.has_pages
        password = fields.get("new", "")[:1024]
        return accounts.sign_in.with_link(
            secret, name=name, password=password, browser=browser
        ), "/control/start" if is_first else ""

    def owner() -> User | None:
        with archive.database.read() as session:
            return link_owner(session, archive.clock, secret)

    try:
        started = await accounts.turns.run(choose)
        if started is None:
            return _link_page(t("Choose a password"), _setup_form(secret, await accounts.turns.run(owner)))
    except LinkSpent as exc:
        return _spent(exc)
    except (Invalid, UserExists) as exc:
        form = _setup_form(secret, await accounts.turns.run(owner), name=name, problem=_sentence(str(exc)))
        return _link_page(t("Choose a password"), form, status=422)
    accounts.identities.forget()
    return _signed_in(request, archive, *started)


@router.get("/account", Permission.OWN_ACCOUNT)
def account_page(request: Request, archive: ArchiveDep, session: SessionDep, principal: PrincipalDep) -> Response:
    """Show one's own account: password, sessions, tokens."""
    speak(request)
    return _account(request, archive, session, principal)


def _account(
    request: Request, archive: Archive, session: Any, principal: Principal, *, notice: str = "", status: int = 200
) -> Response:
    user = own_user(session, principal)
    csrf = f'<input type=hidden name=csrf value="{escape(request.scope["state"].get("csrf_token", ""))}">'
    sessions = queries.sessions_of(session, user.id, now=archive.clock.now(), after=0, limit=_SHOWN)
    tokens = queries.tokens_of(session, user.id, after=0, limit=_SHOWN)
    body = (
        f"<header><h1>{escape(user.name)}</h1><form method=post action=/signout class=inline>{csrf}"
        f"<button class=plain>{t('Sign out')}</button></form></header>"
        f"<p class=quiet>{t('Your role: {role}.', role=escape(t(user.role)))} "
        f"<a href=/>{t('To the archive')}</a></p>{notice}"
        f"{_sessions(sessions, principal.session_id, csrf)}{_tokens(tokens, principal, csrf)}{_password(user, csrf)}"
    )
    return _page(t("Account"), body, status=status, wide=True)


def _sessions(rows: list[UserSession], current: int | None, csrf: str) -> str:
    lines = "".join(
        f"<tr><td class=agent>{escape(row.agent) or t('unknown')}<td>{escape(row.address)}<td>{_when(row.created_at)}"
        f"<td>{_when(row.seen_at)}<td>"
        + (
            t("this browser")
            if row.id == current
            else f"<form method=post action=/account/sessions class=inline>{csrf}"
            f"<button class=plain name=id value={row.id}>{t('End')}</button></form>"
        )
        for row in reversed(rows)
    )
    table = _table(t("Signed in"), (t("Browser"), t("Address"), t("Since"), t("Last seen")), lines)
    return (
        f"<section><h2>{t('Signed in')}</h2>{table}<form method=post action=/account/sessions>{csrf}"
        f"<p><button class=plain name=id value=others>{t('End all others')}</button></p></form></section>"
    )


def _table(caption: str, heads: tuple[str, ...], lines: str) -> str:
    shown = "".join(f"<th scope=col>{head}" for head in heads)
    return (
        f'<div class=scroll role=region tabindex=0 aria-label="{t("{caption}, table", caption=caption)}"><table>'
        f"<tr>{shown}<th scope=col><span class=unseen>{t('Action')}</span>{lines}</table></div>"
    )


def _tokens(rows: list[ApiToken], principal: Principal, csrf: str) -> str:
    lines = "".join(
        f"<tr><td>{escape(row.name)}<td><code>{escape(row.hint)}…</code><td>{escape(', '.join(row.scopes))}"
        f"<td>{_when(row.expires_at)}<td>{_when(row.used_at) if row.used_at else t('never')}<td>"
        f"<form method=post action=/account/tokens/revoke class=inline>{csrf}"
        f"<button class=plain name=id value={row.id}>{t('Revoke')}</button></form>"
        for row in reversed(rows)
    )
    table = (
        _table(t("Tokens"), (t("Name"), t("Begins with"), t("Permissions"), t("Until"), t("Last used")), lines)
        if rows
        else f"<p class=quiet>{t('A token lets a program act for you. You have none.')}</p>"
    )
    choices = "".join(
        f"<label class=choice><input type=checkbox name=scopes value={one.value}"
        f"{' checked' if one is Permission.READ else ''}>"
        f"<span>{one.value} <span class=quiet>{t(_MAY[one])}</span></span></label>"
        for one in Permission
        if principal.may(one)
    )
    return (
        f"<section><h2>{t('Tokens')}</h2>{table}<form method=post action=/account/tokens>{csrf}<div class=row>"
        f"<div><label for=token-name>{t('Name of a new token')}</label><input id=token-name name=name required "
        f"maxlength=100 autocomplete=off></div><div><label for=days>{t('Days')}</label><input id=days name=days "
        "type=number min=1 max=366 value=90 required></div></div>"
        f"<fieldset><legend>{t('Permissions')}</legend>{choices}</fieldset>"
        f"<p><button>{t('Create token')}</button></p></form></section>"
    )


def _password(user: User, csrf: str) -> str:
    if user.password_hash is None:
        where = t("You sign in at {issuer}.", issuer=escape(user.issuer or ""))
        return f"<section><h2>{t('Password')}</h2><p class=quiet>{where}</p></section>"
    return (
        f"<section><h2>{t('Password')}</h2><form method=post action=/account/password>{csrf}"
        f'<input type=hidden autocomplete=username value="{escape(user.name)}">'
        f"<label for=current>{t('Current password')}</label><input id=current name=current type=password required "
        f"autocomplete=current-password maxlength=256>{_new_password()}"
        f"<p class=quiet>{t('All other browsers are signed out.')}</p>"
        f"<p><button>{t('Change password')}</button></p></form></section>"
    )


def _when(moment: datetime) -> str:
    return f"<time datetime={moment.isoformat()}>{moment:%Y-%m-%d %H:%M}</time>"


def _back() -> Response:
    return RedirectResponse("/account", 303, _HEADERS)


def _id(fields: Mapping[str, str]) -> int:
    number = fields.get("id", "")
    # Longer numbers are not our ids, and break a database driver.
    if not number.isascii() or not number.isdecimal() or len(number) > 18:
        raise Invalid("id: it is no number; load the page again", field="id")
    return int(number)


@router.post("/account/sessions", Permission.OWN_ACCOUNT)
def send_end_session(principal: PrincipalDep, write: AdminWriteDep, fields: OwnFields) -> Response:
    """End one session, or all but this one."""
    with write.write_accounts() as session:
        user = own_user(session, principal)
        if fields.get("id") == "others":
            end_sessions(session, write.clock, user, keep=principal.session_id)
        else:
            end_session(session, write.clock, user, _id(fields))
    return _back()


@router.post("/account/tokens", Permission.OWN_ACCOUNT)
def send_token(
    request: Request, archive: ArchiveDep, principal: PrincipalDep, write: AdminWriteDep, fields: OwnFields
) -> Response:
    """Create a token and show its secret, only in this response."""
    try:
        days = fields.get("days", "")
        form = TokenForm(
            name=fields.get("name", ""),
            scopes=fields.get("scopes", "read").split(),  # type: ignore[arg-type]
            days=int(days) if days.isascii() and days.isdecimal() and len(days) < 5 else 0,
        )
        made = token_made(principal, write, form)
        notice = (
            f"<section role=status><h2>{t('Your new token')}</h2><p>{t('Copy it now: it is not shown again.')}</p>"
            f"<code class=secret>{escape(made.secret)}</code></section>"
        )
        status = 201
    except ValidationError:
        notice, status = _alert(t("A token needs a name, 1 to 366 days, and something that it may do.")), 422
    except (Invalid, HoldfastError) as exc:
        notice, status = _alert(_sentence(str(exc))), status_of(exc, request.url.path)
    with archive.database.read() as session:
        return _account(request, archive, session, principal, notice=notice, status=status)


@router.post("/account/tokens/revoke", Permission.OWN_ACCOUNT)
def send_revoke(principal: PrincipalDep, write: AdminWriteDep, fields: OwnFields) -> Response:
    """Revoke a token."""
    with write.write_accounts() as session:
        revoke_token(session, write.clock, own_user(session, principal), _id(fields))
    return _back()


@router.post("/account/password", Permission.OWN_ACCOUNT)
async def send_password(
    request: Request, archive: ArchiveDep, accounts: AccountsDep, principal: PrincipalDep, fields: OwnFields
) -> Response:
    """Change one's own password; all other sessions end."""
    try:
        if fields.get("new", "") != fields.get("again", ""):
            raise Invalid("the two passwords differ; type the same twice")
        form = PasswordForm(current=fields.get("current", "")[:1024] or " ", new=fields.get("new", "")[:1024] or " ")
        ended = await password_changed(request, accounts, principal, form)
        notice = f"<p role=status>{t('Your password is changed. Other sessions ended: {count}.', count=ended)}</p>"
        status = 200
    except (Invalid, SignInThrottled) as exc:
        notice, status = _alert(_sentence(str(exc))), status_of(exc, request.url.path)

    def show() -> Response:
        with archive.database.read() as session:
            return _account(request, archive, session, principal, notice=notice, status=status)

    return await accounts.turns.run(show)


@router.post("/signout", Permission.OWN_ACCOUNT)
def send_sign_out(request: Request, archive: ArchiveDep, write: AdminWriteDep, fields: OwnFields) -> Response:
    """End this session."""
    assert fields is not None
    end_own_session(request, write)
    cleared = SessionCookie(archive.settings).cleared(request.scope)
    return RedirectResponse("/signin", 303, {**_HEADERS, "Set-Cookie": cleared})
