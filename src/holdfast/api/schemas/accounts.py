"""Request bodies of accounts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AliasChoices, Field

from holdfast.api.schemas.base import RequestForm
from holdfast.auth.tokens import DEFAULT_DAYS, MAX_DAYS
from holdfast.auth.users import UserRole
from holdfast.old_spellings import OLD_LOGIN_FIELD

# Bounded here, so that a megabyte is refused before it is hashed.
PasswordText = Annotated[str, Field(min_length=1, max_length=1024, description="12 characters to 256 bytes.")]
NameText = Annotated[str, Field(min_length=1, max_length=256, description="The name to sign in with.")]


class SignInForm(RequestForm):
    """A name and its password."""

    name: Annotated[NameText, Field(validation_alias=AliasChoices("name", OLD_LOGIN_FIELD))]
    password: PasswordText


class PasswordForm(RequestForm):
    """A new password."""

    current: PasswordText
    new: PasswordText


class TokenForm(RequestForm):
    """A new token."""

    name: Annotated[str, Field(min_length=1, max_length=100, description="To tell it from others.")]
    scopes: Annotated[
        list[Literal["read", "own_account", "explain", "watch", "operate", "administer"]],
        Field(min_length=1, max_length=6, description="What it may do; never more than its user."),
    ]
    days: Annotated[int, Field(ge=1, le=MAX_DAYS, description="How long it holds.")] = DEFAULT_DAYS


class UserForm(RequestForm):
    """A user to invite."""

    name: NameText
    role: UserRole


class UserChangesForm(RequestForm):
    """Changes of a user; omitted fields keep their values."""

    role: UserRole | None = None
    disabled: bool | None = None
