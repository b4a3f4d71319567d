"""This installation's contact: the e-mail address or URL in the User-Agent through which site owners reach us."""

from __future__ import annotations

from typing import Final

from holdfast.config import Settings
from holdfast.db.installation import read_contact, write_contact
from holdfast.errors import Invalid, UrlRefused
from holdfast.urls import parse

_WHY: Final = "site owners must be able to reach you"
HELP: Final = f"give an e-mail or web address with --contact or HOLDFAST_CONTACT: {_WHY}"
HELP_WITHOUT_OPTION: Final = f"set HOLDFAST_CONTACT to an e-mail or web address: {_WHY}"


class ContactMissing(Invalid):
    """No contact is configured, so no site is requested."""

    code = "contact_missing"

    def __init__(self) -> None:
        super().__init__(
            "no contact is set, so no site is requested; enter an e-mail or web address that site owners can use on "
            "the page Add a website, or set HOLDFAST_CONTACT",
            field="contact",
        )


class ContactRefused(Invalid):
    """The text is neither an e-mail address nor a web address."""

    code = "contact_refused"

    def __init__(self, contact: str, help_text: str, reason: str = "it is not an e-mail or web address") -> None:
        super().__init__(f"{contact[:80]!r} cannot be the contact: {reason}; {help_text}", field="contact")


def known_contact(settings: Settings) -> str | None:
    """Return HOLDFAST_CONTACT, else the contact stored in the database."""
    if contact := settings.contact or read_contact(settings.database):
        return contact
    # Programs before schema 0035 wrote it here; a contact in the database replaces it.
    old = settings.home / "contact"
    return (old.read_text().strip() or None) if old.is_file() else None


def contact_of(settings: Settings) -> str:
    if (contact := known_contact(settings)) is None:
        raise ContactMissing
    return contact


def check_contact(contact: str, help_text: str = HELP) -> str:
    """Return a valid contact (an e-mail address or an http(s) URL); raise `ContactRefused` otherwise."""
    contact = contact.strip()
    name, at, host = contact.partition("@")
    if at and not contact.isascii():
        # RFC 9110, 5.5: it goes into a header of every request.
        raise ContactRefused(contact, help_text, "a header holds ASCII letters only; write xn-- for the host")
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
    """Store a contact in the database for every later request, and return the effective one.

    HOLDFAST_CONTACT overrides the stored contact. Workers read the contact before each run: no restart is needed.
    """
    checked = check_contact(contact, f"enter one like name@example.org: {_WHY}")
    if settings.contact:
        return settings.contact
    write_contact(settings, checked)
    return checked
