"""Errors of authentication and authorization. `Unauthenticated` is answered with 401, the rest by their kind."""

from __future__ import annotations

from holdfast.errors import Conflict, Invalid, NotFound, NotPermitted, Unavailable


class Unauthenticated(NotPermitted):
    """The request has no credentials, or malformed ones."""

    code = "unauthenticated"
    summary = "Authentication required"
    sentence = "this needs an identity: sign in at /signin, or send a token as Authorization: Bearer or X-Admin-Token"


class CredentialWrong(Unauthenticated):
    """The credential is unknown, revoked, expired or damaged."""

    code = "credential_wrong"

    def __init__(self, what: str, next_step: str = "sign in again, or make a new token") -> None:
        super().__init__(f"{what} of this request is not valid here: unknown, revoked or expired; {next_step}")


class SignInFailed(Unauthenticated):
    """The name or the password is wrong; the answer does not reveal which."""

    code = "sign_in_failed"
    summary = "Invalid credentials"
    sentence = "the name or the password is wrong; try again"


class RoleTooLow(NotPermitted):
    """The caller is known, but lacks the permission."""

    code = "role_too_low"
    summary = "Insufficient permissions"

    def __init__(self, permission: str) -> None:
        super().__init__(f"this needs the permission {permission}; ask an administrator for it")


class CrossSiteRefused(NotPermitted):
    """A change from a signed-in browser that none of our pages sent."""

    code = "cross_site_refused"
    sentence = (
        "a change with a session needs the Origin of this site and the session's token in X-CSRF-Token; "
        "GET /api/session gives it"
    )


class SignInThrottled(Unavailable):
    """Signing in failed too often for this account, or from this address."""

    code = "sign_in_throttled"
    summary = "Too many attempts"

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(f"signing in failed too often; try again in {retry_after_s} s")
        self.retry_after_s = retry_after_s


class PasswordRefused(Invalid):
    """The password does not meet the requirements."""

    code = "password_refused"


class UserNotFound(NotFound):
    """The user does not exist."""

    code = "user_not_found"

    def __init__(self, user: int | str) -> None:
        super().__init__(f"there is no user {user}; see them with: holdfast user list")


class UserExists(Conflict):
    """Another user already has this name."""

    code = "user_exists"

    def __init__(self, name: str) -> None:
        super().__init__(f"there is a user {name} already; choose another name")


class LastAdministrator(Conflict):
    """The change would remove the last administrator that can sign in."""

    code = "last_administrator"
    sentence = "this is the last administrator that can sign in; make another user administrator first"


class NoAccount(Conflict):
    """The credential belongs to no user, so it has no password, sessions or tokens."""

    code = "no_account"
    sentence = "this credential belongs to no user; sign in with an account at /signin"


class LinkSpent(NotFound):
    """The one-time link was used, replaced, or has expired."""

    code = "link_spent"
    sentence = "this link was used already, was replaced, or is too old; ask for a new one"


class SessionNotFound(NotFound):
    """The session does not exist, or belongs to another user."""

    code = "session_not_found"
    sentence = "there is no such session; it may have ended already"


class TokenNotFound(NotFound):
    """The token does not exist, or belongs to another user."""

    code = "token_not_found"
    sentence = "there is no such token; it may have been revoked already"


class ProviderFailed(Unavailable):
    """The identity provider does not answer, or its answer is invalid."""

    code = "provider_failed"


class ProviderRefused(NotPermitted):
    """The identity provider's answer does not permit this person to sign in."""

    code = "provider_refused"
