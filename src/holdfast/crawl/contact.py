"""The contact of this installation: the e-mail or web address in the User-Agent, by which site owners reach us."""

from __future__ import annotations

import os
from typing import Final

from holdfast.config import Settings
from holdfast.db.schema import make_home
from holdfast.errors import Invalid, UrlRefused
from holdfast.urls import parse

_WHY: Final = "site owners must be able to reach you"
HELP: Final = f"give an e-mail or web address with --contact or HOLDFAST_CONTACT: {_WHY}"
HELP_WITHOUT_OPTION: Final = f"set HOLDFAST_CONTACT to an e-mail or web address: {_WHY}"


class ContactMissing(Invalid):
    """No contact is known, so no site is requested."""

    code = "contact_missing"

    def __init__(self) -> None:
        super().__init__(
            "no contact is set, so no site is requested; enter an e-mail or web address that site owners can use, "
            "or set HOLDFAST_CONTACT",
            field="contact",
        )


class ContactRefused(Invalid):
    """A text is neither an e-mail address nor a web address."""

    code = "contact_refused"

    def __init__(self, contact: str, help_text: str, reason: str = "it is not an e-mail or web address") -> None:
        super().__init__(f"{contact[:80]!r} cannot be the contact: {reason}; {help_text}", field="contact")


def contact_of(settings: Settings) -> str:
    """Return the contact that goes into the User-Agent; ContactMissing without one."""
    if (contact := settings.known_contact) is None:
        raise ContactMissing
    return contact


def check_contact(contact: str, help_text: str = HELP) -> str:
    """Return the contact if it is one: something@somewhere, or an http(s) address; ContactRefused otherwise."""
    contact = contact.strip()
    name, at, host = contact.partition("@")
    if at and name and "." in host and contact.isprintable() and not set(contact) & set(" ()<>,;\"'"):
        return contact
    if "://" in contact:
        try:
            # It goes into a header of every request: only what our parser wrote out may stand there.
            return parse(contact).fetch
        except UrlRefused as exc:
            raise ContactRefused(contact, help_text, exc.reason) from exc
    raise ContactRefused(contact, help_text)


def remember_contact(settings: Settings, contact: str) -> str:
    """Keep a contact in the data directory for every later request, and return the one in force.

    HOLDFAST_CONTACT wins over what is kept. Workers read the file before each run, so none has to be restarted.
    """
    checked = check_contact(contact, HELP_WITHOUT_OPTION)
    if not settings.contact:
        make_home(settings.home)
        path = settings.home / "contact"
        # Renamed into place: another process reads either contact whole.
        fresh = path.with_name(f"contact.{os.getpid()}")
        fresh.write_text(checked + "\n")
        fresh.replace(path)
    return contact_of(settings)
