"""`holdfast user` and `holdfast token`: who has an account, and the secrets of programs that act for them."""

from __future__ import annotations

import json as jsonlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from sqlalchemy.orm import Session

from holdfast import config
from holdfast.auth import queries
from holdfast.auth.roles import Permission, Role
from holdfast.auth.sessions import end_sessions
from holdfast.auth.tokens import DEFAULT_DAYS, MAX_DAYS, make_token, revoke_token
from holdfast.auth.users import (
    LINK_HOURS,
    UserChanges,
    UserRole,
    add_user,
    change_user,
    delete_user,
    find_user,
    link_url,
    make_link,
    set_password,
    state_of,
)
from holdfast.cli.formatting import counted, text
from holdfast.cli.parameters import AsJson, Home, command_group
from holdfast.db.models import ApiToken, User
from holdfast.errors import Invalid
from holdfast.supervision.state import address_path
from holdfast.wiring.archive import Archive, open_archive

app_command = command_group(
    "Who has an account: list, add, role, disable, password. Example: holdfast user add ada --role operator"
)
token = command_group(
    "Secrets of programs that act for a user: list, create, revoke. Example: holdfast token create ada backup"
)
Name = Annotated[str, typer.Argument(help="The user's name.", metavar="NAME")]
Stdin = Annotated[bool, typer.Option("--password-stdin", help="Read the password from standard input.")]
_PIECE = 500


@contextmanager
def _writing(home: Any) -> Iterator[tuple[Archive, Session]]:
    with open_archive(config.load(home=home)) as archive, archive.database.write() as session:
        yield archive, session


@app_command.command("list")
def list_users(json: AsJson = False, home: Home = None) -> None:
    """List all users.

    Example: holdfast user list
    """
    found: list[User] = []
    with open_archive(config.load(home=home)) as archive, archive.database.read() as session:
        while piece := queries.users(session, after=found[-1].id if found else 0, limit=_PIECE):
            found += piece
    if json:
        print(jsonlib.dumps({"users": [user_object(user) for user in found]}))
        return
    for user in found:
        seen = f"{user.signed_in_at:%Y-%m-%d %H:%M}" if user.signed_in_at else "never"
        print(f"{user.id:>5}  {text(user.name):<24}  {user.role:<13}  {state_of(user):<8}  signed in {seen}")
    if not found:
        print("there is no user yet; make one with: holdfast user add NAME --role administrator")


def user_object(user: User) -> dict[str, Any]:
    """Return a user as JSON can hold it."""
    return {
        "id": user.id,
        "name": user.name,
        "role": user.role,
        "state": state_of(user).value,
        "provider": user.issuer,
        "created_at": user.created_at.isoformat(),
        "signed_in_at": user.signed_in_at.isoformat() if user.signed_in_at else None,
    }


