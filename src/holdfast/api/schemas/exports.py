"""The answer that says what can be exported."""

from __future__ import annotations

from holdfast.api.schemas.base import Answer


class ExportKind(Answer):
    """One kind of export."""

    path: str
    description: str
    formats: list[str]


class Column(Answer):
    """One column of an export, or one field of an index."""

    name: str
    meaning: str


class DataDictionary(Answer):
    """Every column of every export, in its order."""

    snapshots: list[Column]
    changes: list[Column]
    cdxj: list[Column]


class Exports(Answer):
    """What can be exported, and how much at once."""

    enabled: bool
    formats: list[str]
    default_limit: int
    max_limit: int
    data_dictionary_url: str | None
    snapshots: ExportKind
    changes: ExportKind
    cdxj: ExportKind
