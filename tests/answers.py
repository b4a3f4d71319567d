"""Reads a JSON answer as an object, by the names that its record has in Python."""

from __future__ import annotations

import re
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import httpx

_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT[0-9:.]+Z")


def as_record(answer: httpx.Response) -> Any:
    """Return the body of an answer with attributes in snake case and moments as datetimes."""
    return answer.json(object_hook=_with_attributes)


def _with_attributes(fields: dict[str, Any]) -> SimpleNamespace:
    return SimpleNamespace(**{re.sub("[A-Z]", _after_underscore, name): _read(value) for name, value in fields.items()})


def _after_underscore(letter: re.Match[str]) -> str:
    return f"_{letter[0].lower()}"


def _read(value: Any) -> Any:
    return datetime.fromisoformat(value) if isinstance(value, str) and _MOMENT.fullmatch(value) else value
