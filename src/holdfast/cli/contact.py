"""Who answers for a crawl: given, configured, remembered, or asked once. Without a contact nothing is crawled."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from holdfast.config import Settings
from holdfast.errors import Invalid, UrlRefused
from holdfast.urls import parse

_HELP = "give an e-mail or web address with --contact or HOLDFAST_CONTACT: site owners must be able to reach you"


def find_contact(settings: Settings, given: str | None) -> str:
    """Return the contact of this crawl; Invalid if there is none and nobody can be asked."""
    remembered = settings.home / "contact"
    contact = given or settings.contact or (remembered.read_text().strip() if remembered.is_file() else "")
    if contact:
        return check(contact)
    if not sys.stdin.isatty() or not sys.stderr.isatty():
        raise Invalid(f"no contact, so nothing is crawled; {_HELP}")
    contact = check(typer.prompt("Contact for site owners (e-mail or web address; asked once)", err=True))
    remember(remembered, contact)
    return contact


def remember(path: Path, contact: str) -> None:
    """Keep the contact for the next crawl from this data directory."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(contact + "\n")


def check(contact: str) -> str:
    """Return the contact if it is one: something@somewhere, or an http(s) address."""
    contact = contact.strip()
    name, at, host = contact.partition("@")
    if at and name and "." in host and contact.isprintable() and not set(contact) & set(" ()<>,;\"'"):
        return contact
    if "://" in contact:
        try:
            return parse(contact).fetch
        except UrlRefused as exc:
            raise Invalid(f"{contact[:80]!r} is no contact: {exc.reason}; {_HELP}") from exc
    raise Invalid(f"{contact[:80]!r} is no contact; {_HELP}")
