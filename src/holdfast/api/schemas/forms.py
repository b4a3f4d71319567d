"""What comes in as JSON: strict types, no unknown fields, and nothing that a database or a reader could not hold."""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints, model_validator

MAX_ID = (1 << 63) - 1
_MAX_WHOLE = 1 << 63
_NAME_CHARS = 60
_FIELDS = 100
"""Fields of a form: the largest has a dozen. More are refused together, for each wrong one would be told of."""


def checked_text(text: str) -> str:
    """Return a string that both databases can hold; ValueError says why this is none."""
    if "\x00" in text:
        raise ValueError("it holds a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("it holds half of a character (a lone surrogate)") from None
    return text


def check_values(value: Any, path: str = "") -> None:
    """Raise ValueError with the place of the first value that cannot be kept: NUL, half a character, no number."""
    place = path or "body"
    if isinstance(value, dict):
        for name, one in value.items():
            shown = name[:_NAME_CHARS].encode("ascii", "replace").decode().replace("\x00", "?")
            check_values(name, f"{path}.{shown}" if path else shown)
            check_values(one, f"{path}.{shown}" if path else shown)
    elif isinstance(value, list):
        for number, one in enumerate(value):
            check_values(one, f"{path}[{number}]")
    elif isinstance(value, str):
        try:
            checked_text(value)
        except ValueError as exc:
            raise ValueError(f"{place}: {exc}") from None
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{place}: it is no finite number")
    elif isinstance(value, int) and not -_MAX_WHOLE <= value < _MAX_WHOLE:
        raise ValueError(f"{place}: it is a larger number than we keep")


def check_fields(content: Any) -> Any:
    """Return the content of a form; ValueError for one with more fields than any form has."""
    if isinstance(content, dict) and len(content) > _FIELDS:
        raise ValueError(f"it has {len(content):,} fields; leave out what docs/api.md does not name")
    return content


class Form(BaseModel):
    """What a request's body holds; a field that is wrong or unknown is named."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, content: Any) -> Any:
        check_values(check_fields(content))
        return content


Words = Annotated[str, StringConstraints(max_length=200), AfterValidator(checked_text)]
"""A short text in a query."""
