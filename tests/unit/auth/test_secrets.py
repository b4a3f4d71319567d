"""Passwords and secrets: what is kept of them, what is taken, and what is not."""

from __future__ import annotations

import pytest

from holdfast.auth.credentials import TOKEN_PREFIX, csrf_token, digest_of, is_same, new_secret
from holdfast.auth.errors import PasswordRefused
from holdfast.auth.passwords import hash_password, is_outdated, is_password

_PASSWORD = "an otter in the harbour"


def test_a_password_is_kept_as_argon2id() -> None:
    kept = hash_password(_PASSWORD)

    assert kept.startswith("$argon2id$v=19$m=19456,t=2,p=1$")
    assert is_password(kept, _PASSWORD)
    assert not is_password(kept, f"{_PASSWORD} ")
    assert not is_password(None, _PASSWORD)
    assert not is_outdated(kept)
    assert is_outdated(kept.replace("t=2", "t=1"))


def test_a_password_is_not_cut_off() -> None:
    long = "otter" * 51  # 255 bytes: more than some hashes look at

    assert not is_password(hash_password(long), long[:72])
    assert not is_password(hash_password(f"{long[:72]}\0more"), long[:72])
    assert not is_password(hash_password(f"{long}x"), f"{long}xx")


def test_whatever_is_taken_for_a_password_lets_its_owner_in() -> None:
    # Letters with two marks, typed as three characters each and kept in two bytes: 256 bytes of 384 characters.
    typed = "".join(f"{letter}\u0308\u0304" for letter in "uUaAoO" * 22)[: 3 * 128]

    assert is_password(hash_password(typed), typed)
    assert not is_password(hash_password(typed), typed[:-3])


def test_two_spellings_of_one_text_are_one_password() -> None:
    assert is_password(
        hash_password("caf\u00e9 au lait, s'il vous pla\u00eet"), "cafe\u0301 au lait, s'il vous plai\u0302t"
    )


@pytest.mark.parametrize("password", ["", "short", "x" * 257, "\u00e9" * 129, "aaaaaaaaaaaaaaaa", "ada.ada.ada.ada"])
def test_passwords_that_are_guessed_at_once_are_not_taken(password: str) -> None:
    with pytest.raises(PasswordRefused):
        hash_password(password, name="ada." if password.startswith("ada") else "ada")


def test_a_secret_is_known_by_its_shape_before_the_database_is_asked() -> None:
    secret = new_secret(TOKEN_PREFIX)
    other = secret[:-1] + ("A" if secret[-1] != "A" else "B")

    assert len(secret) == 51
    assert digest_of(secret, TOKEN_PREFIX) is not None
    for wrong in ("", "null", secret[:-1], f"{secret}A", other, secret.replace("hf_", "HF_"), f"\u0430{secret[1:]}",
                  secret.removeprefix("hf_")):  # fmt: skip
        assert digest_of(wrong, TOKEN_PREFIX) is None
    assert digest_of(secret.removeprefix("hf_")) is None, "a token is no session"


def test_the_token_of_a_page_belongs_to_its_session() -> None:
    first, second = new_secret(), new_secret()

    assert csrf_token(first) == csrf_token(first) != csrf_token(second)
    assert first not in csrf_token(first)
    assert is_same(csrf_token(first), csrf_token(first))
    assert not is_same("", csrf_token(first))
