"""Accounts: users, sessions, tokens, one-time links and failed sign-ins.

No row holds a secret: passwords are stored as argon2id hashes, everything else as the SHA-256 of the secret.
"""

from datetime import datetime

from sqlalchemy import ForeignKey, Index, LargeBinary, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from holdfast.db.models.base import BigId, Model


class User(Model):
    """A person with an account."""

    __tablename__ = "users"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    name: Mapped[str] = mapped_column(String(64), unique=True)
    """The sign-in name, in lower case."""
    role: Mapped[str] = mapped_column(String(16))
    password_hash: Mapped[str | None] = mapped_column(String(255))
    """None until a password is chosen, and for accounts of an identity provider."""
    issuer: Mapped[str | None] = mapped_column(String(255))
    subject: Mapped[str | None] = mapped_column(String(255))
    """The user's subject at the issuer; the pair never passes to another person, unlike a name."""
    created_at: Mapped[datetime]
    signed_in_at: Mapped[datetime | None]
    disabled_at: Mapped[datetime | None]

    __table_args__ = (UniqueConstraint("issuer", "subject"),)


class UserSession(Model):
    """A signed-in browser; the row is deleted when the session ends or expires."""

    __tablename__ = "user_sessions"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    secret_hash: Mapped[bytes] = mapped_column(LargeBinary, unique=True)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    seen_at: Mapped[datetime]
    address: Mapped[str] = mapped_column(String(64))
    agent: Mapped[str] = mapped_column(String(200))
    """The browser's User-Agent."""

    __table_args__ = (
        Index("ix_user_sessions_user", "user_id", "id"),
        Index("ix_user_sessions_expires_at", "expires_at"),
    )


class ApiToken(Model):
    """A secret of a program that acts for a user; the row is deleted when it is revoked."""

    __tablename__ = "api_tokens"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    name: Mapped[str] = mapped_column(String(100))
    secret_hash: Mapped[bytes] = mapped_column(LargeBinary, unique=True)
    hint: Mapped[str] = mapped_column(String(16))
    """The first characters, to distinguish tokens."""
    scopes: Mapped[list[str]]
    """The permissions that the token is limited to."""
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]

    __table_args__ = (Index("ix_api_tokens_user", "user_id", "id"),)


class AccountLink(Model):
    """A link that works once: to create the first administrator, or to choose a password."""

    __tablename__ = "account_links"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    user_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), unique=True)
    """None for the link that creates the first administrator; a user has at most one link."""
    secret_hash: Mapped[bytes] = mapped_column(LargeBinary, unique=True)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]


class SignInFailure(Model):
    """Recent failed sign-ins for one account or one address."""

    __tablename__ = "sign_in_failures"

    key: Mapped[str] = mapped_column(String(80), primary_key=True)
    failures: Mapped[int]
    since: Mapped[datetime]
    """Start of the window in which failures are counted."""

    __table_args__ = (Index("ix_sign_in_failures_since", "since"),)
