"""Base of request forms, and the types that several of them share."""

from __future__ import annotations

from typing import Annotated, Any, Unpack

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from holdfast.sources.config import why_not_plain

MAX_ID = (1 << 63) - 1
RowId = Annotated[int, Field(ge=0, le=MAX_ID)]
"""An id in a path, a query or a form. Rejects larger numbers here, because a database driver would fail on them."""
_NAME_CHARS = 60
# Most fields of a form: the largest has a dozen. More are rejected together, because each wrong one would be reported.
_FIELDS = 100


def checked_text(text: str) -> str:
    """Return a string that both databases can store; raise ValueError with the reason if they cannot."""
    if (reason := why_not_plain(text)) is not None:
        raise ValueError(reason)
    return text


def check_values(value: Any) -> None:
    """Raise ValueError with the location of the first value that cannot be stored: NUL, lone surrogate, NaN,
    infinity.
    """
    found = _problem(value)
    if found is not None:
        place, why = found
        named = "".join(reversed(place)).removeprefix(".")
        raise PydanticCustomError(
            "value_refused", "{within}: {why}", {"place": named, "within": named or "body", "why": why}
        )


def _problem(value: Any) -> tuple[list[str], str] | None:
    # Build the path only when something is found: for every value, a deep one would cost the length of all names above
    # it per leaf.
    if isinstance(value, dict):
        for name, one in value.items():
            # Check names, too: a JSON column stores them like values.
            if (found := _problem(name) or _problem(one)) is not None:
                # The message must not repeat the characters that are invalid.
                shown = name[:_NAME_CHARS].encode("ascii", "replace").decode().replace("\x00", "?")
                found[0].append(f".{shown}")
                return found
    elif isinstance(value, list):
        for number, one in enumerate(value):
            if (found := _problem(one)) is not None:
                found[0].append(f"[{number}]")
                return found
    elif (reason := why_not_plain(value)) is not None:
        return [], reason
    return None


def check_fields(content: Any) -> Any:
    """Return the content of a form; raise ValueError if it has more fields than any form has."""
    if isinstance(content, dict) and len(content) > _FIELDS:
        raise ValueError(f"it has {len(content):,} fields; leave out what docs/api.md does not name")
    return content


class RequestForm(BaseModel):
    """A request body; errors name the field that is invalid or unknown. `example` is shown in the OpenAPI document."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    def __init_subclass__(cls, *, example: dict[str, Any] | None = None, **declared: Unpack[ConfigDict]) -> None:
        super().__init_subclass__(**declared)
        if example is not None:
            cls.model_config["json_schema_extra"] = {"examples": [example]}

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, content: Any) -> Any:
        check_values(check_fields(content))
        return content


Words = Annotated[str, StringConstraints(max_length=200), AfterValidator(checked_text)]
