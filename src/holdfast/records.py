"""Records: public forms of objects, declared once.

A record is a value class whose fields declare who may see them. The API, `--json`, MCP, webhooks and exports
encode it here; the OpenAPI document and the types of the web application are generated from the same fields:

    @record
    class Takedown:
        id: Operator[int]
        subject: Operator[str]

A field without an audience is never shown. The string below a class or a field is its description. A property
is shown like a field if its return type names an audience.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import date, datetime
from enum import Enum, IntEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args, get_type_hints

from holdfast.old_spellings import CAMEL_IN_COMMANDS, OLD_FIELDS, REPEATED_FIELDS
from holdfast.values import dataclass

T = TypeVar("T")
R = TypeVar("R")


class Audience(IntEnum):
    """The viewers of a field: these and all below."""

    PUBLIC = 0
    MEMBER = 1
    OPERATOR = 2


Public = Annotated[T, Audience.PUBLIC]
Member = Annotated[T, Audience.MEMBER]
Operator = Annotated[T, Audience.OPERATOR]


class Absent(Enum):
    """Marks a field that JSON has only while it has a value."""

    IF_NONE = "none"


IfKnown = Annotated[T | None, Absent.IF_NONE]
"""A field that JSON leaves out while it is None, as in `Public[IfKnown[int]]`."""

if TYPE_CHECKING:
    from typing import dataclass_transform

    @dataclass_transform(kw_only_default=True, frozen_default=True)
    def record(cls: type[T]) -> type[T]: ...
else:

    def record(cls):
        """Declare a value class as a record, so that it can be encoded."""
        made = dataclass(frozen=True, slots=True, kw_only=True)(cls)
        _RECORDS.add(made)
        return made


_RECORDS = set[type]()


def all_records() -> frozenset[type]:
    """Return the records of the loaded modules."""
    return frozenset(_RECORDS)


def is_record(kind: Any) -> bool:
    return isinstance(kind, type) and kind in _RECORDS


class Spelling(Enum):
    SNAKE = "snake"
    CAMEL = "camel"
    COMMAND = "command"
    """As in Python, with the older names of `--json` (`old_spellings`)."""

    def of(self, name: str) -> str:
        if self is not Spelling.CAMEL:
            return name
        first, *rest = name.split("_")
        return first + "".join(word.capitalize() for word in rest)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordField:
    """A field of a record that has an audience."""

    name: str
    type: Any
    audience: Audience
    schema: str | None
    """Name of its schema in the OpenAPI document, if that is more specific than its type."""
    is_left_out: bool
    """Whether JSON leaves it out while it is None."""


@dataclass(frozen=True, slots=True)
class Documented:
    """Annotation beside an audience: the type by which OpenAPI describes a field that holds ready-made JSON."""

    type: Any


@cache
def shown_fields(cls: type) -> tuple[RecordField, ...]:
    """Return the fields and properties of a record that have an audience, in order."""
    hints = get_type_hints(cls, include_extras=True)
    declared = {one.name: hints[one.name] for one in dataclasses.fields(cls)}
    for base in reversed(cls.__mro__):
        for name, value in vars(base).items():
            if isinstance(value, property) and value.fget is not None:
                declared[name] = get_type_hints(value.fget, include_extras=True).get("return")
    found = []
    for name, hint in declared.items():
        marks = getattr(hint, "__metadata__", ())
        audience = next((mark for mark in marks if isinstance(mark, Audience)), None)
        if audience is not None:
            schema = next((mark for mark in marks if isinstance(mark, str)), None)
            kind = next((mark.type for mark in marks if isinstance(mark, Documented)), get_args(hint)[0])
            is_left_out = Absent.IF_NONE in marks
            found.append(RecordField(name=name, type=kind, audience=audience, schema=schema, is_left_out=is_left_out))
    return tuple(found)


def from_row(cls: type[R], row: object, **given: Any) -> R:
    """Return a record from the given values and, for other fields, from a row's attributes of the same name."""
    names = [one.name for one in dataclasses.fields(cls)]  # type: ignore[arg-type]
    return cls(**{name: given[name] if name in given else getattr(row, name) for name in names})


def encode(value: Any, audience: Audience = Audience.OPERATOR, spelling: Spelling = Spelling.CAMEL) -> Any:
    """Return a record, or a list or mapping of records, as JSON; raise TypeError for unsupported values."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if is_record(value.__class__):
        keys, left_out = _keys(value.__class__, audience, spelling)
        made = {key: encode(getattr(value, name), audience, spelling) for name, key in keys}
        for key in left_out:
            if made[key] is None:
                del made[key]
        # A field that an old spelling has no name for: its own fields take its place.
        return made.pop("") | made if "" in made else made
    if isinstance(value, list | tuple):
        return [encode(one, audience, spelling) for one in value]
    if isinstance(value, Mapping):
        return {str(key): encode(one, audience, spelling) for key, one in value.items()}
    if isinstance(value, datetime):
        return value.isoformat().removesuffix("+00:00") + "Z"
    if isinstance(value, date | Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no place in JSON")


@cache
def _keys(cls: type, audience: Audience, spelling: Spelling) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """Return the fields for an audience, each with its JSON name, and the JSON names that are left out while None."""
    fields = [field for field in shown_fields(cls) if field.audience <= audience]
    keys = {field.name: spelled(cls, field.name, spelling) for field in fields}
    repeated = ((name, spelling.of(old)) for old, name in repeated_fields(cls).items() if name in keys)
    return (*keys.items(), *repeated), tuple(keys[field.name] for field in fields if field.is_left_out)


@cache
def repeated_fields(cls: type) -> dict[str, str]:
    """Return the additional JSON names of a record's fields, each with the field that it repeats."""
    return {old: name for one in cls.__mro__ for old, name in REPEATED_FIELDS.get(one.__name__, {}).items()}


def spelled(cls: type, name: str, spelling: Spelling) -> str:
    """Return a field's JSON name: the one first documented, if that differs."""
    old = OLD_FIELDS[spelling.value]
    found = [old[one.__name__][name] for one in cls.__mro__ if name in old.get(one.__name__, {})]
    is_camel = spelling is Spelling.COMMAND and cls.__name__ in CAMEL_IN_COMMANDS
    return found[0] if found else (Spelling.CAMEL if is_camel else spelling).of(name)
