"""Translations (English and French) for the pages that the server renders: sign-in, one-time links and account.

The English sentence is the key. `speak` sets the language of a request, `t` translates a sentence into it.
"""

from __future__ import annotations

import tomllib
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Final, Literal, NamedTuple

from fastapi import Request

Language = Literal["en", "fr"]
COOKIE: Final = "language"
"""The browser application writes this cookie too, so that one choice applies to all pages."""


class Spoken(NamedTuple):
    """The language of a request, and the URL that switches to the other one."""

    language: Language = "en"
    other: str = "?lang=fr"
    has_pages: bool = False
    """Whether the browser application is served, so that the header links to its pages."""
    is_chosen: bool = False
    """Whether this request chose the language, so that a cookie must be set."""


_DEFAULT: Final = Spoken()
_SPOKEN: ContextVar[Spoken] = ContextVar("spoken", default=_DEFAULT)


def speak(request: Request) -> None:
    """Set the language: from `lang` in the query string, else the cookie, else Accept-Language."""
    asked = (request.query_params.get("lang"), request.cookies.get(COOKIE), _preferred(request))
    language: Language = "fr" if next((one for one in asked if one in ("fr", "en")), "en") == "fr" else "en"
    other = "en" if language == "fr" else "fr"
    # The page shows a sent form again at the same path; its fields are not in the address.
    query = request.url.remove_query_params("lang").include_query_params(lang=other).query
    is_chosen = request.query_params.get("lang") == language
    _SPOKEN.set(Spoken(language, f"{request.url.path}?{query}", bool(request.app.state.has_pages), is_chosen))


def _preferred(request: Request) -> str | None:
    header = request.headers.get("accept-language", "")[:200].lower()
    named = (part.split(";")[0].strip().split("-")[0] for part in header.split(","))
    return next((one for one in named if one in ("en", "fr")), None)


def spoken() -> Spoken:
    return _SPOKEN.get()


@cache
def french() -> dict[str, str]:
    """Return the French sentences by the English ones."""
    return tomllib.loads(Path(__file__).with_name("account_fr.toml").read_text("utf-8"))


def t(sentence: str, **values: object) -> str:
    """Translate a sentence into the request's language and fill its `{holes}`; unknown sentences stay English."""
    said = french().get(sentence, sentence) if _SPOKEN.get().language == "fr" else sentence
    return said.format(**values) if values else said
