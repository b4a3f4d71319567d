"""`holdfast user` and `holdfast token`: user accounts, and tokens for programs that act on their behalf."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from holdfast.auth import queries, users
from holdfast.auth.records import InvitedUser, TokenRecord, UserRecord, new_token, token_record, user_record
from holdfast.auth.roles import Permission, Role
from holdfast.auth.sessions import end_sessions
from holdfast.auth.tokens import DEFAULT_DAYS, MAX_DAYS, make_token, revoke_token
from holdfast.cli.formatting import counted, text
from holdfast.cli.parameters import Apply, command_group
from holdfast.cli.resource import Done, Listing, Reading, Writing, command
from holdfast.errors import Invalid
from holdfast.processes.part_states import address_path
from holdfast.wiring.archive import Archive

app_command = command_group(
    "Manage accounts: list, add, role, disable, password. Example: holdfast user add ada --role operator"
)
token = command_group(
    "Secrets of programs that act for a user: list, create, revoke. Example: holdfast token create ada backup"
)
_USERS = Listing(
    "users",
    "id name role state signed_in_at",
    "no users yet; make one with: holdfast user add NAME --role administrator",
)
_TOKENS = Listing("tokens", "id hint name scopes expires_at used_at", "this user has no tokens")
Name = Annotated[str, typer.Argument(help="The user's name.", metavar="NAME")]
Stdin = Annotated[bool, typer.Option("--password-stdin", help="Read the password from standard input.")]
_PIECE = 500


@command(app_command, "list", listing=_USERS, example="user list")
def list_users(session: Reading) -> list[UserRecord]:
    """List all users."""
    found: list[UserRecord] = []
    while piece := queries.users(session, after=found[-1].id if found else 0, limit=_PIECE):
        found += map(user_record, piece)
    return found


@command(app_command, example="user add ada --role operator")
def add(
    archive: Archive,
    name: Name,
    role: Annotated[users.UserRole, typer.Option(help="What the user may do.")] = "member",
    password_stdin: Stdin = False,
) -> Done:
    """Create a user, and a link by which the user chooses a password."""
    password = _password() if password_stdin else None
    with archive.database.write() as session:
        user = users.add_user(session, archive.clock, name=name, role=Role(role), password=password)
        link = None if password is not None else _link(archive, users.make_link(session, archive.clock, user))
        return _invited(user_record(user), link, f"{user.name} is {user.role}")


def _password() -> str:
    """Return the first line of standard input; raise Invalid if it is empty."""
    line = sys.stdin.readline().rstrip("\r\n")
    if not line:
        raise Invalid("there is no password on standard input; write it there, followed by a line end")
    return line


def _link(archive: Archive, secret: str) -> str:
    """Return a link to the configured site or the running server, else to the configured port with a notice."""
    settings = archive.settings
    site = settings.api.site_url
    if site is None and (noted := address_path(settings.home)).is_file():
        site = noted.read_text()
    if site is None:
        typer.echo(f"no server runs here; the link assumes port {settings.api.port} (HOLDFAST_API_PORT)", err=True)
    return users.link_url(site or settings.site_origin, secret)


def _invited(user: UserRecord, link: str | None, *sentences: str) -> Done:
    lines = [*sentences, *([f"to choose a password, once and within {users.LINK_HOURS} hours: {link}"] if link else [])]
    return Done(InvitedUser(user=user, link=link), lines)


@command(app_command, "role", example="user role ada administrator")
def change_role(
    archive: Archive, name: Name, role: Annotated[users.UserRole, typer.Argument(help="What the user may do.")]
) -> Done:
    """Change a user's role; the last administrator cannot lose that role."""
    return _change(archive, {"role": Role(role)}, name)


def _change(archive: Archive, changes: dict[str, Any], name: Name) -> Done:
    with archive.database.write() as session:
        user = user_record(users.change_user(session, archive.clock, name, **changes))
    return Done({"user": user}, f"{user.name} is {user.role}, {user.state}")


for _name, _is_disabled, _about in (
    ("disable", True, "Disable a user: sessions end, tokens stop working; the last administrator stays."),
    ("enable", False, "Enable a disabled user."),
):
    _given = ({"disabled": _is_disabled},)
    command(app_command, _name, about=_about, example=f"user {_name} ada", given=_given)(_change)


@command(app_command, example="user password ada")
def password(archive: Archive, name: Name, password_stdin: Stdin = False) -> Done:
    """Create a link by which a user chooses a new password, or set one from standard input and end all sessions."""
    given = _password() if password_stdin else None
    with archive.database.write() as session:
        user = users.find_user(session, name)
        if given is None:
            return _invited(user_record(user), _link(archive, users.make_link(session, archive.clock, user)))
        users.set_password(session, archive.clock, user, given)
        return _invited(user_record(user), None, f"{text(user.name)} has a new password; all its sessions ended")


@command(app_command, "sign-out", example="user sign-out ada")
def sign_out(archive: Archive, session: Writing, name: Name) -> Done:
    """End all sessions of a user."""
    ended = end_sessions(session, archive.clock, users.find_user(session, name))
    return Done({"ended": ended}, f"{counted(ended, 'session')} ended")


@command(app_command, example="user delete ada --apply")
def delete(archive: Archive, session: Writing, name: Name, apply: Apply = False) -> Done:
    """Delete a user with all sessions and tokens; the last administrator cannot be deleted."""
    user = user_record(users.find_user(session, name))
    if apply:
        users.delete_user(session, archive.clock, user.id)
    return Done({"user": user, "deleted": apply}, f"{text(user.name)} {'is' if apply else 'would be'} deleted")


@command(token, "list", listing=_TOKENS, example="token list ada")
def list_tokens(session: Reading, name: Name) -> list[TokenRecord]:
    """List the tokens of a user, without their secrets."""
    rows = queries.tokens_of(session, users.find_user(session, name).id, after=0, limit=_PIECE)
    return list(map(token_record, rows))


@command(token, "create", example="token create ada backup --scope operate --days 30")
def create_token(
    archive: Archive,
    session: Writing,
    name: Name,
    label: Annotated[str, typer.Argument(help="What the token is for.", metavar="LABEL")],
    scope: Annotated[list[Permission] | None, typer.Option(help="Permission of the token; may be repeated.")] = None,
    days: Annotated[int, typer.Option(min=1, max=MAX_DAYS, help="Days until the token expires.")] = DEFAULT_DAYS,
) -> Done:
    """Create a token for a user and print it, only this once; without --scope it is read-only."""
    user = users.find_user(session, name)
    made = make_token(session, archive.clock, user, name=label, scopes=scope or [Permission.READ], days=days)
    return Done(new_token(made), made.secret)


@command(token, example="token revoke ada 3")
def revoke(
    archive: Archive,
    session: Writing,
    name: Name,
    id: Annotated[int, typer.Argument(min=0, help="The token's number, from `token list`.", metavar="ID")],
) -> Done:
    """Revoke a token of a user."""
    revoke_token(session, archive.clock, users.find_user(session, name), id)
    return Done({"revoked": id}, f"token {id} is revoked")