@app_command.command("add")
def add(
    name: Name,
    role: Annotated[UserRole, typer.Option("--role", help="What the user may do.")] = "member",
    password_stdin: Stdin = False,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Make a user, and a link by which that one chooses a password.

    Example: holdfast user add ada --role operator
    """
    password = _password() if password_stdin else None
    with _writing(home) as (archive, session):
        user = add_user(session, archive.clock, name=name, role=Role(role), password=password)
        link = None if password is not None else _link(archive, make_link(session, archive.clock, user))
        shown = user_object(user)
    if json:
        print(jsonlib.dumps({"user": shown, "link": link}))
        return
    typer.echo(f"{shown['name']} is {shown['role']}")
    _say_link(link)


def _password() -> str:
    """Return the first line of standard input; Invalid if there is none."""
    line = sys.stdin.readline().rstrip("\r\n")
    if not line:
        raise Invalid("there is no password on standard input; write it there, followed by a line end")
    return line


def _link(archive: Archive, secret: str) -> str:
    """Return a link to the configured site or the running server, else to the configured port, and say so."""
    settings = archive.settings
    site = settings.api.site_url
    if site is None and (noted := address_path(settings.home)).is_file():
        site = noted.read_text()
    if site is None:
        typer.echo(f"no server runs here; the link assumes port {settings.api.port} (HOLDFAST_API_PORT)", err=True)
    return link_url(site or settings.site_origin, secret)


def _say_link(link: str | None) -> None:
    if link is not None:
        typer.echo(f"to choose a password, once and within {LINK_HOURS} hours: {link}")


@app_command.command("role")
def change_role(
    name: Name,
    role: Annotated[UserRole, typer.Argument(help="What the user may do.")],
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Give a user another role; the last administrator stays one.

    Example: holdfast user role ada administrator
    """
    _change(name, UserChanges(role=Role(role)), as_json=json, home=home)


@app_command.command("disable")
def disable(name: Name, json: AsJson = False, home: Home = None) -> None:
    """Keep a user out: sessions end, tokens stop working; the last administrator stays.

    Example: holdfast user disable ada
    """
    _change(name, UserChanges(disabled=True), as_json=json, home=home)


@app_command.command("enable")
def enable(name: Name, json: AsJson = False, home: Home = None) -> None:
    """Let a user in again.

    Example: holdfast user enable ada
    """
    _change(name, UserChanges(disabled=False), as_json=json, home=home)


def _change(name: str, changes: UserChanges, *, as_json: bool, home: Any) -> None:
    with _writing(home) as (archive, session):
        shown = user_object(change_user(session, archive.clock, name, changes))
    print(jsonlib.dumps({"user": shown}) if as_json else f"{shown['name']} is {shown['role']}, {shown['state']}")


@app_command.command("password")
def password(name: Name, password_stdin: Stdin = False, json: AsJson = False, home: Home = None) -> None:
    """Make a link by which a user chooses a new password, or set one from standard input and end all sessions.

    Example: holdfast user password ada
    """
    given = _password() if password_stdin else None
    with _writing(home) as (archive, session):
        user = find_user(session, name)
        link = None
        if given is None:
            link = _link(archive, make_link(session, archive.clock, user))
        else:
            set_password(session, archive.clock, user, given)
    if json:
        print(jsonlib.dumps({"user": user_object(user), "link": link}))
        return
    if link is None:
        typer.echo(f"{text(user.name)} has a new password; all its sessions ended")
    _say_link(link)


@app_command.command("sign-out")
def sign_out(name: Name, json: AsJson = False, home: Home = None) -> None:
    """End all sessions of a user.

    Example: holdfast user sign-out ada
    """
    with _writing(home) as (archive, session):
        ended = end_sessions(session, archive.clock, find_user(session, name))
    print(jsonlib.dumps({"ended": ended}) if json else f"{counted(ended, 'session')} ended")


@app_command.command("delete")
def delete(
    name: Name,
    apply: Annotated[bool, typer.Option("--apply", help="Do it; otherwise only say what would be done.")] = False,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Delete a user with its sessions and tokens; the last administrator stays.

    Example: holdfast user delete ada --apply
    """
    with _writing(home) as (archive, session):
        user = find_user(session, name)
        if apply:
            delete_user(session, archive.clock, user.id)
    if json:
        print(jsonlib.dumps({"user": user_object(user), "deleted": apply}))
        return
    typer.echo(f"{text(user.name)} is deleted" if apply else f"{text(user.name)} would be deleted; add --apply")


@token.command("list")
def list_tokens(name: Name, json: AsJson = False, home: Home = None) -> None:
    """List the tokens of a user, without their secrets.

    Example: holdfast token list ada
    """
    with open_archive(config.load(home=home)) as archive, archive.database.read() as session:
        rows = queries.tokens_of(session, find_user(session, name).id, after=0, limit=_PIECE)
    if json:
        print(jsonlib.dumps({"tokens": [token_object(row) for row in rows]}))
        return
    for row in rows:
        used = f"{row.used_at:%Y-%m-%d}" if row.used_at else "never"
        scopes = ", ".join(row.scopes)
        print(f"{row.id:>5}  {row.hint}…  {text(row.name):<24}  {scopes}  until {row.expires_at:%Y-%m-%d}  used {used}")
    if not rows:
        print(f"{text(name)} has no token")


def token_object(row: ApiToken) -> dict[str, Any]:
    """Return a token as JSON can hold it, without its secret."""
    moments = {"created_at": row.created_at, "expires_at": row.expires_at, "used_at": row.used_at}
    return {
        "id": row.id,
        "name": row.name,
        "hint": row.hint,
        "scopes": row.scopes,
        **{key: at.isoformat() if at is not None else None for key, at in moments.items()},
    }


@token.command("create")
def create_token(
    name: Name,
    label: Annotated[str, typer.Argument(help="What the token is for.", metavar="LABEL")],
    scope: Annotated[list[Permission] | None, typer.Option("--scope", help="What it may do; may be repeated.")] = None,
    days: Annotated[int, typer.Option("--days", min=1, max=MAX_DAYS, help="How long it holds.")] = DEFAULT_DAYS,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Make a token for a user and print it, this once; without --scope it may only read.

    Example: holdfast token create ada backup --scope operate --days 30
    """
    with _writing(home) as (archive, session):
        user = find_user(session, name)
        made = make_token(session, archive.clock, user, name=label, scopes=scope or [Permission.READ], days=days)
    print(jsonlib.dumps({"token": token_object(made.row), "secret": made.secret}) if json else made.secret)


@token.command("revoke")
def revoke(
    name: Name,
    id: Annotated[int, typer.Argument(min=0, help="The token's number, from `token list`.", metavar="ID")],
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Revoke a token of a user.

    Example: holdfast token revoke ada 3
    """
    with _writing(home) as (archive, session):
        revoke_token(session, archive.clock, find_user(session, name), id)
    print(jsonlib.dumps({"revoked": id}) if json else f"token {id} is revoked")
